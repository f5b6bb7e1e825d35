"""Assignment and durability: each case its labels, nobody twice, nothing lost."""

import collections
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelling import make_cases
from sqlalchemy import select

import pairscale as ps
from pairscale.core.errors import (
    InputError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreMismatchError,
    TableError,
)
from pairscale.people import Case, LabelStore, read_cases
from pairscale.people.queue import LabelQuestion, other_side
from pairscale.store.labels import LABELS, label_cases, label_questions, label_results, labellers, labels
from pairscale.store.runfile import open_run


def recount(store: LabelStore) -> collections.Counter:
    return collections.Counter(row["case_id"] for row in store.rows() if row["preferred"] is not None)


def column(store: LabelStore, wanted) -> list:
    """A column of the run file, by the number of the row."""
    with store.run.transaction() as connection:
        return list(connection.execute(select(wanted).order_by(*wanted.table.primary_key)).scalars())


def work_off(store: LabelStore, people: list, rng: random.Random) -> None:
    """Everybody continues, in any order, until nobody gets anything more."""
    idle: set[str] = set()
    while len(idle) < len(people):
        person = rng.choice([one for one in people if one.name not in idle])
        found = store.next(person)
        if isinstance(found, LabelQuestion):
            assert store.answer(person, found.question_id, rng.choice(["1", "2", "tie"]))
        else:
            idle.add(person.name)


# Assignment


@pytest.mark.slow
@given(
    n_cases=st.integers(1, 12),
    n_people=st.integers(1, 5),
    k=st.integers(1, 4),
    seed=st.integers(0, 2**20),
    moves=st.lists(st.tuples(st.integers(0, 4), st.sampled_from("nnaaaasup"), st.integers(0, 40)), max_size=60),
)
@settings(max_examples=60)
def test_each_case_gets_its_labels_and_nobody_sees_one_twice(n_cases, n_people, k, seed, moves):
    now = [0.0]
    with LabelStore(None, make_cases(n_cases), labels_per_case=k, seed=seed, hold=100, clock=lambda: now[0]) as store:
        people = [store.add_labeller(f"p{i}") for i in range(n_people)]
        seen: dict[str, dict[int, str]] = collections.defaultdict(dict)
        for at, move, pause in moves:
            person = people[at % n_people]
            now[0] += pause
            if move == "u":
                before = len(store.rows())
                undone = store.undo(person)
                assert len(store.rows()) == before - undone
                continue
            found = store.next(person)
            if not isinstance(found, LabelQuestion):
                continue
            # One question, one case: a case never comes back under another number.
            assert seen[person.name].setdefault(found.question_id, found.case_id) == found.case_id
            assert len(set(seen[person.name].values())) == len(seen[person.name])
            if move == "a":
                assert store.answer(person, found.question_id, "1")
            elif move == "s":
                assert store.answer(person, found.question_id, None, skipped="no idea")
            counted = recount(store)
            held = column(store, label_cases.c.n_labels)
            assert held == [counted[case.case_id] for case in make_cases(n_cases)]
        now[0] += 1000  # whatever was held is free again
        work_off(store, people, random.Random(seed))
        counted, rows = recount(store), store.rows()
        assert max(collections.Counter((row["case_id"], row["labeller"]) for row in rows).values(), default=0) <= 1
        skipped = collections.Counter(row["case_id"] for row in rows if row["preferred"] is None)
        for case in make_cases(n_cases):
            possible = min(k, n_people - skipped[case.case_id])
            assert counted[case.case_id] >= possible
            if not any(pause for _, _, pause in moves):  # nothing ever lapsed
                assert counted[case.case_id] == possible


def test_a_case_that_was_begun_comes_first(tmp_path):
    """So that cases are complete early, and agreement can be measured."""
    with LabelStore(tmp_path / "l.db", make_cases(20), labels_per_case=2) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        for _ in range(5):
            found = store.next(ann)
            store.answer(ann, found.question_id, "1")
        begun = {row["case_id"] for row in store.rows()}
        for _ in range(5):
            found = store.next(bob)
            assert found.case_id in begun
            store.answer(bob, found.question_id, "1")


def test_everybody_has_an_order_of_their_own(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(30), labels_per_case=9, seed=1) as store:
        orders = []
        for name in ("ann", "bob"):
            person = store.add_labeller(name)
            order = []
            for _ in range(30):
                found = store.next(person)
                order.append(found.case_id)
                store.answer(person, found.question_id, None, skipped="only looking")
            orders.append(order)
            assert store.next(person) == "done"
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(case.case_id for case in make_cases(30))
    assert orders[0] != orders[1]


