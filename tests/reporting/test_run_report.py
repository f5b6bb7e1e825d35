"""The report of a run: its figures against loops, and pages that stay deaf to what texts would have them do."""

import io
import json
import math
import re
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reporting.html_page import require_valid, unpacked

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.core.tables import listed
from pairscale.people import LabelStore, read_cases
from pairscale.reporting import _attention
from pairscale.reporting._attention import circular_triads, look_again
from pairscale.reporting._disguise import silent
from pairscale.reporting._shell import cell
from pairscale.reporting.figures import facts_of_run, items_so_far
from pairscale.reporting.page import facts_of, write_report
from pairscale.reporting.picture import Intervals, Lines, Shares, score_picture
from pairscale.reporting.svg import svg
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


def test_hostile_ids_and_texts_stay_text(hostile):
    source = write_report(hostile, title="<i>Which?</i>").read_text("utf-8")
    require_valid(source)
    assert source.count("<script") == 2  # the texts, and our own
    assert "<i>" not in source
    assert "49" not in re.findall(r"<td class=\"id\">([^<]*)<", source)
    shown = unpacked(source)
    assert sorted(shown["texts"]) == sorted(text * 3 for text in HOSTILE)
    assert len(shown["answers"]) == len(HOSTILE) * (len(HOSTILE) - 1) // 2


def test_nothing_is_loaded_and_only_our_script_may_run(hostile):
    source = write_report(hostile).read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', source)[1]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"(src|href)=\"(?!#)", source)


@pytest.mark.slow
def test_the_table_is_the_last_refit(adaptive):
    with ps.open_run(adaptive) as store:
        table = facts_of_run(store).items
        last = store.read_log("item_log")[-1]["columns"]
    scores = dict(zip(last["ID"], last["theta_mean"], strict=True))
    assert dict(table.select("ID", "score").iter_rows()) == scores
    assert table["score"].is_sorted(descending=True)
    assert table["wins"].sum() * 2 == table["comparisons"].sum()


@pytest.mark.slow
def test_the_lines_are_in_figures_too(adaptive, tmp_path):
    page = require_valid(write_report(adaptive, tmp_path / "r.html").read_text("utf-8"))
    with ps.open_run(adaptive) as store:
        refits = store.read_log("round_log")
    assert len(page.widths[1]) == len(refits) + 1
    assert f"{refits[-1]['reliability_EAP']:.3f}" in page.texts["td"]
    assert f"reliability at the end: {refits[-1]['reliability_EAP']:.2f}" in page.pictures()[1]["aria-description"]


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


def test_the_answers_of_a_fit_are_those_of_the_model(hostile):
    with ps.open_run(hostile) as store:
        table, results = facts_of_run(store).items, store.results()
    fit = ps.fit_bt_model(ps.build_bt_data(results))
    assert table["ID"].to_list() == fit.theta["ID"].to_list()
    assert table["score"].to_list() == pytest.approx(fit.theta["theta"].to_list())


def test_the_judge_in_figures(hostile):
    with ps.open_run(hostile) as store:
        facts, results = facts_of_run(store), store.results()
    assert facts.health["first"] == (results["better_id"] == results["ID1"]).mean()
    assert facts.health["consistent"] is None
    assert facts.graph["share"] == 1
    assert facts.graph["least"] == facts.graph["most"] == len(HOSTILE) - 1


def test_repeated_answers_are_held_against_each_other(tmp_path):
    """a against b three times, two of them the same: of the three ways to choose two, one agrees."""
    answers = iter([1, 1, 0, 1, 1])

    def judge(A, B, **_more):
        return {"is_valid": True, "Y": next(answers), "invalid_reason": None}

    rows = [("a", "b"), ("a", "b"), ("a", "b"), ("b", "c"), ("c", "a")]
    pairs = pl.DataFrame([{"ID1": x, "text1": x, "ID2": y, "text2": y} for x, y in rows])
    ps.submit_pairs(pairs, judge, run=tmp_path / "run.db", progress=False, concurrency=1)
    with ps.open_run(tmp_path / "run.db") as store:
        health = facts_of_run(store).health
    assert (health["repeated"], health["consistent"]) == (1, pytest.approx(1 / 3))


