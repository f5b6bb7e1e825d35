"""Ollama's server as such: which models it has loaded, and to have it forget them."""

from __future__ import annotations

from pairscale.core.errors import InputError
from pairscale.providers import _read
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.catalog import provider_named
from pairscale.providers.client import LLMClient, ProviderError

__all__ = ["unload_others"]

_SECONDS = 30.0


async def unload_others(model: str, host: str | None = None) -> tuple[list[str], str | None]:
    """Unload every model but one.

    Args:
        model: the one to keep.
        host: the server; by default as Ollama's own tools find it.

    Returns:
        The models that were unloaded, and what went wrong, if anything did.
    """
    if not model:
        raise InputError("name the model to keep")
    http = BatchHTTP(LLMClient(provider_named("ollama"), base_url=host), retries=0, timeout=_SECONDS)
    unloaded: list[str] = []
    try:
        for entry in _read.objects(_read.items(await http.json("GET", "/api/ps")).get("models")):
            name = str(entry.get("model") or entry.get("name"))
            if name not in {model, f"{model}:latest"}:
                await http.json("POST", "/api/generate", {"model": name, "keep_alive": 0, "stream": False})
                unloaded.append(name)
    except ProviderError as error:
        return unloaded, error.message
    finally:
        await http.aclose()
    return unloaded, None
