"""The page of a ranking: complete, self-contained, and deaf to what ids and texts would have it do."""

import math
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from tests.reporting.html_page import Page, require_valid, unpacked

import pairscale as ps
from pairscale.reporting.verbs import write_report

HOSTILE = (
    "<script>alert(1)</script>", "</details></td>", "$title", "${head}", "$$", 'say "hello"', "it's", "&amp;", "a&b",
    "</svg>", "</title>", "%s {0}", "]]>", "<!--", "{{ 7 * 7 }}", "{% raw %}", "一二三", "x" * 300, " leading",
    "=1+1", "\u202eback",
)  # fmt: skip


def _fit(names, **options):
    """Everybody beats those behind, except that the last beats the first."""
    rows = [{"winner": a, "loser": b} for at, a in enumerate(names) for b in names[at + 1 :]]
    if len(names) > 2:
        rows.append({"winner": names[-1], "loser": names[0]})
    return ps.fit_bt_model(rows, **options)


def _page(tmp_path, *args, **options):
    path = write_report(args[0], tmp_path / "report.html", *args[1:], **options)
    source = path.read_text("utf-8")
    return source, require_valid(source)


def test_the_page_holds_every_id_text_and_figure(tmp_path):
    samples = [{"ID": name, "text": f"Text of {name}.\n\nSecond paragraph."} for name in "abcde"]
    fit = _fit("abcde")
    source, page = _page(tmp_path, fit, samples, title="Which is best?", judge="somebody")
    assert page.texts["h1"] == ["Which is best?"]
    cells = page.texts["td"]
    for row in fit.theta.iter_rows(named=True):
        assert row["ID"] in cells
        assert f"{row['theta']:z.2f}".replace("-", "−") in cells
    assert "−0.00" not in cells  # the middle score is 0 but for rounding, on either side of it
    assert [text for text in cells if text.startswith("Text of")] == [
        f"Text of {n}. Second paragraph." for n in fit.theta["ID"]
    ]
    assert unpacked(source)["texts"][0] == f"Text of {fit.theta['ID'][0]}.\n\nSecond paragraph."
    lead = page.texts["p"][0]
    assert "5 texts were ranked by the judge “somebody” in 11 comparisons" in lead
    assert f"The reliability of the scale is {fit.reliability:.2f}: ".replace("-", "−") in lead
    assert len(page.pictures()) == 1
    assert page.count("circle") == 5
    assert source.startswith("<!doctype html>")


@pytest.mark.slow_except("<*", "$*")
@pytest.mark.parametrize("title", [*HOSTILE, "<img src=x onerror=alert(1)>"])
def test_a_hostile_title_or_judge_is_only_text(tmp_path, title):
    plain = Page(write_report(_fit("abc"), tmp_path / "a.html", judge="x").read_text("utf-8"))
    _, page = _page(tmp_path, _fit("abc"), title=title, judge=title)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert page.texts["h1"] == [title]
    assert page.texts["title"][0] == title
    assert f"“{title}”" in page.texts["p"][0]


def test_hostile_ids_and_texts_are_only_text(tmp_path):
    names = list(HOSTILE)
    samples = [{"ID": name, "text": f"{name} {' '.join(HOSTILE)}"} for name in names]
    source, page = _page(tmp_path, _fit(names), samples)
    tame = [f"n{number:02}" for number in range(len(names))]
    plain = Page(
        write_report(_fit(tame), tmp_path / "b.html", [{"ID": name, "text": "x"} for name in tame]).read_text("utf-8")
    )
    assert sorted(tag for tag, _ in page.tags) == sorted(tag for tag, _ in plain.tags)
    assert set(names) <= set(page.texts["td"])
    assert {row["text"] for row in samples} == set(unpacked(source)["texts"])
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert source.count("<script") == 2  # the texts, packed, and our own


def test_equal_scores_share_their_place(tmp_path):
    rows = [{"winner": w, "loser": x} for w, x in [("a", "c"), ("b", "c"), ("a", "b"), ("b", "a")]]
    _, page = _page(tmp_path, ps.fit_bt_model(rows))
    assert "a and b share first place, c comes last." in page.texts["p"][0]
    circle = [{"winner": w, "loser": x} for w, x in ["ab", "bc", "cd", "da"]]
    _, page = _page(tmp_path, ps.fit_bt_model(circle))
    assert page.texts["p"][0].endswith("4 texts share first place.")


