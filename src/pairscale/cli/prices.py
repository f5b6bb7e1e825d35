"""``pairscale prices``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pairscale.cli import _options as opt
from pairscale.cli._common import emit, say, show_table
from pairscale.cli._data import DataFile, DataName, add_file, as_text, emit_one, is_add
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from pairscale.providers.catalog import PriceRow

EXAMPLES = (
    "pairscale prices",
    "pairscale prices anthropic",
    "pairscale prices openai:gpt-6-sol",
    "pairscale prices add mine.json",
)


def command(
    name: DataName = None,
    file: DataFile = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """List the prices of models, show one with its source and date, or add prices from a file.

    Prices are US dollars per million tokens. Yours come before the bundled ones. A file to add names its unit, its date
    and its source: {"unit": "USD per million tokens", "as_of": "2026-11-01", "source": "where from", "prices":
    [{"provider": "openai", "model": "^gpt-6-sol", "input": 2.0, "output": 10.0}]}; "model" is a regular expression.
    """
    if is_add("prices", name, file):
        from pairscale.providers.catalog import add_rows

        add_file("prices", file, add_rows)
        return
    if name is not None and ":" in name:
        _show_one(name, as_json=as_json, out=out)
        return
    import polars as pl

    from pairscale.providers.catalog import price_table

    found = price_table(name)
    if not found:
        raise InputError(
            f"no price of {name!r} is known; give PROVIDER or PROVIDER:MODEL; `pairscale prices` lists all, "
            "`pairscale prices add` adds some"
        )
    rows = [_columns(row) for row in found]
    table = pl.DataFrame([as_text(row) for row in rows], infer_schema_length=None)

    def show() -> None:
        shown = table.select(
            "provider", "model", "input", "output", "cached", "batch", "as_of", "from", "until", "yours"
        )
        unused = [name for name in ("from", "until") if shown[name].is_null().all()]
        show_table(shown.drop(*unused, *(() if shown["yours"].any() else ("yours",))), digits=4)
        say("\nUS dollars per million tokens; pairscale prices PROVIDER:MODEL shows one, with its source")

    emit({"prices": rows}, table, as_json=as_json, out=out, show=show)


def _columns(row: PriceRow) -> dict[str, Any]:
    more = {"from": row.start, "until": row.end, "note": row.note, "yours": row.is_own}
    return {"provider": row.provider, "model": row.model, **row.to_dict(), **more}


def _show_one(name: str, *, as_json: bool, out: Path | None) -> None:
    from pairscale.providers.catalog import bundled, price_of, price_table, split_model

    provider, model = split_model(name)
    rows = [row for row in price_table(provider) if row.covers(provider, model)]
    row = next((row for row in rows if row.is_in_force), None)
    found = {"judge": name} | (_free(price_of(provider, model)) if row is None else _columns(row))
    if len(found) == 1:
        raise InputError(f"no price of {name} is known; give one with --price, or add it: pairscale prices add FILE")
    if row is not None and not row.is_own:
        found["table"] = bundled("prices").source
    if row is not None and (later := [one.start for one in rows if one.start is not None and not one.is_in_force]):
        found["note"] = f"{found['note'] or ''}{'; ' * bool(found['note'])}another price from {later[0]} on"

    emit_one(found, as_json=as_json, out=out)


def _free(price: Any) -> dict[str, Any]:
    return {} if price is None else {"input": price.input, "output": price.output, "source": price.source}
