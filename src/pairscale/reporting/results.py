"""Results in a table, of whichever form, and the texts that they are about."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.samples import read_samples
from pairscale.core.tables import Table, listed
from pairscale.store.reading import read_comparisons

if TYPE_CHECKING:
    from pairscale.store.reading import Comparisons


@dataclass(frozen=True, slots=True, eq=False)
class ResultsReading:
    """How results are read that are in no run file; see :func:`report`."""

    samples: Table | str | os.PathLike[str] | None = None
    a_col: str | None = None
    b_col: str | None = None
    winner_col: str | None = None
    encoding: str | None = None
    key: str | os.PathLike[str] | None = None

    @property
    def given(self) -> dict[str, object]:
        """What was named, by the names of the options."""
        options = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in options.items() if value is not None}

    def comparisons(
        self, results: Table | str | os.PathLike[str], condition: str | None, *, every_judge: bool = False
    ) -> Comparisons:
        """The comparisons, with their texts where they were given."""
        found = read_comparisons(
            results, condition, a_col=self.a_col, b_col=self.b_col, winner_col=self.winner_col, encoding=self.encoding,
            key=self.key, every_judge=every_judge,
        )  # fmt: skip
        if self.samples is None:
            return found
        texts = read_samples(self.samples, encoding=self.encoding)
        judged = {*found.table["ID1"], *found.table["ID2"]}
        if not judged & set(texts["ID"]):
            raise InputError(f"samples: none of the {len(judged):,} texts that were compared is in it, by its ID")
        if missing := sorted(judged - set(texts["ID"])):
            notice(f"samples: no text of {listed(missing)}")
        return replace(found, samples=texts.filter(pl.col("ID").is_in(judged)))

    def require_none(self, what: str) -> None:
        """Refuse what belongs to results in a table.

        Raises:
            InputError: If anything was given.
        """
        if self.given:
            raise InputError(f"{next(iter(self.given))} belongs to results in a table; {what}")
