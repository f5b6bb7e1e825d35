"""A run file that is deleted or replaced while it is written to: an error, and a copy that holds everything."""

import asyncio
import re
import shutil
import tempfile
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.core.errors import StoreGoneError
from pairscale.people import Case, LabelStore
from pairscale.store.evidence import check_evidence
from pairscale.store.policies import GroupCommitWriter, JournalWriter
from pairscale.store.runfile import open_run
from pairscale.store.writer import Asked, Entry

TEXTS = [{"ID": f"t{number:02d}", "text": f"text of number {number}"} for number in range(12)]
PAIRS = ps.make_pairs(TEXTS)


def deleted(path):
    path.unlink()


def replaced(path):
    with open_run(path.with_name("another.db"), write=True):
        pass
    path.with_name("another.db").replace(path)


def emptied(path):
    """With all that belongs to it, as a careless clean-up does."""
    for file in path.parent.iterdir():
        file.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere.db"))


LOSSES = pytest.mark.parametrize("lose", [deleted, replaced, emptied, moved])


def saved_by(error) -> Path:
    return Path(re.search(r"Everything is saved in (.*); rename it to continue the run", str(error.value)).group(1))


def answer(number: int) -> Entry:
    attempt = {"attempt": 1, "attempted_at": "x", "outcome": "win"}
    comparison = {"outcome": "win", "winner_pos": 1, "better_id": "a", "received_at": "x"}
    asked = Asked("judge", (attempt,), comparison, uid=f"step-{number:06d}", ID1="a", ID2="b")
    return Entry(asked, [("step_log", {"step_id": number})])


def prepare(path):
    with open_run(path, write=True) as store:
        store.add_items([{"ID": name, "text": name} for name in "ab"])
        store.add_condition(ps.Condition("judge"), "judge")
    return path


@LOSSES
def test_the_copy_holds_what_was_written_before_and_what_was_being_written(lose, tmp_path):
    path = prepare(tmp_path / "run.db")
    with open_run(path, write=True) as store:
        store.writer.commit([answer(1)])
        lose(path)
        with pytest.raises(StoreGoneError) as error:
            store.writer.commit([answer(2)])
    assert saved_by(error) == tmp_path / "run.recovered-1.db"
    with open_run(saved_by(error)) as copy:
        assert copy.counts() == {"items": 2, "pairs": 2, "attempts": 2, "comparisons": 2}
        assert check_evidence(copy).problems == []


def test_further_writes_fail_too_and_are_in_the_same_copy(tmp_path):
    path = prepare(tmp_path / "run.db")
    with open_run(path, write=True) as store:
        path.unlink()
        for number in (1, 2, 3):
            with pytest.raises(StoreGoneError) as error:
                store.writer.commit([answer(number)])
            assert saved_by(error) == tmp_path / "run.recovered-1.db"
    with open_run(saved_by(error)) as copy:
        assert copy.results()["custom_id"].to_list() == ["step-000001", "step-000002", "step-000003"]


def test_a_copy_of_before_is_left_alone(tmp_path):
    path = prepare(tmp_path / "run.db")
    (tmp_path / "run.recovered-1.db").write_text("mine")
    with open_run(path, write=True) as store:
        path.unlink()
        with pytest.raises(StoreGoneError) as error:
            store.log("notes", [{"a": 1}])
    assert saved_by(error) == tmp_path / "run.recovered-2.db"
    assert (tmp_path / "run.recovered-1.db").read_text() == "mine"


def test_without_its_folder_the_copy_is_among_the_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    path = prepare(tmp_path / "folder" / "run.db")
    with open_run(path, write=True) as store:
        shutil.rmtree(tmp_path / "folder")
        with pytest.raises(StoreGoneError) as error:
            store.writer.commit([answer(1)])
    assert saved_by(error) == tmp_path / "temporary" / "run.recovered-1.db"
    with open_run(saved_by(error)) as copy:
        assert copy.counts()["comparisons"] == 1


