"""Charts: what they show, the files they become, and what ids may not do to them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.checks.published import OTHER_WORDINGS
from pairscale.core.errors import FileFormatError, InputError, MissingExtraError
from pairscale.models.likelihood import outcome_probabilities
from pairscale.reporting._chart_style import names
from pairscale.reporting.charts import (
    CHART_SUFFIXES,
    _places,
    rank_chart,
    save_chart,
    score_chart,
    study_chart,
    win_matrix,
)

HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", 'a "b" & c', "d\x00\ne", "f" * 500]


def results(ids, per=10, seed=1):
    """Comparisons in a ring, so that all are joined, and some at random; the earlier item is better."""
    rng = np.random.default_rng(seed)
    n = len(ids)
    pairs = [(i, (i + 1) % n) for i in range(n)] + [tuple(rng.choice(n, 2, replace=False)) for _ in range(n * per // 2)]
    winners = [i if rng.random() < 1 / (1 + np.exp((i - j) * 4 / n)) else j for i, j in pairs]
    rows = [(ids[i], ids[j], ids[w]) for (i, j), w in zip(pairs, winners, strict=True)]
    return pl.DataFrame(rows, schema=["ID1", "ID2", "better_id"], orient="row")


def numbered(n):
    return [f"t{at:04d}" for at in range(n)]


@pytest.fixture(scope="module")
def fit():
    return ps.fit_bt_model(results(numbered(8)), rank_intervals=True)


@pytest.fixture(scope="module")
def bayes():
    mcmc = {"chains": 2, "iter_warmup": 60, "iter_sampling": 60, "extend": 4}
    return ps.fit_bayes_btl_mcmc(results(numbered(6)), model_variant="btl", mcmc=mcmc, seed=1)


def data_of(spec, least=2):
    """The rows of a chart's largest table."""
    rows = max(spec["datasets"].values(), key=len)
    assert len(rows) >= least
    return rows


def subtitle(spec):
    return " ".join(spec["title"]["subtitle"])


# Scores


@pytest.mark.slow
def test_scores_are_those_of_the_fit_best_on_top(fit):
    spec = score_chart(fit).to_dict()
    rows = data_of(spec)
    assert [row["item"] for row in rows] == fit.theta["ID"].to_list()
    for field, column in (("value", "theta"), ("lower", "lower"), ("upper", "upper")):
        assert [row[field] for row in rows] == fit.theta[column].to_list()
    zero, bars, points = spec["layer"]
    assert zero["mark"]["type"] == bars["mark"]["type"] == "rule"
    assert (bars["encoding"]["x"]["field"], bars["encoding"]["x2"]["field"]) == ("lower", "upper")
    assert points["encoding"]["x"]["field"] == "value"
    assert bars["encoding"]["y"]["field"] == "item"
    assert bars["encoding"]["y"]["sort"] is None  # as the rows come
    assert "95% intervals" in subtitle(spec)
    assert spec["description"].startswith(f"Scores of 8 items with intervals, best on top: {rows[0]['item']} to ")
    assert spec["background"] == "#ffffff"


def test_scores_of_the_other_models(bayes):
    rows = {row["item"]: row for row in data_of(score_chart(bayes).to_dict())}
    log = ps.summarize_items(bayes, sort_by="theta_mean")
    assert list(rows) == log["ID"].to_list()
    assert [row["upper"] for row in rows.values()] == log["theta_p97.5"].to_list()
    elo = ps.fit_elo_model(results(numbered(6)), runs=10, seed=1)
    spec = score_chart(elo).to_dict()
    best, first = elo.elo.row(0, named=True), data_of(spec)[0]
    assert (first["value"], first["upper"]) == (best["elo"], best["elo"] + best["elo_sd"])
    assert "not how sure a rating is" in subtitle(spec)
    once = score_chart(ps.fit_elo_model(results(numbered(6)), runs=1, seed=1)).to_dict()
    assert "Bars" not in subtitle(once)
    assert all(row["lower"] == row["value"] for row in data_of(once))


def test_a_failed_sampler_is_said(bayes):
    assert not bayes.fit.diagnostics.diagnostics_pass  # so few draws
    assert "diagnostics failed" in subtitle(score_chart(bayes).to_dict())


