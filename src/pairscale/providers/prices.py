"""What tokens cost: dated tables of models, the user's own before the bundled one.

Prices are US dollars per million tokens. They change, so every row has a source and a date, and an unknown model has no
price rather than a guessed one. ``pairscale prices`` shows them; docs/prices.md says where they come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import optional, require_int, require_mapping, require_number, require_text
from pairscale.providers.data_files import (
    bundled,
    merged_rows,
    own_document,
    own_file,
    read_document,
    require_date,
    require_pattern,
    today,
    write_own,
)
from pairscale.providers.presets import presets

if TYPE_CHECKING:
    from pairscale.providers.base import Usage

__all__ = [
    "UNDATED",
    "UNIT",
    "Price",
    "PriceRow",
    "add_prices",
    "cost_of",
    "price_date",
    "price_note",
    "price_of",
    "price_table",
    "require_price",
]

_MILLION = 1_000_000
UNIT = "USD per million tokens"
"""The unit that a file of prices must name."""

_LEAST = 0.0001
"""Prices between 0 and this are of a single token, or of a thousand."""
_LONG = ("above", "input", "output", "cached", "written")


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars per million tokens.

    Attributes:
        input: tokens of the question.
        output: tokens of the answer, thoughts included.
        cached: tokens of the question that came from the provider's cache; None means as ``input``.
        batch: share of the price that batches cost, such as 0.5; None when no batch price is known.
        as_of: date of the price.
        written: tokens of the question that went into the provider's cache; None means as ``input``.
        tiers: share of the price that service tiers cost, such as ``{"flex": 0.5}``, where the price of a tier that is
            not named is not known; None when this is the price of every tier.
        long: prices of prompts with more than ``above`` tokens, such as ``{"above": 200000, "input": 4.0, "output":
            18.0}``; None when they cost the same.
        batch_cached: cached tokens in a batch, where that is another share than ``batch``.
        source: where the price comes from.
    """

    input: float
    output: float
    cached: float | None = None
    batch: float | None = None
    as_of: str | None = None
    written: float | None = None
    tiers: Mapping[str, float] | None = None
    long: Mapping[str, float] | None = None
    batch_cached: float | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "batch", "written", "batch_cached"):
            object.__setattr__(self, name, require_price(getattr(self, name), f"price: {name}"))
        for name in ("input", "output"):
            if getattr(self, name) is None:
                raise InputError(f"price: {name} is missing")
        for tier, value in require_mapping(self.tiers or {}, "price: tiers").items():
            require_number(value, f"price: tiers: {tier}", least=0, below=_MILLION)
        if self.long is not None:
            _require_long(self.long)

    @property
    def is_free(self) -> bool:
        """Whether tokens cost nothing."""
        return self.input == 0 and self.output == 0


def _require_long(long: Mapping[str, Any]) -> None:
    require_mapping(long, "price: long")
    if strange := sorted(set(long) - set(_LONG)):
        raise InputError(f"price: long has no {strange[0]!r}; there are {', '.join(_LONG)}")
    require_int(long.get("above"), "price: long: above", least=1)
    for name in ("input", "output"):
        require_number(long.get(name), f"price: long: {name}", least=0, below=_MILLION)
    for name in ("cached", "written"):
        require_price(long.get(name), f"price: long: {name}")


