"""Ollama's server as such: which models it has loaded, and to have it forget them."""

from __future__ import annotations

from typing import Any

from pairscale.errors import InputError
from pairscale.providers.client import base_url_of
from pairscale.providers.registry import provider_named

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
    import aiohttp

    if not model:
        raise InputError("name the model to keep")
    url = base_url_of(provider_named("ollama"), host)
    unloaded: list[str] = []
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
            async with session.get(f"{url}/api/ps") as response:
                response.raise_for_status()
                document: Any = await response.json()
            for entry in document.get("models", []):
                name = str(entry.get("model") or entry.get("name"))
                if name in {model, f"{model}:latest"}:
                    continue
                body = {"model": name, "keep_alive": 0, "stream": False}
                async with session.post(f"{url}/api/generate", json=body) as response:
                    response.raise_for_status()
                unloaded.append(name)
    except (aiohttp.ClientError, TimeoutError, ValueError, AttributeError) as error:
        return unloaded, f"the server at {url} does not answer as expected ({type(error).__name__}: {error})"
    return unloaded, None
