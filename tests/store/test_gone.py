"""A run file that is deleted, moved or replaced while it is written to: an error."""

import asyncio

import pytest

import pairscale as ps
from pairscale.core.errors import StoreGoneError
from pairscale.people import Case, LabelStore
from pairscale.store.audit import check_evidence
from pairscale.store.runfile import open_run
from tests.store.entries import answered, prepared

TEXTS = [{"ID": f"t{number:02d}", "text": f"text of number {number}"} for number in range(12)]
PAIRS = ps.make_pairs(TEXTS)


def deleted(path):
    path.unlink()


def replaced(path):
    with open_run(path.with_name("another.db"), write=True):
        pass
    path.with_name("another.db").replace(path)


def emptied(path):
    """With all that belongs to it, as a careless clean-up does.

    The run file goes first: where a write falls between it and its lock file, the error names what is gone by then.
    """
    path.unlink()
    for file in path.parent.iterdir():
        file.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere.db"))


LOSSES = pytest.mark.parametrize("lose", [deleted, replaced, emptied, moved])


@LOSSES
def test_nothing_more_is_written_and_every_call_says_so(message_snapshot, lose, tmp_path):
    path = tmp_path / "run.db"
    with prepared(path) as store:
        store.writer.commit([answered(1)])
        lose(path)
        for number in (2, 3):
            with pytest.raises(StoreGoneError) as refused:
                store.writer.commit([answered(number)])
            message_snapshot(refused)
    if lose is moved:
        (tmp_path / "elsewhere.db").rename(path)
        with open_run(path) as kept:
            assert kept.counts() == {"items": 2, "pairs": 1, "attempts": 1, "comparisons": 1}
            assert check_evidence(kept).problems == []


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
def test_a_run_ends_with_an_error_and_continues_when_the_file_is_back(call, lose, tmp_path):
    path = tmp_path / "run.db"
    judge = Losing(path, lose)
    with pytest.raises(StoreGoneError):
        call(judge, path)
    if lose is not moved:
        return
    (tmp_path / "elsewhere.db").rename(path)
    with open_run(path) as store:
        stored = store.counts()["comparisons"]
    assert stored > 0 or call is rank  # a journal writes in the background
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
        with pytest.raises(StoreGoneError):
            store.answer(ann, asked.question_id, "2")
        with pytest.raises(StoreGoneError):
            store.run.require_there()
