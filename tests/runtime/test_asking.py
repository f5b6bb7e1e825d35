"""Asking once: whatever a judge does, there is a verdict and an attempt to write down."""

import asyncio
import re

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.timelimit import TimeLimit
from pairscale.providers.client import ProviderError, pause, retrying
from pairscale.runtime import ask_once, ask_unrecorded, close
from pairscale.store.schema import attempt_columns, attempts, comparison_columns

PAIR = ps.JudgePair({"ID": "a", "text": "a"}, {"ID": "b", "text": "b"}, "step-000001")


class Judge:
    condition = ps.Condition("test")

    def __init__(self, answer):
        self._answer = answer

    async def compare(self, pair):
        return await self._answer(pair)


def asked(answer, number=1, timeout=None):
    verdict = asyncio.run(ask_once(Judge(answer), PAIR, None if timeout is None else TimeLimit(timeout)))
    return verdict, attempt_columns(verdict, number, "2026-01-01T00:00:00.000000+00:00", 0.25)


def test_an_answer_and_the_columns_of_its_attempt():
    async def answer(pair):
        return ps.Verdict.win(2, content="SAMPLE_2", cost=0.5, request={"a": 1}, prompt_tokens=7)

    verdict, values = asked(answer, number=3)
    assert verdict.winner_pos == 2
    assert (values["attempt"], values["outcome"], values["content"], values["cost"]) == (3, "win", "SAMPLE_2", 0.5)
    assert (values["request"], values["prompt_tokens"], values["error_code"]) == ({"a": 1}, 7, None)
    assert values["latency_s"] == 0.25
    assert values["attempted_at"].endswith("+00:00")
    assert set(values) == set(attempts.c.keys()) - {"attempt_id", "pair_id", "condition_id"}


def test_the_judges_own_latency_counts():
    async def answer(pair):
        return ps.Verdict.win(1, latency_s=9.5)

    assert asked(answer)[1]["latency_s"] == 9.5


def test_an_exception_is_a_verdict():
    async def answer(pair):
        raise KeyError("text")

    verdict, values = asked(answer)
    assert (str(verdict.outcome), verdict.error_code, verdict.failure) == ("error", "judge_error", "question")
    assert values["error_message"] == verdict.error_message
    assert re.fullmatch(r"KeyError: 'text' \(test_asking\.py:\d+\)", str(verdict.error_message))


def test_errors_of_pairscale_are_raised():
    async def answer(pair):
        raise InputError("these samples have no column 'truth'")

    with pytest.raises(InputError, match="truth"):
        asked(answer)


def test_no_answer_in_time_is_an_error_that_may_pass():
    async def answer(pair):
        await asyncio.sleep(60)

    verdict, values = asked(answer, timeout=0.05)
    assert (verdict.error_code, verdict.failure) == ("timeout", "transient")
    assert verdict.error_message == "no answer within 0.05 seconds"
    assert values["latency_s"] >= 0.05


def test_a_timeout_of_the_judges_own_is_its_own():
    async def answer(pair):
        raise TimeoutError("the server slept")

    verdict, _ = asked(answer, timeout=30)
    assert verdict.error_code == "judge_error"
    assert str(verdict.error_message).startswith("TimeoutError: the server slept (test_asking.py:")


@pytest.mark.parametrize("timeout", [None, 30])
def test_an_interruption_is_left_alone(timeout):
    async def answer(pair):
        await asyncio.sleep(60)

    async def interrupted():
        task = asyncio.create_task(ask_once(Judge(answer), PAIR, timeout and TimeLimit(timeout)))
        await asyncio.sleep(0.02)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())


def test_what_is_no_verdict_is_said_to_be_none():
    async def answer(pair):
        return {"Y": 1}

    verdict, values = asked(answer)
    assert (str(verdict.outcome), verdict.error_code) == ("error", "judge_error")
    assert values["error_message"] == "TypeError: the judge gave a dict, not a Verdict"


def test_a_reply_that_json_cannot_hold_is_kept_as_text(tmp_path):
    loop = []
    loop.append(loop)

    async def compare(pair):
        raw = {("a", "b"): 1} if pair.first["ID"] == "a" else loop
        return ps.Verdict.win(1, raw_response=raw)

    pairs = [{"ID1": one, "text1": one, "ID2": "c", "text2": "c"} for one in "ab"]
    done = ps.submit_pairs(pairs, Judge(compare), run=tmp_path / "run.db", include_raw=True, progress=False)
    assert done.results["better_id"].to_list() == ["a", "b"]
    assert "('a', 'b')" in str(done.results["raw_response"][0])


def test_nor_does_it_stop_an_adaptive_run(tmp_path):
    async def compare(pair):
        return ps.Verdict.win(1 if pair.first["ID"] < pair.second["ID"] else 2, raw_response={("a", "b"): 1})

    texts = [{"ID": name, "text": name} for name in "abcd"]
    ps.adaptive_rank(texts, judge=Judge(compare), n_steps=5, run=tmp_path / "run.db", progress="none")
    with ps.open_run(tmp_path / "run.db") as store:
        assert store.results(raw=True)["raw_response"].to_list() == ["\"{('a', 'b'): 1}\""] * 5


# Asking again, outside a run


class Fixed:
    """Stands in for a random number."""

    def __init__(self, value):
        self._value = value

    def random(self):
        return self._value


@pytest.fixture
def slept(monkeypatch):
    """The waits, which are not waited."""
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr("pairscale.runtime.asking.asyncio.sleep", sleep)
    return waits