def test_a_page_to_share_holds_no_text_and_no_name(hostile, tmp_path):
    path = write_report(hostile, tmp_path / "share.html", texts=False, pseudonyms=True)
    source = path.read_text("utf-8")
    from html import escape

    for at, text in enumerate(HOSTILE):
        assert escape(f"{at}{text}") not in source
    assert 'id="texts"' not in source
    assert {f">T{number}<" for number in range(1, len(HOSTILE) + 1)} <= set(re.findall(r">T\d+<", source))


def test_pseudonyms_say_nothing_of_the_rank(hostile):
    with ps.open_run(hostile) as store:
        facts = facts_of_run(store)
    orders = {tuple(facts.disguised().items["ID"]) for _ in range(5)}
    assert len(orders) > 1


def test_surprising_pairs_become_cases(hostile, tmp_path):
    with ps.open_run(hostile) as store:
        n = facts_of_run(store).write_again(tmp_path / "again.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == n > 0
    ends = {HOSTILE[0] * 3, HOSTILE[-1] * 3}
    assert {rows[0]["response_1"], rows[0]["response_2"]} == ends  # the last that beat the first
    assert set(rows[0]) == {"case_id", "task_id", "criterion", "task_input", "response_1", "response_2"}


def test_no_answer_no_report(tmp_path):
    ps.open_run(tmp_path / "run.db", write=True).close()
    with pytest.raises(InputError, match="no decided comparison"):
        write_report(tmp_path / "run.db")


def test_groups_that_never_met_have_a_report_without_ranks(tmp_path):
    texts = {name: {"ID": name, "text": name} for name in "abcd"}
    pairs = pl.concat([ps.make_pairs([texts[x], texts[y]]) for x, y in ("ab", "cd")])
    ps.submit_pairs(pairs, lambda A, B: {"is_valid": True, "Y": 1}, run=tmp_path / "run.db", progress=False)
    source = write_report(tmp_path / "run.db").read_text("utf-8")
    assert "2 groups without a comparison between them" in source
    assert "<h3>Group 2</h3>" in source
    assert "rank from" not in source


GAMES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")).filter(lambda game: game[0] != game[1]),
    min_size=1,
    max_size=40,
)


@given(GAMES)
@settings(max_examples=80)
def test_circular_triads_are_what_loops_find(games):
    def beats(x, y):
        return games.count((x, y)) > games.count((y, x))

    names = sorted({name for game in games for name in game})
    circular = sum(beats(x, y) and beats(y, z) and beats(z, x) for x, y, z in permutations(names, 3)) // 3
    decided = sum(
        all(beats(*two) or beats(*reversed(two)) for two in combinations(three, 2)) for three in combinations(names, 3)
    )
    rows = pl.DataFrame(games, schema=["winner", "loser"], orient="row")
    assert circular_triads(rows) == (circular, decided)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_attention, "WITHOUT_SCIPY", 0)
        assert circular_triads(rows) == (circular, decided)


@given(GAMES)
@settings(max_examples=40)
def test_misfits_are_those_of_loops(games):
    """Infit by its definition; flagged are those more than two standard deviations above the mean of all."""
    scores = {name: 1.3 * at for at, name in enumerate("abcdef")}
    items = pl.DataFrame({"ID": list(scores), "score": list(scores.values()), "rank_lower": 1, "rank_upper": 6})
    rows = pl.DataFrame(games, schema=["ID1", "ID2"], orient="row").with_columns(better_id="ID1", judge_id=pl.lit("j"))
    found = look_again(items, rows)
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
        assert set(found.misfits["ID"]) == flagged
    for row in found.misfits.iter_rows(named=True):
        assert row["infit"] == pytest.approx(figures[row["ID"]][0])
    least = sorted(p[game] for game in games if p[game] < 0.1)[:10]
    assert found.surprises["p"].to_list() == pytest.approx(least)


def test_a_text_that_judges_do_not_see_alike_is_named():
    """Nine texts in a clear order; the best of them loses half of its comparisons."""
    scores = {name: 2.0 * at for at, name in enumerate("abcdefghi")}
    items = pl.DataFrame({"ID": list(scores), "score": list(scores.values()), "rank_lower": 1, "rank_upper": 9})
    games = [(y, x) for x, y in combinations("abcdefgh", 2)] * 2
    games += [pair for x in "abcdefgh" for pair in ((x, "i"), ("i", x))]
    rows = pl.DataFrame(games, schema=["ID1", "ID2"], orient="row").with_columns(better_id="ID1", judge_id=pl.lit("j"))
    assert look_again(items, rows).misfits["ID"].to_list() == ["i"]