def require_price(value: Any, name: str) -> float | None:
    """US dollars per million tokens, or None."""
    return optional(require_number, value, name, least=0, below=_MILLION)


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A row of a table of prices.

    Attributes:
        provider: whose models.
        model: regular expression that is searched for in the model's name, without regard to case.
        price: what they cost.
        start: first day of the price; None when it is in force already.
        end: last day of the price; None when none is known.
        note: what to know about it.
        is_own: whether it is the user's own.
    """

    provider: str
    model: str
    price: Price
    start: str | None = None
    end: str | None = None
    note: str | None = None
    is_own: bool = False

    @property
    def is_in_force(self) -> bool:
        """Whether the price holds today."""
        now = today().isoformat()
        return (self.start is None or self.start <= now) and (self.end is None or now <= self.end)

    def covers(self, provider: str, model: str) -> bool:
        """Whether it is the price of a model."""
        return self.provider == provider and re.search(self.model, model, re.IGNORECASE) is not None


_OF_PRICE = frozenset(field.name for field in fields(Price))
_OF_ROW = _OF_PRICE | {"provider", "model", "from", "until", "note"}


def _rows_of(table: Mapping[str, Any], where: str, *, is_own: bool = False) -> list[PriceRow]:
    """The rows of a table.

    Raises:
        InputError: one is not right; the message names it.
    """
    rows = table.get("prices")
    if not isinstance(rows, list):
        raise InputError(f"{where}: a table of prices needs 'prices', a list of rows")
    return [_row_of(row, table, f"{where}: row {number}", is_own) for number, row in enumerate(rows, 1)]


def _row_of(row: Any, table: Mapping[str, Any], where: str, is_own: bool) -> PriceRow:
    if not isinstance(row, Mapping):
        raise InputError(f"{where} must be an object with provider, model, input and output, not {row!r:.60}")
    if missing := [name for name in ("provider", "model", "input", "output") if row.get(name) is None]:
        raise InputError(f"{where} needs provider, model, input and output; it has no {missing[0]}")
    if strange := sorted(set(row) - _OF_ROW):
        raise InputError(f"{where} has {strange[0]!r}, which no price has; there are {', '.join(sorted(_OF_ROW))}")
    given = {name: row[name] for name in _OF_PRICE & set(row)}
    dated: dict[str, Any] = {name: table.get(name) for name in ("as_of", "source")}
    try:
        price = Price(**dated | given)
        return PriceRow(
            require_text(row["provider"], "provider"),
            require_pattern(row["model"], "model"),
            price,
            optional(require_date, row.get("from"), "from", future=True),
            optional(require_date, row.get("until"), "until", future=True),
            optional(require_text, row.get("note"), "note"),
            is_own,
        )
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


@lru_cache(maxsize=32)
def _bundled_rows(provider: str | None) -> tuple[PriceRow, ...]:
    table = bundled("prices")
    chosen = [row for row in table["prices"] if provider in {None, row["provider"]}]  # most are never asked for
    return tuple(_rows_of({**table, "prices": chosen}, "the bundled prices"))


def price_table(provider: str | None = None) -> Sequence[PriceRow]:
    """The prices, the user's own before the bundled ones; the first row that covers a model today is its price.

    Args:
        provider: whose models; None for all.

    Raises:
        InputError: the user's own file is not right.
    """
    own = own_document("prices")
    mine = [] if own is None else _rows_of(own, str(own_file("prices")), is_own=True)
    return [*(row for row in mine if provider in {None, row.provider}), *_bundled_rows(provider)]


def add_prices(path: Path) -> tuple[Path, int, int]:
    """Add the prices of a file to the user's own; a row of the same provider and model is replaced.

    Args:
        path: a JSON file with ``unit`` (:data:`UNIT`), ``as_of``, ``source`` and ``prices``.

    Returns:
        The user's own file, how many rows were added, and how many were replaced.

    Raises:
        InputError: it is not right: another unit, no date, no source, or a price that cannot be.
    """
    from pairscale.providers.registry import PROVIDERS

    table = read_document(path)
    if table.get("unit") != UNIT:
        raise InputError(f"{path}: 'unit' must be {UNIT!r}, not {table.get('unit')!r}; convert the prices first")
    require_date(table.get("as_of"), f"{path}: as_of")
    if not isinstance(table.get("source"), str) or not table["source"].strip():
        raise InputError(f"{path}: 'source' must say where the prices come from")
    if strange := sorted(set(table) - {"unit", "as_of", "source", "note", "prices"}):
        raise InputError(f"{path} has {strange[0]!r}; there are unit, as_of, source, note and prices")
    rows = _rows_of(table, str(path))
    for number, row in enumerate(rows, 1):
        _require_plausible(row, f"{path}: row {number}")
    if not rows:
        raise InputError(f"{path} holds no prices")
    new = [{**row, **{name: row.get(name, table[name]) for name in ("as_of", "source")}} for row in table["prices"]]
    if repeated := _repeated(new):
        raise InputError(f"{path}: {repeated} stands there twice")
    for name in sorted({row.provider for row in rows} - set(PROVIDERS)):
        notice(f"{path}: no provider is called {name}; its prices are kept, and used once there is one")
    before = own_document("prices")
    old = [] if before is None else list(before["prices"])
    kept = merged_rows(old, new, _key)
    target = write_own("prices", {"unit": UNIT, "prices": kept})
    return target, len(new), len(old) + len(new) - len(kept)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["provider"], row["model"], row.get("from")


def _repeated(rows: Sequence[Mapping[str, Any]]) -> str | None:
    keys = [_key(row) for row in rows]
    return next((f"{key[0]}:{key[1]}" for key in keys if keys.count(key) > 1), None)


def _require_plausible(row: PriceRow, where: str) -> None:
    """Refuse prices that are those of one token, or of a thousand."""
    price = row.price
    require_date(price.as_of, f"{where}: as_of")
    require_text(price.source, f"{where}: source")
    require_text(row.model, f"{where}: model")
    if row.start is not None and row.end is not None and row.end < row.start:
        raise InputError(f"{where}: until {row.end} lies before from {row.start}")
    for name in ("input", "output"):
        value = getattr(price, name)
        if 0 < value < _LEAST:
            raise InputError(f"{where}: {name} {value:g} is no price of a million tokens; is it that of one token?")
    if price.batch is not None and price.batch > 1:
        raise InputError(f"{where}: batch {price.batch:g} must be the share that batches cost, such as 0.5")
    for name in ("cached", "batch_cached"):
        if (getattr(price, name) or 0) > price.input:
            raise InputError(f"{where}: {name} {getattr(price, name):g} is more than input {price.input:g}")


def price_of(provider: str, model: str, given: Price | Mapping[str, Any] | None = None) -> Price | None:
    """The price of a model: the one given, or that of the tables; None when it is not known.

    Args:
        provider: whose model.
        model: its name.
        given: a price of your own, ``{"input": 0.25, "output": 2.0}``, or a table of them in the form of the bundled
            one, ``{"as_of": …, "prices": [{"provider": …, "model": a pattern, "input": …, "output": …}]}``, which
            comes before it.

    Raises:
        InputError: what is given is no price.
    """
    if isinstance(given, Mapping) and "prices" in given:
        return _first(_rows_of(given, "price"), provider, model) or price_of(provider, model)
    if given is not None:
        if isinstance(given, Price):
            return given
        try:
            return Price(**given)
        except TypeError as error:
            raise InputError(f"price: {error}") from None
    found = _first(price_table(provider), provider, model)
    if found is None and (provider == "ollama" or (provider in presets() and presets()[provider].is_free)):
        return Price(0.0, 0.0, source="a server of your own, whose tokens cost nothing")
    return found


def _first(rows: Iterable[PriceRow], provider: str, model: str) -> Price | None:
    return next((row.price for row in rows if row.covers(provider, model) and row.is_in_force), None)


UNDATED = "not dated"
"""In place of the date of a price that was given without one."""


def price_note(dates: Iterable[str | None]) -> str:
    """Of which dates the prices behind a cost are, in words: what stands right behind every cost that is shown.

    Args:
        dates: of the prices, several with commas between them; None for a cost that rests on no price of ours, such as
            one that a judge states itself.

    Example:
        >>> price_note(["2026-10-14", "2026-10-21, 2026-10-14", None])
        ' (prices of 2026-10-14 and 2026-10-21)'
        >>> price_note([None])
        ''
    """
    found = sorted({one for text in dates if text for one in text.split(", ")})
    known = [date for date in found if date != UNDATED]
    said = [f"prices of {' and '.join(known)}"] if known else []
    said += ["given prices without a date"] if UNDATED in found else []
    return f" ({', '.join(said)})" if said else ""


def price_date(price: object) -> str | None:
    """The date of a price; None when there is no price, or nothing to pay."""
    if not isinstance(price, Price) or price.is_free:
        return None
    return price.as_of or UNDATED


_USUAL_TIERS = frozenset({"default", "standard", "standard_only", "auto", "on_demand", "unspecified"})


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
    rates = _rates(price, usage.prompt)
    read = rates["cached"] * share
    if batch and price.batch_cached is not None:
        read = price.batch_cached * rates["cached"] / price.cached if price.cached else price.batch_cached
    paid = (
        (usage.prompt - cached - written) * rates["input"] + written * rates["written"] + completion * rates["output"]
    )
    return (paid * share + cached * read) / _MILLION


def _rates(price: Price, prompt: int) -> dict[str, float]:
    """Prices of a million tokens for a prompt of this length."""
    rates: dict[str, Any] = {name: getattr(price, name) for name in ("input", "output", "cached", "written")}
    if price.long is not None and prompt > price.long["above"]:
        rates = {name: price.long.get(name) for name in rates}
    return {name: rates["input"] if value is None else value for name, value in rates.items()}


def _share(price: Price, batch: bool, tier: str | None) -> float | None:
    """What is paid of the usual price; None when it is not known."""
    if batch:
        return 1.0 if price.batch is None else price.batch
    if tier is None or price.tiers is None or tier.lower() in _USUAL_TIERS:
        return 1.0
    return price.tiers.get(tier.lower())