def test_scores_without_intervals_and_with_a_reference():
    table = results(numbered(5))
    bare = score_chart(ps.fit_bt_model(table, se=False)).to_dict()
    assert "Bars" not in subtitle(bare)
    other = score_chart(ps.fit_bt_model(table, engine="firth", reference="t0003", level=0.9)).to_dict()
    assert "90% intervals of the difference to t0003" in subtitle(other)


def test_parts_have_a_panel_each_and_no_common_axis():
    table = pl.concat([results(["a", "b", "c"]), results(["x", "y", "z"])])
    fit = ps.fit_bt_model(table, unconnected="separate")
    spec = score_chart(fit).to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["Group 1", "Group 2"]
    assert "only with those of its own group" in subtitle(spec)
    cells = {(row["row"], row["column"]) for row in data_of(win_matrix(fit).to_dict())}
    assert ("a", "b") in cells
    assert not {("a", "x"), ("a", "a")} & cells
    with pytest.raises(InputError, match="have no ranks"):
        rank_chart(fit)
    assert "share no scale" in subtitle(score_chart(ps.fit_elo_model(table, seed=1)).to_dict())


def test_many_items_keep_the_height_and_lose_their_names():
    few, many = (score_chart(ps.fit_bt_model(results(numbered(n)), se=False)).to_dict() for n in (120, 121))
    assert few["height"] == {"step": 15}
    assert many["height"] == 900
    assert few["layer"][1]["encoding"]["y"]["field"] == "item"
    places = many["layer"][1]["encoding"]["y"]
    assert (places["field"], places["scale"]["reverse"]) == ("place", True)
    assert "Too many for names (121 items)" in subtitle(many)
    assert data_of(many)[120]["place"] == 121


# Ranks


def test_rank_intervals(fit, bayes):
    spec = rank_chart(fit).to_dict()
    rows = data_of(spec)
    for field, column in (("value", "rank"), ("lower", "rank_lower"), ("upper", "rank_upper")):
        assert [row[field] for row in rows] == fit.theta[column].to_list()
    assert spec["layer"][0]["encoding"]["x"]["axis"]["values"] == list(range(1, 9))
    log = ps.summarize_items(bayes)
    assert [row["lower"] for row in data_of(rank_chart(bayes).to_dict())] == log["rank_p2.5"].to_list()


def test_ranks_of_a_fit_without_their_intervals():
    table = results(numbered(5))
    expected = rank_chart(ps.fit_bt_model(table, level=0.9, rank_intervals=True)).to_dict()
    assert data_of(ps.fit_bt_model(table, level=0.9).plot(kind="ranks").to_dict()) == data_of(expected)
    with pytest.raises(InputError, match="se=False leaves nothing"):
        rank_chart(ps.fit_bt_model(table, se=False))
    with pytest.raises(InputError, match="not EloFit"):
        rank_chart(ps.fit_elo_model(table, seed=1))
    with pytest.raises(InputError, match="not str"):
        score_chart("a fit")


@pytest.mark.parametrize(
    ("n", "places"), [(1, [1]), (3, [1, 2, 3]), (20, [1, *range(2, 21, 2)]), (1000, [1, *range(100, 1001, 100)])]
)
def test_places_on_an_axis_begin_with_the_first(n, places):
    assert _places(n) == places


# Who beats whom


def test_shares_of_comparisons():
    table = pl.DataFrame({"ID1": list("aaab"), "ID2": list("bbbc"), "better_id": ["a", "a", "b", "b"]})
    table = pl.concat([table, pl.DataFrame({"ID1": ["a"], "ID2": ["c"], "better_id": [None]})])
    spec = win_matrix(table).to_dict()
    cells = {(row["row"], row["column"]): (row["share"], row["times"]) for row in data_of(spec)}
    assert cells == {("a", "b"): (0.6667, 3), ("b", "a"): (0.3333, 3), ("b", "c"): (1, 1), ("c", "b"): (0, 1)}
    assert "Grey: never compared" in subtitle(spec)
    encoding = spec["layer"][0]["encoding"]
    assert encoding["y"]["scale"]["domain"] == encoding["x"]["scale"]["domain"] == ["a", "b", "c"]
    assert (encoding["y"]["field"], encoding["x"]["field"], encoding["color"]["field"]) == ("row", "column", "share")


