"""One reader for files, labels and run files: what it takes, what it says, and what it asks back."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.people import LabelStore, label_table, read_cases
from pairscale.store.reading import labels_variants, read_comparisons

SESSIONS = Path(__file__).parents[1] / "golden" / "cj-sessions"
SAMPLES = ps.synthetic_essays(6, seed=1)


def labelled(folder: Path, criterion: str = "clarity") -> Path:
    """A run file with the labels of two people on all pairs of six essays; the longer id wins, and each has a tie."""
    ps.make_pairs(SAMPLES).write_csv(folder / "pairs.csv")
    cases = read_cases(folder / "pairs.csv", criterion=criterion)
    with LabelStore(folder / "people.db", cases, labellers=["ann", "bob"], labels_per_case=2, seed=1) as store:
        for who in store.labellers():
            for at in range(len(cases)):
                asked = store.next(who)
                case = next(case for case in cases if case.case_id == asked.case_id)
                best = "1" if case.ID1 > case.ID2 else "2"
                shown = {"1": "2", "2": "1"}[best] if asked.swapped else best
                store.answer(who, asked.question_id, "tie" if at == 3 else shown)
        label_table(store).write_ndjson(folder / "labels.jsonl")
    return folder / "people.db"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return labelled(tmp_path_factory.mktemp("people"))


def scores(data, **options):
    return [(name, round(x, 9)) for name, x in ps.fit(data, **options).theta.select("ID", "theta").rows()]


def bare(people: Path, **more: str) -> Path:
    """Labels as another tool may write them: cases by name, and no ids."""
    rows = [json.loads(line) for line in people.with_name("labels.jsonl").read_text("utf-8").splitlines()]
    path = people.with_name("bare.jsonl")
    kept = ("case_id", "labeller", "preferred", "criterion")
    path.write_text("\n".join(json.dumps({name: row[name] for name in kept} | more) for row in rows), "utf-8")
    return path


def test_labels_without_ids_need_their_pairs(message_snapshot, people):
    path = bare(people)
    with pytest.raises(InputError) as refused:
        ps.fit(path)
    message_snapshot(refused)
    assert scores(path, key=people.with_name("pairs.csv"), ties="half") == scores(people, ties="half")
    with pytest.raises(InputError) as refused:
        ps.fit([{"winner": "a", "loser": "b"}], key="pairs.csv")
    message_snapshot(refused)


def test_labels_of_a_manifest_compare_its_variants(tmp_path, caplog):
    rows = [{"case_id": f"t{at}", "criterion": "help", "preferred": said} for at, said in enumerate([1, 1, 2, "tie"])]
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    key = [{"case_id": f"t{at}", "first_variant": "ab"[at % 2]} for at in range(3)]
    (tmp_path / "labels.key.jsonl").write_text("\n".join(map(json.dumps, key)), "utf-8")
    assert read_comparisons(path).table["better_id"].to_list() == ["a", "b", "b"]
    assert "left out 1 label of cases that are not in the key" in caplog.text


def test_criteria_are_not_mixed(message_snapshot, people, tmp_path):
    rows = pl.read_ndjson(people.with_name("labels.jsonl"))
    both = pl.concat([rows, rows.with_columns(criterion=pl.lit("style"), case_id="s" + pl.col("case_id"))])
    both.write_ndjson(tmp_path / "labels.jsonl")
    with pytest.raises(InputError) as refused:
        ps.fit(tmp_path / "labels.jsonl")
    message_snapshot(refused)
    assert scores(tmp_path / "labels.jsonl", condition="style") == scores(people)
    assert ps.fit(tmp_path / "labels.jsonl", condition="all").theta["comparisons"].sum() == 2 * 56
    with pytest.raises(InputError) as refused:
        ps.fit(tmp_path / "labels.jsonl", condition="grammar")
    message_snapshot(refused)


def test_people_beside_a_judge(people, tmp_path):
    import shutil

    run = tmp_path / "both.db"
    shutil.copy(people, run)
    ps.judge(ps.make_pairs(SAMPLES), run=run, progress=False)
    assert "judged by lexical; labels of people are not among them" in read_comparisons(run).line
    assert scores(run, condition="people") == scores(people)


def test_imported_winners_have_drawn_sides(tmp_path, caplog):
    ids = SAMPLES["ID"].to_list()
    won = [{"winner": one, "loser": two, "judge": "ann"} for one in ids for two in ids if one < two]
    rows = [row | {"day": day} for day in range(4) for row in won]
    run = tmp_path / "run.db"
    assert ps.import_run(rows, run, SAMPLES) == 60
    first = ps.open_run(run).results().select(pl.col("ID1") == pl.col("better_id")).to_series()
    assert 15 < first.sum() < 45
    assert "so that no position is favoured" in caplog.text
    assert scores(run) == scores(rows)


@pytest.mark.parametrize("of_key", ["cp1251", "utf-8", "utf-16-le"])
def test_a_key_may_have_the_encoding_of_its_labels_or_be_utf_8(tmp_path, of_key):
    labels, key = tmp_path / "labels.csv", tmp_path / "key.csv"
    cases = "".join(f"дело {n}::ясность,дело {n},ясность,{who},{n % 2 + 1}\n" for n in range(4) for who in "аб")
    labels.write_text(f"case_id,task_id,criterion,labeller,preferred\n{cases}", "cp1251")
    firsts = "".join(f"дело {n}::ясность,дело {n},ясность,a\n" for n in range(4))
    key.write_text(f"case_id,task_id,criterion,first_variant\n{firsts}", of_key)
    if of_key == "utf-16-le":
        labels.write_text(labels.read_text("cp1251"), of_key)
    named = "cp1251" if of_key == "utf-8" else of_key
    assert read_comparisons(labels, key=key, encoding=named).table["better_id"].to_list() == ["a", "a", "b", "b"] * 2
    assert labels_variants(labels, key, named)
    assert ps.agreement(labels, key=key, encoding=named).by == "variant"
    people = ps.human_labels(labels, criterion="ясность", key="people", key_file=key, encoding=named)
    assert people.labels.height == 8
    said = {f"дело {n}": "да" for n in range(4)}
    found = ps.ab(said, said, labels=labels, key=key, criterion="ясность", encoding=named, progress=False)
    assert found.tally("ясность") == (2, 2, 0)
    ps.report(labels, out=tmp_path / "page.html", key=key, encoding=named)
    assert "дело 3" in (tmp_path / "page.html").read_text("utf-8")
