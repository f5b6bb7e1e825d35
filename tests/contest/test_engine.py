"""The engine of ``best``: its posterior, its questions, and how often it finds the best."""

import itertools

import numpy as np
import pytest

from pairscale.contest.engine import Contest

from .worlds import halving, play, world


def test_the_posterior_is_that_of_a_grid() -> None:
    games = [(0, 1, 1.0)] * 4 + [(1, 2, 1.0), (1, 2, 0.0), (2, 0, 0.5)]
    contest = Contest(3, repeats=True, seed=(1,))
    for first, second, share in games:
        contest.open(first, second)
        contest.record(first, second, share)
    axis = np.linspace(-6, 6, 61)
    grid = np.array(list(itertools.product(axis, repeat=3)))
    logs = -(grid**2).sum(axis=1) / (2 * 1.5**2)
    for first, second, share in games:
        difference = grid[:, first] - grid[:, second]
        logs += share * difference - np.logaddexp(0, difference)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    best = [weight[grid.argmax(axis=1) == one].sum() for one in range(3)]
    assert contest.shares()[0] == pytest.approx(best, abs=0.03)
    assert contest.mean == pytest.approx(weight @ grid, abs=0.05)


def test_nothing_is_asked_twice_of_a_judge_that_repeats_itself() -> None:
    contest, asked = play(world(8, 1, fixed=True), 100, 1, repeats=False, confidence=0.9999)
    assert len({frozenset(pair) for pair in asked}) == len(asked) <= 28
    assert contest.next_pair() is None


@pytest.mark.parametrize(("fixed", "lowest", "highest"), [(True, 0.75, 1.0), (False, 0.0, 0.35)])
def test_whether_repeats_differ_is_found_out(fixed, lowest, highest) -> None:
    contest, asked = play(world(8, 3, fixed=fixed), 60, 3, confidence=0.9999)
    assert len({frozenset(pair) for pair in asked}) < len(asked)
    assert lowest <= contest.copied <= highest


def test_repeats_are_shown_in_the_other_order() -> None:
    _, asked = play(world(3, 1, fixed=False), 40, 1, repeats=True, confidence=0.9999)
    counts = [sum(pair == shown for pair in asked) for shown in itertools.permutations(range(3), 2)]
    assert all(abs(one - other) <= 1 for one, other in ((counts[0], counts[2]), (counts[1], counts[4])))


def test_one_loss_ends_no_candidate() -> None:
    contest = Contest(4, repeats=True, seed=(1,))
    contest.open(0, 1)
    contest.record(0, 1, 0.0)
    while (pair := contest.next_pair()) is not None:
        contest.open(*pair)
        contest.record(*pair, float(pair[0] == 0 or (pair[1] != 0 and pair[0] < pair[1])))
    assert contest.is_sure
    assert contest.mean.argmax() == 0


def test_it_stops_early_where_the_winner_is_clear() -> None:
    used = []
    for lead in (3.0, 0.0):
        worlds = [world(20, number, fixed=False) for number in range(10)]
        for of in worlds:
            of.strengths[of.strengths.argmax()] += lead
        used.append(np.mean([len(play(of, 200, number)[1]) for number, of in enumerate(worlds)]))
    assert used[0] < 100
    assert used[1] > used[0] + 25


def test_several_places_are_asked_about() -> None:
    of = world(10, 2, fixed=False, spread=3.0)
    contest, _ = play(of, 400, 2, places=3, repeats=True)
    assert contest.shares().shape == (3, 10)
    assert (np.argsort(-contest.mean)[:3] == np.argsort(-of.strengths)[:3]).all()


def test_a_candidate_without_an_answer_is_set_aside() -> None:
    contest = Contest(4, seed=(5,))
    aside = []
    while (pair := contest.next_pair()) is not None:
        contest.open(*pair)
        if 2 in pair:
            aside += contest.fail(*pair)
        else:
            contest.record(*pair, float(pair[0] < pair[1]))
    assert aside == [2]
    assert contest.usable.tolist() == [True, True, False, True]
    assert contest.shares()[0][2] == 0


@pytest.mark.slow
def test_it_is_no_worse_than_successive_halving() -> None:
    """At equal calls, in the same worlds; more sizes are in validation/best.py."""
    ours, theirs, used = [], [], []
    for number in range(300):
        contest, asked = play(world(8, number, fixed=False), 72, number, repeats=True)
        ours.append(world(8, number, fixed=False).regret(int(contest.mean.argmax())))
        theirs.append(world(8, number, fixed=False).regret(halving(world(8, number, fixed=False), 72, number)))
        used.append(len(asked))
    assert np.mean(ours) <= np.mean(theirs) + 0.01
    assert np.mean(used) < 65