@pytest.mark.parametrize("ties", ["drop", "davidson"])
def test_fitted_probabilities_are_those_of_the_fit(ties):
    table = results(numbered(5)).with_columns(outcome=pl.lit("winner"))
    tied = table.head(2).with_columns(better_id=pl.lit(None, pl.String), outcome=pl.lit("tie"))
    fit = ps.fit_bt_model(pl.concat([table, tied]), engine="firth" if ties == "drop" else "map", ties=ties)
    theta = dict(fit.theta.select("ID", "theta").iter_rows())
    for row in data_of(win_matrix(fit).to_dict()):
        gap = np.array([theta[row["row"]] - theta[row["column"]]])
        won, _, _ = outcome_probabilities(gap, fit.ties.nu if fit.ties else 0.0)
        assert row["share"] == pytest.approx(won[0], abs=1e-4)


def test_fitted_probabilities_of_the_other_models(bayes):
    cells = {(row["row"], row["column"]): row["share"] for row in data_of(win_matrix(bayes).to_dict())}
    assert len(cells) == 30
    theta = bayes.fit.posterior.theta
    assert cells["t0000", "t0003"] == pytest.approx((1 / (1 + np.exp(theta[:, 3] - theta[:, 0]))).mean(), abs=1e-4)
    elo = ps.fit_elo_model(results(numbered(4)), seed=1)
    rating = dict(elo.elo.select("ID", "elo").iter_rows())
    for row in data_of(win_matrix(elo).to_dict()):
        gap = rating[row["row"]] - rating[row["column"]]
        assert row["share"] == pytest.approx(1 / (1 + 10 ** (-gap / 400)), abs=1e-4)


def test_results_are_ordered_by_a_fit_that_knows_all_items(message_snapshot, fit):
    table = results(numbered(8))
    assert win_matrix(table, fit).to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"] == fit.theta["ID"].to_list()
    with pytest.raises(InputError) as refused:
        win_matrix(results(numbered(9)), fit)
    message_snapshot(refused)


