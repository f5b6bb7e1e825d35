"""Presets: named sets of settings, resolved once at the start, logged, and named wherever a run is shown."""

from __future__ import annotations

import inspect

import pytest

import pairscale as ps
from pairscale.adaptive.config import DOCUMENT, OURS, PRESETS, AdaptiveConfig, BTLConfig, resolve_preset
from pairscale.core.errors import InputError, StoreMismatchError
from tests.adaptive.running import audited, better, samples, simulated

QUICK = {"progress": "none", "fit": "laplace"}


def test_every_preset_has_fields_that_exist_and_may_be_set():
    for chosen in PRESETS.values():
        assert set(chosen) == {"adaptive_config", "btl_config"}
        btl = BTLConfig.for_items(40, chosen["btl_config"])
        AdaptiveConfig.for_items(40, chosen["adaptive_config"], refit_pairs_target=btl.refit_pairs_target)


def test_the_documents_preset_is_the_defaults_of_the_configurations():
    assert resolve_preset(DOCUMENT) == ({}, {})
    assert BTLConfig.for_items(40).prior_sd == 1.0
    assert BTLConfig.for_items(40).theta_sd_rel_change_max == 0.10


@pytest.mark.parametrize("wrong", ["pollitt", "", "PAIRSCALE"])
def test_an_unknown_preset_is_refused_with_the_names_there_are(wrong, tmp_path):
    words = "preset must be 'pairscale' or 'pairwiseLLM'"
    with pytest.raises(InputError, match=words):
        ps.rank(samples(4), judge=better, preset=wrong, run=tmp_path / "run.db", **QUICK)
    with pytest.raises(InputError, match=words):
        ps.adaptive_rank(samples(4), judge=better, preset=wrong, progress="none", n_steps=None)
    with pytest.raises(InputError, match=words):
        ps.adaptive_rank_start(samples(4), preset=wrong)
    with pytest.raises(InputError, match=words):
        ps.simulate(6, selector="random", seeds=1, per_item=1, preset=wrong, progress=False)
    with pytest.raises(InputError, match=words):
        ps.plan(6, seeds=1, preset=wrong, progress=False)
    assert not (tmp_path / "run.db").exists()


@pytest.mark.parametrize(("first", "then"), [(OURS, DOCUMENT), (DOCUMENT, OURS)])
def test_another_preset_on_resume_is_an_error_that_names_it(message_snapshot, first, then, tmp_path):
    run = tmp_path / "run.db"
    ps.rank(samples(6), judge=simulated(), run=run, steps=4, preset=first, **QUICK)
    with pytest.raises(StoreMismatchError) as refused:
        ps.rank(samples(6), judge=simulated(), run=run, steps=4, preset=then, **QUICK)
    message_snapshot(refused)
    again = ps.rank(samples(6), judge=simulated(), run=run, steps=4, preset=first, **QUICK)
    assert again.summary["steps_attempted"].item() == 8
    assert audited(run).preset == first


def test_the_summary_says_what_the_claims_rest_on(tmp_path):
    run = tmp_path / "run.db"
    out = ps.rank(samples(6), judge=simulated(), run=run, steps=20, **QUICK)
    row = out.summary.row(0, named=True)
    names = ["preset", "goal", "reliability", "judge_id", "position_effect", "repeat_agreement", "weak_judges"]
    assert list(row)[-7:] == names
    last = out.refits.row(-1, named=True)
    assert (row["preset"], row["goal"], row["judge_id"]) == (OURS, "order", simulated().condition.judge_id)
    assert (row["reliability"], row["position_effect"]) == (last["reliability"], last["b_mean"])
    assert last["reliability"] == last["reliability_r2"] != last["reliability_EAP"]
    assert row["reliability"] is not None
    assert row["position_effect"] is not None
    loaded = ps.load_adaptive_session(run)
    assert ps.summarize_adaptive(loaded).equals(out.summary)


# The verb


def test_rank_uses_our_preset_and_adaptive_rank_the_documents():
    assert inspect.signature(ps.rank).parameters["preset"].default == OURS
    asked = inspect.signature(ps.adaptive_rank).parameters["preset"]
    assert (asked.default, asked.kind) == (DOCUMENT, inspect.Parameter.KEYWORD_ONLY)
    for verb in (ps.simulate, ps.plan):
        assert inspect.signature(verb).parameters["preset"].default == OURS