def test_what_is_held_lapses_and_a_late_label_still_counts(tmp_path):
    now = [0.0]
    with LabelStore(tmp_path / "l.db", make_cases(1), hold=60, clock=lambda: now[0]) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        first = store.next(ann)
        assert store.next(bob) == "waiting"
        now[0] = 61.0
        second = store.next(bob)
        assert isinstance(second, LabelQuestion)
        assert store.next(ann) == "waiting"  # it is with bob now
        assert store.answer(ann, first.question_id, "1")
        assert store.answer(bob, second.question_id, "1")
        assert (store.next(ann), store.next(bob)) == ("done", "done")
        assert store.totals() == (1, 1)
        assert len(store.rows()) == 2


def test_looking_again_keeps_the_question_and_the_hold(tmp_path):
    now = [0.0]
    with LabelStore(tmp_path / "l.db", make_cases(3), hold=60, clock=lambda: now[0]) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        found = store.next(ann)
        for now[0] in (10.0, 40.0, 80.0, 120.0):
            assert store.next(ann) == found
        for _ in range(2):
            other = store.next(bob)
            assert other.case_id != found.case_id
            store.answer(bob, other.question_id, "2")
        assert store.next(bob) == "waiting"


@pytest.mark.slow
def test_threads_at_once(tmp_path):
    """Forty cases, eight people, each in a thread."""
    cases, k = make_cases(40), 3
    failures: list[BaseException] = []

    def label(number: int) -> None:
        person = store.add_labeller(f"p{number}")
        try:
            while (found := store.next(person)) != "done" and not failures:
                if isinstance(found, LabelQuestion):
                    assert store.answer(person, found.question_id, "1")
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    with LabelStore(tmp_path / "l.db", cases, labels_per_case=k) as store:
        threads = [threading.Thread(target=label, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        rows = store.rows()
        assert set(recount(store).values()) == {k}
        assert len(rows) == len({(row["case_id"], row["labeller"]) for row in rows}) == 40 * k


@pytest.mark.slow
def test_a_second_writer_is_refused_and_a_reader_is_not(message_snapshot, tmp_path):
    cases, run = make_cases(2), tmp_path / "l.db"
    with LabelStore(run, cases, labellers=["ann", "bob"]) as store:
        (ann, _) = store.labellers()
        with pytest.raises(StoreBusyError) as refused:
            LabelStore(run, cases)
        message_snapshot(refused)
        with pytest.raises(StoreBusyError):
            open_run(run, write=True)
        child = "import sys; from pairscale.store.runfile import open_run; open_run(sys.argv[1], write=True)"
        line = [sys.executable, "-c", child, run]
        done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
        assert "StoreBusyError" in done.stderr
        with LabelStore(run, cases, write=False) as reader:
            assert reader.labels_per_case == 2  # there are several labellers
            assert reader.rows() == []
            store.answer(ann, store.next(ann).question_id, "1")
            assert [row["labeller"] for row in reader.rows()] == ["ann"]
            assert reader.totals() == (1, 4)
            for change in (lambda: reader.add_labeller("cat"), lambda: reader.next(ann), lambda: reader.undo(ann)):
                with pytest.raises(StoreError) as refused:
                    change()
                message_snapshot(refused)
        with pytest.raises(StoreError) as refused:
            LabelStore(run, cases, labels_per_case=5, write=False)
        message_snapshot(refused)
        assert store.totals() == (1, 4)


# Sides


def test_labels_are_told_in_the_order_of_the_manifest(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(40), seed=3) as store:
        ann = store.add_labeller("ann")
        turned, expected = {}, {}
        for choice in ["1", "2", "tie", "1"] * 10:
            found = store.next(ann)
            turned[found.case_id] = found.swapped
            expected[found.case_id] = {"1": "2", "2": "1", "tie": "tie"}[choice] if found.swapped else choice
            store.answer(ann, found.question_id, choice)
        assert {row["case_id"]: row["preferred"] for row in store.rows()} == expected
        assert 10 < sum(turned.values()) < 30  # drawn by chance; the seed is fixed
        assert [other_side(choice) for choice in ("1", "2", "tie")] == ["2", "1", "tie"]


@pytest.mark.slow
def test_sides_differ_between_labellers_and_stay_what_they_were(tmp_path):
    drawn: dict[str, dict[str, bool]] = {}
    for _ in range(2):  # the second time from the file
        with LabelStore(tmp_path / "l.db", make_cases(60), labels_per_case=5) as store:
            for name in ("ann", "bob"):
                person = store.add_labeller(name)
                for _ in range(30):
                    found = store.next(person)
                    known = drawn.setdefault(name, {})
                    assert known.setdefault(found.case_id, found.swapped) == found.swapped
                    store.answer(person, found.question_id, "1")
                    if len(known) == 15:
                        store.undo(person)
    common = drawn["ann"].keys() & drawn["bob"].keys()
    assert any(drawn["ann"][name] != drawn["bob"][name] for name in common)


# Labels


def test_the_time_of_a_decision(tmp_path):
    now = [100.0]
    with LabelStore(tmp_path / "l.db", make_cases(4), clock=lambda: now[0]) as store:
        ann = store.add_labeller("ann")
        for told in (None, 900, 10**9, -5):
            found = store.next(ann)
            now[0] += 2.5
            store.answer(ann, found.question_id, "1", elapsed_ms=told)
        assert [row["decision_ms"] for row in store.rows()] == [2500, 900, 2500, 0]


def test_a_second_answer_changes_nothing(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(1)) as store:
        ann = store.add_labeller("ann")
        found = store.next(ann)
        assert store.answer(ann, found.question_id, "1")
        before = store.rows()
        assert not store.answer(ann, found.question_id, "2")
        assert store.rows() == before


def test_undo_brings_the_case_back_and_keeps_the_history(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(3), labels_per_case=1) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        assert not store.undo(ann)
        asked = []
        for choice in ("1", "2"):
            asked.append(store.next(ann))
            store.answer(ann, asked[-1].question_id, choice)
        third = store.next(ann)
        assert store.undo(ann)
        assert store.undo(ann)
        assert not store.undo(ann)
        assert store.rows() == []
        assert store.next(bob) == "waiting"  # all three are with ann
        for expected in (*asked, third):
            assert store.next(ann) == expected
            store.answer(ann, expected.question_id, "tie")
        assert [row["preferred"] for row in store.rows()] == ["tie"] * 3
        undone = column(store, labels.c.undone_at)
        assert [when is not None for when in undone] == [True, True, False, False, False]


def test_what_cannot_be_answered(message_snapshot, tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(2), ties=False) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        found = store.next(ann)
        with pytest.raises(InputError) as refused:
            store.answer(bob, found.question_id, "1")
        message_snapshot(refused)
        with pytest.raises(InputError) as refused:
            store.answer(ann, 10**6, "1")
        message_snapshot(refused)
        with pytest.raises(InputError, match="no ties here"):
            store.answer(ann, found.question_id, "tie")
        for wrong in ({"choice": None}, {"choice": "1", "skipped": "both"}):
            with pytest.raises(InputError) as refused:
                store.answer(ann, found.question_id, **wrong)
            message_snapshot(refused)
        assert store.rows() == []


def test_a_skip_is_no_label_and_somebody_else_gets_the_case(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(1)) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        store.answer(ann, store.next(ann).question_id, None, skipped="too long", comment="sorry")
        assert store.totals() == (0, 1)
        assert store.next(ann) == "done"
        assert isinstance(store.next(bob), LabelQuestion)
        (row,) = store.rows()
        assert (row["preferred"], row["skipped"], row["comment"]) == (None, "too long", "sorry")


# Labellers


def test_names_links_and_strangers(message_snapshot, tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(1)) as store:
        ann = store.add_labeller("  Ann   B. ")
        assert ann.name == "Ann B."
        assert store.add_labeller("Ann B.") == ann
        assert store.labeller_of(ann.token) == ann
        assert len(ann.token) >= 32
        for stranger in ("", ann.token[:-1], ann.token + "x", "ünïcode", "\ud800", store.owner_token):
            assert store.labeller_of(stranger) is None
        for wrong in ("", "   ", "x" * 101, "a\x1bb"):
            with pytest.raises(InputError) as refused:
                store.add_labeller(wrong)
            message_snapshot(refused)


# The file


def test_the_same_file_goes_on(tmp_path):
    cases = make_cases(4)
    with LabelStore(tmp_path / "l.db", cases, labels_per_case=2, ties=False, owner_token="a-token-of-my-own") as store:
        ann = store.add_labeller("ann")
        open_question = store.next(ann)
        secret = store.secret
    assert stat.S_IMODE((tmp_path / "l.db").stat().st_mode) == 0o600
    with LabelStore(tmp_path / "l.db", [*cases, *make_cases(1, "warmer")]) as store:
        assert (store.labels_per_case, store.ties, store.owner_token) == (2, False, "a-token-of-my-own")
        assert store.secret == secret
        assert store.labellers() == [ann]
        assert store.next(ann) == open_question
        assert store.totals() == (0, 10)
    with LabelStore(tmp_path / "l.db", [*cases, *make_cases(1, "warmer")], labels_per_case=3) as store:
        assert store.totals() == (0, 15)


def test_other_cases_are_refused(message_snapshot, tmp_path):
    LabelStore(tmp_path / "l.db", make_cases(3)).close()
    with pytest.raises(StoreMismatchError) as refused:
        LabelStore(tmp_path / "l.db", make_cases(3, text="Another {} {}"))
    message_snapshot(refused)
    with pytest.raises(StoreMismatchError) as refused:
        LabelStore(tmp_path / "l.db", make_cases(2))
    message_snapshot(refused)


def test_other_files_are_left_as_they_are(message_snapshot, tmp_path):
    with sqlite3.connect(tmp_path / "old.db") as other:  # as version 0.1 kept labels
        other.execute("CREATE TABLE label_facts (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    other.close()
    (tmp_path / "notes.db").write_text("my notes, much longer than the header of a database " * 20)
    for name in ("old.db", "notes.db"):
        before, mode = (tmp_path / name).read_bytes(), (tmp_path / name).stat().st_mode
        with pytest.raises(StoreDamagedError) as refused:
            LabelStore(tmp_path / name, make_cases(1))
        message_snapshot(refused)
        assert ((tmp_path / name).read_bytes(), (tmp_path / name).stat().st_mode) == (before, mode)
    for place, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "l.db", "does not exist")):
        with pytest.raises(StoreError, match=words):
            LabelStore(place, make_cases(1))


def test_a_run_file_that_gets_labels_becomes_private(tmp_path, caplog):
    run = tmp_path / "run.db"
    open_run(run, write=True).close()
    run.chmod(0o644)
    with LabelStore(run, make_cases(1), labellers=["ann"]) as store:
        store.next(store.labellers()[0])
        beside = [path for path in tmp_path.iterdir() if path.name.startswith("run.db-")]
        assert [stat.S_IMODE(path.stat().st_mode) for path in (run, *beside)] == [0o600] * (1 + len(beside))
        assert beside
    assert "only you may read it" in caplog.text
    caplog.clear()
    LabelStore(run, make_cases(1)).close()
    LabelStore(tmp_path / "new.db", make_cases(1)).close()
    assert caplog.text == ""
    with open_run(run) as store:
        store.copy_to(tmp_path / "copy.db")
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


def test_what_is_refused_leaves_nothing(tmp_path):
    LabelStore(tmp_path / "l.db", make_cases(3), labels_per_case=3).close()
    other = [*make_cases(2), *make_cases(1, "warmer"), Case("p", "p", "clearer", "", "one", "two", "a", "b")]
    with pytest.raises(StoreMismatchError):
        LabelStore(tmp_path / "l.db", other, labellers=["ann"], labels_per_case=9)
    with open_run(tmp_path / "l.db") as store:
        assert store.get_meta("labelling")["labels_per_case"] == 3
        assert store.items().height == 0
    with LabelStore(tmp_path / "l.db", make_cases(3)) as store:
        assert store.labellers() == []


# The same run file holds labels and judgements


PAIRS = [
    {"ID1": "a", "text1": "text a", "ID2": "b", "text2": "text b"},
    {"ID1": "c", "text1": "text c", "ID2": "a", "text2": "text a"},
]


def test_labels_of_pairs_are_read_as_comparisons(tmp_path):
    run = tmp_path / "run.db"
    ps.submit_pairs(PAIRS, "lexical", run=run, progress=False)
    cases = read_cases(run, criterion="clearer")
    with LabelStore(run, cases, labellers=["ann", "bob"], seed=3) as store:
        shown = {}
        for person, choice in zip(store.labellers(), ("1", "tie"), strict=True):
            for at in range(2):
                asked = store.next(person)
                shown[person.name, asked.case_id] = asked.swapped
                if at:
                    store.answer(person, asked.question_id, None, skipped="no idea")
                else:
                    store.answer(person, asked.question_id, choice, comment="so", elapsed_ms=0)
    assert {True, False} == set(shown.values())
    table = label_results(run)
    by = {(row["judge_id"], row["custom_id"]): row for row in table.iter_rows(named=True)}
    assert by.keys() == shown.keys()
    for (who, name), swapped in shown.items():
        row = by[who, name]
        case = next(case for case in cases if case.case_id == name)
        assert (row["ID1"], row["ID2"]) == ((case.ID2, case.ID1) if swapped else (case.ID1, case.ID2))
        assert (row["trait"], row["model"]) == ("clearer", who)
    wins = table.filter(outcome="win")
    assert wins["judge_id"].to_list() == ["ann"]
    assert wins["better_sample"].to_list() == ["SAMPLE_1"]  # the left one was chosen
    assert wins["better_id"].to_list() == wins["ID1"].to_list()
    assert sorted(table["outcome"]) == ["abstention", "abstention", "tie", "win"]
    assert table.filter(outcome="abstention")["error_message"].to_list() == ["no idea"] * 2
    assert table["condition_id"].n_unique() == 2
    with open_run(run) as store:
        assert store.results().height == 2  # what the judge said stays by itself
        assert store.labels().columns == list(LABELS)


def test_pairs_of_a_table_enter_their_texts(message_snapshot, tmp_path):
    pl.DataFrame(PAIRS).write_csv(tmp_path / "pairs.csv")
    run = tmp_path / "run.db"
    with LabelStore(run, read_cases(tmp_path / "pairs.csv")) as store:
        assert dict(store.run.items().rows()) == {name: f"text {name}" for name in "abc"}
        assert column(store, label_cases.c.response_1) == [None, None]
    assert read_cases(run) == read_cases(tmp_path / "pairs.csv")
    other = [{**PAIRS[0], "text1": "another"}]
    pl.DataFrame(other).write_csv(tmp_path / "other.csv")
    ps.submit_pairs(PAIRS, "lexical", run=tmp_path / "judged.db", progress=False)
    with pytest.raises(StoreMismatchError) as refused:
        LabelStore(tmp_path / "judged.db", read_cases(tmp_path / "other.csv"))
    message_snapshot(refused)


def test_a_run_file_knows_the_cases_that_are_labelled_in_it(message_snapshot, tmp_path):
    run, cases = tmp_path / "run.db", make_cases(2)
    ps.submit_pairs(PAIRS, "lexical", run=run, progress=False)
    LabelStore(run, cases).close()
    assert read_cases(run) == cases
    with pytest.raises(InputError) as refused:
        read_cases(run, criterion="x")
    message_snapshot(refused)
    judged = tmp_path / "judged.db"
    ps.submit_pairs(PAIRS[:1], "lexical", run=judged, progress=False)
    LabelStore(judged, read_cases(judged, criterion="warmer")).close()
    ps.submit_pairs(PAIRS, "lexical", run=judged, progress=False)
    assert [(case.ID1, case.ID2, case.criterion) for case in read_cases(judged)] == [
        ("a", "b", "warmer"), ("c", "a", "warmer"),
    ]  # fmt: skip
    with pytest.raises(StoreMismatchError) as refused:
        LabelStore(judged, read_cases(judged, criterion="clearer"))
    message_snapshot(refused)


def everything(run) -> dict[str, list]:
    """Every row of every table of labels."""
    with open_run(run) as store, store.transaction() as connection:
        return {
            table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in (labellers, label_cases, label_questions, labels)
        }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["manifest", "pairs"])
