"""The audit: every forgery in every kind of run is found and named, and no other run is suspected."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import FileFormatError, InputError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.people import LabelStore, read_cases
from pairscale.store.chain import digest_of_heads, heads_of
from tests.runtime.server import Asked, Reply, Server
from tests.runtime.workflows import WORKFLOWS, Call
from tests.store.forging import rechain

KINDS = ("pairs", "batch", "adaptive", "ab", "study", "people", "labels")
JUDGED = KINDS[:-1]
ASKED = KINDS[:-2]  # of a model


def failing(asked: Asked) -> Reply | None:
    """One text is refused, so that there are attempts in vain."""
    return Reply(400, {"message": "too long", "code": "context_length_exceeded"}) if "t02" in asked.texts else None


def labelled(run: Path) -> None:
    pairs = ps.make_pairs([{"ID": f"t{n}", "text": f"Text {n}"} for n in range(4)])
    pairs.write_csv(run.with_suffix(".csv"))
    with LabelStore(run, read_cases(run.with_suffix(".csv")), labellers=["ann", "ben"], seed=3) as store:
        for person in store.labellers():
            for at in range(5):
                question = store.next(person)
                choice = None if at == 3 else "tie" if at == 2 else "1"
                store.answer(person, question.question_id, choice, skipped="unsure" if at == 3 else None, comment="so")
            store.undo(person)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A finished run of a kind; each is made once."""
    folder = tmp_path_factory.mktemp("audited")

    @cache
    def make(kind: str) -> Path:
        run = folder / f"{kind}.db"
        if kind == "labels":
            labelled(run)
        else:
            with Server(failing) as server:
                WORKFLOWS[kind](Call(run=str(run), url=server.url, questions=16))
        with closing(sqlite3.connect(run)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
        return run

    return make


@pytest.fixture
def copied(made: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda kind: Path(shutil.copy(made(kind), tmp_path / f"{kind}.db"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_nobody_touched_passes(copied: Callable[[str], Path], kind: str) -> None:
    run = copied(kind)
    report = ps.audit(run)
    assert report.passed, report
    assert report.is_replayed == (kind in {"adaptive", "people"})
    assert report.rows["items"] > 0
    assert report.rows["labels" if kind == "labels" else "comparisons"] > 8
    assert str(report).splitlines()[-1] == f"digest {report.digest}"
    assert ps.audit(run, digest=f" {report.digest.upper()} ").passed


# One forgery after the other


@dataclass(frozen=True)
class Forgery:
    """A change by plain SQL, and the row that the audit must name."""

    kinds: tuple[str, ...]
    table: str
    change: str  # what is set; or DELETE
    which: str = "1"

    def make(self, run: Path) -> str:
        """Make it, and return how the row is called."""
        with closing(sqlite3.connect(run)) as connection, connection:
            keys = [row[1] for row in connection.execute(f"PRAGMA table_info({self.table})") if row[5]]
            query = f"SELECT rowid, {', '.join(keys)} FROM {self.table} WHERE {self.which} ORDER BY rowid LIMIT 2"
            number, *key = connection.execute(query).fetchall()[-1]
            if self.change == "DELETE":
                connection.execute(f"DELETE FROM {self.table} WHERE rowid = ?", [number])
            else:
                done = connection.execute(f"UPDATE {self.table} SET {self.change} WHERE rowid = ?", [number])
                assert done.rowcount == 1
        return f"{self.table}, row {' '.join(map(str, key))}: "


WON = "outcome = 'win'"
OTHER_ID = (
    "(SELECT CASE better_id WHEN p.ID1 THEN p.ID2 ELSE p.ID1 END FROM pairs p WHERE p.pair_id = comparisons.pair_id)"
)
FORGERIES = {
    "a text": Forgery(KINDS, "items", "text = text || ' And more.'"),
    "a text and its hash": Forgery(KINDS, "items", "text = 'x', text_hash = lower(hex(randomblob(32)))"),
    "a text that is no text": Forgery(KINDS, "items", "text = x'fffe'"),
    "a text gone": Forgery(KINDS, "items", "DELETE"),
    "a pair turned round": Forgery(JUDGED, "pairs", "ID1 = ID2, ID2 = ID1"),
    "the name of a question": Forgery(JUDGED, "pairs", "custom_id = custom_id || 'x'"),
    "the prompt": Forgery(ASKED, "attempts", "prompt_hash = lower(hex(randomblob(32)))", "prompt_hash IS NOT NULL"),
    "the reply": Forgery(ASKED, "attempts", "content = replace(content, 'SAMPLE_1', 'SAMPLE_2') || ' '", WON),
    "the raw reply": Forgery(ASKED, "attempts", "raw_response = '{}'", "raw_response IS NOT NULL"),
    "the raw reply gone": Forgery(ASKED, "attempts", "raw_response = NULL", "raw_response IS NOT NULL"),
    "tokens": Forgery(ASKED, "attempts", "prompt_tokens = prompt_tokens + 1", WON),
    "a cost": Forgery(ASKED, "attempts", "cost = cost / 2", "cost > 0"),
    "a cost gone": Forgery(ASKED, "attempts", "cost = NULL", "cost > 0"),
    "a cost that is no number": Forgery(ASKED, "attempts", "cost = 'little'", "cost > 0"),
    "the model that answered": Forgery(ASKED, "attempts", "model = 'gpt-9'", WON),
    "an error": Forgery(ASKED, "attempts", "error_message = 'the dog'", "error_code IS NOT NULL"),
    "an error made an answer": Forgery(
        ASKED, "attempts", "outcome = 'win', error_code = NULL", "error_code IS NOT NULL"
    ),
    "when it was asked": Forgery(JUDGED, "attempts", "attempted_at = '2020-01-01T00:00:00.000000+00:00'"),
    "an attempt dropped": Forgery(JUDGED, "attempts", "DELETE"),
    "an attempt in vain dropped": Forgery(ASKED, "attempts", "DELETE", "error_code IS NOT NULL"),
    "a winner": Forgery(JUDGED, "comparisons", f"winner_pos = 3 - winner_pos, better_id = {OTHER_ID}", WON),
    "a winner by its name alone": Forgery(JUDGED, "comparisons", f"better_id = {OTHER_ID}", WON),
    "an outcome": Forgery(JUDGED, "comparisons", "outcome = 'tie', winner_pos = NULL, better_id = NULL", WON),
    "a probability": Forgery(JUDGED, "comparisons", "probability = 0.25"),
    "a comparison dropped": Forgery(JUDGED, "comparisons", "DELETE"),
    "a fact": Forgery(("adaptive",), "metadata", "value = '[]'", "key IN ('adaptive', 'adaptive_condition')"),
    "a belief": Forgery(("adaptive",), "blobs", "data = x'00'"),
    "a belief gone": Forgery(("adaptive",), "blobs", "DELETE"),
    "an answer of a variant": Forgery(
        ("ab",), "logs", "data = replace(data, 'A text', 'The text')", "log = 'ab_answers'"
    ),
    "a label": Forgery(("labels",), "labels", "preferred = 3 - preferred", "preferred <> 'tie'"),
    "a label made a skip": Forgery(("labels",), "labels", "preferred = NULL, skipped = 'x'", "preferred <> 'tie'"),
    "a skip made a label": Forgery(("labels",), "labels", "preferred = '1', skipped = NULL", "skipped IS NOT NULL"),
    "a comment": Forgery(("labels",), "labels", "comment = 'not so'"),
    "a label taken back": Forgery(("labels",), "labels", "undone_at = labelled_at", "undone_at IS NULL"),
    "a label dropped": Forgery(("labels",), "labels", "DELETE"),
    "a side": Forgery(("labels",), "label_questions", "swapped = 1 - swapped"),
    "a labeller": Forgery(("labels",), "labellers", "name = 'eve'"),
    "a criterion": Forgery(("labels",), "label_cases", "criterion = 'shorter'"),
    "the number of labels": Forgery(("labels",), "label_cases", "n_labels = n_labels + 1"),
    "an entry of the chain": Forgery(KINDS, "chain", "data = replace(data, 'a', 'b')"),
    "an entry of the chain gone": Forgery(KINDS, "chain", "DELETE"),
    "a hash of the chain": Forgery(KINDS, "chain", "hash = lower(hex(randomblob(32)))"),
}
CASES = [(name, kind) for name, forgery in FORGERIES.items() for kind in forgery.kinds]


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name}-{kind}" for name, kind in CASES])
def test_a_forgery_is_found_and_named(copied: Callable[[str], Path], name: str, kind: str) -> None:
    run = copied(kind)
    row = FORGERIES[name].make(run)
    report = ps.audit(run)
    assert not report.passed
    assert [problem for problem in report.problems if problem.startswith(row)], (row, report)
    assert report.problem in str(report)
    if FORGERIES[name].table not in {"chain", "pairs"} and FORGERIES[name].change != "DELETE":
        assert len(report.problems) == 1, report  # nothing else is suspected


@pytest.mark.parametrize("column", ["model", "trait", "template_id", "judge_id", "backend", "settings"])
@pytest.mark.parametrize("kind", ["pairs", "batch", "adaptive", "ab"])
def test_a_forged_condition_is_found(copied: Callable[[str], Path], kind: str, column: str) -> None:
    """The settings hold the hash of the template's text."""
    run = copied(kind)
    value = "replace(settings, '\"template\"', '\"temperature\"')" if column == "settings" else "'another'"
    with closing(sqlite3.connect(run)) as connection, connection:
        [[name]] = connection.execute("SELECT condition_id FROM conditions").fetchall()
        connection.execute(f"UPDATE conditions SET {column} = {value}")
    assert ps.audit(run).problems == (f"conditions, row {name}: the row was changed",)


def first_log(connection: sqlite3.Connection) -> tuple[str, int]:
    """The log with the most rows."""
    query = "SELECT log, count(*) FROM logs GROUP BY log ORDER BY 2 DESC, 1 LIMIT 1"
    return connection.execute(query).fetchone()


LOGGED = ("batch", "adaptive", "ab", "people")


def edited(connection: sqlite3.Connection, log: str, n: int) -> list[int]:
    connection.execute("UPDATE logs SET data = json_set(data, '$.forged', 1) WHERE log = ? AND row = 2", [log])
    return [2]


def respelled(connection: sqlite3.Connection, log: str, n: int) -> list[int]:
    connection.execute("UPDATE logs SET data = replace(data, '\":', '\" :') WHERE log = ? AND row = 2", [log])
    return [2]


def deleted(connection: sqlite3.Connection, log: str, n: int) -> list[int]:
    connection.execute("DELETE FROM logs WHERE log = ? AND row = 2", [log])
    return [2]


def truncated(connection: sqlite3.Connection, log: str, n: int) -> list[int]:
    connection.execute("DELETE FROM logs WHERE log = ? AND row > ?", [log, n - 2])
    return [n - 1, n]


def inserted(connection: sqlite3.Connection, log: str, n: int) -> list[int]:
    connection.execute("INSERT INTO logs SELECT log, ?, data FROM logs WHERE log = ? AND row = 2", [n + 1, log])
    return [n + 1]


def reordered(connection: sqlite3.Connection, log: str, n: int) -> list[int]:
    for before, after in ((1, -1), (2, 1), (-1, 2)):
        connection.execute("UPDATE logs SET row = ? WHERE log = ? AND row = ?", [after, log, before])
    return [1, 2]


def unreadable(connection: sqlite3.Connection, log: str, n: int) -> list[int]:
    connection.execute("UPDATE logs SET data = '{\"half' WHERE log = ? AND row = 1", [log])
    connection.execute("UPDATE logs SET data = x'ff00' WHERE log = ? AND row = 2", [log])
    connection.execute("UPDATE logs SET data = 7 WHERE log = ? AND row = 3", [log])
    return [1, 2, 3]


@pytest.mark.parametrize("forge", [edited, respelled, deleted, truncated, inserted, reordered, unreadable])
@pytest.mark.parametrize("kind", LOGGED)
def test_a_forged_log_is_found(copied: Callable[[str], Path], kind: str, forge: Any) -> None:
    run = copied(kind)
    with closing(sqlite3.connect(run)) as connection, connection:
        log, n = first_log(connection)
        rows = forge(connection, log, n)
    report = ps.audit(run)
    assert [problem.split(":")[0] for problem in report.problems] == [f"logs, row {log} {row}" for row in rows]


@pytest.mark.parametrize("kind", LOGGED)
def test_rows_of_another_run_are_found(copied: Callable[[str], Path], kind: str, tmp_path: Path) -> None:
    """The same run of another day: both are whole, and a row of one is put into the other."""
    run, other = copied(kind), tmp_path / "other.db"
    with Server(failing) as server:
        WORKFLOWS[kind](Call(run=str(other), url=server.url, questions=16))
    assert ps.audit(other).passed
    with closing(sqlite3.connect(run)) as connection, connection:
        connection.execute("ATTACH ? AS other", [str(other)])
        both = "SELECT log, row FROM logs JOIN other.logs AS o USING (log, row) WHERE logs.data <> o.data"
        log, n = connection.execute(both).fetchone()
        query = "SELECT data FROM other.logs WHERE log = ? AND row = ?"
        connection.execute(f"UPDATE logs SET data = ({query}) WHERE log = ? AND row = ?", [log, n, log, n])
        connection.execute("UPDATE comparisons SET received_at = (SELECT max(received_at) FROM other.comparisons)")
    problems = ps.audit(run).problems
    assert f"logs, row {log} {n}: the row was changed" in problems
    with closing(sqlite3.connect(run)) as connection:
        assert len(problems) == 1 + connection.execute("SELECT count(*) FROM comparisons").fetchone()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_cut_short_is_found_by_the_digest_of_its_end(copied: Callable[[str], Path], kind: str) -> None:
    """Rows and the chain end early together, as if the process had been killed; but it had closed the file."""
    run = copied(kind)
    with closing(sqlite3.connect(run)) as connection, connection:
        entries = connection.execute("SELECT entry, data FROM chain ORDER BY entry DESC").fetchall()
        for number, data in entries[:3]:
            for part, links in json.loads(data).get("rows", {}).items():
                table = part.split(".")[0]
                keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
                where = " AND ".join(f"{key} = ?" for key in keys)
                for link in links:
                    connection.execute(f"DELETE FROM {table} WHERE {where}", link[:-1])
            connection.execute("DELETE FROM chain WHERE entry = ?", [number])
        connection.execute("UPDATE label_cases SET n_labels = 0")
    report = ps.audit(run)
    assert report.problem == "metadata, row closed: the chain has no entry of this closing"
    assert report.digest is None


def test_an_end_that_was_cut_off_with_every_trace_of_its_closing_is_found_by_closed(tmp_path: Path) -> None:
    run = tmp_path / "run.db"
    ps.judge(ps.make_pairs(ps.synthetic_essays(3, seed=1)), judge="lexical", run=run, progress=False)
    assert ps.audit(run, closed=True).passed
    with closing(sqlite3.connect(run)) as connection, connection:
        connection.execute("DELETE FROM chain WHERE entry = (SELECT max(entry) FROM chain)")
        connection.execute("DELETE FROM metadata WHERE key = 'closed'")
    assert ps.audit(run).passed
    report = ps.audit(run, closed=True)
    assert report.problems == (
        "the run file is not closed: it is being written, its process was killed, or its end was cut off",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_entry_of_the_chain_cannot_be_removed_alone(copied: Callable[[str], Path], kind: str) -> None:
    run = copied(kind)
    with closing(sqlite3.connect(run)) as connection, connection:
        connection.execute("DELETE FROM chain WHERE entry = (SELECT max(entry) FROM chain)")
    assert ps.audit(run).problems == ("metadata, row closed: the chain has no entry of this closing",)


@pytest.mark.parametrize("value", ["[]", '{"a":1}', '"x"', "null", "7.5", "{", ""])
def test_a_version_that_is_none_is_an_error_in_words(copied: Callable[[str], Path], value: str) -> None:
    run = copied("pairs")
    with closing(sqlite3.connect(run)) as connection, connection:
        connection.execute("UPDATE metadata SET value = ? WHERE key = 'schema_version'", [value])
    with pytest.raises(StoreError):
        ps.audit(run)


@pytest.mark.parametrize("kind", JUDGED)
def test_an_answer_that_was_never_given_is_found(copied: Callable[[str], Path], kind: str) -> None:
    run = copied(kind)
    with closing(sqlite3.connect(run)) as connection, connection:
        for table, keys in {"pairs": "pair_id", "attempts": "attempt_id", "comparisons": "comparison_id"}.items():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            changed = {keys: "9000", "pair_id": "9000", "attempt_id": "9000", "custom_id": "'forged'"}
            values = ", ".join(changed.get(name, name) for name in columns)
            connection.execute(f"INSERT INTO {table} SELECT {values} FROM {table} LIMIT 1")
    assert ps.audit(run).problems == tuple(
        f"{table}, row 9000: the row was not written by pairscale" for table in ("pairs", "attempts", "comparisons")
    )


# Forgers who compute all hashes again


def unfounded(run: Path, statement: str) -> tuple[str, ...]:
    with closing(sqlite3.connect(run)) as connection, connection:
        assert connection.execute(statement).rowcount >= 1
    rechain(run)
    return ps.audit(run).problems


FIRST = f"comparison_id = (SELECT min(comparison_id) FROM comparisons WHERE {WON})"


@pytest.mark.parametrize(
    ("kind", "statement", "words"),
    [
        ("pairs", f"UPDATE comparisons SET better_id = 'eve' WHERE {FIRST}", "does not follow"),
        ("ab", f"UPDATE comparisons SET outcome = 'tie', better_id = NULL WHERE {FIRST}", "does not follow"),
        ("batch", f"UPDATE comparisons SET probability = 7 WHERE {FIRST}", "does not follow"),
        ("pairs", f"UPDATE comparisons SET attempt_id = 999 WHERE {FIRST}", "does not follow"),
        ("pairs", f"UPDATE comparisons SET pair_id = 999 WHERE {FIRST}", "does not follow"),
        (
            "pairs",
            f"UPDATE comparisons SET winner_pos = 3 - winner_pos, better_id = {OTHER_ID} WHERE {FIRST}",
            "and the reply says SAMPLE_",
        ),
        ("adaptive", """UPDATE logs SET data = json_remove(data, '$.step_id') WHERE log = 'step_log' AND row = 3""",
         "'step_id'"),
        ("adaptive", "UPDATE logs SET data = '[]' WHERE log = 'round_log' AND row = 1", ""),
        ("adaptive", "UPDATE logs SET data = '{\"a' WHERE log = 'step_log' AND row = 2",
         "does not fit together"),
        ("adaptive", "UPDATE logs SET data = 'null' WHERE log = 'adaptive_events' AND row = 1",
         "does not fit together"),
        ("adaptive", "DELETE FROM logs WHERE log = 'adaptive_events' AND row = 1", "no beginning"),
        ("adaptive", "UPDATE logs SET data = json_set(data, '$.event', 7) WHERE log = 'adaptive_events' AND row = 2",
         "nothing is known of an event 7"),
    ],
)  # fmt: skip
def test_what_does_not_follow_is_found_although_all_hashes_hold(
    copied: Callable[[str], Path], kind: str, statement: str, words: str
) -> None:
    [problem] = unfounded(copied(kind), statement)
    assert words in problem
    assert "KeyError" not in problem


def test_a_file_whose_hashes_were_all_computed_again_has_another_digest(copied: Callable[[str], Path]) -> None:
    run = copied("pairs")
    kept = ps.audit(run).digest
    assert unfounded(run, "UPDATE attempts SET cost = cost / 2") == ()
    assert ps.audit(run, digest=kept).problems == (f"the run file was never closed with the digest {kept}",)
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        ps.audit(run, digest="6f0c")


def test_a_run_that_went_on_has_the_digest_of_before_among_its_own(tmp_path: Path) -> None:
    run, pairs = tmp_path / "run.db", ps.make_pairs(ps.synthetic_essays(4, seed=1))
    ps.submit_pairs(pairs.head(3), "lexical", run=run, progress=False)
    kept = ps.audit(run).digest
    ps.submit_pairs(pairs, "lexical", run=run, progress=False)
    now = ps.audit(run)
    assert now.passed
    assert ps.audit(run, digest=now.digest).passed
    [problem] = ps.audit(run, digest=kept).problems
    assert problem == f"the run file was written to after it was closed with the digest {kept}; it is {now.digest} now"


def test_a_second_entry_of_the_chain_does_not_excuse_a_change(copied: Callable[[str], Path]) -> None:
    """A forger who continues with the chain in the right way: answers, texts and logs are never written twice."""
    run = copied("adaptive")
    with ps.open_run(run, write=True) as store, store.writer.changing() as change:
        from pairscale.store.schema import attempts, logs

        change.connection.exec_driver_sql("UPDATE attempts SET cost = 0 WHERE attempt_id = 1")
        change.changed(attempts, [1])
        change.connection.exec_driver_sql("DELETE FROM logs WHERE log = 'step_log' AND row = 2")
        change.row_hashes.setdefault("logs", []).append(["step_log", 2, None])
        change.changed(logs, ["step_log", 1])
    problems = ps.audit(run).problems
    assert [problem.split(": entry")[0] for problem in problems] == [
        "attempts, row 1", "logs, row step_log 2", "logs, row step_log 1",
    ]  # fmt: skip
    assert "removes it, but it never changes" in problems[1]


@pytest.mark.parametrize("value", ["{", "7", '{"heads":{}}', '{"heads":{"main":[1,"x"]},"digest":"y"}', "[]"])
def test_a_closing_that_was_changed_is_found(copied: Callable[[str], Path], value: str) -> None:
    run = copied("pairs")
    with closing(sqlite3.connect(run)) as connection, connection:
        connection.execute("UPDATE metadata SET value = ? WHERE key = 'closed'", [value])
    assert any(problem.startswith("metadata, row closed: ") for problem in ps.audit(run).problems)


# Export and import


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [(kind, suffix) for kind in KINDS for suffix in ("csv", "xlsx")] + [("pairs", "jsonl"), ("adaptive", "parquet")],
)
def test_an_exported_run_is_audited_where_it_is_imported(
    copied: Callable[[str], Path], tmp_path: Path, kind: str, suffix: str
) -> None:
    run = copied(kind)
    with ps.open_run(run) as store:
        texts = store.items()
    path, before = ps.export(run, tmp_path / f"out.{suffix}"), ps.audit(run)
    ps.import_run(path, tmp_path / "imported.db", texts.select("ID", "text"))
    report = ps.audit(tmp_path / "imported.db")
    assert report.passed, report
    assert report.is_replayed == before.is_replayed
    assert report.rows == {**before.rows, "metadata": before.rows.get("metadata", 0) + 1}  # where it is from
    with ps.open_run(run) as store, store.transaction() as connection:
        assert report.imported == digest_of_heads(heads_of(connection))
    assert ps.import_run(path, tmp_path / "imported.db") == 0  # the same again
    assert ps.audit(tmp_path / "imported.db").passed


def test_an_exported_table_that_was_changed_is_refused(
    message_snapshot, copied: Callable[[str], Path], tmp_path: Path
) -> None:
    run = copied("pairs")
    with ps.open_run(run) as store:
        texts = store.items()
    path = ps.export(run, tmp_path / "out.csv")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3] + lines[4:]))
    with pytest.raises(FileFormatError) as refused:
        ps.import_run(path, tmp_path / "imported.db", texts)
    message_snapshot(refused)
    assert not (tmp_path / "imported.db").exists()
    path.with_name("out.csv.logs.jsonl").unlink()  # the way out: the table alone
    assert ps.import_run(path, tmp_path / "imported.db", texts) == len(lines) - 2


