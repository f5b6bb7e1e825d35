"""Whatever numbers a judge gives, there is a verdict that the run file can keep, or a failed one, and never a crash."""

import math
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pairscale as ps
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError, JudgeError
from pairscale.judges.base import LARGEST, Verdict

ITEMS = [{"ID": name, "text": f"Text {name}."} for name in "ab"]
PAIRS = ps.make_pairs(ITEMS)
OPEN = {"request", "raw_response"}  # anything that JSON can hold
FIELDS = sorted({field.name for field in fields(Verdict)} - OPEN - {"outcome"})
FIGURES = {
    "status_code": 200, "retry_after": 0.5, "prompt_tokens": 7, "completion_tokens": 7, "total_tokens": 7,
    "prompt_cached_tokens": 7, "reasoning_tokens": 7, "latency_s": 0.5, "cost": 0.5, "saved": 0.5, "probability": 0.5,
}  # fmt: skip
IMPOSSIBLE = [
    10**20, 10**400, -(10**20), 2**63, 2**64, math.inf, -math.inf, math.nan, -1, -0.5, Decimal("Infinity"),
    Decimal("NaN"),
]  # fmt: skip
ODD = [
    *IMPOSSIBLE, 10**5000, 0.5, 1.0, 2.0, 1.5, True, np.float32(0.5), np.int64(1), np.float64("nan"), np.bool_(1),
    np.array([1.0, 2.0]), Decimal("0.5"), Fraction(1, 3), 1j, "1", b"1", [], {}, object(),
]  # fmt: skip
values = st.one_of(
    st.sampled_from(ODD), st.integers(), st.floats(), st.decimals(), st.fractions(), st.text(max_size=3), st.booleans()
)
given_fields = st.dictionaries(st.sampled_from(FIELDS), values, min_size=1, max_size=3)
makers = st.sampled_from([lambda **more: Verdict.win(more.pop("winner_pos", 1), **more), Verdict.tie])


def judged(judge, **more):
    return ps.submit_pairs(PAIRS, judge, progress=False, retries=0, **more)


mappings = st.dictionaries(st.sampled_from(["Y", "probability"]), values, min_size=1)


@pytest.mark.slow
@given(st.tuples(makers, given_fields) | mappings)
@example((Verdict.tie, {"winner_pos": 5}))
@example((Verdict.tie, {"cost": 10**400}))
@example((Verdict.tie, {"total_tokens": 2**63}))
@example({"Y": 1, "probability": math.nan})
@example({"Y": 1, "probability": 1.5})
@example({"Y": 1, "probability": np.float32(0.5)})
@example({"Y": 10**5000})
def test_a_function_that_gives_any_verdict_or_mapping_breaks_nothing(given):
    def judge(A, B):
        if isinstance(given, dict):
            return {"is_valid": True, "Y": 1, **given}
        make, more = given
        return make(**dict(more))

    done = judged(judge)
    assert done.results.height + done.failed_pairs.height == 1
    if done.failed_pairs.height:
        codes = {"judge_error", "invalid_winner"} if isinstance(given, dict) else {"judge_error"}
        assert done.failed_pairs["error_code"][0] in codes


@pytest.mark.parametrize(("name", "usual"), FIGURES.items())
def test_numbers_of_every_kind_are_kept_as_python_s_own(name, usual):
    for kind in (type(usual), np.float32, Fraction, Decimal, *([np.int64] if isinstance(usual, int) else [])):
        kept = getattr(Verdict.tie(**{name: kind(usual)}), name)
        assert (type(kept), kept) == (type(usual), usual)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("value", IMPOSSIBLE, ids=lambda value: str(value)[:12])
def test_numbers_that_cannot_be_are_refused(name, value):
    with pytest.raises((InputError, ArithmeticError)):
        Verdict.tie(**{name: value})


def test_names_are_texts_and_only_a_failure_has_an_error_code():
    assert Verdict.win(1, model=7).model == "7"
    for wrong in ({"outcome": Outcome.TIE, "error_code": "refusal"}, {"outcome": Outcome.ERROR, "error_code": "what"}):
        with pytest.raises(InputError, match="exactly when it is an abstention or an error"):
            Verdict(**wrong)


def test_a_position_is_one_of_two_and_of_a_win_alone(message_snapshot):
    for position in (1, 1.0, np.int64(1), Decimal(1)):
        assert type(Verdict.win(position).winner_pos) is int
    for position in (0, 3, -1, 10**30, math.nan, math.inf, None, "1"):
        with pytest.raises(InputError) as refused:
            Verdict.win(position)
        message_snapshot(refused)
    for position in (1, 5, 10**30, math.nan):
        with pytest.raises(InputError) as refused:
            Verdict(Outcome.TIE, position)
        message_snapshot(refused)
    assert replace(Verdict.win(2, cost=1), cost=None).winner_pos == 2


def test_money_that_is_not_a_number_does_not_pass_for_free():
    """It would make every comparison with max_cost false."""
    done = judged(lambda A, B: Verdict.win(1, cost=math.nan), max_cost=1.0)
    (said,) = done.failed_pairs["error_message"]
    assert said.startswith(f"InputError: the cost of a verdict must be a number from 0 to {LARGEST:,}, not nan (")


def test_a_function_may_leave_out_is_valid(message_snapshot):
    """``Y`` or ``p`` alone is an answer; a mapping with neither is none."""
    assert judged(lambda A, B: {"Y": 1}).results["better_id"].to_list() == ["a"]
    assert judged(lambda A, B: {"p": 0.2}).results["better_id"].to_list() == ["b"]
    with pytest.raises(JudgeError) as refused:
        judged(lambda A, B: {"winner": "a"})
    message_snapshot(refused)