def test_copies_exports_and_imports_carry_labels(message_snapshot, tmp_path, kind):
    run = tmp_path / "run.db"
    ps.submit_pairs(PAIRS, "lexical", run=run, progress=False)
    cases = make_cases(3) if kind == "manifest" else read_cases(run)
    with LabelStore(run, cases, labellers=["ann", "bob"], seed=5, ties=False) as store:
        for person in store.labellers():
            for choice in ("1", "2"):
                store.answer(person, store.next(person).question_id, choice, comment="“so”\n")
        store.undo(person)
        store.answer(person, store.next(person).question_id, None, skipped="no idea")
        store.undo(person)
        links = {store.owner_token, store.secret, *(one.token for one in store.labellers())}
    before = everything(run)
    with open_run(run) as store:
        store.copy_to(tmp_path / "copy.db")
    assert everything(tmp_path / "copy.db") == before
    ps.export(run, tmp_path / "out.csv")
    exported = "".join(path.read_text("utf-8") for path in tmp_path.glob("out.csv*"))
    assert not [link for link in links if link in exported]
    assert not [case for case in cases if case.response_1 in exported]
    samples = [{"ID": name, "text": f"text {name}"} for name in "abc"]
    for _ in range(2):  # the second time it is all there already
        ps.import_run(tmp_path / "out.csv", tmp_path / "in.db", samples)
    assert stat.S_IMODE((tmp_path / "in.db").stat().st_mode) == 0o600
    after = everything(tmp_path / "in.db")
    left_out = {"token", "task_input", "response_1", "response_2"}
    for name, rows in before.items():
        kept = [{key: value for key, value in row.items() if key not in left_out} for row in rows]
        assert [{key: row[key] for key in kept[0]} for row in after[name]] == kept
    assert not links & {row["token"] for row in after["labellers"]}
    if kind == "manifest":
        with pytest.raises(InputError) as refused:
            read_cases(tmp_path / "in.db")
        message_snapshot(refused)
    with LabelStore(tmp_path / "in.db", cases) as store, LabelStore(run, cases) as old:
        assert store.rows() == old.rows()
        assert (store.labels_per_case, store.ties) == (2, False)
        for one, two in zip(store.labellers(), old.labellers(), strict=True):
            assert store.next(one) == old.next(two)  # the same seed, so the same order and sides
    with LabelStore(tmp_path / "other.db", make_cases(1)), pytest.raises(StoreBusyError):
        ps.import_run(tmp_path / "out.csv", tmp_path / "other.db", samples)
    with pytest.raises(StoreMismatchError, match="holds a run already"):
        ps.import_run(tmp_path / "out.csv", tmp_path / "other.db", samples)


