"""The verdicts of a gate: bounds on one side, ways to count failures, several criteria."""

import json
import logging
import math
import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.evaluate.sides import longer

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError
from pairscale.evaluate.inference.gate import (
    FAIL_IF,
    VERDICTS,
    GateRule,
    RunningVerdict,
    Shown,
    fails,
    log_capital_above,
    lower_bound,
    upper_bound,
    verdict_of_ways,
)

VALUES = np.array([0.0, 0.5, 1.0])
COUNTS = st.tuples(*[st.integers(0, 60)] * 3).filter(sum)
MARGINS = st.sampled_from([0.0, 0.05, 0.1, 0.3])


def slow_capital(mean, margin, scores):
    """Bet by bet and score by score, as the page says it."""
    from pairscale.evaluate.inference.sequence import portfolio

    spread, shares = portfolio(len(scores))
    rest = 0.4 if margin else 1.0
    bets = [(mean + one * (1 - mean), share * rest) for one, share in zip(spread, shares, strict=True)]
    if margin:
        bets += [(min(mean + margin, (1 + mean) / 2), 0.4), (min(mean + 2 * margin, (1 + mean) / 2), 0.2)]
    total = 0.0
    for rate, share in bets:
        capital = share
        for score in scores:
            capital *= 1 + (rate - mean) / (mean * (1 - mean)) * (score - mean)
        total += capital
    return total


@given(st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=1, max_size=25), MARGINS, st.floats(0.1, 0.9))
def test_the_capital_is_that_of_the_bets(scores, margin, mean):
    values, counts = np.unique(scores, return_counts=True)
    fast = log_capital_above(mean, margin, values, counts[None, :].astype(float))[0]
    assert math.exp(fast) == pytest.approx(slow_capital(mean, margin, scores), rel=1e-6)


@given(COUNTS, MARGINS)
def test_the_capital_falls_with_the_mean_so_that_there_is_one_bound(counts, margin):
    counts = np.array(counts, dtype=float)
    means = np.linspace(0.02, 0.98, 40)
    won = [log_capital_above(mean, margin, VALUES, counts[None, :])[0] for mean in means]
    assert all(one >= other - 1e-9 for one, other in pairwise(won))
    lower, upper = (bound(VALUES, counts, margin, 0.95) for bound in (lower_bound, upper_bound))
    assert 0 <= lower <= counts @ VALUES / counts.sum() <= upper <= 1
    assert upper == pytest.approx(1 - lower_bound(1 - VALUES, counts, margin, 0.95))


@pytest.mark.parametrize("margin", [0.0, 0.05, 0.3])
def test_a_bet_is_fair_at_the_mean_and_loses_below_it(margin):
    """The expected capital after a score is what there was, if the mean is the one that is doubted."""
    for chance in (0.3, 0.4, 0.5):
        one = np.array([[1.0, 0.0], [0.0, 1.0]])
        capital = np.exp(log_capital_above(0.5, margin, np.array([0.0, 1.0]), one))
        expected = capital @ np.array([1 - chance, chance])
        assert expected <= 1 + 1e-9
        assert (expected == pytest.approx(1)) == (chance == 0.5)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=60), MARGINS)
def test_what_is_shown_fits_the_bounds_and_turns_with_the_variants(scores, margin):
    running, turned = RunningVerdict(margin), RunningVerdict(margin)
    for score in scores:
        before = running.shown
        running.update(score)
        turned.update(1 - score)
        after = running.shown
        for name in ("better", "not_worse", "no_gain", "worse"):
            assert getattr(after, name) >= getattr(before, name), "what is shown stays shown"
    shown, (lower, upper) = running.shown, running.ci
    assert (shown.better, shown.not_worse) == (turned.shown.worse, turned.shown.no_gain)
    assert lower >= 0.5 - margin - 1e-6 if shown.not_worse else lower <= 0.5 - margin + 1e-6
    assert upper <= 0.5 + margin + 1e-6 if shown.no_gain else upper >= 0.5 + margin - 1e-6
    assert running.mean == pytest.approx(sum(scores) / len(scores))


BETTER, FINE, EVEN, WORSE = (
    Shown(True, True), Shown(not_worse=True), Shown(not_worse=True, no_gain=True), Shown(no_gain=True, worse=True)
)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "other", "verdict"),
    [
        (BETTER, BETTER, "better"),
        (BETTER, FINE, "not-worse"),
        (FINE, EVEN, "not-worse"),
        (EVEN, EVEN, "equivalent"),
        (BETTER, Shown(), "inconclusive"),
        (FINE, WORSE, "inconclusive"),
        (WORSE, BETTER, "worse"),
        (WORSE, Shown(), "worse"),
        (Shown(), WORSE, "inconclusive"),
        (Shown(not_worse=True, no_gain=True, worse=True), EVEN, "equivalent"),
    ],
)
def test_a_pass_holds_in_every_way_to_count_and_worse_in_the_one_that_was_asked_for(asked, other, verdict):
    assert verdict_of_ways({"loss": asked, "excluded": other}, "loss") == verdict


