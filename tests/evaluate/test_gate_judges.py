"""A gate takes a judge that can tell: one that goes by the order of the answers passes nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate.gate import gate_criterion
from pairscale.evaluate.inference.gate import GateRule
from pairscale.evaluate.result import flips_of

SEED = 20261207
BOTH = {"orders": [{}, {}]}


def gated(rng, *, sees, better, tasks, margin, fixed, ties=0.0, noise="order"):
    """What a gate says whose judge sees the truth in a share of the tasks, and what it said if the judge could tell.

    Elsewhere, the judge goes by the order of the answers, which is a flip, or by chance, which is a flip half the time.
    """
    truth = rng.random(tasks) < better
    knows = rng.random(tasks) < sees
    tied = rng.random(tasks) < ties
    agrees = (rng.random(tasks) < 0.5) & (noise == "chance")
    random_winner = rng.random(tasks) < 0.5
    cases = []
    for place in range(tasks):
        b_wins = truth[place] if knows[place] else random_winner[place]
        outcome, winner = ps.Outcome.WIN, "b" if b_wins else "a"
        if tied[place]:
            outcome, winner = ps.Outcome.TIE, "tie"
        elif not knows[place] and not agrees[place]:
            outcome, winner = ps.Outcome.FLIP, None
        cases.append(ps.PairwiseCase(f"t{place}", "k", winner, "", BOTH, outcome))
    run = ps.PairwiseRunResult("r", tuple(cases), ("k",), sequential=not fixed)
    rule = GateRule(margin)
    return gate_criterion(run, "k", rule), gate_criterion(run, "k", replace(rule, by_flips=False), {"k": True})


SUITES = [{"tasks": 200, "margin": 0.1, "fixed": False}, {"tasks": 60, "margin": 0.2, "fixed": False},
          {"tasks": 150, "margin": 0.05, "fixed": True}]  # fmt: skip
BLIND = [0.1, 0.2, 0.3]
HONEST = [{"sees": 0.95}, {"sees": 0.85}, {"sees": 0.9, "ties": 0.4}, {"sees": 0.7, "noise": "chance"}]


def passes(found):
    return found.verdict not in {"worse", "untested"}


def passed(runs, seed, **how):
    """Gates that passed, and that would have passed whatever the judge can tell."""
    found = []
    for run in range(runs):
        rng = np.random.default_rng([SEED, seed, run])
        better = rng.uniform(0.30, 0.35) if how["sees"] < 0.5 else 0.5
        found.append(gated(rng, better=better, **how))
    return sum(passes(now) for now, _ in found), sum(passes(before) for _, before in found)


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


def longer(A, B):
    return {"Y": int(len(A["text"]) > len(B["text"]))}


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
    with pytest.raises(InputError, match="needs recorded answers of A"):
        ps.gate(["q"], variant_a=len, variant_b=len, judge=longer, planted=WORSE, **HOW)


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
