"""What the owner is told, by hand-counted figures."""

import polars as pl
import pytest
from labelling import make_cases

import pairscale as ps
from pairscale.people import LabelStore, label_table
from pairscale.people.overview import overview


@pytest.fixture
def labelled(tmp_path):
    """A way to enter labels by case and labeller; each decision takes a second unless it is said otherwise."""
    now = [0.0]
    cases = make_cases(10)
    with LabelStore(tmp_path / "l.db", cases, labels_per_case=2, seed=1, clock=lambda: now[0]) as store:

        def enter(name: str, choices: dict[int, str], seconds: float = 1.0) -> None:
            """Choices by the number of the case, in the manifest's order; ``skip`` skips."""
            person = store.add_labeller(name)
            numbers = {case.case_id: at for at, case in enumerate(cases)}
            held = []
            while len(held) < len(choices) and not isinstance(found := store.next(person), str):
                at = numbers[found.case_id]
                now[0] += seconds
                if at not in choices:
                    store.answer(person, found.question_id, None, skipped="not this one")
                    continue
                held.append(at)
                wanted = choices[at]
                if wanted == "skip":
                    store.answer(person, found.question_id, None, skipped="cannot tell")
                else:
                    turned = {"1": "2", "2": "1"}.get(wanted, wanted) if found.swapped else wanted
                    store.answer(person, found.question_id, turned)

        yield store, {case.case_id: case for case in cases}, enter


def test_figures_by_hand(labelled):
    store, _cases, enter = labelled
    enter("ann", dict.fromkeys(range(8), "1") | {8: "2", 9: "tie"})
    enter("bob", dict.fromkeys(range(7), "1") | {7: "2", 8: "2", 9: "skip"})
    view = overview(store)
    assert (view.labels, view.wanted) == (19, 20)
    ann, bob = view.labellers
    assert (ann.labels, ann.ties, ann.skipped, ann.sided) == (10, 1, 0, 9)
    assert (bob.labels, bob.ties, bob.skipped, bob.sided) == (9, 0, 1, 9)
    (criterion,) = view.criteria
    assert (criterion.cases, criterion.complete, criterion.labels) == (10, 9, 19)
    assert (criterion.ties, criterion.skipped, criterion.n_units) == (1, 1, 9)
    table = label_table(store).filter(pl.col("preferred").is_not_null())
    found = ps.agreement(table, unit="case_id", rater="labeller", label="preferred", n_boot=0)
    expected = dict(found.table.select("statistic", "estimate").iter_rows())
    assert criterion.alpha == pytest.approx(expected["krippendorff_alpha"])
    # Nine cases in common: they agree on seven 1s and one 2, and differ on one.
    (pair,) = view.pairs
    assert (pair["n_units"], pair["percent_agreement"]) == (9, pytest.approx(8 / 9))
    chance = (8 * 7 + 1 * 2) / 81
    assert pair["cohen_kappa"] == pytest.approx((8 / 9 - chance) / (1 - chance))
    assert view.stuck == 1  # bob skipped the last one, and there is nobody else
    store.add_labeller("eve")
    assert overview(store).stuck == 0
