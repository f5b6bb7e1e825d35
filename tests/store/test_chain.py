"""The hash chain: whatever is done to a finished log, by one row or by many, is found and named."""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairscale.store import open_run
from pairscale.store.chain import CHAINED, Problem, canonical, link, verify_chain
from pairscale.store.policies import JournalWriter
from pairscale.store.writer import Entry

STEPS, REFITS = 12, 4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("chain") / "run.db"
    with open_run(path, write=True) as store, JournalWriter(store) as journal:
        journal.event({"event": "start", "ids": ["ä", "b"], "seed": 3})
        for step in range(1, STEPS + 1):
            row = {"step_id": step, "Y": step % 2, "mu": step / 7, "why": None, "flag": step > 3, "id": "ö"}
            journal.put(Entry(rows=[("step_log", row)]))
            if step % 3 == 0:
                n = step // 3
                items = [{"ID": i, "theta": n / 3} for i in "ab"]
                kept = {"belief": b"b" * n, "warm": b"w" * n}
                journal.put(Entry(rows=[("round_log", {"refit_id": n, "eap": n / 9})], scores=items, blobs=kept))
                journal.event({"event": "refit", "after": step})
        journal.event({"event": "end", "reason": "btl_converged"})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    return path


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copy(made, tmp_path / "run.db")


def change(path, *statements: tuple) -> list[Problem]:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement, *values in statements:
            connection.execute(statement, values)
    with open_run(path) as store:
        return verify_chain(store)


def rows_of(path, log: str) -> list[dict]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT data FROM logs WHERE log = ? ORDER BY row", [log]).fetchall()
    return [json.loads(data) for (data,) in found]


def test_nothing_is_found_where_nothing_was_done(copy):
    assert change(copy) == []
    assert {log: len(rows_of(copy, log)) for log in CHAINED} == {
        "step_log": STEPS, "round_log": REFITS, "item_log": REFITS, "adaptive_events": REFITS + 2,
    }  # fmt: skip


def test_a_run_file_without_adaptive_logs_has_no_problems():
    with open_run(None) as store:
        store.log("mine", [{"a": 1}])
        assert verify_chain(store) == []


def test_anybody_can_compute_it(copy):
    """By the definition, not by our code."""
    with open_run(copy) as store:
        heads = store.get_meta("chain")
    for log in CHAINED:
        previous = log
        rows = rows_of(copy, log)
        for row in rows:
            stated = row.pop("hash")
            body = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            previous = hashlib.sha256((previous + body).encode("utf-8")).hexdigest()
            assert stated == previous
        assert heads[log] == [len(rows), previous]


def test_canonical_json():
    row = {"b": 0.1 + 0.2, "a": float("nan"), "ü": ["ß", 1, True, None], "c": {"z": 1, "y": float("-inf")}}
    assert canonical(row) == '{"a":null,"b":0.30000000000000004,"c":{"y":null,"z":1},"ü":["ß",1,true,null]}'
    assert canonical({}) == "{}"
    digest, data = link("x", {})
    assert digest == hashlib.sha256(b"x{}").hexdigest()
    assert json.loads(data) == {"hash": digest}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.dictionaries(st.text().filter(lambda name: name != "hash"), JSON, max_size=4), max_size=4))
def test_rows_of_any_kind_hold(rows):
    with open_run(None) as store:
        with JournalWriter(store) as journal:
            for row in rows:
                journal.put(Entry(rows=[("step_log", row)]))
        assert verify_chain(store) == []
        for row, read in zip(rows, store.read_log("step_log"), strict=True):
            del read["hash"]
            assert read == json.loads(canonical(row))


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_any_edit_of_any_field_is_found(made, tmp_path, data):
    log = data.draw(st.sampled_from(CHAINED))
    rows = rows_of(made, log)
    number = data.draw(st.integers(1, len(rows)))
    row = rows[number - 1]
    field = data.draw(st.sampled_from([*row, "new field"]))
    old = row.get(field)
    value = data.draw((JSON | st.just(str(old))).filter(lambda new: json.dumps(new) != json.dumps(old)))
    way = data.draw(st.sampled_from(["set", "remove", "rename"])) if field in row else "set"
    if way == "set":
        row[field] = value
    else:
        kept = row.pop(field)
        if way == "rename":
            row[f"{field}'"] = kept
    written = data.draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    text = json.dumps(
        row, ensure_ascii=data.draw(st.booleans()), separators=written, sort_keys=data.draw(st.booleans())
    )
    path = shutil.copy(made, tmp_path / "run.db")
    problems = change(path, ("UPDATE logs SET data = ? WHERE log = ? AND row = ?", text, log, number))
    assert [(p.log, p.row, p.kind) for p in problems if p.log != "blobs"] == [(log, number, "edited")]
    assert str(problems[0]) == f"{log}, row {number}: the row was changed or has taken another's place"