def test_repeats_of_different_judges_are_no_repeats(tmp_path):
    pairs = ps.make_pairs([{"ID": name, "text": name} for name in "abc"])
    for y in (1, 0):
        judge = ps.make_judge(
            lambda A, B, y=y: {"is_valid": True, "Y": y, "invalid_reason": None}, judge_args={"name": f"j{y}"}
        )
        ps.submit_pairs(pairs, judge, run=tmp_path / "run.db", progress=False)
    with ps.open_run(tmp_path / "run.db") as store:
        assert facts_of_run(store).health["consistent"] is None


def test_notices_that_name_texts_are_counted_under_pseudonyms(hostile):
    with ps.open_run(hostile) as store:
        facts = replace(
            facts_of_run(store), notices=(f"no score for {HOSTILE[1]}: see 1{HOSTILE[1]}", "two rows were left out")
        )
    shown = facts.disguised().notices
    assert shown == ["two rows were left out", "1 further notice may name texts, and cannot be shown here"]


def test_a_notice_that_quotes_a_name_is_counted_too():
    name = 'a\n"b" \x7f'
    assert silent([f"left out: {listed([name])}"], [name]) == [
        "1 further notice may name texts, and cannot be shown here"
    ]


@pytest.fixture
def two_judges(adaptive, tmp_path):
    """An adaptive run, and another judge's answers in the same file."""
    run = tmp_path / "two.db"
    run.write_bytes(adaptive.read_bytes())
    texts = ps.example_writing_samples.rename({"ID": "id"})

    class Dear:
        condition = ps.Condition("dear", model="dear-1")

        async def compare(self, pair):
            return ps.Verdict.win(1 if pair.first["ID"] < pair.second["ID"] else 2, cost=0.5)

    done = ps.submit_pairs(ps.make_pairs(texts.head(4).rename({"id": "ID"})), Dear(), run=run, progress=False)
    return run, done.condition_id


def test_of_several_judges_all_answers_make_the_scores(adaptive, two_judges):
    run, dear = two_judges
    with ps.open_run(adaptive) as store:
        alone = facts_of_run(store)
    with ps.open_run(run) as store:
        rest = store.get_meta("adaptive_condition")
        together, first, second = (facts_of_run(store, which) for which in (None, rest, dear))
    assert together.model != "bayes"
    assert together.items["comparisons"].sum() == 2 * together.comparisons == 2 * (alone.comparisons + 6)
    assert (first.model, first.comparisons) == ("bayes", alone.comparisons)
    assert first.items.equals(alone.items)
    assert (second.comparisons, second.items["comparisons"].sum()) == (6, 12)


def test_the_cost_is_that_of_the_judge_who_is_reported(two_judges):
    run, dear = two_judges
    with ps.open_run(run) as store:
        costs = [facts_of_run(store, which).spending["cost"].sum() for which in (None, dear)]
        other = facts_of_run(store, store.get_meta("adaptive_condition")).spending
    assert costs == [3, 3]
    assert "dear-1" not in other["model"].to_list()
    page = write_report(run, run.with_suffix(".html"), condition_id=dear).read_text("utf-8")
    assert "$3.0000 in all, $500.00 for a thousand decided comparisons." in page


