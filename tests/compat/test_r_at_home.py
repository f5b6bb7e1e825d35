"""What an R user takes for granted: engines, settings, columns, names of questions and templates."""

from __future__ import annotations

import json
import logging
from typing import Any

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError, TemplateError
from pairscale.core.tables import COMPARISON_COLUMNS, RESULTS
from pairscale.models.bayes.logs import ITEM_LOG, ROUND_LOG
from pairscale.testing import Behaviour

RESULTS_20 = ps.example_writing_results
PAIRS = ps.make_pairs(ps.example_writing_samples).head(3)
TEXTS = [{"ID": name, "text": "word " * n} for n, name in enumerate("abcdef", start=1)]


def longer(A: Any, B: Any) -> dict[str, Any]:
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


@pytest.fixture
def said(caplog: Any) -> Any:
    caplog.set_level(logging.INFO, "pairscale")
    return lambda: " | ".join(record.getMessage() for record in caplog.records)


# Models


def test_bradley_terry_2_is_maximum_likelihood_with_the_first_item_at_0() -> None:
    rows = [("b", "a", 1), ("a", "b", 1), ("b", "c", 1), ("c", "b", 1), ("c", "a", 1), ("a", "c", 1), ("b", "a", 1)]
    data = pl.DataFrame(rows, schema=["object1", "object2", "result"], orient="row")
    fit = ps.fit_bt_model(data, "BradleyTerry2", False)
    ours = ps.fit_bt_model(data, engine="mle", reference="a")
    assert (fit.engine, fit.reliability) == ("BradleyTerry2", None)
    assert fit.theta.equals(ours.theta)
    assert fit.theta.filter(ID="a").select("theta", "se").row(0) == (0.0, 0.0)
    assert ps.summarize_bt_fit(fit)["engine"].unique().to_list() == ["BradleyTerry2"]
    other = ps.fit_bt_model(data, "BradleyTerry2", refcat="c")
    assert other.theta.filter(ID="c")["theta"].item() == 0
    reduced = ps.fit_bt_model(data, "BradleyTerry2", br=True)
    assert reduced.theta.equals(ps.fit_bt_model(data, engine="firth", reference="a").theta)


def test_arguments_of_sirt(said: Any) -> None:
    data = ps.build_bt_data(RESULTS_20)
    narrow = ps.fit_bt_model(data, "sirt", eps=0.1)
    assert narrow.theta.equals(ps.fit_bt_model(data, **{"eps": 0.1, "fix.eta": 0, "ignore.ties": True}).theta)
    assert ps.fit_bt_model(data, fix_eta=None).position is not None
    ps.fit_bt_model(data, maxiter=300, conv=1e-6)
    assert "maxiter has no effect" in said()
    assert "conv has no effect" in said()
    for option in ("judge", "fix_theta", "fix.delta", "warmth"):
        with pytest.raises(TypeError, match=option.replace(".", "_")):
            ps.fit_bt_model(data, **{option: 1})
    with pytest.raises(InputError, match="fix_eta is 2"):
        ps.fit_bt_model(data, fix_eta=2)


def test_arguments_of_elochoice(message_snapshot) -> None:
    theirs = ps.fit_elo_model(RESULTS_20, 3, False, kval=50, startvalue=1000, seed=1)
    ours = ps.fit_elo_model(RESULTS_20, runs=3, k=50, start=1000, seed=1)
    assert theirs.elo.equals(ours.elo)
    with pytest.raises(InputError) as refused:
        ps.fit_elo_model(RESULTS_20, k=50, kval=50)
    message_snapshot(refused)


def test_cmdstan_is_mcmc(message_snapshot, said: Any) -> None:
    ids = ps.example_writing_samples["ID"].to_list()
    settings = {"chains": 2, "iter_warmup": 40, "iter_sampling": 40, "seed": None, "extend": 1}
    theirs = ps.fit_bayes_btl_mcmc(RESULTS_20, ids, "btl", {**settings, "core_fraction": 0.8}, None, "first", 3)
    assert "core_fraction has no effect" in said()
    ours = ps.fit_bayes_btl_mcmc(RESULTS_20, ids=ids, model_variant="btl", mcmc=settings, seed=3)
    assert theirs.item_summary.equals(ours.item_summary)
    log = theirs.round_log
    assert log.columns == [*ROUND_LOG, "mcmc_cmdstanr_version"]
    assert log["mcmc_cmdstanr_version"].equals(log["mcmc_engine_version"], check_names=False)
    with pytest.raises(InputError) as refused:
        ps.fit_bayes_btl_mcmc(RESULTS_20, cmdstan=settings, mcmc=settings)
    message_snapshot(refused)
    with pytest.raises(InputError, match="no field 'warp'"):
        ps.fit_bayes_btl_mcmc(RESULTS_20, cmdstan={"warp": 9})


