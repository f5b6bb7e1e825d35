"""The hash chain of the logs: whoever changes, removes or adds a row of a finished run is found out.

Every row of a chained log carries ``hash``, the SHA-256 of the hash of the row before (for the first row: the name of
the log) followed by the row as canonical JSON without its hash. Canonical JSON: keys sorted, no blanks, text as it is
in UTF-8, numbers as Python writes them; what is not a finite number is null. The number of rows and the last hash of
each log stand in the metadata under ``chain``, so that a missing last row is found, too. A row of the log ``round_log``
carries the digests of its blobs, which are checked along.

A chain tells of accidents and of careless hands. Who rewrites all rows and the metadata besides can only be found out
by a head that was noted elsewhere.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, func, select

from pairscale.store._database import Written, get_fact, whole
from pairscale.store._schema import blobs, logs

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from pairscale.store.runfile import RunFile

__all__ = ["CHAIN", "CHAINED", "Problem", "canonical", "digest_of", "link", "verify_chain"]

CHAINED = ("step_log", "round_log", "item_log", "adaptive_events")
"""The logs whose rows carry a hash."""

CHAIN = "chain"
"""The fact of the metadata that holds, for each of these logs, its number of rows and its last hash."""

_MARK, _CLOSE = '"hash":"', '"}'
_TAIL = len(_MARK) + 64 + len(_CLOSE)


@dataclass(frozen=True, slots=True)
class Problem:
    """The first difference between a log and its chain.

    Attributes:
        log: the log, or ``blobs``.
        row: the number of the row, counted from 1.
        kind: ``edited``, ``missing``, ``added`` or ``head`` (the rows fit together, but not to the metadata).
        message: the same in words.
    """

    log: str
    row: int
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.log}, row {self.row}: {self.message}"


def canonical(row: Mapping[str, Any]) -> str:
    """A row as JSON in one and only one way; NaN and infinities become null."""
    try:
        body = _encode(row)
    except ValueError:
        body = _encode(_finite(row))
    try:
        body.encode()
    except UnicodeEncodeError:  # half a character, as some servers send it
        return str(whole(body))
    return body


def link(previous: str, row: Mapping[str, Any]) -> tuple[str, Written]:
    """The hash of a row that follows another, and the row with it as it is stored."""
    body = canonical(row)
    digest = hashlib.sha256((previous + body).encode()).hexdigest()
    comma = "," if len(body) > 2 else ""
    return digest, Written(f"{body[:-1]}{comma}{_MARK}{digest}{_CLOSE}")


def digest_of(data: bytes) -> str:
    """The digest of a blob, as ``round_log`` carries it."""
    return hashlib.sha256(data).hexdigest()


def verify_chain(run_file: RunFile) -> list[Problem]:
    """Compare the logs of a run file with their chain.

    Returns:
        The first difference in each log that has one, and every blob that differs; nothing when all is right.
    """
    problems: list[Problem] = []
    digests: dict[tuple[str, int], str] = {}
    with run_file.transaction() as connection:
        heads = get_fact(connection, CHAIN)
        for log in CHAINED:
            present = connection.execute(select(func.count()).where(logs.c.log == log)).scalar_one()
            rows = select(logs.c.row, cast(logs.c.data, Text)).where(logs.c.log == log).order_by(logs.c.row)
            head = heads.get(log) if isinstance(heads, dict) else None
            found = connection.execution_options(stream_results=True).execute(rows)
            kept = digests if log == "round_log" else {}
            if _is_head(head):
                problem = _first_difference(log, ((number, data) for number, data in found), present, head, kept)
                problems += [] if problem is None else [problem]
            elif present or head is not None:
                problems.append(Problem(log, 1, "head", "the metadata do not say how many rows there are"))
        whole = all(problem.log != "round_log" for problem in problems)
        problems += _differing_blobs(connection, digests, whole=whole)
    return problems


def _first_difference(
    log: str, rows: Iterable[tuple[int, Any]], present: int, head: Any, digests: dict[tuple[str, int], str]
) -> Problem | None:
    """The first row that does not fit; the digests of the blobs of all rows before it are added to ``digests``."""
    count, last = head
    previous, following = log, 1
    for number, data in rows:
        if number > following:
            return Problem(log, following, "missing", "the row is missing")
        digest = _verified(previous, str(data)) if number == following else None
        if digest is None or number > count:
            return _misfit(log, number, present - count)
        if log == "round_log":
            row = json.loads(str(data))
            digests |= {(name, row.get("refit_id")): value for name, value in row.get("blobs", {}).items()}
        previous, following = digest, following + 1
    if following <= count:
        return Problem(log, following, "missing", f"the row is missing, and all behind it; there were {count}")
    if previous != last:
        return Problem(log, count, "head", "the last hash is not the one that the metadata hold")
    return None


def _misfit(log: str, number: int, more: int) -> Problem:
    if more > 0:
        return Problem(log, number, "added", f"the row does not belong there; there are {more} too many")
    if more < 0:
        return Problem(log, number, "missing", f"another row stood there; {-more} are missing")
    return Problem(log, number, "edited", "the row was changed or has taken another's place")


def _is_head(head: Any) -> bool:
    return isinstance(head, list) and len(head) == 2 and isinstance(head[0], int) and isinstance(head[1], str)


def _verified(previous: str, data: str) -> str | None:
    """The hash of a stored row when it is right, else None. The writing counts, not only the values."""
    front, tail = data[:-_TAIL], data[-_TAIL:]
    digest = tail[len(_MARK) : -len(_CLOSE)]
    if tail != f"{_MARK}{digest}{_CLOSE}":
        return None
    body = f"{front.removesuffix(',')}}}"
    return digest if hashlib.sha256((previous + body).encode()).hexdigest() == digest else None


def _differing_blobs(
    connection: Connection, digests: Mapping[tuple[str, int], str], *, whole: bool
) -> Iterator[Problem]:
    """Blobs that are not those of the round log; without the whole of it, one too many cannot be told."""
    expected = dict(digests)
    query = select(blobs.c.name, blobs.c.row, blobs.c.data).order_by(blobs.c.row, blobs.c.name)
    for name, row, data in connection.execution_options(stream_results=True).execute(query):
        digest = expected.pop((name, row), None)
        if digest is None and whole:
            yield Problem("blobs", row, "added", f"{name!r} belongs to no row of the round log")
        elif digest is not None and digest != digest_of(bytes(data)):
            yield Problem("blobs", row, "edited", f"{name!r} was changed")
    for name, row in expected:
        yield Problem("blobs", row, "missing", f"{name!r} is missing")


def _plain(value: Any) -> Any:
    """What JSON has no word for: times, numbers and arrays of numpy, anything else as its text."""
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, Mapping):
        return dict(value)
    plain = getattr(value, "tolist", None)
    return str(value) if plain is None else plain()


_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain
).encode


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if hasattr(value, "tolist") and not isinstance(value, float):
        return _finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
