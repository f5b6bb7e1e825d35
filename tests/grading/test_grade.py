"""``grade``: from a run to marks and levels, through the public door."""

import html
import json

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.cli import main

TEXTS = ps.example_writing_samples.with_columns(
    name=pl.format("Pupil {}", pl.col("ID")),
    mark=40 + 2.5 * pl.col("quality_score"),
    truth=0.4 * pl.col("quality_score"),
)
KNOWN = TEXTS.select("ID", "mark").gather_every(3)
LEVELS = pl.DataFrame({"level": ["A", "B", "C"], "from_mark": [75.0, 55.0, None]})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("grade") / "essays.db"
    judge = ps.SimulatedJudge("truth", seed=5)
    samples = TEXTS.drop("mark")
    ps.rank(samples, judge=judge, max_comparisons=150, seed=1, progress="none", run=path, fit="laplace")
    return path


@pytest.fixture(scope="module")
def grades(run):
    return ps.grade(run, KNOWN, LEVELS)


def test_marks_and_levels_with_their_probabilities(grades):
    columns = "ID name rank score theta theta_sd mark mark_lower mark_upper level p_A p_B p_C misgrade"
    items = grades.items
    assert items.columns == columns.split()
    assert items["rank"].to_list() == sorted(items["rank"])
    np.testing.assert_allclose(items.select("p_A", "p_B", "p_C").sum_horizontal(), 1)
    both = items.join(TEXTS.select("ID", true="mark"), on="ID")
    assert (both["mark"] - both["true"]).abs().mean() < 4
    assert ((both["mark_lower"] - 1e-6 <= both["true"]) & (both["true"] <= both["mark_upper"] + 1e-6)).mean() > 0.8
    assert grades.summary.columns == ["accuracy", "consistency", "rmse"]
    assert grades.summary["accuracy"].item() == pytest.approx(1 - items["misgrade"].mean())
    assert grades.levels.columns == ["level", "from_mark", "from_theta", "from_theta_sd", "n", "expected_n"]
    assert grades.levels["n"].sum() == 20
    assert grades.levels["expected_n"].sum() == pytest.approx(20)
    assert grades.known.columns == ["ID", "known", "predicted", "residual", "z", "drifted"]
    assert not grades.known["drifted"].any()
    assert grades.again["expected_distance"].to_list() == sorted(grades.again["expected_distance"], reverse=True)
    assert "of the levels are expected to be right" in str(grades)


def test_the_forms_of_a_run_give_the_same(run, grades):
    assert ps.grade(ps.read_results(run), KNOWN, LEVELS).items.drop("p_A", "p_B", "p_C").columns
    fit = ps.fit(run, model="bayes", engine="laplace")
    assert ps.grade(fit, KNOWN, LEVELS).items["mark"].to_list() == pytest.approx(grades.items["mark"].to_list())


def test_quotas_and_boundary_texts_need_no_marks(run):
    quota = ps.grade(run, quota={"A": 0.15, "B": 0.35, "C": 0.5})
    assert quota.levels["n"].to_list() == [3, 7, 10]
    assert quota.items["mark"].null_count() == 20
    assert quota.summary["rmse"].item() is None
    ranked = quota.items["ID"]
    edge = ps.grade(run, boundary={"A": ranked[2], "B": ranked[9]})
    assert edge.levels["level"].to_list() == ["A", "B", "below B"]
    assert edge.items["level"].to_list() == quota.items["level"].replace("C", "below B").to_list()
    both = ps.grade(run, KNOWN, quota={"A": 0.15, "B": 0.85})
    assert both.levels["from_mark"][0] == pytest.approx(both.items["mark"][2:4].mean(), abs=4)


def test_a_level_nobody_was_given_is_said(run, caplog):
    found = ps.grade(run, quota={"A": 0.01, "B": 0.99})
    assert found.levels["n"].to_list() == [0, 20]
    assert "level 'A' was given to no text" in caplog.text
    assert found.levels["from_theta"].null_count() == 2


