"""Live judging: everything asked once, every answer kept, and the same again resumes."""

import asyncio
import csv
import functools

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pairscale as ps
from pairscale.core.errors import FileFormatError, InputError, StoreFullError, TableError
from pairscale.core.tables import FAILED, RESULTS
from pairscale.store.runfile import open_run

SAMPLES = [{"ID": f"s{n}", "text": f"text {n}", "q": float(n)} for n in range(8)]
PAIRS = ps.make_pairs(SAMPLES)


class Counting:
    """A judge that remembers what it was asked, and answers as told."""

    def __init__(self, reply=None, name="counting"):
        self.condition = ps.Condition(name)
        self.asked = []
        self.reply = reply or (lambda pair: ps.Verdict.win(1))
        self.open = self.most_open = 0

    async def compare(self, pair):
        self.asked.append(pair)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        return self.reply(pair)


def submit(pairs, judge, **options):
    return ps.submit_pairs(pairs, judge, **({"progress": False, "retry_wait": 0} | options))


def test_every_pair_once_in_order():
    judge = Counting()
    answers = submit(PAIRS, judge)
    assert answers.results.columns == list(RESULTS)
    assert answers.results.select("ID1", "ID2").equals(PAIRS.select("ID1", "ID2"))
    assert answers.results["better_id"].to_list() == PAIRS["ID1"].to_list()
    assert [pair.uid for pair in judge.asked] == [f"{a}:{b}#1" for a, b in PAIRS.select("ID1", "ID2").iter_rows()]
    assert answers.asked == PAIRS.height
    assert answers.failed_pairs.height == answers.failed_attempts.height == 0
    assert set(FAILED) <= set(answers.failed_pairs.columns)


def test_pair_uid_names_the_pairs(tmp_path):
    named = PAIRS[:2].with_columns(pair_uid=pl.Series(["x", "y"]))
    assert submit(named, Counting(), run=tmp_path / "run.db").results["custom_id"].to_list() == ["x", "y"]
    with pytest.raises(TableError, match="pair_uid"):
        submit(PAIRS[:2].with_columns(pair_uid=pl.lit("same")), Counting())


def test_the_five_kinds_stay_apart(tmp_path):
    kinds = iter(
        [
            ps.Verdict.win(1),
            ps.Verdict.tie(),
            ps.Verdict(ps.Outcome.FLIP),
            ps.Verdict.abstain("no"),
            ps.Verdict.fail("parse_error", "?"),
        ]
    )
    answers = submit(PAIRS[:5], Counting(lambda pair: next(kinds)), run=tmp_path / "run.db")
    assert answers.results["outcome"].to_list() == ["win", "tie", "flip"]
    assert answers.failed_pairs["outcome"].to_list() == ["abstention", "error"]
    with open_run(tmp_path / "run.db") as store:
        [row] = store.conditions().select("win", "tie", "flip", "abstention", "error").rows()
        assert row == (1, 1, 1, 1, 1)
    assert ps.build_bt_data(answers.results).height == 1


def test_two_texts_under_one_id_are_refused(message_snapshot):
    pairs = [
        {"ID1": "a", "text1": "one", "ID2": "b", "text2": "x"},
        {"ID1": "a", "text1": "two", "ID2": "b", "text2": "x"},
    ]
    with pytest.raises(TableError) as refused:
        submit(pairs, Counting())
    message_snapshot(refused)


@pytest.mark.usefixtures("impatient")
def test_a_full_disk_keeps_what_was_answered(tmp_path):
    from sqlalchemy import event

    from pairscale.collect import live

    run = tmp_path / "run.db"
    real = live.open_run

    def small(where, *, write=False):
        store = real(where, write=write)

        @event.listens_for(store._engine, "begin")
        def limit(connection):
            connection.exec_driver_sql("PRAGMA max_page_count=60")

        return store

    judge = Counting(lambda pair: ps.Verdict.win(1, content="x" * 20_000))
    acknowledged = []

    def done(_source, question, recorded):
        if recorded is not None:
            acknowledged.append(question.uid)
        return ()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "open_run", small)
        patch.setattr(live.PairSource, "done", done)
        with pytest.raises(StoreFullError):
            submit(PAIRS, judge, run=run, concurrency=1)
    assert 0 < len(acknowledged) < PAIRS.height
    with open_run(run) as store:
        assert set(acknowledged) <= set(store.results()["custom_id"])
    after = Counting()
    assert submit(PAIRS, after, run=run).results.height == PAIRS.height
    assert len(after.asked) <= PAIRS.height - len(acknowledged)


