"""The report of two variants: the result's own figures, every case, and what may be passed on."""

import json
from dataclasses import replace
from html import escape

import pytest
from tests.reporting.html_page import require_valid, unpacked
from tests.reporting.runs import A_NAME, B_NAME, HOSTILE, SAYS, Grader, ab_run, answer_a, answer_b, suite

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.core.files import read_table, write_table
from pairscale.evaluate.store import saved_result
from pairscale.people import read_cases
from pairscale.reporting.ab import ab_report
from pairscale.reporting.verbs import kind_of, report_of_run, write_report


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("ab") / "ab.db"
    return path, ab_run(path)


@pytest.fixture(scope="module")
def page(run):
    source = ps.report(run[0]).read_text("utf-8")
    return source, require_valid(source)


def rows_of(page, table):
    """The cells of a table by its place on the page, row by row."""
    sizes = [(len(widths) - 1, widths[0]) for widths in page.widths]
    rows, columns = sizes[table]
    start = sum(height * width for height, width in sizes[:table])
    cells = page.texts["td"][start : start + rows * columns]
    return [cells[at : at + columns] for at in range(0, len(cells), columns)]


def test_the_run_keeps_its_result_and_the_answers(run):
    with ps.open_run(run[0]) as store:
        assert kind_of(store) == "ab"
        result, shown = saved_result(store)
    assert result.cases == run[1].cases
    assert result.summary() == run[1].summary()
    assert len(shown) == len(SAYS)
    for task in suite():
        one = shown[task.task_id, 1]
        assert (one.task_input, one.a, one.b) == (task.input, answer_a(task), answer_b(task))


def test_the_headline_and_the_verdicts_are_the_results_own(run, page):
    assert page[1].texts["h1"] == [f"{B_NAME} against {A_NAME}"]
    for key in run[1].keys:
        assert f"{run[1].verdict(key)}." in page[1].texts["dd"]


def test_five_things_stay_five_things(run, page):
    assert rows_of(page[1], 1) == [  # B, ties, flips, A, no answer, errors: those of SAYS
        ["clearer", "grader in both orders", "4", "1", "1", "2", "1", "1"],
        ["clearer (people)", "a person who was shown the answers blinded", "10", "0", "0", "0", "0", "0"],
    ]
    assert "clearer: 1 flip: 0 for the first position, 1 for the second." in page[1].texts["p"]


def test_rates_are_those_of_the_result(run, page):
    wanted = []
    for key in run[1].keys:
        for ties, words in (("half", "ties and flips as half"), ("excluded", "cases with a winner")):
            rate = run[1].win_rate(key, ties=ties)
            wanted.append([key, words, str(rate.n), *(f"{100 * value:.1f} %" for value in (rate.rate, *rate.ci))])
    assert rows_of(page[1], 0) == wanted


def test_every_case_is_in_the_table_and_can_be_read(run, page):
    words = {"A": A_NAME, "B": B_NAME, "T": "tie", "F": "flip", "N": "no answer", "E": "error"}
    cells = page[1].texts["td"]
    shown = unpacked(page[0])["cases"]
    for task, says, (name, task_input, a, b, said) in zip(suite(), SAYS, shown, strict=True):
        assert (name, task_input, a, b) == (task.task_id, task.input, answer_a(task), answer_b(task))
        assert said[0][0] == f"clearer: {words[says]}{' is better' * (says in 'AB')}"
        assert said[-1][0] == f"clearer (people): {B_NAME} is better"
        if says == "B":
            assert said[1] == [f"{A_NAME} shown first: {B_NAME}", f"Because of {HOSTILE[2]}"]
    assert cells.count("flip") == cells.count("error") == cells.count("no answer") == 1
    names = [task.task_id for task in suite()]
    assert [link for link in page[1].texts["a"] if link in names] == names


