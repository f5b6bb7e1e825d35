"""The dated data files: prices, and providers with what their models take; bundled ones, and those of the user.

Each kind is one JSON document. The user's own lies in the folder of their settings (``PAIRSCALE_HOME/data``); its rows
come before the bundled ones, so that it replaces what it names and adds the rest. Nothing is read before it is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.home import home_folder

__all__ = [
    "Kind",
    "Stamp",
    "bundled",
    "merged_rows",
    "own_document",
    "own_file",
    "own_stamp",
    "read_document",
    "require_date",
    "require_pattern",
    "today",
    "write_own",
]

Kind = Literal["prices", "providers"]
"""The data files: what tokens cost, and where providers are and what their models take."""

_LARGEST = 4_000_000  # bytes; the bundled files have less than a twentieth of that


@cache
def bundled(kind: Kind) -> Mapping[str, Any]:
    """The document that comes with the package."""
    found: Mapping[str, Any] = json.loads(files("pairscale.providers").joinpath(f"data/{kind}.json").read_text("utf-8"))
    return found


def own_file(kind: Kind) -> Path:
    """Where the user's own document is; it need not exist."""
    return home_folder("data") / f"{kind}.json"


Stamp: TypeAlias = tuple[Path, int, int]
"""A file as it is now: its path, when it was changed, and its size."""


def own_stamp(kind: Kind) -> Stamp | None:
    """The user's own document as it is now, to remember what was made of it; None when there is none."""
    path = own_file(kind)
    try:
        state = path.stat()
    except OSError:
        return None
    return path, state.st_mtime_ns, state.st_size


def own_document(kind: Kind) -> Mapping[str, Any] | None:
    """The user's own document; None when there is none.

    Raises:
        InputError: it cannot be read.
    """
    stamp = own_stamp(kind)
    return None if stamp is None else _read(stamp)


@lru_cache(maxsize=8)
def _read(stamp: Stamp) -> Mapping[str, Any]:
    return read_document(stamp[0])


def read_document(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        InputError: there is no such file, or it holds no JSON object.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path} is larger than {_LARGEST:,} bytes; that is no file of prices or providers")
        found = json.loads(path.read_text("utf-8"), parse_constant=_no_number, object_pairs_hook=_object)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} must hold a JSON object, not {type(found).__name__}")
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found


def write_own(kind: Kind, document: Mapping[str, Any]) -> Path:
    """Write the user's own document whole, or not at all."""
    path = own_file(kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    part.replace(path)
    return path


def merged_rows(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], Any]
) -> list[Mapping[str, Any]]:
    """The new rows, and the old ones that none of them replaces, by ``key``."""
    names = {key(row) for row in new}
    return [*new, *(row for row in old if key(row) not in names)]


def today() -> date:
    """The date in UTC."""
    return datetime.now(UTC).date()


def require_date(value: Any, name: str, *, future: bool = False) -> str:
    """A date as ``2026-10-21``.

    Raises:
        InputError: it is none, or lies in the future where it must not.
    """
    try:
        found = date.fromisoformat(value) if isinstance(value, str) and len(value) == len("2026-10-21") else None
    except ValueError:
        found = None
    if found is None:
        raise InputError(f"{name} must be a date such as 2026-10-21, not {value!r:.60}")
    if found > today() and not future:
        raise InputError(f"{name} {value} lies in the future")
    return found.isoformat()


def require_pattern(value: Any, name: str) -> str:
    """A regular expression that is searched for in a model's name.

    Raises:
        InputError: it is none.
    """
    try:
        if not isinstance(value, str):
            raise re.error("it is no text")
        re.compile(value, re.IGNORECASE)
    except re.error as error:
        raise InputError(f"{name} must be a regular expression, not {value!r:.60}: {error}") from None
    return value
