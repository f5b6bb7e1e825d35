"""The report of position bias: its figures against loops, and what it says of them."""

from html import escape
from itertools import combinations

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.reporting.html_page import require_valid, unpacked
from tests.reporting.runs import HOSTILE, SWAY, Judge, bias_study, samples

import pairscale as ps
from pairscale.checks.effect import leaning, sign_test
from pairscale.core.errors import InputError
from pairscale.reporting.verbs import kind_of, report_of_run, write_report

PAIRS = list(combinations(range(len(HOSTILE)), 2))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("bias") / "study.db"
    study = bias_study(path)
    return path, study


def swayed(template, judge):
    """The pairs that the position decides, and which position; by the definition of the judge."""
    sway, side = SWAY[template, judge]
    return [(x, y) for x, y in PAIRS if y - x <= sway], side


def test_the_run_knows_that_it_is_a_study(run):
    with ps.open_run(run[0]) as store:
        assert kind_of(store) == "bias"
        facts = report_of_run(store)
    same = [name for name in run[1].table.columns if name not in {"backend", "thinking"}]
    tables = [study.table.select(same).sort("template_id", "judge") for study in (facts.content["study"], run[1])]
    assert_frame_equal(*tables)


def test_pairs_that_the_position_decides_are_those_of_loops(run):
    with ps.open_run(run[0]) as store:
        facts = report_of_run(store)
    for position, side in (("first", 1), ("second", 2)):
        wanted = {pair for cell in SWAY if SWAY[cell][1] == side for pair in swayed(*cell)[0]}
        rows = facts.content["again"][position]
        assert {tuple(sorted(int(row[name].split()[0]) for name in "ab")) for row in rows} == wanted
    rows = {(row["template_id"], row["judge"]): row for row in facts.table.iter_rows(named=True)}
    for cell, row in rows.items():
        wanted, side = swayed(*cell)
        counts = (len(wanted), 0) if side == 1 else (0, len(wanted))
        assert (row["n_both_first"], row["n_both_second"]) == counts
        assert row["prop_consistent"] == pytest.approx(1 - len(wanted) / len(PAIRS))
    assert rows["plain", "ann"]["favours"] == "first"
    assert rows["plain", "bob"]["favours"] == "second"
    assert rows["weigh", "ann"]["favours"] == "neither"


def test_the_page_says_which_template_and_why(run, tmp_path):
    page = require_valid(ps.report(run[0], out=tmp_path / "r.html").read_text("utf-8"))
    share = 1 - len(swayed("weigh", "bob")[0]) / len(PAIRS) / 2
    assert (
        f"Most consistent is weigh: the same text won both times in {100 * share:.0f} % of the pairs."
        in page.texts["p"][0]
    )
    assert "3 of 4 combinations favour a position." in page.texts["p"][0]
    advice = next(text for text in page.texts["p"] if text.startswith("Choose weigh"))
    assert f"in {100 * share:.1f} % of the pairs" in advice
    assert any("1 judge still favours a position with it" in text for text in page.texts["p"])
    assert page.texts["td"].count("favours the second") == 2
    assert page.texts["td"].count("no sign of it") == 1
    first, second = len(swayed("plain", "ann")[0]), sum(len(swayed(name, "bob")[0]) for name in ("plain", "weigh"))
    told = f"{first:,} times the first position won both times, {second:,} times the second"
    assert any(told in text for text in page.texts["p"])
    assert page.texts["h2"][-1] == "Method"
    assert "Cost" in page.texts["h2"]
    assert "pairscale report study.db --again again.jsonl" in page.texts["pre"][0]


def study_of(**shares):
    """By template, how many of 100 pairs are consistent, and how many of the others go to the first position."""
    rows = []
    for template, (consistent, first) in shares.items():
        who = {"template_id": template, "judge": "me"}
        for n in range(100):
            to_first = n - consistent < first
            one, two = ("a", "a") if n < consistent else ("a", "b") if to_first else ("b", "a")
            rows.append({**who, "ID1": f"a{n}", "ID2": f"b{n}", "better_id": f"{one}{n}", "direction": "forward"})
            rows.append({**who, "ID1": f"b{n}", "ID2": f"a{n}", "better_id": f"{two}{n}", "direction": "reverse"})
    return ps.template_study(rows)


def test_what_consistency_does_not_tell_apart_the_position_does(tmp_path):
    study = study_of(plain=(82, 18), weigh=(80, 10), other=(50, 25))
    page = require_valid(study.report(tmp_path / "r.html").read_text("utf-8"))
    assert study.ranking["template_id"].to_list() == ["plain", "weigh", "other"]
    assert "Most consistent is plain" in page.texts["p"][0]
    assert "1 other template may be as good." in page.texts["p"][0]
    assert page.texts["p"][1].startswith("plain and weigh cannot be told apart")
    assert "Of these choose weigh (80.0 % of the pairs)" in page.texts["p"][1]
    assert not any("does not take the effect away" in text for text in page.texts["p"])


