"""The report of a run: its figures against loops, and pages that stay deaf to what texts would have them do."""

import io
import json
import math
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reporting.html_page import require_valid, unpacked

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.people import LabelStore, read_cases
from pairscale.reporting.ranking import _attention, items_so_far
from pairscale.reporting.verbs import report_of_run
from pairscale.store.runfile import RunFile

HOSTILE = (
    "<script>alert(1)</script>", "</script><b>", "{{ 7 * 7 }}", "{% raw %}", "</td>", 'say "hello"', "a&b", "]]>",
    "<!--", "=1+1", "\u202eback", "一二三",
)  # fmt: skip


@pytest.fixture(scope="module")
def adaptive(tmp_path_factory):
    run = tmp_path_factory.mktemp("adaptive") / "run.db"
    ps.adaptive_rank(ps.example_writing_samples, judge="lexical", run=run, seed=1, n_steps=80, progress="none")
    return run


@pytest.fixture
def hostile(tmp_path):
    """Everybody beats those behind, each pair in both orders, except that the last beats the first."""
    samples = [{"ID": f"{at}{text}", "text": text * 3} for at, text in enumerate(HOSTILE)]
    place = {sample["ID"]: at for at, sample in enumerate(samples)}

    def judge(A, B, **_more):
        first, second = place[A["ID"]], place[B["ID"]]
        ends = {first, second} == {0, len(HOSTILE) - 1}
        return {"is_valid": True, "Y": int((first > second) if ends else (first < second)), "invalid_reason": None}

    pairs = ps.make_pairs(pl.DataFrame(samples))
    ps.submit_pairs(pairs, judge, run=tmp_path / "run.db", progress=False)
    return tmp_path / "run.db"


def test_nothing_is_loaded_and_only_our_script_may_run(hostile):
    source = ps.report(hostile).read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', source)[1]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"(src|href)=\"(?!#)", source)


@pytest.mark.slow
def test_the_table_is_the_last_refit(adaptive):
    with ps.open_run(adaptive) as store:
        table = report_of_run(store).table
        last = store.read_log("item_log")[-1]["columns"]
    scores = dict(zip(last["ID"], last["theta_mean"], strict=True))
    assert dict(table.select("ID", "theta").iter_rows()) == scores
    assert table["score"].is_sorted(descending=True)
    assert table["wins"].sum() * 2 == table["comparisons"].sum()


@pytest.mark.slow
def test_the_lines_say_their_figures(adaptive, tmp_path):
    page = require_valid(ps.report(adaptive, out=tmp_path / "r.html").read_text("utf-8"))
    with ps.open_run(adaptive) as store:
        refits = store.read_log("round_log")
    assert f"reliability {refits[-1]['reliability_EAP']:.2f}" in " ".join(page.texts["title"])
    assert f"{refits[-1]['total_pairs_done']} comparisons" in page.pictures()[1]["aria-description"]


@pytest.mark.slow
def test_one_look_reads_one_refit(adaptive, monkeypatch):
    """The live page looks every few seconds; it must not read all that was ever known of every text."""
    read = []
    real = RunFile.read_log

    def watched(self, name, **options):
        rows = real(self, name, **options)
        read.append((name, len(rows)))
        return rows

    with ps.open_run(adaptive) as store:
        assert store.log_length("item_log") > 1
        monkeypatch.setattr(RunFile, "read_log", watched)
        items_so_far(store)
    assert read == [("item_log", 1)]


def test_the_judge_in_figures(hostile):
    with ps.open_run(hostile) as store:
        facts, results = report_of_run(store).content, store.results()
    assert facts["first"] == (results["better_id"] == results["ID1"]).mean()
    assert facts["consistent"] is None
    assert facts["pairs"] == len(HOSTILE) * (len(HOSTILE) - 1) / 2


def test_repeated_answers_are_held_against_each_other(tmp_path):
    """a against b three times, two of them the same: of the three ways to choose two, one agrees."""
    answers = iter([1, 1, 0, 1, 1])

    def judge(A, B, **_more):
        return {"is_valid": True, "Y": next(answers), "invalid_reason": None}

    rows = [("a", "b"), ("a", "b"), ("a", "b"), ("b", "c"), ("c", "a")]
    pairs = pl.DataFrame([{"ID1": x, "text1": x, "ID2": y, "text2": y} for x, y in rows])
    ps.submit_pairs(pairs, judge, run=tmp_path / "run.db", progress=False, concurrency=1)
    with ps.open_run(tmp_path / "run.db") as store:
        health = report_of_run(store).content
    assert (health["repeated"], health["consistent"]) == (1, pytest.approx(1 / 3))


def test_a_page_to_share_holds_no_text_and_no_name(hostile, tmp_path):
    path = ps.report(hostile, out=tmp_path / "share.html", without_texts=True, pseudonyms=True)
    source = path.read_text("utf-8")
    from html import escape

    for at, text in enumerate(HOSTILE):
        assert escape(f"{at}{text}") not in source
    assert 'id="texts"' not in source
    assert {f">T{number}<" for number in range(1, len(HOSTILE) + 1)} <= set(re.findall(r">T\d+<", source))