def test_what_to_look_at_again(page):
    heads = page[1].texts["h3"]
    assert [name for name in heads if name in {"Without an answer", "Flips"}] == ["Without an answer", "Flips"]
    names = {task.task_id for task, says in zip(suite(), SAYS, strict=True) if says in "AT"}
    differing = [text for text in page[1].texts["a"] if "people say" in text]
    assert {text.partition(": clearer says")[0] for text in differing} == names


def test_hostile_texts_stay_text(page):
    source = page[0]
    assert source.count("<script") == 2
    assert "<img" not in source
    assert "<b>old" not in source


def test_to_share(run, tmp_path):
    path = ps.report(run[0], out=tmp_path / "s.html", without_texts=True, pseudonyms=True)
    source = path.read_text("utf-8")
    require_valid(source)
    hidden = [A_NAME, B_NAME, "Because of", "Nothing useful", "I will not", "Question"]
    for task in suite():
        hidden += [task.task_id, answer_a(task), answer_b(task)]
    assert not [text for text in hidden if escape(text) in source or text in source]
    assert 'id="texts"' not in source


def test_people_are_called_otherwise_too(tmp_path):
    made = ps.export_pairwise_cases(
        *(ps.InMemoryTraceSource({task.task_id: f(task) for task in suite()}) for f in (answer_a, answer_b)),
        criteria="clearer",
        out=tmp_path / "cases.jsonl",
        seed=1,
    )
    rows = [json.loads(line) for line in made.path.read_text("utf-8").splitlines()]
    labels = [row | {"preferred": "1", "labeller": "Ann Other", "comment": f"by {n}"} for n, row in enumerate(rows)]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels), "utf-8")
    people = ps.human_labels(tmp_path / "labels.jsonl", criterion="clearer", key="people", key_file=made.key_path)
    result = ab_run(tmp_path / "ab.db", comparators=[people])
    assert result.n_cases
    source = ps.report(tmp_path / "ab.db", out=tmp_path / "r.html").read_text("utf-8")
    assert "people who labelled the cases blinded" in require_valid(source).texts["td"]
    assert unpacked(source)["cases"][0][4][1][0].startswith("Ann Other: ")
    disguised = ps.report(tmp_path / "ab.db", out=tmp_path / "d.html", pseudonyms=True).read_text("utf-8")
    assert unpacked(disguised)["cases"][0][4][1][0].startswith("L1: ")
    assert unpacked(disguised)["cases"][0][4][1][1] == ""
    assert "Ann Other" not in json.dumps(unpacked(disguised))


def test_a_result_alone_has_no_texts(message_snapshot, run, tmp_path):
    alone = run[1].report(tmp_path / "alone.html").read_text("utf-8")
    assert 'id="texts"' not in alone
    require_valid(alone)
    with pytest.raises(InputError) as refused:
        write_report({}, tmp_path / "x.html")
    message_snapshot(refused)


def test_an_answer_that_failed_has_lost_and_is_no_text(tmp_path):
    def raises(task):
        raise ValueError(HOSTILE[0])

    ps.run_pairwise(
        suite(), variant_a=raises, variant_b=answer_b, run=tmp_path / "ab.db", progress=False,
        comparators=[ps.pairwise_judge(Grader(), criterion="clearer", key="clearer")],
    )  # fmt: skip
    source = ps.report(tmp_path / "ab.db").read_text("utf-8")
    page = require_valid(source)
    assert "in 10 cases: B is better: it won 10 of 10 cases with a winner" in page.texts["p"][0]
    assert "A failed in 10 of 10 cases (counted as lost)" in page.texts["p"][0]
    assert unpacked(source)["cases"][0][2] == ""
    with ps.open_run(tmp_path / "ab.db") as store:
        assert report_of_run(store).write_again(tmp_path / "again.jsonl") == 0


