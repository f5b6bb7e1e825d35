"""Judge functions and judges that do what they should not, whichever way they are asked."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.comparisons import Condition
from pairscale.core.errors import JudgeError
from pairscale.judges.orders import BothOrders
from tests.runtime.across import across
from tests.runtime.workflows import FUNCTIONS, WORKFLOWS, Call, attempts_in, known_judge


def longer(A: Any, B: Any) -> dict[str, Any]:
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


def exit_in_thread(_A: Any, _B: Any) -> None:
    sys.exit(3)


async def exit_in_loop(_A: Any, _B: Any) -> None:
    sys.exit(3)


async def own_cancellation(_A: Any, _B: Any) -> None:
    raise asyncio.CancelledError


def generator_exit(_A: Any, _B: Any) -> None:
    raise GeneratorExit


ESCAPES: dict[str, tuple[Callable[..., Any], str]] = {
    "function exits": (exit_in_thread, "SystemExit: 3"),
    "async function exits": (exit_in_loop, "SystemExit: 3"),
    "function is cancelled by itself": (own_cancellation, "CancelledError"),
    "function raises GeneratorExit": (generator_exit, "RuntimeError: GeneratorExit"),
}


def on_fifth(function: Callable[..., Any]) -> Callable[..., Any]:
    """Judge by length, and do something else on the fifth question."""
    number = itertools.count(1)

    def judge(A: Any, B: Any) -> Any:
        return function(A, B) if next(number) == 5 else longer(A, B)

    return judge


@across(FUNCTIONS, *ESCAPES)
def test_whatever_a_function_raises_fails_one_question_and_the_run_continues(
    workflow: str, event: str, tmp_path: Path
) -> None:
    function, words = ESCAPES[event]
    call = Call(str(tmp_path / "run.db"), function=known_judge(on_fifth(function)))
    WORKFLOWS[workflow](call)
    failed = [one for one in attempts_in(call.run) if not one.is_answer]
    assert [(one["failure"], one["error_code"]) for one in failed] == [("question", "judge_error")]
    assert failed[0]["error_message"].startswith(words)


class Escaping:
    """A judge that is no function, and of which every question and the closing escape."""

    condition = Condition("escaping", "function", None, None, None, {})

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        raise self._error

    async def aclose(self) -> None:
        raise self._error


@pytest.mark.parametrize("error", [SystemExit(4), asyncio.CancelledError()], ids=["exit", "cancelled"])
@pytest.mark.parametrize("wrap", [lambda judge: judge, BothOrders], ids=["plain", "both orders"])
def test_a_judge_that_always_escapes_is_a_failure_of_the_judge(
    message_snapshot, error: BaseException, wrap: Callable[[Any], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    call = Call(str(tmp_path / "run.db"), questions=40, n_texts=41, function=wrap(Escaping(error)))
    with pytest.raises(JudgeError) as refused:
        WORKFLOWS["pairs"](call)
    message_snapshot(refused)
    assert "closing escaping failed" in caplog.text


def test_a_variant_that_exits_has_failed_on_its_task() -> None:
    def answer(task: ps.Task) -> str:
        return sys.exit("no answer") if task.task_id == "1" else "an answer"

    tasks = ps.Suite.from_list([{"input": "Say something.", "task_id": f"{at}"} for at in range(3)])
    judge = ps.pairwise_judge(longer, criterion="longer", key="longer")
    done = ps.run_pairwise(tasks, variant_a=answer, variant_b=lambda _: "yes", comparators=[judge], progress=False)
    assert [case.failed for case in done.cases] == [None, "a", None]
    assert "SystemExit: no answer" in done.cases[1].reasoning
