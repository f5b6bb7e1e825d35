"""Agreement by variant and by position: one rule for labels, for runs and for the command."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from tests.evaluate.sides import write

import pairscale as ps
from pairscale.core.errors import FileFormatError, InputError, TableError
from pairscale.reporting.ab import result_of_labels
from pairscale.reporting.labels import _with_key as with_key
from pairscale.reporting.labels import label_alpha


def labels_of(n=1000, share=0.9, people=("ann", "bob"), seed=1, *, with_key=True):
    """Labellers who each choose B so often, independently of each other; which side B stands on is random."""
    rng = np.random.default_rng(seed)
    first = rng.choice(["a", "b"], n)
    rows = []
    for who, k in product(people, range(n)):
        winner = "b" if rng.random() < share else "a"
        row = {"case_id": f"t{k}::helpful", "labeller": who, "preferred": "1" if winner == first[k] else "2"}
        rows.append(row | ({"first_variant": str(first[k])} if with_key else {}))
    return rows


def kappa_of(found):
    return found.table.filter(statistic="cohen_kappa")["estimate"].item()


def test_two_who_favour_b_independently_do_not_agree_by_variant():
    found = ps.agreement(labels_of(), n_boot=0)
    assert found.by == "variant"
    # By variant chance explains all; by side .82 agree where .5 would by chance: (.82 - .5) / .5 = .64.
    assert kappa_of(found) == pytest.approx(0, abs=0.1)
    assert kappa_of(ps.agreement(labels_of(with_key=False), n_boot=0)) == pytest.approx(0.64, abs=0.08)


def test_the_key_beside_the_labels_or_named_is_used(tmp_path):
    rows = labels_of(40)
    key = [{"case_id": row["case_id"], "first_variant": row["first_variant"]} for row in rows[:40]]
    bare = write(tmp_path / "labels.jsonl", labels_of(40, with_key=False))
    other = write(tmp_path / "somewhere.jsonl", key)
    blind = ps.agreement(bare, n_boot=0)
    assert blind.by == "position"
    assert "no key says which variant stands first" in blind.notices[0]
    named = ps.agreement(bare, n_boot=0, key=other)
    write(tmp_path / "labels.key.jsonl", key)
    beside = ps.agreement(bare, n_boot=0)
    assert named.by == beside.by == "variant"
    assert kappa_of(named) == kappa_of(beside) == kappa_of(ps.agreement(rows, n_boot=0))


def test_what_cannot_be_is_refused(message_snapshot, tmp_path):
    bare = labels_of(5, with_key=False)
    with pytest.raises(TableError, match="preferred is 'left'"):
        ps.agreement([row | {"preferred": "left"} for row in labels_of(5)])
    half = write(tmp_path / "half.jsonl", [{"case_id": "t0::helpful", "first_variant": "a"}])
    with pytest.raises(TableError) as refused:
        ps.agreement(bare, key=half)
    message_snapshot(refused)


# The same of a run.


def run_of(judge, people, firsts):
    """A judge of both orders and a person, case by case; the judge's answers may be graded."""
    cases = []
    for n, (said, label, first) in enumerate(zip(judge, people, firsts, strict=True)):
        outcome = ps.PairwiseOutcome(said)
        kind = ps.Outcome.TIE if outcome.winner == "tie" else ps.Outcome.WIN
        cases.append(ps.PairwiseCase(f"t{n}", "judge", outcome.winner, "", {}, kind, preference=outcome.preference))
        cases.append(ps.PairwiseCase(f"t{n}", "people", label, "", {"first_variant": first}, ps.Outcome.WIN))
    return ps.PairwiseRunResult("r", tuple(cases), ("judge", "people"))


def test_a_run_and_its_labels_follow_the_same_rule():
    rows = labels_of(100, 0.8)
    ann, bob = rows[:100], rows[100:]
    winner = [
        ["b" if (row["preferred"] == "1") == (row["first_variant"] == "b") else "a" for row in who]
        for who in (ann, bob)
    ]
    run = run_of(winner[0], winner[1], [row["first_variant"] for row in ann])
    found = run.agreement("judge", "people")
    assert found.cohen_kappa == pytest.approx(kappa_of(ps.agreement(rows, n_boot=0)))
    assert sum(one["n"] for one in found.confusion) == 100


# A file of labels, reported.


def test_a_file_of_labels_with_a_judge_is_a_comparison(tmp_path):
    rows = labels_of(40, 0.7, people=("ann", "bob", "cem", "openai:gpt-5.1"))
    path = write(tmp_path / "labels.jsonl", rows)
    found = result_of_labels(path)
    assert found.keys == ("openai:gpt-5.1", "people")
    assert found.win_rate("openai:gpt-5.1").n == 40
    named = result_of_labels(path, "ann")
    assert named.keys == ("ann", "people")
    assert len(next(named.of("people")).detail["labels"]) == 3
    page = ps.report(path).read_text("utf-8")
    assert "Judge and people" in page
    agreed = found.agreement("openai:gpt-5.1", "people")
    assert f"and people agree in {round(agreed.rate * agreed.n)} of {agreed.n} cases" in page
    assert f"Where they differ: {len(agreed.disagreements)} cases" in page


def test_a_file_of_labels_without_a_judge_shows_the_labellers(message_snapshot, tmp_path):
    path = write(tmp_path / "labels.jsonl", labels_of(30, 0.7))
    assert result_of_labels(path).keys == ("ann", "bob")
    assert "Judge and people" not in ps.report(path).read_text("utf-8")
    with pytest.raises(InputError) as refused:
        ps.report(path, condition="cem")
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.report(path, kind="bias")
    message_snapshot(refused)
    with pytest.raises(FileFormatError) as refused:
        ps.report(write(tmp_path / "blind.jsonl", labels_of(3, with_key=False)))
    message_snapshot(refused)


@pytest.mark.slow
def test_a_page_without_names_names_no_labeller(tmp_path):
    for people in (("zuleika", "bohumil", "lexical"), ("zuleika", "bohumil")):
        path = write(tmp_path / "labels.jsonl", labels_of(30, 0.7, people=people))
        assert "bohumil" in ps.report(path).read_text("utf-8") or "lexical" in people
        page = ps.report(path, pseudonyms=True, without_texts=True).read_text("utf-8")
        assert not {name for name in people[:2] if name in page}


def test_labels_of_a_run_file_are_reported_by_variant_where_the_key_lies_beside_it(tmp_path):
    rows = labels_of(40, with_key=False)
    table = pl.DataFrame([row | {"criterion": "helpful", "ID1": None, "skipped": None} for row in rows])
    run = str(tmp_path / "people.db")
    assert "first_variant" not in with_key(table, run).columns
    key = {row["case_id"]: row["first_variant"] for row in labels_of(40)}
    write(tmp_path / "people.key.jsonl", [{"case_id": name, "first_variant": one} for name, one in key.items()])
    known = with_key(table, run)
    alpha, _, units = label_alpha(known.to_dicts())
    assert units == 40
    expected = ps.agreement(labels_of(40), n_boot=0).table.filter(statistic="krippendorff_alpha")["estimate"].item()
    assert alpha == pytest.approx(expected)
