"""Samples: the texts to be compared, from wherever they are."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from unicodedata import normalize

import polars as pl

from pairscale.core.class_list import find_class_list
from pairscale.core.columns import Column, ColumnChoice, choose_columns, column_at, named_column, with_paths
from pairscale.core.documents.kinds import DOCUMENT_SUFFIXES, LONGEST_TEXT
from pairscale.core.encodings import read_text
from pairscale.core.errors import FileFormatError, InputError, MissingExtraError, TableError
from pairscale.core.files import TABLE_SUFFIXES, read_table
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.reading import SamplesReport, count_files, unusual_texts
from pairscale.core.tables import Table, as_text, is_blank, listed, require_ids, row_numbers, to_frame
from pairscale.core.texts import MISSING_EXTRA, FileRead, read_folder, without_final_break

MAX_TEXT_BYTES = LONGEST_TEXT
"""The longest text of one sample; beyond it, something other than a sample was read."""


_TEXT_FILES = r"(?i)\.txt$"


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
    """Samples from a folder, a zip archive, a file, a table or a list of dicts.

    Args:
        source: A folder or zip archive of texts (txt, md, html, docx, odt, pdf; the name of a file is the id); a csv,
            tsv, jsonl, json, parquet or xlsx file; a pandas, Polars or Arrow table; a list of dicts.
        id_col: The column of ids, by name, by position from 0, or by its path in JSON, such as ``meta.id``. By default
            the one called ``ID`` (in any case), else the only one that it can be. Ids are text: ``007`` stays ``007``.
        text_col: The column of texts, likewise. By default the one called ``text``, else the only one with long texts.
        encoding: Encoding of text files that are neither UTF-8 nor marked.
        strict: Raise an error if any file was not read, instead of saying so.
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
    """Say what was not read, which columns were guessed, and what is unusual."""
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
        names = listed([one.name for one in report.skipped], 10)
        first = report.skipped[0]
        raise InputError(
            f"{report.source}: {count_files(report.skipped)}, and `strict=True` allows none: {names}; "
            f"{first.name}: {first.reason}"
        )


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
        return _reported(frame, _choice(frame, id_col, text_col, "samples"), "the table", "table", "samples")
    path = Path(source)
    if os.path.isdir(path) or path.suffix.lower() == ".zip":  # noqa: PTH112 (Path.is_dir raises when it is a text)
        return _of_files(path, encoding, skip_unreadable)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise FileFormatError(_no_samples(path))
    chosen: list[ColumnChoice] = []

    def choose(frame: pl.DataFrame) -> tuple[str, str]:
        chosen.append(_choice(frame, id_col, text_col, str(path)))
        return chosen[-1].ids, chosen[-1].texts

    frame = read_table(path, text=choose, encoding=encoding, paths=(id_col, text_col))
    choice = chosen[-1] if chosen else _choice(frame, id_col, text_col, str(path))
    return _reported(frame, choice, str(path), suffix.lstrip("."), str(path))


def _no_samples(path: Path) -> str:
    if not os.path.exists(path):  # noqa: PTH110 (somebody may give a text instead of its file)
        return f"{_brief(path)}: no such file or folder"
    if path.suffix.lower() in DOCUMENT_SUFFIXES:
        return f"{path} is one text; give the folder that holds all of them (a table ends in .csv, .tsv or .xlsx)"
    return f"{path}: give a folder or zip archive of texts, or a table in {listed(TABLE_SUFFIXES, 20)}"


def _choice(frame: pl.DataFrame, id_col: Column | None, text_col: Column | None, what: str) -> ColumnChoice:
    if frame.width == 0:
        raise TableError(f"{what}: no rows; give at least one sample")
    return choose_columns(frame, id_col, text_col, what)


def _reported(frame: pl.DataFrame, choice: ColumnChoice, source: str, kind: str, what: str) -> SamplesReport:
    samples = _checked(frame, choice, what)
    kept = tuple(samples.columns[2:])
    detail = FileRead(source, kind, int(samples["text"].str.len_chars().sum()))
    reasons = {name: f" ({why})" for name, why in choice.reasons.items()}
    return SamplesReport(
        samples,
        source,
        (detail,),
        f"column {choice.ids}{reasons.get('id_col', '')}",
        f"column {choice.texts}{reasons.get('text_col', '')}",
        kept,
        (*unusual_texts(samples), *_said_opaque(samples)),
    )


