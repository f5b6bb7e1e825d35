"""Refits, what they change, and late items (§4.3, §4.5.1, §7.1, §9.1.5; decisions 2, 3, 10, 11, 14, 16)."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import pairscale as ps
from pairscale.adaptive.engine import Engine, Proposal
from pairscale.models.bayes.fit import fit_btl_laplace
from tests.adaptive.driving import (
    Run,
    apart,
    ask,
    belief_of,
    by_mu,
    drive,
    finish_warm_start,
    judge,
    mu_belief,
    names,
    pair_of,
    replay,
)  # fmt: skip
from tests.adaptive.reference import connected
from tests.adaptive.running import better, samples

# Refits


def test_refit_cadence() -> None:
    """§4.3, §7.2.4: after refit_pairs_target committed comparisons, those of the warm start included."""
    for n, target in ((60, 100), (250, 125), (10, 10), (3, 5)):
        engine = Engine(names(n), seed=1)
        at: list[int] = []

        def fit(engine: Engine, at: list[int] = at) -> Any:
            at.append(engine.committed)
            assert engine.pending is not None
            assert len(engine.pending.history) == engine.committed
            assert engine.pending.new_pairs == engine.committed - (at[-2] if at[1:] else 0)
            return by_mu(engine)

        drive(engine, judge(), steps=3 * target + 20, fit=fit)
        # The first is not before the chain is complete (decision 2).
        expected = [max(target, n - 1)]
        while len(expected) < len(at):
            expected.append(expected[-1] + target)
        assert at == expected
        assert at


def test_a_refit_waits_for_the_warm_start() -> None:
    """Decision 2: one that falls due in the chain runs when it is complete."""
    engine = Engine(names(20), seed=1, btl_config={"refit_pairs_target": 4})
    for _ in range(18):
        engine.record(ask(engine).step_id, 1)
        assert engine.pending is None
    engine.record(ask(engine).step_id, 1)
    assert engine.pending is not None
    assert engine.must_apply
    assert engine.propose() is None
    engine.apply(mu_belief(engine), stop_reason=None)
    assert isinstance(engine.propose(), Proposal)


def test_a_refit_takes_effect_a_fixed_number_of_commits_later() -> None:
    """Decision 14: refit_lag commits after its trigger, whatever is open."""
    engine = Engine(names(12), seed=1, btl_config={"refit_pairs_target": 11})
    engine.refit_lag = 2
    finish_warm_start(engine)
    assert engine.pending is not None
    assert not engine.must_apply
    for _ in range(2):
        assert not engine.must_apply
        engine.record(ask(engine).step_id, 1)
    assert engine.must_apply
    assert len(engine.pending.history) == 11


@pytest.mark.parametrize(
    ("apart", "concurrency", "lag"),
    [(100, 1, 0), (100, 8, 8), (999, 8, 8), (1_000, 8, 100), (5_000, 8, 500), (5_000, 1, 0), (1_000, 200, 200)],
)
def test_refits_far_apart_have_more_time(apart: int, concurrency: int, lag: int) -> None:
    engine = Engine(names(12), seed=1, btl_config={"refit_pairs_target": apart})
    engine.set_lag(concurrency)
    assert engine.refit_lag == lag


@pytest.mark.slow
def test_questions_continue_while_a_long_refit_runs() -> None:
    """The first refit ends only after 90 more answers than it holds; with a lag of the two open, it would never end."""
    asked, enough = itertools.count(1), threading.Event()

    def counting(A: Any, B: Any) -> dict[str, Any]:
        if next(asked) == 1_090:
            enough.set()
        return better(A, B)

    def slow(rows: Any, ids: Any, **settings: Any) -> Any:
        assert enough.wait(60), "the questions stopped"
        return fit_btl_laplace(rows, ids, **settings)

    found = ps.adaptive_rank(
        samples(60), judge=counting, n_steps=1_300, concurrency=2, progress="none", fit_fn=slow,
        btl_config={"refit_pairs_target": 1_000},
    )  # fmt: skip
    assert found.refits["total_pairs_done"][0] == 1_000


def test_anchors_follow_the_last_passing_posterior() -> None:
    """§7.1, decision 3: from mu at each round until a refit has passed, then from its EAP means until the next."""
    engine = Engine(names(40), seed=1, btl_config={"refit_pairs_target": 39})
    finish_warm_start(engine)
    assert engine.pending is not None
    engine.apply(belief_of(np.arange(40), passed=False), stop_reason=None)
    ask(engine)
    by_rank = engine._scene().order
    ours = np.concatenate([by_rank[:3], by_rank[18:22], by_rank[37:]])
    assert sorted(np.flatnonzero(engine._anchors)) == sorted(ours)
    engine.apply(belief_of(np.arange(40)), stop_reason=None)
    assert np.flatnonzero(engine._anchors).tolist() == [0, 1, 2, 18, 19, 20, 21, 37, 38, 39]
    assert engine.belief is not None


def test_no_diagnostics_no_decisions() -> None:
    """§9.1.5, decision 10: what did not pass guides nothing; but phase 3, once entered, stays (§5.4)."""
    engine = Engine(names(8), seed=1)
    engine.apply(belief_of(np.arange(8), passed=False, identified=True), stop_reason="btl_converged")
    assert engine.belief is None
    assert not engine.identified
    assert engine.stop_reason is None
    assert not engine.near_stop
    assert engine.refit_request().lag is None
    engine.apply(belief_of(np.arange(8), 2, passed=False, near=True), stop_reason=None)
    assert engine.near_stop
    for refit_id in (3, 4, 5):
        engine.apply(belief_of(np.arange(8), refit_id), stop_reason=None)
    assert engine.near_stop
    assert engine.refit_request().lag.refit_id == 4  # type: ignore[union-attr]
    assert engine.refit_request().refit_id == 6


def test_known_order_changes_the_next_round() -> None:
    """§4.5.1, §4.6.2: the taper holds from the next round on; so does exploring, at once."""
    engine = Engine(names(120), seed=1)
    finish_warm_start(engine)
    engine.apply(belief_of(engine.ledger.mu - 25, identified=True), stop_reason=None)
    assert engine.identified
    found = ask(engine)
    assert found.fields["explore_rate_used"] == pytest.approx(engine.config.explore_rate / 2)
    assert found.fields["belief_refit_id"] == 1
    assert engine._round.quota == {"anchor_link": 15, "long_link": 2, "mid_link": 6, "local_link": 27}
    plan = engine._round.plan
    assert plan is not None
    names_of_taper = ("long_quota_raw", "long_quota_removed", "realloc_to_mid", "realloc_to_local")
    assert [plan[name] for name in names_of_taper] == [5, 3, 1, 2]


def test_refits_say_how_the_choosing_went() -> None:
    """§6.1.4, §10.2: health since the last refit; quotas of the last complete round."""
    engine = Engine(names(12), seed=1, btl_config={"refit_pairs_target": 40})
    run = drive(engine, judge(), steps=10**4, fit=lambda engine: (belief_of(np.arange(12)), "btl_converged"))
    assert engine.stop_reason == "btl_converged"
    assert engine.propose() is None
    # The request as it was at the trigger, from the rows before it.
    again = Engine(names(12), seed=1, btl_config={"refit_pairs_target": 40})
    seen: list[Any] = []
    drive(again, judge(), steps=len(run.rows), fit=lambda engine: seen.append(engine.pending) or by_mu(engine))
    request = seen[0]
    rows = run.rows
    health = request.health
    assert health["starve_rate_since_last_refit"] == np.mean([row["status"] == "starved" for row in rows])
    assert health["fallback_rate_since_last_refit"] == np.mean([row["fallback_used"] != "base" for row in rows])
    scored = [row["n_candidates_scored"] for row in rows if row.get("n_candidates_scored") is not None]
    assert health["proposed_pairs_mode"] == np.median(scored)
    assert request.round_id_at_refit == rows[-1]["round_id"] - (engine._round.stage is not None)
    assert request.quotas["round_pairs_target"] == 20
    assert request.step_id_at_refit == len(rows)


# Late items


def test_late_items_are_tied_in() -> None:
    """Decision 16: from the prior, by links of their own to items spread over the scale, before choosing continues."""
    engine = Engine(names(30), seed=1)
    drive(engine, judge(), steps=60)
    ranked = engine._scene().order.tolist()
    engine.join(["late1", "late2"])
    assert engine.ledger.mu[30:].tolist() == [25.0, 25.0]
    run = drive(engine, judge(), steps=66)
    assert {row["round_stage"] for row in run.rows} == {"warm_start"}
    for new in (30, 31):
        partners = [next(iter(pair_of(row) - {new})) for row in run.rows if new in pair_of(row)]
        assert len(partners) == 3
        thirds = [ranked.index(partner) // 10 for partner in partners]
        assert sorted(thirds) == [0, 1, 2]
    assert engine.ledger.degree[30:].tolist() == [3, 3]
    assert drive(engine, judge(), steps=67).rows[-1]["round_stage"] != "warm_start"


def test_a_late_item_that_is_refused_once_is_still_tied_in() -> None:
    """Decision 8 and 16: two other links hold it, so it is not called unlinked."""
    engine = Engine(names(10), seed=1)
    drive(engine, judge(), steps=20)
    engine.join(["late"])
    engine.record(ask(engine).step_id, None)
    while not engine._warm.done:
        engine.record(ask(engine).step_id, 1)
    assert engine.ledger.degree[10] >= 2
    assert apart(engine) == []


def test_late_items_take_up_a_run_that_starved() -> None:
    """Decision 5 and 16: with new items there are new pairs."""
    engine = Engine(names(3), seed=1)
    drive(engine, judge(), steps=1000)
    assert engine.stop_reason == "candidate_starvation"
    engine.join(["late"])
    assert engine.stop_reason is None
    run = drive(engine, judge(), steps=1000)
    assert {"committed"} <= {row["status"] for row in run.rows if row["round_stage"] != "warm_start"}
    assert (engine.ledger.seen[3, :3] >= 2).all()


def test_other_settings_take_up_a_run_that_starved() -> None:
    """Decision 5: a stopped run continues when its limits were raised."""
    engine = Engine(names(4), seed=1)
    drive(engine, judge(), steps=1000)
    before = engine.committed
    assert engine.stop_reason == "candidate_starvation"
    engine.configure({"dup_max_obs": 3, "dup_p_margin": 0.5, "q": 0.0}, {})
    drive(engine, judge(), steps=1000)
    assert engine.committed > before


def test_a_refit_from_before_a_join_decides_nothing() -> None:
    """Decision 16: it knows nothing of the new items, so neither its order nor its stop holds for them."""
    engine = Engine(names(8), seed=1)
    drive(engine, judge(), steps=8)
    engine.join(["late"])
    engine.apply(belief_of(np.arange(8), identified=True), stop_reason="btl_converged")
    assert engine.stop_reason is None
    assert not engine.identified
    assert engine.belief is None
    assert isinstance(engine.propose(), Proposal)


def test_late_items_when_all_others_were_set_aside() -> None:
    """Decision 16: nobody to be tied to, and no crash."""
    engine = Engine(names(2), seed=1, adaptive_config={"max_invalid_per_item": 1})
    engine.record(ask(engine).step_id, None)
    engine.join(["late1", "late2", "late3"])
    run = drive(engine, judge(), steps=60)
    links = [tuple(pair_of(row)) for row in run.rows if row["round_stage"] == "warm_start"]
    assert sorted(map(len, connected(links, 5))) == [1, 1, 3]  # type: ignore[arg-type]
    assert engine.committed > 2


def test_a_selector_that_learns_from_looking_is_replayed() -> None:
    """Decision 11, 13: the `information` selector knows what it knew when its run is taken up from the log."""
    run = Run(Engine(names(9), seed=1, selector="information"))
    drive(run.engine, judge(), steps=60, concurrency=4, run=run, next_answer=max)
    again = Engine(names(9), seed=1, selector="information")
    again.refit_lag = 4
    replay(again, run)
    for _ in range(4):
        one, two = ask(run.engine), ask(again)
        assert dict(one.fields) == dict(two.fields)
