"""Random forgeries: every column of every table of a run of every kind is edited, and every kind of row moved about.

The audit must report each of them, except in the columns that ``store/chain.py`` names with a reason.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.cli import main
from pairscale.core.errors import PairscaleError
from pairscale.store.chain import UNCOVERED
from tests.store.forging import rechain
from tests.test_auditing import KINDS, made  # noqa: F401 - a fixture

pytestmark = pytest.mark.validate

SEED = 20261117
ROWS = 5  # per table, whose every column is edited
HUGE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a run file by plain SQL.

    Attributes:
        name: what it does, with its table and column.
        table: the table.
        column: the column; ``*`` for whole rows.
        statements: with their parameters.
        fact: the key of the metadata that is changed, if one is.
    """

    name: str
    table: str
    column: str
    statements: tuple[tuple[str, tuple[Any, ...]], ...]
    fact: str | None = None

    @property
    def is_covered(self) -> bool:
        """Whether the audit must find it."""
        return f"{self.table}.{self.column}" not in UNCOVERED and f"{self.table}:{self.fact}" not in UNCOVERED

    def make(self, run: Path) -> bool:
        """Make it; False when the database refuses, or nothing has changed."""
        with closing(sqlite3.connect(run, isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            everything = f'SELECT rowid, * FROM "{self.table}"'
            before = repr(connection.execute(everything).fetchall())
            connection.execute("BEGIN")
            try:
                for statement, values in self.statements:
                    connection.execute(statement, values)
            except (sqlite3.IntegrityError, sqlite3.DataError):
                connection.execute("ROLLBACK")
                return False
            connection.execute("COMMIT")
            return repr(connection.execute(everything).fetchall()) != before


def tables_of(connection: sqlite3.Connection) -> dict[str, tuple[list[str], list[str]]]:
    """By table, its columns and those of its key."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {}
    for name in names:
        columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
        found[name] = [row[1] for row in columns], [row[1] for row in columns if row[5]]
    return found


def others(value: Any, siblings: list[Any], dice: random.Random) -> Iterator[tuple[str, Any]]:
    """Values that could stand there instead, and some that could not."""
    if different := [one for one in siblings if one != value]:
        yield "as in another row", dice.choice(different)
    if value is not None:
        yield "nothing", None
    if isinstance(value, int):
        yield from (("one more", value + 1), ("negative", -value - 1), ("huge", HUGE), ("a text", f"{value}x"))
    elif isinstance(value, float):
        yield from (("a little more", value * 1.0001 + 1e-9), ("negative", -value - 1), ("infinite", 9e999))
        yield from (("huge", 1e308), ("a text", "much"))
    elif isinstance(value, bytes):
        at = dice.randrange(max(len(value), 1))
        yield "a bit", value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] if value else b"x"
        yield from (("half", value[: len(value) // 2]), ("empty", b""), ("a text", "x"), ("a number", 7))
    elif isinstance(value, str):
        at = dice.randrange(max(len(value), 1))
        letter = "b" if value[at : at + 1] == "a" else "a"
        yield from (("a letter", value[:at] + letter + value[at + 1 :]), ("longer", value + " "), ("empty", ""))
        yield from (("half", value[: len(value) // 2]), ("bytes", b"\xff\xfe\x00"), ("a number", 7), ("huge", HUGE))
        yield "in capitals", value.upper()
        yield from _documents(value, dice)
    else:
        yield from (("a text", "x"), ("a number", 1), ("a document", "{}"))


def _documents(text: str, dice: random.Random) -> Iterator[tuple[str, str]]:
    try:
        document = json.loads(text)
    except ValueError:
        return
    if isinstance(document, dict) and document:
        name = dice.choice(sorted(document))
        yield "a field gone", json.dumps({key: value for key, value in document.items() if key != name})
        yield "a field more", json.dumps({**document, "forged": 1})
        for what, value in (
            ("nothing", None),
            ("a list", [1]),
            ("deep", {"x": {}}),
            ("huge", 10**400),
            ("a text", "x"),
        ):
            yield f"the field {name}: {what}", json.dumps({**document, name: value})
        yield "fields in another order", json.dumps(dict(reversed(document.items())))
        yield "other blanks", json.dumps(document, indent=1)
    yield from (("broken", text[:-1]), ("a list", "[]"), ("deeply nested", "[" * 5_000 + "]" * 5_000), ("NaN", "NaN"))


def edits_of(run: Path, dice: random.Random) -> Iterator[Edit]:
    """Everything that is tried on a run file."""
    with closing(sqlite3.connect(run)) as connection:
        for table, (columns, keys) in tables_of(connection).items():
            listed = ", ".join(f'"{column}"' for column in columns)
            rows = connection.execute(f'SELECT rowid, {listed} FROM "{table}"').fetchall()
            rows = rows if len(rows) <= 60 else dice.sample(rows, 60)
            chosen = rows if table == "metadata" else dice.sample(rows, min(ROWS, len(rows)))
            yield from _fields(table, columns, rows, chosen, dice)
            yield from _rows(table, columns, keys, rows, chosen)


def _fact(table: str, row: tuple[Any, ...]) -> str | None:
    return str(row[1]) if table == "metadata" else None


def _fields(table: str, columns: list[str], rows: list[Any], chosen: list[Any], dice: random.Random) -> Iterator[Edit]:
    for row in chosen:
        for at, column in enumerate(columns, 1):
            for what, value in others(row[at], [other[at] for other in rows], dice):
                statement = f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?'
                name = f"{table}.{column} of row {row[0]}: {what}"
                yield Edit(name, table, column, ((statement, (value, row[0])),), _fact(table, row))


def _rows(table: str, columns: list[str], keys: list[str], rows: list[Any], chosen: list[Any]) -> Iterator[Edit]:
    for row in chosen:
        gone = (f'DELETE FROM "{table}" WHERE rowid = ?', (row[0],))
        yield Edit(f"{table}: row {row[0]} deleted", table, "*", (gone,), _fact(table, row))
        values = [_new(row[at], column in keys or column in _UNIQUE) for at, column in enumerate(columns, 1)]
        marks = ", ".join("?" * len(columns))
        added = (f'INSERT INTO "{table}" VALUES ({marks})', tuple(values))
        yield Edit(f"{table}: row {row[0]} repeated", table, "*", (added,))
    plain = [column for column in columns if column not in keys]
    for one, other in pairwise(chosen):
        both = _fact(table, one) if f"{table}:{_fact(table, other)}" in UNCOVERED else None
        held = ", ".join(f'"{column}" = ?' for column in plain)
        first = tuple(one[columns.index(column) + 1] for column in plain)
        second = tuple(other[columns.index(column) + 1] for column in plain)
        parked = tuple(_new(value, True) for value in first)
        statement = f'UPDATE "{table}" SET {held} WHERE rowid = ?'
        swapped = ((statement, (*parked, one[0])), (statement, (*first, other[0])), (statement, (*second, one[0])))
        yield Edit(f"{table}: rows {one[0]} and {other[0]} swapped", table, "*", swapped, both)


_UNIQUE = {"custom_id", "attempt_id", "token", "case_id", "name", "question_id", "pair_id"}


def _new(value: Any, is_key: bool) -> Any:
    if not is_key or value is None:
        return value
    return value + 100_000 if isinstance(value, int) else f"{value}x" if isinstance(value, str) else value


@pytest.mark.parametrize("kind", KINDS)
def test_random_edits_are_reported(made: Callable[[str], Path], tmp_path: Path, kind: str) -> None:  # noqa: F811
    original, run = made(kind), tmp_path / "run.db"
    assert ps.audit(original).passed
    unnoticed, raised, figures = [], [], Counter[str]()
    for edit in edits_of(original, random.Random(f"{SEED} {kind}")):
        shutil.copy(original, run)
        if not edit.make(run):
            figures["impossible"] += 1
            continue
        figures["covered" if edit.is_covered else "not covered"] += 1
        try:
            found = not ps.audit(run).passed
        except PairscaleError:
            found = True
        except Exception as error:  # noqa: BLE001 - it is a finding
            raised.append((edit.name, f"{type(error).__name__}: {error}"))
            continue
        if edit.is_covered and not found:
            unnoticed.append(edit.name)
    print(f"\n{kind}: {figures['covered']} edits, {len(unnoticed)} unnoticed, {len(raised)} raw exceptions; "
          f"{figures['not covered']} in columns without evidence")  # fmt: skip
    assert raised == []
    assert unnoticed == []
    assert figures["covered"] > 300


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_cannot_be_read_are_reported_also_when_all_hashes_were_recomputed(
    made: Callable[[str], Path],  # noqa: F811
    tmp_path: Path,
    kind: str,
) -> None:
    """The chain says nothing then; what reads the rows must, and never by an exception of its own."""
    original, run, dice = made(kind), tmp_path / "run.db", random.Random(f"{SEED} again {kind}")
    edits = [edit for edit in edits_of(original, dice) if edit.table != "chain"]
    raised, figures = [], Counter[str]()
    for edit in dice.sample(edits, 250):
        shutil.copy(original, run)
        try:
            if not edit.make(run):
                continue
            rechain(run)
        except (PairscaleError, TypeError, ValueError, RecursionError):  # no chain can be made of it
            figures["not forged"] += 1
            continue
        try:
            figures["passed" if ps.audit(run).passed else "reported"] += 1
        except PairscaleError:
            figures["refused"] += 1
        except Exception as error:  # noqa: BLE001 - it is a finding
            raised.append((edit.name, f"{type(error).__name__}: {error}"))
    print(f"\n{kind}, hashes recomputed: {dict(figures)}, {len(raised)} raw exceptions")
    assert raised == []
    assert figures["reported"] + figures["refused"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_reports_random_edits(
    made: Callable[[str], Path],  # noqa: F811
    tmp_path: Path,
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    original, run, dice = made(kind), tmp_path / "run.db", random.Random(f"{SEED} command {kind}")
    edits = [edit for edit in edits_of(original, dice) if edit.is_covered]
    tried = 0
    for edit in dice.sample(edits, 25):
        shutil.copy(original, run)
        if not edit.make(run):
            continue
        with pytest.raises(SystemExit) as ended:
            main(["audit", str(run)])
        out, err = capsys.readouterr()
        assert ended.value.code == 1, edit.name
        assert (out + err).strip(), edit.name
        assert "Traceback" not in out + err, edit.name
        tried += 1
    assert tried > 10
