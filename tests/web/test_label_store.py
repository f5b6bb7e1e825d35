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

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelling import make_cases

from pairscale.errors import InputError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.store import open_run
from pairscale.web import LabelStore
from pairscale.web.labels import Assigned, other_side


def recount(store: LabelStore) -> collections.Counter:
    return collections.Counter(row["case_id"] for row in store.rows() if row["preferred"] is not None)


def work_off(store: LabelStore, people: list, rng: random.Random) -> None:
    """Everybody goes on, in any order, until nobody gets anything more."""
    idle: set[str] = set()
    while len(idle) < len(people):
        person = rng.choice([one for one in people if one.name not in idle])
        found = store.next(person)
        if isinstance(found, Assigned):
            assert store.answer(person, found.question_id, rng.choice(["1", "2", "tie"]))
        else:
            idle.add(person.name)


# Assignment


@given(
    n_cases=st.integers(1, 12),
    n_people=st.integers(1, 5),
    k=st.integers(1, 4),
    seed=st.integers(0, 2**20),
    moves=st.lists(st.tuples(st.integers(0, 4), st.sampled_from("nnaaaasup"), st.integers(0, 40)), max_size=60),
)
@settings(max_examples=60)
def test_each_case_gets_its_labels_and_nobody_sees_one_twice(tmp_path_factory, n_cases, n_people, k, seed, moves):
    now = [0.0]
    path = tmp_path_factory.mktemp("labels") / "labels.db"
    with LabelStore(path, make_cases(n_cases), labels_per_case=k, seed=seed, hold=100, clock=lambda: now[0]) as store:
        store._database._connection.execute("PRAGMA synchronous = OFF")  # this test is not about power cuts
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
            if not isinstance(found, Assigned):
                continue
            # One question, one case: a case never comes back under another number.
            assert seen[person.name].setdefault(found.question_id, found.case_id) == found.case_id
            assert len(set(seen[person.name].values())) == len(seen[person.name])
            if move == "a":
                assert store.answer(person, found.question_id, "1")
            elif move == "s":
                assert store.answer(person, found.question_id, None, skipped="no idea")
            counted = recount(store)
            held = [row["n_labels"] for row in store._database.rows("SELECT n_labels FROM cases ORDER BY number")]
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
        assert isinstance(second, Assigned)
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


def test_threads_and_two_connections_at_once(tmp_path):
    """Forty cases, eight people, half of them through another connection to the same file."""
    cases, k = make_cases(40), 3
    stores = [LabelStore(tmp_path / "l.db", cases, labels_per_case=k), LabelStore(tmp_path / "l.db", cases)]
    failures: list[BaseException] = []

    def label(number: int) -> None:
        store = stores[number % 2]
        person = store.add_labeller(f"p{number}")
        try:
            while (found := store.next(person)) != "done" and not failures:
                if isinstance(found, Assigned):
                    assert store.answer(person, found.question_id, "1")
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=label, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    rows = stores[0].rows()
    assert set(recount(stores[0]).values()) == {k}
    assert len(rows) == len({(row["case_id"], row["labeller"]) for row in rows}) == 40 * k
    for store in stores:
        store.close()


# Sides


def test_labels_are_told_in_the_order_of_the_manifest(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(40), seed=3) as store:
        ann = store.add_labeller("ann")
        turned, expected = {}, {}
        for choice in ["1", "2", "tie", "1"] * 10:
            found = store.next(ann)
            turned[found.case_id] = found.turned
            expected[found.case_id] = {"1": "2", "2": "1", "tie": "tie"}[choice] if found.turned else choice
            store.answer(ann, found.question_id, choice)
        assert {row["case_id"]: row["preferred"] for row in store.rows()} == expected
        assert 10 < sum(turned.values()) < 30  # drawn by chance; the seed is fixed
        assert [other_side(choice) for choice in ("1", "2", "tie")] == ["2", "1", "tie"]