# Adaptive runs and their logs


def test_a_ported_call_takes_one_step_and_fits_nothing() -> None:
    out = ps.adaptive_rank(TEXTS, judge=longer, fit_fn="laplace", progress="none")
    assert out.logs["step_log"].height == 1
    assert out.refits.height == 0


@pytest.mark.slow
def test_single_steps_make_no_closing_refit(tmp_path: Any) -> None:
    how = {"fit_fn": "laplace", "progress": "none"}
    together = ps.adaptive_rank_start(TEXTS, seed=1)
    ps.adaptive_rank_run_live(together, longer, 14, **how)
    single = ps.adaptive_rank_start(TEXTS, seed=1, session_dir=tmp_path)
    for _ in range(14):
        ps.adaptive_rank_run_live(single, longer, **how)
    assert ps.adaptive_step_log(single)["pair_id"].equals(ps.adaptive_step_log(together)["pair_id"])
    closing = ps.adaptive_round_log(single)["is_closing"]
    assert len(closing) >= 1
    assert not closing.any()
    assert ps.adaptive_round_log(together)["is_closing"].sum() == 1
    ps.adaptive_rank_run_live(single, longer, **how, closing_refit=True)
    assert ps.adaptive_round_log(single)["is_closing"].to_list()[-1]
    assert ps.audit(tmp_path / "run.db").passed


def test_logs_have_the_columns_of_r_behind_ours() -> None:
    out = ps.adaptive_rank(TEXTS, judge=longer, n_steps=20, fit_fn="laplace", progress="none")
    optional = ["rank_sd", "rank_p5", "rank_p95", "repeated_pairs", "adjacent_prev_prob", "adjacent_next_prob"]
    assert [*ITEM_LOG][-8:] == ["rank", *optional, "top_prob"]
    every = ps.summarize_items(out.state)
    assert every.columns == [*ITEM_LOG, "deg", "posA_prop"] == out.items.columns
    assert ps.summarize_items(out.state, include_optional=False).columns == [*ITEM_LOG][:-7]
    assert every["deg"].equals(every["degree"], check_names=False)
    assert every["posA_prop"].equals(every["pos_A_rate"], check_names=False)
    for table in (
        ps.adaptive_item_log(out.state),
        out.logs["item_log"][0],
        ps.adaptive_get_logs(out.state)["item_log"][0],
    ):
        assert table.columns[-2:] == ["deg", "posA_prop"]
    for table in (out.refits, ps.summarize_refits(out.state), ps.adaptive_round_log(out.state), out.logs["round_log"]):
        assert table.columns == [*ROUND_LOG, "mcmc_cmdstanr_version"]
    assert "mcmc_cmdstanr_version" not in ps.summarize_refits(out.state, include_optional=False).columns


# Questions by their names


def test_live_questions_are_named_as_in_r(server: Any, tmp_path: Any) -> None:
    twice = pl.concat([PAIRS, PAIRS.head(1)])
    done = ps.submit_llm_pairs(twice, "gpt-4.1", progress=False, run=tmp_path / "run.db")
    assert done.results["custom_id"].to_list() == [
        "LIVE_S01_vs_S02", "LIVE_S01_vs_S03", "LIVE_S01_vs_S04", "LIVE_S01_vs_S02#2",
    ]  # fmt: skip
    again = ps.submit_pairs(twice, "openai:gpt-4.1", progress=False, run=tmp_path / "run.db")
    assert again.asked == 0  # the same questions under the same condition, by whatever name
    own = ps.submit_openai_pairs_live(PAIRS.with_columns(pair_uid="ID2"), "gpt-4.1", progress=False)
    assert own.results["custom_id"].to_list() == ["S02", "S03", "S04"]
    server.behaviour = Behaviour(malformed_rate=1.0)
    failed = ps.submit_llm_pairs(PAIRS.head(1), "gpt-4.1", progress=False, cache=False, retries=0)
    assert failed.failed_pairs["custom_id"].to_list() == ["LIVE_S01_vs_S02"]


