"""Studies of templates: known judges, resumed runs, judgements from elsewhere, and the published figures."""

from __future__ import annotations

import joblib
import polars as pl
import pytest
from scipy.stats import binomtest
from tests.batching import pairs_of, simulator

import pairscale as ps
from pairscale.checks.published import published_default_template, published_template_study
from pairscale.checks.templates import STUDY, template_study
from pairscale.core.errors import InputError
from pairscale.testing import ProviderSimulator

BIAS = {"concise": 0.0, "weigh": 4.0}
PAIRS = ps.make_pairs(ps.synthetic_essays(9, seed=1))


ROW = {"ID1": "a", "ID2": "b", "better_id": "a", "template_id": "t"}
BACK = {**ROW, "ID1": "b", "ID2": "a"}
SHY = PAIRS["ID1"][0]


def swayed(template: str) -> ps.SimulatedJudge:
    return ps.SimulatedJudge("theta_true", bias=BIAS[template], seed=3)


def firm(template: str) -> ps.SimulatedJudge:
    return ps.SimulatedJudge("theta_true", seed=len(template))


@pytest.fixture(scope="module")
def study():
    return template_study(PAIRS, templates=list(BIAS), judge={"one": swayed, "two": firm}, progress=False)


def test_the_template_that_sways_ranks_last(study):
    assert dict(study.table.schema) == STUDY
    assert study.table.select("template_id", "judge").rows() == [
        ("concise", "one"), ("weigh", "one"), ("concise", "two"), ("weigh", "two"),
    ]  # fmt: skip
    assert study.ranking.columns == [
        "rank", "template_id", "n_judges", "mean_consistent", "worst_pos1", "n_significant", "n_significant_paired",
    ]  # fmt: skip
    assert study.ranking.select("rank", "template_id", "n_judges").rows() == [(1, "concise", 2), (2, "weigh", 2)]
    biased = study.table.row(1, named=True)
    assert biased["effect_lower"] > 0
    assert biased["p_paired"] < 1e-4
    assert biased["prop_pos1"] > 0.8
    assert str(study).startswith("2 templates, 2 judges, most consistent 'concise' (")


def test_the_figures_are_those_of_the_single_checks(study):
    judge = swayed("weigh")
    back = ps.sample_reverse_pairs(PAIRS, 1, seed=1)
    answers = [ps.submit_pairs(pairs, judge, progress=False).results for pairs in (PAIRS, back)]
    cell = study.table.row(1, named=True)
    ours = ps.bias(*answers).summary.row(0, named=True)
    theirs = ps.check_positional_bias(ps.compute_reverse_consistency(*answers), seed=1).summary.row(0, named=True)
    for row in (ours, theirs):
        shared = row.keys() & cell.keys()
        assert {name: cell[name] for name in shared} == {name: row[name] for name in shared}
    assert {"p_sample1_overall", "prop_consistent", "p_paired", "effect"} <= ours.keys() | theirs.keys()
    lower, upper = binomtest(theirs["total_pos1_wins"], theirs["total_comparisons"]).proportion_ci(method="wilson")
    assert (cell["pos1_lower"], cell["pos1_upper"]) == pytest.approx((lower, upper))


def test_judgements_made_elsewhere_give_the_same(study):
    parts = []
    for template in BIAS:
        judge = swayed(template)
        for pairs in (PAIRS, ps.sample_reverse_pairs(PAIRS, 1, seed=1)):
            results = ps.submit_pairs(pairs, judge, progress=False).results.select("ID1", "ID2", "better_id")
            labels = {"template_id": template, "backend": "offline", "model": "simulated-1", "thinking": None}
            parts.append(results.with_columns(**{k: pl.lit(v) for k, v in labels.items()}))
    expected = study.table.filter(pl.col("judge") == "one").drop("judge")
    for data in (pl.concat(parts), pl.concat(parts).to_dicts()):
        table = template_study(data).table
        assert table.drop("judge").equals(expected)


