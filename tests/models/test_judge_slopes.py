"""Several judges on one scale, beside a slow reference and against known truth."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from validation import judges_slopes, slopes_calibration

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.models.bayes.fit import fit_btl
from pairscale.models.bayes.results import BayesFit


def panel(n: int, m: int, slopes: tuple[float, ...], seed: int, b: tuple[float, ...] = ()) -> pl.DataFrame:
    """Results of judges with these slopes, m comparisons each, of texts whose scores have a standard deviation of 1."""
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.normal(0, 1, n))
    parts = []
    for number, slope in enumerate(slopes):
        first = rng.integers(0, n, m)
        second = (first + rng.integers(1, n, m)) % n
        logit = slope * (truth[first] - truth[second]) + (b[number] if b else 0.0)
        won = rng.random(m) < 1 / (1 + np.exp(-logit))
        names = np.array([f"S{at:03d}" for at in range(n)])
        ids = {"ID1": names[first], "ID2": names[second], "better_id": names[np.where(won, first, second)]}
        parts.append(pl.DataFrame({**ids, "judge_id": [f"J{number}"] * m}))
    return pl.concat(parts)


fit_slopes = partial(fit_btl, model_variant="btl_b", prior_sd="learned", repeats="learned")


def fitted(rows: Any, **options: Any) -> BayesFit:
    found = ps.fit(rows, "bayes", judges="slopes", **options)
    assert isinstance(found, BayesFit)
    return found


# The fit


@pytest.fixture(scope="module")
def four() -> BayesFit:
    return fitted(panel(15, 250, (1.8, 1.0, 0.9, 0.0), 5, (0.6, 0.0, 0.0, 0.0)), seed=2)


def test_the_table_of_judges(four: BayesFit) -> None:
    judges = four.judges
    assert judges is not None
    assert judges.columns == [
        "judge_id", "n", "slope", "lower", "upper", "position", "position_lower", "position_upper", "weak",
    ]  # fmt: skip
    assert judges["judge_id"].to_list()[0] == "J0"
    assert judges["judge_id"].to_list()[-1] == "J3"
    assert judges["n"].to_list() == [250] * 4
    assert judges["weak"].to_list() == [False, False, False, True]
    assert judges["slope"].is_sorted(descending=True)
    assert judges["slope"].mean() == pytest.approx(1, abs=0.02)
    assert judges.select((pl.col("lower") < pl.col("slope")) & (pl.col("slope") < pl.col("upper"))).to_series().all()
    first = judges.row(0, named=True)
    assert first["position_lower"] < 0.6 < first["position_upper"]
    assert first["position_lower"] > 0


@pytest.mark.slow
def test_equal_judges_give_the_scores_of_a_pooled_fit() -> None:
    rows = panel(8, 150, (1.0, 1.0), 7)
    slopes, pooled = fitted(rows, seed=1), ps.fit(rows, "bayes", variant="btl_b", seed=1)
    assert isinstance(pooled, BayesFit)
    assert pooled.judges is None
    one, two = (found.fit.posterior.items.theta_mean for found in (slopes, pooled))
    assert one == pytest.approx(two, abs=0.12)
    assert slopes.judges is not None
    assert (slopes.judges["lower"] < 1).all()
    assert (slopes.judges["upper"] > 1).all()


@pytest.mark.slow
def test_a_judge_who_prefers_the_worse_text_is_weak() -> None:
    found = fitted(panel(8, 120, (1.5, 1.2, -1.0), 9), seed=1).judges
    assert found is not None
    assert found["judge_id"][-1] == "J2"
    assert found["upper"][-1] < 0
    assert found["weak"].to_list() == [False, False, True]


@pytest.mark.slow
def test_repeats_of_a_judge_count_by_what_they_add_and_those_of_two_judges_in_full() -> None:
    drawn = panel(12, 60, (1.0, 1.0), 11)
    low, high = pl.min_horizontal("ID1", "ID2"), pl.max_horizontal("ID1", "ID2")
    once = drawn.filter(pl.struct(low.alias("low"), high.alias("high")).is_first_distinct())
    ids = once["ID1"].append(once["ID2"]).unique().sort().to_list()
    again = fit_slopes(pl.concat([once] * 4), ids, seed=1)
    assert again.repeat_agreement.n_repeats == 3 * once.height
    assert again.repeat_agreement.agreement == 1
    assert again.repeat_agreement.rho > 0.95
    single = fit_slopes(once, ids, seed=1)
    assert single.repeat_agreement.n_repeats == 0
    widths = [float(found.posterior.theta.std(axis=0).mean()) for found in (again, single)]
    assert widths[0] == pytest.approx(widths[1], rel=0.1)  # three copies add nothing
    three = pl.concat([once.with_columns(judge_id=pl.lit(name)) for name in ("a", "b", "c")])
    assert fit_slopes(three, ids, seed=1).repeat_agreement.n_repeats == 0
    assert fit_slopes(pl.concat([once] * 2), ids, seed=1, repeats=0.5).repeat_agreement.how == "given"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answer": "probability"}, "does not take ties or judges='slopes'"),
        ({"engine": "laplace"}, "does not take engine='laplace'"),
        ({"prior_sd": 1.0}, "a number for prior_sd"),
        ({"variant": "btl_e_b"}, "lapses"),
    ],
)
def test_options_that_it_does_not_take_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fitted(panel(5, 20, (1.0, 1.0), 1), **options)


def test_tables_that_do_not_say_who_judged_are_refused() -> None:
    rows = panel(5, 20, (1.0, 1.0), 1)
    blank = pl.when(pl.int_range(pl.len()) < 3).then(pl.lit(" ")).otherwise("judge_id")
    wrong = (rows.drop("judge_id"), rows.with_columns(judge_id=pl.lit("J0")), rows.with_columns(judge_id=blank))
    for table in wrong:
        with pytest.raises(InputError, match="it needs a column judge_id or judge"):
            fitted(table)
    with pytest.raises(InputError, match="belongs to model='bayes'"):
        ps.fit(rows, judges="slopes")
    with pytest.raises(InputError, match="judges must be"):
        ps.fit(rows, "bayes", judges="each")  # type: ignore[arg-type]


# Against known truth


@pytest.mark.slow
def test_slopes_rank_better_than_pooling_and_name_the_judge_who_guesses() -> None:
    """Three of the panels of docs/validation.md."""
    found = [judges_slopes.run(seed, 8) for seed in range(3)]
    assert all(row["slopes"] > row["pooled"] for row in found)
    assert [[row[f"weak_{slope:g}"] for slope in judges_slopes.SLOPES] for row in found] == [[0, 0, 0, 1]] * 3
    assert np.mean([row[f"covered_{slope:g}"] for row in found for slope in judges_slopes.SLOPES]) > 0.7
    assert "| 8 | 3 |" in "\n".join(judges_slopes.table(found))


@pytest.mark.slow
def test_a_data_set_of_the_calibration_is_the_one_that_is_kept() -> None:
    [kept] = [row for row in slopes_calibration.kept() if row["number"] == 0]
    made = slopes_calibration.calibrated(0)
    for name in slopes_calibration.PARAMETERS:  # another machine's rounding makes other draws
        assert made[name] == pytest.approx(kept[name], abs=0.15), name


@pytest.mark.validate
def test_the_posterior_is_calibrated_by_simulation() -> None:
    rows = slopes_calibration.run(slopes_calibration.SETS)
    assert np.mean([row["diagnostics"] for row in rows]) > 0.98
    for name, (p, covered) in slopes_calibration.figures(rows).items():
        assert p > 0.01, name
        assert covered == pytest.approx(0.9, abs=0.06), name