class TestSavePath:
    def test_is_kept_up_to_date_and_resumed_from(self, tmp_path, monkeypatch):
        path = tmp_path / "out.csv"
        lines = []
        monkeypatch.setattr(
            "pairscale.collect.live.PairSource.done", lambda *_: lines.append(path.read_text().count("\n")) or ()
        )
        answers = submit(PAIRS[:5], Counting(), save_path=path, concurrency=1)
        assert lines == [2, 3, 4, 5, 6]
        judge = Counting()
        again = submit(PAIRS[:7], judge, save_path=path)
        assert len(judge.asked) == 2
        assert again.results[:5].drop("latency_s").equals(answers.results.drop("latency_s"))
        assert len(list(csv.DictReader(path.read_text().splitlines()))) == 7

    def test_no_cell_is_a_formula_and_ids_and_words_come_back(self, tmp_path):
        samples = pl.DataFrame({"ID": ["=a", "-b", "'@c"], "text": ["one", "two", "three"]})
        pairs = ps.make_pairs(samples)
        path = tmp_path / "out.csv"
        first = submit(pairs, Counting(lambda pair: ps.Verdict.win(1, content="=1+1")), save_path=path)
        cells = [cell for row in csv.DictReader(path.read_text().splitlines()) for cell in row.values()]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
        judge = Counting()
        again = submit(pairs, judge, save_path=path, run=tmp_path / "run.db")
        assert judge.asked == []
        assert again.results.drop("latency_s").equals(first.results.drop("latency_s"))
        exported = ps.export(tmp_path / "run.db", tmp_path / "exported.csv")
        ps.import_run(exported, tmp_path / "imported.db", samples=samples)
        with open_run(tmp_path / "run.db") as before, open_run(tmp_path / "imported.db") as after:
            assert after.results().equals(before.results())

    def test_a_file_that_r_wrote(self, tmp_path):
        path = tmp_path / "r.csv"
        path.write_text(
            "custom_id,ID1,ID2,model,status_code,error_message,content,better_sample,better_id,prompt_tokens,extra\n"
            'LIVE_s0_vs_s1,s0,s1,NA,200,NA,"a, ""b""",SAMPLE_2,s1,12,kept\n'
            "LIVE_s0_vs_s2,s0,s2,NA,500,server error,NA,NA,NA,NA,kept\n"
        )
        judge = Counting()
        answers = submit(PAIRS[:3], judge, save_path=path)
        assert [pair.uid for pair in judge.asked] == ["s0:s2#1", "s0:s3#1"]
        assert answers.results.select("ID2", "better_id", "content", "prompt_tokens").row(0) == (
            "s1",
            "s1",
            'a, "b"',
            12,
        )
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert [row["extra"] for row in rows] == ["kept", "kept", "", ""]

    def test_rows_without_a_condition_are_taken_over_and_that_is_said(self, tmp_path, caplog):
        """R's rows had another prompt: they count, but not silently."""
        path, run = tmp_path / "r.csv", tmp_path / "run.db"
        path.write_text("ID1,ID2,better_id\ns0,s1,s1\ns0,s2,s2\ns0,s3,NA\ns8,s9,s9\n")
        judge = Counting()
        assert submit(PAIRS[:4], judge, save_path=path, run=run).results.height == 4
        assert [pair.uid for pair in judge.asked] == ["s0:s3#1", "s0:s4#1"]
        said = [record.getMessage() for record in caplog.records]
        (message,) = [message for message in said if "condition_id" in message]
        assert message.startswith("2 of the saved results have no condition_id, as R's pairwiseLLM writes them")
        assert "which prompt they were made with is not known; name another `save_path=` to ask all" in message
        caplog.clear()
        submit(PAIRS[:4], judge, save_path=path, run=run)  # nothing new is taken over
        assert len(judge.asked) == 2
        assert "condition_id" not in caplog.text

    def test_a_callable_has_no_model_and_takes_what_the_file_has(self, tmp_path):
        path = tmp_path / "r.csv"
        path.write_text("ID1,ID2,model,better_id\ns0,s1,gpt-4o,s1\n")
        judge = Counting()
        assert submit(PAIRS[:1], judge, save_path=path).results["better_id"].to_list() == ["s1"]
        assert judge.asked == []

    def test_rows_of_another_model_are_not_taken(self, tmp_path, caplog):
        path = tmp_path / "r.csv"
        path.write_text("ID1,ID2,model,better_id\ns0,s1,gpt-4o,s1\n")
        judge = Counting()
        judge.condition = ps.Condition("x", model="gpt-5")
        submit(PAIRS[:1], judge, save_path=path)
        assert len(judge.asked) == 1
        assert "another judge or model" in caplog.text

    @pytest.mark.parametrize("with_run", [False, True])
    def test_judges_share_a_file(self, tmp_path, with_run):
        path, run = tmp_path / "out.csv", tmp_path / "run.db" if with_run else None
        asked = []
        for name in "AABBBA":
            judge = Counting(name=name)
            assert submit(PAIRS[:5], judge, save_path=path, run=run).results.height == 5
            asked.append(len(judge.asked))
        assert asked == [5, 0, 5, 0, 0, 0]
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert [row["judge_id"] for row in rows] == ["A"] * 5 + ["B"] * 5

    def test_of_a_pair_that_stands_twice_each_keeps_its_own_answer(self, tmp_path):
        """The first failed and the second was answered: that answer is not taken for the first, too."""
        path, run, twice = tmp_path / "out.csv", tmp_path / "run.db", pl.concat([PAIRS[:1], PAIRS[:1]])

        def reply(pair):
            return ps.Verdict.win(2) if pair.uid.endswith("#2") else ps.Verdict.fail("refusal", "no")

        assert submit(twice, Counting(reply), save_path=path, run=run).results.height == 1
        judge = Counting()
        answers = submit(twice, judge, save_path=path, run=run)
        assert [pair.uid for pair in judge.asked] == ["s0:s1#1"]
        assert answers.results.select("custom_id", "better_id").rows() == [("s0:s1#1", "s0"), ("s0:s1#2", "s1")]
        assert len(list(csv.DictReader(path.read_text().splitlines()))) == 2

    def test_a_torn_last_line_is_asked_again(self, tmp_path, caplog):
        path = tmp_path / "out.csv"
        submit(PAIRS[:4], Counting(lambda pair: ps.Verdict.win(1, content="two\nlines")), save_path=path)
        path.write_bytes(path.read_bytes()[:-40])
        judge = Counting()
        answers = submit(PAIRS[:4], judge, save_path=path)
        assert len(judge.asked) == 1
        assert answers.results.height == 4
        assert "incomplete" in caplog.text

    @pytest.mark.parametrize("cell", ["abc", "nan", "1e30"])
    @pytest.mark.parametrize("name", ["prompt_tokens", "cost"])
    def test_a_number_that_is_none_is_named(self, message_snapshot, tmp_path, name, cell):
        path, judge = tmp_path / "out.csv", Counting()
        path.write_text(content := f"ID1,ID2,better_id,{name}\ns0,s1,s1,NA\ns0,s2,s2,12\ns0,s3,s3,{cell}\n")
        with pytest.raises(FileFormatError) as refused:
            submit(PAIRS[:3], judge, save_path=path)
        message_snapshot(refused)
        assert judge.asked == []
        assert path.read_text() == content

    @pytest.mark.parametrize("content", ["a,b\n1,2\n", "ID1,ID2\nx,y\n"])
    def test_something_else_is_refused_and_left(self, message_snapshot, tmp_path, content):
        path = tmp_path / "other.csv"
        path.write_text(content)
        with pytest.raises(InputError) as refused:
            submit(PAIRS, Counting(), save_path=path)
        message_snapshot(refused)
        assert path.read_text() == content