def test_groups_that_never_met_have_a_chart_each_and_no_ranks(tmp_path):
    rows = [{"winner": w, "loser": x} for w, x in ["ab", "bc", "ca", "de"]]
    fit = ps.fit_bt_model(rows, unconnected="separate")
    _, page = _page(tmp_path, fit)
    assert len(page.pictures()) == 2
    assert page.texts["h3"][:2] == ["Group 1", "Group 2"]
    assert page.texts["button"][0] == "group"
    assert "2 groups without a comparison between them" in page.texts["p"][0]
    assert page.texts["h2"] == ["Scores", "Ranking", "Caveats", "Method"]
    assert page.texts["li"] == list(fit.notices)
    assert page.count("circle") == 5


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    with pytest.raises(ps.PairscaleError, match="cannot be written"):
        write_report(_fit("abc"), tmp_path / "missing" / "report.html")
    old = tmp_path / "report.html"
    old.write_text("old")
    with pytest.raises(ps.PairscaleError):
        write_report(_fit("abc"), old, pl.DataFrame({"ID": ["a", "a"], "text": ["x", "y"]}))
    assert old.read_text() == "old"
    assert sorted(Path(tmp_path).iterdir()) == [old]


def test_a_run_without_a_comparison_has_no_report(tmp_path):
    refuse = lambda A, B: {"is_valid": False, "Y": None, "invalid_reason": "no"}  # noqa: E731
    out = ps.adaptive_rank([{"ID": i, "text": i} for i in "abc"], judge=refuse, n_steps=2, progress="none")
    with pytest.raises(ps.PairscaleError, match="no comparison yet"):
        write_report(out, tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_told_apart_is_the_probability_that_one_is_better(tmp_path):
    """By the covariance of the scores: of neighbours in a chain of comparisons, bars overlap more than they should."""
    rng = np.random.default_rng(3)
    truth = dict(zip("abcdefgh", np.linspace(2, -2, 8), strict=True))
    rows = []
    for _ in range(400):
        one, two = rng.choice(list(truth), 2, replace=False).tolist()
        better = one if rng.random() < 1 / (1 + math.exp(truth[two] - truth[one])) else two
        rows.append({"ID1": one, "ID2": two, "better_id": better})
    fit = ps.fit(rows, covariance=True)
    theta = fit.theta["theta"].to_list()
    told, rivals = 0, []
    for i, j in combinations(range(8), 2):
        spread = math.sqrt(fit.covariance[i, i] + fit.covariance[j, j] - 2 * fit.covariance[i, j])
        is_told = NormalDist().cdf((theta[i] - theta[j]) / spread) >= 0.95
        told += is_told
        if i == 0 and not is_told:
            rivals.append(fit.theta["ID"][j])
    disjoint = sum(fit.theta["lower"][i] > fit.theta["upper"][j] for i, j in combinations(range(8), 2))
    assert disjoint < told < 28
    page = require_valid(fit.report(tmp_path / "r.html").read_text("utf-8"))
    words = next(text for text in page.texts["p"] if "are told apart" in text)
    assert words.startswith(f"{100 * told / 28:.0f} % of the 28 pairs of texts are told apart")
    for rival in rivals:
        assert rival in words.partition("cannot be told apart from")[2]
    source = (tmp_path / "r.html").read_text("utf-8")
    assert source.count('<circle fill="var(--good)"') == (1 + len(rivals) if rivals else 0)


def test_judges_of_whom_one_guesses_are_drawn_and_the_order_is_no_test(tmp_path):
    rng = np.random.default_rng(4)
    rows = []
    for judge in ("ann", "bob", "cleo"):
        for _ in range(80):
            one, two = rng.choice(12, 2, replace=False).tolist()
            better = rng.choice([one, two]) if judge == "cleo" else max(one, two)
            rows.append({"ID1": f"t{one:02}", "ID2": f"t{two:02}", "better_id": f"t{better:02}", "judge": judge})
    pl.DataFrame(rows).write_csv(tmp_path / "people.csv")
    page = ps.report(tmp_path / "people.csv", out=tmp_path / "r.html").read_text("utf-8")
    assert "decisions for the text with the higher score" in page
    assert "cleo: infit" in page
    assert "that is no test of the position" in page
    assert "leans to the" not in page
