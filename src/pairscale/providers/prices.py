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
from pairscale.options import optional, require_number

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
        written: a million tokens of the question that went into the provider's cache; None as ``input``.
        tiers: what service tiers cost of this, such as ``{"flex": 0.5}``, where the price of a tier that is not named
            is not known; None when this is the price of every tier.
    """

    input: float
    output: float
    cached: float | None = None
    batch: float | None = None
    as_of: str | None = None
    written: float | None = None
    tiers: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "batch", "written"):
            object.__setattr__(self, name, require_price(getattr(self, name), f"price: {name}"))
        for tier, value in (self.tiers or {}).items():
            require_price(value, f"price: tiers: {tier}")


def require_price(value: Any, name: str) -> float | None:
    """US dollars per million tokens, or None."""
    return optional(require_number, value, name, least=0, below=1_000_000)


@cache
def _table() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(files("pairscale.providers").joinpath("prices.json").read_text("utf-8"))
    return found


PRICES_AS_OF = "2025-12-01"
"""Of when the bundled prices are; a test holds it against the table."""


def price_table() -> Sequence[Mapping[str, Any]]:
    """The bundled table: ``provider model input output cached batch written tiers``; the first pattern that fits."""
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
                more = {name: row.get(name) for name in ("cached", "batch", "written", "tiers")}
                return Price(row["input"], row["output"], as_of=table.get("as_of"), **more)
    except (KeyError, TypeError, AttributeError, re.error) as error:
        raise InputError(f"a table of prices needs rows of provider, model, input and output: {error!r}") from None
    return None


_USUAL_TIERS = frozenset({"default", "standard", "auto", "on_demand"})


def cost_of(usage: Usage, price: Price | None, *, batch: bool = False, tier: str | None = None) -> float | None:
    """What a reply cost, in US dollars; None when the price or the tokens are not known.

    Args:
        usage: the tokens.
        price: of the model.
        batch: whether it came in a batch.
        tier: the service tier that answered, where the provider says.
    """
    completion = usage.completion
    if completion is None and usage.prompt is not None and usage.total is not None:
        completion = max(0, usage.total - usage.prompt)  # a prompt that was blocked has no answer to count
    if price is None or usage.prompt is None or completion is None:
        return None
    share = _share(price, batch, tier)
    if share is None:
        return None
    cached = min(usage.cached or 0, usage.prompt)
    written = min(usage.written or 0, usage.prompt - cached)
    cheaper = price.input if price.cached is None else price.cached
    dearer = price.input if price.written is None else price.written
    question = (usage.prompt - cached - written) * price.input + cached * cheaper + written * dearer
    return (question + completion * price.output) / _MILLION * share


def _share(price: Price, batch: bool, tier: str | None) -> float | None:
    """What is paid of the usual price; None when nobody knows."""
    if batch:
        return 1.0 if price.batch is None else price.batch
    if tier is None or price.tiers is None or tier.lower() in _USUAL_TIERS:
        return 1.0
    return price.tiers.get(tier.lower())
