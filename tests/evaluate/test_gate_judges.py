"""A gate takes a judge that can tell: one that goes by the order of the answers passes nothing."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.evaluate.sides import longer

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate.gate import gate_criterion
from pairscale.evaluate.inference.cases import Scores
from pairscale.evaluate.inference.gate import GateRule, RunningVerdict, fixed_bounds, shown_by, verdict_of_ways
from pairscale.evaluate.result import flips_of
from pairscale.evaluate.run import Look

SEED = 20261207
BOTH = {"orders": [{}, {}]}


def judged(rng, *, sees, better, tasks, ties=0.0, noise="order"):
    """Outcomes of a judge that sees the truth in a share of the tasks: ``b``, ``a``, ``tie`` or ``flip``.

    Elsewhere, the judge goes by the order of the answers, which is a flip, or by chance, which is a flip half the time.
    """
    truth = np.where(rng.random(tasks) < better, "b", "a")
    by_chance = np.where(rng.random(tasks) < 0.5, "b", "a")
    agrees = (rng.random(tasks) < 0.5) & (noise == "chance")
    blind = np.where(agrees, by_chance, "flip")
    outcomes = np.where(rng.random(tasks) < sees, truth, blind)
    return np.where(rng.random(tasks) < ties, "tie", outcomes)


SCORES = {"b": 1.0, "a": 0.0, "tie": 0.5, "flip": 0.5}
FLIPS = {"b": 0.0, "a": 0.0, "flip": 1.0}


def simulated(outcomes, margin, fixed):
    """The verdict of a gate by its own functions, and what it said before the judge had to show that it can tell."""
    scores = [SCORES[outcome] for outcome in outcomes]
    flips = [FLIPS.get(outcome) for outcome in outcomes]
    if fixed:
        bounds = fixed_bounds(Scores(np.array(scores), len(scores)), margin, 0.95)
        verdict = before = verdict_of_ways({"loss": shown_by(*bounds, margin)}, "loss")
        looked = len(scores)
    else:
        rule, regardless, before = GateRule(margin), GateRule(margin, by_flips=False), None
        look = SimpleNamespace(sequences={"loss": rule.sequence()}, flips=RunningVerdict(0.0))
        looked = 0
        for score, flip in zip(scores, flips, strict=True):
            looked += 1
            look.sequences["loss"].update(score)
            if flip is not None:
                look.flips.update(flip)
            if before is None and regardless.decided(look, "loss"):
                before = rule.verdict(look, "loss")
            if rule.decided(look, "loss"):
                break
        verdict = rule.verdict(look, "loss")
        before = before or verdict
    named = np.array([flip for flip in flips[:looked] if flip is not None])
    told = len(named) > 0 and fixed_bounds(Scores(named, len(named)), 0.0, 0.95)[1] < 0.5
    return verdict if told or verdict in {"better", "worse"} else "untested", before


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("sees", [0.2, 0.5, 0.9])
def test_the_simulated_gate_is_the_gate(sees, fixed):
    for run in range(4):
        outcomes = judged(np.random.default_rng([SEED, run]), sees=sees, better=0.5, tasks=40, ties=0.2)
        verdict, _ = simulated(outcomes, 0.2, fixed)
        cases = []
        for n, word in enumerate(map(str, outcomes)):
            winner = word if word in "ab" else None
            outcome = ps.Outcome.WIN if winner else ps.Outcome(word)
            cases.append(ps.PairwiseCase(f"t{n}", "k", winner, "", BOTH, outcome))
        rule = GateRule(0.2)
        if not fixed:  # as a run does that stops when it is decided
            look = Look([case.task_id for case in cases], "loss", rule)
            for place, case in enumerate(cases):
                look.take(place, case)
                if rule.decided(look, "loss"):
                    cases = cases[: place + 1]
                    break
        result = ps.PairwiseRunResult("r", tuple(cases), ("k",), sequential=not fixed)
        assert gate_criterion(result, "k", rule).verdict == verdict


SUITES = [{"tasks": 200, "margin": 0.1, "fixed": False}, {"tasks": 60, "margin": 0.2, "fixed": False},
          {"tasks": 150, "margin": 0.05, "fixed": True}]  # fmt: skip
BLIND = [0.1, 0.2, 0.3]
HONEST = [{"sees": 0.95}, {"sees": 0.85}, {"sees": 0.9, "ties": 0.4}, {"sees": 0.7, "noise": "chance"}]


def passed(runs, seed, *, tasks, margin, fixed, **judge):
    """Gates that passed, and that would have passed whatever the judge can tell."""
    verdicts = []
    for run in range(runs):
        rng = np.random.default_rng([SEED, seed, run])
        better = rng.uniform(0.30, 0.35) if judge["sees"] < 0.5 else 0.5
        verdicts.append(simulated(judged(rng, better=better, tasks=tasks, **judge), margin, fixed))
    return tuple(sum(verdict not in {"worse", "untested"} for verdict in said) for said in zip(*verdicts, strict=True))


@pytest.mark.parametrize("sees", BLIND)
def test_a_judge_that_goes_by_the_order_passes_nothing(sees):
    now, before = passed(12, 1, sees=sees, tasks=60, margin=0.2, fixed=False)
    assert now <= 2
    assert before > 3, "so that the test can fail"


@pytest.mark.parametrize("judge", HONEST, ids=str)
def test_an_honest_judge_keeps_its_passes(judge):
    now, before = passed(12, 2, tasks=80, margin=0.1, fixed=True, **judge)
    assert before > 6
    assert now >= before - 2


@pytest.mark.validate
@pytest.mark.parametrize("suite", SUITES, ids=str)
def test_at_most_eight_per_cent_of_blind_gates_pass_and_honest_ones_lose_at_most_three(suite):
    runs = 200
    print(f"\n{suite}")
    for at, sees in enumerate(BLIND):
        now, before = passed(runs, 10 + at, sees=sees, **suite)
        print(f"  sees the truth in {sees:.0%}: {now} of {runs} pass, before {before}")
        assert now <= 0.08 * runs
    for at, judge in enumerate(HONEST):
        now, before = passed(runs, 20 + at, **judge, **suite)
        print(f"  {judge}: {now} of {runs} pass, before {before}")
        assert now >= 0.97 * before


# The verb


def by_order(A, B):
    return {"Y": 1}


OLD = {f"t{n}": "x" * 20 for n in range(40)}
NEW = {f"t{n}": "x" * (30 if n % 2 else 15) for n in range(40)}
WORSE = {f"t{n}": "x" for n in range(20)}
HOW = {"criterion": "longer", "margin": 0.2, "progress": False, "concurrency": 1}


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("fail_if", ["worse", "inconclusive"])
def test_a_gate_whose_judge_names_the_first_answer_is_untested(fixed, fail_if):
    found = ps.gate(OLD, NEW, judge=by_order, fixed=fixed, fail_if=fail_if, **HOW)
    assert (found.verdict, found.passed, found.exit_code) == ("untested", False, 4)
    [criterion] = found.criteria
    n = len(found.result.cases)
    why = f"the judge has not shown that it can tell them apart: its winner changed with the order in {n} of {n} cases"
    assert (criterion.can_tell, criterion.untested) == (False, why)
    assert criterion.advice.startswith("name a better judge, or show by `card=` or `planted=`")


def test_a_judge_that_is_asked_in_one_order_has_to_show_otherwise_that_it_can_tell(tmp_path):
    found = ps.gate(OLD, NEW, judge=longer, swap=False, fixed=True, **HOW)
    assert found.verdict == "untested"
    assert found.criteria[0].untested.endswith("it never named a winner in both orders")
    told = ps.gate(OLD, NEW, judge=longer, swap=False, fixed=True, planted=WORSE, **HOW)
    assert (told.verdict, told.criteria[0].can_tell, told.passed) == ("equivalent", True, True)


def test_a_judge_that_only_says_tie_cannot_tell_and_equal_answers_need_no_judge():
    found = ps.gate(OLD, NEW, judge=lambda A, B: {"Y": 0.5}, **HOW)
    assert found.verdict == "untested"
    assert ps.gate(OLD, OLD, judge=by_order, **HOW).verdict == "equivalent"


def test_planted_answers_decide_whether_the_judge_can_tell(tmp_path, caplog):
    """Compared first, by the same judge; a flip is half a win, so that they may surely win at most a quarter."""
    caplog.set_level("INFO", "pairscale")
    path = tmp_path / "worse.jsonl"
    path.write_text("".join(json.dumps({"task_id": name, "output": text}) + "\n" for name, text in WORSE.items()))
    asked = []

    def counted(A, B):
        asked.append((A["text"], B["text"]))
        return longer(A, B)

    found = ps.gate(OLD, NEW, judge=counted, fixed=True, planted=path, **HOW)
    assert (found.verdict, found.criteria[0].can_tell) == ("equivalent", True)
    assert {min(pair, key=len) for pair in asked[:40]} == {"x"}
    assert "planted answers, longer: they won 0.0 % of 20 tasks (surely at most 13.9 %" in caplog.text
    few = dict(list(WORSE.items())[:9])
    assert ps.gate(OLD, NEW, judge=longer, planted=few, **HOW).verdict == "untested"
    blind = ps.gate(OLD, NEW, judge=by_order, planted=WORSE, **HOW)
    assert blind.criteria[0].untested.endswith("by the card or the planted answers")


def test_a_limit_of_costs_holds_for_planted_answers_and_the_rest_together():
    found = ps.gate(OLD, NEW, judge=lambda A, B: {**longer(A, B), "cost": 0.01}, planted=WORSE, max_cost=0.6, **HOW)
    assert found.result.cost <= 0.6 - 0.4 + 0.02


def test_a_card_decides_whether_the_judge_can_tell(tmp_path):
    about = {"criterion": "longer", "task_input": "q", "response_2": "y"}
    rows = [{"case_id": f"c{n}", "task_id": f"t{n}", "response_1": "x" * (n + 5), **about} for n in range(20)]
    checked = ps.check_judge(rows, longer, criterion="longer", progress=False)
    unlabelled = ps.gate(OLD, NEW, judge=longer, card=checked.card, **HOW)
    assert (unlabelled.verdict, unlabelled.criteria[0].can_tell) == ("untested", False)
    net = replace(checked.card.measures["net_agreement"], value=0.8, lower=0.6, n=20)
    good = replace(checked.card, measures={**checked.card.measures, "net_agreement": net})
    path = good.save(tmp_path / "card.json")
    assert ps.gate(OLD, NEW, judge=longer, card=path, **HOW).criteria[0].can_tell
    with pytest.raises(InputError, match="the judge card is of another judge: judge "):
        ps.gate(OLD, NEW, judge=by_order, card=path, **HOW)
    with pytest.raises(InputError, match="no criterion of this gate"):
        ps.gate(OLD, NEW, judge=longer, card=path, **HOW | {"criterion": "kinder"})
    with pytest.raises(InputError, match="of one judge, not of a panel"):
        ps.gate(OLD, NEW, judge=[longer, by_order], card=path, **HOW)


def test_a_panel_is_asked_in_both_orders():
    letters = lambda A, B: {"Y": int(A["text"].count("x") > B["text"].count("x"))}  # noqa: E731
    run = ps.gate(OLD, NEW, judge=[letters, longer], fixed=True, **HOW).result
    wins = [case for case in run.cases if case.outcome is ps.Outcome.WIN]
    assert wins
    assert flips_of(wins) == [0.0] * len(wins)