@pytest.mark.parametrize(
    ("backend", "model", "prefix"),
    [
        ("openai", "gpt-4.1", "EXP"),
        ("anthropic", "claude-sonnet-4-5", "ANTH"),
        ("gemini", "gemini-3-pro-preview", "GEM"),
    ],
)
def test_batches_have_rows_for_failed_requests(server: Any, backend: str, model: str, prefix: str) -> None:
    server.behaviour = Behaviour(quality=len, sharpness=0.02, malformed_rate=0.5, seed=4)
    pairs = ps.make_pairs(ps.example_writing_samples).head(12)
    done = ps.llm_submit_pairs_batch(pairs, backend, model, interval_seconds=0.01, include_raw=True, verbose=False)
    table = done.results
    assert table.height == 12
    assert set(table["custom_id"]) == {f"{prefix}_{one}_vs_{two}" for one, two in pairs.select("ID1", "ID2").rows()}
    failed = table.filter(pl.col("better_id").is_null())
    assert 0 < failed.height < 12
    assert failed["error_message"].null_count() == 0
    assert set(failed["model"]) == {model}
    assert f"{12 - failed.height} pairs answered" in repr(done)
    assert all(isinstance(json.loads(reply), dict) for reply in table["raw_response"].drop_nulls())
    more = {"anthropic": ["result_type"], "gemini": ["result_type", "thought_signature", "thoughts_token_count"]}
    at = [*RESULTS].index("reasoning_tokens") + 1
    paid = ["latency_s", "cost", "raw_response"]
    assert table.columns == [*[*RESULTS][:at], *more.get(backend, []), *paid, *COMPARISON_COLUMNS]
    assert ps.build_bt_data(table).height == 12 - failed.height


# Settings of the providers


def test_a_thinking_budget_of_gemini_is_ignored_and_said(server: Any, said: Any) -> None:
    row = ps.gemini_compare_pair_live("a", "One.", "b", "Two words.", "gemini-3-pro-preview", thinking_budget=512)
    assert row.height == 1
    assert "thinking_budget is ignored" in said()
    assert "512" not in json.dumps(server.journal[-1].body)
    requests = ps.build_gemini_batch_requests(PAIRS, "gemini-3-pro-preview", thinking_budget=512)
    assert "512" not in json.dumps(requests["request"].to_list())


def test_what_together_is_given_besides_is_sent(server: Any) -> None:
    ps.together_compare_pair_live("a", "One.", "b", "Two.", "deepseek-ai/DeepSeek-V3", repetition_penalty=1.1)
    assert server.journal[-1].body["repetition_penalty"] == 1.1
    with pytest.raises(InputError, match="no setting repetition_penalty"):
        ps.openai_compare_pair_live("a", "One.", "b", "Two.", "gpt-4.1", repetition_penalty=1.1)


def test_defaults_of_r_make_no_other_condition(server: Any) -> None:
    given = {"trait_name": None, "trait_description": None, "prompt_template": None, "progress": False}
    one = ps.submit_anthropic_pairs_live(PAIRS, "claude-sonnet-4-5", **given, reasoning="none",
                                         anthropic_version="2023-06-01", include_thoughts=None)  # fmt: skip
    assert one.condition_id == ps.make_judge("anthropic:claude-sonnet-4-5").condition.condition_id
    thinking = ps.submit_anthropic_pairs_live(PAIRS, "claude-sonnet-4-5", **given, include_thoughts=True)
    assert server.journal[-1].body["thinking"]["type"] == "enabled"
    assert thinking.condition_id != one.condition_id


def test_positions_of_the_families(message_snapshot, server: Any) -> None:
    texts = ("a", "One.", "b", "Two words.")
    tags = ("<BETTER_SAMPLE>", "</BETTER_SAMPLE>")
    assert ps.openai_compare_pair_live(*texts, "gpt-4.1", None, None, None, "responses", *tags).height == 1
    assert server.journal[-1].path.endswith("/responses")
    ps.ollama_compare_pair_live(*texts, "qwen3:8b", None, None, None, None, *tags, True, 4096)
    assert server.journal[-1].body["options"]["num_ctx"] == 4096
    assert server.journal[-1].body["think"] is True
    with pytest.raises(InputError) as refused:
        ps.together_compare_pair_live(*texts, "deepseek-ai/DeepSeek-V3", *[None] * 9)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.submit_ollama_pairs_live(PAIRS)
    message_snapshot(refused)


