"""What was read, in words: the first lines of every command, and a table for Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pairscale.core.display import ReprMixin, printable
from pairscale.core.notices import plural
from pairscale.core.tables import listed
from pairscale.core.texts import FileRead

__all__ = ["SamplesReport", "count_files", "kinds_of", "skipped_by_reason", "unusual_texts"]

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
            {
                "file": file.name,
                "kind": file.kind,
                "read": file.reason is None,
                "characters": file.characters,
                "pages": file.pages,
                "pages_without_text": None if file.pages is None else file.blank_pages,
                "reason": file.reason,
                "note": file.note,
            }
            for file in self.details
        ]
        text = pl.String()
        number = pl.Int64()
        schema = {"file": text, "kind": text, "read": pl.Boolean(), "characters": number, "pages": number}
        schema |= {"pages_without_text": number, "reason": text, "note": text}
        return pl.DataFrame(rows, schema)

    @property
    def skipped(self) -> tuple[FileRead, ...]:
        """The files that were not read."""
        return tuple(file for file in self.details if file.reason is not None)

    def __str__(self) -> str:
        parts = [f"{plural(self.samples.height, 'text')}: {', '.join(self._kinds())}", *self._chosen()]
        if self.skipped:
            parts.append(count_files(self.skipped))
        return "; ".join(parts)

    def opening(self) -> list[str]:
        """What was read: a line, and one per kind of file."""
        source = f"{plural(self.samples.height, 'text')} from {printable(self.source)}"
        lists = [file for file in self.details if file.reason is None and file.characters is None]
        return [
            "; ".join([source, *self._chosen()]),
            *(f"  {words}" for words in self._kinds()),
            *(f"  {printable(file.name)}: {printable(str(file.note))}" for file in lists),
        ]

    def problems(self) -> list[str]:
        """What was not read, and what to look at."""
        lines = []
        if self.skipped:
            lines.append(f"{count_files(self.skipped)}:")
            lines += [f"  {printable(line)}" for line in skipped_by_reason(self.skipped)]
        return [*lines, *(f"note: {printable(note)}" for note in self.notes)]

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

    def _chosen(self) -> list[str]:
        parts = [f"ID = {self.id_from}"]
        if self.text_from is not None:
            parts.append(f"text = {self.text_from}")
        if self.kept:
            parts.append(f"other columns kept: {printable(_first(self.kept, 10))}")
        return parts

    def _kinds(self) -> list[str]:
        read = [file for file in self.details if file.reason is None and file.characters is not None]
        lines = []
        for kind, count in Counter(file.kind for file in read).most_common():
            words = f"{count:,} {kind}"
            blank = [file for file in read if file.kind == kind and file.blank_pages]
            if blank:
                pages = plural(sum(file.blank_pages for file in blank), "page")
                names = printable(_first([file.name for file in blank]))
                words += f" ({pages} skipped: no text layer; in {names})"
            lines.append(words)
        return lines


def _first(names: Sequence[str], shown: int = _SHOWN) -> str:
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return f"{', '.join(names[:shown])}{more}"


def kinds_of(files: Sequence[FileRead]) -> str:
    """How many files there are of each kind."""
    return ", ".join(f"{count:,} {kind}" for kind, count in Counter(file.kind for file in files).most_common())


def count_files(files: Sequence[FileRead]) -> str:
    """How many files were not read, by kind."""
    verb = "was" if len(files) == 1 else "were"
    return f"{plural(len(files), 'file')} {verb} not read: {kinds_of(files)}"


def skipped_by_reason(files: Sequence[FileRead]) -> list[str]:
    """Why files were not read, a line for each reason with the names of its files."""
    names: dict[str, list[str]] = {}
    for file in files:
        names.setdefault(str(file.reason), []).append(file.name)
    return [f"{_first(names[reason])}: {reason}" for reason in names]


def unusual_texts(samples: pl.DataFrame) -> list[str]:
    """Texts that are the same, and texts that are ten times as long as the median, in words."""
    notes = []
    stripped = samples.select("ID", pl.col("text").str.strip_chars())
    same = stripped.group_by("text", maintain_order=True).agg("ID").filter(pl.col("ID").list.len() > 1)["ID"].to_list()
    if same:
        shown = "; ".join(" = ".join(map(repr, names[:_SHOWN])) for names in same[:_SHOWN])
        more = f"; and {len(same) - _SHOWN:,} more" if len(same) > _SHOWN else ""
        notes.append(f"identical texts: {shown}{more}")
    length = samples["text"].str.len_chars()
    median = length.median()
    if samples.height >= _FEWEST and isinstance(median, float):
        long = samples.filter(length >= _TIMES_AS_LONG * median)["ID"].to_list()
        if long:
            verb = "is" if len(long) == 1 else "are"
            size = f"the median text ({median:,.0f} characters) or longer"
            notes.append(f"{listed(long)} {verb} ten times as long as {size}")
    return notes