@pytest.mark.parametrize("kind", ["ranking", "bias"])
def test_a_run_that_goes_on_is_read_as_of_one_moment(tmp_path, monkeypatch, kind):
    class Judge:
        condition = ps.Condition("dear", model="dear-1")

        async def compare(self, pair):
            return ps.Verdict.win(1 if pair.first["ID"] < pair.second["ID"] else 2, cost=0.5)

    def judged(n):
        rows = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("c", "a"), ("a", "c")][:n]
        pairs = pl.DataFrame([{"ID1": x, "text1": x, "ID2": y, "text2": y} for x, y in rows])
        ps.submit_pairs(pairs, Judge(), run=tmp_path / "run.db", progress=False)

    judged(4)
    plain = RunFile.conditions

    def conditions(self):
        monkeypatch.setattr(RunFile, "conditions", plain)
        found = plain(self)
        judged(6)  # another two answers between two looks at the file
        return found

    with ps.open_run(tmp_path / "run.db") as store:
        monkeypatch.setattr(RunFile, "conditions", conditions)
        facts = facts_of(store, kind)
    assert facts.judgements.height == 4
    assert facts.spending["cost"].sum() == 2
    with ps.open_run(tmp_path / "run.db") as store:
        assert facts_of(store, kind).judgements.height == 6


def test_numbers_are_sorted_as_numbers():
    assert cell(1234) == {"shown": "1,234", "kind": "n", "value": "1234", "two": ""}
    assert cell(12)["value"] is None  # as it is shown
    assert cell(-0.5)["value"] == "-0.5"
    assert [cell(end, shown="∞")["value"] for end in (math.inf, -math.inf)] == ["Infinity", "-Infinity"]
    assert cell("1,234")["value"] is None
    assert cell(None, kind="n")["value"] is None


