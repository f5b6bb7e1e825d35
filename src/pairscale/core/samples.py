"""Samples: the texts to compare, from a folder, a file or a table, with a report of what was read."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from pairscale.core.columns import Column, ColumnChoice, choose_columns, column_at, named_column, with_paths
from pairscale.core.display import ReprMixin, printable
from pairscale.core.documents.kinds import LONGEST_TEXT
from pairscale.core.encodings import read_text
from pairscale.core.errors import FileFormatError, InputError, MissingExtraError, PairscaleError, TableError
from pairscale.core.files import TABLE_SUFFIXES, read_table
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath, checked
from pairscale.core.tables import Table, Values, as_text, id_text, is_blank, listed, require_ids, row_numbers, to_frame
from pairscale.core.texts import MISSING_EXTRA, FileRead, read_folder, without_final_break

MAX_TEXT_BYTES = LONGEST_TEXT
"""The longest text of one sample; anything longer is not a sample."""

_TEXT_FILES = r"(?i)\.txt$"
_LONGEST_NAME = 200  # characters of a path in a message
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
        columns: Values = {"file": pl.String, "kind": pl.String, "read": pl.Boolean}
        columns |= dict.fromkeys(("characters", "pages", "pages_without_text"), pl.Int64)
        rows = [
            (
                x.name,
                x.kind,
                x.reason is None,
                x.characters,
                x.pages,
                x.blank_pages if x.pages else None,
                x.reason,
                x.note,
            )
            for x in self.details
        ]
        return pl.DataFrame(rows, columns | {"reason": pl.String, "note": pl.String}, orient="row")

    @property
    def skipped(self) -> tuple[FileRead, ...]:
        """The files that were not read."""
        return tuple(file for file in self.details if file.reason is not None)

    def __str__(self) -> str:
        parts = [f"{plural(self.samples.height, 'text')}: {', '.join(self._kinds())}", *self._chosen()]
        if self.skipped:
            parts.append(_not_read(self.skipped))
        return "; ".join(parts)

    def opening(self) -> list[str]:
        """What was read: a line, and one per kind of file."""
        source = f"{plural(self.samples.height, 'text')} from {printable(self.source)}"
        return ["; ".join([source, *self._chosen()]), *(f"  {words}" for words in self._kinds())]

    def problems(self) -> list[str]:
        """What was not read, and what to look at."""
        lines = []
        if self.skipped:
            lines.append(f"{_not_read(self.skipped)}:")
            lines += [f"  {printable(line)}" for line in _by_reason(self.skipped)]
        return [*lines, *(f"note: {printable(note)}" for note in self.notes)]

    def record(self) -> Values:
        """What is kept beside a run: everything but the texts."""
        return {
            "source": self.source,
            "texts": self.samples.height,
            "id_from": self.id_from,
            "text_from": self.text_from,
            "kept": list(self.kept),
            "notes": list(self.notes),
            "files": self.files.to_dicts(),
        }

    def _chosen(self) -> list[str]:
        parts = [f"ID = {self.id_from}"]
        if self.text_from is not None:
            parts.append(f"text = {self.text_from}")
        if self.kept:
            parts.append(f"other columns kept: {printable(_first(self.kept, 10))}")
        return parts

    def _kinds(self) -> list[str]:
        return _kinds_of([file for file in self.details if file.reason is None])


def _first(names: Sequence[str], shown: int = _SHOWN) -> str:
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return f"{', '.join(names[:shown])}{more}"


def _kinds_of(files: Sequence[FileRead]) -> list[str]:
    return [f"{count:,} {kind}" for kind, count in Counter(file.kind for file in files).most_common()]


def _not_read(files: Sequence[FileRead]) -> str:
    return f"{plural(len(files), 'file was', 'files were')} not read: {', '.join(_kinds_of(files))}"


def _by_reason(files: Sequence[FileRead]) -> list[str]:
    """Why files were not read, a line for each reason with the names of its files."""
    names: dict[str, list[str]] = {}
    for file in files:
        names.setdefault(str(file.reason), []).append(file.name)
    return [f"{_first(names[reason])}: {reason}" for reason in names]


@checked
def read_samples(
    source: Table,
    *,
    id_col: Column | None = None,
    text_col: Column | None = None,
    encoding: str | None = None,
    strict: bool = False,
    skip_unreadable: bool = False,
) -> pl.DataFrame:
    """Samples from a folder, a file, a table or a list of dicts.

    Args:
        source: A folder of texts (txt, md, html, docx, odt, pdf; the name of a file is the id); a csv, tsv, jsonl,
            json, parquet or xlsx file; a pandas, Polars or Arrow table; a list of dicts.
        id_col: The column of ids, by name, by position from 0, or by its path in JSON, such as ``meta.id``. By default
            the one called ``ID`` (in any case), else the only one that it can be. Ids are text: ``007`` stays ``007``.
        text_col: The column of texts, likewise. By default the one called ``text``, else the only one with long texts.
        encoding: Encoding of text files that are neither UTF-8 nor marked.
        strict: Raise an error if any file was not read, instead of only reporting it.
        skip_unreadable: Continue without the files that need an optional package that is not installed.

    Returns:
        ``ID``, ``text``, and every other column as it was.

    Raises:
        InputError: that names the file, column or rows that cannot be used, or the columns that it may be.
        MissingExtraError: files of the folder need an optional package.

    Example:
        >>> read_samples([{"ID": "a", "text": "One."}, {"ID": "b", "text": "Two."}]).rows()
        [('a', 'One.'), ('b', 'Two.')]
    """
    report = inspect_samples(
        source, id_col=id_col, text_col=text_col, encoding=encoding, skip_unreadable=skip_unreadable
    )
    if strict:
        require_all_read(report)
    if report is not source:
        say_report(report)
    return report.samples


def say_report(report: SamplesReport) -> None:
    """Log what was not read, which columns were guessed, and what is unusual."""
    if "(" in report.id_from or "(" in str(report.text_from):
        notice(f"{report.source}: {report}")
    for line in report.problems():
        notice(line.removeprefix("note: ").strip())


def require_all_read(report: SamplesReport) -> None:
    """Refuse samples of which a file was not read.

    Raises:
        InputError: that names the files.
    """
    if report.skipped:
        reasons = "; ".join(_by_reason(report.skipped))
        raise InputError(f"{report.source}: {_not_read(report.skipped)}, and `strict=True` allows none: {reasons}")


@checked
def inspect_samples(
    source: Table,
    *,
    id_col: Column | None = None,
    text_col: Column | None = None,
    encoding: str | None = None,
    skip_unreadable: bool = False,
) -> SamplesReport:
    """What :func:`read_samples` reads, and what it makes of it: files, columns, and what is unusual.

    Args:
        source: As in :func:`read_samples`; every function that takes samples also takes what this one returns.
        id_col: The column of ids.
        text_col: The column of texts.
        encoding: Encoding of text files that are neither UTF-8 nor marked.
        skip_unreadable: Continue without the files that need an optional package that is not installed.

    Returns:
        A :class:`SamplesReport` with ``samples``, ``files``, ``skipped``, ``notes`` and, as text, one line for all.

    Raises:
        InputError: as :func:`read_samples`.

    Example:
        >>> rows = [{"ID": "p1", "essay": "Once upon a time. " * 9}, {"ID": "p2", "essay": "It rained. " * 9}]
        >>> print(inspect_samples(rows))
        2 texts: 1 table; ID = column ID; text = column essay (the only column with long texts)
    """
    if isinstance(source, SamplesReport):
        return source
    if not isinstance(source, str | os.PathLike):
        if isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in source):
            source = with_paths([dict(row) for row in source], (id_col, text_col), "samples")
        frame = to_frame(source, "samples")
        return _of_table(frame, _choice(frame, id_col, text_col, "samples"), "the table", "table", "samples")
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES and not os.path.exists(path):  # noqa: PTH110 (Path.exists raises when it is a text)
        raise FileFormatError(f"{str(path)[:_LONGEST_NAME]!r}: no such file or folder")
    if path.is_dir():
        return _of_files(path, encoding, skip_unreadable)
    if suffix not in TABLE_SUFFIXES:
        raise FileFormatError(
            f"{path} is one file; give the folder that holds all texts, or a table in {listed(TABLE_SUFFIXES, 20)}"
        )

    def text_columns(frame: pl.DataFrame) -> tuple[str, str]:
        choice = _choice(frame, id_col, text_col, str(path))
        return choice.ids, choice.texts

    frame = read_table(path, text=text_columns, encoding=encoding, paths=(id_col, text_col))
    return _of_table(frame, _choice(frame, id_col, text_col, str(path)), str(path), suffix.lstrip("."), str(path))


def _choice(frame: pl.DataFrame, id_col: Column | None, text_col: Column | None, what: str) -> ColumnChoice:
    if frame.width == 0:
        raise TableError(f"{what}: no rows; give at least one sample")
    return choose_columns(frame, id_col, text_col, what)


def _of_table(frame: pl.DataFrame, choice: ColumnChoice, source: str, kind: str, what: str) -> SamplesReport:
    samples = _checked(frame, choice.ids, choice.texts, what)
    file = FileRead(source, kind, int(samples["text"].str.len_chars().sum()))
    reasons = {name: f" ({why})" for name, why in choice.reasons.items()}
    ids = f"column {choice.ids}{reasons.get('id_col', '')}"
    texts = f"column {choice.texts}{reasons.get('text_col', '')}"
    return SamplesReport(samples, source, (file,), ids, texts, tuple(samples.columns[2:]), tuple(_unusual(samples)))


def _of_files(path: Path, encoding: str | None, skip_unreadable: bool) -> SamplesReport:
    texts, files = read_folder(path, encoding)
    frame = pl.DataFrame({"ID": list(texts), "text": list(texts.values())}, {"ID": pl.String, "text": pl.String})
    missing = [file for file in files if file.reason == MISSING_EXTRA]
    if missing and not (skip_unreadable and texts):
        otherwise = "; to continue without them, give `skip_unreadable=True`" if texts else ""
        need = f"{path}: reading {len(missing):,} of {len(files):,} files ({', '.join(_kinds_of(missing))})"
        raise MissingExtraError(need, "documents", otherwise)
    if not texts:
        reasons = "; ".join(_by_reason(files)[:3]) or "there is none"
        raise FileFormatError(f"{path}: no file could be read as a text (txt, md, html, docx, odt, pdf): {reasons}")
    frame, files = _with_class_list(path, frame, files)
    samples = _checked(frame, "ID", "text", str(path))
    noted: dict[str, list[str]] = {}
    for file in files:
        if file.note is not None:
            noted.setdefault(file.note.partition(", for example")[0], []).append(file.name)
    notes = [*_unusual(samples), *(f"{_first(names)}: {note}" for note, names in noted.items())]
    kept = tuple(samples.columns[2:])
    return SamplesReport(samples, str(path), tuple(files), "file name", kept=kept, notes=tuple(notes))


def _with_class_list(folder: Path, samples: pl.DataFrame, files: list[FileRead]) -> tuple[pl.DataFrame, list[FileRead]]:
    """The samples with the columns of a folder's only table, if one of its columns names each text once.

    Beside them, the files of the folder, with what the table was used for.
    """
    tables = [file for file in files if f".{file.kind}" in TABLE_SUFFIXES]
    if len(tables) != 1:
        return samples, files
    try:
        frame = read_table(folder / tables[0].name)
    except PairscaleError:
        return samples, files
    for column in frame.select(pl.col(pl.String, pl.Int64)):
        cells = id_text(column)
        for names in (cells, cells.str.replace(r"\.[^.]*$", "")):  # of files, without or with their endings
            if set(samples["ID"]) <= set(names) and not names.is_duplicated().any():
                kept = [name for name in frame.columns if name not in {column.name, "ID", "text"}]
                joined = samples.join(frame.select(names.alias("ID"), *kept), "ID", "left", maintain_order="left")
                used = replace(tables[0], reason=None, note=f"its columns are kept, by {column.name}")
                return joined, [used if file is tables[0] else file for file in files]
    return samples, files


def _unusual(samples: pl.DataFrame) -> list[str]:
    """A note on texts that are identical."""
    stripped = samples.select("ID", pl.col("text").str.strip_chars())
    same = stripped.group_by("text", maintain_order=True).agg("ID").filter(pl.col("ID").list.len() > 1)["ID"].to_list()
    groups = [" = ".join(map(repr, names[:_SHOWN])) for names in same]
    return [f"identical texts: {_first(groups)}"] if groups else []


def read_samples_df(df: Table, id_col: Column | None = None, text_col: Column | None = None) -> pl.DataFrame:
    """Samples from a table, as R's function reads them: by default, ids in the first column and texts in the second.

    Example:
        >>> read_samples_df({"pupil": ["p1"], "essay": ["Once."], "grade": [8]}, "pupil", "essay").columns
        ['ID', 'text', 'grade']
    """
    say_positions(id_col, text_col)
    frame = to_frame(df, "samples")
    columns = frame.columns
    ids = named_column(columns, id_col, "ID", "samples") or column_at(columns, 0, "id_col", "samples")
    texts = named_column(columns, text_col, "text", "samples") or column_at(columns, 1, "text_col", "samples")
    return _checked(frame, ids, texts, "samples")


def say_positions(id_col: Column | None, text_col: Column | None) -> None:
    """Log that positions count from 0, where columns are given by position: in R they count from 1."""
    if isinstance(id_col, int) or isinstance(text_col, int):
        notice(f"id_col={id_col}, text_col={text_col}: positions of columns count from 0 here, and from 1 in R")


@checked
def read_samples_dir(path: FilePath = ".", pattern: str = _TEXT_FILES, *, encoding: str | None = None) -> pl.DataFrame:
    """Samples from a folder of text files: the name without its ending is the id, and a final line break is left out.

    Args:
        path: the folder.
        pattern: a regular expression that the file names must match.
        encoding: of files that are neither UTF-8 nor marked.

    Raises:
        FileFormatError: when the folder is missing or no file matches.

    Example:
        >>> from pathlib import Path
        >>> Path("letters").mkdir()
        >>> _ = Path("letters/ann.txt").write_text("Dear Bob, it rains.", "utf-8")
        >>> read_samples_dir("letters").rows()
        [('ann', 'Dear Bob, it rains.')]
    """
    folder = Path(path)
    if not folder.is_dir():
        raise FileFormatError(f"{path}: no such folder")
    try:
        matches = re.compile(pattern).search
    except re.error as error:
        raise InputError(f"pattern {pattern!r} is not a regular expression: {error}") from None
    files = [file for file in sorted(folder.iterdir()) if matches(file.name) and file.name[0] != "." and file.is_file()]
    if not files:
        raise FileFormatError(f"{path}: no file matches {pattern!r}")
    texts = [without_final_break(read_text(file, encoding)) for file in files]
    return _checked(pl.DataFrame({"ID": [file.stem for file in files], "text": texts}), "ID", "text", str(path))


def _checked(frame: pl.DataFrame, ids: str, texts: str, what: str) -> pl.DataFrame:
    """``ID text`` and the other columns; ids are unique, and every text has words."""
    others = [name for name in frame.columns if name not in {ids, texts}]
    if {"ID", "text"} & set(others):
        raise TableError(f"{what}: a further column is called ID or text; rename it or leave it out")
    if frame.height == 0:
        raise TableError(f"{what}: no rows; give at least one sample")
    samples = require_ids(frame, [ids], what).with_columns(as_text(frame[texts], what))
    samples = samples.select(pl.col(ids).alias("ID"), pl.col(texts).alias("text"), *others)
    double = samples["ID"].is_duplicated()
    if double.any():
        twice = samples["ID"].filter(double).unique(maintain_order=True).to_list()
        raise TableError(f"{what}: {listed(twice)} is in more than one row; ids must be unique")
    blank = is_blank(samples["text"])
    if blank.any():
        names = listed(samples["ID"].filter(blank).to_list())
        raise TableError(f"{what}: no text for {names} in {row_numbers(blank)}; leave the sample out")
    long = samples["text"].str.len_bytes() > MAX_TEXT_BYTES
    if long.any():
        names = listed(samples["ID"].filter(long).to_list())
        raise TableError(f"{what}: the text of {names} has more than {MAX_TEXT_BYTES:,} bytes")
    return samples


def with_kept(items: pl.DataFrame, samples: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """A table of items with the other columns of their samples behind it, and the names of these.

    A column whose name the table has already is called ``sample_NAME``; one that no file could hold is left out.

    Args:
        items: one row per item, with ``ID``.
        samples: the samples, with ``ID``, ``text`` and the other columns.
    """
    opaque = {pl.Binary, pl.Object}
    others = [name for name, kind in samples.schema.items() if name not in {"ID", "text"} and kind not in opaque]
    named = {name: f"sample_{name}" if name in items.columns else name for name in others}
    named = {name: new for name, new in named.items() if new not in items.columns}
    if not named or "ID" not in items.columns:
        return items, []
    behind = samples.select("ID", *named).rename(named)
    return items.join(behind, on="ID", how="left", maintain_order="left"), list(named.values())
