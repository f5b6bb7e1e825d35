"""Labels of blinded cases: the side that was chosen, and the variant that it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.core.errors import TableError
from pairscale.core.tables import id_text, listed
from pairscale.store.label_keys import known_key, read_key

_CHOICES = {"1": "1", "2": "2", "tie": "tie", "t": "tie", "1.0": "1", "2.0": "2"}


def preferred_variants(
    table: pl.DataFrame,
    key: str | os.PathLike[str] | None,
    path: str | os.PathLike[str] | None,
    encoding: str | None = None,
) -> tuple[str, pl.Series]:
    """``variant`` and the variant that each label prefers, or ``position`` and its side where no key is known.

    Args:
        table: labels with ``case_id`` and ``preferred``, and ``first_variant`` where they say it themselves.
        key: the key, where it was named.
        path: the file that the labels come from, beside which the key may lie.
        encoding: of a key that is not UTF-8.

    Raises:
        FileFormatError: If the key cannot be read.
        TableError: If a choice is none of 1, 2 and tie, or a case is not in the key.
    """
    written = table["preferred"].cast(pl.String).str.strip_chars().str.to_lowercase()
    sides = written.replace_strict(_CHOICES, default=None, return_dtype=pl.String())
    unknown = written.filter(sides.is_null() & written.is_not_null()).unique(maintain_order=True).to_list()
    if unknown:
        raise TableError(f"labels: preferred is {listed(unknown)}; it must be 1, 2 or tie")
    keys: dict[str, dict[str, Any]] | None = None
    if key is not None:
        keys = read_key(key, encoding)
    elif "first_variant" in table.columns:
        keys = known_key(Path(path or "labels"), table.select("case_id", "first_variant").to_dicts())
    elif path is not None:
        keys = known_key(Path(path), [])
    if keys is None:
        return "position", sides
    cases = id_text(table["case_id"], "labels")
    firsts = {name: str(row["first_variant"]) for name, row in keys.items()}
    first = cases.replace_strict(firsts, default=None, return_dtype=pl.String())
    missing = cases.filter(first.is_null() & sides.is_not_null()).unique(maintain_order=True).to_list()
    if missing:
        raise TableError(f"labels: the key does not have {listed(missing)}; name the right key with `key=`")
    is_a = (pl.col("side") == "1") == (pl.col("first") == "a")
    preferred = pl.when(pl.col("side") == "tie").then(pl.lit("tie")).when(is_a).then(pl.lit("a")).otherwise(pl.lit("b"))
    labels = pl.DataFrame({"side": sides, "first": first})
    return "variant", labels.select(pl.when(pl.col("side").is_not_null()).then(preferred)).to_series()
