"""The reliability of a refit whose diagnostics failed is shown as provisional wherever it is shown."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.adaptive import refits
from pairscale.models.bayes.fit import fit_btl_laplace
from pairscale.people.watch import look_at
from pairscale.store.runfile import open_run

WORDS = "(provisional, as diagnostics fail)"


def unsettled(*args, **options):
    fit = fit_btl_laplace(*args, **options)
    return replace(fit, diagnostics=replace(fit.diagnostics, max_rhat=1.5))


@pytest.fixture
def rank(cli):
    ps.example_writing_samples.select("ID", "text").head(6).write_csv("texts.csv")
    how = ("--judge", "lexical", "--fit", "laplace", "--max-comparisons", 12)
    return lambda: cli("rank", "texts.csv", *how, "--run", "run.db")


def test_the_reliability_of_a_failed_refit_is_provisional(cli, rank, monkeypatch):
    monkeypatch.setitem(refits._FITS, "laplace", unsettled)
    done = rank()
    assert re.search(r"refit 2: 12 comparisons, reliability 0\.\d\d of 0\.90 \(provisional\)", done.err)
    assert re.search(rf"reliability 0\.\d\d .* {re.escape(WORDS)}\n", done.out)
    assert WORDS in str(ps.rank("texts.csv", judge="lexical", fit="laplace", max_comparisons=12, progress="none").state)
    assert f"{WORDS} (95 % interval 0." in cli("status", "run.db").out
    assert '"diagnostics_pass": false' in cli("status", "run.db", "--json").out
    cli("report", "run.db", "--out", "report.html")
    page = re.sub(r"<[^>]*>", " ", Path("report.html").read_text("utf-8"))
    assert page.count(WORDS) == 4  # headline, tile, how sure it is, method
    with open_run("run.db") as store:
        tiles = look_at(store).tiles
        (label,) = [label for _, label in tiles if label.startswith("reliability")]
        assert label.startswith(f"reliability, of 0.9 {WORDS}; 95 % interval 0.")
