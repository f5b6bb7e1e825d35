"""The engines mle, map and firth against R's BradleyTerry2, other packages, and a slow and obvious optimiser.

The golden figures are those of R's BradleyTerry2 by way of pairwiseLLM 1.3.0.
"""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import evalica
import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pairscale.core.errors import FitError, InputError, TableError
from pairscale.models import linalg
from pairscale.models.bradley_terry import BTFit, fit_bt_model

GOLDEN = Path(__file__).parents[1] / "golden"
LIKELIHOOD = ("mle", "map", "firth")

# fit_bt_model_BradleyTerry2.json: first, second, and which of the two won; then theta and se of S01 to S08.
EIGHT = """
    121 131 142 151 161 171 181 232 242 251 261 271 281 341 351 361 371 381 451 462 472 481 561 571 581 671 681
    782 211 312 412 511 612 711 811 322 422 522 622 722 822 431 532 632 732 832 542 641 742 842 651 752 852 762
    862 871 121 131 141 151 161 171 181 232 242 252 262 271 282 342 352 361 371 381 451 462 471 481 561 571 582
    672 681 781
"""
EIGHT_THETA = (
    0.0, -0.831923894040603, -0.43454532087379, -0.636015046545118, -1.21803486004768, -1.21803486004776,
    -2.52532746936365, -2.27077633278556,
)  # fmt: skip
EIGHT_SE = (
    0.0, 0.663519078768896, 0.665120811748996, 0.662856241406756, 0.672073354928475, 0.672073358304015,
    0.769900848387061, 0.741248552304047,
)  # fmt: skip

# fit_bt_model_example_writing_pairs_raw.json: which won, for all pairs of S01 to S20 in order.
TWENTY = """
    2221222222222222222112222222222222222222222222222222222222222222222222212222222222222222222222222222
    222122222222222222221222122222222222221222222222222222222222222112222221222122222212122112
"""
TWENTY_THETA = (
    0.0, 1.90079864534206, -3.88177855512808e-15, 0.993999380877062, 2.79126444886332, 3.67591836470698,
    4.53868972318283, 6.03808639407855, 6.66430128486865, 6.66430128486865, 7.25062904944885, 7.25062904944885,
    9.47655749816628, 8.93293796763993, 9.47655749816628, 9.47655749816628, 10.0348069547087, 12.2507601859953,
    10.6428913640392, 12.2507601859953,
)  # fmt: skip
TWENTY_SE = (
    0.0, 1.58483943546484, 1.4857213662364, 1.48349944145348, 1.70729202872011, 1.82531399994329, 1.92873234212533,
    2.05067215976983, 2.07788817681678, 2.07788817681678, 2.10021442548232, 2.10021442548232, 2.19192611290949,
    2.17006680611726, 2.19192611290949, 2.19192611290949, 2.21791796177058, 2.45070574530099, 2.25665172744616,
    2.45070574530099,
)  # fmt: skip


def eight() -> list[dict[str, str]]:
    rows = []
    for game in EIGHT.split():
        first, second = f"S0{game[0]}", f"S0{game[1]}"
        rows.append({"ID1": first, "ID2": second, "better_id": first if game[2] == "1" else second})
    return rows


def twenty() -> list[dict[str, str]]:
    pairs = combinations([f"S{number:02d}" for number in range(1, 21)], 2)
    winners = "".join(TWENTY.split())
    return [
        {"ID1": one, "ID2": two, "better_id": one if who == "1" else two}
        for (one, two), who in zip(pairs, winners, strict=True)
    ]


def games(first: Any, second: Any, result: Any, **more: Any) -> pl.DataFrame:
    names = {"object1": [f"{at:03d}" for at in first], "object2": [f"{at:03d}" for at in second]}
    return pl.DataFrame({**names, "result": np.asarray(result, dtype=float), **more})


def won(*pairs: str) -> list[dict[str, object]]:
    return [{"object1": pair[0], "object2": pair[1], "result": 1} for pair in pairs]


def column(fit: BTFit, name: str) -> np.ndarray[Any, Any]:
    return fit.theta.sort("ID")[name].to_numpy()


