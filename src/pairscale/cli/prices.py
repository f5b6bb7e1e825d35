"""``pairscale prices``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairscale.cli._common import Output, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.cli.providers import added, as_text, emit_one
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from pairscale.cli._common import Facts
    from pairscale.providers.catalog import PriceRow


@from_verb("", "[NAME] [FILE]")
def command(emit: Output, name: str | None = None, file: str | None = None) -> None:
    """List the prices of models, show one with its source and date, or add prices from a file.

    Prices are US dollars per million tokens. Yours come before the bundled ones. A file to add names its unit, its date
    and its source: {"unit": "USD per million tokens", "as_of": "2026-11-01", "source": "where from", "prices":
    [{"provider": "openai", "model": "^gpt-6-sol", "input": 2.0, "output": 10.0}]}; "model" is a regular expression.

    Args:
        name: A provider, a model as provider:model, or `add`.
        file: With `add`: the JSON file to add.

    Examples:
        pairscale prices
        pairscale prices anthropic
        pairscale prices openai:gpt-6-sol
        pairscale prices add mine.json
    """
    import polars as pl

    from pairscale.providers.catalog import price_table

    if added("prices", name, file):
        return
    if name is not None and ":" in name:
        emit_one(emit, _model(name))
        return
    rows = [_columns(row) for row in price_table(name)]
    if not rows:
        raise InputError(
            f"no price of {name!r} is known; `pairscale prices` lists all, `pairscale prices add` adds some"
        )
    table = pl.DataFrame([as_text(row) for row in rows], infer_schema_length=None)

    def show() -> None:
        names = ["provider", "model", "input", "output", "cached", "batch", "as_of", "from", "until", "yours"]
        show_table(table.select(name for name in names if table[name].null_count() < table.height), digits=4)
        say("\nUS dollars per million tokens; pairscale prices PROVIDER:MODEL shows one, with its source")

    emit({"prices": rows}, table, show)


def _columns(row: PriceRow) -> Facts:
    more = {"from": row.start, "until": row.end, "note": row.note, "yours": row.is_own}
    return {"provider": row.provider, "model": row.model, **row.to_dict(), **more}


def _model(name: str) -> Facts:
    """The price of a model that holds now, and when another one begins."""
    from pairscale.providers.catalog import PriceRow, bundled, price_of, price_table, split_model

    provider, model = split_model(name)
    price = price_of(provider, model)
    if price is None:
        raise InputError(f"no price of {name} is known; give one with --price, or add it: pairscale prices add FILE")
    if not isinstance(price, PriceRow):
        return {"judge": name, **price.to_dict()}
    entry = {"judge": name, **_columns(price)}
    if not price.is_own:
        entry["table"] = bundled("prices").source
    for row in price_table(provider):
        if row.start is not None and row.covers(provider, model) and not row.is_in_force:
            entry["later"] = f"another price from {row.start} on"
    return entry
