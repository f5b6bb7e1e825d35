"""Ask a judge once: whatever it does becomes a verdict."""

from __future__ import annotations

import asyncio
import inspect
import random
from dataclasses import dataclass, field, replace
from typing import Any

from pairscale.core.errors import JudgeError
from pairscale.core.notices import notice
from pairscale.core.timelimit import TimeLimitError, within
from pairscale.judges.base import Judge, JudgePair, Verdict, judge_member
from pairscale.judges.function import ends_run, raised, verdict_of
from pairscale.judges.panel import members_of
from pairscale.providers.client import pause, say_wait


async def ask_once(judge: Judge, pair: JudgePair, timeout: float | None = None) -> Verdict:
    """Ask a judge one question, once.

    Args:
        judge: who is asked.
        pair: the question.
        timeout: seconds after which there is no answer; None waits as long as the judge does.

    Returns:
        The verdict; an exception of the judge is one, too.

    Raises:
        PairscaleError: the judge cannot judge these pairs at all, so that asking about others is pointless.
    """
    try:
        return await within(timeout, verdict_of(judge, pair))
    except KeyboardInterrupt:  # a task must not end with it: the event loop would stop at once
        raise asyncio.CancelledError from None
    except TimeLimitError as error:
        return Verdict.fail("timeout", str(error), failure="transient")


async def ask_unrecorded(judge: Judge, pair: JudgePair, retries: int) -> Verdict:
    """Ask a judge outside a run, and again after a transient failure, at most ``retries`` times.

    Raises:
        JudgeError: the judge can answer no question: a wrong key, an unknown model.
    """
    jitter = random.Random(pair.uid)  # noqa: S311 - spreads retries, keeps no secret
    for turn in range(retries + 1):
        verdict = await ask_once(judge, replace(pair, attempt=turn + 1))
        if verdict.failure == "judge":
            raise JudgeError(verdict.error_message or "the judge cannot be asked")
        if verdict.failure != "transient" or turn == retries:
            break
        wait = pause(verdict.retry_after, turn, jitter)
        say_wait(wait, verdict.error_message)
        await asyncio.sleep(wait)
    return verdict


async def close(asked: object) -> None:
    """Have a judge, a comparator or a variant close what it holds open (connections), if it holds anything.

    Where closing fails, a notice says so: the answers have arrived by then, and must not be lost with it.
    """
    for member in members_of(asked):
        await _close(member)


async def _close(asked: object) -> None:
    try:
        aclose = judge_member(asked, "aclose")
        if aclose is not None and inspect.isawaitable(closing := aclose()):
            await closing
    except BaseException as error:
        if ends_run(error):
            raise
        notice(f"closing {_name(asked)} failed, and its answers are kept: {raised(error)}")


def _name(asked: Any) -> str:
    """What a judge, a comparator or a variant is called."""
    return str(getattr(getattr(asked, "condition", None), "judge_id", None) or f"a {type(asked).__name__}")


MOST_ALIKE = 10
"""The number of different questions in a row that fail in the same way before the judge counts as failing."""


@dataclass(slots=True)
class FailureStreak:
    """Counts alike failures in a row.

    Attributes:
        most: different questions that make a streak.
    """

    most: int = MOST_ALIKE
    _kind: str | None = None
    _questions: set[tuple[str, str]] = field(default_factory=set)

    def count(self, verdict: Verdict, first: str, second: str) -> bool:
        """Count the final outcome of a question; True when the judge itself fails.

        Args:
            verdict: the outcome.
            first: ID of the sample shown first.
            second: ID of the other.
        """
        if verdict.outcome.is_answer:
            return self.count_kind(None, first, second)
        message = (verdict.error_message or "").partition(":")[0][:60]
        return self.count_kind(f"{verdict.error_code}|{verdict.status_code}|{message}", first, second)

    def count_kind(self, kind: str | None, first: str, second: str) -> bool:
        """The same, by a name for the kind of failure; None for a success."""
        if kind != self._kind or kind is None:
            self._kind = kind
            self._questions.clear()
        if kind is not None:
            self._questions.add((first, second))
        return len(self._questions) >= self.most and self.is_general

    @property
    def is_general(self) -> bool:
        """Whether no single text is in all of these questions, so that it is not the text that fails."""
        return bool(self._questions) and not set.intersection(*map(set, self._questions))