# Against R


@pytest.mark.parametrize("which", ["eight", "twenty", "thirty flips"])
def test_as_bradleyterry2(which: str) -> None:
    if which == "thirty flips":
        golden = json.loads((GOLDEN / "fit_bt_model_example_writing_pairs_30flips.json").read_text("utf-8"))
        data, theirs = golden["input"]["results"], golden["output"]["theta"]
        theta, se = [row["theta"] for row in theirs], [row["se"] for row in theirs]
    else:
        data = eight() if which == "eight" else twenty()
        theta, se = (EIGHT_THETA, EIGHT_SE) if which == "eight" else (TWENTY_THETA, TWENTY_SE)  # type: ignore[assignment]
    fit = fit_bt_model(data, engine="mle", reference="S01")
    assert column(fit, "theta") == pytest.approx(theta, abs=1e-10)
    # R's standard errors are those before its last step; see the next test for that of 1.4e-6.
    assert column(fit, "se") == pytest.approx(se, abs=2e-6 if which == "eight" else 1e-6)
    assert (column(fit, "theta")[0], column(fit, "se")[0]) == (0, 0)
    assert fit.reliability is None
    assert fit.engine == fit.provenance.method == "mle"
    assert fit.provenance.settings["reference"] == "S01"


def test_r_standard_errors_are_one_step_behind() -> None:
    # What R's glm does: weighted least squares until the deviance changes by less than 1e-8, se of the last weights.
    cells: dict[tuple[int, int], list[int]] = {}
    for game in EIGHT.split():
        cells.setdefault((int(game[0]) - 1, int(game[1]) - 1), [0, 0])[int(game[2]) - 1] += 1
    design, n, share = np.zeros((len(cells), 8)), np.zeros(len(cells)), np.zeros(len(cells))
    for row, ((first, second), (wins, losses)) in enumerate(cells.items()):
        design[row, first], design[row, second] = 1, -1
        n[row], share[row] = wins + losses, wins / (wins + losses)
    design = design[:, 1:]
    mu = (n * share + 0.5) / (n + 1)
    eta = np.log(mu / (1 - mu))
    for _ in range(4):
        weight = n * mu * (1 - mu)
        information = (design.T * weight) @ design
        beta = np.linalg.solve(information, design.T @ (weight * (eta + (share - mu) / (mu * (1 - mu)))))
        eta = design @ beta
        mu = 1 / (1 + np.exp(-eta))
    assert beta == pytest.approx(EIGHT_THETA[1:], abs=1e-12)
    assert np.sqrt(np.diag(np.linalg.inv(information))) == pytest.approx(EIGHT_SE[1:], abs=1e-12)
    # With the weights at the end of the steps, they are ours.
    information = (design.T * (n * mu * (1 - mu))) @ design
    fit = fit_bt_model(eight(), engine="mle", reference="S01")
    assert np.sqrt(np.diag(np.linalg.inv(information))) == pytest.approx(column(fit, "se")[1:], abs=1e-9)


# Against a slow and obvious optimiser


