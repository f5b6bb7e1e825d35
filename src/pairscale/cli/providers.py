"""``pairscale providers``, and what ``pairscale prices`` shares with it: adding a file, and showing one entry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pairscale.cli._common import Facts, Output, echo, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError
from pairscale.core.notices import plural


@from_verb("", "[NAME] [FILE]")
def command(emit: Output, name: str | None = None, file: str | None = None) -> None:
    """List the providers, show one, show what a model takes, or add providers and models from a file.

    Whether a key is set is shown, what it is never. Of a model, every rule is shown with its source and date. A file to
    add holds "as_of", "source", and lists "providers" and "models"; the guide on providers has examples.

    Args:
        name: A provider, a model as provider:model, or `add`.
        file: With `add`: the JSON file to add.

    Examples:
        pairscale providers
        pairscale providers deepseek
        pairscale providers anthropic:claude-opus-5-5
        pairscale providers add mine.json
    """
    import polars as pl

    from pairscale.providers.catalog import PROVIDERS

    if added("providers", name, file):
        return
    if name is not None:
        emit_one(emit, _model(name) if ":" in name else _provider(name))
        return
    rows = [_provider(each) for each in PROVIDERS]
    table = pl.DataFrame(rows, infer_schema_length=None)

    def show() -> None:
        show_table(table.select("provider", "address", "key", "key_is"))
        say("\npairscale providers NAME shows one; pairscale providers NAME:MODEL shows what a model takes")

    emit({"providers": rows}, table, show)


def _provider(name: str) -> Facts:
    """What there is to know of a provider."""
    from pairscale.providers.catalog import bundled, price_table, provider_named

    provider = provider_named(name)
    preset = getattr(provider, "preset", None)
    variable = provider.key_variable or getattr(provider, "optional_key_variable", None)
    state = "not set" if provider.key_variable else "not needed"
    if variable and os.environ.get(variable):
        state = "set"
    source = preset
    if not getattr(preset, "source", None) and type(provider).__module__.startswith("pairscale."):
        source = bundled("providers")
    return {
        "provider": name,
        "address": provider.base_url or getattr(preset, "base_url", "") or "--base-url",
        "key": variable,
        "key_is": state,
        "prices": len(price_table(name)),
        "note": getattr(preset, "note", None),
        "as_of": getattr(source, "as_of", None),
        "source": getattr(source, "source", None),
        "yours": getattr(preset, "is_own", False),
    }


def _model(name: str) -> Facts:
    """What a model takes, and which row says so."""
    from msgspec import to_builtins

    from pairscale.providers.catalog import Capabilities, family_row, split_model

    row = family_row(*split_model(name))
    able = {field: to_builtins(getattr(row, field)) for field in Capabilities.__struct_fields__}
    rule = {"rule": row.model or "every model", "as_of": row.as_of, "source": row.source, "yours": row.is_own}
    return {"judge": name, **able, **rule}


def added(command: str, name: str | None, file: str | None) -> bool:
    """Whether a file was to be added to the user's own, which is done."""
    from pathlib import Path

    from pairscale.providers.catalog import add_rows

    if name != "add" and file is None:
        return False
    if name != "add" or file is None:
        raise InputError(f"a file is added by `pairscale {command} add FILE`")
    target, n_added, n_replaced = add_rows(Path(file))
    say(f"added {plural(n_added, 'row')} to {target}, {n_replaced:,} of them in place of yours")
    return True


def as_text(entry: Facts) -> Facts:
    """An entry whose lists and mappings are text, as a table and a screen show them."""

    def text(value: Any) -> Any:
        if isinstance(value, Mapping):
            value = [f"{name} {part}" for name, part in value.items()]
        return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value

    return {key: text(value) for key, value in entry.items()}


def emit_one(emit: Output, entry: Facts) -> None:
    """One entry: what is known of it, a line each."""
    import polars as pl

    flat = as_text(entry)

    def show() -> None:
        for key, value in flat.items():
            if value is not None:
                echo(f"{key:<22}{value}")

    emit(entry, pl.DataFrame([flat]), show)
