"""Win rates by hand, against statsmodels and scipy, against slow versions, and by their properties."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm, skew, t
from statsmodels.stats.proportion import proportion_confint

from pairscale.core.errors import InputError, TableError
from pairscale.evaluate.inference import score_of, slices, win_rate
from pairscale.evaluate.inference.cases import Scores
from pairscale.evaluate.inference.score import (
    IMAGINED,
    _careful_lower,
    graded_limits,
    half_share,
    score_interval,
    score_limits,
    student_quantile,
)

KINDS = {"b": ("win", "b"), "a": ("win", "a"), "t": ("tie", None), "f": ("flip", None), "-": ("abstention", None),
         "!": ("error", None)}  # fmt: skip
SWAPPED = str.maketrans("ab", "ba")


def cases(letters, tasks=None, **columns):
    """A case a letter: b and a won, t tie, f flip, - abstention, ! error."""
    tasks = [f"task {at}" for at in range(len(letters))] if tasks is None else tasks
    rows = [(task, *KINDS[letter]) for task, letter in zip(tasks, letters, strict=True)]
    schema = {"task_id": pl.String, "outcome": pl.String, "winner": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(**{k: pl.Series(v) for k, v in columns.items()})


@st.composite
def repeated(draw):
    letters = draw(st.text("abtf-!", min_size=1, max_size=40))
    tasks = draw(st.lists(st.integers(0, 12), min_size=len(letters), max_size=len(letters)))
    return letters, [str(task) for task in tasks]


# By hand.


def test_a_rate_by_hand():
    result = win_rate(cases("bbbbbbaattf-!!"))
    assert (result.wins, result.losses, result.ties, result.flips) == (6, 2, 2, 1)
    assert (result.abstentions, result.errors, result.n, result.tasks) == (1, 2, 11, 11)
    assert result.rate == pytest.approx((6 + 1.5) / 11)
    assert result.used == ("win", "tie", "flip")
    assert (result.variant, result.interval, result.level, result.tasks) == ("b", "wilson", 0.95, 11)
    decided = win_rate(cases("bbbbbbaattf-!!"), ties="excluded")
    assert (decided.rate, decided.n, decided.used) == (0.75, 8, ("win",))


def test_the_score_of_an_outcome():
    scores = [score_of(*KINDS[letter]) for letter in "batf-!"]
    assert scores == [1.0, 0.0, 0.5, 0.5, None, None]
    with pytest.raises(InputError, match="'a' or 'b'"):
        score_of("win", None)


def test_the_published_interval_of_paired_proportions():
    """Airway reactivity, 1 and 7 of 21 discordant: Tango's interval is -0.517 to -0.026 (Fagerland et al. 2014)."""
    lower, upper = score_interval((1 + 13 / 2) / 21, 13 / 21, 21, 0.95)
    assert (2 * lower - 1, 2 * upper - 1) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_tasks_with_several_cases_count_once_each():
    """The exact interval where all means are 0, ½ or 1: two of three tasks won are no more than that."""
    result = win_rate(cases("bbbbbbaaa", list("111222333")))
    assert (result.n, result.tasks) == (9, 3)
    assert result.ci == pytest.approx((beta.ppf(0.025, 2, 2), beta.ppf(0.975, 3, 1)))
    assert "9 cases of 3 tasks: every task counts once" in result.notices[0]
    unequal = win_rate(cases("bbbaab", list("111234")))
    assert (unequal.rate, unequal.n, unequal.tasks) == (0.5, 6, 4)


def test_one_task_with_many_cases_is_one_case():
    result = win_rate(cases("bbbbab", ["only"] * 6))
    assert (result.rate, result.tasks) == (5 / 6, 1)
    assert result.ci == pytest.approx(score_interval(5 / 6, 0, 1, 0.95))
    assert result.ci[1] - result.ci[0] > 0.7


# Against others.


