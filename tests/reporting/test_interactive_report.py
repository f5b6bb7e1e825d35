"""Charts by altair in a report: the same rows as the pictures, a strict policy, and nothing that was to be left out."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reporting.html_page import require_valid
from tests.reporting.runs import A_NAME, B_NAME, HOSTILE, ab_run, bias_study, ranking_run, samples, suite

import pairscale as ps
from pairscale.core.errors import InputError, MissingExtraError
from pairscale.reporting._chart_style import names
from pairscale.reporting._interactive import specification
from pairscale.reporting.page import facts_of, write_report
from pairscale.reporting.picture import Intervals, Lines, Shares, score_picture

KINDS = {"ranking": ranking_run, "bias": bias_study, "ab": ab_run}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for kind, make in KINDS.items():
        make(folder / f"{kind}.db")
    return {kind: folder / f"{kind}.db" for kind in KINDS}


def data_of(spec):
    """All rows of a chart."""
    return [row for rows in spec["datasets"].values() for row in rows]


def specs_of(source):
    return [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', source)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_has_its_chart_of_the_same_words(runs, tmp_path, kind):
    plain = write_report(runs[kind], tmp_path / "plain.html").read_text("utf-8")
    source = write_report(runs[kind], tmp_path / "lively.html", interactive=True).read_text("utf-8")
    page, specs = require_valid(source), specs_of(source)
    assert len(specs) == len(page.pictures()) == plain.count('role="img"')
    assert [spec["description"] for spec in specs] == [picture["aria-label"] for picture in page.pictures()]
    said = [row["said"] for spec in specs for row in data_of(spec) if "said" in row]
    titles = Counter([*page.texts["title"][1:], *page.attributes("title")])  # the first is that of the page
    assert Counter(said) == titles
    assert not re.search(r'vega|class="chart"|\.live', plain)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_only_our_scripts_may_run_and_none_may_make_another(runs, tmp_path, kind):
    source = write_report(runs[kind], tmp_path / "r.html", interactive=True).read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', source)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert policy.partition("script-src ")[2].split() == [f"'sha256-{one}'" for one in hashes]
    assert len(scripts) == 3
    assert not re.search(r"<[^>]*\b(src|href)=\"(?!#)", re.sub(r"<script>.*?</script>", "", source, flags=re.DOTALL))


def test_the_rows_are_those_of_the_ranking(runs):
    with ps.open_run(runs["ranking"]) as store:
        items = facts_of(store).items
    spec = specification(score_picture(list(items.iter_rows(named=True))))
    rows = [row for row in data_of(spec) if "name" in row]
    assert [row["name"] for row in rows] == names(items["ID"].to_list())
    for column in ("score", "lower", "upper"):
        assert [row[column] for row in rows] == pytest.approx(items[column].to_list(), rel=1e-5)
    best = items.row(0, named=True)
    assert rows[0]["said"].endswith(f", rank 1 ({best['rank_lower']} to {best['rank_upper']})")


@pytest.mark.slow
def test_whatever_names_hold_it_is_data(runs, tmp_path):
    for kind, run in runs.items():
        source = write_report(run, tmp_path / f"{kind}.html", interactive=True).read_text("utf-8")
        n_charts = len(specs_of(source))
        assert source.count("<script") == n_charts + 4  # and the texts, ours, altair's, and the one between them
        assert source.count("</script") == n_charts + 4
        for hostile in HOSTILE[:3]:
            assert hostile not in source
    source = (tmp_path / "ranking.html").read_text("utf-8")
    assert {sample["ID"] for sample in samples()} <= {row.get("name") for row in data_of(specs_of(source)[0])}


@pytest.mark.slow
def test_a_lively_page_to_share_holds_no_text_and_no_name(runs, tmp_path):
    secret = {"ranking": [sample["ID"] for sample in samples()], "bias": [sample["ID"] for sample in samples()]}
    secret["ab"] = [A_NAME, B_NAME, *(task.task_id for task in suite().tasks)]
    for kind, run in runs.items():
        options = {"texts": False, "pseudonyms": True, "interactive": True}
        source = write_report(run, tmp_path / "share.html", **options).read_text("utf-8")
        inlined = json.dumps(specs_of(source), ensure_ascii=False)
        assert inlined.count('"said"') > 3
        for name in secret[kind]:
            assert name not in inlined
            assert json.dumps(name)[1:-1] not in inlined
        assert "Text 1." not in source
        assert "It has more to say" not in inlined
        assert 'id="texts"' not in source
    assert f"win rate of {B_NAME}" not in inlined
    assert "win rate of B" in inlined


@pytest.mark.slow
def test_the_same_result_gives_the_same_page(tmp_path):
    fit = ps.fit_bt_model([{"winner": a, "loser": b} for a, b in ("ab", "bc", "ca")])
    pages = [fit.report(tmp_path / name, interactive=True).read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_it_says_how_to_get_it_again(runs, tmp_path):
    for lively, line in ((True, "pairscale report ab.db --interactive<"), (False, "pairscale report ab.db<")):
        assert line in write_report(runs["ab"], tmp_path / "r.html", interactive=lively).read_text("utf-8")


def test_without_the_extra_it_is_refused_before_any_work(message_snapshot, tmp_path, monkeypatch):
    monkeypatch.setattr("pairscale.reporting._chart_files.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as refused:
        write_report(tmp_path / "nowhere.db", interactive=True)
    message_snapshot(refused)
    fit = ps.fit_bt_model([{"winner": a, "loser": b} for a, b in ("ab", "bc", "ca")])
    assert fit.report(tmp_path / "plain.html").is_file()


@pytest.mark.parametrize("options", [{"kind": "ranking"}, {"condition_id": "0123"}])
def test_what_chooses_from_a_run_file_is_refused_with_a_result(message_snapshot, tmp_path, options):
    fit = ps.fit_bt_model([{"winner": a, "loser": b} for a, b in ("ab", "bc", "ca")])
    with pytest.raises(InputError) as refused:
        write_report(fit, tmp_path / "r.html", **options)
    message_snapshot(refused)
    assert not (tmp_path / "r.html").exists()


def test_a_comparison_of_variants_has_no_condition_to_choose(message_snapshot, runs, tmp_path):
    with pytest.raises(InputError) as refused:
        write_report(runs["ab"], tmp_path / "r.html", condition_id="0123")
    message_snapshot(refused)


# Every kind of picture

ENDS = st.one_of(st.none(), st.just(math.inf), st.floats(0, 50))


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(-50, 50), ENDS, ENDS), min_size=1, max_size=8), st.booleans())
def test_what_has_no_limit_ends_with_the_axis(figures, many):
    rows = [
        {"ID": f"n{at}", "score": score, "lower": None if below is None else score - below}
        | {"upper": None if above is None else score + above}
        for at, (score, below, above) in enumerate(figures)
    ]
    picture = Intervals(rows, "label", "axis", many=many)
    low, high = picture.domain()
    drawn = [row for row in data_of(specification(picture)) if "name" in row]
    json.dumps(drawn, allow_nan=False)
    room = 1e-5 * max(1, abs(low), abs(high))
    for row, given_row in zip(drawn, rows, strict=True):
        assert low - room <= row["lower"] <= row["score"] + room
        assert row["score"] - room <= row["upper"] <= high + room
        assert row["score"] == pytest.approx(given_row["score"], rel=1e-5)
        if given_row["upper"] == math.inf:
            assert row["upper"] == pytest.approx(high, rel=1e-5)
            assert "no limit" in row["said"]


def test_shares_in_figures():
    words = {"b": "B won", "tie": "ties", "a": "A won"}
    spec = specification(Shares([("x", {"b": 3, "tie": 0, "a": 1}), ("y", {"b": 0, "tie": 0, "a": 0})], words, "label"))
    rows = data_of(spec)
    assert [(row["name"], row["kind"], row["n"], row["share"]) for row in rows] == [
        ("x", "b", 3, 0.75),
        ("x", "a", 1, 0.25),
    ]
    assert [row["said"] for row in rows] == ["B won: 3 of 4 (75 %)", "A won: 1 of 4 (25 %)"]
    (bars, _) = spec["layer"]
    assert bars["encoding"]["y"]["scale"]["domain"] == ["x", "y"]  # also one of which nothing came
    colour = bars["encoding"]["color"]["scale"]
    assert dict(zip(colour["domain"], colour["range"], strict=True))["tie"] == "var(--of-tie)"


def test_lines_with_gaps_in_figures():
    spec = specification(Lines([10, 1200], {"a": [None, 0.5], "b": [-0.25, 0.75]}, "label", 0.9))
    rows = data_of(spec)
    assert [(row["x"], row["line"], row["value"]) for row in rows if "line" in row] == [
        (1200, "a", 0.5), (10, "b", -0.25), (1200, "b", 0.75),
    ]  # fmt: skip
    assert [row["said"] for row in rows if "said" in row] == [
        "10 comparisons: b −0.25",
        "1,200 comparisons: a 0.50, b 0.75",
    ]
    assert [row["text"] for row in rows if "text" in row] == ["target 0.9"]


def test_colours_are_those_of_the_style_sheet():
    from importlib.resources import files

    sheet = (files("pairscale.reporting") / "assets" / "report.css").read_text("utf-8")
    rows = [{"ID": f"n{at}", "score": float(at), "lower": None, "upper": None} for at in range(80)]
    kinds = dict.fromkeys(("b", "tie", "flip", "a", "abstention", "error", "first", "same", "second"), "x")
    pictures = [score_picture(rows), score_picture(rows[:3]), Shares([("x", dict.fromkeys(kinds, 1))], kinds, "l")]
    pictures.append(Lines([1, 2], {"a": [0, 1], "b": [1, 0]}, "label", 0.5))
    used = {name for one in pictures for name in re.findall(r"var\((--[\w-]+)\)", json.dumps(specification(one)))}
    assert {"--ink", "--mark", "--other", "--of-flip", "--page"} <= used
    assert all(f"{name}:" in sheet for name in used)