def test_without_a_result_the_way_out_is_named(message_snapshot, tmp_path):
    variants = {name: lambda task, name=name: name * 3 for name in "abc"}
    judge = ps.pairwise_judge("lexical", criterion="better", key="k")
    ps.run_variants(suite(), variants, comparators=[judge], run=tmp_path / "r.db", progress=False)
    with pytest.raises(InputError) as refused:
        ps.report(tmp_path / "r.db", kind="ab")
    message_snapshot(refused)


def test_the_table_goes_to_excel_and_formulas_stay_text(run, tmp_path):
    with ps.open_run(run[0]) as store:
        facts = report_of_run(store)
    table = facts.table
    write_table(table, tmp_path / "t.xlsx")
    back = read_table(tmp_path / "t.xlsx")
    assert back["outcome"].to_list() == table["outcome"].to_list() == run[1].frame()["outcome"].to_list()
    assert back["reasoning"].fill_null("").to_list() == table["reasoning"].to_list()


def test_what_to_look_at_again_can_be_labelled(run, tmp_path):
    with ps.open_run(run[0]) as store:
        facts = report_of_run(store)
        n = facts.write_again(tmp_path / "again.jsonl")
    cases = read_cases(tmp_path / "again.jsonl")
    wanted = {task.task_id for task, says in zip(suite(), SAYS, strict=True) if says != "B"}
    assert {case.task_id for case in cases} == wanted
    assert len(cases) == n == len(wanted)
    assert {case.criterion for case in cases} == {"clearer"}
    assert (tmp_path / "again.key.jsonl").exists()


# Under other names


def test_pseudonyms_hide_what_the_members_of_a_panel_said(run):
    member = {"judge_id": "x", "outcome": "win", "winner": "a", "reasoning": "no file task 1"}
    case = replace(run[1].cases[0], detail={"members": [member]}, reasoning="x: no file task 1")
    result = replace(run[1], cases=(case,), keys=(case.key,))
    (hidden,) = ab_report(result, {}, texts=True, pseudonyms=True).content["run"].cases
    assert "no file" not in f"{hidden.detail} {hidden.reasoning}"
    assert hidden.detail["members"][0]["winner"] == "a"


def test_under_other_names_the_order_of_tasks_says_nothing_and_the_figures_stay(tmp_path):
    result = ab_run(tmp_path / "ab.db", stop_when="decided", seed=3, concurrency=1)
    with ps.open_run(tmp_path / "ab.db") as store:
        facts = report_of_run(store)
        hidden = report_of_run(store, pseudonyms=True)
    names = [f"T{n}" for n in range(1, len(SAYS) + 1)]
    listed = hidden.table["task_id"].unique(maintain_order=True).to_list()
    assert listed == [name for name in names if name in listed]
    assert [row[0] for row in hidden.content["rows"]] == listed
    for key in result.keys:
        rates = [one.content["run"].win_rate(key).ci for one in (hidden, facts)]
        assert rates == [result.win_rate(key).ci] * 2


def test_other_variants_of_the_file_and_a_judge_of_the_same_name(tmp_path):
    def compare(end, a, b):
        def old(task):
            return ps.Trace(answer_a(task) + end, cost=0.01)

        def new(task):
            return ps.Trace(answer_b(task) + end, cost=0.01)

        judge = ps.pairwise_judge(Grader(), criterion="clearer", key="clearer")
        options = {"comparators": [judge], "run": tmp_path / "ab.db", "progress": False}
        ps.run_pairwise(suite(), variant_a=old, variant_b=new, variant_a_name=a, variant_b_name=b, **options)

    compare(".", "secret one", "secret two")
    compare("!", "grader-1", "new")  # a variant of the same model as the judge
    with ps.open_run(tmp_path / "ab.db") as store:
        facts = report_of_run(store)
        hidden = report_of_run(store, pseudonyms=True)
    assert "secret one" in facts.spending["model"].to_list()
    assert sorted(hidden.spending["model"]) == ["A", "B", "another variant", "another variant", "grader-1"]
    assert hidden.spending["cost"].sum() == pytest.approx(facts.spending["cost"].sum())