@pytest.mark.slow
def test_many_items_are_shown_in_groups():
    table = results(numbered(203))
    fit = ps.fit_bt_model(table, se=False)
    for chart in (win_matrix(table, fit), win_matrix(fit)):
        spec = chart.to_dict()
        labels = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
        assert (labels[0], labels[-1], len(labels)) == ("1–5", "201–203", 41)
        assert "203 items in groups of 5" in subtitle(spec)
    place = {name: at // 5 for at, name in enumerate(fit.theta["ID"])}
    between = sum(place[a] != place[b] for a, b in table.select("ID1", "ID2").iter_rows())
    assert sum(row["times"] for row in data_of(win_matrix(table, fit).to_dict())) == 2 * between


# Studies


@pytest.fixture(scope="module")
def study():
    pairs = ps.make_pairs(ps.synthetic_essays(6, seed=1))
    swayed = {
        name: lambda template, by=by: ps.SimulatedJudge("theta_true", bias=by) for name, by in (("a", 0), ("b", 3))
    }
    return ps.template_study(pairs, templates=["weigh"], judge=swayed, progress=False)


@pytest.mark.slow
def test_a_study_beside_the_published_one(study):
    published = ps.published_template_study()
    spec = study_chart(study, published).to_dict()
    own, other = spec["vconcat"]
    assert [block["title"]["text"] for block in (own, other)] == ["This study", "Published"]
    assert [panel["title"]["text"] for panel in own["concat"]] == ["weigh"]
    assert [panel["title"]["text"] for panel in other["concat"]] == published.ranking["template_id"].to_list()
    assert OTHER_WORDINGS in subtitle(spec)
    rows = [row for table in spec["datasets"].values() for row in table if "judge" in row]
    assert len(rows) == 2 + 75
    first = next(row for row in rows if row["judge"] == "b")
    known = study.table.row(by_predicate=pl.col("judge") == "b", named=True)
    assert (first["consistent"], first["pos1"]) == (known["prop_consistent"], known["prop_pos1"])
    assert first["pos1_upper"] == known["pos1_upper"]
    encoding = own["concat"][0]["layer"][-1]["encoding"]
    assert (encoding["x"]["field"], encoding["y"]["field"]) == ("pos1", "consistent")
    assert encoding["color"]["scale"]["domain"] == ["a", "b"]  # by judge
    assert encoding["x"]["scale"] == other["concat"][0]["layer"][-1]["encoding"]["x"]["scale"]
    assert other["concat"][0]["layer"][-1]["encoding"]["color"]["field"] == "family"


def test_a_study_alone_says_nothing_of_others(study):
    spec = study_chart(study).to_dict()
    assert OTHER_WORDINGS not in subtitle(spec)
    assert "concat" in spec


def test_figures_that_were_not_printed_cannot_be_drawn():
    with pytest.raises(InputError, match="nothing to draw"):
        study_chart(ps.published_default_template())


# Names and files


def test_names_stay_apart():
    assert names(["a\nb", "a  b", "c\x00", ""]) == ["a b (1)", "a b (2)", "c�", "�"]
    assert len(names(HOSTILE)[4]) == 200


@pytest.mark.slow
@pytest.mark.parametrize("suffix", CHART_SUFFIXES)
def test_every_kind_of_file(fit, study, tmp_path, suffix):
    charts = [score_chart(fit), rank_chart(fit), win_matrix(fit), study_chart(study)]
    if suffix == ".html":  # seconds each, and three of them below
        charts = charts[:1]
    for at, chart in enumerate(charts):
        path = save_chart(chart, tmp_path / f"{at}{suffix.upper()}")
        assert path.stat().st_size > 1000
        if suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        if suffix == ".json":
            assert json.loads(path.read_text("utf-8"))["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
        if suffix == ".svg":
            root = ET.fromstring(path.read_text("utf-8"))
            assert root.attrib["aria-label"] == chart.to_dict()["description"]
            shown = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
            assert shown >= ({"weigh"} if at == 3 else set(fit.theta["ID"]))
    assert len(list(tmp_path.iterdir())) == len(charts)


@pytest.mark.slow
def test_a_page_holds_all_it_needs_and_ids_are_text(tmp_path):
    table = results(HOSTILE)
    fit = ps.fit_bt_model(table, rank_intervals=True)
    for chart in (score_chart(fit, title="<b>&"), rank_chart(fit), win_matrix(table, fit)):
        page = save_chart(chart, tmp_path / "chart.html").read_text("utf-8")
        assert re.findall(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)\s*=\s*[\"']?https?:", page) == []
        assert not re.search(r"cdn|jsdelivr|unpkg", page, re.IGNORECASE)
        assert "default-src 'none'" in page
        assert page.count("</script>") == 3  # the chart, the libraries, and the call
        assert "<b>" not in page
        spec = json.loads(re.search(r'id="spec">(.*?)</script>', page, re.DOTALL)[1])
        assert {"d� e", HOSTILE[0]} <= {row.get("item", row.get("row")) for row in data_of(spec)}
        root = ET.fromstring(save_chart(chart, tmp_path / "chart.svg").read_text("utf-8"))
        assert not [element for element in root.iter() if element.tag.endswith(("script", "image"))]


def test_files_that_cannot_be(fit, tmp_path):
    chart = score_chart(fit)
    for name, why in (
        ("a.pdf", r"the chart must be a file that ends in '.svg', '.png', '.html' or '.json', not '.*a.pdf'"),
        ("x/a.svg", "there is no folder"),
        (".", "must"),
    ):
        with pytest.raises(InputError, match=why):
            save_chart(chart, tmp_path / name)
    (tmp_path / "b.svg").mkdir()
    with pytest.raises(FileFormatError, match="is a folder"):
        save_chart(chart, tmp_path / "b.svg")


def test_a_chart_that_fails_leaves_the_old_file(fit, tmp_path, monkeypatch):
    chart, path = score_chart(fit), tmp_path / "a.json"
    path.write_text("old")
    monkeypatch.setattr(type(chart), "to_dict", lambda *_a, **_k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_chart(chart, path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_without_the_extra(message_snapshot, fit, study, tmp_path, monkeypatch):
    chart = score_chart(fit)
    monkeypatch.setitem(__import__("sys").modules, "altair", None)
    monkeypatch.setattr("pairscale.reporting._chart_files.find_spec", lambda name: None)
    for draw in (
        lambda: score_chart(fit),
        lambda: rank_chart(fit),
        lambda: win_matrix(fit),
        lambda: study_chart(study),
        lambda: save_chart(chart, tmp_path / "a.svg"),
    ):
        with pytest.raises(MissingExtraError) as refused:
            draw()
        message_snapshot(refused)