def test_labels_alone_are_exported_and_imported(message_snapshot, tmp_path):
    pl.DataFrame(PAIRS).write_csv(tmp_path / "pairs.csv")
    with LabelStore(tmp_path / "run.db", read_cases(tmp_path / "pairs.csv"), labellers=["ann"]) as store:
        (ann,) = store.labellers()
        store.answer(ann, store.next(ann).question_id, "1")
        rows = store.rows()
    ps.export(tmp_path / "run.db", tmp_path / "out.csv")
    with pytest.raises(TableError) as refused:
        ps.import_run(tmp_path / "out.csv", tmp_path / "in.db")
    message_snapshot(refused)
    samples = [{"ID": name, "text": f"text {name}"} for name in "abc"]
    assert ps.import_run(tmp_path / "out.csv", tmp_path / "in.db", samples) == 0
    with open_run(tmp_path / "in.db") as store:
        assert store.labels().to_dicts() == rows


@pytest.mark.parametrize("options", [{"labels_per_case": 0}, {"owner_token": "short"}, {"owner_token": "x/" * 10}])
def test_settings_are_checked_before_a_file_is_made(tmp_path, options):
    with pytest.raises(InputError):
        LabelStore(tmp_path / "l.db", make_cases(1), **options)
    assert list(tmp_path.iterdir()) == []


