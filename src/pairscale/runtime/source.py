"""What a runtime asks, and where its questions come from."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from pairscale.core.tables import Row
from pairscale.judges.base import Item, Judge, JudgePair, Verdict

LogRows: TypeAlias = Sequence[tuple[str, Row]]
"""Rows of logs that belong to an answer, as (log, row)."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one judge: which of these two?

    Attributes:
        judge: who is asked.
        condition_id: under which condition the answer is recorded.
        uid: name of the pair in the run file.
        first: the sample shown first.
        second: the sample shown second.
        key: anything that the source recognises the question by.
        pair_id: number of the pair in the run file, where it is known.
        attempt: number of the next attempt; 1 when the question was never asked.
        replaces: whether the run file holds an earlier outcome that the new one replaces.
        occurrence: 2 when the run asks about the same two texts on purpose for the second time, and so on.
        state: the adaptive run that asks, for judges that look at it.
        columns: further columns of the pair, when it is new in the run file.
        open_rows: rows of logs to write with an attempt that settles nothing, so that the question is found again.
        retries: how often to ask again after a transient failure; None takes the runtime's.
    """

    judge: Judge
    condition_id: str
    uid: str
    first: Item
    second: Item
    key: Any = None
    pair_id: int | None = None
    attempt: int = 1
    replaces: bool = False
    occurrence: int = 1
    state: Any = None
    columns: Row = field(default_factory=dict)
    open_rows: LogRows = ()
    retries: int | None = None

    def pair(self, turn: int = 0) -> JudgePair:
        """The question as the judge sees it, when it is asked for the ``turn``-th time again.

        It is given copies of the samples: what it does to them changes neither the record nor another question.
        """
        return JudgePair(
            dict(self.first), dict(self.second), self.uid, self.attempt + turn, self.state, self.occurrence
        )


@dataclass(frozen=True, slots=True)
class Wait:
    """There is no question now, but there may be one later.

    Attributes:
        until: when to ask the source again; None means after the next outcome.
        hold: hand over no outcome before ``until`` is done.
    """

    until: Awaitable[Any] | None = None
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of a question, as it goes into the run file.

    Attributes:
        verdict: an answer or a failure.
        attempt: columns of the attempt.
        comparison: columns of the comparison.
    """

    verdict: Verdict
    attempt: Row
    comparison: Row


class Source(Protocol):
    """Where questions come from and outcomes go to.

    A list of pairs, the adaptive engine and the cases of an A/B run are sources. A source never blocks, and all its
    methods are called in the thread of the event loop. After a crash it is rebuilt from the run file and offers the
    questions that were open once more.
    """

    def next(self) -> Question | Wait | None:
        """The next question; a :class:`Wait` when there is none yet; None when there will be none."""
        ...

    def done(self, question: Question, recorded: Recorded | None) -> LogRows:
        """Take an outcome.

        With a group-commit writer, the outcome is on the disk before this is called. With a journal, this is called in
        the order of arrival, and the rows that it returns are written together with the outcome.

        Args:
            question: the question.
            recorded: an answer or a failure; None when the question was given up (an interrupt, a limit, a judge that
                cannot be asked), so that it is still open. On an interrupt, None may follow an outcome.
        """
        ...
