"""Several run files that are read together: a folder of them, a pattern, or a list."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.counting import is_pattern
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES
from pairscale.core.notices import notice
from pairscale.core.tables import listed

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

SHARD = "shard"
"""The fact that makes a run file a shard: its ``number``, of how many (``of``), and which ``job`` it belongs to."""

_SQLITE = b"SQLite format 3\0"


def named_runs(source: Any) -> tuple[Any, list[str] | None]:
    """What is meant, and the run files where a list, a folder or a pattern stands for several of them.

    Returns:
        The one run file, table or whatever else is meant, and None; or the source and two or more run files.

    Raises:
        InputError: a folder holds no run file, or a list holds something else as well.
    """
    is_list = isinstance(source, list | tuple) and source and all(isinstance(x, str | os.PathLike) for x in source)
    if not is_list and not isinstance(source, str | os.PathLike):
        return source, None
    files = [file for name in (source if is_list else [source]) for file in _run_files(os.fspath(name))]
    if len(files) == 1:
        return files[0], None
    if not is_list and not any(map(is_run_file, files)):  # a pattern of tables
        return source, None
    tables = [name for name in files if Path(name).suffix.lower() in TABLE_SUFFIXES]
    if tables:
        raise InputError(f"{listed(tables)}: only run files are read together; name one kind of files")
    return source, files


def _run_files(path: str) -> list[str]:
    """The files that a path, a folder or a pattern means."""
    if is_pattern(path):
        files = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a pattern may be absolute
        return [name for name in files if is_run_file(name) or Path(name).suffix.lower() in TABLE_SUFFIXES]
    if "://" in path or not Path(path).is_dir():
        return [path]
    files = [str(file) for file in sorted(Path(path).iterdir()) if is_run_file(file)]
    if not files:
        raise InputError(f"{path}: there is no run file in this folder")
    return files


def is_run_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of an SQLite file, as run files are."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def require_one_job(stores: Sequence[RunFile]) -> None:
    """Refuse copies of one run file and shards of different jobs; say which shards are missing.

    Raises:
        InputError: the run files do not belong together.
    """
    created: dict[str, str] = {}
    for store in stores:
        first = created.setdefault(str(store.get_meta("created_at")), store.name)
        if first != store.name:
            raise InputError(f"{first} and {store.name} are copies of one run file; name one of them")
    facts = {store.name: store.get_meta(SHARD) for store in stores}
    shards = {name: shard for name, shard in facts.items() if shard is not None}
    if not shards:
        return
    first, shard = next(iter(shards.items()))
    for name, other in shards.items():
        if (other["job"], other["of"]) != (shard["job"], shard["of"]):
            raise InputError(f"{first} and {name} are shards of different pairs; read each job by itself")
    missing = sorted(set(range(1, shard["of"] + 1)) - {other["number"] for other in shards.values()})
    if missing:
        notice(f"{len(shards)} of {shard['of']} shards are here; missing: {', '.join(map(str, missing))}")


def joined_samples(stores: Sequence[RunFile]) -> pl.DataFrame:
    """The texts of all run files, each once.

    Raises:
        InputError: an ID stands for different texts.
    """
    parts = [store.items() for store in stores]
    samples = pl.concat(parts, how="diagonal_relaxed")
    texts = samples.group_by("ID", maintain_order=True).agg(pl.col("text").n_unique())
    differing = texts.filter(pl.col("text") > 1)["ID"].to_list()
    if differing:
        raise InputError(f"{listed(differing)} is one text in one run file and another text in another one")
    return samples.unique("ID", keep="first", maintain_order=True)