class Slow:
    """The full likelihood, comparison by comparison, on the explicit design matrix."""

    def __init__(self, data: pl.DataFrame, kind: str, *, position: bool, ties: str, sd: float = 1.0) -> None:
        names = sorted({*data["object1"], *data["object2"]})
        self.n, self.kind, self.sd, self.position = len(names), kind, sd, position
        kept = data.filter(pl.col("result") != 0.5) if ties == "drop" else data
        self.y = kept["result"].to_numpy()
        self.w = kept["w"].to_numpy() if "w" in kept.columns else np.ones(kept.height)
        sides = np.zeros((kept.height, self.n))
        for row, (one, two) in enumerate(kept.select("object1", "object2").iter_rows()):
            sides[row, names.index(one)] += 1
            sides[row, names.index(two)] -= 1
        # The last score is minus the sum of the others.
        self.lift = np.vstack([np.eye(self.n - 1), -np.ones(self.n - 1)])
        self.x = sides @ self.lift
        if position:
            self.x = np.column_stack([self.x, np.ones(len(self.x))])
        self.m = self.x.shape[1]

    def information(self, beta: Any) -> Any:
        p = 1 / (1 + np.exp(-self.x @ beta))
        return (self.x.T * (self.w * p * (1 - p))) @ self.x

    def precision(self) -> Any:
        prior = np.zeros((self.m, self.m))
        if self.kind == "map":
            prior[: self.n - 1, : self.n - 1] = self.lift.T @ self.lift / self.sd**2
        return prior

    def objective(self, beta: Any) -> float:
        d = self.x @ beta
        logs = -self.y * np.log1p(np.exp(-d)) - (1 - self.y) * np.log1p(np.exp(d))
        value = float(self.w @ logs) - beta @ self.precision() @ beta / 2
        if self.kind == "firth":
            value += np.linalg.slogdet(self.information(beta))[1] / 2
        return -value

    def solve(self) -> Any:
        # By differences of the objective, nothing of which the engines know; then polished with its own gradient.
        start = np.zeros(self.m)
        found = minimize(self.objective, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 500}).x
        for _ in range(30):
            gradient = np.array([self.slope(found, at) for at in range(len(found))])
            found = found - np.linalg.solve(self.information(found) + self.precision(), gradient)
        return found

    def slope(self, beta: Any, at: int, h: float = 1e-3) -> float:
        def moved(by: float) -> float:
            there = beta.copy()
            there[at] += by
            return self.objective(there)

        # Eighth order: exact to some 1e-11 at this width.
        weights = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
        return sum(c * (moved(k * h) - moved(-k * h)) for k, c in weights) / h

    def theta(self, beta: Any) -> Any:
        return self.lift @ beta[: self.n - 1]

    def covariance(self, beta: Any) -> Any:
        return np.linalg.inv(self.information(beta) + self.precision())


@st.composite
def small_data(draw: st.DrawFn) -> pl.DataFrame:
    """Every pair of a few items in both orders, so that everything has a maximum, and more games with weights."""
    n_items = draw(st.integers(2, 4))
    around = [(at, (at + 1) % n_items, result) for at in range(n_items) for result in (1.0, 0.0, 0.5)]
    around += [(two, one, result) for one, two, result in around]
    item = st.integers(0, n_items - 1)
    more = st.tuples(item, item, st.sampled_from([1.0, 0.0, 0.5])).filter(lambda game: game[0] != game[1])
    rows = around + draw(st.lists(more, max_size=15))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(rows), max_size=len(rows)))
    return games(*zip(*rows, strict=True), w=weights)


@pytest.mark.slow_except("mle-*", "map-drop-True", "firth-drop-False")
@pytest.mark.parametrize("position", [False, True])
@pytest.mark.parametrize("ties", ["drop", "half"])
@pytest.mark.parametrize("kind", LIKELIHOOD)
@given(data=small_data())
@settings(max_examples=6, deadline=None)
def test_same_as_the_slow_optimiser(kind: str, ties: Any, position: bool, data: pl.DataFrame) -> None:
    options: Any = {"engine": kind, "ties": ties, "position": position, "weights": "w", "covariance": True}
    fit = fit_bt_model(data, **options)
    slow = Slow(data, kind, position=position, ties=ties)
    beta = slow.solve()
    spread = slow.covariance(beta)
    of_theta = slow.lift @ spread[: slow.n - 1, : slow.n - 1] @ slow.lift.T
    assert column(fit, "theta") == pytest.approx(slow.theta(beta), abs=1e-6)
    assert column(fit, "se_mean") == pytest.approx(np.sqrt(np.diag(of_theta)), abs=1e-6)
    assert column(fit, "se") == pytest.approx(column(fit, "se_mean"))
    order = fit.theta["ID"].arg_sort().to_numpy()
    assert fit.covariance is not None
    assert fit.covariance[np.ix_(order, order)] == pytest.approx(of_theta, abs=1e-6)
    if position:
        assert fit.position is not None
        assert fit.position.b == pytest.approx(beta[slow.n - 1], abs=1e-6)
        assert fit.position.se == pytest.approx(math.sqrt(spread[slow.n - 1, slow.n - 1]), abs=1e-6)


