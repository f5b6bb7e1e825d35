"""The same events, whichever way judges are asked: success, each kind of failure, a second writer, a lost file.

Events of budgets are in ``test_events_of_budgets.py``, those that need a process of their own in
``test_events_of_processes.py``.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pairscale as ps
from pairscale.core.errors import JudgeError, StoreBusyError, StoreError
from tests.runtime.across import across
from tests.runtime.conftest import Once
from tests.runtime.server import COST, Asked, Reply, Server
from tests.runtime.workflows import (
    LIVE,
    MODELS,
    WORKFLOWS,
    Attempt,
    Call,
    attempts_in,
    known_judge,
    outcomes_in,
    spent_in,
)

Script = Callable[[Asked], Reply | None]
BAD_TEXT = "t02"
ALWAYS = tuple(WORKFLOWS)
MOST_OPEN = 4
"""Questions that may be open at once."""

TRANSIENT = {
    "429": Reply(429, {"message": "Slow down."}, headers={"Retry-After": "0"}),
    "503": Reply(503, {"message": "Overloaded."}),
    "time-out": Reply(fate="never"),
    "reset": Reply(fate="reset"),
}
CONTEXT = "This model's maximum context length is 8192 tokens. Your messages have 9000 tokens."
FLAGGED = {"reasons": ["violence"], "flagged_input": "A text of number 2"}
QUESTION = {
    "400 context length": Reply(400, {"message": CONTEXT, "code": "context_length_exceeded"}),
    "403 flagged input": Reply(403, {"message": "Your input was flagged.", "code": 403, "metadata": FLAGGED}),
    "refused": Reply(refusal="I will not compare these."),
    "filtered": Reply(content="", finish="content_filter"),
    "unparsable": Reply(content="Both have their merits."),
}
JUDGE = {
    "401": Reply(401, {"message": "Incorrect API key provided.", "code": "invalid_api_key"}),
    "404 unknown model": Reply(404, {"message": "The model `test-model` does not exist.", "code": "model_not_found"}),
}


def call_of(server: Server, folder: Path, **given: Any) -> Call:
    return Call(run=str(folder / "run.db"), url=server.url, **given)


def ask(workflow: str, call: Call) -> Any:
    return WORKFLOWS[workflow](call)


def wins(run: str) -> int:
    return sum(outcome == "win" for _, outcome in outcomes_in(run))


def at(number: int, reply: Reply, kind: str = "question") -> Script:
    """A reply to one request of a kind, by its number."""
    return lambda asked: reply if (asked.kind, asked.number) == (kind, number) else None


def about(name: str, reply: Reply) -> Script:
    """A reply to every question about a text."""
    return lambda asked: reply if name in asked.texts else None


# Success


def succeeded(workflow: str, event: str, folder: Path) -> tuple[Server, Call, int]:
    """A run, and how many requests came in before the same call was made again."""
    with Server() as server:
        call = call_of(server, folder)
        ask(workflow, call)
        asked = len(server.asked)
        ask(workflow, call)
        return server, call, asked


@across(ALWAYS, "success")
def test_every_question_is_asked_once_and_kept(workflow: str, event: str, once: Once) -> None:
    server, call, asked = once(succeeded, workflow, event)
    assert len(server.questions) == len(server.good) == wins(call.run) == call.questions
    assert not [one for one in server.asked[asked:] if one.kind in {"question", "upload", "create"}]
    attempts = attempts_in(call.run)
    assert sorted(one.texts for one in attempts) == sorted(one.texts for one in server.questions)
    if workflow in MODELS:
        said = {f"Reply {one.number}. " for one in server.questions}
        assert {one["content"].partition("<")[0] for one in attempts} == said
        assert spent_in(call.run) == pytest.approx(call.questions * COST)


# Failures that pass


def passed(workflow: str, event: str, folder: Path) -> tuple[Server, Call]:
    """A run in which the third question, or for batches the first call, fails once."""
    kind, number = ("create", 1) if workflow == "batch" else ("question", 3)
    timing = {"judge_args": {"timeout": 1.0}} if event == "time-out" else {}
    retries = {"options": {"retries": 10}} if timing and workflow not in {"study", "check"} else {}
    with Server(at(number, TRANSIENT[event], kind)) as server:
        call = call_of(server, folder, **timing, **retries)
        ask(workflow, call)
        return server, call


@across(LIVE, *TRANSIENT)
@across(("batch",), "429", "503", "reset")
def test_a_transient_failure_is_asked_again(workflow: str, event: str, once: Once) -> None:
    server, call = once(passed, workflow, event.partition(",")[0])
    assert wins(call.run) == call.questions == len(server.good)
    answered = sum(one["cost"] or 0.0 for one in attempts_in(call.run) if one.is_answer)
    assert answered == pytest.approx(call.questions * COST)
    may_have_cost = workflow != "batch" and event in {"time-out", "reset"}
    assert (spent_in(call.run) > answered + COST / 2) == may_have_cost
    if workflow == "batch":
        assert len(server.batches) == 2
        return
    failed = server.questions[2].texts
    outcomes = [one["outcome"] for one in attempts_in(call.run) if one.texts == failed]
    assert outcomes[0] == "error"
    assert outcomes[-1] == "win"
    assert len(attempts_in(call.run)) == len(server.questions)


@across(LIVE, "503 that stays")
def test_a_question_whose_failure_does_not_pass_is_given_up_after_its_retries(
    workflow: str, event: str, tmp_path: Path
) -> None:
    failing: list[tuple[str, ...]] = []

    def script(asked: Asked) -> Reply | None:
        if asked.number == 3:
            failing.append(asked.texts)
        return TRANSIENT["503"] if asked.texts in failing else None

    with Server(script) as server:
        call = call_of(server, tmp_path, options={"retries": 1})
        ask(workflow, call)
        expected = call.questions if workflow == "adaptive" else call.questions - (2 if workflow == "study" else 1)
        assert wins(call.run) == len(server.good) == expected
        failed = [one for one in attempts_in(call.run) if not one.is_answer]
        assert len(failed) == server.bad >= 2
        assert {(one.texts, one["failure"]) for one in failed} == {(failing[0], "transient")}


REFUSED = 6


@pytest.mark.parametrize("for_minutes", [10, 0])
@across(("pairs", "adaptive", "ab"), "429 while others are answered")
def test_refusals_use_up_no_retries_while_others_are_answered_for_ten_minutes(
    workflow: str, event: str, for_minutes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pairscale.runtime.run._REFUSED_AT_MOST_S", 60.0 * for_minutes)
    failing: list[tuple[str, ...]] = []

    def script(asked: Asked) -> Reply | None:
        if asked.number == 5:
            failing.append(asked.texts)
        if asked.texts in failing and asked.turn <= REFUSED:
            return TRANSIENT["429"]
        if asked.number == 6:  # another question is open until the refused one was given up, or is answered
            return Reply(until=lambda server: server.bad >= (REFUSED if for_minutes else 2))
        return None

    with Server(script) as server:
        call = call_of(server, tmp_path, options={"retries": 1})
        ask(workflow, call)
        asked = [one for one in attempts_in(call.run) if one.texts == failing[0]]
        refused = [one for one in asked if one["error_code"] == "rate_limited"]
        assert (len(refused), len(asked)) == ((REFUSED, REFUSED + 1) if for_minutes else (2, 2))
        assert server.bad == len(refused)


# Failures of one question


def failed_on_one_text(workflow: str, event: str, folder: Path) -> tuple[Server, Call]:
    """A run in which every question about one text fails, and no other does."""
    function = known_judge(raises_on_one_text) if event == "function raises" else None
    with Server(about(BAD_TEXT, QUESTION.get(event, Reply(content="skipped")))) as server:
        call = call_of(server, folder, n_texts=5 if workflow == "check" else 8, function=function)
        ask(workflow, call)
        return server, call


def raises_on_one_text(A: Any, B: Any) -> dict[str, Any]:
    if BAD_TEXT in A["text"] + B["text"]:
        raise ZeroDivisionError("this text has no length")
    return {"is_valid": True, "Y": int(A["text"] > B["text"])}


@across(MODELS, *QUESTION)
@across(("people",), "skipped")
def test_a_question_that_fails_does_not_stop_the_others(workflow: str, event: str, once: Once) -> None:
    server, call = once(failed_on_one_text, workflow, event.partition(",")[0])
    asked = {one.texts for one in server.questions}
    about_it = [texts for texts in asked if BAD_TEXT in texts]
    assert about_it
    answered = [texts for texts, outcome in outcomes_in(call.run) if outcome == "win"]
    if workflow in {"adaptive", "people"}:
        assert len(answered) == call.questions
    else:
        left_out = sum(BAD_TEXT in texts for texts in (one.texts for one in server.questions if one.turn <= 2))
        assert len(answered) >= call.questions - left_out
        assert set(answered) == asked - set(about_it)
    assert not {texts for texts in answered if BAD_TEXT in texts}
    assert sorted(one.texts for one in attempts_in(call.run)) == sorted(one.texts for one in server.questions)


@across(MODELS, *(f"{name}, in failed_attempts" for name in QUESTION))
def test_failed_attempts_have_all_that_came_back(workflow: str, event: str, once: Once) -> None:
    _, call = once(failed_on_one_text, workflow, event.partition(",")[0])
    n = sum(BAD_TEXT in one.texts for one in attempts_in(call.run))
    with ps.open_run(call.run) as store:
        rows = store.failed_attempts().to_dicts()
    assert len(rows) == n > 0
    assert {row["failure"] for row in rows} == {"question"}
    assert_all_there(rows, QUESTION[event.partition(",")[0]])


def assert_all_there(rows: list[Any], reply: Reply) -> None:
    """Content, tokens, cost and raw reply, as far as the server gave them."""
    for row in rows:
        raw = str(row["raw_response"])
        if reply.status != 200:
            assert reply.error["message"].partition(".")[0] in raw.replace("\\", "")
            continue
        assert "chatcmpl-" in raw
        assert (row["prompt_tokens"], row["completion_tokens"], row["total_tokens"]) == (200, 100, 300)
        assert row["cost"] == pytest.approx(COST)
        if reply.content:
            assert row["content"] == reply.content
        if reply.refusal:
            assert reply.refusal in raw


@across(("adaptive", "people"), "one text of thirty")
def test_a_text_that_always_fails_is_set_aside_and_the_run_goes_to_its_end(
    workflow: str, event: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reply = Reply(content="no") if workflow == "people" else QUESTION["400 context length"]
    with Server(about(BAD_TEXT, reply)) as server:
        call = call_of(server, tmp_path, questions=100, n_texts=30, concurrency=1)
        result = ask(workflow, call)
        assert wins(call.run) == result.state.engine.committed == 100
        assert result.state.ended == "max_comparisons"
        failed = [one for one in server.questions if BAD_TEXT in one.texts]
    assert len(failed) == result.state.engine.config.max_invalid_per_item
    assert any(BAD_TEXT in record.getMessage() and "set aside" in record.getMessage() for record in caplog.records)


# Failures of the judge


def refused_with_others_open(workflow: str, event: str) -> Script:
    """The second question is refused while others are open, whose answers come afterwards."""
    refusal = JUDGE[event.partition(",")[0]]
    if workflow == "batch":
        return at(2, refusal, "create")

    def script(asked: Asked) -> Reply | None:
        if asked.number == 2:
            return replace(refusal, until=lambda server: server.open >= 4, delay=0.2)
        return Reply(until=lambda server: server.bad > 0, delay=0.5) if asked.number <= MOST_OPEN else None

    return script


class Stopped(NamedTuple):
    """A run that its judge stopped, and what was asked and in the run file then."""

    call: Call
    error: JudgeError
    asked: int
    good: int
    batches: int
    attempts: list[Attempt]


def stopped(workflow: str, server: Server, call: Call) -> Stopped:
    with pytest.raises(JudgeError) as raised:
        ask(workflow, call)
    server.wait(lambda found: found.open == 0)
    counts = len(server.questions), len(server.good), len(server.batches)
    return Stopped(call, raised.value, *counts, attempts_in(call.run))


def refused(workflow: str, event: str, folder: Path) -> tuple[Stopped, int]:
    """A run whose judge refuses, and the answers of the server when the same call was made again."""
    with Server(refused_with_others_open(workflow, event)) as server:
        found = stopped(workflow, server, call_of(server, folder, questions=16))
        ask(workflow, found.call)
        return found, len(server.good)


@across(MODELS, *JUDGE)
def test_a_judge_that_cannot_judge_stops_the_run_after_the_open_answers(workflow: str, event: str, once: Once) -> None:
    found, good = once(refused, workflow, event)
    assert re.search(r"key|model", str(found.error))
    if workflow == "batch":
        assert found.batches == 1
    else:
        assert 4 <= found.asked <= MOST_OPEN
        assert sum(one.is_answer for one in found.attempts) == found.good == found.asked - 1
    assert good == wins(found.call.run) == found.call.questions
    assert spent_in(found.call.run) == pytest.approx(found.call.questions * COST)


@across(("people",), "nobody answers")
def test_people_who_leave_stop_the_run(message_snapshot, workflow: str, event: str, tmp_path: Path) -> None:
    with Server(at(3, Reply(leave=True))) as server:
        call = call_of(server, tmp_path)
        with pytest.raises(JudgeError) as refused:
            ask(workflow, call)
        message_snapshot(refused)
        assert wins(call.run) == len(server.good) == 3
        ask(workflow, call)
        assert wins(call.run) == len(server.good) == call.questions


def malformed(workflow: str, event: str, folder: Path) -> Stopped:
    """A run in which every question fails, in the same way."""
    with Server(lambda asked: Reply(400, {"message": "It is malformed."}) if asked.texts else None) as server:
        return stopped(workflow, server, call_of(server, folder, questions=40, n_texts=41))


@across(tuple(name for name in MODELS if name != "batch"), "the same on ten")
def test_the_same_failure_on_ten_questions_is_a_failure_of_the_judge(workflow: str, event: str, once: Once) -> None:
    found = once(malformed, workflow, event)
    assert "It is malformed." in str(found.error)
    assert 10 <= found.asked <= 9 + MOST_OPEN
    assert len(found.attempts) == found.asked


# Two writers, and a file that is gone


@across(ALWAYS, "second writer")
def test_a_second_writer_is_refused_and_the_first_is_not_disturbed(workflow: str, event: str, tmp_path: Path) -> None:
    on, kind = threading.Event(), "create" if workflow == "batch" else "question"
    with Server(at(1, Reply(until=lambda _server: on.is_set()), kind)) as server, ThreadPoolExecutor(1) as pool:
        call = call_of(server, tmp_path)
        first = pool.submit(ask, workflow, call)
        server.wait(lambda found: any(one.kind == kind for one in found.asked), lambda: not first.done())
        try:
            before = {one.kind for one in server.asked}
            with pytest.raises(StoreBusyError, match=r"run\.db"):
                ask(workflow, call)
            assert {one.kind for one in server.asked} == before
        finally:
            on.set()
            server.release()
        first.result()
        assert len(server.questions) == len(server.good) == wins(call.run) == call.questions


@across(ALWAYS, "deleted file")
def test_a_run_file_that_disappears_is_an_error(workflow: str, event: str, tmp_path: Path) -> None:
    def script(asked: Asked) -> None:
        if (asked.kind, asked.number) == (("look", 1) if workflow == "batch" else ("question", 6)):
            for file in tmp_path.glob("run.db*"):
                if file.is_file() and file.suffix != ".lock":
                    file.unlink()

    with Server(script) as server:
        call = call_of(server, tmp_path, concurrency=1)
        with pytest.raises(StoreError, match=r"run\.db"):
            ask(workflow, call)