def test_sides_differ_between_labellers_and_stay_what_they_were(tmp_path):
    drawn: dict[str, dict[str, bool]] = {}
    for _ in range(2):  # the second time from the file
        with LabelStore(tmp_path / "l.db", make_cases(60), labels_per_case=5) as store:
            for name in ("ann", "bob"):
                person = store.add_labeller(name)
                for _ in range(30):
                    found = store.next(person)
                    known = drawn.setdefault(name, {})
                    assert known.setdefault(found.case_id, found.turned) == found.turned
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
        kept = store._database.rows("SELECT count(*) AS n, count(undone_at) AS undone FROM labels")[0]
        assert (kept["n"], kept["undone"]) == (5, 2)


def test_what_cannot_be_answered(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(2), ties=False) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        found = store.next(ann)
        with pytest.raises(InputError, match="no question of yours"):
            store.answer(bob, found.question_id, "1")
        with pytest.raises(InputError, match="no question of yours"):
            store.answer(ann, 10**6, "1")
        with pytest.raises(InputError, match="no ties here"):
            store.answer(ann, found.question_id, "tie")
        for wrong in ({"choice": None}, {"choice": "1", "skipped": "both"}):
            with pytest.raises(InputError, match="skip with a reason"):
                store.answer(ann, found.question_id, **wrong)
        assert store.rows() == []


def test_a_skip_is_no_label_and_somebody_else_gets_the_case(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(1)) as store:
        ann, bob = store.add_labeller("ann"), store.add_labeller("bob")
        store.answer(ann, store.next(ann).question_id, None, skipped="too long", comment="sorry")
        assert store.totals() == (0, 1)
        assert store.next(ann) == "done"
        assert isinstance(store.next(bob), Assigned)
        (row,) = store.rows()
        assert (row["preferred"], row["skipped"], row["comment"]) == (None, "too long", "sorry")


# Labellers


def test_names_links_and_strangers(tmp_path):
    with LabelStore(tmp_path / "l.db", make_cases(1)) as store:
        ann = store.add_labeller("  Ann   B. ")
        assert ann.name == "Ann B."
        assert store.add_labeller("Ann B.") == ann
        assert store.labeller_of(ann.token) == ann
        assert len(ann.token) >= 32
        for stranger in ("", ann.token[:-1], ann.token + "x", "ünïcode", "\ud800", store.owner_token):
            assert store.labeller_of(stranger) is None
        for wrong in ("", "   ", "x" * 101, "a\x1bb"):
            with pytest.raises(InputError, match="cannot be the name"):
                store.add_labeller(wrong)


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


def test_other_cases_are_refused(tmp_path):
    LabelStore(tmp_path / "l.db", make_cases(3)).close()
    with pytest.raises(StoreMismatchError, match="other texts under 'task-0::clearer'"):
        LabelStore(tmp_path / "l.db", make_cases(3, text="Another {} {}"))
    with pytest.raises(StoreMismatchError, match="knows 'task-2::clearer', which the manifest lacks"):
        LabelStore(tmp_path / "l.db", make_cases(2))


def test_other_files_are_left_as_they_are(tmp_path):
    open_run(tmp_path / "run.db", write=True).close()
    (tmp_path / "notes.db").write_text("my notes, much longer than the header of a database " * 20)
    for name in ("run.db", "notes.db"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(StoreDamagedError, match="is not a file of labels"):
            LabelStore(tmp_path / name, make_cases(1))
        assert (tmp_path / name).read_bytes() == before
    for place, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "l.db", "does not exist")):
        with pytest.raises(StoreError, match=words):
            LabelStore(place, make_cases(1))
    with LabelStore(tmp_path / "l.db", make_cases(1)) as store:
        store._database.set_fact("version", 99)
    with pytest.raises(StoreDamagedError, match="version 99, this pairscale knows 1"):
        LabelStore(tmp_path / "l.db", make_cases(1))


@pytest.mark.parametrize("options", [{"labels_per_case": 0}, {"owner_token": "short"}, {"owner_token": "x/" * 10}])
def test_settings_are_checked_before_a_file_is_made(tmp_path, options):
    with pytest.raises(InputError):
        LabelStore(tmp_path / "l.db", make_cases(1), **options)
    assert list(tmp_path.iterdir()) == []


CHILD = textwrap.dedent("""
    import sys
    sys.path.insert(0, sys.argv[2])
    from labelling import make_cases
    from pairscale.web import LabelStore
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
