"""Charts by altair in a report: those of the pictures, a strict policy, and nothing that was to be left out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter

import pytest
from tests.reporting.html_page import require_valid
from tests.reporting.runs import A_NAME, B_NAME, HOSTILE, ab_run, bias_study, ranking_run, samples, suite

import pairscale as ps
from pairscale.core.errors import MissingExtraError

KINDS = {"ranking": ranking_run, "bias": bias_study, "ab": ab_run}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for kind, make in KINDS.items():
        make(folder / f"{kind}.db")
    return {kind: folder / f"{kind}.db" for kind in KINDS}


def specs_of(source):
    return [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', source)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_has_its_chart_of_the_same_words(runs, tmp_path, kind):
    plain = ps.report(runs[kind], out=tmp_path / "plain.html").read_text("utf-8")
    source = ps.report(runs[kind], out=tmp_path / "lively.html", interactive=True).read_text("utf-8")
    page, specs = require_valid(source), specs_of(source)
    assert len(specs) == len(page.pictures()) == plain.count('role="img"')
    assert [spec["description"] for spec in specs] == [picture["aria-label"] for picture in page.pictures()]
    tips = [row["tip"] for spec in specs for rows in spec["datasets"].values() for row in rows if "tip" in row]
    spoken = [*page.texts["title"][1:], *"; ".join(page.attributes("title")).split("; ")]
    assert Counter(tips) - Counter(spoken) == Counter()
    assert not re.search(r'vega|class="chart"|\.live', plain)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', source)[1]
    assert "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert policy.partition("script-src ")[2].split() == [f"'sha256-{one}'" for one in hashes]
    assert source.count("<script") == source.count("</script") == len(specs) + 4  # texts, ours, altair's, between
    for hostile in HOSTILE[:3]:
        assert hostile not in source


@pytest.mark.slow
def test_a_lively_page_to_share_holds_no_text_and_no_name(runs, tmp_path):
    secret = {"ranking": [sample["ID"] for sample in samples()], "bias": [sample["ID"] for sample in samples()]}
    secret["ab"] = [A_NAME, B_NAME, *(task.task_id for task in suite().tasks)]
    for kind, run in runs.items():
        options = {"without_texts": True, "pseudonyms": True, "interactive": True}
        source = ps.report(run, out=tmp_path / "share.html", **options).read_text("utf-8")
        inlined = json.dumps(specs_of(source), ensure_ascii=False)
        for name in secret[kind]:
            assert name not in inlined
            assert json.dumps(name)[1:-1] not in inlined
        assert 'id="texts"' not in source
    assert "win rate of B" in inlined


def test_without_the_extra_it_is_refused_before_any_work(message_snapshot, tmp_path, monkeypatch):
    monkeypatch.setattr("pairscale.reporting.vega.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as refused:
        ps.report(tmp_path / "nowhere.db", interactive=True)
    message_snapshot(refused)
    fit = ps.fit_bt_model([{"winner": a, "loser": b} for a, b in ("ab", "bc", "ca")])
    assert fit.report(tmp_path / "plain.html").is_file()
