"""What tokens cost: a dated table of model families, which a file or an argument can override.

Prices are US dollars for a million tokens. They change; the table says of when it is, and an unknown model has no price
rather than a guessed one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pairscale.errors import InputError

if TYPE_CHECKING:
    from pairscale.providers.base import Usage

__all__ = ["PRICES_AS_OF", "Price", "cost_of", "price_of", "price_table"]

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs.

    Attributes:
        input: a million tokens of the question.
        output: a million tokens of the answer, thoughts included.
        cached: a million tokens of the question that came from the provider's cache; None as ``input``.
        batch: what batches cost of this, such as 0.5; None when there are none.
        as_of: of when the price is.
    """

    input: float
    output: float
    cached: float | None = None
    batch: float | None = None
    as_of: str | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "batch"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < 1e6):
                raise InputError(f"price: {name} must be US dollars for a million tokens, not {value!r}")


@cache
def _table() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(files("pairscale.providers").joinpath("prices.json").read_text("utf-8"))
    return found


PRICES_AS_OF = "2025-12-01"
"""Of when the bundled prices are; a test holds it against the table."""


def price_table() -> Sequence[Mapping[str, Any]]:
    """The bundled table: ``provider model input output cached batch``, patterns first to match first."""
    rows: Sequence[Mapping[str, Any]] = _table()["prices"]
    return rows


def price_of(provider: str, model: str, given: Price | Mapping[str, Any] | None = None) -> Price | None:
    """The price of a model: the one given, or that of its family; None when nobody knows.

    Args:
        provider: whose model.
        model: its name.
        given: a price of your own: ``{"input": 0.25, "output": 2.0}``; or a table of them in the form of the bundled
            one, ``{"as_of": …, "prices": [{"provider": …, "model": a pattern, "input": …, "output": …}]}``, which
            goes before it.
    """
    if isinstance(given, Mapping) and "prices" in given:
        return _found(given, provider, model) or price_of(provider, model)
    if given is not None:
        if isinstance(given, Price):
            return given
        try:
            return Price(**given)
        except TypeError as error:
            raise InputError(f"price: {error}") from None
    if provider == "ollama":
        return Price(0.0, 0.0, as_of=PRICES_AS_OF)
    return _found(_table(), provider, model)


def _found(table: Mapping[str, Any], provider: str, model: str) -> Price | None:
    try:
        for row in table["prices"]:
            if row["provider"] == provider and re.search(row["model"], model, re.IGNORECASE):
                return Price(row["input"], row["output"], row.get("cached"), row.get("batch"), table.get("as_of"))
    except (KeyError, TypeError, AttributeError, re.error) as error:
        raise InputError(f"a table of prices needs rows of provider, model, input and output: {error!r}") from None
    return None


def cost_of(usage: Usage, price: Price | None, *, batch: bool = False) -> float | None:
    """What a reply cost, in US dollars; None when the price or the tokens are not known."""
    completion = usage.completion
    if completion is None and usage.prompt is not None and usage.total is not None:
        completion = usage.total - usage.prompt  # a prompt that was blocked has no answer to count
    if price is None or usage.prompt is None or completion is None:
        return None
    cached = min(usage.cached or 0, usage.prompt)
    cheaper = price.input if price.cached is None else price.cached
    cost = (usage.prompt - cached) * price.input + cached * cheaper + completion * price.output
    return cost / _MILLION * (price.batch if batch and price.batch is not None else 1.0)
