"""Presets: named sets of settings, resolved once at the start, logged, and named wherever a run is shown."""

from __future__ import annotations

import inspect
from dataclasses import replace

import polars as pl
import pytest

import pairscale as ps
from pairscale.adaptive import config
from pairscale.adaptive.config import DOCUMENT, OURS, PRESETS, AdaptiveConfig, BTLConfig, resolve_preset
from pairscale.adaptive.engine import Engine
from pairscale.core.errors import InputError, StoreMismatchError
from tests.adaptive.driving import belief_of, drive, judge, names
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
    run = tmp_path / "run.db"
    for verb, given in (
        (ps.rank, {"data": samples(4), "judge": better, "run": run, **QUICK}),
        (ps.adaptive_rank, {"data": samples(4), "judge": better, "run": run, "progress": "none", "n_steps": None}),
        (ps.adaptive_rank_start, {"items": samples(4), "run": run}),
        (ps.simulate, {"items": 6, "selector": "random", "seeds": 1, "per_item": 1, "progress": False}),
        (ps.plan, {"items": 6, "seeds": 1, "progress": False}),
    ):
        with pytest.raises(InputError, match="preset must be 'pairscale' or 'pairwiseLLM'"):
            verb(**given, preset=wrong)
    assert not run.exists()


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
    certainty = ["reliability_lower", "reliability_upper", "rank_correlation", "reliability_without_outliers"]
    names = ["preset", "goal", "reliability", "judge_id", "position_effect", "repeat_agreement", "weak_judges"]
    assert list(row)[-12:] == [*names, "reliability_eap", *certainty]
    last = out.refits.row(-1, named=True)
    assert (row["preset"], row["goal"], row["judge_id"]) == (OURS, "order", simulated().condition.judge_id)
    assert (row["reliability"], row["position_effect"]) == (last["reliability"], last["b_mean"])
    assert last["reliability"] == last["reliability_r2"] != last["reliability_EAP"]
    assert row["reliability_eap"] == last["reliability_EAP"]
    assert row["reliability_lower"] < row["reliability"] < row["reliability_upper"]
    assert 0 < row["rank_correlation"] < 1
    assert row["position_effect"] is not None
    loaded = ps.load_adaptive_session(run)
    assert ps.summarize_adaptive(loaded).equals(out.summary)


def test_ours_refits_as_often_as_it_is_cheap_and_the_document_as_it_says():
    ours = {n: BTLConfig.for_items(n, resolve_preset(OURS)[1]) for n in (12, 30, 60, 100, 1000)}
    apart = {n: (btl.refit_pairs_target, btl.refit_pairs_near_stop) for n, btl in ours.items()}
    assert apart == {12: (12, 3), 30: (20, 3), 60: (20, 3), 100: (34, 4), 1000: (334, 41)}
    document = BTLConfig.for_items(30, resolve_preset(DOCUMENT)[1])
    assert document.refit_pairs_target == document.refit_pairs_near_stop == 100
    given = BTLConfig.for_items(30, resolve_preset(OURS, None, {"refit_pairs_target": 50})[1])
    assert (given.refit_pairs_target, given.refit_pairs_near_stop) == (50, 6)
    rounds = [Engine(names(60), btl_config=resolve_preset(name)[1]).config.round_pairs_target for name in PRESETS]
    assert rounds == [50, 50]  # more refits do not make rounds smaller


def test_near_the_stop_refits_come_more_often_and_look_back_as_far():
    engine = Engine(names(30), seed=1, btl_config=resolve_preset(OURS)[1])

    def fit(engine):
        assert engine.pending is not None
        fitted = len(engine.pending.history)
        lags.append((fitted, None if engine.pending.lag is None else engine.pending.lag.committed))
        return belief_of((engine.pending.mu - 25) / 4, engine.pending.refit_id, near=fitted >= 69), None

    lags: list[tuple[int, int | None]] = []
    drive(engine, judge(), steps=95, fit=fit)
    assert lags == [
        (29, None), (49, None), (69, 29), (72, 29), (75, 29), (78, 29), (81, 29), (84, 29), (87, 29), (90, 49), (93, 49)
    ]  # fmt: skip


def test_a_run_of_a_version_without_a_setting_continues_without_it(tmp_path, monkeypatch):
    run = tmp_path / "run.db"
    earlier = {name: dict(settings) for name, settings in PRESETS[OURS].items()}
    del earlier["btl_config"]["refit_often"]
    monkeypatch.setattr(config, "PRESETS", {**PRESETS, OURS: earlier})
    ps.rank(samples(6), judge=simulated(), run=run, steps=8, **QUICK)
    monkeypatch.undo()
    state = ps.rank(samples(6), judge=simulated(), run=run, steps=8, **QUICK).state
    assert (state.engine.committed, state.engine.btl.refit_often) == (16, False)


@pytest.mark.parametrize(
    ("agrees", "p_two_groups", "words"),
    [
        (0.95, 0.0, "almost the same order"),
        (0.89, 0.4, "neighbours changing places"),
        (0.83, 0.0, "its middle is not"),
        (0.89, 0.9, "the texts fall into two groups, and the order within a group is known less well"),
    ],
)
def test_the_sentence_on_the_order_follows_from_the_rank_correlation(agrees, p_two_groups, words, tmp_path):
    out = ps.rank(samples(6), judge=simulated(), steps=20, **QUICK)
    figures = {"reliability": 0.93, "reliability_r2": 0.93, "reliability_EAP": 0.87, "rank_correlation": agrees}
    figures["p_two_groups"] = p_two_groups
    refits = out.refits.with_columns(**{name: pl.lit(value) for name, value in figures.items()})
    page = tmp_path / "page.html"
    replace(out, refits=refits).report(page)
    text = page.read_text("utf-8")
    assert words in text
    assert "The reliability is 0.930 (95 % interval" in text
    assert "EAP reliability is 0.870." in text


# The verb


def test_rank_uses_our_preset_and_adaptive_rank_the_documents():
    assert inspect.signature(ps.rank).parameters["preset"].default == OURS
    asked = inspect.signature(ps.adaptive_rank).parameters["preset"]
    assert (asked.default, asked.kind) == (DOCUMENT, inspect.Parameter.KEYWORD_ONLY)
    for verb in (ps.simulate, ps.plan):
        assert inspect.signature(verb).parameters["preset"].default == OURS