def test_surprising_pairs_become_cases(hostile, tmp_path):
    with ps.open_run(hostile) as store:
        n = report_of_run(store).write_again(tmp_path / "again.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == n > 0
    ends = {HOSTILE[0] * 3, HOSTILE[-1] * 3}
    assert {rows[0]["response_1"], rows[0]["response_2"]} == ends  # the last that beat the first
    assert set(rows[0]) == {"case_id", "task_id", "criterion", "task_input", "response_1", "response_2"}


GAMES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")).filter(lambda game: game[0] != game[1]),
    min_size=1,
    max_size=40,
)


@given(GAMES)
@settings(max_examples=40)
def test_misfits_are_those_of_loops(games):
    """Infit by its definition; flagged are those more than two standard deviations above the mean of all."""
    scores = {name: 1.3 * at for at, name in enumerate("abcdef")}
    items = pl.DataFrame({"ID": list(scores), "score": list(scores.values()), "rank_lower": 1, "rank_upper": 6})
    rows = pl.DataFrame(games, schema=["ID1", "ID2"], orient="row").with_columns(better_id="ID1", judge_id=pl.lit("j"))
    found = _attention(items, rows)
    p = {game: 1 / (1 + math.exp(scores[game[1]] - scores[game[0]])) for game in games}
    figures = {}
    for name in {name for game in games for name in game}:
        own = [p[game] for game in games if name in game]
        infit = sum((1 - x) ** 2 for x in own) / sum(x * (1 - x) for x in own)
        figures[name] = (infit, np.mean([(1 - x) / x for x in own]))
    table = np.array(list(figures.values()))
    limits = table.mean(axis=0) + 2 * table.std(axis=0, ddof=1)
    clear = np.abs(table - limits) > 1e-9
    flagged = {
        name
        for name, two in figures.items()
        if len(figures) > 2 and any(x > y for x, y in zip(two, limits, strict=True))
    }
    if clear.all():
        assert {row["ID"] for row in found["misfits"]} == flagged
    for row in found["misfits"]:
        assert row["infit"] == pytest.approx(figures[row["ID"]][0])
    least = sorted(p[game] for game in games if p[game] < 0.1)[:10]
    assert [row["p"] for row in found["surprises"]] == pytest.approx(least)


def test_repeats_of_different_judges_are_no_repeats(tmp_path):
    pairs = ps.make_pairs([{"ID": name, "text": name} for name in "abc"])
    for y in (1, 0):
        judge = ps.make_judge(
            lambda A, B, y=y: {"is_valid": True, "Y": y, "invalid_reason": None}, judge_args={"name": f"j{y}"}
        )
        ps.submit_pairs(pairs, judge, run=tmp_path / "run.db", progress=False)
    with ps.open_run(tmp_path / "run.db") as store:
        assert report_of_run(store).content["consistent"] is None


class Dear:
    """Prefers by name, at half a dollar."""

    condition = ps.Condition("dear", model="dear-1")

    async def compare(self, pair):
        return ps.Verdict.win(1 if pair.first["ID"] < pair.second["ID"] else 2, cost=0.5)


@pytest.fixture
def two_judges(adaptive, tmp_path):
    """An adaptive run, and another judge's answers in the same file."""
    run = tmp_path / "two.db"
    run.write_bytes(adaptive.read_bytes())
    texts = ps.example_writing_samples.rename({"ID": "id"})

    done = ps.submit_pairs(ps.make_pairs(texts.head(4).rename({"id": "ID"})), Dear(), run=run, progress=False)
    return run, done.condition_id


def test_of_several_judges_all_answers_make_the_scores(adaptive, two_judges):
    run, dear = two_judges
    with ps.open_run(adaptive) as store:
        alone = report_of_run(store)
    with ps.open_run(run) as store:
        rest = store.get_meta("adaptive_condition")
        together, first, second = (report_of_run(store, condition=which) for which in (None, rest, dear))
    counts = [one.content["comparisons"] for one in (alone, together, first, second)]
    assert counts == [counts[0], counts[0] + 6, counts[0], 6]
    assert (together.content["model"] == "bayes", first.content["model"]) == (False, "bayes")
    assert together.table["comparisons"].sum() == 2 * counts[1]
    assert first.table.equals(alone.table)
    assert second.table["comparisons"].sum() == 12


def test_the_cost_is_that_of_the_judge_who_is_reported(two_judges):
    run, dear = two_judges
    with ps.open_run(run) as store:
        costs = [report_of_run(store, condition=which).spending["cost"].sum() for which in (None, dear)]
        other = report_of_run(store, condition=store.get_meta("adaptive_condition")).spending
    assert costs == [3, 3]
    assert "dear-1" not in other["model"].to_list()
    page = ps.report(run, out=run.with_suffix(".html"), condition=dear).read_text("utf-8")
    assert "$3.0000 in all, $500.00 per thousand results." in page


