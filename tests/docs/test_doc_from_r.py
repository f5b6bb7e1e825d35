"""The files that docs/from-r.md offers are the reference figures of R, unchanged."""

from __future__ import annotations

import json

import polars as pl
import pytest
from doc_pages import ROOT

FOLDER, GOLDEN = ROOT / "docs/examples/from-r", ROOT / "tests/golden"


def test_the_scores_of_pairwisellm() -> None:
    recorded = json.loads((GOLDEN / "fit_bt_model_example_writing_pairs_30flips.json").read_text())
    assert pl.read_csv(FOLDER / "results.csv").to_dicts() == recorded["input"]["results"]
    assert pl.read_csv(FOLDER / "scores.csv").to_dicts() == recorded["output"]["theta"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("session.csv", "Bramley2018_1b.csv"),
        ("session-sirt.csv", "published/Bramley2018_1b/sirt_btm.csv"),
        ("session-elochoice.csv", "published/Bramley2018_1b/elochoice.csv"),
    ],
)
def test_the_session_of_judges(name: str, source: str) -> None:
    assert (FOLDER / name).read_bytes() == (GOLDEN / "cj-sessions" / source).read_bytes()