def test_a_drifted_text_is_named_and_can_be_left_out(run, tmp_path):
    moved = KNOWN.with_columns(mark=pl.when(pl.col("ID") == "S10").then(95).otherwise("mark"))
    found = ps.grade(run, moved)
    assert found.known.filter("drifted")["ID"].to_list() == ["S10"]
    assert "Drifted: S10 (known as 95" in str(found)
    kept = ps.grade(run, moved.filter(pl.col("ID") != "S10"))
    assert not kept.known["drifted"].any()


def test_last_years_run_carries_its_scale(run, tmp_path):
    judge = ps.SimulatedJudge("truth", seed=5)
    more = TEXTS.drop("mark").head(12).with_columns(pl.format("new-{}", "ID").alias("ID"))
    texts = pl.concat([TEXTS.drop("mark").gather_every(2), more])
    this = ps.rank(texts, judge=judge, max_comparisons=150, seed=2, progress="none", fit="laplace")
    found = ps.grade(this, known=run, levels=pl.DataFrame({"level": ["A", "B"], "from_mark": [0.0, None]}))
    assert found.known.height == 10
    last = ps.grade(run, quota={"all": 1.0}).items.select("ID", then="theta")
    both = found.items.with_columns(pl.col("ID").str.strip_prefix("new-")).join(last, on="ID")
    assert (both["mark"] - both["then"]).abs().mean() < 1.2
    other = ps.rank(TEXTS, judge=lambda A, B: 1, max_comparisons=40, progress="none", fit="laplace")
    with pytest.raises(ps.PairscaleError, match="another judge"):
        ps.grade(other, known=run)