@given(data=small_data())
@settings(max_examples=20, deadline=None)
def test_a_position_effect_is_that_of_a_logistic_regression(data: pl.DataFrame) -> None:
    """statsmodels, on one column per item and a constant, the first item at nought."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    fit = fit_bt_model(data, engine="mle", ties="half", position=True, weights="w", covariance=True)
    slow = Slow(data, "mle", position=False, ties="half")
    sides = slow.x @ np.linalg.pinv(slow.lift)
    design = np.column_stack([sides[:, 1:], np.ones(len(sides))])
    other = GLM(slow.y, design, family=Binomial(), freq_weights=slow.w).fit(tol=1e-13, maxiter=100)
    assert fit.position is not None
    assert fit.position.b == pytest.approx(other.params[-1], abs=1e-7)
    assert fit.position.se == pytest.approx(other.bse[-1], abs=1e-7)
    theta = np.append(0.0, other.params[:-1])
    assert column(fit, "theta") == pytest.approx(theta - theta.mean(), abs=1e-7)


@pytest.mark.parametrize("ties", ["drop", "half"])
def test_sirt_with_a_position_effect_solves_its_equations(ties: Any) -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 12, 400)
    second = (first + rng.integers(1, 12, 400)) % 12
    data = games(first, second, rng.choice([1, 0, 0.5], 400, p=[0.5, 0.3, 0.2]))
    fit = fit_bt_model(data, position=True, ties=ties)
    scores = fit.fit.scores
    left = (scores["score"] - scores["expected"]).to_numpy()
    information = scores["information"].to_numpy()
    assert left == pytest.approx(left.sum() / information.sum() * information, abs=1e-7)
    assert fit.position is not None
    slow = Slow(data, "mle", position=True, ties=ties)
    beta = slow.solve()
    assert fit.position.b == pytest.approx(beta[11], abs=0.02)
    assert column(fit, "theta") == pytest.approx(slow.theta(beta), abs=0.05)


# Against other packages


def random_connected(seed: int, n_items: int = 30, n_games: int = 900) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    ahead = rng.random(n_games) < 1 / (1 + np.exp(truth[second] - truth[first]))
    winner, loser = np.where(ahead, first, second), np.where(ahead, second, first)
    # A circle of wins: the maximum exists.
    return np.append(winner, np.arange(n_items)), np.append(loser, (np.arange(n_items) + 1) % n_items)


@pytest.mark.parametrize("seed", range(4))
def test_same_as_evalica(seed: int) -> None:
    winner, loser = random_connected(seed)
    names = [f"{at:03d}" for at in range(30)]
    result = evalica.newman(
        [names[at] for at in winner],
        [names[at] for at in loser],
        [evalica.Winner.X] * len(winner),
        tolerance=1e-10,
        limit=10_000,
    )
    theirs = np.log(np.array([result.scores[name] for name in names]))
    fit = fit_bt_model(games(winner, loser, np.ones(len(winner))), engine="mle")
    assert column(fit, "theta") == pytest.approx(theirs - theirs.mean(), abs=5e-6)


# Where there is no maximum


def test_who_only_wins_or_loses_is_named() -> None:
    data = won("ab", "ac", "bc", "cb", "bd", "cd")
    with pytest.raises(FitError) as caught:
        fit_bt_model(data, engine="mle")
    assert "the distance between 2 items ('b', 'c'); 1 item ('a'); 1 item ('d') would be infinite" in str(caught.value)
    for engine in ("sirt", "map", "firth"):
        fit = fit_bt_model(data, engine=engine)
        assert np.isfinite(fit.theta["theta"].to_numpy()).all()
        assert fit.theta["ID"].to_list() == ["a", "b", "c", "d"]


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=14))
@settings(max_examples=80, deadline=None)
def test_a_maximum_is_found_when_and_only_when_there_is_one(pairs: list[tuple[int, int]]) -> None:
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    assume(pairs)
    reach = {item: {item} for pair in pairs for item in pair}
    for _ in range(5):
        for winner, loser in pairs:
            for known in reach.values():
                if winner in known:
                    known.add(loser)
    there = all(known == set(reach) for known in reach.values())
    data = games(*zip(*pairs, strict=True), np.ones(len(pairs)))
    if there:
        assert fit_bt_model(data, engine="mle").fit.converged
        return
    with pytest.raises(FitError):
        fit_bt_model(data, engine="mle")


# Small and odd data


@pytest.mark.parametrize("engine", ["sirt", *LIKELIHOOD])
def test_a_weight_is_so_many_comparisons(engine: str) -> None:
    rng = np.random.default_rng(8)
    first, second = np.repeat([0, 1, 2], 20), np.repeat([1, 2, 0], 20)
    result, times = rng.choice([0, 1, 0.5], 60), rng.integers(0, 4, 60)
    data = games(first, second, result)
    weighted = fit_bt_model(data.with_columns(w=times), engine=engine, ties="half", weights="w", position=True)
    repeated = fit_bt_model(data[np.repeat(np.arange(60), times)], engine=engine, ties="half", position=True)
    for name in ("theta", "se", "se_mean", "lower", "wins", "comparisons"):
        assert column(weighted, name) == pytest.approx(column(repeated, name), abs=1e-9)
    assert weighted.position == pytest.approx(repeated.position)  # type: ignore[arg-type]
    assert "a weight of 0" in weighted.notices[0]


def test_many_items_go_other_ways_to_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    winner, loser = random_connected(1, 200, 4_000)
    rng = np.random.default_rng(0)
    data = games(winner, loser, np.where(rng.random(len(winner)) < 0.2, 0.5, 1.0))
    turned = data.select(object1="object2", object2="object1", result=1 - pl.col("result"))
    data = pl.concat([data[::2], turned[1::2]])
    options: Any = {"ties": "half", "position": True}
    for engine in ("mle", "map"):
        dense = fit_bt_model(data, engine=engine, **options)
        with monkeypatch.context() as patch:
            patch.setattr(linalg, "FACTOR_LIMIT", 0)
            patch.setattr(linalg, "EXACT_LIMIT", 0)
            large = fit_bt_model(data, engine=engine, **options)
            with pytest.raises(InputError, match="reference"):
                fit_bt_model(data, engine=engine, reference="000", **options)
        assert column(large, "theta") == pytest.approx(column(dense, "theta"), abs=1e-8)
        assert large.position.b == pytest.approx(dense.position.b, abs=1e-8)  # type: ignore[union-attr]
        assert large.position.se == pytest.approx(dense.position.se, rel=1e-6)  # type: ignore[union-attr]
        ratio = column(large, "se_mean") / column(dense, "se_mean")
        assert np.sqrt(np.mean((ratio - 1) ** 2)) < 0.03


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"engine": "map", "prior_sd": 0}, InputError, "prior_sd must be a number above 0, or 'learned', not 0"),
        ({"reference": "a"}, InputError, "reference 'a' must be one of the compared items"),
        ({"engine": "mle", "reference": "z"}, InputError, "reference 'z' must be one of the compared items"),
        ({"ties": "win"}, InputError, "ties must be 'drop' or 'half', not 'win'"),
        ({"weights": "w"}, TableError, "no column 'w'"),
        ({"weights": "some"}, TableError, "column 'some' has a value that is no weight"),
        ({"weights": "none"}, FitError, "a weight of 0"),
        ({"weights": "light"}, InputError, "weigh less than sirt's adjustment"),
        ({"cluster": "some"}, TableError, "column 'some' has no value in 1 rows"),
        ({"cluster": "none"}, FitError, "robust standard errors need at least 2 clusters"),
        ({"bootstrap": 1}, InputError, "bootstrap must be a whole number of 2 or more, not 1"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        fit_bt_model(
            pl.DataFrame(won("ab", "bc", "ca", "ab")).with_columns(
                pl.Series("some", [1, None, 2, 1]), none=pl.lit(0), light=pl.lit(0.1)
            ),
            **options,
        )
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
