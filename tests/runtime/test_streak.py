"""When alike failures concern the judge: on ten different questions of different texts, without a success between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairscale import Verdict
from pairscale.runtime import MOST_ALIKE, FailureStreak

FAILED = Verdict.fail("judge_error", "KeyError: 'text'")


def texts_of(number):
    """The two texts of a question that shares them with no other."""
    return f"a{number}", f"b{number}"


def counted(streak, verdict, numbers):
    return [streak.count(verdict, *texts_of(number)) for number in numbers]


def test_ten_alike_failures_on_different_texts_concern_the_judge():
    assert MOST_ALIKE == 10
    streak = FailureStreak()
    assert counted(streak, FAILED, range(10)) == [False] * 9 + [True]
    assert counted(streak, FAILED, range(10, 12)) == [True, True]  # and still do


@pytest.mark.parametrize(
    "other",
    [
        Verdict.fail("timeout", "KeyError: 'text'"),
        Verdict.fail("judge_error", "ValueError: 'text'"),
        Verdict.fail("judge_error", "KeyError: 'text'", status_code=400),
        Verdict.abstain("KeyError: 'text'"),
    ],
)
def test_another_failure_begins_again(other):
    streak = FailureStreak()
    assert not any(counted(streak, FAILED, range(9)))
    assert not any(counted(streak, other, range(9, 18)))
    assert streak.count(other, *texts_of(18))


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] != pair[1]), max_size=60))
def test_one_bad_text_among_any_questions_never_concerns_the_judge(questions):
    """Every question with the text 0 fails, all others succeed."""
    streak = FailureStreak()
    for first, second in questions:
        verdict = FAILED if 0 in (first, second) else Verdict.win(1)
        assert streak.count(verdict, str(first), str(second)) is False