def test_the_judge_of_an_adaptive_run_can_be_called(server: Any) -> None:
    judge = ps.make_adaptive_judge_llm("openai", "gpt-4.1", text_col="essay", include_raw=True)
    long, short = {"item_id": "a", "essay": "word " * 500}, {"item_id": "b", "essay": "word"}
    first, second = judge(long, short, None), judge(short, long)
    assert (first["is_valid"], first["Y"], first["invalid_reason"]) == (True, 1, None)
    assert second["Y"] == 0
    assert first["raw_response"]["model"] == "gpt-4.1"
    state = ps.adaptive_rank_start([{"ID": name, "essay": "word " * n} for n, name in enumerate("abc", start=1)])
    ps.adaptive_rank_run_live(state, judge, 2, progress="none")
    assert ps.adaptive_step_log(state)["Y"].null_count() == 0
    both = ps.make_adaptive_judge_llm("openai", "gpt-4.1", judge_args={"both_orders": True})
    assert both({"ID": "a", "text": "word " * 500}, {"ID": "b", "text": "word"})["Y"] == 1
    with pytest.raises(InputError, match="no column 'essay'"):
        judge({"ID": "a", "text": "One."}, {"ID": "b", "text": "Two."})
    server.behaviour = Behaviour(malformed_rate=1.0)
    unread = ps.make_adaptive_judge_llm("openai", "gpt-4.1", judge_args={"cache": False})
    said = unread({"ID": "a", "text": "One."}, {"ID": "b", "text": "Two."})
    assert (said["is_valid"], said["Y"]) == (False, None)
    assert "BETTER_SAMPLE" in said["invalid_reason"]


# Texts and templates


def test_positions_of_columns_are_said(said: Any) -> None:
    table = {"name": ["a", "b"], "essay": ["One.", "Two."]}
    assert ps.read_samples_df(table, 0, 1)["ID"].to_list() == ["a", "b"]
    assert "id_col=0, text_col=1: positions of columns count from 0 here, and from 1 in R" in said()
    out = ps.adaptive_rank(table, "name", "essay", judge=longer, n_steps=0, progress="none")
    assert out.state.ids == ["a", "b"]
    assert said().count("positions of columns") == 1


OWN = "{TRAIT_NAME} {TRAIT_DESCRIPTION} {SAMPLE_1} {SAMPLE_2}: the text of R's template."


def test_templates_of_the_r_package_are_read_from_its_library(
    message_snapshot, monkeypatch: Any, tmp_path: Any
) -> None:
    folder = tmp_path / "library" / "pairwiseLLM" / "templates"
    folder.mkdir(parents=True)
    (folder / "default.txt").write_text(OWN, "utf-8")
    (folder / "test1.txt").write_text(f"{OWN} Again.", "utf-8")
    monkeypatch.setenv("PAIRSCALE_R_LIBRARY", str(tmp_path / "library"))
    assert ps.get_prompt_template("pairwiseLLM/default") == OWN
    judge = ps.make_judge("ollama:qwen3:8b", template="pairwiseLLM/test1")
    assert judge.condition.template_id == "pairwiseLLM/test1"
    with pytest.raises(TemplateError) as refused:
        ps.get_prompt_template("pairwiseLLM/test2")
    message_snapshot(refused)
    assert ps.set_prompt_template(file=folder / "default.txt") == OWN


def test_without_the_r_package_the_error_says_how(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.delenv("PAIRSCALE_R_LIBRARY", raising=False)
    how = r"not part of pairscale.*PAIRSCALE_R_LIBRARY.*find\.package"
    with pytest.raises(TemplateError, match=how):
        ps.get_prompt_template("pairwiseLLM/default")
    (tmp_path / "pairwiseLLM").mkdir()
    (tmp_path / "pairwiseLLM" / "default.txt").write_text(OWN, "utf-8")
    monkeypatch.chdir(tmp_path)
    judge = ps.make_judge("ollama:qwen3:8b", template="pairwiseLLM/default.txt")  # with its ending, a file of yours
    assert judge.condition.template_id == "default.txt"
