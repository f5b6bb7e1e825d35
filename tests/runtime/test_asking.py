"""Asking once: whatever a judge does, there is a verdict and an attempt to write down."""

import asyncio

import pytest

import pairscale as ps
from pairscale.collect._asking import ask
from pairscale.errors import InputError
from pairscale.store._schema import attempts

PAIR = ps.JudgePair({"ID": "a", "text": "a"}, {"ID": "b", "text": "b"}, "step-000001")


class Judge:
    condition = ps.Condition("test")

    def __init__(self, answer):
        self._answer = answer

    async def compare(self, pair):
        return await self._answer(pair)


def asked(answer, number=1, timeout=None):
    return asyncio.run(ask(Judge(answer), PAIR, number, timeout))


def test_an_answer_and_the_columns_of_its_attempt(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("pairscale.collect._asking.time.perf_counter", lambda: now[0])

    async def answer(pair):
        now[0] += 0.25
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
    assert (str(verdict.outcome), verdict.error_code, verdict.error_message) == (
        "error",
        "judge_error",
        "KeyError: 'text'",
    )
    assert verdict.failure == "question"
    assert values["error_message"] == "KeyError: 'text'"


def test_our_own_errors_go_on():
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
    assert (verdict.error_code, verdict.error_message) == ("judge_error", "TimeoutError: the server slept")


@pytest.mark.parametrize("timeout", [None, 30])
def test_an_interruption_is_left_alone(timeout):
    async def answer(pair):
        await asyncio.sleep(60)

    async def interrupted():
        task = asyncio.create_task(ask(Judge(answer), PAIR, 1, timeout))
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