def test_what_fails_and_what_is_decided(monkeypatch):
    failing = {one: {verdict for verdict in VERDICTS if fails(verdict, [one])} for one in FAIL_IF}
    assert failing == {
        "worse": {"worse"},
        "inconclusive": {"inconclusive"},
        "not-better": set(VERDICTS) - {"better", "untested"},
    }
    monkeypatch.setattr(GateRule, "verdict", lambda rule, look, asked: look.verdict)
    flips = SimpleNamespace(shown=Shown())
    for fail_if, undecided in ((["worse"], {"inconclusive"}), (["worse", "not-better"], {"inconclusive", "not-worse"})):
        rule = GateRule(fail_if=fail_if, by_flips=False)
        looks = [SimpleNamespace(verdict=verdict, flips=flips) for verdict in VERDICTS]
        assert {look.verdict for look in looks if not rule.decided(look, "loss")} == undecided


def test_a_rule_stops_when_one_criterion_fails_or_all_are_decided():
    rule = GateRule(0.1, by_flips=False)

    def looked(score, n):
        sequence = rule.sequence()
        for _ in range(n):
            sequence.update(score)
        return SimpleNamespace(sequences={"loss": sequence, "excluded": sequence}, flips=rule.sequence())

    good, bad, little = looked(1.0, 30), looked(0.0, 30), looked(1.0, 1)
    assert not rule.stops([good, little], "loss")
    assert rule.stops([good, good], "loss")
    assert rule.stops([little, bad], "loss")
    waiting, even = GateRule(0.1), looked(0.5, 60)
    assert rule.stops([even], "loss")
    assert not waiting.stops([even], "loss"), "until the judge has shown that it can tell"
    for _ in range(10):
        even.flips.update(0.0)
    assert waiting.stops([even], "loss")


# The verb


OLD = {f"t{n}": "x" * 20 for n in range(40)}
NEW = {f"t{n}": "x" * 30 for n in range(40)}
HOW = {"judge": longer, "concurrency": 1, "progress": False}


def test_several_criteria_share_the_level():
    found = ps.gate(OLD, NEW, criterion=["one", "two"], **HOW)
    assert [one.level for one in found.criteria] == [0.975, 0.975]
    assert found.criteria[0].n > ps.gate(OLD, NEW, criterion="one", **HOW).criteria[0].n
    assert (found.verdict, found.passed, found.exit_code) == ("not-worse", True, 0)
    assert found.frame()["criterion"].to_list() == ["one", "two"]
    json.dumps(found.to_dict())
    assert str(found).startswith("the gate passed; one: B is not worse than A within the margin")


def test_a_judge_that_answers_too_little_raises_with_what_there_is(message_snapshot, tmp_path):
    asked: list[int] = []

    def shy(A, B):
        asked.append(1)
        return {**longer(A, B), "is_valid": len(asked) % 5 > 0, "invalid_reason": "no idea"}

    with pytest.raises(JudgeError) as raised:
        ps.gate(OLD, NEW, criterion="c", fixed=True, summary=tmp_path / "gate.md", **HOW | {"judge": shy})
    message_snapshot(raised)
    assert raised.value.result.exit_code == 1
    assert "could not run" in (tmp_path / "gate.md").read_text()


def gated(a, b=None, criterion="says more", **options):
    return ps.gate(a, b, criterion=criterion, judge=longer, fixed=True, progress=False, **options)