@pytest.mark.parametrize(
    ("judge", "settings", "thinking"),
    [
        # The settings of the published study, and its words for them.
        ("anthropic:claude-sonnet-4-5", {"reasoning": "none", "temperature": 0}, "no_thinking"),
        ("anthropic:claude-sonnet-4-5", {"reasoning": "enabled", "include_thoughts": True}, "with_thinking"),
        ("anthropic:claude-sonnet-4-5", {"thinking_budget": 1024}, "with_thinking"),
        ("gemini:gemini-3-pro-preview", {"thinking_level": "low", "include_thoughts": True}, "with_thinking"),
        ("openai:gpt-5.1", {"temperature": 0}, "no_thinking"),
        ("openai:gpt-5.1", {"reasoning": "low", "include_thoughts": True}, "with_thinking"),
        ("together:deepseek-ai/DeepSeek-R1", {}, "with_thinking"),
        # Others.
        ("anthropic:claude-sonnet-4-5", {"reasoning": "none", "include_thoughts": True}, "with_thinking"),
        ("gemini:gemini-2.5-flash", {"thinking_budget": 0}, "no_thinking"),
        ("gemini:gemini-2.5-flash", {}, "with_thinking"),
        ("openai:gpt-4o", {"include_thoughts": True}, "no_thinking"),
        ("ollama:qwen3:8b", {}, "no_thinking"),
        ("ollama:qwen3:8b", {"think": True}, "with_thinking"),
        ("ollama:unheard-of", {}, None),
    ],
)
def test_thinking_in_the_words_of_the_published_study(judge, settings, thinking):
    with ProviderSimulator() as server:
        known = {"base_url": server.url + ("/v1" if judge.startswith(("openai", "together")) else "")}
        if not judge.startswith("ollama"):
            known["api_key"] = "simulated-key-123"
        table = template_study(
            PAIRS.head(1),
            templates=["default"],
            judge=lambda template: ps.make_judge(judge, template=template, judge_args={**known, **settings}),
            progress=False,
        ).table
    assert table.select("model", "thinking").rows() == [(judge.partition(":")[2], thinking)]


def test_one_run_file_resumes_the_study(tmp_path, study):
    asked = []

    def counting(template: str) -> ps.FunctionJudge:
        def judge(A, B):
            asked.append(template)
            return {"is_valid": A["ID"] != SHY, "Y": int(len(A["text"]) > len(B["text"]))}

        return ps.FunctionJudge(judge, name=f"mine/{template}", template_id=template)

    first, again = (
        template_study(PAIRS, templates=["concise"], judge=counting, run=tmp_path / "s.db", progress=False)
        for _ in range(2)
    )
    declined = first.table["n_left_out"][0]
    assert declined == PAIRS.filter((pl.col("ID1") == SHY) | (pl.col("ID2") == SHY)).height
    assert len(asked) == 2 * PAIRS.height + declined
    assert first.table.equals(again.table)
    assert first.table.select("template_id", "backend", "judge").row(0) == ("concise", "function", "mine/concise")


def test_pairs_that_are_there_in_both_orders_are_asked_once_in_each():
    asked = []

    def judge(A, B):
        asked.append((A["ID"], B["ID"]))
        return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}

    both = pl.concat([PAIRS, ps.sample_reverse_pairs(PAIRS, 1, seed=1).select(PAIRS.columns)])
    study = template_study(both, templates=["concise"], judge={"mine": judge}, progress=False)
    assert len(set(asked)) == len(asked) == both.height
    assert study.table["n_pairs"].to_list() == [PAIRS.height]


def test_a_judge_function_is_given_each_template():
    def terse(A, B, prompt_template=""):
        return {"is_valid": True, "Y": 1 if len(prompt_template) < few else int(len(A["text"]) > len(B["text"]))}

    sizes = [len(ps.get_prompt_template(name)) for name in ("concise", "protocol")]
    few = sum(sizes) // 2
    study = template_study(PAIRS, templates=["concise", "protocol"], judge={"mine": terse}, progress=False)
    assert study.table.select("judge", "prop_pos1").rows() == [("mine", 1.0), ("mine", 0.5)]


