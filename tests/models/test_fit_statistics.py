"""Infit and outfit against R's sirt on 24 sessions, by hand, and where judges are careless.

``golden/cj-sessions``: see test_bradley_terry.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pairscale.models.bradley_terry import fit_bt_model
from pairscale.models.fit_statistics import fit_statistics

SESSIONS_AT = Path(__file__).parents[1] / "golden" / "cj-sessions"
SESSIONS = sorted(path.stem for path in SESSIONS_AT.glob("*.csv"))


def session(name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    published = SESSIONS_AT / "published" / name / "sirt_btm.csv"
    return (
        pl.read_csv(SESSIONS_AT / f"{name}.csv", infer_schema=False),
        pl.read_csv(published, schema_overrides={"individual": pl.String}).rename({"individual": "ID"}),
    )


@pytest.mark.parametrize("name", SESSIONS)
def test_session_as_published(name: str) -> None:
    data, published = session(name)
    fit = fit_bt_model(data)
    found = fit_statistics(fit)
    # At sirt's own scores, which it rounds to four digits: the formulas are the same.
    theirs = fit.theta.drop("theta").join(published.select("ID", "theta"), on="ID", maintain_order="left")
    same = fit_statistics(replace(fit, theta=theirs)).items.join(published, on="ID", suffix="_sirt")
    assert same.height == published.height
    assert same["comparisons"].to_list() == same["Ntot"].to_list()
    for column in ("infit", "outfit"):
        assert same[column].to_numpy() == pytest.approx(same[f"{column}_sirt"].to_numpy(), rel=2e-4), column
    # At ours, to nine digits: as close as the scores.
    ours = found.items.join(published, on="ID", suffix="_sirt")
    assert ours["infit"].to_numpy() == pytest.approx(ours["infit_sirt"].to_numpy(), rel=0.01)
    assert ours["outfit"].to_numpy() == pytest.approx(ours["outfit_sirt"].to_numpy(), rel=0.03)
    assert found.judges is not None
    assert found.judges["comparisons"].sum() == data.height


def test_by_hand() -> None:
    games = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1), ("a", "c", 1), ("b", "a", 0), ("b", "c", 1)]
    data = [{"object1": x, "object2": y, "result": r, "judge": f"j{at % 2}"} for at, (x, y, r) in enumerate(games)]
    fit = fit_bt_model(data, engine="map")
    theta = dict(fit.theta.select("ID", "theta").iter_rows())
    squares: dict[str, list[tuple[float, float]]] = {}
    agreed: dict[str, list[float]] = {}
    for row in data:
        p = 1 / (1 + math.exp(theta[str(row["object2"])] - theta[str(row["object1"])]))
        square = ((row["result"] - p) ** 2, p * (1 - p))  # type: ignore[operator]
        for name in (row["object1"], row["object2"], row["judge"]):
            squares.setdefault(str(name), []).append(square)
        agreed.setdefault(str(row["judge"]), []).append(float((p > 0.5) == row["result"]))
    found = fit_statistics(fit)
    assert found.judges is not None
    for name, infit, outfit in [
        *found.items.select("ID", "infit", "outfit").iter_rows(),
        *found.judges.select("judge_id", "infit", "outfit").iter_rows(),
    ]:
        assert infit == pytest.approx(sum(s for s, _ in squares[name]) / sum(v for _, v in squares[name]))
        assert outfit == pytest.approx(np.mean([s / v for s, v in squares[name]]))
    for name, agreement in found.judges.select("judge_id", "agreement").iter_rows():
        assert agreement == pytest.approx(np.mean(agreed[name]))
    assert found.items.columns == ["ID", "comparisons", "infit", "outfit", "misfit", "reason"]
    assert found.judges.columns == ["judge_id", "comparisons", "infit", "outfit", "agreement", "misfit", "reason"]


def simulated(n_items: int, n_games: int, seed: int) -> tuple[pl.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, n_items)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    result = (rng.random(n_games) < 1 / (1 + np.exp(truth[second] - truth[first]))).astype(float)
    names = np.array([f"{at:03d}" for at in range(n_items)])
    return pl.DataFrame({"object1": names[first], "object2": names[second], "result": result}), rng


def test_a_careless_judge_is_flagged_in_words() -> None:
    data, rng = simulated(30, 4_000, 2)
    judge = rng.integers(0, 12, data.height)
    coin = np.where(judge == 5, rng.integers(0, 2, data.height), data["result"])
    data = data.with_columns(result=pl.Series(coin), judge_id=pl.Series([f"judge {at}" for at in judge]))
    judges = fit_statistics(fit_bt_model(data)).judges
    assert judges is not None
    assert judges["judge_id"][0] == "judge 5"
    assert judges.row(0, named=True)["misfit"]
    assert judges["reason"][0].startswith("decides against the scores more often than chance explains")
    assert judges["agreement"].arg_min() == 0
    assert judges["misfit"].sum() <= 2
    named = fit_statistics(fit_bt_model(data.rename({"judge_id": "who"})), judge="who").judges
    assert named is not None
    assert named.equals(judges)
