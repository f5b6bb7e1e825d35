"""What ``pairscale prices`` and ``pairscale providers`` share: arguments, adding a file, and showing one entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pairscale.cli._common import emit, say
from pairscale.core.errors import InputError

DataName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="A provider, a model as provider:model, or `add`.")
]
DataFile = Annotated[Path | None, typer.Argument(metavar="FILE", help="With `add`: the JSON file to add.")]


def is_add(command: str, name: str | None, file: Path | None) -> bool:
    """Whether a file is to be added.

    Raises:
        InputError: there is a file, and it is not to be added.
    """
    if name != "add" and file is not None:
        raise InputError(f"{file}: only `pairscale {command} add FILE` takes a file")
    return name == "add"


def add_file(command: str, file: Path | None, add: Callable[[Path], tuple[Path, int, int]]) -> None:
    """Add a file to the user's own, and say what came of it."""
    if file is None:
        raise InputError(f"name the file: pairscale {command} add FILE")
    target, added, replaced = add(file)
    said = f", {replaced:,} of them in place of yours" if replaced else ""
    say(f"added {added:,} row{'s' * (added != 1)} to {target}{said}")


def as_text(found: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with its lists and mappings in words, as a table and a screen show them."""
    said = dict(found)
    for key, value in found.items():
        if isinstance(value, Mapping):
            said[key] = ", ".join(f"{name} {one}" for name, one in value.items()) or "none"
        elif isinstance(value, list | tuple):
            said[key] = ", ".join(map(str, value))
    return said


def emit_one(found: Mapping[str, Any], *, as_json: bool, out: Path | None) -> None:
    """One entry: what is known of it, a line each."""
    import polars as pl

    flat = as_text(found)

    def show() -> None:
        width = max(map(len, flat))
        for key, value in flat.items():
            if value is not None:
                typer.echo(f"{key:<{width}}  {value}")

    emit(found, pl.DataFrame([flat]), as_json=as_json, out=out, show=show)