def test_a_judge_without_a_name_is_told_that_its_answers_are_lost(tmp_path, caplog):
    submit(PAIRS[:1], ps.FunctionJudge(functools.partial(lambda A, B: {"is_valid": True, "Y": 1})))
    assert caplog.text == ""
    submit(PAIRS[:1], functools.partial(lambda A, B: {"is_valid": True, "Y": 1}), run=tmp_path / "run.db")
    assert "will not be found again" in caplog.text


@pytest.mark.slow
@settings(max_examples=25)
@given(data=st.data())
def test_any_interleaving_of_calls_ends_with_one_answer_a_pair(tmp_path_factory, data):
    """A model of the run file: whatever parts are submitted, in whatever order, nothing is asked twice."""
    run = tmp_path_factory.mktemp("runs") / "run.db"
    judge = Counting()
    known = set()
    for _ in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.lists(st.integers(0, PAIRS.height - 1), min_size=1, max_size=12, unique=True))
        before = len(judge.asked)
        answers = submit(PAIRS[rows], judge, run=run, concurrency=data.draw(st.integers(1, 4)))
        assert answers.results.select("ID1", "ID2").equals(PAIRS[rows].select("ID1", "ID2"))
        assert len(judge.asked) - before == len(set(rows) - known)
        known |= set(rows)
    assert len({pair.uid for pair in judge.asked}) == len(judge.asked) == len(known)
