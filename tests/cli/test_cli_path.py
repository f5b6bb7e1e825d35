"""From a folder of texts to a ranking, as a newcomer walks it."""

import json
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.core.files import read_table


def test_the_whole_path(cli):
    made = cli("pairs", "essays", "--out", "pairs.csv")
    assert (made.code, made.out) == (0, "")
    assert "4 samples in 6 pairs" in made.err
    assert "wrote 6 rows to pairs.csv" in made.err

    first = cli("judge", "pairs.csv", "--judge", "mine:longer", "--run", "run.db")
    assert first.code == 0
    assert "6 of 6 pairs answered, 6 asked now" in first.err
    assert "next: pairscale fit run.db" in first.err
    again = cli("judge", "pairs.csv", "--judge", "mine:longer", "--run", "run.db", "--json")
    assert again.code == 0
    assert again.json["asked"] == 0
    assert "0 asked now" in again.err

    state = cli("status", "run.db")
    assert (state.code, state.err) == (0, "")
    assert "4 items, 6 pairs, 6 attempts" in state.out
    assert "mine:longer" in state.out

    fit = cli("fit", "run.db")
    assert (fit.code, fit.lines) == (0, ["run.db: 6 comparisons of a run file, judged by mine:longer"])
    assert [line.split()[1] for line in fit.out.splitlines()[1:5]] == ["dot", "cem", "bob", "ann"]
    assert "4 items, 6 comparisons" in fit.out


def test_out_writes_a_table_that_fits_alike(cli, run, pairs):
    assert cli("judge", pairs, "--judge", "mine:longer", "--run", run, "--out", "results.csv").code == 0
    written = cli("fit", "results.csv", "--out", "ranking.xlsx")
    assert (written.code, written.out) == (0, "")
    assert read_table("ranking.xlsx")["ID"].to_list() == ["dot", "cem", "bob", "ann"]
    assert cli("fit", "results.csv", "--json").json["items"] == cli("fit", run, "--json").json["items"]


