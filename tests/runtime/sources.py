"""Small sources in memory, judges, and a runtime that asks about them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import contextmanager
from typing import Any

import pytest

import pairscale as ps
from pairscale.runtime import Question, Recorded, RunOptions, Runtime, Wait
from pairscale.store.policies import GroupCommitWriter, JournalWriter
from pairscale.store.runfile import RunFile, open_run

Answer = Callable[[ps.JudgePair], Awaitable[ps.Verdict]]
SAMPLES = {name: {"ID": name, "item_id": name, "text": f"text {name}"} for name in "abcdefghijklmnopqrstuvwxyz"}
WRONG_KEY = ps.Verdict.fail("http_error", "Incorrect API key provided", failure="judge", status_code=401)


class Judge:
    """A judge that answers by a function of the pair."""

    def __init__(self, answer: Answer) -> None:
        self.condition = ps.Condition("judge")
        self._answer = answer
        self.asked: list[tuple[str, int]] = []
        self.open = self.most_open = 0

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        self.asked.append((pair.uid, pair.attempt))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            return await self._answer(pair)
        finally:
            self.open -= 1


class Priced(Judge):
    """A judge that says beforehand what a question may cost."""

    def max_cost_of(self, _pair: ps.JudgePair) -> float:
        return 0.25


async def first(_pair: ps.JudgePair) -> ps.Verdict:
    await asyncio.sleep(0)
    return ps.Verdict.win(1)


def pairs_of(n: int) -> list[tuple[str, str]]:
    """Pairs of which none shares a text with another, as far as there are texts."""
    names = list(SAMPLES)
    return [(names[2 * at % 26], names[(2 * at + 1) % 26]) for at in range(n)]


class Listed:
    """Questions in a list; some calls of ``next`` answer with a :class:`Wait`."""

    def __init__(self, judge: Any, pairs: Iterable[tuple[str, str]], store: RunFile, **more: Any) -> None:
        self.condition_id = store.add_condition(judge.condition)
        self.left = [
            Question(judge, self.condition_id, f"q{at}", SAMPLES[one], SAMPLES[two], **more)
            for at, (one, two) in enumerate(pairs, start=1)
        ]
        self.taken: list[tuple[str, str | None]] = []
        self.given_back: list[str] = []
        self.main: Any = None

    def next(self) -> Question | Wait | None:
        return self.left.pop(0) if self.left else None

    def done(self, question: Question, recorded: Recorded | None) -> Any:
        if recorded is None:
            self.given_back.append(question.uid)
            return ()
        self.taken.append((question.uid, str(recorded.verdict.outcome)))
        return [("step_log", {"uid": question.uid})]


@contextmanager
def opened(where: Any = None) -> Any:
    with open_run(where, write=True) as store:
        store.add_items(SAMPLES.values())
        yield store


def run_with(
    answer: Answer | Judge,
    pairs: Iterable[tuple[str, str]],
    store: RunFile,
    *,
    source: Callable[..., Any] = Listed,
    journal: bool = False,
    concurrency: int = 4,
    retries: int = 3,
    **more: Any,
) -> tuple[Any, Runtime, Judge, BaseException | None]:
    """Run to the end, and return the source, the runtime, the judge and what was raised."""
    judge = answer if isinstance(answer, Judge) else Judge(answer)
    made = source(judge, pairs, store)
    options = RunOptions(concurrency, retries, more.pop("retry_wait", 0.0), more.pop("timeout", None))

    async def main() -> tuple[Any, Runtime, Judge, BaseException | None]:
        made.main = asyncio.current_task()
        raised: BaseException | None = None
        try:
            if journal:
                with JournalWriter(store) as writer:
                    runtime = Runtime(made, writer, options, **more)
                    await runtime.run()
            else:
                async with GroupCommitWriter(store) as group:
                    runtime = Runtime(made, group, options, **more)
                    await runtime.run()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the test looks at it
            raised = error
        return made, runtime, judge, raised

    return asyncio.run(asyncio.wait_for(main(), 600))


BOTH = pytest.mark.parametrize("journal", [False, True], ids=["group commit", "journal"])
