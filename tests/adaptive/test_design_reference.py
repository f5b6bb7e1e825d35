"""Whole runs by the document (§5 to §7): every choice against the slow reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pairscale.adaptive.engine import Engine, Starved
from tests.adaptive.driving import Run, drive, logistic_judge, mu_belief, names
from tests.adaptive.reference import Reference


def compared(engine: Engine, *, steps: int, identified_from: int | None = None, refuses: int | None = None) -> Run:
    """Drive an engine, and hold every step against the reference: pair, order, counts, routing and fallbacks."""
    rng = np.random.default_rng(engine.seed)
    judge = logistic_judge(rng.normal(0, 1.5, engine.ledger.n), rng)
    run = Run(engine)

    def propose(engine: Engine) -> Any:
        if engine.must_apply or engine.stop_reason or not engine._warm.done:
            return engine.propose()
        reference = Reference(engine, [row for row in run.rows if row["status"] == "committed"])
        if reference.over:
            found = engine.propose()
            assert found is None
            assert engine.stop_reason == "candidate_starvation"
            return found
        pair, said = reference.step()
        found = engine.propose()
        assert found is not None
        got = found.row if isinstance(found, Starved) else found.fields
        for name, value in said.items():
            if isinstance(found, Starved) and name == "is_explore_step":
                continue
            assert got.get(name) == pytest.approx(value, abs=1e-12), (name, got, said)
        if isinstance(found, Starved):
            assert pair is None
        else:
            assert pair == (got["i"] - 1, got["j"] - 1)
            assert (found.first, found.second) == reference.order(*pair, run.rows)
        return found

    def answer(engine: Engine, proposal: Any) -> tuple[int | None, bool]:
        return (None, False) if refuses in (proposal.first, proposal.second) else judge(engine, proposal)

    def fit(engine: Engine) -> Any:
        return mu_belief(engine, identified=identified_from is not None and engine.n_refits >= identified_from), None

    return drive(engine, answer, steps=steps, propose=propose, run=run, fit=fit)


@pytest.mark.parametrize(("n", "steps"), [(2, 40), (3, 60), (5, 60), (6, 80), (9, 120), (16, 150), (31, 100)])
def test_every_choice_by_the_text(n: int, steps: int) -> None:
    """§5.1 to §5.3, §6, §7.4 to §7.6: with the defaults, from the first pair to the last or the limit."""
    run = compared(Engine(names(n, shuffled=n), seed=n), steps=steps)
    assert run.engine.steps == steps or run.engine.stop_reason == "candidate_starvation"


@pytest.mark.slow_except("12-*", "9-*")
@pytest.mark.parametrize(
    ("n", "adaptive"),
    [
        (12, {"C_max": 5}),
        (12, {"W_cap": 12, "cap_frac": 0.3, "star_override_budget_per_round": 2, "p_star_override_margin": 0.3}),
        (33, {"W_cap": 40, "star_override_budget_per_round": 3, "p_star_override_margin": 0.2, "boundary_frac": 0.5}),
        (14, {"degree_alpha": 0.1, "explore_rate": 0.0, "local_anchors": False}),
        (10, {"dup_max_obs": 3, "dup_max_obs_relaxed": 5, "dup_p_margin": 0.2, "q": 0.5}),
        (20, {"explore_rate": 1.0, "explore_nonlocal_rate": 0.5, "explore_resample_max": 0}),
        (24, {"p_long_low": 0.3, "p_long_high": 0.7, "long_frac_early": 0.4, "long_frac_floor": 0.4, "boundary_k": 5,
              "boundary_window": 2}),
        (11, {"repeat_in_round_budget": 6, "exposure_underrep_q": 0.6, "round_pairs_target": 40}),
        (9, {"quota_eps": 1.0, "top_band_pct": 0.5, "K_base": 2}),
    ],
)  # fmt: skip
def test_every_choice_by_the_text_with_other_settings(n: int, adaptive: dict[str, Any]) -> None:
    """The same with tight caps, samples of candidates, the order known, an item that is never answered on."""
    for seed, known, refuses in ((1, None, None), (2, 1, None), (3, 0, 1)):
        settings = {"adaptive_config": adaptive, "btl_config": {"refit_pairs_target": 9}}
        engine = Engine(names(n, shuffled=seed), seed=seed, **settings)
        compared(engine, steps=70, identified_from=known, refuses=refuses)