@pytest.mark.parametrize(
    "args",
    [
        ("pairs", "essays"),
        ("judge", "pairs.csv", "--judge", "mine:longer"),
        ("judge", "pairs.csv", "--judge", "mine:half", "--run", "half.db"),
        ("fit", "run.db"),
        ("status", "run.db"),
        ("templates",),
        ("templates", "concise"),
        ("traits",),
        ("traits", "clarity"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_json_is_one_document_and_nothing_else_is_on_standard_output(cli, run, args):
    outcome = cli(*args, "--json")
    assert outcome.code == 0
    assert isinstance(outcome.json, dict)
    both = cli(*args, "--json", "--out", "also.json")
    assert both.code == 0
    assert isinstance(both.json, dict)
    assert isinstance(json.loads(Path("also.json").read_text("utf-8")), list)


def test_pairs_without_an_answer_are_named_on_standard_error(cli, pairs):
    outcome = cli("judge", pairs, "--judge", "mine:half", "--run", "half.db")
    assert outcome.code == 0
    assert "3 of 6 pairs answered" in outcome.err
    assert "3 without an answer; the same command asks them again:" in outcome.err
    assert "abstention" in cli("status", "half.db").out


def test_a_judge_that_answers_nothing_is_an_error_and_its_words_cannot_command_the_terminal(cli, pairs):
    outcome = cli("judge", pairs, "--judge", "mine:shy", "--run", "shy.db")
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.lines[3:] == ["error: none of the 6 pairs was answered; the first: I would rather not �[31msay"]
    assert cli("judge", pairs, "--judge", "mine:shy", "--json").json["results"] == []


def test_some_of_the_pairs(cli):
    few = cli("pairs", "essays", "--n-pairs", "1", "--json")
    assert few.json["n_pairs"] == 1
    assert len(few.json["unpaired"]) == 2
    assert "note: 2 of 4 samples are in no pair" in few.err
    same = [cli("pairs", "essays", "--n-pairs", "4", "--seed", seed, "--json").json["pairs"] for seed in (3, 3, 4)]
    assert same[0] == same[1] != same[2]


def test_the_order_within_pairs(cli, pairs):
    kept = cli("pairs", "essays", "--order", "keep", "--json").json["pairs"]
    assert all(row["ID1"] < row["ID2"] for row in kept)
    turns = cli("pairs", "essays", "--order", "alternate", "--json").json["pairs"]
    assert [row["ID1"] < row["ID2"] for row in turns] == [True, False] * 3
    forward = cli("pairs", pairs, "--order", "keep", "--json").json["pairs"]
    reverse = cli("pairs", pairs, "--reverse", "--json").json["pairs"]
    assert {(row["ID1"], row["ID2"]) for row in forward} == {(row["ID2"], row["ID1"]) for row in reverse}


def test_a_run_file_with_two_judges_asks_which(cli, run, pairs):
    cli("judge", pairs, "--judge", "mine:weighed", "--run", run)
    which = cli("fit", run)
    assert which.code == 1
    assert "there are several conditions; --condition takes one of them" in which.err
    assert cli("fit", run, "--condition", "mine:longer", "--json").json["n_comparisons"] == 6
    start = cli("status", run, "--json").json["conditions"][1]["condition_id"][:8]
    assert cli("fit", run, "--condition", start, "--json").json["n_comparisons"] == 6
    together = cli("fit", run, "--condition", "all", "--json")
    assert together.json["n_comparisons"] == 12
    assert "note: the answers of all conditions are fitted together" in together.err
    assert "no condition is called 'nobody'" in cli("fit", run, "--condition", "nobody").err
    slopes = cli("fit", run, "--condition", "all", "--model", "bayes", "--judges", "slopes", "--json").json
    assert {row["judge_id"]: row["n"] for row in slopes["judges"]} == {"mine:longer": 6, "mine:weighed": 6}


def test_unlinked_groups_are_refused_or_fitted_one_by_one(cli):
    Path("two.csv").write_text("winner,loser\na,b\nc,d\n")
    refused = cli("fit", "two.csv")
    assert refused.code == 1
    assert refused.err.rstrip().endswith("fit each on its own with --separate")
    fitted = cli("fit", "two.csv", "--separate")
    assert fitted.code == 0
    assert fitted.out.split()[:2] == ["component", "ID"]
    assert cli("fit", "two.csv", "--separate", "--json").json["components"] == 2


def test_templates_and_traits_teach(cli):
    listed = cli("templates")
    assert listed.code == 0
    assert [line.split()[0] for line in listed.out.splitlines()] == sorted(
        set(ps.list_prompt_templates()) - {"test1", "test2", "test3", "test4", "test5"}
    )  # which are other names of five of them
    Path("own.txt").write_text(cli("templates", "default").out, "utf-8")
    assert Path("own.txt").read_text("utf-8") == f"{ps.get_prompt_template('default')}\n"
    assert ps.set_prompt_template(file="own.txt") == ps.get_prompt_template("default")
    assert cli("templates", "own.txt").out == cli("templates", "default").out
    assert cli("traits", "clarity").out.startswith("clarity  (Clarity)\n    ")
    assert "\n    " not in cli("traits", "clarity", "--json").json["traits"][0]["description"]


def test_doctor_never_shows_a_key(cli, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    plain, document = cli("doctor"), cli("doctor", "--json")
    assert "very-secret" not in plain.out + plain.err + document.out + document.err
    assert {row["check"]: row["value"] for row in document.json["checks"]}["OPENAI_API_KEY"] == "set"


@pytest.mark.slow
def test_the_demo_ranks_reports_and_starts_anew(cli):
    first = cli("demo", "--folder", "there", "--json")
    assert first.code == 0
    assert [row["rank"] for row in first.json["items"]] == list(range(1, 21))
    assert first.json["stop_reason"] == "btl_converged"
    assert first.json["comparisons"] < 20 * 19
    assert "duplicates" not in first.err  # a name of the step log, which a newcomer does not know
    assert Path("there/report.html").read_text("utf-8").startswith("<!doctype html>")
    second = cli("demo", "--folder", "there")
    assert second.code == 0
    assert "Spearman" in second.out
    assert cli("status", "there/run.db", "--json").json["adaptive"]["stop_reason"] == "btl_converged"


def test_the_demo_never_touches_what_is_not_its_own(cli, run):
    before = run.read_bytes()
    refused = cli("demo", "--folder", ".")
    assert refused.code == 1
    assert "not the demo's" in refused.err
    assert run.read_bytes() == before
    Path("own").mkdir()
    Path("own/report.html").write_text("mine")
    assert cli("demo", "--folder", "own").code == 1
    assert sorted(path.name for path in Path("own").iterdir()) == ["report.html"]
    assert Path("own/report.html").read_text() == "mine"
    assert cli("demo", "--folder", "pairs.csv").code == 1
    assert cli("demo", "--folder", "/proc/demo").code == 1


def test_label_leads_to_rank(cli):
    Path("my essays.csv").write_text("ID,text\na,Some words.\nb,Other words.\n")
    outcome = cli("label", "my essays.csv")
    assert outcome.code == 1
    assert "pairscale rank 'my essays.csv' --judge human --run 'my essays.db'" in outcome.lines[0]
