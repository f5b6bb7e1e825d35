"""The hash chain: anybody can compute it, and whatever is done to a row, by one or by many, is found and named."""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pairscale as ps
from pairscale.store.audit import EvidenceProblem, check_evidence
from pairscale.store.chain import canonical, recording
from pairscale.store.policies import JournalWriter
from pairscale.store.runfile import open_run
from pairscale.store.writer import Asked, Entry

STEPS, REFITS = 12, 4
LOGS = ("step_log", "round_log", "item_log", "adaptive_events")
BUSY = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("chain") / "run.db"
    with open_run(path, write=True) as store:
        store.add_items([{"ID": name, "text": f"Text {name}.", "grade": 3} for name in "ab"])
        store.add_condition(ps.Condition("judge", settings={"ü": 1}), "judge")
        store.set_meta("about", {"a": 1})
        store.set_meta("about", {"a": 2})
        with JournalWriter(store) as journal:
            journal.event({"event": "start", "ids": ["ä", "b"], "seed": 3})
            for step in range(1, STEPS + 1):
                row = {"step_id": step, "Y": step % 2, "mu": step / 7, "why": None, "flag": step > 3, "id": "ö"}
                attempt = {"attempt": 1, "attempted_at": "now", "outcome": "win", "cost": step / 3, "status_code": 200}
                attempt |= {"raw_response": {"ü": [1, None]}, "latency_s": 0}
                won = {"outcome": "win", "winner_pos": 1, "better_id": "a", "received_at": "now", "probability": 1}
                asked = Asked("judge", (attempt,), won, uid=f"step-{step}", ID1="a", ID2="b", columns={"step_id": step})
                journal.put(Entry(asked, [("step_log", row)]))
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


def change(path, *statements: tuple) -> list[EvidenceProblem]:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement, *values in statements:
            connection.execute(statement, values)
    with open_run(path) as store:
        return check_evidence(store).problems


def rows_of(path, log: str) -> list[dict]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT data FROM logs WHERE log = ? ORDER BY row", [log]).fetchall()
    return [json.loads(data) for (data,) in found]


def told(problems: list[EvidenceProblem]) -> set[tuple[str, str, str]]:
    return {(problem.table, problem.row, problem.kind) for problem in problems}


def test_nothing_is_found_where_nothing_was_done(copy):
    assert change(copy) == []
    with open_run(copy) as store:
        found = check_evidence(store)
        assert found.digest == store.closing() == found.earlier[-1]
    assert found.rows == {
        "items": 2, "pairs": STEPS, "conditions": 1, "attempts": STEPS, "comparisons": STEPS, "blobs": 2 * REFITS,
        "logs": STEPS + 2 * REFITS + REFITS + 2, "metadata": 1,
    }  # fmt: skip


# By the definition, not by our code

COLUMNS = {
    "items": ("item_id", "text_hash", "columns"),
    "pairs": ("pair_id", "custom_id", "ID1", "ID2", "columns"),
    "conditions": ("condition_id", "judge_id", "backend", "model", "trait", "template_id", "settings", "created_at"),
    "attempts": (
        "attempt_id", "pair_id", "condition_id", "attempt", "attempted_at", "outcome", "error_code", "error_message",
        "failure", "status_code", "prompt_hash", "request", "raw_response",
        "model", "object_type", "thoughts", "content", "prompt_tokens",
        "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "latency_s", "cost",
    ),
    "comparisons": (
        "comparison_id", "pair_id", "condition_id", "attempt_id", "outcome", "winner_pos", "better_id", "probability",
        "received_at",
    ),
    "logs": ("log", "row", "data"),
    "blobs": ("name", "row", "data"),
    "metadata": ("key", "value"),
}  # fmt: skip
JSON_COLUMNS = {"columns", "settings", "request", "raw_response", "value"}
KEYS = {"logs": 2, "blobs": 2}


