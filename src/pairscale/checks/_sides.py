"""Labels of blinded cases: the side that was chosen, and the variant that it was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl

from pairscale.core.errors import InputError, TableError
from pairscale.core.options import require_choice
from pairscale.core.tables import id_text, listed
from pairscale.store.label_keys import key_path, known_key, read_key

By: TypeAlias = Literal["variant", "position"]
"""What is compared: the variant that a rater preferred, or the side that it was shown on."""

_CHOICES = {"1": "1", "2": "2", "tie": "tie", "t": "tie", "1.0": "1", "2.0": "2"}
_NOTABLE = 0.1


def firsts_of(
    table: pl.DataFrame,
    path: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    encoding: str | None = None,
) -> dict[str, str] | None:
    """By case, the variant that stands first; None where no key is known.

    Args:
        table: labels with ``case_id``, and ``first_variant`` where they say it themselves.
        path: the file that they come from, beside which the key may lie.
        key: the key, where it was named.
        encoding: of a key that is not UTF-8.

    Raises:
        FileFormatError: If the key cannot be read.
    """
    if key is not None:
        found: Mapping[str, Mapping[str, object]] | None = read_key(key, encoding)
    else:
        own = [name for name in ("case_id", "first_variant") if name in table.columns]
        rows = table.select(own).to_dicts() if len(own) == 2 else []
        found = known_key(Path("labels" if path is None else path), rows) if path is not None or rows else None
    return None if found is None else {name: str(row["first_variant"]) for name, row in found.items()}


def ways_of(
    table: pl.DataFrame, firsts: Mapping[str, str] | None, by: str | None, path: str | os.PathLike[str] | None
) -> tuple[By, dict[By, pl.Series]]:
    """What to compare, and the labels of cases in each way that is known.

    Args:
        table: labels with ``case_id`` and ``preferred``.
        firsts: by case, the variant that stands first; None where no key is known.
        by: what was asked for; None for the variant where the key is known.
        path: the file that the labels come from, for messages.

    Raises:
        InputError: If labels by variant are asked for and there is no key.
        TableError: If a choice is none of 1, 2 and tie, or a case is not in the key.
    """
    given = table["preferred"].cast(pl.String).str.strip_chars().str.to_lowercase()
    sides = given.replace_strict(_CHOICES, default=None, return_dtype=pl.String())
    unknown = given.filter(sides.is_null() & given.is_not_null()).unique(maintain_order=True).to_list()
    if unknown:
        raise TableError(f"labels: preferred is {listed(unknown)}; it must be 1, 2 or tie")
    chosen: By = "position" if firsts is None else "variant"
    if by is not None:
        chosen = require_choice(by, "by", ("variant", "position"))
    if firsts is None:
        if chosen == "variant":
            beside = "" if path is None else f", and there is no {key_path(path).name} beside them"
            raise InputError(f"labels: nothing says which variant stands first{beside}; name the key with `key=`")
        return chosen, {"position": sides}
    cases = id_text(table["case_id"], "labels")
    first = cases.replace_strict(dict(firsts), default=None, return_dtype=pl.String())
    missing = cases.filter(first.is_null() & sides.is_not_null()).unique(maintain_order=True).to_list()
    if missing and chosen == "variant":
        raise TableError(f"labels: the key does not have {listed(missing)}; name the right key with `key=`")
    variants = pl.DataFrame({"side": sides, "first": first}).select(
        pl.when(pl.col("side") == "tie")
        .then(pl.lit("tie"))
        .when(pl.col("side").is_not_null())
        .then(pl.when((pl.col("side") == "1") == (pl.col("first") == "a")).then(pl.lit("a")).otherwise(pl.lit("b")))
    )
    ways: dict[By, pl.Series] = {"position": sides}
    return chosen, ways if missing else {"variant": variants.to_series(), **ways}


def differing_kappas(kappas: Mapping[str, float | None]) -> list[str]:
    """Why kappa by variant and kappa by position differ, where they do so notably.

    Example:
        >>> differing_kappas({"variant": 0.31, "position": 0.33})
        []
    """
    variant, position = kappas.get("variant"), kappas.get("position")
    if variant is None or position is None or abs(variant - position) < _NOTABLE:
        return []
    both = f"kappa is {variant:.2f} by variant and {position:.2f} by position (which side was chosen)"
    if variant < position:
        why = (
            "most choices are for the same variant, whose side changes from case to case. By variant, chance explains "
            "that they meet; by position it does not. Go by variant"
        )
    else:
        why = "most choices are for the same side. By position, chance explains that they meet; by variant it does not"
    return [f"{both}: {why}"]
