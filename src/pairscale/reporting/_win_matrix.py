"""Who beats whom, as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from pairscale.core.errors import InputError
from pairscale.core.tables import listed
from pairscale.reporting._chart_style import INK, MOST_NAMES, dressed, load_altair, names

if TYPE_CHECKING:
    import altair as alt
    import numpy.typing as npt

    from pairscale.core.tables import Table
    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit

_Fit: TypeAlias = "BTFit | BayesFit | EloFit"
_Array: TypeAlias = "npt.NDArray[Any]"

_SIDE = 640
_MOST_GROUPS = 50
_MOST_FIGURES = 20
_MOST_DRAWS = 1_000
_LOSES, _EVEN, _WINS, _NEVER = "#c0530a", "#f8f8f6", "#1b5fb4", "#d5d9e0"
_ELO_LOGIT = math.log(10) / 400


def win_matrix(
    data: Table | _Fit, order: _Fit | None = None, *, title: str = "How often the row beats the column"
) -> alt.TopLevelMixin:
    """Who beats whom, as a heat map with the best on top and at the left.

    More than 120 items are shown in groups of neighbours.

    Args:
        data: results of any shape, for the shares of the comparisons that were won; or a fit, for the probabilities
            that it gives, with no position effect and no answers at random.
        order: for results: the fit to sort the items by. Default: Bradley–Terry scores.
        title: above the chart.

    Raises:
        InputError: when an item of the results has no score in ``order``, or there is nothing to draw.
        MissingExtraError: when altair is not installed.
    """
    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bradley_terry import BTFit, fit_bt_model
    from pairscale.models.elo import EloFit

    load_altair()
    fitted = isinstance(data, BTFit | BayesFit | EloFit)
    fit = data if isinstance(data, BTFit | BayesFit | EloFit) else order or fit_bt_model(data, unconnected="separate")
    ids, scores, parts = _order(fit)
    n = len(ids)
    size = math.ceil(n / _MOST_GROUPS) if n > MOST_NAMES else 1
    group = np.arange(n) // size
    if fitted:
        share, times = _fitted_shares(fit, scores, parts, group), None
    else:
        share, times = _observed_shares(data, ids, group)
    labels = names(ids) if size == 1 else [_span(at, size, n) for at in range(int(group[-1]) + 1)]
    cells = [
        {"row": labels[i], "column": labels[j], "share": round(float(share[i, j]), 4)}
        | ({} if times is None else {"times": int(times[i, j])})
        for i, j in zip(*np.nonzero(np.isfinite(share)), strict=True)
    ]
    if not cells:
        raise InputError("no two items were compared; there is nothing to draw")
    notes = ["Probabilities of the fitted model." if fitted else "Shares of the comparisons that were decided."]
    if len(cells) < len(labels) * (len(labels) - 1):
        notes[0] += " Grey: on no common scale." if fitted else " Grey: never compared."
    notes.append("Best on top and at the left.")
    if size > 1:
        notes.append(f"{n:,} items in groups of {size} neighbours by score; the labels are places, 1 the best.")
    said = f"Heat map of who beats whom among {n:,} items, from {names(ids[:1])[0]} to {names(ids[-1:])[0]}."
    return dressed(_heat_map(cells, labels, fitted=fitted), title, notes, said)


def _order(fit: Any) -> tuple[list[str], _Array, _Array]:
    """The items best first; their scores in logits, one row per draw; and the part that each belongs to."""
    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit

    if isinstance(fit, BayesFit):
        posterior = fit.fit.posterior
        best = posterior.items.order
        draws = posterior.theta[:: math.ceil(posterior.n_draws / _MOST_DRAWS), best]
        return [posterior.ids[at] for at in best], draws, np.zeros(len(best), dtype=np.int64)
    if isinstance(fit, EloFit):
        scores = fit.elo["elo"].to_numpy()[None, :] * _ELO_LOGIT
        return fit.elo["ID"].to_list(), scores, np.zeros(fit.elo.height, dtype=np.int64)
    if not isinstance(fit, BTFit):
        raise InputError(f"order must be a Bradley-Terry, Bayesian or Elo fit, not {type(fit).__name__}")
    apart = "component" in fit.theta.columns
    parts = fit.theta["component"].to_numpy() if apart else np.zeros(fit.theta.height, dtype=np.int64)
    return fit.theta["ID"].to_list(), fit.theta["theta"].to_numpy()[None, :], parts


def _fitted_shares(fit: Any, scores: _Array, parts: _Array, group: _Array) -> _Array:
    """The mean over the draws of the probability that a row beats a column; of groups, that of their mean scores."""
    from pairscale.models.likelihood import outcome_probabilities

    first = np.unique(group, return_index=True)[1]
    means = np.add.reduceat(scores, first, axis=1) / np.bincount(group)
    ties = getattr(fit, "ties", None)
    nu = 0.0 if ties is None else ties.nu
    share = np.stack([outcome_probabilities(one[:, None] - means, nu)[0].mean(axis=0) for one in means.T])
    lowest, highest = (ends.reduceat(parts, first) for ends in (np.minimum, np.maximum))
    apart = (lowest[:, None] != lowest) | (highest[:, None] != highest) | (lowest != highest)
    share[apart | np.eye(len(first), dtype=bool)] = np.nan
    return share


def _observed_shares(results: Any, ids: Sequence[str], group: _Array) -> tuple[_Array, _Array]:
    """The share of their comparisons that a row won of a column, and how many there were."""
    from pairscale.core.comparisons import as_comparisons

    frame = as_comparisons(results).filter(
        (pl.col("ID1") != pl.col("ID2"))
        & ((pl.col("better_id") == pl.col("ID1")) | (pl.col("better_id") == pl.col("ID2")))
    )
    place = {name: int(at) for name, at in zip(ids, group, strict=True)}
    seen = pl.concat([frame["ID1"], frame["ID2"].alias("ID1")]).unique()
    if strange := sorted(set(seen.to_list()) - set(place)):
        raise InputError(f"order has no score for {listed(strange)}")
    first, second = (frame[side].replace_strict(place, return_dtype=pl.Int64).to_numpy() for side in ("ID1", "ID2"))
    won = (frame["better_id"] == frame["ID1"]).to_numpy()
    size = int(group[-1]) + 1
    wins = np.bincount(np.where(won, first * size + second, second * size + first), minlength=size * size)
    wins = wins.reshape(size, size)
    times = wins + wins.T
    np.fill_diagonal(times, 0)
    return np.divide(wins, times, out=np.full(times.shape, np.nan), where=times > 0), times


def _span(at: int, size: int, n: int) -> str:
    first, last = at * size + 1, min((at + 1) * size, n)
    return f"{first:,}–{last:,}" if last > first else f"{first:,}"


def _heat_map(cells: list[dict[str, Any]], labels: list[str], *, fitted: bool) -> Any:
    alt = load_altair()
    n = len(labels)
    step = max(9, min(34, _SIDE // n))
    shown = {"title": None, "labelLimit": 150, "labelFontSize": 11 if step > 12 else 8, "labelOverlap": False}
    shown |= {"domain": False, "ticks": False, "grid": False, "labelPadding": 6}
    domain = alt.Scale(domain=labels, paddingInner=0.06 if n <= 40 else 0, paddingOuter=0)
    base = alt.Chart(alt.InlineData(values=cells)).encode(
        x=alt.X("column:N", scale=domain, axis=alt.Axis(orient="top", labelAngle=-90, **shown)),
        y=alt.Y("row:N", scale=domain, axis=alt.Axis(**shown)),
    )
    legend = alt.Legend(title="row wins", format=".0%", values=[0, 0.25, 0.5, 0.75, 1], gradientLength=160)
    scale = alt.Scale(domain=[0, 0.5, 1], range=[_LOSES, _EVEN, _WINS], interpolate="rgb")
    tips = [alt.Tooltip("row:N", title="row"), alt.Tooltip("column:N", title="column")]
    tips.append(alt.Tooltip("share:Q", title="row wins", format=".1%"))
    tips += [] if fitted else [alt.Tooltip("times:Q", title="comparisons", format=",")]
    heat = base.mark_rect(aria=n <= _MOST_FIGURES).encode(
        alt.Color("share:Q", scale=scale, legend=legend), tooltip=tips
    )
    layers: list[Any] = [heat]
    if n <= _MOST_FIGURES:
        dark = alt.expr.abs(alt.datum.share - 0.5) > 0.32
        ink = alt.condition(dark, alt.value("#ffffff"), alt.value(INK))
        figures = base.transform_calculate(figure="round(100 * datum.share)").mark_text(fontSize=11, aria=False)
        layers.append(figures.encode(text=alt.Text("figure:Q"), color=ink))
    return alt.layer(*layers).properties(
        width=alt.Step(step), height=alt.Step(step), view=alt.ViewConfig(fill=_NEVER, stroke=None)
    )
