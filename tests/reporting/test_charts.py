"""Charts: what they show, the files they become, and what ids may not do to them."""

from __future__ import annotations

import json
import math
import re
import struct
import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import FileFormatError, InputError, MissingExtraError
from pairscale.reporting import vega
from pairscale.reporting.charts import FIGURES, plot
from pairscale.reporting.picture import intervals, room_around, score_picture
from pairscale.reporting.svg import round_ticks, svg

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


def dots_of(picture):
    return picture.marks[-1].rows


def figures_of(picture):
    return {
        name: (row["x"], row["x_low"], row["x_high"])
        for name, row in zip(picture.y.names, dots_of(picture), strict=True)
    }


# Scores and ranks


def test_scores_are_those_of_the_fit_best_on_top(fit):
    (picture,) = FIGURES["scores"](fit).pictures
    assert list(figures_of(picture)) == fit.theta["ID"].to_list()
    assert list(figures_of(picture).values()) == fit.theta.select("theta", "lower", "upper").rows()
    assert "95 % intervals" in FIGURES["scores"](fit).notes[0]


def test_scores_and_ranks_of_the_other_models(bayes):
    log = ps.summarize_items(bayes, sort_by="theta_mean")
    scores = figures_of(FIGURES["scores"](bayes).pictures[0])
    assert [(name, figures[2]) for name, figures in scores.items()] == log.select("ID", "theta_p97.5").rows()
    assert "diagnostics failed" in FIGURES["scores"](bayes).notes[-1]  # so few draws
    ranks = figures_of(FIGURES["ranks"](bayes).pictures[0])
    assert [figures[1] for figures in ranks.values()] == ps.summarize_items(bayes)["rank_p2.5"].to_list()
    elo = ps.fit_elo_model(results(numbered(6)), runs=10, seed=1)
    best = elo.elo.row(0, named=True)
    assert next(iter(figures_of(FIGURES["scores"](elo).pictures[0]).values()))[2] == best["elo"] + best["elo_sd"]


def test_ranks_of_a_fit_with_and_without_their_intervals(fit):
    table = results(numbered(8))
    rows = fit.theta.select(pl.col("rank", "rank_lower", "rank_upper").cast(float)).rows()
    for one in (fit, ps.fit_bt_model(table)):
        assert list(figures_of(FIGURES["ranks"](one).pictures[0]).values()) == rows


def test_parts_have_a_picture_each():
    table = pl.concat([results(["a", "b", "c"]), results(["x", "y", "z"])])
    fit = ps.fit_bt_model(table, unconnected="separate")
    figure = FIGURES["scores"](fit)
    assert [picture.heading for picture in figure.pictures] == ["Group 1", "Group 2"]
    with pytest.raises(InputError, match="have no ranks"):
        FIGURES["ranks"](fit)


@pytest.mark.parametrize(("n", "rows_each"), [(300, True), (301, False)])
def test_many_items_share_a_picture(n, rows_each):
    rows = [{"ID": f"<{n}>", "score": -n / 10, "lower": None, "upper": None} for n in range(n)]
    chart = svg(score_picture(rows))
    assert chart.count("<circle") == n
    assert chart.count('class="name" dir="auto"') == (n if rows_each else 0)
    assert "&lt;0&gt;" in chart


# Pictures