def test_other_texts_are_refused_at_the_import(message_snapshot, copied: Callable[[str], Path], tmp_path: Path) -> None:
    run = copied("pairs")
    with ps.open_run(run) as store:
        texts = store.items().to_dicts()
    path = ps.export(run, tmp_path / "out.csv")
    texts[3]["text"] += " And more."
    with pytest.raises(StoreMismatchError) as refused:
        ps.import_run(path, tmp_path / "imported.db", texts)
    message_snapshot(refused)


# No false alarm


def changes(run: Path) -> Iterator[str]:
    """What happens to run files in daily life."""
    essays = ps.synthetic_essays(8, seed=1)
    options: dict[str, Any] = {"judge": "lexical", "run": run, "fit_fn": "laplace", "progress": "none"}
    ps.adaptive_rank(essays.head(6), n_steps=9, **options)
    yield "begun"
    ps.adaptive_rank(essays.head(6), n_steps=9, concurrency=3, **options)
    yield "resumed"
    ps.adaptive_rank(essays, n_steps=9, **options)
    yield "joined"
    ps.adaptive_rank(essays, n_steps=9, without=[essays["ID"][0]], **options)
    yield "withdrawn"
    folder = run.parent / "session"
    ps.save_adaptive_session(ps.load_adaptive_session(run), folder)
    shutil.copy(folder / "run.db", run)
    yield "saved elsewhere"


