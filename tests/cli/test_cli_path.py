"""From a folder of texts to a ranking, as a newcomer walks it."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pairscale as ps


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
    assert "nothing asked" in again.err

    state = cli("status", "run.db")
    assert (state.code, state.err) == (0, "")
    assert "4 samples, 6 pairs, 6 attempts" in state.out
    assert "mine:longer" in state.out

    fit = cli("fit", "run.db")
    assert (fit.code, fit.lines) == (0, ["run.db: 6 comparisons of a run file, judged by mine:longer"])
    assert [line.split()[1] for line in fit.out.splitlines()[1:5]] == ["dot", "cem", "bob", "ann"]
    assert "4 items, 6 comparisons" in fit.out


def test_the_next_command_can_be_copied_into_a_shell(cli, pairs):
    done = cli("judge", pairs, "--judge", "mine:longer", "--run", "my runs & more.db")
    assert "next: pairscale fit 'my runs & more.db'" in done.err


def test_results_as_a_table_give_the_same_ranking_as_the_run_file(cli, run, pairs):
    assert cli("judge", pairs, "--judge", "mine:longer", "--run", run, "--out", "results.csv").code == 0
    written = cli("fit", "results.csv", "--out", "ranking.xlsx")
    assert (written.code, written.out) == (0, "")
    assert Path("ranking.xlsx").stat().st_size > 0
    assert cli("fit", "results.csv", "--json").json["items"] == cli("fit", run, "--json").json["items"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "parquet", "xlsx"])
def test_out_writes_every_row_and_column_and_nothing_on_standard_output(cli, run, ending):
    outcome = cli("fit", run, "--out", f"ranking.{ending}")
    assert (outcome.code, outcome.out) == (0, "")
    from pairscale.core.files import read_table

    assert read_table(f"ranking.{ending}")["ID"].to_list() == ["dot", "cem", "bob", "ann"]


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


def test_json_holds_the_pairs_with_their_texts_and_the_settings_of_the_fit(cli, run):
    document = cli("pairs", "essays", "--json").json
    assert document["n_pairs"] == len(document["pairs"]) == 6
    assert {row["text1"] for row in document["pairs"]} <= {path.read_text() for path in Path("essays").iterdir()}
    fit = cli("fit", run, "--json", "--level", "0.8").json
    assert (fit["level"], fit["n_items"], fit["n_comparisons"], fit["components"]) == (0.8, 4, 6, 1)
    assert set(fit["items"][0]) >= {"ID", "theta", "se", "rank", "se_mean", "lower", "upper", "wins", "comparisons"}


def test_what_a_judge_prints_goes_to_standard_error(cli, pairs):
    outcome = cli("judge", pairs, "--judge", "mine:longer", "--json")
    assert outcome.json["asked"] == 6
    assert "imported: this must not reach standard output" in outcome.err
    assert outcome.err.count("asked: neither must this") == 6


def test_settings_reach_a_judge_of_ones_own_and_an_embedded_one(cli, pairs):
    turned = cli("judge", pairs, "--judge", "mine:weighed", "--judge-arg", "weight=-1", "--json").json["results"]
    assert {row["better_id"] for row in turned if "ann" in (row["ID1"], row["ID2"])} == {"ann"}
    named = cli("judge", pairs, "--judge", "mine:weighed", "--judge-arg", "name=scales", "--json").json["results"]
    assert {row["judge_id"] for row in named} == {"scales"}
    truth = pl.DataFrame({"ID": ["a", "b"], "text": ["x", "y"], "truth": [9.0, -9.0]})
    ps.make_pairs(truth).write_csv("known.csv")
    known = cli("judge", "known.csv", "--judge", "simulated:truth", "--judge-arg", "seed=4", "--json").json["results"]
    assert [row["better_id"] for row in known] == ["a"]


def test_answers_are_shown_with_what_there_is_to_say_of_them(cli, pairs):
    assert cli("judge", pairs, "--judge", "mine:longer").out.splitlines()[0].split() == ["ID1", "ID2", "better_id"]
    tied = cli("judge", pairs, "--judge", "mine:tied").out
    assert tied.splitlines()[0].split() == ["ID1", "ID2", "better_id", "outcome"]


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
    assert cli("pairs", "essays", "--share", "0.5", "--json").json["n_pairs"] == 3
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


def test_unlinked_pairs_are_said(cli):
    Path("two.csv").write_text("ID1,text1,ID2,text2\na,x,b,y\nc,z,d,w\n")
    assert "note: not every sample is linked" in cli("pairs", "two.csv").err


def test_columns_by_name(cli):
    Path("class.csv").write_text("grade,essay,pupil\n7,One.,007\n8,Two.,008\n")
    document = cli("pairs", "class.csv", "--id-col", "pupil", "--text-col", "essay", "--order", "keep", "--json").json
    assert document["pairs"] == [
        {"ID1": "007", "text1": "One.", "ID2": "008", "text2": "Two.", "grade1": 7, "grade2": 8}
    ]


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


def test_slopes_of_judges_name_the_weak_one(cli):
    rng = np.random.default_rng(1)
    lines = ["ID1,ID2,better_id,judge"]
    for judge in ("good", "fair", "coin"):
        for _ in range(40):
            one, two = rng.choice(6, 2, replace=False)
            best, coin = max(one, two), rng.choice([one, two])
            lines.append(f"t{one},t{two},t{coin if judge == 'coin' or rng.random() < 0.1 else best},{judge}")
    Path("panel.csv").write_text("\n".join(lines))
    shown = cli("fit", "panel.csv", "--model", "bayes", "--judges", "slopes")
    assert "note: 'coin' is a weak judge" in shown.err
    [line] = [line for line in shown.out.splitlines() if line.startswith("coin ")]
    assert line.split()[-1] == "True"
    document = cli("fit", "panel.csv", "--model", "bayes", "--judges", "slopes", "--json").json
    assert [row["weak"] for row in document["judges"]] == [False, False, True]
    assert "--judges belongs to --model bayes" in cli("fit", "panel.csv", "--judges", "slopes").err
    assert cli("fit", "panel.csv", "--model", "bayes", "--engine", "laplace", "--json").json["judges"] is None


def test_unlinked_groups_are_refused_or_fitted_one_by_one(cli):
    Path("two.csv").write_text("winner,loser\na,b\nc,d\n")
    refused = cli("fit", "two.csv")
    assert refused.code == 1
    assert refused.err.rstrip().endswith("fit each on its own with --separate")
    fitted = cli("fit", "two.csv", "--separate")
    assert fitted.code == 0
    assert fitted.out.split()[:2] == ["component", "ID"]
    assert cli("fit", "two.csv", "--separate", "--json").json["components"] == 2


def test_save_path_keeps_a_csv_and_resumes_from_it(cli, pairs):
    assert cli("judge", pairs, "--judge", "mine:longer", "--save-path", "kept.csv", "--json").json["asked"] == 6
    assert cli("judge", pairs, "--judge", "mine:longer", "--save-path", "kept.csv", "--json").json["asked"] == 0


def test_a_csv_that_r_wrote_is_taken_over_aloud(cli, pairs):
    first, second = pl.read_csv(pairs).select("ID1", "ID2").row(0)
    Path("r.csv").write_text(f"ID1,ID2,better_id\n{first},{second},{second}\n")
    judged = cli("judge", pairs, "--judge", "mine:longer", "--save-path", "r.csv", "--run", "run.db", "--json")
    assert judged.json["asked"] == 5
    assert "note: 1 of the saved results have no condition_id" in judged.err
    assert "name another --save-path" in judged.err
    assert cli("status", "run.db", "--json").json["taken_over"] == 1
    assert "1 answer was taken over from a CSV file without condition_id" in cli("status", "run.db").out


def test_without_a_place_to_keep_the_answers_that_is_said(cli, pairs):
    assert "note: without --run, nothing is saved" in cli("judge", pairs, "--judge", "mine:longer").err
    assert "note:" not in cli("judge", pairs, "--judge", "mine:longer", "--run", "run.db").err


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


def test_a_database_can_be_named_by_its_address(cli, pairs):
    address = f"sqlite:///{Path('answers.db').resolve()}"
    assert cli("judge", pairs, "--judge", "mine:longer", "--run", address, "--json").json["asked"] == 6
    assert cli("judge", pairs, "--judge", "mine:longer", "--run", address, "--json").json["asked"] == 0
    assert cli("fit", address, "--json").json["n_comparisons"] == 6


def test_notes_are_said_even_where_a_script_has_silenced_them(cli):
    import logging

    log = logging.getLogger("pairscale")
    log.setLevel("ERROR")
    try:
        Path("some.csv").write_text("ID1,ID2,better_id\na,b,a\nb,c,b\na,c,\n")
        read, note = cli("fit", "some.csv").lines
        assert read == "some.csv: 3 comparisons, read as results: ID1, ID2, better_id"
        assert note.startswith("note: left out 1 of 3 rows")
        assert log.level == logging.ERROR
    finally:
        log.setLevel(logging.NOTSET)


@pytest.mark.slow
def test_the_demo_ranks_reports_and_starts_anew(cli):
    first = cli("demo", "--folder", "there", "--json")
    assert first.code == 0
    assert [row["rank"] for row in first.json["items"]] == list(range(1, 21))
    assert first.json["stop_reason"] == "btl_converged"
    assert first.json["comparisons"] < 20 * 19
    assert "duplicates" not in first.err  # a name of the step log, which a newcomer does not know
    assert Path("there/report.html").read_text("utf-8").startswith("<!doctype html>")
    second = cli("demo", "--folder", "there", "--seed", "2")
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


@pytest.fixture
def weighted(cli):
    """Results in which every text wins and loses, with a column of weights."""
    rows = [("a", "b", "a", 2.0), ("a", "b", "b", 1.0), ("b", "c", "b", 1.0), ("b", "c", "c", 1.0)]
    rows += [("a", "c", "a", 3.0), ("a", "c", "c", 0.5)]
    table = pl.DataFrame(rows, schema=["ID1", "ID2", "better_id", "counts"], orient="row")
    table.write_csv("weighted.csv")
    return "weighted.csv"


def test_a_reference_and_weights_are_those_of_the_function(cli, weighted):
    args = ("--engine", "mle", "--reference", "b", "--weights", "counts")
    done = cli("fit", weighted, *args, "--json")
    fit = ps.fit_bt_model(pl.read_csv(weighted), engine="mle", reference="b", weights="counts")
    found = {row["ID"]: row["theta"] for row in done.json["items"]}
    assert found == pytest.approx(dict(fit.theta.select("ID", "theta").iter_rows()))
    assert found["b"] == 0
    assert done.json["reference"] == "b"
    assert done.json["n_comparisons"] == 8  # 8.5 by weight
    assert "95 % interval of the difference to b\n" in cli("fit", weighted, *args).out


@pytest.mark.slow
def test_the_prior_of_map_and_of_the_bayesian_model(cli, weighted, run):
    def widest(*args):
        return cli("fit", weighted, "--weights", "counts", *args, "--json").json["items"][0]["theta"]

    assert 0 < widest("--engine", "map", "--prior-sd", "0.1") < widest("--engine", "map") / 5
    table = pl.read_csv(weighted)
    fit = ps.fit_bt_model(table, engine="map", prior_sd=2, weights="counts")
    assert widest("--engine", "map", "--prior-sd", "2") == pytest.approx(fit.theta["theta"][0])
    narrow = cli("fit", weighted, "--model", "bayes", "--variant", "btl", "--prior-sd", "0.1", "--json").json
    assert narrow["prior_sd"] == 0.1
    assert max(row["theta_sd"] for row in narrow["items"]) < 0.12
    learned = cli("fit", run, "--model", "bayes", "--prior-sd", "learned")
    assert "standard deviation of the scores' prior " in learned.out


@pytest.mark.parametrize("engine", ["auto", "mle", "map", "firth"])
def test_a_model_of_ties_without_a_tie(cli, engine):
    Path("won.csv").write_text("ID1,ID2,better_id\na,b,a\nb,c,c\nc,a,c\na,c,a\nb,a,a\nc,b,b\n")
    outcome = cli("fit", "won.csv", "--position", "--ties", "davidson", "--engine", engine)
    assert outcome.code == 0
    assert "ties: nu 0.000\n" in outcome.out


def test_forms_of_other_tools_and_columns_by_name(cli):
    Path("arena.csv").write_text(
        "winner,Model_A,Model_B\nmodel_a,x,y\ntie,y,z\nmodel_b,y,z\nmodel_a,z,x\nskip,z,x\nmodel_b,x,y\n"
    )
    outcome = cli("fit", "arena.csv")
    assert outcome.lines[0] == (
        "arena.csv: 6 comparisons, read as an arena file: model_a, model_b, winner; 1 tie; not understood, and left "
        "out: 'skip' (1)"
    )
    Path("votes.jsonl").write_text('{"p": ["x", "y"], "v": {"w": "x"}}\n{"p": ["y", "x"], "v": {"w": "y"}}\n')
    refused = cli("fit", "votes.jsonl")
    assert refused.code == 1
    assert "name the columns with --a-col, --b-col and --winner-col" in refused.lines[0]
    given = cli("fit", "votes.jsonl", "--a-col", "p.0", "--b-col", "$.p.1", "--winner-col", "v.w", "--json")
    assert given.json["read"] == "2 comparisons, read as results: p.0, $.p.1, v.w"
    assert [row["wins"] for row in given.json["items"]] == [1, 1]
    assert cli("fit", "votes.jsonl", "--a-col", "p.0").lines[-1].startswith("error: votes.jsonl: no column 'ID2'")


def test_label_leads_to_rank(cli):
    Path("my essays.csv").write_text("ID,text\na,Some words.\nb,Other words.\n")
    outcome = cli("label", "my essays.csv")
    assert outcome.code == 1
    assert "pairscale rank 'my essays.csv' --judge human --run 'my essays.db'" in outcome.lines[0]