def test_the_published_design_runs_through_batches(tmp_path, monkeypatch):
    """Models with and without thinking, by the settings of the published study, and the same call asks nothing."""
    thinking = {
        "openai:gpt-4.1,temperature=0": "no_thinking",
        "openai:gpt-5.1,reasoning=low,include_thoughts=true": "with_thinking",
        "anthropic:claude-sonnet-4-5,reasoning=none,temperature=0": "no_thinking",
        "anthropic:claude-sonnet-4-5,reasoning=enabled,thinking_budget=1024,temperature=1": "with_thinking",
    }
    with simulator() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        studies = [
            template_study(
                pairs_of(4), templates=["test1", "test2"], judge=list(thinking), run=tmp_path / "s.db", batch=True,
                interval=0.01,
            )
            for _ in range(2)
        ]  # fmt: skip
        batches = ps.batch.status(tmp_path / "s.db", offline=True)
    assert studies[0].table.equals(studies[1].table)
    assert batches.height == 2 * len(thinking)
    assert batches["pairs"].to_list() == [12] * batches.height
    table = studies[0].table
    assert dict(table.select("judge", "thinking").iter_rows()) == thinking
    assert table["n_pairs"].to_list() == [6] * 8
    assert table["prop_consistent"].to_list() == [1.0] * 8


def test_a_judge_that_ignores_templates_is_said(caplog):
    same = ps.SimulatedJudge("theta_true")
    study = template_study(PAIRS, templates=["concise", "weigh"], judge=lambda _: same, progress=False)
    assert study.notices == ("simulated answers without regard to the template; templates are equal",)
    assert study.ranking["rank"].to_list() == [1, 1]


