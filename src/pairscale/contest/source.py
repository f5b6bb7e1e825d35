"""Contests as one source of questions for the runtime: the one that has been asked least comes first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import polars as pl

from pairscale.contest.engine import Contest
from pairscale.core.comparisons import Outcome, ordered_key
from pairscale.core.notices import notice
from pairscale.judges.base import Item, Judge, judge_member
from pairscale.runtime import LogRows, Question, Recorded, Wait


@dataclass(slots=True, eq=False)
class CandidateSet:
    """Candidates of which one is the best.

    Attributes:
        name: the set's; empty where there is only one.
        candidates: as the judge sees them, each text once.
        twins: by candidate, the IDs that the user knows this text by.
        contest: what is known of them.
        most: how many questions may be asked about this set.
        asked: questions of all calls, also those without an answer.
        aside: numbers of the candidates that are set aside.
    """

    name: str
    candidates: list[Item]
    twins: list[list[str]]
    contest: Contest
    most: float = math.inf
    asked: int = 0
    aside: list[int] = field(default_factory=list[int])

    @property
    def may_ask(self) -> bool:
        """Whether its own limit allows another question."""
        return self.asked < self.most


class ContestSource:
    """The questions of many contests.

    Args:
        sets: the contests with their candidates.
        judge: who is asked.
        condition_id: under which condition answers are recorded.
        earlier: results of earlier calls.
        most: how many questions may be asked in all, earlier ones too.

    Attributes:
        n_answers: how many answers there are, of all calls.
        n_asked: how many questions were asked, of all calls.
        last_failure: why the last question without an answer had none.
    """

    def __init__(
        self, sets: Sequence[CandidateSet], judge: Judge, condition_id: str, earlier: pl.DataFrame, most: float
    ) -> None:
        self.n_answers = 0
        self.n_asked = 0
        self.last_failure: str | None = None
        self._sets = sets
        self._judge = judge
        self._is_graded = bool(judge_member(judge, "graded"))
        self._condition_id = condition_id
        self._most = most
        self._n_open = 0
        self._places = {
            str(item["ID"]): (set_number, number)
            for set_number, candidate_set in enumerate(sets)
            for number, item in enumerate(candidate_set.candidates)
        }
        self._times: Counter[str] = Counter()
        for ID1, ID2, outcome, better_sample, probability in earlier.select(
            "ID1", "ID2", "outcome", "better_sample", "probability"
        ).iter_rows():
            self._recall(ID1, ID2, Outcome(outcome), {"SAMPLE_1": 1, "SAMPLE_2": 2}.get(better_sample), probability)
        self._queue = [(candidate_set.asked, set_number) for set_number, candidate_set in enumerate(sets)]
        heapify(self._queue)
        self._queued = set(range(len(sets)))

    def _recall(self, ID1: str, ID2: str, outcome: Outcome, winner: int | None, probability: float | None) -> None:
        """Take a result of an earlier call; one without an answer gets another chance, but counts as asked."""
        set_number, first = self._places[ID1]
        second = self._places[ID2][1]
        self._times[ordered_key(ID1, ID2)] += 1
        self._sets[set_number].asked += 1
        self.n_asked += 1
        if outcome.is_answer:
            self._sets[set_number].contest.open(first, second)
            self._record(set_number, first, second, winner, probability)

    def next(self) -> Question | Wait | None:
        """The next question of the set that was asked least."""
        while self._queue and self.n_asked < self._most:
            set_number = heappop(self._queue)[1]
            self._queued.remove(set_number)
            candidate_set = self._sets[set_number]
            pair = candidate_set.contest.next_pair() if candidate_set.may_ask else None
            if pair is not None:
                return self._question(set_number, *pair)
        return Wait() if self._n_open else None

    def _question(self, set_number: int, first: int, second: int) -> Question:
        candidate_set = self._sets[set_number]
        candidate_set.contest.open(first, second)
        candidate_set.asked += 1
        self.n_asked += 1
        self._n_open += 1
        self._requeue(set_number)
        left = candidate_set.candidates[first]
        right = candidate_set.candidates[second]
        key = ordered_key(str(left["ID"]), str(right["ID"]))
        self._times[key] += 1
        times = self._times[key]
        return Question(
            self._judge, self._condition_id, f"{key}#{times}", left, right, key=(set_number, first, second),
            occurrence=times,
        )  # fmt: skip

    def _requeue(self, set_number: int) -> None:
        if set_number not in self._queued:
            self._queued.add(set_number)
            heappush(self._queue, (self._sets[set_number].asked, set_number))

    def done(self, question: Question, recorded: Recorded | None) -> LogRows:
        """Take an outcome: an answer, a failure, or None for a question that was given up."""
        set_number, first, second = question.key
        candidate_set = self._sets[set_number]
        self._n_open -= 1
        self._requeue(set_number)
        if recorded is None:
            candidate_set.contest.release(first, second)
            candidate_set.asked -= 1
            self.n_asked -= 1
            return ()
        verdict = recorded.verdict
        if verdict.outcome.is_answer:
            self._record(set_number, first, second, verdict.winner_pos, verdict.probability)
            return ()
        self.last_failure = verdict.error_message or f"the judge said {verdict.outcome}"
        for number in candidate_set.contest.fail(first, second):
            candidate_set.aside.append(number)
            where = f" of {candidate_set.name}" if candidate_set.name else ""
            name = candidate_set.twins[number][0]
            notice(f"{name}{where} is set aside: the judge never answered on it ({self.last_failure})")
        return ()

    def _record(self, set_number: int, first: int, second: int, winner: int | None, probability: float | None) -> None:
        self.n_answers += 1
        if self._is_graded and probability is not None:
            share = probability
        elif winner is None:  # a tie, or each order named another
            share = 0.5
        else:
            share = 2.0 - winner
        self._sets[set_number].contest.record(first, second, share)
