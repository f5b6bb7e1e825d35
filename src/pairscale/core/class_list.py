"""A table among the files of a folder that says more of each text: a name, a class, a date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import normalize

import polars as pl

from pairscale.core.columns import is_long
from pairscale.core.errors import MissingExtraError, PairscaleError
from pairscale.core.files import TABLE_SUFFIXES, read_table
from pairscale.core.tables import id_text
from pairscale.core.texts import MISSING_EXTRA, FileRead


@dataclass(frozen=True, slots=True)
class ClassList:
    """What a folder's table says of its texts.

    Attributes:
        columns: one row per text, in the order of the ids; without columns where the table does not name every text.
        files: the files of the folder, the table among them as what it was used for.
    """

    columns: pl.DataFrame
    files: tuple[FileRead, ...]


def find_class_list(folder: Path, ids: Sequence[str], files: tuple[FileRead, ...]) -> ClassList:
    """The columns of the one table of a folder, where one of its columns names every text exactly once.

    Several such columns must agree.

    Args:
        folder: the folder.
        ids: the ids of the texts, which are the names of their files without the ending.
        files: every file of the folder.
    """
    none = ClassList(pl.DataFrame(), files)
    tables = [one for one in files if f".{one.kind}" in TABLE_SUFFIXES]
    if len(tables) != 1 or not ids or not folder.is_dir():
        return none
    [table] = tables
    wanted = {normalize("NFC", name): at for at, name in enumerate(ids)}
    wanted |= {normalize("NFC", one.name): wanted[same] for one in files if (same := _stem(one.name)) in wanted}

    def keys(frame: pl.DataFrame) -> list[str]:
        return [name for name in frame.columns if any(cell in wanted for cell in _cells(frame[name]))]

    try:
        frame = read_table(folder / table.name, text=keys)
    except MissingExtraError:  # a workbook that may be the class list: nobody can tell without opening it
        return replace(none, files=tuple(replace(one, reason=MISSING_EXTRA) if one is table else one for one in files))
    except PairscaleError:
        return none
    found = {name: [wanted.get(cell or "") for cell in _cells(frame[name])] for name in keys(frame)}
    full = [
        name for name, places in found.items() if sorted(at for at in places if at is not None) == [*range(len(ids))]
    ]
    if not full or any(found[name] != found[full[0]] for name in full):
        return replace(none, files=_with_reason(files, table, found, full, len(ids)))
    key = full[0]  # the others say the same: a number and the file's name, for example
    kept = [name for name in frame.columns if name not in {*full, "ID", "text"} and not is_long(frame[name])]
    place = pl.Series("at", found[key], pl.Int64)
    columns = frame.select(kept).with_columns(place).drop_nulls("at").sort("at").drop("at")
    left = [name for name in frame.columns if name not in {key, *kept}]
    note = f"columns {', '.join(kept)} by {key}" + (f"; without {', '.join(left)}" if left else "")
    used = replace(table, reason=None, note=note)
    return ClassList(columns, tuple(used if one is table else one for one in files))


def _with_reason(
    files: tuple[FileRead, ...], table: FileRead, found: dict[str, list[int | None]], full: Sequence[str], n: int
) -> tuple[FileRead, ...]:
    """Say how many of the texts the table names, or which of its columns contradict each other."""
    counts = {name: len({at for at in places if at is not None}) for name, places in found.items()}
    if not counts:
        return files
    best = max(counts, key=lambda name: counts[name])
    words = f"{table.reason}; its column {best} names {counts[best]:,} of the {n:,} texts"
    if full:
        words = f"{table.reason}; its columns {' and '.join(full)} name the texts, and contradict each other"
    elif counts[best] == n:
        words += ", some of them twice"
    return tuple(replace(table, reason=words) if one is table else one for one in files)


def _cells(column: pl.Series) -> list[str | None]:
    if column.dtype.is_nested() or column.dtype in {pl.Binary, pl.Object}:
        return []
    return [None if cell is None else normalize("NFC", cell.strip()) for cell in id_text(column)]


def _stem(name: str) -> str:
    return normalize("NFC", Path(name).stem)
