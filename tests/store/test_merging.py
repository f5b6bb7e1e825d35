"""Several run files become one, and nothing of any of them is lost or changed."""

import json
import shutil
import sqlite3
import tracemalloc
from collections import Counter
from contextlib import closing

import polars as pl
import pytest

import pairscale as ps
from pairscale.collect import taken_over
from pairscale.collect.batch.registry import EVENTS
from pairscale.core.errors import InputError, StoreBusyError, StoreDamagedError, StoreMismatchError
from pairscale.people import LabelStore, read_cases
from pairscale.store._hashes import HASHED, UNHASHED_FACTS
from pairscale.store._merging import _PAIR_NUMBERS, Numbers, expanded
from pairscale.store.chain import stored_rows
from pairscale.store.runfile import open_run
from tests.runtime.server import Server
from tests.runtime.workflows import WORKFLOWS, Call

ITEMS = [{"ID": i, "text": f"text {i}", "theta_true": float(n)} for n, i in enumerate("abcdefg")]
PAIRS = ps.make_pairs(ITEMS)
FAILING = {"a", "b"}


class Priced:
    """Costs a cent per answer, and fails where it is told to."""

    condition = ps.Condition("priced")

    def __init__(self, failing=()):
        self.failing = set(failing)

    def max_cost_of(self, _pair):
        return 0.01

    async def compare(self, pair):
        ids = {pair.first["ID"], pair.second["ID"]}
        if ids <= self.failing:
            return ps.Verdict.fail("refusal", "no", failure="question", cost=0.01)
        return ps.Verdict.win(1 if pair.first["ID"] < pair.second["ID"] else 2, cost=0.01)


def judged(path, pairs=PAIRS, judge=None):
    ps.submit_pairs(pairs, judge or Priced(), run=path, progress=False, concurrency=2)
    return path


@pytest.fixture
def halves(tmp_path):
    return [judged(tmp_path / "one.db", PAIRS.head(12)), judged(tmp_path / "two.db", PAIRS.tail(9))]


def test_nothing_is_lost(halves, tmp_path):
    found = ps.merge(halves, tmp_path / "both.db")
    assert found.counts == {"items": 7, "pairs": 21, "attempts": 21, "comparisons": 21}
    assert found.sources["shared"].sum() == found.sources["repeats"].sum() == 0
    whole = ps.submit_pairs(PAIRS, Priced(), run=tmp_path / "both.db", progress=False)
    assert whole.asked == 0
    with open_run(tmp_path / "both.db") as store:
        assert store.spent() == pytest.approx(0.21)
    parts = [ps.submit_pairs(PAIRS, Priced(), run=run, progress=False).results for run in halves]
    assert parts[0].height == parts[1].height == 21  # the halves stay usable
    report = ps.audit(tmp_path / "both.db")
    assert report.passed, report
    assert ps.merge([tmp_path / "both.db", *halves], tmp_path / "again.db").counts["items"] == 7
    assert ps.audit(tmp_path / "again.db").passed


@pytest.mark.slow
def test_rows_are_not_held_in_memory(tmp_path):
    """Two files of 2,000 pairs with 10 kB each, which are 40 MB together."""
    texts = [{"ID": f"t{n:03}", "text": "words"} for n in range(90)]
    pairs = ps.make_pairs(texts).head(4_000).with_columns(note=pl.lit("x" * 10_000))
    halves = [judged(tmp_path / "one.db", pairs.head(2_000)), judged(tmp_path / "two.db", pairs.tail(2_000))]
    tracemalloc.start()
    try:
        ps.merge(halves, tmp_path / "both.db")
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()


