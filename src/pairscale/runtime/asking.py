"""Ask a judge once: whatever it does, there is a verdict; and the columns of an attempt."""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from pairscale.core.errors import JudgeError, PairscaleError
from pairscale.core.notices import notice
from pairscale.core.provenance import utc_now, utc_text
from pairscale.core.timelimit import TimeLimit, TimeLimitError
from pairscale.judges.base import Judge, JudgePair, Verdict, judge_member
from pairscale.judges.function import ends_run, raised
from pairscale.judges.panel import members_of
from pairscale.providers.client import pause, say_wait

__all__ = ["Stopwatch", "ask_once", "ask_unrecorded", "close", "comparison_of"]

_FROM_VERDICT = (
    "failure", "error_code", "error_message", "status_code", "prompt_hash", "request", "raw_response", "model",
    "object_type", "thoughts", "content", "prompt_tokens", "completion_tokens", "total_tokens", "prompt_cached_tokens",
    "reasoning_tokens", "cost",
)  # fmt: skip
_from_verdict = attrgetter(*_FROM_VERDICT)


class Stopwatch:
    """When a judge was asked, and for how long; it runs from the start."""

    __slots__ = ("_asked_at", "_start")

    def __init__(self) -> None:
        self._asked_at = time.time()
        self._start = time.perf_counter()

    def attempt(self, verdict: Verdict, number: int) -> dict[str, Any]:
        """The columns of the attempt that has just ended; ``number`` is 1 for the first of its question."""
        values = dict(zip(_FROM_VERDICT, _from_verdict(verdict), strict=True))
        values["latency_s"] = verdict.latency_s
        if verdict.latency_s is None:
            values["latency_s"] = time.perf_counter() - self._start
        values["attempt"] = number
        values["attempted_at"] = utc_text(self._asked_at)
        values["outcome"] = str(verdict.outcome)
        if verdict.cost_is_estimate:
            sent = {} if verdict.request is None else verdict.request
            if not isinstance(sent, Mapping):
                sent = {"request": sent}
            values["request"] = {**sent, "cost_is_estimate": True}
        return values


async def ask_once(judge: Judge, pair: JudgePair, limit: TimeLimit | None = None) -> Verdict:
    """Ask a judge one question, once.

    Args:
        judge: who is asked.
        pair: the question.
        limit: after which there is no answer; None waits as long as the judge does.

    Returns:
        The verdict; an exception of the judge is one, too.

    Raises:
        PairscaleError: the judge cannot judge these pairs at all, so that asking about others is pointless.
    """
    try:
        verdict = await (judge.compare(pair) if limit is None else limit.within(judge.compare(pair)))
        if not isinstance(verdict, Verdict):
            raise TypeError(f"the judge gave a {type(verdict).__name__}, not a Verdict")
    except PairscaleError:
        raise
    except KeyboardInterrupt:  # a task must not end with it: the event loop would stop at once
        raise asyncio.CancelledError from None
    except TimeLimitError:
        assert limit is not None  # noqa: S101 - it is raised by it alone
        return Verdict.fail("timeout", f"no answer within {limit.seconds:g} seconds", failure="transient")
    except BaseException as error:
        if ends_run(error):
            raise
        return Verdict.fail("judge_error", raised(error))  # a failed judgement is data
    return verdict


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


def comparison_of(verdict: Verdict, first: str, second: str) -> dict[str, Any]:
    """The columns of an outcome that goes into the run file now.

    Args:
        verdict: what the judge said.
        first: ID of the sample shown first.
        second: ID of the other.
    """
    return {
        "outcome": str(verdict.outcome),
        "winner_pos": verdict.winner_pos,
        "better_id": None if verdict.winner_pos is None else (first, second)[verdict.winner_pos - 1],
        "probability": verdict.probability,
        "received_at": utc_now(),
    }


async def close(asked: object) -> None:
    """Have a judge, a comparator or a variant close what it holds open (connections), if it holds anything.

    One that cannot be closed is told in a line: the answers have arrived by then, and must not be lost with it.
    """
    for one in members_of(asked):
        await _close(one)


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