def test_tasks_are_paired_as_in_ab(message_snapshot, tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.write_text(json.dumps(rows), "utf-8")
        return path

    count = range(12)
    a = write("a.json", [{"instruction": f"Question {n}?", "output": "x", "generator": "a"} for n in count])
    b = write("b.json", [{"instruction": f"Question {n}? ", "output": "y" * 9, "generator": "b"} for n in count])
    assert gated(a, b).criteria[0].n == 12, "files without names are paired by the text of the task"
    assert gated(b, baseline=a).criteria[0].rate == 1.0
    composed, decomposed = (
        {f"K{one}se {n}": text for n in count} for one, text in (("\u00e4", "x"), ("a\u0308", "yy"))
    )
    assert gated(composed, decomposed).criteria[0].n == 12
    others = write("c.json", [{"id": f"c{n}", "input": f"Question {n}?", "output": "y" * 9} for n in count])
    named = write("d.json", [{"id": f"d{n}", "input": f"Question {n}?", "output": "x"} for n in count[:11]])
    with pytest.raises(InputError) as refused:
        gated(others, named)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        gated({"t1": "x"}, {"t2": "x"})
    message_snapshot(refused)


def test_no_report_of_an_earlier_gate_stays(tmp_path):
    def interrupted(A, B):
        raise KeyboardInterrupt

    a, b = {f"t{n}": "x" for n in range(20)}, {f"t{n}": "yy" for n in range(20)}
    files = {"summary": tmp_path / "gate.md"}
    gated(a, b, **files)
    assert "passed" in files["summary"].read_text()
    with pytest.raises(KeyboardInterrupt):
        ps.gate(a, b, criterion="says more", judge=interrupted, progress=False, **files)
    assert "could not run" in files["summary"].read_text()


HOSTILE = (
    "@octocat and @org/team fix #1", "a|b `c` <img src=x onerror=alert(1)>", "1. one", "- dash", "]]> <!-- -->",
    "nul \x00 esc \x1b[31m", "two\nlines", "https://example.org www.example.org a@example.org", "\u202egnp.exe", "```",
    ":tada: **b** $x$ ![i](http://example.org)", "&lt;b&gt; &#64;octocat", "\\", "half \ud800 of a character",
)  # fmt: skip


def test_a_summary_shows_hostile_names_as_they_are(message_snapshot, tmp_path):
    files = {"summary": tmp_path / "gate.md"}
    a, b = ({f"{name} {n}": text for n, name in enumerate(HOSTILE)} for text in ("long", "x"))
    for name, criteria in ((HOSTILE[0], HOSTILE[:-1]), ("1. one", ["helpful"]), ("- half \ud800", ["helpful"])):
        how = {"judge": longer, "fixed": True, "progress": False, "name_b": name, **files}
        assert ps.gate(a, b, criterion=criteria, **how).verdict == "worse"
        html = MarkdownIt("commonmark").enable("table").render(files["summary"].read_text("utf-8"))
        marks = {mark for mark in re.findall(r"<[^>]*>", html) if mark != "<!-- -->"}
        plain = set("h3 table thead tbody tr th td p strong sub".split())
        assert {mark.strip("</>").split()[0] for mark in marks} <= plain, name
        assert not re.search(r"[\x00-\x08\x1b]", html), name
    with pytest.raises(InputError) as refused:
        gated(a, b, criterion=HOSTILE[-1])
    message_snapshot(refused)


@pytest.mark.parametrize(("tasks", "verdict"), [(1, "untested"), (4, "untested"), (5, "worse")])
def test_a_gate_of_fixed_size_needs_five_losses_of_five(tasks, verdict):
    """Equal variants lose four of four in 6 % of pull requests, and five of five in 3 %."""
    found = gated({f"t{n}": "long" for n in range(tasks)}, {f"t{n}": "x" for n in range(tasks)})
    assert found.verdict == verdict
    assert found.criteria[0].losses == tasks


@pytest.mark.parametrize("fail_if", ["worse", "inconclusive", "not-better"])
@pytest.mark.parametrize("output", ["x", "longer"])
def test_a_gate_that_cannot_fail_is_untested_whatever_it_finds(tmp_path, caplog, fail_if, output):
    """Seven tasks do not show that B is worse, even if it loses all of them; that B wins all proves as little."""
    files = {"summary": tmp_path / "gate.md"}
    a, b = ({f"t{n}": text for n in range(7)} for text in ("long", output))
    with caplog.at_level(logging.WARNING):
        found = ps.gate(a, b, criterion="c", judge=longer, fail_if=fail_if, progress=False, **files)
    why = "the gate cannot fail with 7 tasks: to show that B is worse takes at least 8, even if it loses all of them"
    assert f"{why}; the verdict will be untested" in caplog.text
    assert (found.verdict, found.passed, found.exit_code) == ("untested", False, 4)
    [criterion] = found.criteria
    assert (criterion.untested, criterion.failed) == (why, False)
    assert criterion.sentence.startswith(f"B is untested, as {why}: it won ")
    assert found.to_dict()["exit_code"] == 4
    assert files["summary"].read_text("utf-8").startswith("### pairscale gate: untested")


def test_a_gate_compares_recorded_answers(message_snapshot):
    with pytest.raises(InputError) as refused:
        ps.gate([f"Question {n}?" for n in range(12)], criterion="c", judge=longer, progress=False)
    message_snapshot(refused)


def test_eight_tasks_are_enough_for_a_gate_to_fail():
    a, b = ({f"t{n}": text for n in range(8)} for text in ("long", "x"))
    found = ps.gate(a, b, criterion="c", judge=longer, progress=False)
    assert (found.verdict, found.exit_code, found.criteria[0].untested) == ("worse", 3, None)
    even = ps.gate(a, a, criterion="c", judge=longer, progress=False)
    assert (even.verdict, even.passed) == ("inconclusive", True)
    both = ps.gate(a, b, criterion=["c", "d"], judge=longer, progress=False)  # each has a higher level
    assert (both.verdict, both.exit_code) == ("untested", 4)