@pytest.mark.slow
def test_no_change_of_daily_life_is_suspected(tmp_path: Path) -> None:
    run, digests = tmp_path / "run.db", set()
    for what in changes(run):
        report = ps.audit(run)
        assert report.passed, (what, report)
        digests.add(report.digest)
    assert len(digests) == 4  # a copy has the digest of what it is a copy of
    assert None not in digests


def test_a_question_that_is_asked_again_replaces_its_outcome_in_a_further_entry(tmp_path: Path) -> None:
    run, pairs = tmp_path / "run.db", ps.make_pairs(ps.synthetic_essays(4, seed=1))
    seen: set[str] = set()

    def moody(A: Any, B: Any) -> dict[str, Any]:
        if A["ID"] in seen:
            return {"is_valid": True, "Y": 1}
        seen.add(A["ID"])
        return {"is_valid": False, "invalid_reason": "not today"}

    judge = ps.FunctionJudge(moody, name="moody")
    for _ in range(2):
        ps.submit_pairs(pairs, judge, run=run, concurrency=1, progress=False)
        assert ps.audit(run).passed
    with closing(sqlite3.connect(run)) as connection:
        assert connection.execute("SELECT count(*) FROM chain WHERE data LIKE '%,null]%'").fetchone() == (3,)
        assert connection.execute("SELECT count(*) FROM attempts").fetchone()[0] == pairs.height + 3


