"""What was read, in words: the first lines of every command, and a table for Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pairscale.core.display import ReprMixin, printable
from pairscale.core.tables import listed
from pairscale.core.texts import FileRead

__all__ = ["SamplesReport", "count_files", "unusual_texts"]

_TIMES_AS_LONG = 10
_FEWEST = 3  # texts: of two, neither is unusual
_SHOWN = 5


@dataclass(frozen=True, slots=True, repr=False)
class SamplesReport(ReprMixin, table="files", columns=None):
    """What was read: the samples, and how they came to be.

    Attributes:
        samples: the samples, ``ID text`` and the other columns.
        source: where they come from.
        details: one entry per file, also of those that were not read, and of a class list among the texts.
        id_from: what the ids are, such as ``file name`` or ``column student_id``.
        text_from: what the texts are, such as ``column essay``; None for files of their own.
        kept: the other columns, which travel with the texts.
        notes: what to look at: texts that are identical or unusually long, a guessed encoding, what was left out.
    """

    samples: pl.DataFrame
    source: str
    details: tuple[FileRead, ...]
    id_from: str
    text_from: str | None = None
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> pl.DataFrame:
        """One row per file: ``file kind read characters pages pages_without_text reason note``."""
        rows = [
            (one.name, one.kind, one.reason is None, one.characters, one.pages,
             one.blank_pages if one.pages is not None else None, one.reason, one.note)
            for one in self.details
        ]  # fmt: skip
        schema = {
            "file": pl.String(), "kind": pl.String(), "read": pl.Boolean(), "characters": pl.Int64(),
            "pages": pl.Int64(), "pages_without_text": pl.Int64(), "reason": pl.String(), "note": pl.String(),
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def skipped(self) -> tuple[FileRead, ...]:
        """The files that were not read."""
        return tuple(one for one in self.details if one.reason is not None)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count:,} {words}" for count, words in self._kinds())
        parts = [f"{self._count()}: {kinds}", *self._chosen()]
        if self.skipped:
            parts.append(count_files(self.skipped))
        return "; ".join(parts)

    def lines(self) -> list[str]:
        """What a person should know before anything is asked, a line each."""
        return [*self.opening(), *self.problems()]

    def opening(self) -> list[str]:
        """What was read: a line, and one per kind of file."""
        where = f"{self._count()} from {printable(self.source)}"
        lists = [one for one in self.details if one.reason is None and one.characters is None]
        return [
            "; ".join([where, *self._chosen()]),
            *(f"  {count:,} {words}" for count, words in self._kinds()),
            *(f"  {printable(one.name)}: {printable(str(one.note))}" for one in lists),
        ]

    def problems(self) -> list[str]:
        """What was not read, and what to look at."""
        found = []
        if self.skipped:
            found.append(f"{count_files(self.skipped)}:")
            reasons = dict.fromkeys(str(file.reason) for file in self.skipped)
            for reason in reasons:
                names = [file.name for file in self.skipped if file.reason == reason]
                more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
                found.append("  " + printable(f"{', '.join(names[:_SHOWN])}{more}: {reason}"))
        return [*found, *(f"note: {printable(note)}" for note in self.notes)]

    def record(self) -> dict[str, Any]:
        """What is kept beside a run: everything but the texts."""
        return {
            "source": self.source,
            "texts": self.samples.height,
            "id_from": self.id_from,
            "text_from": self.text_from,
            "kept": list(self.kept),
            "notes": list(self.notes),
            "files": self.files.drop_nulls("file").to_dicts(),
        }

    def _count(self) -> str:
        return f"{self.samples.height:,} text{'s' * (self.samples.height != 1)}"

    def _chosen(self) -> list[str]:
        parts = [f"ID = {self.id_from}"]
        if self.text_from is not None:
            parts.append(f"text = {self.text_from}")
        if self.kept:
            shown = ", ".join(self.kept[:10]) + (f" and {len(self.kept) - 10:,} more" if len(self.kept) > 10 else "")
            parts.append(f"other columns kept: {printable(shown)}")
        return parts

    def _kinds(self) -> list[tuple[int, str]]:
        read = [one for one in self.details if one.reason is None and one.characters is not None]
        found = []
        for kind, count in Counter(one.kind for one in read).most_common():
            words = kind
            blank = {one.name: one.blank_pages for one in read if one.kind == kind and one.blank_pages}
            if blank:
                pages = sum(blank.values())
                shown = ", ".join(list(blank)[:_SHOWN]) + (" …" if len(blank) > _SHOWN else "")
                words += f" ({pages:,} page{'s' * (pages != 1)} skipped: no text layer; in {printable(shown)})"
            found.append((count, words))
        return found


def count_files(files: Sequence[FileRead]) -> str:
    """How many files were not read, by kind, in words."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in Counter(one.kind for one in files).most_common())
    return f"{len(files):,} file{'s were' if len(files) != 1 else ' was'} not read: {kinds}"


def unusual_texts(samples: pl.DataFrame) -> list[str]:
    """Texts that are the same, and texts that are ten times as long as the median, in words."""
    return [*_identical(samples), *_long(samples)]


def _identical(samples: pl.DataFrame) -> list[str]:
    same: Mapping[Any, list[str]] = {}
    doubled = samples.filter(pl.col("text").str.strip_chars().is_duplicated())
    if doubled.height:
        groups = doubled.group_by(pl.col("text").str.strip_chars(), maintain_order=True).agg(pl.col("ID"))
        same = dict(enumerate(groups["ID"].to_list()))
    shown = "; ".join(" = ".join(map(repr, names[:_SHOWN])) for names in list(same.values())[:_SHOWN])
    more = f"; and {len(same) - _SHOWN:,} more" if len(same) > _SHOWN else ""
    return [f"identical texts: {shown}{more}"] if same else []


def _long(samples: pl.DataFrame) -> list[str]:
    if samples.height < _FEWEST:
        return []
    length = samples["text"].str.len_chars()
    middle = length.median()
    if not isinstance(middle, float) or middle <= 0:
        return []
    long = samples.filter(length >= _TIMES_AS_LONG * middle)["ID"].to_list()
    if not long:
        return []
    are = "is ten times as long" if len(long) == 1 else "are ten times as long"
    return [f"{listed(long)} {are} as the median text ({middle:,.0f} characters) or longer"]