def test_judges_stand_by_their_infit_and_their_agreement(tmp_path):
    rng = np.random.default_rng(2)
    rows = results(numbered(12), per=40).with_columns(judge_id=pl.Series(rng.choice(list("abcd"), 252)))
    guessed = rows.filter(judge_id="a").with_columns(judge_id=pl.lit("e"), better_id="ID1")
    statistics = ps.fit_statistics(ps.fit(pl.concat([rows, guessed])))
    figure = FIGURES["judges"](statistics)
    expected, *marks = figure.pictures[0].marks
    assert expected.rows == [{"y": 1.0}]
    shown = {(row["x"], row["y"]) for one in marks for row in one.rows}
    assert shown == set(statistics.judges.select("agreement", "infit").iter_rows())
    misfits = statistics.judges.filter("misfit")
    assert [len(one.rows) for one in marks if one.name == "misfit"] == [misfits.height] * (misfits.height > 0)
    assert ps.fit_statistics(ps.fit(rows)).plot(tmp_path / "judges.pdf", width=200, title="") is not None
    assert (tmp_path / "judges.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(InputError, match="name no judge"):
        ps.fit(rows.drop("judge_id")).plot(kind="judges")


def test_an_end_without_limit_reaches_the_edge():
    rows = [
        {"ID": "<a>", "score": 1.0, "lower": 0.5, "upper": math.inf},
        {"ID": "b", "score": -1.0, "lower": -math.inf, "upper": -0.5},
        {"ID": "c", "score": 0.0, "lower": -0.2, "upper": None},
    ]
    chart = svg(intervals(rows, "x", "y"))
    ends = [tuple(map(float, two)) for two in re.findall(r'class="interval"[^>]* x1="([\d.]+)%" x2="([\d.]+)%"', chart)]
    points = [float(x) for x in re.findall(r'cx="([\d.]+)%"', chart)]
    assert ends[0][1] == points[0] == max(points)  # the axis ends with what is known
    assert ends[1][0] == points[1] == min(points)
    assert ends[2][1] == points[2]
    assert "&lt;a&gt;: 1.00 (0.50 to no limit)" in chart
    assert "inf" not in chart
    assert "nan" not in chart


@pytest.mark.parametrize(
    ("low", "high"),
    [(-3.1, 4.2), (-0.0004, 0.0003), (1e-12, 2e-12), (-1e9, 1e9), (5, 5), (0, 0), (1e6, 1e6 + 1e-3), (-0.05, 12),
     (0, 1), (-1e-320, 1e-320), (-7.999, 8.0)],
)  # fmt: skip
def test_ticks_are_few_round_and_within_the_axis(low, high):
    start, end = room_around(low, high)
    assert start <= low <= high <= end
    assert start < end
    ticks = round_ticks(start, end)
    assert 1 <= len(ticks) <= 6
    assert ticks == sorted(set(ticks))
    room = (end - start) * 1e-9
    assert all(start - room <= tick <= end + room for tick in ticks)
    assert "-0" not in {f"{tick:g}" for tick in ticks}


# Files


@pytest.mark.slow
@pytest.mark.parametrize("suffix", vega.CHART_SUFFIXES)
def test_every_kind_of_file(fit, tmp_path, suffix):
    charts = [(fit, "scores"), (fit, "ranks")]
    if suffix == ".html":  # seconds each
        charts = charts[:1]
    for at, (source, kind) in enumerate(charts):
        path = tmp_path / f"{at}{suffix.upper()}"
        chart = source.plot(path, kind=kind)
        assert path.stat().st_size > 1000
        starts = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<svg"}
        assert path.read_bytes().startswith(starts.get(suffix, b""))
        if suffix == ".json":
            assert json.loads(path.read_text("utf-8")) == chart.to_dict()
        if suffix == ".svg":
            root = ET.fromstring(path.read_text("utf-8"))
            shown = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
            assert shown >= set(fit.theta["ID"])
    assert len(list(tmp_path.iterdir())) == len(charts)


@pytest.mark.slow
def test_the_look_of_a_chart(fit, tmp_path):
    """300 dots per inch, of which a pixel is the 72nd part; without a title there are no notes either."""
    fit.plot(tmp_path / "a.png", title="", width=400, font_size=15)
    wide = struct.unpack(">I", (tmp_path / "a.png").read_bytes()[16:20])[0]
    assert wide > 400 * 300 / 72
    spec = fit.plot(title="", width=400, font_size=15).to_dict()
    assert "title" not in {name for name, value in spec.items() if value}
    assert spec["config"]["axis"]["labelFontSize"] == 15
    assert spec["width"] == 400


@pytest.mark.slow
def test_a_page_holds_all_it_needs_and_ids_are_text(tmp_path):
    fit = ps.fit_bt_model(results(HOSTILE), rank_intervals=True)
    for kind in ("scores", "ranks"):
        plot(fit, kind, tmp_path / "chart.html", title="<b>&")
        page = (tmp_path / "chart.html").read_text("utf-8")
        assert re.findall(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)\s*=\s*[\"']?https?:", page) == []
        assert not re.search(r"cdn|jsdelivr|unpkg", page, re.IGNORECASE)
        assert "default-src 'none'" in page
        assert page.count("</script>") == 3  # the chart, the libraries, and the call
        assert "<b>" not in page
        assert json.loads(re.search(r'id="spec">(.*?)</script>', page, re.DOTALL)[1])["title"]["text"] == ["<b>&"]
        plot(fit, kind, tmp_path / "chart.svg")
        root = ET.fromstring((tmp_path / "chart.svg").read_text("utf-8"))
        assert not [element for element in root.iter() if element.tag.endswith(("script", "image"))]


@pytest.mark.parametrize(
    ("name", "why"),
    [("a.gif", r"must be a file that ends in '.svg', '.png', '.pdf', '.html' or '.json'"), ("x/a.svg", "no folder")],
)
def test_files_that_cannot_be(fit, tmp_path, name, why):
    with pytest.raises((InputError, FileFormatError), match=why):
        fit.plot(tmp_path / name)


def test_without_the_extra(message_snapshot, fit, tmp_path, monkeypatch):
    monkeypatch.setattr("pairscale.reporting.vega.find_spec", lambda name: None)
    for draw in (fit.plot, lambda: fit.plot(tmp_path / "a.svg")):
        with pytest.raises(MissingExtraError) as refused:
            draw()
        message_snapshot(refused)
