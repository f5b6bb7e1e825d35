"""Results in a table, of whichever form, and the texts that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.samples import read_samples
from pairscale.core.tables import listed
from pairscale.store.reading import read_comparisons

if TYPE_CHECKING:
    from pairscale.store.reading import Comparisons


def comparisons_of(results: Any, condition: str | None, *, samples: Any = None, **reading: Any) -> Comparisons:
    """Comparisons that are in no run file, with their texts where they were given.

    Args:
        results: the results.
        condition: the judge.
        samples: the texts.
        reading: how results are read; see :func:`pairscale.store.reading.read_comparisons`.
    """
    found = read_comparisons(results, condition, **reading)
    if samples is None:
        return found
    texts = read_samples(samples, encoding=reading.get("encoding"))
    judged = {*found.table["ID1"], *found.table["ID2"]}
    if not judged & set(texts["ID"]):
        raise InputError(f"samples: none of the {len(judged):,} texts that were compared is in it, by its ID")
    missing = sorted(judged - set(texts["ID"]))
    if missing:
        notice(f"samples: no text of {listed(missing)}")
    return replace(found, samples=texts.filter(pl.col("ID").is_in(judged)))


def named(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def require_none(options: Mapping[str, object], why: str) -> None:
    """Refuse options that do not belong to what was asked.

    Raises:
        InputError: If anything was given.
    """
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"`{given[0]}=` does not belong here: {why}; leave it out")
