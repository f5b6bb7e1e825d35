"""Presets: named sets of settings, resolved once at the start, logged, and named wherever a run is shown."""

from __future__ import annotations

import inspect
import logging

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


def test_ours_learns_the_spread_and_does_not_wait_for_it():
    btl = BTLConfig.for_items(40, resolve_preset(OURS)[1])
    assert (btl.prior_sd, btl.theta_sd_rel_change_max) == ("learned", 1e6)


@pytest.mark.parametrize("given", [{"prior_sd": 2.0}, BTLConfig.for_items(40, {"prior_sd": 2.0})])
def test_the_users_own_settings_win(given):
    adaptive, btl = resolve_preset(OURS, {"cap_frac": 0.2}, given)
    assert (adaptive["cap_frac"], btl["prior_sd"]) == (0.2, 2.0)
    if isinstance(given, dict):
        assert btl["theta_sd_rel_change_max"] == 1e6  # the rest stays the preset's


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


def test_the_start_of_a_run_logs_the_preset_and_its_settings(tmp_path):
    run = tmp_path / "run.db"
    ps.rank(samples(6), judge=simulated(), run=run, steps=4, btl_config={"stability_lag": 1}, **QUICK)
    with ps.open_run(run) as store:
        start = store.read_log("adaptive_events")[0]
    assert start["preset"] == OURS
    assert start["adaptive_config"] == PRESETS[OURS]["adaptive_config"]
    assert start["btl_config"] == {**PRESETS[OURS]["btl_config"], "stability_lag": 1}
    assert start["btl_config"]["prior_sd"] == start["btl_config"]["repeats"] == "learned"


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


def test_another_preset_is_refused_after_a_stop_as_well(tmp_path):
    run, soon = tmp_path / "run.db", {"btl_config": {"eap_reliability_min": 0.1, "stability_lag": 1}}
    done = ps.rank(samples(8), judge=better, run=run, **soon, **QUICK)
    assert done.state.engine.stop_reason == "btl_converged"
    with pytest.raises(StoreMismatchError, match="preset="):
        ps.rank(samples(8), judge=better, run=run, preset=DOCUMENT, **soon, **QUICK)


def test_the_engine_knows_only_settings():
    mine = resolve_preset(OURS)
    named = ps.adaptive_rank_start(samples(6), preset=OURS).engine
    given = ps.adaptive_rank_start(samples(6), adaptive_config=mine[0], btl_config=mine[1]).engine
    assert (named.config, named.btl) == (given.config, given.btl)
    assert "preset" not in inspect.signature(type(named)).parameters


def test_adaptive_rank_says_which_preset_it_uses_when_it_starts_a_run(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "pairscale")
    run = tmp_path / "run.db"
    for _ in range(2):
        ps.adaptive_rank(samples(6), judge=simulated(), run=run, n_steps=3, fit_fn="laplace", progress="none")
    said = [record.message for record in caplog.records if "preset" in record.message]
    assert said == ["preset pairwiseLLM: the settings of the design document; rank() has those of pairscale"]


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


def test_a_model_without_a_position_effect_has_none_in_the_summary():
    out = ps.rank(samples(6), judge=simulated(), steps=12, btl_config={"model_variant": "btl"}, **QUICK)
    assert out.summary["position_effect"].item() is None
    assert out.summary.schema["position_effect"] == out.summary.schema["reliability"]


def test_a_run_before_its_first_call_has_no_judge_and_no_figures():
    row = ps.summarize_adaptive(ps.adaptive_rank_start(["a", "b", "c"], preset=OURS)).row(0, named=True)
    assert (row["preset"], row["reliability"], row["judge_id"], row["position_effect"]) == (OURS, None, None, None)


def test_status_report_and_watch_page_name_the_preset(tmp_path):
    from pairscale.adaptive.status import adaptive_status
    from pairscale.people.watch import look_at
    from pairscale.reporting.verbs import write_report

    run = tmp_path / "run.db"
    out = ps.rank(samples(8), judge=simulated(), run=run, steps=20, **QUICK)
    with ps.open_run(run) as store:
        assert adaptive_status(store)["preset"] == OURS
        assert look_at(store).state.endswith("preset pairscale")
    for source in (run, out):
        page = tmp_path / "report.html"
        write_report(source, page)
        assert "the settings of the preset pairscale" in page.read_text("utf-8")


# The verb


def test_rank_uses_our_preset_and_adaptive_rank_the_documents():
    assert inspect.signature(ps.rank).parameters["preset"].default == OURS
    asked = inspect.signature(ps.adaptive_rank).parameters["preset"]
    assert (asked.default, asked.kind) == (DOCUMENT, inspect.Parameter.KEYWORD_ONLY)
    for verb in (ps.simulate, ps.plan):
        assert inspect.signature(verb).parameters["preset"].default == OURS


def test_rank_is_adaptive_rank_with_its_settings():
    settings = {"seed": 4, "selector": "nearest", "concurrency": 2}
    mine = ps.rank(samples(7), judge=simulated(), steps=20, preset=DOCUMENT, **settings, **QUICK)
    theirs = ps.adaptive_rank(
        samples(7), judge=simulated(), n_steps=20, fit_fn="laplace", progress="none", **settings
    )  # fmt: skip
    drop = ["timestamp"]
    assert mine.state.step_log.drop(drop).equals(theirs.state.step_log.drop(drop))
    own = mine.items.drop("theta_true")  # what else the samples have
    assert own.equals(theirs.items.select(own.columns))


def test_reliability_is_where_the_run_stops():
    out = ps.rank(samples(8), judge=better, reliability=0.3, **QUICK)
    assert out.refits["eap_reliability_min"].unique().to_list() == [0.3]


def test_a_judge_that_is_made_already_takes_no_trait(message_snapshot):
    with pytest.raises(InputError) as refused:
        ps.rank(samples(4), judge=simulated(), trait="ideas", **QUICK)
    message_snapshot(refused)