CHILD = textwrap.dedent("""
    import sys
    sys.path.insert(0, sys.argv[2])
    from labelling import make_cases
    from pairscale.people import LabelStore
    store = LabelStore(sys.argv[1], make_cases(150), labels_per_case=1)
    people = [store.add_labeller(name) for name in ("ann", "bob")]
    while True:
        for person in people:
            found = store.next(person)
            if found == "done":
                sys.exit(0)
            store.answer(person, found.question_id, "1", comment="x" * 300)
            print(person.name, found.case_id, flush=True)
""")


@pytest.mark.slow
def test_kill_9_loses_no_label_and_doubles_none(tmp_path):
    """Whatever was told to be saved is there; at most one more, which was saved and not yet told."""
    rng, told, kills, code = random.Random(8), set(), 0, None
    while code != 0:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "l.db"), str(__file__).rpartition("/")[0]],
            stdout=subprocess.PIPE,
            text=True,
        )
        if kills < 3:
            for _ in range(rng.randint(5, 35)):
                told.add(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
        told |= {line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")}
        code = child.wait()
        child.stdout.close()
        kills += code != 0
    assert kills == 3
    with LabelStore(tmp_path / "l.db", make_cases(150)) as store:
        rows = store.rows()
    saved = [f"{row['labeller']} {row['case_id']}\n" for row in rows]
    assert len(saved) == len(set(saved)) == len({row["case_id"] for row in rows}) == 150
    assert told <= set(saved)
    assert len(told) >= 150 - kills
    check = sqlite3.connect(tmp_path / "l.db")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert check.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    check.close()