def hash_of(part: str, row: tuple) -> str:
    values, texts = [], ""
    for name, value in zip(COLUMNS[part], row, strict=True):
        if isinstance(value, str) and (name in JSON_COLUMNS or (part == "logs" and name == "data")):
            texts += value
            values.append(len(value))
        else:
            values.append(hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else value)
    array = json.dumps([part, *values], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256((array + texts).encode()).hexdigest()


def test_anybody_can_compute_it(copy):
    stated, previous, closings = {}, "main", []
    with closing(sqlite3.connect(copy)) as connection:
        entries = connection.execute("SELECT chain, entry, data, hash FROM chain ORDER BY entry").fetchall()
        for at, (chain, number, data, digest) in enumerate(entries, start=1):
            assert (chain, number) == ("main", at)
            entry = json.loads(data)
            if "closed" in entry:
                heads = {"main": [at - 1, previous]}
                written = json.dumps(heads, separators=(",", ":"))
                closings.append({"heads": heads, "digest": hashlib.sha256(written.encode()).hexdigest()})
                assert entry["closed"] == closings[-1]
            previous = hashlib.sha256((previous + data).encode()).hexdigest()
            assert digest == previous
            for part, links in entry.get("rows", {}).items():
                stated |= {(part, *link[:-1]): link[-1] for link in links}
        assert len(closings) == 1
        assert (
            json.loads(connection.execute("SELECT value FROM metadata WHERE key = 'closed'").fetchone()[0])
            == closings[0]
        )
        for part, columns in COLUMNS.items():
            for row in connection.execute(f"SELECT {', '.join(columns)} FROM {part.split('.')[0]}"):
                if part != "metadata" or row[0] == "about":
                    assert stated.pop((part, *row[: KEYS.get(part, 1)])) == hash_of(part, row)
    assert stated == {}


def test_canonical_json():
    row = {"b": 0.1 + 0.2, "a": float("nan"), "ü": ["ß", 1, True, None], "c": {"z": 1, "y": float("-inf")}}
    assert canonical(row) == '{"a":null,"b":0.30000000000000004,"c":{"y":null,"z":1},"ü":["ß",1,true,null]}'
    assert canonical({}) == "{}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=4))
def test_rows_of_any_kind_hold(rows):
    with open_run(None) as store:
        with JournalWriter(store) as journal:
            for row in rows:
                journal.put(Entry(rows=[("step_log", row)]))
        assert check_evidence(store).problems == []
        for row, read in zip(rows, store.read_log("step_log"), strict=True):
            assert read == json.loads(canonical(row))


@settings(max_examples=60, deadline=None, suppress_health_check=BUSY)
@given(data=st.data())
def test_any_edit_of_any_column_is_found(made, tmp_path, data):
    part = data.draw(st.sampled_from([name for name in COLUMNS if name != "metadata"]))
    table, n_keys = part.split(".")[0], KEYS.get(part, 1)
    with closing(sqlite3.connect(made)) as connection:
        rows = connection.execute(f"SELECT {', '.join(COLUMNS[part])} FROM {table}").fetchall()
    row = data.draw(st.sampled_from(rows))
    at = data.draw(st.integers(n_keys, len(row) - 1))
    kinds = st.none() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text() | st.binary()
    value = data.draw(kinds.filter(lambda new: new != row[at] and str(new) != str(row[at])))
    with closing(sqlite3.connect(made)) as connection:
        nullable = {
            name: not required for _, name, _, required, *_ in connection.execute(f"PRAGMA table_info({table})")
        }
    if value is None and not nullable[COLUMNS[part][at]]:
        return
    where = " AND ".join(f"{name} = ?" for name in COLUMNS[part][:n_keys])
    statement = f"UPDATE OR REPLACE {table} SET {COLUMNS[part][at]} = ? WHERE {where}"
    problems = change(shutil.copy(made, tmp_path / "run.db"), (statement, value, *row[:n_keys]))
    assert (table, " ".join(map(str, row[:n_keys])), "edited") in told(problems)


@pytest.mark.parametrize("log", LOGS)
def test_any_edit_of_the_letters_is_found(copy, log):
    """Also one that leaves the values as they are, and one that only a lenient reader overlooks."""
    for before, after in (("{", "{ "), ("{", '{"x":1,"x":1,')):
        with closing(sqlite3.connect(copy)) as connection:
            query = "SELECT row, data FROM logs WHERE log = ? ORDER BY row DESC"
            number, text = connection.execute(query, [log]).fetchone()
        update = ("UPDATE logs SET data = ? WHERE log = ? AND row = ?", text.replace(before, after, 1), log, number)
        back = ("UPDATE logs SET data = ? WHERE log = ? AND row = ?", text, log, number)
        assert told(change(copy, update)) == {("logs", f"{log} {number}", "edited")}
        assert change(copy, back) == []


def test_texts_cannot_move_between_two_columns(copy):
    """The lengths are hashed, too."""
    with closing(sqlite3.connect(copy)) as connection:
        raw = connection.execute("SELECT raw_response FROM attempts WHERE attempt_id = 1").fetchone()[0]
    split = ("UPDATE attempts SET request = ?, raw_response = ? WHERE attempt_id = 1", raw[:4], raw[4:])
    assert told(change(copy, split)) == {("attempts", "1", "edited")}


@settings(max_examples=30, deadline=None, suppress_health_check=BUSY)
@given(data=st.data())
def test_rows_that_are_removed_added_or_exchanged_are_found(made, tmp_path, data):
    log = data.draw(st.sampled_from(LOGS))
    count = len(rows_of(made, log))
    number = data.draw(st.integers(1, count))
    way = data.draw(st.sampled_from(["delete", "truncate", "append", "exchange"]))
    if way == "delete":
        statements = [("DELETE FROM logs WHERE log = ? AND row = ?", log, number)]
        expected = {(number, "missing")}
    elif way == "truncate":
        statements = [("DELETE FROM logs WHERE log = ? AND row >= ?", log, number)]
        expected = {(at, "missing") for at in range(number, count + 1)}
    elif way == "append":
        statements = [("INSERT INTO logs SELECT log, row + 1, data FROM logs WHERE log = ? AND row = ?", log, count)]
        expected = {(count + 1, "added")}
    else:
        other = data.draw(st.integers(1, count).filter(lambda n: n != number))
        swap = "UPDATE logs SET row = ? WHERE log = ? AND row = ?"
        statements = [(swap, -1, log, number), (swap, number, log, other), (swap, other, log, -1)]
        expected = {(number, "edited"), (other, "edited")}
    problems = change(shutil.copy(made, tmp_path / "run.db"), *statements)
    assert told(problems) == {("logs", f"{log} {at}", kind) for at, kind in expected}


def test_a_chain_that_was_made_again_does_not_fit_the_closing(copy):
    with closing(sqlite3.connect(copy)) as connection:
        data = connection.execute("SELECT data FROM chain WHERE entry = 1").fetchone()[0]
    changed = data.replace("20", "19", 1)
    digest = hashlib.sha256(("main" + changed).encode()).hexdigest()
    [problem] = change(copy, ("UPDATE chain SET data = ?, hash = ? WHERE entry = 1", changed, digest))
    assert (problem.table, problem.row, problem.kind) == ("chain", "main 2", "chain")


def test_commands_are_kept_in_their_order_each_once(tmp_path):
    for command, value in (("first", 1), ("second", 2), ("second", 3)):
        with recording(lambda _store, command=command: {"command": command}):
            with open_run(tmp_path / "run.db", write=True) as store:
                store.set_meta("value", value)
    with open_run(tmp_path / "run.db") as store:
        assert [row["command"] for row in store.read_log("commands")] == ["first", "second"]
        assert check_evidence(store).problems == []


def test_a_command_whose_change_failed_is_written_with_the_next_one(tmp_path):
    def fails(store):
        with store.writer.changing() as change:
            change.set_fact("value", 1)
            change.finish()
            raise KeyError("value")

    with recording(lambda _store: {"command": "first"}), open_run(tmp_path / "run.db", write=True) as store:
        with pytest.raises(KeyError):
            fails(store)
        assert store.read_log("commands") == []
        store.set_meta("value", 2)
        assert [row["command"] for row in store.read_log("commands")] == ["first"]
        assert check_evidence(store).problems == []


def test_many_rows_are_entries_of_so_many_each_and_commands_are_numbered(tmp_path, monkeypatch):
    monkeypatch.setattr("pairscale.store.chain._CHUNK", 3)
    for command in ("first", "second"):
        with recording(lambda _store, command=command: {"command": command}):
            with open_run(tmp_path / "run.db", write=True) as store:
                store.add_items([{"ID": f"{command} {n}", "text": "x"} for n in range(7)])
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        entries = [json.loads(data) for (data,) in connection.execute("SELECT data FROM chain ORDER BY entry")]
        numbers = connection.execute("SELECT row FROM logs WHERE log = 'commands' ORDER BY row").fetchall()
    sizes = [len(entry["rows"]["items"]) for entry in entries if "items" in entry.get("rows", {})]
    assert sizes == [3, 3, 1] * 2
    assert numbers == [(1,), (2,)]