@given(st.integers(0, 300), st.integers(0, 300), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_without_ties_it_is_wilsons_interval(wins, losses, level):
    if wins + losses == 0:
        return
    lower, upper = score_interval(wins / (wins + losses), 0, wins + losses, level)
    expected = proportion_confint(wins, wins + losses, alpha=1 - level, method="wilson")
    assert (lower, upper) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_the_interval_is_the_root_of_tangos_quartic(wins, ties, losses):
    """The closed form of Yang, Sun and Hardin (2013), an independent way to the same ends."""
    n, b, c, g = wins + ties + losses, wins, losses, norm.ppf(0.975) ** 2
    if b + c == 0:
        return
    d = b - c
    quartic = [
        n**2 * (n / g + 1) ** 2,
        -n * d * (n / g + 1) * (4 * n / g + 1),
        2 * n * d**2 * (3 * n / g + 2) / g - n**2 * ((b + c) / g + 1),
        n * d * (2 * (b + c) / g + 1) - d**3 * (4 * n / g + 1) / g,
        d**2 * (d**2 / g - (b + c)) / g,
    ]
    roots = np.roots(quartic)
    real = np.sort(roots.real[np.abs(roots.imag) < 1e-5])
    lower, upper = score_interval((wins + ties / 2) / n, ties / n, n, 0.95)
    for end in (2 * lower - 1, 2 * upper - 1):
        assert np.abs(real - end).min() < 1e-5


# Properties.


@pytest.mark.slow
@given(repeated(), st.sampled_from(["half", "excluded"]))
def test_swapping_the_variants_mirrors_everything(data, ties):
    letters, tasks = data
    here, there = (win_rate(cases(text, tasks), ties=ties) for text in (letters, letters.translate(SWAPPED)))
    assert (here.wins, here.losses, here.n) == (there.losses, there.wins, there.n)
    if here.n:
        assert here.rate == pytest.approx(1 - there.rate)
        assert here.ci == pytest.approx((1 - there.ci[1], 1 - there.ci[0]), abs=1e-9)


@settings(max_examples=60)
@given(repeated(), st.sampled_from(["wilson", "betting"]))
def test_the_interval_is_within_0_and_1_and_holds_the_rate(data, interval):
    result = win_rate(cases(*data), interval=interval)
    if result.n:
        lower, upper = result.ci
        assert 0 <= lower <= upper <= 1
        assert 1 <= result.tasks <= result.n
        assert lower - 1e-9 <= result.rate <= upper + 1e-9


# Ends of the range.


@pytest.mark.parametrize("interval", ["wilson", "betting"])
def test_no_case_is_no_rate(interval):
    for nothing in ([], cases(""), cases("-!!")):
        result = win_rate(nothing, interval=interval)
        assert (result.rate, result.ci, result.n, result.tasks) == (None, None, 0, 0)
        assert "no win rate" in result.notices[0]
    assert win_rate(cases("tt"), ties="excluded").rate is None
    assert "none of 2 cases is a win" in win_rate(cases("tt"), ties="excluded").notices[0]


def test_wrong_input_is_refused_by_name(message_snapshot):
    with pytest.raises(TableError, match="no column 'winner'"):
        win_rate([{"task_id": "x", "outcome": "win"}])
    with pytest.raises(TableError) as refused:
        win_rate([{"task_id": "x", "outcome": "draw", "winner": None}])
    message_snapshot(refused)
    with pytest.raises(TableError) as refused:
        win_rate([{"task_id": "x", "outcome": "win", "winner": "c"}])
    message_snapshot(refused)
    with pytest.raises(TableError, match="task_id"):
        win_rate([{"task_id": "", "outcome": "tie", "winner": None}])
    with pytest.raises(InputError) as refused:
        win_rate(cases("b"), level=95)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        win_rate(cases("b"), interval="wald")
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        win_rate(cases("b"), ties="third")
    message_snapshot(refused)


@pytest.mark.parametrize("row", [("t", None, "b"), ("t", "win", None), ("t", "won", "b"), ("t", "win", "c")])
def test_an_outcome_or_a_winner_that_is_none_is_refused(row):
    schema = {"task_id": pl.String, "outcome": pl.String, "winner": pl.String}
    with pytest.raises(TableError, match="outcome must be one of"):
        win_rate(pl.DataFrame([row], schema=schema, orient="row"))


# Slices.


def test_slices_by_hand():
    tags = [["x", "y"], ["x"], ["y", "y"], [], ["x"], ["z"]]
    rows = {row["slice"]: row for row in slices(cases("bbat-!", tags=tags)).iter_rows(named=True)}
    assert set(rows) == {"x", "y", "z", None}
    assert (rows["x"]["wins"], rows["x"]["losses"], rows["x"]["abstentions"], rows["x"]["rate"]) == (2, 0, 1, 1)
    assert (rows["y"]["wins"], rows["y"]["losses"], rows["y"]["n"], rows["y"]["rate"]) == (1, 1, 2, 0.5)
    assert (rows[None]["ties"], rows[None]["n"]) == (1, 1)
    assert (rows["z"]["rate"], rows["z"]["lower"], rows["z"]["errors"]) == (None, None, 1)
    assert [(row, rows[row]["n"]) for row in rows] == [("x", 2), ("y", 2), (None, 1), ("z", 0)]  # the largest first
    joint = win_rate(cases("ba"), level=1 - 0.05 / 3).ci
    assert (rows["y"]["lower"], rows["y"]["upper"]) == pytest.approx(joint)


# Scores, and the ends for few cases.


def test_scores_of_any_kind_have_the_halves_of_their_variance():
    scores = np.array([0, 0.5, 1, 1, 0.5, 0.5, 0])
    assert half_share(np.array([scores.mean()]), np.array([scores.var()]))[0] == pytest.approx(3 / 7)
    assert half_share(np.array([0.9]), np.array([0.0]))[0] == pytest.approx(0.2)  # of a mean near 1, few can be halves


def one_of(*figures):
    return [np.array([float(figure)]) for figure in figures]


def test_the_careful_end_without_ties_is_clopper_and_pearsons():
    for wins in (0, 1, 3, 10):
        lower = _careful_lower(*one_of(wins / 10, 0, 10), 0.95)[0]
        assert lower == pytest.approx(proportion_confint(wins, 10, 0.05, method="beta")[0], abs=1e-9)
    assert _careful_lower(*one_of(0.05, 0.1, 10), 0.95)[0] == 0  # a tie, and no win


@pytest.mark.parametrize(("wins", "ties", "losses"), [(6, 3, 4), (2, 0.5, 1), (0.2, 1, 3)])
def test_the_careful_end_with_ties_counts_one_of_them_for_the_other_side(wins, ties, losses):
    """Half a win less and half a loss more; of less than one tie, as much as there is."""
    n, one = wins + ties + losses, min(ties, 1)
    wins_less = max(wins - (1 - one) / 2, 0)
    lower = score_limits(*one_of((wins_less + (ties - one) / 2) / n, (ties - one) / n, n), 0.95)[0]
    assert _careful_lower(*one_of((wins + ties / 2) / n, ties / n, n), 0.95) == pytest.approx(lower)


@pytest.mark.parametrize(("rate", "skewness"), [(0.3, 0.25), (0.3, -0.25), (0.7, 0.0)])
def test_graded_limits_reach_further_on_the_side_of_the_skewness(rate, skewness):
    """Number by number: Wilson's interval of as many wins as these scores are worth, with a longer tail where it is."""
    variance, units = 0.02, 40
    most = rate * (1 - rate)
    share = ((units - 1) * variance + IMAGINED * most) / (units - 1 + IMAGINED) / most
    z = norm.ppf(0.975)
    worth = units * (z / t.ppf(0.975, units - 1)) ** 2 / share
    excess = (skewness - (1 - 2 * rate) / (most * units / share) ** 0.5) * (2 * z**2 + 1) / 6
    wanted = []
    for side in (-1, 1):
        reach = z + max(side * excess, 0)
        lower, upper = proportion_confint(worth * rate, worth, 2 * norm.sf(reach), method="wilson")
        wanted.append(lower if side < 0 else upper)
    found = graded_limits(*one_of(rate, variance), units, *one_of(units), 0.95, np.array([skewness]))
    assert [end[0] for end in found] == pytest.approx(wanted)


def test_only_what_is_little_is_noticed():
    assert list(win_rate(cases("bbbbbbaa")).notices) == []
    graded = pl.DataFrame({"task_id": [f"t{n}" for n in range(10)], "preference": [0.9, 0.8, 0.2, 0.7, 0.6] * 2})
    assert "may be too narrow" in str(win_rate(graded).notices)
    assert list(win_rate(graded, interval="betting").notices) == []


def test_graded_limits_of_one_unit_are_wilsons_and_of_two_know_little():
    for skew_of_one in (None, np.array([0.0])):
        alone = [end[0] for end in graded_limits(*one_of(0.6, 0.02), 1, *one_of(12), 0.95, skew_of_one)]
        assert alone == pytest.approx(proportion_confint(7.2, 12, 0.05, method="wilson"))
    for rate in (0.6, 1.0):  # scores that are all equal say nothing of how they vary
        equal = [end[0] for end in graded_limits(*one_of(rate, 0.0), 12, *one_of(12), 0.95)]
        assert equal == pytest.approx(proportion_confint(12 * rate, 12, 0.05, method="wilson"))
    of_two = [end[0] for end in graded_limits(*one_of(0.6, 0.02), 2, *one_of(12), 0.95)]
    assert of_two == pytest.approx([0.08156763, 0.96202696])


# The parts.


@pytest.mark.parametrize("scores", [[0.1, 0.2, 0.4, 0.9, 0.3], [0.5, 0.51, 0.5, 0.49, 0.55], [0.0, 1.0, 1.0, 0.25]])
def test_the_skewness_of_a_rate_is_that_of_its_scores_by_the_root_of_their_number(scores):
    found = Scores(np.array(scores), len(scores))
    assert found.skewness == pytest.approx(skew(scores) / np.sqrt(len(scores)))
    assert Scores(np.full(4, 0.3), 4).skewness == 0.0


def test_a_quantile_of_student_without_freedom_has_no_end():
    assert student_quantile(0.95, 0) == np.inf
    assert student_quantile(0.95, 7) == pytest.approx(t.ppf(0.975, 7))


@pytest.mark.parametrize(("n", "is_few"), [(29, True), (30, False)])
def test_fewer_than_thirty_graded_tasks_are_said_to_be_few(n, is_few):
    graded = [{"task_id": f"t{at}", "preference": 0.3 + 0.01 * at} for at in range(n)]
    assert any("are few" in notice for notice in win_rate(graded).notices) is is_few
    assert not win_rate(graded, interval="betting").notices


def test_a_standard_error_takes_two_tasks():
    assert win_rate(cases("b")).standard_error is None
    assert win_rate(cases("ba")).standard_error == pytest.approx(0.5)
    assert win_rate(cases("bbba")).standard_error == pytest.approx(0.25)