@pytest.mark.parametrize("after", [1, 7, 23])
def test_an_audit_of_a_run_in_memory_and_of_one_that_is_not_closed(tmp_path: Path, after: int) -> None:
    with ps.open_run(tmp_path / "run.db", write=True) as store:
        store.add_items({"ID": f"i{n}", "text": f"text {n}"} for n in range(after))
        report = ps.audit(tmp_path / "run.db")
        assert report.passed
        assert report.rows == {"items": after}
        assert str(report).endswith("not closed: it is being written, its process was killed, or its end was cut off")
    assert ps.audit(tmp_path / "run.db").digest is not None


@pytest.mark.parametrize("value", ["7", "9223372036854775807", "[]", '"x"', '{"x": 1}'])
def test_facts_that_cannot_be_read_are_reported_also_when_all_hashes_were_recomputed(
    copied: Callable[[str], Path], value: str
) -> None:
    run = copied("adaptive")
    with closing(sqlite3.connect(run)) as connection, connection:
        done = connection.execute("UPDATE metadata SET value = ? WHERE key = 'adaptive'", [value])
        assert done.rowcount == 1
    rechain(run)
    try:
        problem = ps.audit(run).problem
    except StoreError as error:
        problem = str(error)
    assert problem


# Whoever reads a damaged run file is told so