@pytest.mark.slow
def test_hostile_ids_texts_and_words_stay_text(run, tmp_path):
    source = ps.report(run[0], out=tmp_path / "r.html", title=HOSTILE[2]).read_text("utf-8")
    require_valid(source)
    assert source.count("<script") == 2
    assert "<img" not in source
    shown = unpacked(source)
    assert set(shown["texts"]) == {sample["text"] for sample in samples()}
    assert len(shown["answers"]) == 2 * len(PAIRS) * len(SWAY)
    assert shown["answers"][0][4] == f"It has more to say. {HOSTILE[0]}"


def test_to_share(run, tmp_path):
    source = ps.report(run[0], out=tmp_path / "s.html", without_texts=True, pseudonyms=True).read_text("utf-8")
    require_valid(source)
    assert 'id="texts"' not in source
    assert ">T1 and T" in source
    for sample in samples():
        assert escape(sample["ID"]) not in source
        assert escape(sample["text"]) not in source


def test_a_study_that_is_kept_in_no_file(tmp_path):
    study = bias_study()
    page = require_valid(study.report(tmp_path / "r.html").read_text("utf-8"))
    assert "Worth a second look" not in page.texts["h2"]
    assert page.count("select") == 0


def test_the_published_study_has_a_chart_a_template(tmp_path):
    study = ps.published_template_study()
    page = require_valid(write_report(study, tmp_path / "p.html").read_text("utf-8"))
    assert page.count("circle") == study.table.height
    assert len(page.pictures()) == 5
    assert len(page.widths[1]) == 76
    assert any("about 3.8 would seem" in text for text in page.texts["p"])
    page = require_valid(write_report(ps.published_default_template(), tmp_path / "d.html").read_text("utf-8"))
    assert page.count("circle") == 19
    assert not any("times the first position won" in text for text in page.texts["p"])  # no counts were published


def test_one_judge_has_its_verdict_as_the_headline(tmp_path):
    main = [{"ID1": f"a{n}", "ID2": f"b{n}", "better_id": f"a{n}"} for n in range(12)]
    back = [{"ID1": f"b{n}", "ID2": f"a{n}", "better_id": f"b{n}" if n < 9 else f"a{n}"} for n in range(12)]
    bias = ps.bias(main, back)
    page = require_valid(bias.report(tmp_path / "r.html", judge="<i>me</i>").read_text("utf-8"))
    assert page.texts["p"][0].strip() == bias.verdict[0].upper() + bias.verdict[1:] + "."
    assert "favours the first" in page.texts["td"]
    assert len([text for text in page.texts["li"] if text.startswith("a")]) == 9
    assert "Which template" not in page.texts["h2"]


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("second", range(8))
def test_a_leaning_is_what_the_sign_test_says(first, second):
    p = sign_test(first, first + second)
    found = leaning(first, second, 0.95)
    if p is None or p >= 0.05:
        hopeless = first + second > 0 and sign_test(first + second, first + second) >= 0.05
        assert found == ("few" if hopeless else "none")
    else:
        assert found == ("first" if first > second else "second")


def turned(pairs):
    return pairs.select(ID1="ID2", text1="text2", ID2="ID1", text2="text1")


def test_any_run_of_both_orders_can_be_read_as_a_study(tmp_path):
    pairs = ps.make_pairs(pl.DataFrame(samples()))
    run = tmp_path / "run.db"
    ps.submit_pairs(pairs, Judge("cem", 2), run=run, progress=False)
    with pytest.raises(InputError, match="reverse the pairs"):
        ps.report(run, kind="bias")
    ps.submit_pairs(turned(pairs), Judge("cem", 2), run=run, progress=False)
    ps.submit_pairs(pairs, Judge("dot", 2), run=run, progress=False)
    with ps.open_run(run) as store:
        assert kind_of(store) == "ranking"
        facts = report_of_run(store, "bias")
    assert facts.notices[0] == "as it was asked with dot is left out: no pair has a winner in both orders"
    assert facts.content["verdict"].startswith("position bias: the first position is favoured")
    assert len(facts.content["again"]["first"]) == sum(y - x <= 2 for x, y in PAIRS)


def test_judges_of_one_name_are_told_apart(tmp_path):
    run, pairs = tmp_path / "run.db", ps.make_pairs(pl.DataFrame(samples()))
    for sway in (1, 3):
        for table in (pairs, turned(pairs)):
            ps.submit_pairs(table, Judge("eve", sway), run=run, progress=False)
    with ps.open_run(run) as store:
        names = report_of_run(store, "bias").table["judge"].to_list()
        ids = store.conditions()["condition_id"].to_list()
    assert names == [f"eve ({name[:8]})" for name in ids]
