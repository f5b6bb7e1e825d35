"""Providers by name: those that come with the package, those of the user, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.notices import notice
from pairscale.providers.base import Provider
from pairscale.providers.presets import presets

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["CLASSES", "EMBEDDED", "ENTRY_POINTS", "PROVIDERS", "provider_named", "register_provider", "split_model"]

CLASSES = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "together": "Together",
    "ollama": "Ollama",
    "compatible": "Compatible",
}
"""The providers with a module of their own, and the class in it."""
EMBEDDED = frozenset({"lexical", "simulated", "replay", "human"})
"""The judges that are no provider's."""
_MEMBERS = ("name", "base_url", "base_url_variable", "key_variable", "auth", "call", "reply", "problem", "without")
_registered: dict[str, Callable[..., Provider]] = {}

ENTRY_POINTS = "pairscale.providers"
"""The group under which an installed package names its providers, each by the name that users write."""

Made = TypeVar("Made", bound=Callable[..., Provider])


class _ProviderNames(Collection[str]):
    """All names there are now. Installed packages are looked through only when the others do not have one."""

    def __contains__(self, name: object) -> bool:
        return name in CLASSES or name in _registered or name in presets() or name in _installed()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*CLASSES, *presets(), *_registered, *_installed()]))

    def __len__(self) -> int:
        return sum(1 for _ in self)


PROVIDERS = _ProviderNames()
"""The names of the providers."""


def register_provider(provider: Made) -> Made:
    """Make a provider of your own known in this process, also as a decorator: then ``NAME:MODEL`` is a judge.

    For a server that speaks OpenAI's chat completions, a row of data is enough: ``pairscale providers add``.

    A package does the same for everybody who installs it, and for the command, by an entry point of the group
    ``pairscale.providers``: ``NAME = "package.module:Class"``.

    Args:
        provider: a class of the :class:`~pairscale.providers.base.Provider` protocol, with its ``name``. One that is
            registered again under the same name takes the place of the first.

    Returns:
        The class itself.

    Raises:
        InputError: when it has no name, or one that is taken, or lacks a member of the protocol.

    Example:
        >>> from pairscale.providers.compatible import Compatible
        >>> @register_provider
        ... class Mine(Compatible):
        ...     name, base_url, key_variable = "mine", "https://models.example.org/v1", "MINE_API_KEY"
        >>> provider_named("mine").base_url
        'https://models.example.org/v1'
    """
    name = getattr(provider, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"a provider needs a name of letters, digits and _ as its attribute `name`, not {name!r}")
    if name in CLASSES or name in EMBEDDED:
        raise InputError(f"{name} comes with pairscale; give your provider another name")
    if missing := [member for member in _MEMBERS if not hasattr(provider, member)]:
        raise InputError(f"the provider {name} lacks {', '.join(missing)}; see pairscale.providers.base.Provider")
    _registered[name] = provider
    return provider


@cache
def _installed() -> dict[str, EntryPoint]:
    """The entry points of installed packages, by name; a package that cannot be read is named, and left out."""
    from importlib.metadata import distributions

    found: dict[str, EntryPoint] = {}
    for package in distributions():
        try:
            has_some = ENTRY_POINTS in (package.read_text("entry_points.txt") or "")
            points = tuple(package.entry_points.select(group=ENTRY_POINTS)) if has_some else ()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the others can be used
            notice(f"the providers of the package {package.name} cannot be read: {error}")
            continue
        for point in points:
            if point.name not in CLASSES and point.name not in EMBEDDED:
                found.setdefault(point.name, point)  # as with imports, the first on the path counts
    return found


def _class_of(name: str) -> Callable[..., Provider]:
    if name in CLASSES:
        made: Callable[..., Provider] = getattr(import_module(f"pairscale.providers.{name}"), CLASSES[name])
        return made
    if name not in _registered and name in presets():
        from pairscale.providers.compatible import Compatible

        return partial(Compatible, preset=presets()[name])
    if name not in _registered and name in _installed():
        point = _installed()[name]
        try:
            provider = point.load()
            if (own := getattr(provider, "name", name)) != name:
                raise InputError(f"its name is {own!r}")
            register_provider(provider)
        except (Exception, SystemExit) as error:  # whatever a package raises, it cannot be used
            raise InputError(f"the provider {name} ({point.value}) cannot be used: {error}") from error
    if name not in _registered:
        raise UnknownNameError(f"no provider is called {name!r}; there are {', '.join(PROVIDERS)}")
    return _registered[name]


def provider_named(name: str, **settings: Any) -> Provider:
    """A provider by its name.

    Args:
        name: ``openai``, ``anthropic``, ``gemini``, ``together``, ``ollama``, ``compatible``, a hosted service such as
            ``openrouter`` or ``azure`` (``pairscale providers`` lists them), or one of your own.
        settings: of the provider's class: ``overrides`` (what its models can do) for all of them, ``version`` and
            ``key_header`` for Anthropic, ``api_version`` for Gemini.

    Raises:
        UnknownNameError: when there is none of that name.
        InputError: when it has no such setting.

    Example:
        >>> provider_named("openai").base_url
        'https://api.openai.com/v1'
    """
    make = _class_of(name)
    try:
        return make(**settings)
    except TypeError as error:
        if not settings:
            raise InputError(f"the provider {name} cannot be made: {error}") from error
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
    if name not in PROVIDERS:
        raise UnknownNameError(f"no provider is called {name!r} (in {text!r}); there are {', '.join(PROVIDERS)}")
    if not colon or not model.strip():
        raise InputError(f"{text!r} names no model; write {name}:MODEL")
    return name, model.strip()
