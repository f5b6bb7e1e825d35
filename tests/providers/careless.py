"""A simulator that repeats the key in whatever it says, as a careless provider might."""

from typing import Any

from pairscale.testing import ProviderSimulator


class CarelessSimulator(ProviderSimulator):
    """Puts the key into each of its longer texts."""

    def _written(self, request: Any, document: Any, fate: int | str) -> Any:
        return super()._written(request, with_key(document, self._key(request)), fate)


def with_key(document: Any, key: str) -> Any:
    """The document with the key in each of its longer texts."""
    if isinstance(document, str):
        return f"{document} (your key is {key})" if " " in document or "<" in document else document
    if isinstance(document, dict):
        return {name: with_key(value, key) for name, value in document.items()}
    return [with_key(value, key) for value in document] if isinstance(document, list) else document
