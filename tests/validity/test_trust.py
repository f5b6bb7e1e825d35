"""``trust``: from a run and people's labels to a validity, through the public door."""

import html
import io

import numpy as np
import polars as pl
import pytest

import pairscale as ps

TEXTS = ps.example_writing_samples


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("trust") / "essays.db"
    ps.rank(TEXTS, judge="lexical", max_comparisons=100, seed=1, progress="none", run=path)
    return path


@pytest.fixture(scope="module")
def people():
    pairs = ps.sample_pairs(ps.make_pairs(TEXTS), n_pairs=60, seed=2)
    results = ps.judge(pairs, judge=ps.SimulatedJudge("quality_score", seed=3), progress=False).results
    return results.select("ID1", "ID2", "better_id")


def test_the_judge_is_held_against_people(run, people) -> None:
    trust = ps.trust(run, people)
    validity = trust.validity
    assert (validity.n_labels, validity.n_people) == (60, 1)
    assert validity.lower < validity.estimate < validity.upper <= 1
    columns = (
        "ID theta_judge rank_judge theta_people theta_people_sd rank_people rank_people_lower rank_people_upper moved"
    )
    assert trust.items.columns == columns.split()
    assert sorted(trust.items["rank_people"]) == list(range(1, 21))
    assert (trust.items["moved"] == trust.items["rank_judge"] - trust.items["rank_people"]).all()
    assert trust.next.columns == ["ID1", "text1", "ID2", "text2"]
    assert trust.next["text1"].null_count() == 0
    assert trust.needed[0.05] > trust.needed[0.10] > 0
    assert trust.agreement_corrected >= trust.agreement_judge
    assert str(trust).startswith("On these 20 texts, the judge's scale correlates .")
    assert "from 60 answers of 1 person" in str(trust)


def test_labels_of_any_form(run, people, tmp_path) -> None:
    people.write_csv(tmp_path / "people.csv")
    games = [{"winner": row[2], "loser": row[0] if row[2] == row[1] else row[1]} for row in people.iter_rows()]
    by_file = ps.trust(run, tmp_path / "people.csv").validity
    assert by_file == ps.trust(run, people).validity
    assert ps.trust(run, games).validity.estimate == pytest.approx(by_file.estimate, abs=0.05)  # no position effect
    renamed = people.rename({"ID1": "left", "ID2": "right", "better_id": "won"})
    assert ps.trust(run, renamed, a_col="left", b_col="right", winner_col="won").validity == by_file


def test_labels_in_the_run_file_are_found(tmp_path, monkeypatch) -> None:
    run = tmp_path / "own.db"
    ps.rank(TEXTS, judge="lexical", max_comparisons=60, seed=1, progress="none", run=run)
    assert ps.trust(run).validity.n_labels == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n2\n" * 15))  # what a person types
    labelling = ps.label(run, criterion="better", labellers="ann", terminal=True)
    trust = ps.trust(run)
    assert labelling.done == trust.validity.n_labels == 30
    assert trust.validity.n_people == 1
    page = html.unescape(ps.report(run, out=tmp_path / "own.html").read_text("utf-8"))
    assert str(trust).splitlines()[0] in page.partition("The judge beside people")[2]


def test_every_person_has_a_slope_and_one_who_guesses_is_named(run, people, caplog) -> None:
    rng = np.random.default_rng(8)
    guesses = people.with_columns(
        better_id=pl.when(pl.Series(rng.random(people.height) < 0.5)).then("ID1").otherwise("ID2"),
        judge_id=pl.lit("guesser"),
    )
    both = pl.concat([people.with_columns(judge_id=pl.lit("ann")), guesses])
    trust = ps.trust(run, both)
    assert trust.validity.n_people == 2
    named = trust.people.filter("at_random")["person"].to_list()
    assert named == ["guesser"]
    assert "answers that could as well be random: 'guesser'" in caplog.text


def test_few_labels_give_pairs_and_no_figure(run, people) -> None:
    trust = ps.trust(run, people.head(19), next=7)
    assert trust.validity == ps.results.Validity(None, None, None, 19, 1)
    assert trust.next.height == 7
    assert trust.items["theta_people"].null_count() == 20
    assert "too few to say how far the judge can be trusted" in str(trust)


def test_a_fit_or_results_are_a_ranking_too(run, people) -> None:
    results = ps.read_results(run)
    fit = ps.fit(results, model="bayes", engine="laplace")
    assert ps.trust(fit, people).validity.estimate == pytest.approx(
        ps.trust(results, people).validity.estimate, abs=0.05
    )


@pytest.mark.parametrize("case", ["other_texts", "own_answers", "ties", "no_posterior", "columns", "few_pairs"])
def test_bad_input_has_a_clear_line(run, people, case, message_snapshot) -> None:
    labels = {
        "other_texts": [{"winner": "q", "loser": "S01"}] * 30,
        "own_answers": run,
        "ties": people.with_columns(better_id=pl.lit(None, pl.String), outcome=pl.lit("tie")),
        "columns": None,
    }.get(case, people)
    options = {"columns": {"a_col": "left"}, "few_pairs": {"next": 0}}.get(case, {})
    judged = ps.fit(people) if case == "no_posterior" else run
    with pytest.raises(ps.PairscaleError) as refused:
        ps.trust(judged, labels, **options)
    message_snapshot(refused)


def test_the_page_shows_both_scales_the_people_and_the_next_pairs(run, people, tmp_path) -> None:
    by_two = people.with_row_index().with_columns(judge_id=pl.when(pl.col("index") % 2 == 0).then(pl.lit("ann")))
    trust = ps.trust(run, by_two.drop("index").with_columns(pl.col("judge_id").fill_null("bob")))
    page = trust.report(tmp_path / "trust.html").read_text("utf-8")
    assert str(trust).splitlines()[0] in html.unescape(page)
    assert page.count("<circle") == 20
    assert "<td>ann</td>" in page
    first = trust.next.row(0, named=True)
    assert f"<li>{first['ID1']} and {first['ID2']}" in page
    shared = trust.report(tmp_path / "shared.html", pseudonyms=True).read_text("utf-8")
    assert not any(name in shared for name in (*trust.items["ID"], "<td>ann</td>", first["text1"][:40]))


def test_the_page_of_too_few_labels_has_pairs_and_no_figure(run, people, tmp_path) -> None:
    page = ps.trust(run, people.head(5)).report(tmp_path / "trust.html").read_text("utf-8")
    assert "<svg" not in page
    assert "Next pairs to ask people about" in page


def test_labels_that_know_the_order_in_part_are_said(run, people) -> None:
    order = pl.Series("order_known", [True] * 30 + [False] * 30)
    notices = ps.trust(run, people.with_columns(order)).notices
    assert any("no position effect" in notice for notice in notices)
