"""``--chart`` of ``pairscale fit`` and ``pairscale bias-study``."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest


@pytest.fixture
def judgements(folder):
    rows = [
        {
            "template_id": "mine",
            "judge": "j",
            "direction": way,
            "ID1": a,
            "ID2": b,
            "better_id": a if at < 4 else f"a{at}",
        }
        for at in range(9)
        for way, a, b in (("forward", f"a{at}", f"b{at}"), ("reverse", f"b{at}", f"a{at}"))
    ]
    pl.DataFrame(rows).write_csv("judgements.csv")
    return "judgements.csv"


def text(path):
    return Path(path).read_text("utf-8")


@pytest.mark.slow
def test_fit_draws_scores(cli, run):
    plain = cli("fit", run)
    drawn = cli("fit", run, "--chart", "scores.svg")
    assert (drawn.code, drawn.out) == (0, plain.out)
    assert drawn.lines == [*plain.lines, "wrote the chart to scores.svg"]
    assert all(name in text("scores.svg") for name in ("ann", "bob", "cem", "dot"))


def test_fit_draws_ranks_and_wins(cli, run):
    done = cli("fit", run, "--chart", "ranks.json", "--chart-kind", "ranks", "--json")
    assert done.code == 0
    assert {"rank_lower", "rank_upper"} <= set(done.json["items"][0])
    assert "Ranks, and how far they are open" in json.loads(text("ranks.json"))["description"]
    assert cli("fit", run, "--chart", "wins.json", "--chart-kind", "wins").code == 0
    (cells,) = json.loads(text("wins.json"))["datasets"].values()
    assert len(cells) == 12
    assert [cell["share"] for cell in cells if (cell["y"], cell["x"]) == ("dot", "ann")] == [1.0]


def test_the_look_of_a_chart(cli, run):
    look = ("--width", "300", "--font-size", "14", "--no-title")
    assert cli("fit", run, "--chart", "plain.json", *look).code == 0
    spec = json.loads(text("plain.json"))
    assert (spec["width"], spec["config"]["axis"]["labelFontSize"], "title" in spec) == (300, 14, False)


@pytest.mark.slow_except("elo")
@pytest.mark.parametrize("model", ["elo", "bayes"])
def test_fit_draws_other_models(cli, run, model):
    done = cli("fit", run, "--model", model, "--chart", "a.json", "--json")
    assert done.code == 0, done.err
    rows = max(json.loads(text("a.json"))["datasets"].values(), key=len)
    assert [row["y"] for row in rows] == ["dot", "cem", "bob", "ann"]


@pytest.mark.parametrize("options", [("--model", "elo"), ("--separate",)])
def test_ranks_that_do_not_exist_are_refused_at_once(cli, folder, options):
    done = cli("fit", "missing.csv", "--chart", "a.svg", "--chart-kind", "ranks", *options)
    assert done.code == 1
    assert len(done.lines) == 1
    assert "rank intervals" in done.err


@pytest.mark.parametrize(
    "command", [("fit", "missing.csv"), ("bias-study", "missing.csv"), ("bias-study", "--published")]
)
@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("a.gif", "error: --chart must be a file that ends in '.svg', '.png', '.pdf', '.html' or '.json', not 'a.gif'"),
        ("chart", "error: --chart must be a file that ends in '.svg', '.png', '.pdf', '.html' or '.json', not 'chart'"),
        ("no/a.svg", "error: --chart no/a.svg cannot be written: there is no folder no; make it first"),
    ],
)
def test_a_bad_file_is_refused_before_any_work(cli, folder, command, file, why):
    done = cli(*command, "--chart", file)
    assert (done.code, done.out, done.lines) == (1, "", [why])


def test_a_missing_package_is_one_line(cli, run, monkeypatch):
    monkeypatch.setattr("pairscale.reporting.vega.find_spec", lambda name: None)
    done = cli("fit", run, "--chart", "a.svg")
    assert (done.code, done.out) == (1, "")
    assert done.lines == ['error: a chart needs an optional package: pip install "pairscale[plots]"']
    assert not Path("a.svg").exists()


@pytest.mark.slow
def test_bias_study_draws_its_own_beside_the_published(cli, judgements):
    done = cli("bias-study", judgements, "--chart", "study.svg", "--json")
    assert done.code == 0, done.err
    assert done.json["ranking"][0]["template_id"] == "mine"
    assert done.lines[-1] == "wrote the chart to study.svg"
    picture = text("study.svg")
    for shown in ("mine", "test5 (published)", "whose wordings are not ours"):
        assert shown in picture


@pytest.mark.slow
def test_bias_study_draws_the_published_once(cli, folder):
    assert cli("bias-study", "--published", "--chart", "study.html").code == 0
    assert text("study.html").count("whose wordings are not ours") == 1