@pytest.mark.parametrize("kind", ["ranking", "bias"])
def test_a_run_that_goes_on_is_read_as_of_one_moment(tmp_path, monkeypatch, kind):
    def judged(n):
        rows = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("c", "a"), ("a", "c")][:n]
        pairs = pl.DataFrame([{"ID1": x, "text1": x, "ID2": y, "text2": y} for x, y in rows])
        ps.submit_pairs(pairs, Dear(), run=tmp_path / "run.db", progress=False)

    judged(4)
    plain = RunFile.conditions

    def conditions(self):
        monkeypatch.setattr(RunFile, "conditions", plain)
        found = plain(self)
        judged(6)  # another two answers between two looks at the file
        return found

    with ps.open_run(tmp_path / "run.db") as store:
        monkeypatch.setattr(RunFile, "conditions", conditions)
        facts = report_of_run(store, kind)
    assert len(facts.packed["answers"]) == 4
    assert facts.spending["cost"].sum() == 2
    with ps.open_run(tmp_path / "run.db") as store:
        assert len(report_of_run(store, kind).packed["answers"]) == 6


@pytest.mark.validate
def test_two_thousand_texts_fit_into_five_megabytes(tmp_path):
    essays = ps.synthetic_essays(2000, seed=2).select("ID", "text")
    after = essays.select(ID2=pl.col("ID").shift(-1), text2=pl.col("text").shift(-1))
    chain = essays.rename({"ID": "ID1", "text": "text1"}).hstack(after).drop_nulls()
    ends = pl.DataFrame(
        {"ID1": [essays["ID"][-1]], "text1": essays["text"][-1], "ID2": essays["ID"][0], "text2": essays["text"][0]}
    )

    def judge(A, B):
        return ps.Verdict.win(
            1 if len(A["text"]) > len(B["text"]) else 2, content="It says more, and says it in order."
        )

    run = tmp_path / "run.db"
    ps.submit_pairs(pl.concat([chain, ends]), ps.FunctionJudge(judge, name="longer"), run=run, progress=False)
    path = ps.report(run)
    source = path.read_text("utf-8")
    require_valid(source)
    shown = unpacked(source)
    assert sorted(shown["texts"]) == sorted(essays["text"])
    assert len(shown["answers"]) == 2000
    assert path.stat().st_size < 5_000_000
    assert ps.report(run, out=tmp_path / "lively.html", interactive=True).stat().st_size < 5_000_000


def test_labels_of_people_have_a_section(tmp_path):
    run, hostile = tmp_path / "run.db", "<b>ann</b>"
    ps.submit_pairs(ps.make_pairs(ps.synthetic_essays(4, seed=1)), "lexical", run=run, progress=False)
    cases = read_cases(run, criterion="clearer")
    with LabelStore(run, cases, labellers=[hostile, "bob"]) as store:
        for at, person in enumerate(store.labellers()):
            for case in range(6):
                asked = store.next(person)
                if at and case == 5:
                    store.answer(person, asked.question_id, None, skipped="no idea")
                else:  # always the first text of the case, but one tie
                    first = "tie" if at and case == 4 else "2" if asked.swapped else "1"
                    store.answer(person, asked.question_id, first)
    table = ps.agreement(run, unit="case_id", rater="labeller", label="preferred").table
    alpha = table.filter(statistic="krippendorff_alpha")["estimate"].item()
    source = ps.report(run).read_text("utf-8")
    require_valid(source)
    assert "Labels by people" in source
    assert "11 of 12 labels of 6 cases are in the run file." in source
    assert f"clearer: Krippendorff's alpha {alpha:.2f}" in source
    cells = re.findall(
        r"<tr><td>(.*?)</td><td class=\"n\">(\d+)</td><td class=\"n\">(\d+)</td><td class=\"n\">(\d+)</td></tr>", source
    )
    assert cells == [("&lt;b&gt;ann&lt;/b&gt;", "6", "0", "0"), ("bob", "5", "1", "1")]
    shared = ps.report(run, out=tmp_path / "shared.html", pseudonyms=True).read_text("utf-8")
    assert "bob" not in shared
    assert "L1</td>" in shared


def test_a_run_with_nothing_but_labels(message_snapshot, tmp_path, monkeypatch):
    run = tmp_path / "pairs.db"
    ps.make_pairs(ps.synthetic_essays(3, seed=1)).write_csv(tmp_path / "pairs.csv")
    LabelStore(run, read_cases(tmp_path / "pairs.csv")).close()
    with pytest.raises(InputError) as refused:
        ps.report(run)
    message_snapshot(refused)
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n2\n1\n"))
    ps.label(tmp_path / "pairs.csv", labellers="ann", terminal=True)
    page = ps.report(run).read_text("utf-8")
    require_valid(page)
    assert "Judged by ann" in page
    assert "3 of 3 labels of 3 cases are in the run file." in page
    table = ps.report(run, out=tmp_path / "people.csv", condition="people").read_text("utf-8")
    assert table.splitlines()[0].startswith("rank,rank_lower")
    shared = ps.report(run, out=tmp_path / "shared.html", pseudonyms=True).read_text("utf-8")
    assert not re.search(r"\bann\b", re.sub(r"<style.*?</style>|<script.*?</script>", "", shared, flags=re.DOTALL))
