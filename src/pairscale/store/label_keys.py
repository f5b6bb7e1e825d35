"""The key of blinded cases: which variant is Response 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pairscale.core.errors import FileFormatError
from pairscale.core.files import read_rows
from pairscale.core.options import FilePath
from pairscale.core.tables import Values


def key_path(path: FilePath) -> Path:
    """Where the key of a manifest lies: beside it, called like it, with ``.key.jsonl`` behind the stem."""
    target = Path(path)
    return target.with_name(f"{target.stem}.key.jsonl")


def read_key(path: FilePath, encoding: str | None = None) -> dict[str, Values]:
    """The de-blinding key: by case, its row with ``first_variant``.

    Args:
        path: the key.
        encoding: of a key that is not UTF-8.

    Raises:
        FileFormatError: when it is no key.
    """
    key: dict[str, Values] = {}
    rows = read_rows(path, text=("case_id", "task_id", "criterion"), encoding=encoding)
    for number, row in enumerate(rows, start=1):
        if row.get("first_variant") not in {"a", "b"} or row.get("case_id") is None or str(row["case_id"]) in key:
            raise FileFormatError(f"{path}, row {number}: a key has, once for each case_id, a first_variant of a or b")
        key[str(row["case_id"])] = dict(row)
    return key


def known_key(path: Path, rows: Iterable[Mapping[str, Any]]) -> dict[str, Values] | None:
    """The key of a manifest or of labels: what its rows say themselves, else the file beside it; None without either.

    Raises:
        FileFormatError: when the file beside it is no key.
    """
    embedded = {
        str(row["case_id"]): dict(row)
        for row in rows
        if row.get("first_variant") in {"a", "b"} and row.get("case_id") is not None
    }
    beside = key_path(path)
    return embedded or (read_key(beside) if beside.exists() else None)
