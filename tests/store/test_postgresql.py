"""A run in a PostgreSQL database, with a server of its own; where no server is installed, these are skipped."""

import subprocess
import sys

import pytest

import pairscale as ps
from pairscale.adaptive.messages import adaptive_status
from pairscale.core.errors import StoreBusyError, StoreError
from pairscale.people import LabelStore, read_cases
from pairscale.store.audit import check_evidence
from pairscale.store.labels import label_results
from pairscale.store.runfile import open_run
from tests.runtime.server import Server
from tests.runtime.workflows import WORKFLOWS, Call

pytestmark = pytest.mark.slow

ITEMS = [{"ID": i, "text": f"text {i}", "theta_true": float(n)} for n, i in enumerate("abcdef")]


def test_an_adaptive_run_goes_on_there_and_is_audited(address):
    given = {"judge": ps.SimulatedJudge("theta_true", seed=1), "fit_fn": "laplace", "progress": "none"}
    ps.adaptive_rank(ITEMS, run=address, n_steps=9, **given)
    result = ps.adaptive_rank(ITEMS, run=address, n_steps=9, concurrency=3, **given)
    assert result.logs["step_log"].height == 18
    assert ps.audit(address).passed
    with open_run(address) as store:
        status = adaptive_status(store)
        assert check_evidence(store).problems == []
        committed = result.logs["step_log"].filter(status="ok").height
        assert store.results().height == status["committed_pairs"] == committed >= 15
        assert store.spending()["attempts"].sum() == committed
    assert ps.load_adaptive_session(address).step_log.equals(result.state.step_log)


def test_a_run_is_copied_to_a_file(address, tmp_path):
    ps.submit_pairs(ps.make_pairs(ITEMS), "lexical", run=address, progress=False)
    ps.export(address, tmp_path / "copy.db", copy=True)
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]
    assert ps.audit(tmp_path / "copy.db", digest=ps.audit(address).digest, closed=True).passed


def test_one_writer_at_a_time(message_snapshot, address):
    with open_run(address, write=True) as store:
        store.add_items(ITEMS)
        with pytest.raises(StoreBusyError) as refused:
            open_run(address, write=True)
        message_snapshot(refused)
        with open_run(address) as reader:
            assert reader.counts()["items"] == 6
    open_run(address, write=True).close()


def test_a_lock_that_the_server_does_not_give_is_told_in_words(message_snapshot, address):
    import psycopg

    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_try_advisory_lock(integer, integer) FROM public")
    with pytest.raises(StoreError) as refused:
        open_run(address.replace("tester@", "guest@"), write=True)
    message_snapshot(refused)


def test_the_lock_goes_with_a_process_that_dies(address):
    held = (
        "import sys; from pairscale.store.runfile import open_run; open_run(sys.argv[1], write=True); print(); input()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-uc", held, address], **pipes) as child:
        child.stdout.readline()
        with pytest.raises(StoreBusyError, match=f"process {child.pid}"):
            open_run(address, write=True)
        child.kill()
    for _ in range(10_000):  # the server notices as soon as it looks at the closed socket
        try:
            open_run(address, write=True).close()
        except StoreBusyError:
            continue
        return
    raise AssertionError


def test_a_snapshot_is_of_one_moment(address):
    with open_run(address, write=True) as store, open_run(address) as reader:
        with reader.snapshot():
            assert reader.counts()["items"] == 0
            store.add_items(ITEMS)
            assert reader.counts()["items"] == reader.items().height == 0
        assert reader.counts()["items"] == reader.items().height == 6


def test_labels_are_kept_there_too(address, tmp_path):
    """The same labels in both databases, by the same steps."""
    pairs = ps.make_pairs(ITEMS)
    pairs.write_csv(tmp_path / "pairs.csv")
    cases, rows = read_cases(tmp_path / "pairs.csv"), {}
    for where in (address, tmp_path / "run.db"):
        with LabelStore(where, cases, labellers=["ann", "bob", "cat"], seed=1, clock=lambda: 0.0) as store:
            with pytest.raises(StoreBusyError):
                LabelStore(where, cases)
            with LabelStore(where, cases, write=False) as reader:
                assert reader.totals() == (0, 30)
            for at in range(36):
                person = store.labellers()[at % 3]
                found = store.next(person)
                if isinstance(found, str):
                    continue
                if at % 5 == 4:
                    assert store.answer(person, found.question_id, None, skipped="no \0 idea")
                    assert store.undo(person)
                assert store.answer(person, found.question_id, ("1", "2", "tie")[at % 3], comment="so")
            rows[where] = store.run.labels().drop("labelled_at").to_dicts()
            assert store.totals() == (30, 30)
            assert [store.next(person) for person in store.labellers()] == ["done"] * 3
        assert label_results(where).height == 30
    one, two = rows.values()
    assert one == two
    with open_run(address) as store:
        store.copy_to(tmp_path / "copy.db")
    with open_run(tmp_path / "copy.db") as copy, open_run(address) as store:
        assert copy.labels().equals(store.labels())
    assert read_cases(address) == read_cases(tmp_path / "copy.db") == cases


