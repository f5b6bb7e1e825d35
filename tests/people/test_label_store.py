"""Assignment and durability: each case its labels, nobody twice, nothing lost."""

import collections
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelling import make_cases
from sqlalchemy import select

import pairscale as ps
from pairscale.core.errors import (
    InputError,
    StoreBusyError,
    StoreError,
    StoreMismatchError,
)
from pairscale.people import LabelStore, read_cases
from pairscale.people.queue import LabelQuestion
from pairscale.store.labels import LABELS, label_results
from pairscale.store.runfile import open_run
from pairscale.store.schema import label_cases, label_questions, labellers, labels


def recount(store: LabelStore) -> collections.Counter:
    return collections.Counter(row["case_id"] for row in store.run.labels().to_dicts() if row["preferred"] is not None)


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
                before = len(store.run.labels().to_dicts())
                undone = store.undo(person)
                assert len(store.run.labels().to_dicts()) == before - undone
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
        counted, rows = recount(store), store.run.labels().to_dicts()
        assert max(collections.Counter((row["case_id"], row["labeller"]) for row in rows).values(), default=0) <= 1
        skipped = collections.Counter(row["case_id"] for row in rows if row["preferred"] is None)
        for case in make_cases(n_cases):
            possible = min(k, n_people - skipped[case.case_id])
            assert counted[case.case_id] >= possible
            if not any(pause for _, _, pause in moves):  # nothing ever lapsed
                assert counted[case.case_id] == possible


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
        assert len(store.run.labels().to_dicts()) == 2


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
            assert reader.run.labels().to_dicts() == []
            store.answer(ann, store.next(ann).question_id, "1")
            assert [row["labeller"] for row in reader.run.labels().to_dicts()] == ["ann"]
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


# Labels


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
        assert store.run.labels().to_dicts() == []
        assert store.next(bob) == "waiting"  # all three are with ann
        for expected in (*asked, third):
            assert store.next(ann) == expected
            store.answer(ann, expected.question_id, "tie")
        assert [row["preferred"] for row in store.run.labels().to_dicts()] == ["tie"] * 3
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
        assert store.run.labels().to_dicts() == []


def test_a_skip_is_no_label_and_somebody_else_gets_the_case(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(1)) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        store.answer(ann, store.next(ann).question_id, None, skipped="too long", comment="sorry")
        assert store.totals() == (0, 1)
        assert store.next(ann) == "done"
        assert isinstance(store.next(bob), LabelQuestion)
        (row,) = store.run.labels().to_dicts()
        assert (row["preferred"], row["skipped"], row["comment"]) == (None, "too long", "sorry")


# Labellers


# The file


def test_other_cases_are_refused(message_snapshot, tmp_path):
    LabelStore(tmp_path / "l.db", make_cases(3)).close()
    with pytest.raises(StoreMismatchError) as refused:
        LabelStore(tmp_path / "l.db", make_cases(3, text="Another {} {}"))
    message_snapshot(refused)
    with pytest.raises(StoreMismatchError) as refused:
        LabelStore(tmp_path / "l.db", make_cases(2))
    message_snapshot(refused)


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
        assert store.run.labels().to_dicts() == old.run.labels().to_dicts()
        assert (store.labels_per_case, store.ties) == (2, False)
        for one, two in zip(store.labellers(), old.labellers(), strict=True):
            assert store.next(one) == old.next(two)  # the same seed, so the same order and sides
    with LabelStore(tmp_path / "other.db", make_cases(1)), pytest.raises(StoreBusyError):
        ps.import_run(tmp_path / "out.csv", tmp_path / "other.db", samples)
    with pytest.raises(StoreMismatchError, match="holds a run already"):
        ps.import_run(tmp_path / "out.csv", tmp_path / "other.db", samples)


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
        rows = store.run.labels().to_dicts()
    saved = [f"{row['labeller']} {row['case_id']}\n" for row in rows]
    assert len(saved) == len(set(saved)) == len({row["case_id"] for row in rows}) == 150
    assert told <= set(saved)
    assert len(told) >= 150 - kills
    check = sqlite3.connect(tmp_path / "l.db")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert check.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    check.close()
