"""``pairscale providers``."""

from __future__ import annotations

from typing import Any

from pairscale.cli import _options as opt
from pairscale.cli._common import emit, say, show_table
from pairscale.cli._data import DataFile, DataName, add_file, emit_one, is_add

EXAMPLES = (
    "pairscale providers",
    "pairscale providers deepseek",
    "pairscale providers anthropic:claude-opus-5-5",
    "pairscale providers add mine.json",
)


def command(
    name: DataName = None,
    file: DataFile = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """List the providers, show one, show what a model takes, or add providers and models from a file.

    Whether a key is set is shown, what it is never. Of a model, every rule is shown with its source and date. A file to
    add holds "as_of", "source", and lists "providers" and "models"; the guide on providers has examples.
    """
    if is_add("providers", name, file):
        from pairscale.providers.catalog import add_rows

        add_file("providers", file, add_rows)
        return
    if name is not None:
        emit_one(_model(name) if ":" in name else _provider(name), as_json=as_json, out=out)
        return
    import polars as pl

    from pairscale.providers.catalog import PROVIDERS

    rows = [_provider(one) for one in PROVIDERS]
    table = pl.DataFrame(rows, infer_schema_length=None)

    def show() -> None:
        show_table(table.select("provider", "address", "key", "key_is"))
        say("\npairscale providers NAME shows one; pairscale providers NAME:MODEL shows what a model takes")

    emit({"providers": rows}, table, as_json=as_json, out=out, show=show)


def _provider(name: str) -> dict[str, Any]:
    """What there is to know of a provider."""
    import os

    from pairscale.providers.catalog import bundled, price_table, provider_named

    found = provider_named(name)
    preset = getattr(found, "preset", None)
    variable = found.key_variable or getattr(found, "optional_key_variable", None)
    is_set = bool(variable and os.environ.get(variable))
    row = {
        "provider": name,
        "address": found.base_url or getattr(preset, "base_url", "") or "--base-url",
        "address_variable": found.base_url_variable,
        "key": variable,
        "key_is": "set" if is_set else "not needed" if found.key_variable is None else "not set",
        "prices": len(price_table(name)),
    }
    is_ours = type(found).__module__.startswith("pairscale.")
    about = preset if getattr(preset, "source", None) else bundled("providers") if is_ours else None
    row |= {"note": getattr(preset, "note", None)}
    row |= {key: getattr(about, key, None) for key in ("as_of", "source")}
    return row | {"yours": getattr(preset, "is_own", False)}


def _model(name: str) -> dict[str, Any]:
    """What a model takes, and which row says so."""
    from msgspec import to_builtins

    from pairscale.providers.catalog import Capabilities, family_row, split_model

    provider, model = split_model(name)
    row = family_row(provider, model)
    rule = {"rule": row.model or "every model", "as_of": row.as_of, "source": row.source, "yours": row.is_own}
    able = {field: to_builtins(getattr(row, field)) for field in Capabilities.__struct_fields__}
    return {"judge": name, **able, **rule}