def test_every_entry_of_a_group_fails_and_is_in_the_copy(tmp_path):
    path = prepare(tmp_path / "run.db")

    async def main():
        with open_run(path, write=True) as store:
            async with GroupCommitWriter(store) as writer:
                await writer.write(answer(1))
                path.unlink()
                said = await asyncio.gather(*(writer.write(answer(n)) for n in (2, 3)), return_exceptions=True)
                writer.put(answer(4))  # as an interrupted attempt is
        return said

    assert [type(one) for one in asyncio.run(main())] == [StoreGoneError] * 2
    with open_run(tmp_path / "run.recovered-1.db") as copy:
        assert copy.results()["custom_id"].to_list() == [f"step-{number:06d}" for number in (1, 2, 3, 4)]


def test_whatever_a_journal_is_given_is_in_the_copy_though_every_call_fails(tmp_path):
    path = prepare(tmp_path / "run.db")
    with open_run(path, write=True) as store:
        journal = JournalWriter(store)
        journal.put(answer(1))
        journal.flush()
        path.unlink()
        with store._turn:  # nothing can be written while this thread has its turn
            for number in range(2, 6):
                journal.put(answer(number))
        with pytest.raises(StoreGoneError):
            journal.flush()
        for number in (6, 7):
            with pytest.raises(StoreGoneError) as error:
                journal.put(answer(number))
        journal.close()
    with open_run(saved_by(error)) as copy:
        assert copy.read_columns("step_log")["step_id"] == [1, 2, 3, 4, 5, 6, 7]
        assert copy.counts()["comparisons"] == 7
        assert check_evidence(copy).problems == []


class Losing:
    """A judge during whose tenth question the run file is lost."""

    condition = ps.Condition("losing")

    def __init__(self, path, lose):
        self._path, self._lose = path, lose
        self.asked = self.answered = 0

    async def compare(self, pair):
        self.asked += 1
        if self.asked == 10:
            self._lose(self._path)
        await asyncio.sleep(0)
        self.answered += 1
        return ps.Verdict.win(1 if pair.first["ID"] < pair.second["ID"] else 2)


def judge_pairs(judge, run):
    return ps.submit_pairs(PAIRS, judge, run=run, progress=False, concurrency=4)


def rank(judge, run):
    options = {"n_steps": None, "max_comparisons": 30, "fit_fn": "laplace", "progress": "none", "concurrency": 4}
    return ps.adaptive_rank(TEXTS, judge=judge, run=run, **options)


@pytest.mark.slow_except("*adaptive*", "*pairs*")
@LOSSES
@pytest.mark.parametrize("call", [judge_pairs, rank])
def test_a_run_ends_with_an_error_and_continues_from_the_copy_without_asking_again(call, lose, tmp_path):
    path = tmp_path / "run.db"
    judge = Losing(path, lose)
    with pytest.raises(StoreGoneError) as error:
        call(judge, path)
    saved = saved_by(error)
    with open_run(saved) as copy:
        stored = copy.counts()["comparisons"]
        assert stored == judge.answered
        assert stored >= 10
    for name in ("run.db", "elsewhere.db"):
        (tmp_path / name).unlink(missing_ok=True)
    saved.rename(path)
    again = Losing(path, lambda _: None)
    call(again, path)
    with open_run(path) as store:
        assert store.counts()["comparisons"] == stored + again.asked == (66 if call is judge_pairs else 30)


@LOSSES
def test_a_label_is_not_acknowledged_when_the_run_file_is_gone(tmp_path, lose):
    cases = [Case(f"c{n}", f"t{n}", "clarity", "", f"One {n}.", f"Two {n}.") for n in range(3)]
    path = tmp_path / "folder" / "labels.db"
    path.parent.mkdir()
    with LabelStore(path, cases) as store:
        ann = store.add_labeller("ann")
        store.answer(ann, store.next(ann).question_id, "1")
        asked = store.next(ann)
        lose(path)
        with pytest.raises(StoreGoneError) as error:
            store.answer(ann, asked.question_id, "2")
        with pytest.raises(StoreGoneError):
            store.run.require_there()
    with LabelStore(saved_by(error), cases, write=False) as saved:
        assert len(saved.rows()) == 2