@pytest.mark.parametrize("log", CHAINED)
def test_any_edit_of_the_letters_is_found(copy, log):
    """Also one that leaves the values as they are, and one that only a lenient reader overlooks."""
    for before, after in (("{", "{ "), ('"hash"', '"hash":"","hash"')):
        with closing(sqlite3.connect(copy)) as connection:
            query = "SELECT row, data FROM logs WHERE log = ? ORDER BY row DESC"
            number, text = connection.execute(query, [log]).fetchone()
        update = ("UPDATE logs SET data = ? WHERE log = ? AND row = ?", text.replace(before, after, 1), log, number)
        back = ("UPDATE logs SET data = ? WHERE log = ? AND row = ?", text, log, number)
        problems = change(copy, update)
        assert [(p.log, p.row, p.kind) for p in problems if p.log != "blobs"] == [(log, number, "edited")]
        assert change(copy, back) == []


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_rows_that_are_removed_added_or_exchanged_are_found(made, tmp_path, data):
    log = data.draw(st.sampled_from(CHAINED))
    count = len(rows_of(made, log))
    number = data.draw(st.integers(1, count))
    way = data.draw(st.sampled_from(["delete", "close up", "truncate", "insert", "append", "exchange", "double"]))
    shift = [  # over negative numbers: two rows never have the same one
        ("UPDATE logs SET row = -row WHERE log = ? AND row > ?", log, number),
        ("UPDATE logs SET row = -row - 1 WHERE log = ? AND row < 0", log),
    ]
    delete = ("DELETE FROM logs WHERE log = ? AND row = ?", log, number)
    expected = {(log, number, "missing")}
    if way == "delete":
        statements = [delete]
    elif way == "close up":
        statements = [delete, *shift]
    elif way == "truncate":
        statements = [("DELETE FROM logs WHERE log = ? AND row >= ?", log, number)]
    elif way == "append":
        statements = [("INSERT INTO logs SELECT log, row + 1, data FROM logs WHERE log = ? AND row = ?", log, count)]
        expected = {(log, count + 1, "added")}
    elif way in {"insert", "double"}:
        text = '{"step_id":1}' if way == "insert" else rows_of(made, log)[number - 1]
        statements = [
            ("UPDATE logs SET row = -row WHERE log = ? AND row > ?", log, number),
            ("UPDATE logs SET row = -row + 1 WHERE log = ? AND row < 0", log),
            ("INSERT INTO logs VALUES (?, ?, ?)", log, number + 1, text if way == "insert" else json.dumps(text)),
        ]
        expected = {(log, number + 1, "added")}
    else:
        other = data.draw(st.integers(1, count).filter(lambda n: n != number))
        swap = "UPDATE logs SET row = ? WHERE log = ? AND row = ?"
        statements = [(swap, -1, log, number), (swap, number, log, other), (swap, other, log, -1)]
        expected = {(log, min(number, other), "edited")}
    problems = change(shutil.copy(made, tmp_path / "run.db"), *statements)
    assert {(p.log, p.row, p.kind) for p in problems if p.log != "blobs"} == expected


def test_a_chain_that_was_made_anew_does_not_fit_the_head(copy):
    rows = rows_of(copy, "step_log")
    previous, statements = "step_log", []
    for number, row in enumerate(rows, start=1):
        del row["hash"]
        previous, text = link(previous, row | {"Y": 1})
        statements.append(("UPDATE logs SET data = ? WHERE log = 'step_log' AND row = ?", str(text), number))
    [problem] = change(copy, *statements)
    assert (problem.log, problem.row, problem.kind) == ("step_log", STEPS, "head")


@pytest.mark.parametrize(
    ("log", "row", "kind", "head"),
    [
        ("step_log", STEPS - 1 + 1, "added", lambda heads: heads["step_log"].__setitem__(0, STEPS - 1)),
        ("step_log", STEPS + 1, "missing", lambda heads: heads["step_log"].__setitem__(0, STEPS + 1)),
        ("step_log", STEPS, "head", lambda heads: heads["step_log"].__setitem__(1, "0" * 64)),
        ("item_log", 1, "head", lambda heads: heads.pop("item_log")),
        ("round_log", 1, "head", lambda heads: heads.update(round_log="?")),
        ("adaptive_events", 1, "head", lambda heads: heads.update(adaptive_events=[True])),
    ],
)
def test_an_edited_head_is_found(copy, log, row, kind, head):
    with open_run(copy) as store:
        heads = store.get_meta("chain")
    head(heads)
    problems = change(copy, ("UPDATE metadata SET value = ? WHERE key = 'chain'", json.dumps(heads)))
    assert [(p.log, p.row, p.kind) for p in problems] == [(log, row, kind)]


@pytest.mark.parametrize("value", [None, "[]", "3", "null"])
def test_a_head_that_is_gone_is_found(copy, value):
    statement = ("DELETE FROM metadata WHERE key = 'chain'",)
    if value is not None:
        statement = ("UPDATE metadata SET value = ? WHERE key = 'chain'", value)
    assert [(p.log, p.kind) for p in change(copy, statement)] == [(log, "head") for log in CHAINED]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE blobs SET data = x'00' WHERE name = 'warm' AND row = 3", ("blobs", 3, "edited")),
        ("DELETE FROM blobs WHERE name = 'belief' AND row = 4", ("blobs", 4, "missing")),
        ("INSERT INTO blobs VALUES ('belief', 5, x'00')", ("blobs", 5, "added")),
    ],
)
def test_blobs_belong_to_the_chain(copy, statement, expected):
    assert [(p.log, p.row, p.kind) for p in change(copy, (statement,))] == [expected]


def test_several_logs_are_told_of_each(copy):
    problems = change(
        copy,
        ("UPDATE logs SET data = '{}' WHERE row = 2",),
        ("DELETE FROM logs WHERE log = 'item_log' AND row = 1",),
        ("UPDATE logs SET data = 'no json' WHERE log = 'adaptive_events' AND row = 1",),
    )
    assert [(p.log, p.row, p.kind) for p in problems] == [
        ("step_log", 2, "edited"), ("round_log", 2, "edited"), ("item_log", 1, "missing"),
        ("adaptive_events", 1, "edited"),
    ]  # fmt: skip
