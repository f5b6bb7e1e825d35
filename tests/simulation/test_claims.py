"""The suite behind the claims: rows are kept with what made them, and cells are held against the demands."""

import random

import pytest
from validation import claims, rows
from validation.claims_tables import Cell, figures, tables
from validation.rows import KeptRows

CLEAN = Cell("clean", 40, 2.5, "pollitt", 40)


def made(cell, preset, seed, **other):
    """A row that meets every demand, but for what is given."""
    row = {
        "cell": cell.name, "preset": preset, "seed": seed, "claimed": 0.91, "true": 0.905, "theta": 0.95, "rank": 0.96,
        "theta_width": 1.2, "rank_width": 11.0, "comparisons": 500 if preset == "pairscale" else 1000, "pairs": 300,
        "stop_reason": "btl_converged", "path": "100:0.5000 300:0.8000 500:0.9000",
    }  # fmt: skip
    return row | other


def runs_of(cell, n=12, document=None, **ours):
    noise = random.Random(1)
    found = []
    for seed in range(n):
        little = noise.uniform(-0.002, 0.002)
        found.append(made(cell, "pairscale", seed, **{name: value + little for name, value in ours.items()}))
        found.append(made(cell, "pairwiseLLM", seed, **(document or {})))
    return found


def test_a_cell_that_keeps_its_promises_misses_nothing():
    found = figures(CLEAN, runs_of(CLEAN))
    assert found.missed == ()
    assert (found.runs, found.ratio.mean, found.is_honest) == (12, 0.5, True)


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ({"claimed": 0.95}, "claims +0.045"),
        ({"claimed": 0.87}, "claims -0.035"),
        ({"theta": 0.92}, "covers 0.920 ± 0.001 of the scores (at least 0.93)"),
        ({"theta": 0.99}, "of the scores (at most 0.985)"),
        ({"rank": 0.92}, "of the ranks (at least 0.93)"),
        ({"comparisons": 700}, "needs 0.70 ± 0.00 of the document's comparisons (at most 0.6)"),
    ],
)
def test_a_bound_outside_of_the_interval_is_a_miss(ours, said):
    (missed,) = figures(CLEAN, runs_of(CLEAN, **ours)).missed
    assert said in missed


def test_judges_that_the_model_does_not_fit_have_a_lower_bound():
    cell = Cell("noisy_texts", 40, 1.0, "information", 40)
    assert figures(cell, runs_of(cell, theta=0.91, rank=0.91)).missed == ()
    assert len(figures(cell, runs_of(cell, theta=0.89, rank=0.89)).missed) == 2


def test_where_the_document_is_off_comparisons_are_those_to_its_true_reliability():
    found = figures(CLEAN, runs_of(CLEAN, document={"claimed": 0.9, "true": 0.85}))
    assert not found.is_honest
    assert found.ratio.mean == pytest.approx(0.4)  # half-way between 300 and 500


def test_one_table_per_demand_and_the_misses_by_name():
    cells = [CLEAN, Cell("repeatable", 40, 1.0, "information", 40)]
    kept = {cells[0].name: runs_of(cells[0], claimed=0.95), cells[1].name: runs_of(cells[1])}
    told = tables(cells, kept)
    assert told.count("| judge | N | SD |") == 3
    assert "24 of 80 runs" in told
    assert "- clean, N = 40, SD 2.5, `pollitt`: claims +0.045" in told
    assert tables(cells, {cell.name: [] for cell in cells}) == "no cell has 3 runs yet"


def test_rows_of_another_engine_are_left_out(tmp_path, monkeypatch):
    kept = KeptRows(tmp_path / "claims.csv", claims.COLUMNS)
    monkeypatch.setattr(claims, "is_present", lambda made_by, preset, selector: made_by == f"{preset}-{selector}")
    kept.append(made(CLEAN, "pairscale", 10_000), "pairscale-pollitt")
    kept.append(made(CLEAN, "pairscale", 10_001), "1234567e10")
    fresh, stale = claims.kept(kept)
    assert [row["seed"] for row in fresh[CLEAN.name]] == [10_000]
    assert [(row["seed"], row["made_by"]) for row in stale] == [(10_001, "1234567e10")]
    kept.drop(stale)
    assert [row["seed"] for row in kept.read()] == [10_000]
    assert kept.read()[0]["claimed"] == 0.91


def test_cells_take_turns_and_what_is_there_is_not_made_again(tmp_path, monkeypatch):
    kept, asked = KeptRows(tmp_path / "claims.csv", claims.COLUMNS), []
    monkeypatch.setattr(claims, "signed", lambda preset, selector: "same")
    monkeypatch.setattr(claims, "is_present", lambda made_by, preset, selector: True)

    def run_once(cell, preset, seed):
        asked.append((cell.judge, seed, preset))
        return made(cell, preset, seed)

    monkeypatch.setattr(claims, "run_once", run_once)
    two = [Cell("clean", 40, 1.0, "pollitt", 2), Cell("repeatable", 40, 1.0, "pollitt", 1)]
    kept.append(made(two[0], "pairscale", 10_000), "same")
    claims.run_all(two, kept, float("inf"), ("pairscale",))
    assert asked == [("repeatable", 10_000, "pairscale"), ("clean", 10_001, "pairscale")]
    claims.run_all(two, kept, 0.0, ("pairscale", "pairwiseLLM"))
    assert len(asked) == 2


def test_a_changed_setting_other_answers_and_other_choices_make_rows_stale(tmp_path, monkeypatch):
    file = tmp_path / "made_by.json"
    present = {"settings": {"reverse_rate": "0.1"}, "answers": "a", "choices": "c"}
    monkeypatch.setattr(rows, "_present", lambda preset, selector: present)
    name = rows.signed("pairscale", "pollitt", file)
    assert rows.signed("pairscale", "pollitt", file) == name
    assert rows.is_present(name, "pairscale", "pollitt", file)
    assert not rows.is_present("another", "pairscale", "pollitt", file)
    for change in ({"settings": {"reverse_rate": "0.2"}}, {"settings": {}}, {"answers": "b"}, {"choices": "d"}):
        monkeypatch.setattr(rows, "_present", lambda preset, selector, change=change: present | change)
        assert not rows.is_present(name, "pairscale", "pollitt", file)
    more = {"settings": {"reverse_rate": "0.1", "added": "1"}}  # the engine chooses the same pairs with it
    monkeypatch.setattr(rows, "_present", lambda preset, selector: present | more)
    assert rows.is_present(name, "pairscale", "pollitt", file)
