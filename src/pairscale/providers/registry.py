"""Providers by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pairscale.errors import InputError, UnknownNameError
from pairscale.providers.base import Provider

__all__ = ["PROVIDERS", "provider_named", "split_model"]

_CLASSES = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "together": "Together",
    "ollama": "Ollama",
    "compatible": "Compatible",
}

PROVIDERS = tuple(_CLASSES)
"""The names of the providers."""


def provider_named(name: str, **settings: Any) -> Provider:
    """A provider by its name.

    Args:
        name: ``openai``, ``anthropic``, ``gemini``, ``together``, ``ollama`` or ``compatible``.
        settings: of the provider's class: ``overrides`` (what its models can do) for all of them, ``version`` and
            ``key_header`` for Anthropic, ``api_version`` for Gemini.

    Raises:
        UnknownNameError: when there is none of that name.
        InputError: when it has no such setting.

    Example:
        >>> provider_named("openai").base_url
        'https://api.openai.com/v1'
    """
    if name not in _CLASSES:
        raise UnknownNameError(f"no provider is called {name!r}; there are {', '.join(PROVIDERS)}")
    make: Callable[..., Provider] = getattr(import_module(f"pairscale.providers.{name}"), _CLASSES[name])
    try:
        return make(**settings)
    except TypeError:
        raise InputError(f"the provider {name} has no setting {', '.join(sorted(settings))}") from None


def split_model(text: str) -> tuple[str, str]:
    """The provider and the model of ``provider:model``; the model may hold colons itself.

    Raises:
        UnknownNameError: when no provider has that name.
        InputError: when there is no model.

    Example:
        >>> split_model("ollama:qwen3:32b")
        ('ollama', 'qwen3:32b')
    """
    name, colon, model = text.partition(":")
    if name not in _CLASSES:
        raise UnknownNameError(f"no provider is called {name!r} (in {text!r}); there are {', '.join(PROVIDERS)}")
    if not colon or not model.strip():
        raise InputError(f"{text!r} names no model; write {name}:MODEL")
    return name, model.strip()
