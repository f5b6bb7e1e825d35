"""Samples: the texts to be compared, from wherever they are."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import polars as pl

from pairscale.core.columns import Column, ColumnChoice, choose_columns, column_at, is_long, named_column, with_paths
from pairscale.core.documents.kinds import DOCUMENT_SUFFIXES, LONGEST_TEXT
from pairscale.core.encodings import read_text
from pairscale.core.errors import FileFormatError, InputError, MissingExtraError, TableError
from pairscale.core.files import TABLE_SUFFIXES, read_table
from pairscale.core.notices import notice, plural
from pairscale.core.options import checked
from pairscale.core.reading import SamplesReport, count_files, kinds_of, skipped_by_reason, unusual_texts
from pairscale.core.tables import Table, as_text, id_text, is_blank, listed, require_ids, row_numbers, to_frame
from pairscale.core.texts import MISSING_EXTRA, FileRead, Texts, read_folder, without_final_break

MAX_TEXT_BYTES = LONGEST_TEXT
"""The longest text of one sample; beyond it, something other than a sample was read."""


_TEXT_FILES = r"(?i)\.txt$"
_LONGEST_NAME = 200  # characters of a path in a message


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
        names = listed([file.name for file in report.skipped], 10)
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
        name = str(path)  # somebody may have given a whole text
        return f"{name[:_LONGEST_NAME]!r}{'…' if len(name) > _LONGEST_NAME else ''}: no such file or folder"
    if path.suffix.lower() in DOCUMENT_SUFFIXES:
        return f"{path} is one text; give the folder that holds all of them (a table ends in .csv, .tsv or .xlsx)"
    return f"{path}: give a folder or zip archive of texts, or a table in {listed(TABLE_SUFFIXES, 20)}"


def _choice(frame: pl.DataFrame, id_col: Column | None, text_col: Column | None, what: str) -> ColumnChoice:
    if frame.width == 0:
        raise TableError(f"{what}: no rows; give at least one sample")
    return choose_columns(frame, id_col, text_col, what)


def _reported(frame: pl.DataFrame, choice: ColumnChoice, source: str, kind: str, what: str) -> SamplesReport:
    samples = _checked(frame, choice, what)
    detail = FileRead(source, kind, int(samples["text"].str.len_chars().sum()))
    reasons = {name: f" ({why})" for name, why in choice.reasons.items()}
    ids = f"column {choice.ids}{reasons.get('id_col', '')}"
    texts = f"column {choice.texts}{reasons.get('text_col', '')}"
    notes = unusual_texts(samples)
    opaque = _opaque(samples)
    if opaque:
        notes.append(f"{listed(opaque)} holds neither text nor numbers: judges get it, tables leave it out")
    return SamplesReport(samples, source, (detail,), ids, texts, tuple(samples.columns[2:]), tuple(notes))


def _opaque(samples: pl.DataFrame) -> list[str]:
    return [name for name, kind in samples.schema.items() if kind in {pl.Binary, pl.Object}]


def _of_files(path: Path, encoding: str | None, skip_unreadable: bool) -> SamplesReport:
    texts = read_folder(path, encoding)
    columns, files = _class_list(path, texts)
    missing = [file for file in files if file.reason == MISSING_EXTRA]
    if missing and not (skip_unreadable and texts.ids):
        otherwise = "; to continue without them, give `skip_unreadable=True`" if texts.ids else ""
        need = f"{path}: reading {len(missing):,} of {len(files):,} files ({kinds_of(missing)})"
        raise MissingExtraError(need, "documents", otherwise)
    if not files:
        raise FileFormatError(f"{path} holds no file that could be a text: txt, md, html, docx, odt and pdf are read")
    if not texts.ids:
        reasons = "; ".join(skipped_by_reason(files)[:3])
        raise FileFormatError(f"{path}: none of its {plural(len(files), 'file')} could be read: {reasons}")
    frame = to_frame({"ID": list(texts.ids), "text": list(texts.texts)}, str(path))
    samples = _checked(frame.hstack(columns), ColumnChoice("ID", "text", {}), str(path))
    noted: dict[str, list[str]] = {}
    for file in texts.files:
        if file.note is not None:
            noted.setdefault(file.note.partition(", for example")[0], []).append(file.name)
    notes = unusual_texts(samples)
    for note, names in noted.items():
        others = " and others" if len(names) > 5 else ""
        notes.append(f"{', '.join(names[:5])}{others}: {note}")
    return SamplesReport(samples, str(path), files, "file name", kept=tuple(columns.columns), notes=tuple(notes))


def _class_list(folder: Path, texts: Texts) -> tuple[pl.DataFrame, tuple[FileRead, ...]]:
    """The columns of a folder's only table, in the order of the texts, if one of its columns names each text once.

    Beside them, the files of the folder, with what the table was used for, or why it was not.
    """
    tables = [file for file in texts.files if f".{file.kind}" in TABLE_SUFFIXES]
    if len(tables) != 1 or not texts.ids or not folder.is_dir():
        return pl.DataFrame(), texts.files
    [table] = tables
    places = {name: place for place, name in enumerate(texts.ids)}
    for file in texts.files:
        stem = normalize("NFC", Path(file.name).stem)
        if stem in places:
            places[normalize("NFC", file.name)] = places[stem]

    def placed(column: pl.Series) -> list[int | None]:
        if column.dtype.is_nested() or column.dtype in {pl.Binary, pl.Object}:
            return []
        return [places.get(normalize("NFC", (cell or "").strip())) for cell in id_text(column)]

    def keys(frame: pl.DataFrame) -> list[str]:
        return [column.name for column in frame if any(place is not None for place in placed(column))]

    columns = pl.DataFrame()
    try:
        frame = read_table(folder / table.name, text=keys)
    except MissingExtraError:  # a workbook that may be the class list: nobody can tell without opening it
        used = replace(table, reason=MISSING_EXTRA)
    except InputError:
        used = table
    else:
        named = {name: placed(frame[name]) for name in keys(frame)}
        every = list(range(len(texts.ids)))
        full = [name for name in named if sorted(place for place in named[name] if place is not None) == every]
        if full and all(named[name] == named[full[0]] for name in full):
            kept = [name for name in frame.columns if name not in {*full, "ID", "text"} and not is_long(frame[name])]
            place = pl.Series("place", named[full[0]], pl.Int64)
            columns = frame.select(kept).with_columns(place).drop_nulls("place").sort("place").drop("place")
            others = [name for name in frame.columns if name not in {full[0], *kept}]
            note = f"columns {', '.join(kept)} by {full[0]}" + (f"; without {', '.join(others)}" if others else "")
            used = replace(table, reason=None, note=note)
        elif named:
            need = f"to keep its columns, one of them must name each of the {len(every):,} texts once"
            used = replace(table, reason=f"{table.reason}; {need}, and no other must contradict it")
        else:
            used = table
    return columns, tuple(used if file is table else file for file in texts.files)


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
    if isinstance(id_col, int) or isinstance(text_col, int):
        notice(f"id_col={id_col}, text_col={text_col}: positions of columns count from 0 here, and from 1 in R")


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
        files = [file for file in sorted(folder.iterdir()) if matches(file.name) and file.name[0] != "."]
    except re.error as error:
        raise InputError(f"pattern {pattern!r} is not a regular expression: {error}") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    files = [file for file in files if file.is_file()]
    if not files:
        wanted = "there is no file that ends in .txt" if pattern == _TEXT_FILES else f"no file matches {pattern!r}"
        raise FileFormatError(f"{path}: {wanted}")
    texts = [without_final_break(read_text(file, encoding)) for file in files]
    frame = to_frame({"ID": [file.stem for file in files], "text": texts}, str(path))
    return _checked(frame, ColumnChoice("ID", "text", {}), str(path))


def _checked(frame: pl.DataFrame, choice: ColumnChoice, what: str) -> pl.DataFrame:
    ids, texts = choice.ids, choice.texts
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
