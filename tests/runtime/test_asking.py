"""Asking once: whatever a judge does, there is a verdict and an attempt to write down."""

import asyncio
import re

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.providers.client import pause
from pairscale.runtime import ask_once
from pairscale.store.schema import attempt_columns, attempts

PAIR = ps.JudgePair({"ID": "a", "text": "a"}, {"ID": "b", "text": "b"}, "step-000001")


class Judge:
    condition = ps.Condition("test")

    def __init__(self, answer):
        self._answer = answer

    async def compare(self, pair):
        return await self._answer(pair)


def asked(answer, number=1, timeout=None):
    verdict = asyncio.run(ask_once(Judge(answer), PAIR, timeout))
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


def test_no_answer_in_time_is_an_error_that_may_pass():
    async def answer(pair):
        await asyncio.sleep(60)

    verdict, values = asked(answer, timeout=0.05)
    assert (verdict.error_code, verdict.failure) == ("timeout", "transient")
    assert verdict.error_message == "no answer within 0.05 seconds"
    assert values["latency_s"] >= 0.05


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


# Asking again, outside a run


class Fixed:
    """Stands in for a random number."""

    def __init__(self, value):
        self._value = value

    def random(self):
        return self._value


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


# The columns of a comparison, and closing


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