def test_a_study_with_gaps_says_so_and_names_what_was_left_out(caplog):
    both = [ROW, BACK]
    holed = [*both, {**ROW, "ID2": "c", "better_id": None}]
    cells = {("t", "m"): both, ("u", "m"): both, ("u", "n"): holed}
    study = template_study(
        [{**row, "template_id": template, "model": model} for (template, model), rows in cells.items() for row in rows]
    )
    assert study.notices == (
        "u n: main_results: left out 1 of 2 rows, which name no winner of their pair",
        "not every judge used every template, so the ranking does not compare like with like",
    )
    assert [record.getMessage() for record in caplog.records] == list(study.notices)
    assert study.table["n_left_out"].to_list() == [0, 0, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: template_study([{"ID1": "a"}]), "judgements: no column 'template_id'"),
        (lambda: template_study([ROW]), "t: no pair has a winner in both directions"),
        (lambda: template_study([ROW], level=2), "level must be a number above 0 and below 1, not 2"),
        (lambda: template_study([ROW], templates=["x"]), "templates, run and batch belong to a study that asks judges"),
        (lambda: template_study(PAIRS, judge=swayed, templates=["a"], batch=True), "batch=True needs a run file"),
        (lambda: template_study(PAIRS, judge=3, templates=["concise"]), "judge: a study makes a judge"),
        (lambda: template_study(PAIRS, judge=ps.LexicalJudge(), templates=["concise"]), "judge: a study makes a judge"),
        (
            lambda: template_study(PAIRS, judge="lexical,api_key=1", templates=["concise"]),
            "judge api_key: a key",
        ),
        (lambda: template_study(PAIRS, judge="lexicl", templates=["concise"]), "no judge is called 'lexicl'"),
        (
            lambda: template_study(PAIRS, judge=swayed, trait="organization", templates=["concise"]),
            "trait, judge_args and price",
        ),
        (lambda: template_study(PAIRS, judge=swayed), "say which templates to study"),
        (lambda: template_study(PAIRS, judge=swayed, templates="concise"), "say which templates to study"),
        (lambda: template_study(PAIRS.head(0), judge=swayed, templates=["weigh"]), "there are no pairs to judge"),
        (
            lambda: template_study(pl.DataFrame(schema=dict.fromkeys(ROW, pl.String))),
            "there are no judgements to study",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# The published figures.


def test_the_published_study_is_complete():
    study = published_template_study()
    assert dict(study.table.schema) == STUDY
    assert study.table.select(pl.struct("backend", "model", "thinking").n_unique()).item() == 15
    assert study.table.group_by("template_id").len().sort("template_id").rows() == [
        (f"test{n}", 15) for n in range(1, 6)
    ]
    counts = study.table.group_by("backend").len().sort("backend").rows()
    assert counts == [("anthropic", 30), ("gemini", 5), ("openai", 20), ("together", 20)]
    row = study.table.row(by_predicate=(pl.col("model") == "gpt-4o") & (pl.col("template_id") == "test1"))
    assert row[:7] == ("test1", "openai", "gpt-4o", "no_thinking", 0.837, 0.418, 0.002)
    assert study.ranking["template_id"].to_list() == ["test2", "test3", "test4", "test1", "test5"]


def test_reconstructed_counts_reproduce_every_printed_figure():
    for row in published_template_study().table.iter_rows(named=True):
        n, first, second = row["n_pairs"], row["n_both_first"], row["n_both_second"]
        same = n - first - second
        assert f"{same / n:.3f}" == f"{row['prop_consistent']:.3f}"
        assert f"{(same + 2 * first) / (2 * n):.3f}" == f"{row['prop_pos1']:.3f}"
        assert f"{binomtest(same + 2 * first, 2 * n).pvalue:.3f}" == f"{row['p_sample1_overall']:.3f}"
        assert row["p_paired"] == pytest.approx(binomtest(first, first + second).pvalue)
        for column, share in (("consistent", binomtest(same, n)), ("pos1", binomtest(same + 2 * first, 2 * n))):
            interval = share.proportion_ci(method="wilson")
            assert (row[f"{column}_lower"], row[f"{column}_upper"]) == pytest.approx((interval.low, interval.high))
    assert published_template_study().table["n_pairs"].value_counts(sort=True).rows() == [(190, 72), (189, 2), (163, 1)]


def test_the_paired_test_finds_twice_as_many_swayed_judges_as_the_printed_one():
    table = published_template_study().table
    assert (table["p_sample1_overall"] < 0.05).sum() == 25
    assert (table["p_paired"] < 0.05).sum() == 53
    assert table.filter((pl.col("p_sample1_overall") < 0.05) & (pl.col("p_paired") >= 0.05)).height == 0


def test_the_published_default_template():
    study = published_default_template()
    assert study.table.height == 19
    assert study.table["model"].n_unique() == 12
    assert study.table["prop_pos1"].null_count() == 19
    assert study.ranking.select("n_significant", "n_significant_paired").row(0) == (0, None)
    # The printed p are those of 45 comparisons, not of the 90 that the text speaks of.
    possible = {n: {f"{binomtest(k, n).pvalue:.3f}" for k in range(n + 1)} for n in (45, 90)}
    printed = {f"{p:.3f}" for p in study.table["p_sample1_overall"]}
    assert printed <= possible[45]
    assert not printed - {"1.000"} & possible[90]


def test_cells_may_be_measured_by_several_workers(study):
    with joblib.parallel_config(backend="threading"):
        again = template_study(
            PAIRS, templates=list(BIAS), judge={"one": swayed, "two": firm}, progress=False, n_jobs=2
        )
    assert again.table.equals(study.table)
    assert again.notices == study.notices


def test_a_cell_that_cannot_be_measured_is_left_out_and_named(caplog):
    good = [{**row, "judge": "one", "template_id": "concise"} for row in (ROW, BACK)]
    bad = [{**ROW, "judge": "one", "template_id": "weigh", "better_id": None}]
    found = template_study(good + bad)
    assert found.table["template_id"].to_list() == ["concise"]
    assert "1 of 2 cells failed" in caplog.text
    assert "weigh one: no pair has a winner in both directions" in caplog.text
    with pytest.raises(InputError, match="nothing to measure"):
        template_study(bad)