def test_a_copy_that_was_continued_is_counted_once(halves, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(halves[0], copy)
    judged(copy)
    found = ps.merge([halves[0], copy], tmp_path / "both.db")
    assert found.sources["shared"].to_list() == [0, 12]
    assert found.counts["attempts"] == 21
    with open_run(tmp_path / "both.db") as store:
        assert store.spent() == pytest.approx(0.21)
    assert ps.audit(tmp_path / "both.db").passed


def test_two_answers_to_a_pair_are_both_kept(tmp_path, caplog):
    runs = [judged(tmp_path / f"{name}.db", PAIRS.head(5)) for name in "ab"]
    found = ps.merge(runs, tmp_path / "both.db")
    assert found.sources["repeats"].to_list() == [0, 5]
    assert "5 pairs were answered in more than one file" in caplog.text
    assert found.counts == {"items": 6, "pairs": 10, "attempts": 10, "comparisons": 10}
    assert ps.audit(tmp_path / "both.db").passed
    with open_run(tmp_path / "both.db") as store:
        assert Counter(store.results().select("ID1", "ID2").rows()) == dict.fromkeys(
            PAIRS.head(5).select("ID1", "ID2").rows(), 2
        )


@pytest.mark.parametrize("turned", [False, True])
def test_a_failure_gives_way_to_an_answer(tmp_path, turned):
    one = judged(tmp_path / "one.db", judge=Priced(FAILING))
    two = judged(tmp_path / "two.db", PAIRS.filter((pl.col("ID1") == "a") & (pl.col("ID2") == "b")))
    three = judged(tmp_path / "three.db", judge=Priced(FAILING | {"c"}))
    found = ps.merge([two, one] if turned else [one, two], tmp_path / "both.db")
    assert found.counts["comparisons"] == 21
    assert found.counts["attempts"] == 22
    assert ps.audit(tmp_path / "both.db").passed
    result = ps.submit_pairs(PAIRS, Priced(), run=tmp_path / "both.db", progress=False)
    assert (result.asked, result.results.height, result.failed_attempts.height) == (0, 21, 1)
    ps.merge([three, one], tmp_path / "failed.db")
    assert ps.audit(tmp_path / "failed.db").passed
    asked = ps.submit_pairs(PAIRS, Priced(), run=tmp_path / "failed.db", progress=False).asked
    assert asked == 1  # a and b failed in both; answers of the merged run replace its failures
    assert ps.audit(tmp_path / "failed.db").passed


def rechain(path):
    """Recompute the chain of the merged file, and leave those of its sources as they are."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM chain WHERE chain = 'main'")
        connection.execute("DELETE FROM metadata WHERE key = 'closed'")
    with open_run(path, write=True) as store, store.writer.changing() as change:
        for table in HASHED:
            for hashed in stored_rows(change.connection, table):
                if table.name != "metadata" or hashed[0][1][0] not in UNHASHED_FACTS:
                    change.links.add(hashed)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE attempts SET cost = 0 WHERE attempt_id = 15",
            "attempts, row 3: the row was changed (as two.db held it)",
        ),
        ("UPDATE comparisons SET winner_pos = 2, better_id = 'c' WHERE comparison_id = 2", "as one.db held it"),
        ("DELETE FROM comparisons WHERE comparison_id = 20", "comparisons, row 8: the row is missing (as two.db"),
        ("UPDATE conditions SET judge_id = 'another'", "as one.db held it"),
        ("UPDATE pairs SET columns = '{\"x\": 1}' WHERE pair_id = 20", "pairs, row 8: the row was changed (as two.db"),
        ("UPDATE chain SET data = data || ' ' WHERE chain = '2/main' AND entry = 2", "chain, row 2/main 2: "),
    ],
)
def test_what_differs_from_a_source_is_found(halves, tmp_path, statement, words):
    both = tmp_path / "both.db"
    ps.merge(halves, both)
    with closing(sqlite3.connect(both)) as connection, connection:
        assert connection.execute(statement).rowcount > 0
    assert not ps.audit(both).passed
    rechain(both)
    report = ps.audit(both)
    assert any(words in problem for problem in report.problems), report


def test_the_digest_of_a_source_is_known(halves, tmp_path):
    ps.merge(halves, tmp_path / "both.db")
    report = ps.audit(tmp_path / "both.db", digest=ps.status(halves[0]).digest)
    assert report.problem.endswith("is that of one.db, one of the files that this run file was merged from")


def test_a_merged_run_is_exported_and_imported(halves, tmp_path):
    ps.merge(halves, tmp_path / "both.db")
    ps.export(tmp_path / "both.db", tmp_path / "both.csv")
    assert ps.import_run(tmp_path / "both.csv", tmp_path / "back.db", ITEMS) == 21
    assert ps.audit(tmp_path / "back.db").passed


def test_an_adaptive_run_keeps_its_history(tmp_path):
    options = {"judge": ps.SimulatedJudge("theta_true", seed=1), "progress": "none", "fit_fn": "laplace"}
    ps.adaptive_rank(ITEMS, run=tmp_path / "one.db", n_steps=8, **options)
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    ps.adaptive_rank(ITEMS, run=tmp_path / "two.db", n_steps=5, **options)
    given = judged(tmp_path / "given.db", PAIRS.head(4))
    found = ps.merge([tmp_path / "one.db", given, tmp_path / "two.db"], tmp_path / "all.db")
    assert found.counts["comparisons"] == 13 + 4
    report = ps.audit(tmp_path / "all.db")
    assert report.passed, report
    assert report.steps == 13
    ps.adaptive_rank(ITEMS, run=tmp_path / "all.db", n_steps=3, **options)
    assert ps.audit(tmp_path / "all.db").steps == 16
    ps.adaptive_rank(ITEMS, run=tmp_path / "one.db", n_steps=4, **options)  # at another time
    with pytest.raises(StoreMismatchError, match=r"^one\.db and two\.db are two adaptive runs"):
        ps.merge([tmp_path / "one.db", tmp_path / "two.db"], tmp_path / "no.db")
    assert not list(tmp_path.glob("no.db*"))
    for name in ("one", "two"):  # the way that the message names
        ps.export(tmp_path / f"{name}.db", tmp_path / f"{name}.csv")
        (tmp_path / f"{name}.csv.logs.jsonl").unlink()
        ps.import_run(tmp_path / f"{name}.csv", tmp_path / f"{name}-given.db", ITEMS)
    assert ps.merge([tmp_path / "one-given.db", tmp_path / "two-given.db"], tmp_path / "g.db").counts[
        "comparisons"
    ] == (
        ps.status(tmp_path / "one.db").counts["comparisons"] + ps.status(tmp_path / "two.db").counts["comparisons"] - 8
    )


def test_labels_of_people(tmp_path):
    PAIRS.head(6).write_csv(tmp_path / "pairs.csv")
    cases = read_cases(tmp_path / "pairs.csv")

    def labelled(run, person, n, at):
        with LabelStore(tmp_path / run, cases, labellers=[person], seed=1, clock=lambda: at) as store:
            who = next(one for one in store.labellers() if one.name == person)
            for _ in range(n):
                store.answer(who, store.next(who).question_id, "1", comment=person)
            if n > 1:
                store.undo(who)
        return tmp_path / run

    ann, bob = labelled("ann.db", "ann", 4, 0.0), labelled("bob.db", "bob", 2, 9.0)
    found = ps.merge([ann, bob], tmp_path / "both.db")
    assert found.sources["labels"].to_list() == [3, 1]
    with open_run(tmp_path / "both.db") as store:
        assert Counter(store.labels()["labeller"]) == {"ann": 3, "bob": 1}
    assert ps.audit(tmp_path / "both.db").passed
    assert (tmp_path / "both.db").stat().st_mode & 0o077 == 0
    shutil.copy(ann, tmp_path / "copy.db")
    labelled("copy.db", "ann", 2, 20.0)
    assert ps.merge([ann, tmp_path / "copy.db"], tmp_path / "more.db").sources["labels"].to_list() == [3, 4]
    assert ps.audit(tmp_path / "more.db").passed
    with pytest.raises(StoreMismatchError, match=r"^ann has labelled the case .* in other\.db and in a file before it"):
        ps.merge([ann, labelled("other.db", "ann", 1, 30.0)], tmp_path / "no.db")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WORKFLOWS if name not in {"adaptive", "people"}])
def test_every_kind_of_run(name, tmp_path):
    runs = [tmp_path / "one.db", tmp_path / "two.db"]
    with Server() as server:
        for run in runs:
            WORKFLOWS[name](Call(run=str(run), url=server.url))
    spent = attempts = comparisons = 0
    for run in runs:
        with open_run(run) as store:
            spent += store.spent()
            attempts += store.counts()["attempts"]
            comparisons += store.counts()["comparisons"]
    found = ps.merge(runs, tmp_path / "both.db")
    assert (found.counts["attempts"], found.counts["comparisons"]) == (attempts, comparisons)
    with open_run(tmp_path / "both.db") as store:
        assert store.spent() == pytest.approx(spent)
    report = ps.audit(tmp_path / "both.db")
    assert report.passed, report


def test_what_cannot_be_one_is_refused(halves, tmp_path):
    other = [item | {"text": "another"} if item["ID"] == "c" else item for item in ITEMS]
    text = judged(tmp_path / "text.db", ps.make_pairs(other))
    with pytest.raises(StoreMismatchError, match=r"^'c' is another text in text\.db than in 'one\.db'|^c is another"):
        ps.merge([halves[0], text], tmp_path / "no.db")
    named = PAIRS.head(2).with_columns(pair_uid=pl.Series(["x", "y"]))
    runs = [
        judged(tmp_path / "n1.db", named),
        judged(tmp_path / "n2.db", named.reverse().with_columns(pair_uid=pl.Series(["x", "y"]))),
    ]
    with pytest.raises(StoreMismatchError, match=r"^the pair 'x' is 'a', 'c' in n2\.db and 'a', 'b' in a file before"):
        ps.merge(runs, tmp_path / "no.db")
    columns = judged(tmp_path / "columns.db", ps.make_pairs([item | {"theta_true": 5.0} for item in ITEMS]))
    with pytest.raises(StoreMismatchError, match=r"has other columns in columns\.db than in one\.db"):
        ps.merge([halves[0], columns], tmp_path / "no.db")
    with closing(sqlite3.connect(text)) as connection, connection:
        connection.execute("UPDATE attempts SET cost = 0")
    with pytest.raises(StoreDamagedError, match=r"text\.db is not as it was written \(attempts, row 1: the row was"):
        ps.merge([halves[0], text], tmp_path / "no.db")
    with pytest.raises(StoreMismatchError, match="holds a run already; name a new file"):
        ps.merge(halves, runs[0])
    with pytest.raises(InputError, match="two or more"):
        ps.merge([halves[0]], tmp_path / "no.db")
    with pytest.raises(InputError, match="named twice"):
        ps.merge([halves[0], halves[0]], tmp_path / "no.db")
    with pytest.raises(InputError, match="one of the run files to merge"):
        ps.merge(halves, halves[1])
    assert not list(tmp_path.glob("no.db*"))
    with open_run(tmp_path / "busy.db", write=True), pytest.raises(StoreBusyError):
        ps.merge(halves, tmp_path / "busy.db")
    assert (tmp_path / "busy.db").exists()


def test_conditions_of_one_id_must_be_the_same(tmp_path, halves):
    table = ps.submit_pairs(PAIRS.head(1), Priced(), progress=False).results.with_columns(judge_id=pl.lit("else"))
    ps.import_run(table, tmp_path / "imported.db", ITEMS)
    with pytest.raises(StoreMismatchError, match=r"^the condition \w{8} of else has another .*judge_id.* in imported"):
        ps.merge([halves[0], tmp_path / "imported.db"], tmp_path / "no.db")


def test_numbers_in_ranges():
    numbers = {1: 5, 2: 6, 3: 9, 7: 10, 8: 11}
    found = Numbers(numbers.items())
    assert found.ranges == [[1, 5, 2], [3, 9, 1], [7, 10, 2]]
    assert expanded(found.ranges) == {new: old for old, new in numbers.items()}
    assert [found.get(old) for old in range(10)] == [numbers.get(old) for old in range(10)]
    assert len(found) == 5
    with pytest.raises(KeyError):
        found[4]


def test_the_logs_that_hold_numbers_of_pairs_are_known():
    assert set(_PAIR_NUMBERS) == {EVENTS, taken_over._LOG}


def test_exports_lose_nothing_but_what_they_say(tmp_path, halves):
    """Every table of a run, before and after; texts come from the samples, requests and replies are left out."""
    ps.export(halves[0], tmp_path / "out.parquet")
    ps.import_run(tmp_path / "out.parquet", tmp_path / "back.db", ITEMS)
    with open_run(halves[0]) as one, open_run(tmp_path / "back.db") as two:
        with one.transaction() as first, two.transaction() as second:
            for table in HASHED:
                rows = [list(stored_rows(at, table)) for at in (first, second)]
                left_out = {"attempts.reply", "items.columns"}
                kept = [
                    [[part for part in row if part[0] not in left_out] for row in side
                     if table.name != "metadata" or row[0][1][0] not in UNHASHED_FACTS]
                    for side in rows
                ]  # fmt: skip
                assert json.dumps(kept[0]) == json.dumps(kept[1]), table.name
