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


def test_a_success_between_begins_again():
    for answer in (Verdict.win(1), Verdict.tie()):
        streak = FailureStreak()
        assert not any(counted(streak, FAILED, range(9)))
        assert streak.count(answer, "c", "d") is False
        assert counted(streak, FAILED, range(10)) == [False] * 9 + [True]


def test_the_same_question_again_counts_once():
    streak = FailureStreak()
    assert not any(counted(streak, FAILED, [*range(9), *range(9)]))
    assert streak.count(FAILED, *texts_of(9))


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


def test_alike_is_the_beginning_of_the_message():
    """What follows the colon often names the question."""
    streak = FailureStreak()
    found = [
        streak.count(Verdict.fail("judge_error", f"KeyError: 'text {number}'"), *texts_of(number))
        for number in range(10)
    ]
    assert found[-1]


def test_one_text_that_always_fails_never_concerns_the_judge():
    streak = FailureStreak()
    found = [streak.count(FAILED, *sorted(("bad", f"t{number}"))) for number in range(100)]
    assert not any(found)


def test_a_shorter_streak_and_kinds_by_name():
    streak = FailureStreak(most=3)
    assert [streak.count_kind("", *texts_of(number)) for number in range(3)] == [False, False, True]
    assert streak.count_kind(None, "a", "b") is False
    assert streak.is_general is False
    assert streak.count_kind("", *texts_of(0)) is False


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] != pair[1]), max_size=60))
def test_one_bad_text_among_any_questions_never_concerns_the_judge(questions):
    """Every question with the text 0 fails, all others succeed."""
    streak = FailureStreak()
    for first, second in questions:
        verdict = FAILED if 0 in (first, second) else Verdict.win(1)
        assert streak.count(verdict, str(first), str(second)) is False
