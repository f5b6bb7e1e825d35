"""Results that are in no run file: every form that ``fit`` takes can be reported and exported."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import fastexcel
import polars as pl
import pytest
from tests.reporting.html_page import require_valid

import pairscale as ps
from pairscale.core.errors import InputError, TableError

ROWS = [*(("ann", *pair) for pair in ("ab", "bc", "ac")), *(("bob", *pair) for pair in ("ba", "cb", "ac"))]
WON = pl.DataFrame(ROWS, ["judge", "winner", "loser"], orient="row")  # every second row is turned below
FIRST, SECOND = (
    pl.when(pl.int_range(pl.len()) % 2 == 0).then(one).otherwise(two)
    for one, two in (("winner", "loser"), ("loser", "winner"))
)
SIDES = WON.select("judge", "winner", first=FIRST, second=SECOND)
RESULT = (pl.col("winner") == pl.col("first")).cast(pl.Int64)
FORMS = {
    "ours.csv": SIDES.select("judge", ID1="first", ID2="second", better_id="winner"),
    "canonical.parquet": SIDES.select("judge", A_id="first", B_id="second", better_id="winner"),
    "r.csv": SIDES.select("judge", object1="first", object2="second", result=RESULT),
    "wins.tsv": WON,
    "session.csv": WON.select("judge", candidate_chosen="winner", candidate_not_chosen="loser"),
    "arena.jsonl": SIDES.select(
        "judge", model_a="first", model_b="second",
        winner=pl.when(RESULT == 1).then(pl.lit("model_a")).otherwise(pl.lit("model_b")),
    ),
    "alpaca.json": SIDES.select(
        annotator="judge", generator_1="first", generator_2="second", preference=2 - RESULT,
        instruction=pl.format("task {}", pl.int_range(pl.len())),
    ),
    "labels.jsonl": SIDES.select(
        labeller="judge", case_id=pl.format("{}{}", "first", "second"), ID1="first", ID2="second",
        preferred=pl.when(RESULT == 1).then(pl.lit("1")).otherwise(pl.lit("2")),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(name: str) -> Path:
    frame, path = FORMS[name], Path(name)
    {
        ".csv": frame.write_csv,
        ".tsv": lambda to: frame.write_csv(to, separator="\t"),
        ".parquet": frame.write_parquet,
        ".jsonl": frame.write_ndjson,
        ".json": frame.write_json,
    }[path.suffix](path)
    return path


FAST = ("session.csv", "arena.jsonl", "labels.jsonl")


@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(FORMS.keys() - FAST))]
)
def test_every_form_is_reported_and_exported_as_it_is_fitted(name):
    path = written(name)
    theta = ps.fit(path).theta.select("ID", "theta")
    page = ps.report(path)
    assert page == path.with_suffix(".html")
    source = page.read_text("utf-8")
    require_valid(source)
    assert "Judged by ann and bob" in source
    items = pl.read_csv(ps.report(path, out="items.csv"))
    assert dict(items.select("ID", "theta").rows()) == pytest.approx(dict(theta.rows()))
    again = ps.fit(ps.export(path, "again.csv"))
    assert dict(again.theta.select("ID", "theta").rows()) == pytest.approx(dict(theta.rows()))
    said = "not known: the results do not say who stood first" in source
    assert said == (name in {"wins.tsv", "session.csv", "alpaca.json", "labels.jsonl"})


def test_a_session_without_texts_has_its_judges_and_no_texts(message_snapshot):
    ps.report(written("session.csv"), out="session.html")
    source = Path("session.html").read_text("utf-8")
    assert "Two texts side by side" not in source
    assert re.search(r"<td>ann</td><td class=\"n\">3</td><td class=\"n\">\d\.\d\d</td>", source)
    assert "pairscale label" not in source
    sheets = fastexcel.read_excel(ps.report("session.csv", out="session.xlsx"))
    assert sheets.sheet_names == ["ranking", "comparisons", "method"]
    with pytest.raises(InputError) as refused:
        ps.report("session.csv", again="again.jsonl")
    message_snapshot(refused)
    shared = ps.report("session.csv", out="shared.html", pseudonyms=True).read_text("utf-8")
    shown = re.sub(r"<(style|script).*?</\1>", "", shared, flags=re.DOTALL)
    assert not re.search(r"\b(ann|bob|session\.csv)\b", shown)
    assert re.search("Judged by (J1 and J2|J2 and J1)", shown)


def test_texts_of_results(message_snapshot, caplog):
    texts = pl.DataFrame({"ID": ["a", "b", "z"], "text": ["Rain fell.", "Snow fell.", "No one read this."]})
    source = ps.report(written("session.csv"), samples=texts).read_text("utf-8")
    assert "Two texts side by side" in source
    assert "samples: no text of 'c'" in caplog.text
    with pytest.raises(InputError) as refused:
        ps.report("session.csv", samples=texts[2:])
    message_snapshot(refused)
    three = texts.with_columns(ID=pl.Series(["a", "b", "c"]))
    rows = ps.export(WON[1:3], "pairs.jsonl", kind="preferences", samples=three, prompt="Write!")
    assert [json.loads(line)["chosen"] for line in rows.read_text("utf-8").splitlines()] == ["Snow fell.", "Rain fell."]
    with pytest.raises(InputError) as refused:
        ps.export("session.csv", "pairs.jsonl", kind="preferences")
    message_snapshot(refused)


def test_what_belongs_to_tables_is_refused_for_a_run_file(message_snapshot):
    ps.judge(ps.make_pairs(ps.synthetic_essays(3, seed=1)), run="run.db", progress=False)
    for verb in (ps.report, lambda run, **given: ps.export(run, "out.csv", **given)):
        for name in ("samples", "a_col", "encoding", "key"):
            with pytest.raises(InputError) as refused:
                verb("run.db", **{name: "x"})
            message_snapshot(refused)
    written("session.csv")
    with pytest.raises(InputError) as refused:
        ps.report("session.csv", kind="bias")
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.report("session.csv", kind="ab")
    message_snapshot(refused)


def test_a_judge_asked_about_a_pair_on_several_tasks_is_compared_task_by_task(message_snapshot, caplog):
    rows = [
        {"question_id": task, "model_a": "x", "model_b": "y", "winner": winner, "judge": judge}
        for judge, winners in (("ann", "aab"), ("bob", "abb"))
        for task, winner in enumerate(f"model_{one}" for one in winners)
    ]
    found = ps.agreement(rows, n_boot=0)
    assert (found.n_units, found.n_raters) == (3, 2)
    assert found.table["estimate"][0] == pytest.approx(2 / 3)
    assert (
        "each pair and question_id is a unit, each judge a rater, and the label says which of the two won"
        in caplog.text
    )
    both = [{**row, "model_a": "y", "model_b": "x"} for row in rows]  # and in the other order
    assert ps.agreement([*rows, *both], n_boot=0).n_units == 3  # the first answer counts
    alone = [{name: value for name, value in row.items() if name != "question_id"} for row in rows]
    with pytest.raises(TableError) as refused:
        ps.agreement(alone, n_boot=0)
    message_snapshot(refused)


@pytest.mark.parametrize("verb", ["fit", "report", "export", "import", "bias", "agreement", "label"])
def test_every_table_of_results_may_have_another_encoding(verb, monkeypatch):
    """Without a mark, and so not to be guessed."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    text = "ID1,text1,ID2,text2,better_id,judge\nä,x,ö,y,ä,ann\nö,y,ä,x,ä,ann\n"
    text += "" if verb == "bias" else "ä,x,ö,y,ö,bob\nö,y,ä,x,ä,bob\n"
    Path("r.csv").write_bytes(text.encode("utf-16-le"))
    texts = pl.DataFrame({"ID": ["ä", "ö"], "text": ["x", "y"]})
    verbs = {
        "fit": lambda **given: ps.fit("r.csv", **given).theta["ID"].to_list(),
        "report": lambda **given: pl.read_csv(ps.report("r.csv", out="i.csv", **given))["ID"].to_list(),
        "export": lambda **given: pl.read_csv(ps.export("r.csv", "o.csv", **given))["ID1"].unique().sort().to_list(),
        "import": lambda **given: ["ä", "ö"][: ps.import_run("r.csv", "r.db", texts, **given)],
        "bias": lambda **given: ["ä", "ö"][: 2 * ps.bias("r.csv", **given).details.height],
        "agreement": lambda **given: list(ps.agreement("r.csv", n_boot=0, **given).categories),
        "label": lambda **given: ["ä", "ö"][: ps.label("r.csv", run="l.db", terminal=True, **given).wanted + 1],
    }
    with pytest.raises(InputError, match="encoding"):
        verbs[verb]()
    assert verbs[verb](encoding="utf-16-le") == ["ä", "ö"]


def test_an_import_that_is_refused_leaves_no_file(message_snapshot):
    with pytest.raises(TableError) as refused:
        ps.import_run(written("session.csv"), "new.db")
    message_snapshot(refused)
    with pytest.raises(InputError):
        ps.import_run("missing.csv", "new.db")
    assert not Path("new.db").exists()