BAD = {
    "strange": ({"known": [{"ID": "S01", "mark": 40}, {"ID": "zzz", "mark": 60}]}, None),
    "not_finite": ({"known": [{"ID": "S01", "mark": float("inf")}, {"ID": "S09", "mark": 60}]}, None),
    "no_number": ({"known": [{"ID": "S01", "mark": "good"}, {"ID": "S09", "mark": "bad"}]}, None),
    "negative_sd": ({"known": [{"ID": "S01", "mark": 40, "sd": -1}, {"ID": "S09", "mark": 60, "sd": 1}]}, None),
    "one": ({"known": [{"ID": "S01", "mark": 40}]}, None),
    "equal": ({"known": [{"ID": "S01", "mark": 40}, {"ID": "S09", "mark": 40}]}, None),
    "twice": ({"known": [{"ID": "S01", "mark": 40}, {"ID": "S01", "mark": 50}]}, None),
    "reversed": ({"known": KNOWN.with_columns(mark=100 - pl.col("mark"))}, None),
    "out_of_order": ({"known": KNOWN, "levels": [{"level": "A", "from_mark": 80}, {"level": "B", "from_mark": 85},
                                                 {"level": "C", "from_mark": 30}]}, None),
    "no_beginning": ({"known": KNOWN, "levels": [{"level": "A", "from_mark": 80.0}, {"level": "B", "from_mark": None},
                                                 {"level": "C", "from_mark": 30.0}]}, None),
    "same_name": ({"known": KNOWN, "levels": [{"level": "A", "from_mark": 80}, {"level": "A", "from_mark": 60}]}, None),
    "quota": ({"quota": {"A": 0.5, "B": 0.6}}, None),
    "boundary_unknown": ({"boundary": {"A": "zzz"}}, None),
    "boundary_order": ({"boundary": {"A": "S02", "B": "S19"}}, None),
    "levels_without_marks": ({"levels": LEVELS}, None),
    "two_ways": ({"quota": {"A": 1.0}, "boundary": {"A": "S02"}}, None),
    "nothing": ({}, None),
    "last_year_of_a_table": ({"known": "last.db"}, "table"),
    "lexical": ({"quota": {"A": 1.0}}, "lexical"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_has_a_clear_line(run, case, message_snapshot, tmp_path, monkeypatch):
    options, judged = BAD[case]
    source = run
    if judged == "lexical":
        source = ps.judge(ps.make_pairs(TEXTS.head(4)), progress=False)
    elif judged == "table":
        source = ps.read_results(run)
        options = {"known": run}
    with pytest.raises(ps.PairscaleError) as refused:
        ps.grade(source, **options)
    message_snapshot(refused)


def test_the_page_the_workbook_and_pseudonyms(grades, tmp_path):
    page = html.unescape(grades.report(tmp_path / "grades.html").read_text("utf-8"))
    assert str(grades).splitlines()[0] in page
    assert "not a verdict on a pupil" in page
    assert page.count("<circle") == 20 + KNOWN.height
    assert "Pupil S07" in page
    shared = grades.report(tmp_path / "shared.html", pseudonyms=True).read_text("utf-8")
    assert not any(name in shared for name in (*TEXTS["ID"], "Pupil"))
    grades.report(tmp_path / "grades.xlsx")
    for sheet in ("grades", "method"):
        assert pl.read_excel(tmp_path / "grades.xlsx", sheet_name=sheet).height


def shell(arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_the_command(run, tmp_path, monkeypatch, capsys, message_snapshot):
    monkeypatch.chdir(tmp_path)
    KNOWN.write_csv("known.csv")
    LEVELS.write_csv("levels.csv")
    assert shell(["grade", str(run), "--known", "known.csv", "--levels", "levels.csv", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["level"] for row in shown["levels"]] == ["A", "B", "C"]
    assert shell(["grade", str(run), "--quota", "A=25%,B=0.75", "--out", "grades.csv"]) == 0
    assert pl.read_csv("grades.csv")["level"].value_counts().sort("level")["count"].to_list() == [5, 15]
    assert shell(["grade", str(run), "--quota", "A=25%,B=75%", "--out", "grades.xlsx"]) == 0
    assert pl.read_excel("grades.xlsx", sheet_name="grades").height == 20
    assert shell(["grade", str(run), "--boundary", "A=S15"]) == 0
    assert "below A" in capsys.readouterr().out
    for wrong in (["--quota", "A=some"], ["--quota", "A"], ["--boundary", "A=S15,B="], ["--known", "levels.csv"]):
        assert shell(["grade", str(run), *wrong]) in (1, 2)
    message_snapshot(capsys.readouterr().err)


def test_known_texts_join_a_finished_run(tmp_path):
    samples = TEXTS.drop("mark")
    first = samples.filter(pl.int_range(pl.len()) % 4 != 0)
    line = {
        "judge": ps.SimulatedJudge("truth", seed=5),
        "run": tmp_path / "run.db",
        "fit": "laplace",
        "progress": "none",
    }
    before = ps.rank(first, reliability=0.7, **line)
    assert before.state.stop_reason == "btl_converged"
    known = samples.filter(pl.int_range(pl.len()) % 4 == 0)
    out = ps.rank(first, add=known, reliability=0.7, **line)
    assert out.items.height == 20
    asked = out.state.engine.committed - before.state.engine.committed
    assert 5 <= asked < before.state.engine.committed
    marks = TEXTS.select("ID", "mark").filter(pl.col("ID").is_in(known["ID"].implode()))
    assert ps.grade(tmp_path / "run.db", marks).known.height == 5
    with pytest.raises(ps.PairscaleError, match="data and add: ids must be unique; more than once"):
        ps.rank(first, add=first.head(2), **line)


def test_slips_and_the_short_sheet(run, grades, tmp_path):
    slips = grades.report(tmp_path / "slips.html", slips=True).read_text("utf-8")
    row = grades.items.row(3, named=True)
    slip = slips.split("</section>")[3]
    assert slip.count("Pupil") == 1
    assert f"Pupil {row['ID']}" in slip
    assert f"<b>{row['level']}</b>" in slip
    above, below = (grades.items["ID"][place] for place in (2, 4))
    assert f"<dt>next above</dt><dd>{above}</dd>" in slip
    assert f"<dt>next below</dt><dd>{below}</dd>" in slip
    private = (
        grades.report(tmp_path / "private.html", slips=True, private=True).read_text("utf-8").split("</section>")[3]
    )
    assert row["ID"] in private
    assert above not in private
    assert below not in private
    short = ps.report(run, out=tmp_path / "short.html", short=True).read_text("utf-8")
    assert short.count("<tr>") == 21
    assert "Judged by simulated" in short
    for wrong in ({"private": True}, {"slips": True, "short": True}, {"slips": True, "out": tmp_path / "slips.csv"}):
        with pytest.raises(ps.PairscaleError):
            ps.report(run, **{"out": tmp_path / "page.html", **wrong})