def _opaque(samples: pl.DataFrame) -> list[str]:
    return [name for name, kind in samples.schema.items() if kind in {pl.Binary, pl.Object}]


def _said_opaque(samples: pl.DataFrame) -> list[str]:
    names = _opaque(samples)
    return [f"{listed(names)} holds neither text nor numbers: judges get it, tables leave it out"] if names else []


def _of_files(path: Path, encoding: str | None, skip_unreadable: bool) -> SamplesReport:
    found = read_folder(path, encoding)
    more = find_class_list(path, found.ids, found.files)
    missing = [file for file in more.files if file.reason == MISSING_EXTRA]
    if missing and not (skip_unreadable and found.ids):
        kinds = Counter(file.kind for file in missing).most_common()
        counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds)
        otherwise = "; to continue without them, give `skip_unreadable=True`" if found.ids else ""
        raise MissingExtraError(
            f"{path}: reading {len(missing):,} of {len(more.files):,} files ({counts})", "documents", otherwise
        )
    if not found.ids:
        raise FileFormatError(_nothing_read(path, found.files))
    frame = to_frame({"ID": list(found.ids), "text": list(found.texts)}, str(path))
    if more.columns.width:
        frame = frame.hstack(more.columns)
    samples = _checked(frame, ColumnChoice("ID", "text", {}), str(path))
    notes = unusual_texts(samples)
    said: dict[str, list[str]] = {}
    for one in found.files:
        if one.note is not None:
            said.setdefault(one.note.partition(", for example")[0], []).append(one.name)
    notes += [
        f"{', '.join(names[:5])}{' and others' if len(names) > 5 else ''}: {note}" for note, names in said.items()
    ]
    return SamplesReport(
        samples, str(path), more.files, "file name", kept=tuple(more.columns.columns), notes=tuple(notes)
    )


def _nothing_read(path: Path, files: Sequence[FileRead]) -> str:
    reasons = dict.fromkeys(str(one.reason) for one in files)
    if not files:
        return f"{path} holds no file that could be a text: txt, md, html, docx, odt and pdf are read"
    shown = "; ".join(
        f"{', '.join([one.name for one in files if one.reason == reason][:5])}: {reason}"
        for reason in list(reasons)[:3]
    )
    return f"{path}: none of its {len(files):,} file{'s' * (len(files) != 1)} could be read: {shown}"


def read_samples_df(df: Table, id_col: Column | None = None, text_col: Column | None = None) -> pl.DataFrame:
    """Samples from a table, as R's function reads them: by default, ids in the first column and texts in the second.

    Example:
        >>> read_samples_df({"pupil": ["p1"], "essay": ["Once."], "grade": [8]}, "pupil", "essay").columns
        ['ID', 'text', 'grade']
    """
    say_positions(id_col, text_col)
    frame = to_frame(df, "samples")
    if frame.width == 0:
        raise TableError("samples: no rows; give at least one sample")
    columns = frame.columns
    ids = named_column(columns, id_col, "ID", "samples") or column_at(columns, 0, "id_col", "samples")
    texts = named_column(columns, text_col, "text", "samples") or column_at(columns, 1, "text_col", "samples")
    return _checked(frame, ColumnChoice(ids, texts, {}), "samples")


def say_positions(id_col: Column | None, text_col: Column | None) -> None:
    """Say that positions count from 0, where columns are given by position: in R they count from 1."""
    given = {"id_col": id_col, "text_col": text_col}
    if places := [f"{name}={value}" for name, value in given.items() if isinstance(value, int)]:
        notice(f"{', '.join(places)}: positions of columns count from 0 here, and from 1 in R")


