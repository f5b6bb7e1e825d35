"""``pairscale prices``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pairscale.cli._common import Output, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.cli.providers import added, as_text, emit_one
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from pairscale.providers.catalog import PriceRow


@from_verb(
    "",
    "[NAME] [FILE]",
    "pairscale prices",
    "pairscale prices anthropic",
    "pairscale prices openai:gpt-6-sol",
    "pairscale prices add mine.json",
)
def command(emit: Output, name: str | None = None, file: str | None = None) -> None:
    """List the prices of models, show one with its source and date, or add prices from a file.

    Prices are US dollars per million tokens. Yours come before the bundled ones. A file to add names its unit, its date
    and its source: {"unit": "USD per million tokens", "as_of": "2026-11-01", "source": "where from", "prices":
    [{"provider": "openai", "model": "^gpt-6-sol", "input": 2.0, "output": 10.0}]}; "model" is a regular expression.

    Args:
        name: A provider, a model as provider:model, or `add`.
        file: With `add`: the JSON file to add.
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


def _columns(row: PriceRow) -> dict[str, Any]:
    more = {"from": row.start, "until": row.end, "note": row.note, "yours": row.is_own}
    return {"provider": row.provider, "model": row.model, **row.to_dict(), **more}


def _model(name: str) -> dict[str, Any]:
    """The price of a model that holds now, and when another one begins."""
    from pairscale.providers.catalog import bundled, price_of, price_table, split_model

    provider, model = split_model(name)
    rows = [row for row in price_table(provider) if row.covers(provider, model)]
    for row in rows:
        if row.is_in_force:
            later = [other.start for other in rows if other.start is not None and not other.is_in_force]
            found = {"judge": name, **_columns(row)}
            if not row.is_own:
                found["table"] = bundled("prices").source
            if later:
                found["note"] = "; ".join([*filter(None, [row.note]), f"another price from {later[0]} on"])
            return found
    price = price_of(provider, model)
    if price is None:
        raise InputError(f"no price of {name} is known; give one with --price, or add it: pairscale prices add FILE")
    return {"judge": name, "input": price.input, "output": price.output, "source": price.source}
