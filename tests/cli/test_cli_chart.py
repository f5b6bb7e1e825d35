"""``--chart`` of ``pairscale fit``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def text(path):
    return Path(path).read_text("utf-8")


def test_fit_draws_ranks(cli, run):
    done = cli("fit", run, "--chart", "ranks.json", "--chart-kind", "ranks", "--json")
    assert done.code == 0
    assert {"rank_lower", "rank_upper"} <= set(done.json["items"][0])
    assert "Ranks, and how far they are open" in json.loads(text("ranks.json"))["description"]


def test_the_look_of_a_chart(cli, run):
    look = ("--width", "300", "--font-size", "14", "--no-title")
    assert cli("fit", run, "--chart", "plain.json", *look).code == 0
    spec = json.loads(text("plain.json"))
    assert (spec["width"], spec["config"]["axis"]["labelFontSize"], "title" in spec) == (300, 14, False)


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("a.gif", "error: --chart must be a file that ends in '.svg', '.png', '.pdf', '.html' or '.json', not 'a.gif'"),
        ("chart", "error: --chart must be a file that ends in '.svg', '.png', '.pdf', '.html' or '.json', not 'chart'"),
        ("no/a.svg", "error: --chart no/a.svg cannot be written: there is no folder no; make it first"),
    ],
)
def test_a_bad_file_is_refused_before_any_work(cli, folder, file, why):
    done = cli("fit", "missing.csv", "--chart", file)
    assert (done.code, done.out, done.lines) == (1, "", [why])


def test_a_missing_package_is_one_line(cli, run, monkeypatch):
    monkeypatch.setattr("pairscale.reporting.vega.find_spec", lambda name: None)
    done = cli("fit", run, "--chart", "a.svg")
    assert (done.code, done.out) == (1, "")
    assert done.lines == ['error: a chart needs an optional package: pip install "pairscale[plots]"']
    assert not Path("a.svg").exists()