@checked
def read_samples_dir(
    path: str | os.PathLike[str] = ".", pattern: str = _TEXT_FILES, *, encoding: str | None = None
) -> pl.DataFrame:
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
    try:
        files = sorted(
            file for file in folder.iterdir() if matches(file.name) and file.name[0] != "." and file.is_file()
        )
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    if not files:
        plain = pattern == _TEXT_FILES
        raise FileFormatError(
            f"{path}: {'there is no file that ends in .txt' if plain else f'no file matches {pattern!r}'}"
        )
    by_id: dict[str, Path] = {}
    for file in files:
        if (other := by_id.setdefault(file.stem, file)) is not file:
            raise FileFormatError(f"{other} and {file} would have the same id {file.stem!r}; rename one")
        if file.stat().st_size > MAX_TEXT_BYTES:
            raise FileFormatError(f"{file} has {file.stat().st_size:,} bytes; a sample has at most {MAX_TEXT_BYTES:,}")
    samples = {"ID": list(by_id), "text": [without_final_break(read_text(file, encoding)) for file in files]}
    return _checked(to_frame(samples, str(path)), ColumnChoice("ID", "text", {}), str(path))


def _checked(frame: pl.DataFrame, choice: ColumnChoice, what: str) -> pl.DataFrame:
    ids, texts = choice.ids, choice.texts
    if ids == texts:
        raise TableError(
            f"{what}: the ids and the texts cannot both be column {ids!r}; name them (`id_col=`, `text_col=`)"
        )
    others = [name for name in frame.columns if name not in {ids, texts}]
    if clash := [name for name in ("ID", "text") if name in others]:
        raise TableError(f"{what}: a further column is called {listed(clash)}; rename it or leave it out")
    if frame.height == 0:
        raise TableError(f"{what}: no rows; give at least one sample")
    checked = require_ids(frame, [ids], what).with_columns(as_text(frame[texts], what))
    _require_unique(checked[ids], what)
    _require_texts(checked[ids], checked[texts], what)
    return checked.select(pl.col(ids).alias("ID"), pl.col(texts).alias("text"), *others)


def _require_unique(ids: pl.Series, what: str) -> None:
    if not ids.str.contains(r"^[\x00-\x7f]*$").all():  # é has two spellings, and both look the same
        ids = pl.Series(ids.name, [normalize("NFC", name) for name in ids], pl.String)
    twice = ids.filter(ids.is_duplicated()).unique(maintain_order=True)
    if len(twice):
        more = f" ({len(twice):,} ids are not)" if len(twice) > 1 else ""
        raise TableError(
            f"{what}: the id {twice[0]!r} stands in {row_numbers(ids == twice[0])}; ids must be unique{more}"
        )


def _require_texts(ids: pl.Series, texts: pl.Series, what: str) -> None:
    blank = is_blank(texts)
    if blank.any():
        raise TableError(
            f"{what}: no text for {listed(ids.filter(blank).to_list())} in {row_numbers(blank)}; leave the sample out, "
            "or write what was handed in"
        )
    size = texts.str.len_bytes()
    if (long := size > MAX_TEXT_BYTES).any():
        raise TableError(
            f"{what}: the text of {ids.filter(long)[0]!r} in {row_numbers(long)} has {size.filter(long)[0]:,} bytes; a "
            f"sample has at most {MAX_TEXT_BYTES:,}"
        )


def _brief(path: Path) -> str:
    """A path for a message; somebody may have given a whole text."""
    name = str(path)
    return repr(name) if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]!r}…"


_LONGEST_NAME = 200


def with_kept(items: pl.DataFrame, samples: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """A table of items with the other columns of their samples behind it, and the names of these.

    A column whose name the table has already is called ``sample_NAME``; one that no file could hold is left out.

    Args:
        items: one row per item, with ``ID``.
        samples: the samples, with ``ID``, ``text`` and the other columns.
    """
    others = [name for name in samples.columns if name not in {"ID", "text", *_opaque(samples)}]
    named = {name: f"sample_{name}" if name in items.columns else name for name in others}
    named = {name: new for name, new in named.items() if new not in items.columns}
    if not named or "ID" not in items.columns:
        return items, []
    behind = samples.select("ID", *named).rename(named)
    return items.join(behind, on="ID", how="left", maintain_order="left"), list(named.values())