DAMAGE = {
    "settings of a judge": ("pairs", "UPDATE conditions SET settings = '{'", "conditions, row "),
    "columns of a text": ("pairs", "UPDATE items SET columns = '[]' WHERE item_id = 't03'", "items, row t03: "),
    "tokens": ("pairs", "UPDATE attempts SET prompt_tokens = '{' WHERE attempt_id = 7", "attempts, row 7: "),
    "a name of a judge": ("pairs", "UPDATE conditions SET condition_id = 'x'", "conditions, row x: "),
    "a step": (
        "adaptive",
        "UPDATE logs SET data = '[]' WHERE log = 'round_log' AND row = 1",
        "logs, row round_log 1: ",
    ),
    "a time": ("labels", "UPDATE labels SET decision_ms = ''", "labels, row 1: "),
}


def read_all(store: ps.RunFile) -> list[Any]:
    rounds = [row["round"] for row in store.read_log("round_log")]
    return [rounds, store.results(), store.items(), store.conditions(), store.labels()]


@pytest.mark.parametrize("name", DAMAGE)
def test_who_reads_a_damaged_run_file_is_told_which_row(copied: Callable[[str], Path], name: str) -> None:
    kind, statement, row = DAMAGE[name]
    run = copied(kind)
    with closing(sqlite3.connect(run)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement)
    with pytest.raises(StoreDamagedError) as caught, ps.open_run(run) as store:
        read_all(store)
    assert row in str(caught.value)


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("y"), ValueError("z"), InputError("w")])
def test_an_error_in_reading_an_intact_run_file_stays_what_it_is(
    copied: Callable[[str], Path], error: Exception
) -> None:
    with pytest.raises(type(error)) as caught, ps.open_run(copied("pairs")):
        raise error
    assert caught.value is error