def test_a_run_in_no_file_has_no_place_for_its_page(hostile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = f"sqlite:///{hostile.name}"
    with ps.open_run(address) as store, pytest.raises(InputError, match="name the file"):
        write_report(store)
    with pytest.raises(InputError, match="name the file"):
        write_report(address)
    page = write_report(f"{address}?timeout=987", tmp_path / "r.html").read_text("utf-8")
    assert "timeout=987" not in page
    assert "To get it again" not in page


@pytest.mark.parametrize(("n", "rows_each"), [(300, True), (301, False)])
def test_many_items_share_a_picture(n, rows_each):
    rows = [{"ID": f"<{n}>", "score": -n / 10, "lower": None, "upper": None} for n in range(n)]
    chart = svg(score_picture(rows))
    assert chart.count("<circle") == n
    assert chart.count('class="name" dir="auto"') == (n if rows_each else 0)
    assert chart.count("<title>") == (0 if rows_each else n)
    assert "&lt;0&gt;" in chart


def test_a_line_with_gaps():
    chart = svg(Lines([10, 20, 30], {"a": [None, 0.5, 0.7], "b": [None, None, None]}, label="x", target=0.9))
    assert chart.count("<polyline") == 1
    assert "target 0.9" in chart


def test_an_end_without_limit_reaches_the_edge():
    rows = [
        {"ID": "<a>", "score": 1.0, "lower": 0.5, "upper": math.inf},
        {"ID": "b", "score": -1.0, "lower": -math.inf, "upper": -0.5},
        {"ID": "c", "score": 0.0, "lower": -0.2, "upper": None},
    ]
    chart = svg(Intervals(rows, label="x", axis="y"))
    ends = [tuple(map(float, two)) for two in re.findall(r'class="interval" x1="([\d.]+)%" x2="([\d.]+)%"', chart)]
    points = [float(x) for x in re.findall(r'cx="([\d.]+)%"', chart)]
    assert ends[0][1] == points[0] == max(points)  # the axis ends with what is known
    assert ends[1][0] == points[1] == min(points)
    assert ends[2][1] == points[2]
    assert "&lt;a&gt;: 1.00 (0.50 to no limit)" in chart
    assert "inf" not in chart
    assert "nan" not in chart


def test_the_middle_is_marked_where_no_tick_is():
    rows = [{"ID": "a", "score": 0.7, "lower": 0.6, "upper": 0.8}]
    chart = svg(Intervals(rows, label="x", axis="y", in_percent=True, span=(0, 1), middle=0.5))
    assert re.findall(r'class="grid zero" x1="([\d.]+%)"', chart) == ["50.00%"]  # at every width
    ticks = dict(re.findall(r'<text class="tick[a-z -]*" x="([\d.]+%)"[^>]*>(\d+) %<', chart))
    assert ticks["0.00%"] == "0"
    assert ticks["100.00%"] == "100"
    assert "50.00%" not in ticks


@given(st.lists(st.tuples(*[st.integers(0, 500)] * 3), min_size=1, max_size=5))
def test_shares_are_as_wide_as_they_are_many(counts):
    words = {"a": "first", "b": "second <b>", "c": "third"}
    rows = [(f"<{n}>", dict(zip("abc", three, strict=True))) for n, three in enumerate(counts)]
    chart = svg(Shares(rows, words, label="x"))
    assert chart.count("<rect") == sum(n > 0 for three in counts for n in three)
    assert "<b>" not in chart
    for drawn, (_, row) in zip(chart.split('class="item"')[1:], rows, strict=True):
        bars = [(float(x), float(w)) for x, w in re.findall(r'<rect x="([\d.]+)%" y="2" width="([\d.]+)%"', drawn)]
        there = [n for n in row.values() if n]
        assert [width for _, width in bars] == pytest.approx([100 * n / sum(there) for n in there], abs=0.01)
        assert [x for x, _ in bars] == pytest.approx(
            [100 * sum(there[:at]) / sum(there) for at in range(len(there))], abs=0.01
        )
        assert drawn.count(" thin") == sum(width < 1 for _, width in bars)


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
    path = write_report(run)
    source = path.read_text("utf-8")
    require_valid(source)
    shown = unpacked(source)
    assert sorted(shown["texts"]) == sorted(essays["text"])
    assert len(shown["answers"]) == 2000
    assert path.stat().st_size < 5_000_000
    assert write_report(run, tmp_path / "lively.html", interactive=True).stat().st_size < 5_000_000


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
        table = ps.agreement(
            [row for row in store.rows() if row["preferred"]], unit="case_id", rater="labeller", label="preferred"
        ).table
    alpha = table.filter(statistic="krippendorff_alpha")["estimate"].item()
    source = write_report(run).read_text("utf-8")
    require_valid(source)
    assert "Labels of people" in source
    assert "11 of 12 labels of 6 cases are in the run file." in source
    assert f"clearer: Krippendorff&#39;s alpha {alpha:.2f}" in source
    cells = re.findall(
        r"<tr><td>(.*?)</td><td class=\"n\">(\d+)</td><td class=\"n\">(\d+)</td><td class=\"n\">(\d+)</td></tr>", source
    )
    assert cells == [("&lt;b&gt;ann&lt;/b&gt;", "6", "0", "0"), ("bob", "5", "1", "1")]
    shared = write_report(run, tmp_path / "shared.html", pseudonyms=True).read_text("utf-8")
    assert "bob" not in shared
    assert "L1</td>" in shared


def test_a_run_with_nothing_but_labels(message_snapshot, tmp_path, monkeypatch):
    run = tmp_path / "pairs.db"
    ps.make_pairs(ps.synthetic_essays(3, seed=1)).write_csv(tmp_path / "pairs.csv")
    LabelStore(run, read_cases(tmp_path / "pairs.csv")).close()
    with pytest.raises(InputError) as refused:
        write_report(run)
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
    assert "ann" not in re.sub(r"<style.*?</style>|<script.*?</script>", "", shared, flags=re.DOTALL)


def test_columns_of_the_texts_may_be_called_like_those_of_the_page(tmp_path):
    """A text's own ``wins`` are not those of the ranking, its ``group`` is none of ours; every head is another."""
    essays = ps.synthetic_essays(5, seed=1).select("ID", "text")
    texts = essays.with_columns(
        wins=pl.lit(99), group=pl.Series(["x", "y", "x", "y", "x"]), score=pl.lit(7), of=pl.lit("A"), rank=pl.lit(0)
    )
    ps.rank(texts, steps=10, fit="laplace", run=tmp_path / "run.db", progress="none")
    items = pl.read_csv(ps.report(tmp_path / "run.db", out=tmp_path / "items.csv"))
    assert items["wins"].sum() == 10
    assert items["sample_wins"].to_list() == [99] * 5
    source = ps.report(tmp_path / "run.db").read_text("utf-8")
    require_valid(source)
    table = source[source.index('id="ranking"') :]
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table[: table.index("</thead>")], re.DOTALL)
    names = [re.sub("<.*?>", "", head).strip() for head in heads]
    assert names[-6:] == ["sample_wins", "group", "sample_score", "sample_of", "sample_rank", "text"]
    assert len(set(names)) == len(names)
    assert "<h3>Group" not in source