@pytest.mark.parametrize(
    ("retry_after", "turn", "first", "wait"),
    [
        (None, 0, 1.0, 1.0),
        (None, 3, 1.0, 8.0),
        (None, 1, 0.5, 1.0),
        (None, 20, 1.0, 60.0),
        (None, 0, 0.0, 0.0),
        (7.0, 3, 1.0, 7.0),
        (0.0, 2, 1.0, 0.0),
        (3600.0, 0, 1.0, 60.0),
    ],
)
def test_the_wait_is_the_providers_or_doubles_up_to_a_minute_and_a_quarter_of_jitter(retry_after, turn, first, wait):
    assert pause(retry_after, turn, Fixed(0.0), first) == wait
    assert pause(retry_after, turn, Fixed(1.0), first) == wait * 1.25


@pytest.mark.parametrize(
    ("failures", "retries", "asked", "outcome"),
    [(0, 3, 1, "win"), (2, 3, 3, "win"), (3, 3, 4, "win"), (4, 3, 4, "error"), (1, 0, 1, "error")],
)
def test_a_transient_failure_is_asked_again_as_often_as_allowed(failures, retries, asked, outcome, slept):
    seen = []

    async def answer(pair):
        seen.append(pair.attempt)
        if len(seen) <= failures:
            return ps.Verdict.fail("rate_limited", "slow down", failure="transient", retry_after=0.0)
        return ps.Verdict.win(1)

    verdict = asyncio.run(ask_unrecorded(Judge(answer), PAIR, retries))
    assert (str(verdict.outcome), seen) == (outcome, list(range(1, asked + 1)))
    assert slept == [0.0] * (asked - 1)


def test_a_question_that_fails_is_not_asked_again_and_a_judge_that_cannot_judge_is_an_error(slept):
    seen = []

    async def answer(pair):
        seen.append(pair.attempt)
        return ps.Verdict.fail("http_error", "no such model", failure=failure)

    failure = "question"
    assert asyncio.run(ask_unrecorded(Judge(answer), PAIR, 3)).failure == "question"
    failure = "judge"
    with pytest.raises(JudgeError, match="no such model"):
        asyncio.run(ask_unrecorded(Judge(answer), PAIR, 3))
    assert (seen, slept) == ([1, 1], [])


@pytest.mark.parametrize(("failure", "asked"), [("transient", 4), ("question", 1), ("judge", 1)])
def test_a_provider_is_asked_again_after_transient_failures_alone(failure, asked, slept):
    calls = []

    async def ask():
        calls.append(1)
        raise ProviderError("server_error", f"failure {len(calls)}", failure=failure, wait=2.0)

    with pytest.raises(ProviderError, match=f"failure {asked}"):
        asyncio.run(retrying(ask, 3, Fixed(0.0)))
    assert (len(calls), slept) == (asked, [2.0] * (asked - 1))


def test_a_provider_that_answers_at_last_has_answered(slept):
    calls = []

    async def ask():
        calls.append(1)
        if len(calls) < 3:
            raise ProviderError("server_error", "busy", failure="transient")
        return "done"

    assert asyncio.run(retrying(ask, 3, Fixed(0.0))) == "done"
    assert slept == [1.0, 2.0]


# The columns of a comparison, and closing


@pytest.mark.parametrize(
    ("verdict", "columns"),
    [
        (ps.Verdict.win(2, probability=0.25), ("win", 2, "b", 0.25)),
        (ps.Verdict.win(1), ("win", 1, "a", None)),
        (ps.Verdict.tie(), ("tie", None, None, None)),
        (ps.Verdict.abstain("no"), ("abstention", None, None, None)),
        (ps.Verdict.fail("timeout", "late"), ("error", None, None, None)),
    ],
)
def test_the_winner_of_a_comparison_is_named(verdict, columns):
    found = comparison_columns(verdict, "a", "b")
    assert found.pop("received_at").endswith("+00:00")
    assert tuple(found[name] for name in ("outcome", "winner_pos", "better_id", "probability")) == columns


def test_what_holds_something_open_is_closed_and_all_else_is_left_alone():
    class Open:
        closed = False

        async def aclose(self):
            self.closed = True

    one = Open()
    asyncio.run(close(one))
    asyncio.run(close(object()))
    assert one.closed


async def raises(self):
    raise RuntimeError("cannot close sk-proj-1234567890abcdefgh")


async def cancels(self):
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("aclose", "said"),
    [
        (raises, r"closing mine failed, and its answers are kept: RuntimeError: cannot close \[key\] \(test_asking"),
        (cancels, "closing mine failed, and its answers are kept: CancelledError"),
        (lambda self: None, None),  # not `async def`
    ],
)
def test_answers_outlive_a_judge_that_cannot_be_closed(message_snapshot, aclose, said, caplog):
    async def compare(self, pair):
        return ps.Verdict.win(1, cost=0.5)

    judge = type("Mine", (), {"condition": ps.Condition("mine"), "compare": compare, "aclose": aclose})()
    pairs = ps.make_pairs(ps.synthetic_essays(3, seed=1).select("ID", "text"))
    assert ps.submit_pairs(pairs, judge, progress=False).results.height == 3
    lines = [record.message for record in caplog.records]
    assert (re.search(said, lines[0]) is not None and len(lines) == 1) if said else not lines
    with pytest.raises(InputError) as refused:
        ps.submit_pairs(pairs, type(judge), progress=False)
    message_snapshot(refused)


def test_a_close_that_is_cancelled_ends():
    class Slow:
        async def aclose(self):
            await asyncio.sleep(60)

    async def cancelled():
        task = asyncio.ensure_future(close(Slow()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(cancelled())