FORGERIES = {
    "UPDATE items SET text = text || '.' WHERE item_id = 't03'": "items, row t03: the text was changed",
    'UPDATE pairs SET "ID1" = "ID2", "ID2" = "ID1" WHERE pair_id = 3': "pairs, row 3: the row was changed",
    "UPDATE conditions SET model = 'gpt-9'": "the row was changed",
    "UPDATE conditions SET settings = '{}'": "the row was changed",
    "UPDATE attempts SET prompt_hash = 'x' WHERE attempt_id = 5": "attempts, row 5: the row was changed",
    "UPDATE attempts SET cost = cost / 2 WHERE attempt_id = 5": "attempts, row 5: the row was changed",
    "UPDATE attempts SET content = 'no' WHERE attempt_id = 5": "attempts, row 5: the row was changed",
    "UPDATE attempts SET raw_response = '{}' WHERE attempt_id = 5": "attempts, row 5: the row was changed",
    "UPDATE comparisons SET better_id = 't00' WHERE comparison_id = 7": "comparisons, row 7: the row was changed",
    "DELETE FROM comparisons WHERE comparison_id = 7": "comparisons, row 7: the row is missing",
    "UPDATE chain SET hash = 'x' WHERE entry = 2": "chain, row main 2: ",
    "UPDATE chain SET data = '{' WHERE entry = 2": "chain, row main 2: ",
    "DELETE FROM chain WHERE entry = (SELECT max(entry) FROM chain)": "metadata, row closed: ",
    "UPDATE metadata SET value = '[]' WHERE key = 'closed'": "metadata, row closed: ",
    "UPDATE logs SET data = '[]' WHERE log = 'adaptive_events' AND row = 2": "logs, row adaptive_events 2: ",
}


def test_forgeries_are_found_there_too(postgres, tmp_path):
    import psycopg

    server = postgres.address
    with psycopg.connect(server("postgres").replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE DATABASE judged")
        with Server() as models:
            WORKFLOWS["adaptive"](Call(run=server("judged"), url=models.url, questions=16))
        assert ps.audit(server("judged")).passed
        for at, (statement, words) in enumerate(FORGERIES.items()):
            connection.execute(f"CREATE DATABASE forged{at} TEMPLATE judged")
            with psycopg.connect(server(f"forged{at}").replace("+psycopg", "")) as forged:
                assert forged.execute(statement).rowcount > 0, statement
            report = ps.audit(server(f"forged{at}"))
            assert any(words in problem for problem in report.problems), (statement, report)


@pytest.mark.parametrize("verb", ["judge", "rank", "ab"])
def test_a_reply_with_a_null_byte_is_kept(address, verb):
    """PostgreSQL takes none; U+FFFD stands for it, and the answer counts."""
    asked = []

    class Null:
        condition = ps.Condition("null")

        async def compare(self, pair):
            asked.append(pair.uid)
            half = "\ud800" if verb == "judge" else ""  # refused before the null byte is
            return ps.Verdict.win(1, content="a\x00b" + half, raw_response={"k\x00": "v\x00"})

    given = {"judge": Null(), "run": address, "progress": "none"}
    if verb == "judge":
        ps.judge(ps.make_pairs(ITEMS), **given)
    elif verb == "rank":
        ps.rank(ITEMS, max_comparisons=15, fit="laplace", **given)
    else:
        ps.ab({"1": "x", "2": "y"}, {"1": "v", "2": "w"}, criterion="better", **given)
    assert ps.audit(address).passed
    with open_run(address) as store:
        assert store.counts()["attempts"] == store.counts()["comparisons"] == len(asked) > 0
        assert {text[:3] for text in store.results(raw=True)["content"]} == {"a\ufffdb"}
