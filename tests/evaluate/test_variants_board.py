"""Which variants can be told apart; and a ranking of variants that comes back from its run file, and its page."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import pairscale as ps
from pairscale.evaluate.ranking import differences_of, saved_variants
from pairscale.reporting.verbs import kind_of

SUITE = ps.Suite.from_list([f"Question {n}?" for n in range(20)])


def variant(size, name):
    def answer(task):
        spread = int.from_bytes(f"{task.task_id}{name}".encode(), "big") % 7
        if name == "<b>frail</b>" and spread == 0:
            raise ValueError("no")
        return ps.Trace("x" * (size + spread), tokens=size, cost=0.001, duration_ms=5.0)

    return answer


NAMES = {"small": 4, "<b>frail</b>": 5, "middle & more": 8, "large": 12}


def longer(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"])), "cost": 0.0001}


def ranked(run=None):
    variants = {name: variant(size, name) for name, size in NAMES.items()}
    judge = ps.FunctionJudge(longer, name="longer")
    keys = [ps.pairwise_judge(judge, criterion=name, key=name) for name in ("says more", "helps more")]
    return ps.run_variants(SUITE, variants, comparators=keys, run=run, progress=False)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    run = tmp_path_factory.mktemp("variants") / "v.db"
    return run, ranked(run)


@pytest.mark.slow
def test_all_differences_hold_together_in_95_of_100_runs():
    """Five equal variants, 60 tasks; with intervals of one difference at a time, a quarter of the runs were wrong."""
    rng, names, wrong, runs = np.random.default_rng(7), "abcde", 0, 150
    for _ in range(runs):
        rows = [
            {"object1": one, "object2": two, "result": float(rng.integers(2))}
            for one, two in combinations(names, 2)
            for _ in range(60)
        ]
        fit = ps.fit_bt_model(rows, engine="firth", covariance=True)
        wrong += bool(differences_of(fit, 1)["differ"].any())
    assert 1 <= wrong <= 18, wrong


@pytest.mark.slow
def test_a_ranking_comes_back_from_its_run_file(kept):
    run, found = kept
    with ps.open_run(run) as store:
        assert kind_of(store) == "variants"
        back = saved_variants(store)
    assert back.variants == found.variants
    for key in found.keys:
        assert back.ranking(key).equals(found.ranking(key))
        assert back.alike(key) == found.alike(key)
    assert back.figures == found.figures
    assert found.figures["<b>frail</b>"].failures > 0
    assert found.figures["large"].answers == 20, "each answer counts once, however many pairs it is in"
    first = found.differences().row(0, named=True)
    theta = dict(found.ranking().select("variant", "theta").iter_rows())
    assert first["difference"] == pytest.approx(theta[first["variant"]] - theta[first["other"]])
    ranked(run)
    with ps.open_run(run) as store:
        assert store.log_length("ab_variants") == 1, "the same again is kept once"


@pytest.mark.slow
def test_the_page_has_board_groups_pairs_and_what_answers_took(message_snapshot, kept, tmp_path):
    run, found = kept
    page = ps.report(run, out=tmp_path / "v.html").read_text("utf-8")
    assert "<b>frail</b>" not in page
    assert "&lt;b&gt;frail&lt;/b&gt;" in page
    for words in ("Two by two", "mean tokens", "told apart", "says more", "helps more", "Bradley–Terry"):
        assert words in page
    assert page.count('<th scope="col">against</th>') == 2
    hidden = ps.report(run, out=tmp_path / "h.html", pseudonyms=True).read_text("utf-8")
    assert "middle &amp; more" not in hidden
    assert "V1" in hidden
    assert found.report(tmp_path / "r.html").exists()
    table = ps.report(run, out=tmp_path / "v.csv")
    assert pl.read_csv(table).height == 2 * len(NAMES)
    with pytest.raises(ps.errors.InputError) as refused:
        ps.report(run, again=tmp_path / "again.jsonl")
    message_snapshot(refused)
