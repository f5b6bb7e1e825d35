"""The coefficients of agreement as functions of weights of the units.

Each is a function of sums over units, so that a bootstrap needs no loop: it weights the units by how often each was
drawn, and adds up again. Called with rows of weights, a coefficient gives one figure a row, NaN where it is undefined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    bad = np.abs(denominator) < 1e-12
    return np.where(bad, np.nan, numerator / np.where(bad, 1.0, denominator))


class Percent:
    """The share of agreeing pairs of raters, averaged over units."""

    name, weights = "percent_agreement", None

    def __init__(self, counts: Floats) -> None:
        raters = counts.sum(axis=1)
        self.several = (raters >= 2).astype(np.float64)
        possible = np.maximum(raters * (raters - 1), 1)
        self.agreeing = self.several * (counts * (counts - 1)).sum(axis=1) / possible
        self.n_units = int(self.several.sum())
        self.two_raters = bool((raters <= 2).all())

    def __call__(self, drawn: Floats) -> Floats:
        return _ratio(drawn @ self.agreeing, drawn @ self.several)


class Gwet:
    """AC1: chance agreement from how evenly the labels are spread."""

    name, weights = "gwet_ac1", None

    def __init__(self, counts: Floats) -> None:
        raters = counts.sum(axis=1)
        self.percent = Percent(counts)
        self.shares = counts / np.maximum(raters, 1)[:, None]
        self.n_units = self.percent.n_units
        self.q = counts.shape[1]

    def __call__(self, drawn: Floats) -> Floats:
        if self.q < 2:
            return np.full(len(drawn), np.nan)
        share = drawn @ self.shares / drawn.sum(axis=1, keepdims=True)
        chance = (share * (1 - share)).sum(axis=1) / (self.q - 1)
        return _ratio(self.percent(drawn) - chance, 1 - chance)


class Alpha:
    """Krippendorff's alpha from the matrix of coincidences."""

    name = "krippendorff_alpha"

    def __init__(self, counts: Floats, places: Floats, metric: str) -> None:
        self.weights = metric
        raters = counts.sum(axis=1)
        kept = counts[raters >= 2]
        pairs = kept[:, :, None] * kept[:, None, :] - kept[:, :, None] * np.eye(counts.shape[1])
        each = np.zeros((len(counts), counts.shape[1] ** 2))
        each[raters >= 2] = (pairs / (raters[raters >= 2] - 1)[:, None, None]).reshape(len(kept), -1)
        self.coincidences, self.q, self.n_units = each, counts.shape[1], len(kept)
        self.distance = _distance(places, metric)

    def __call__(self, drawn: Floats) -> Floats:
        together = (drawn @ self.coincidences).reshape(len(drawn), self.q, self.q)
        margin = together.sum(axis=2)
        total = margin.sum(axis=1)
        distance = self.distance if self.distance is not None else _ordinal(margin)
        observed = (together * distance).sum(axis=(1, 2))
        expected = (margin[:, :, None] * margin[:, None, :] * distance).sum(axis=(1, 2))
        return 1 - _ratio((total - 1) * observed, expected)


def _distance(places: Floats, metric: str) -> Floats | None:
    if metric == "ordinal":
        return None  # it depends on how often each label was given
    difference = places[:, None] - places[None, :]
    return np.asarray(difference**2 if metric == "interval" else difference != 0, dtype=np.float64)


def _ordinal(margin: Floats) -> Floats:
    """Squared: the labels from one to the other, the two ends counted half."""
    middle = margin.cumsum(axis=1) - margin / 2
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2, dtype=np.float64)


class Kappa:
    """Cohen's kappa of two raters, on the units that both labelled."""

    name = "cohen_kappa"

    def __init__(self, codes: NDArray[np.int64], places: Floats, kind: str) -> None:
        self.weights = kind
        self.q = len(places)
        both = (codes >= 0).all(axis=1)
        self.n_units = int(both.sum())
        self.cells = np.zeros((len(codes), self.q**2))
        self.cells[both, codes[both, 0] * self.q + codes[both, 1]] = 1
        difference = np.abs(places[:, None] - places[None, :])
        power = {"unweighted": difference != 0, "linear": difference, "quadratic": difference**2}
        self.disagreement = np.asarray(power[kind], dtype=np.float64)
        self.agreed = int((codes[both, 0] == codes[both, 1]).sum())

    def __call__(self, drawn: Floats) -> Floats:
        table = (drawn @ self.cells).reshape(len(drawn), self.q, self.q)
        total = table.sum(axis=(1, 2))
        expected = table.sum(axis=2)[:, :, None] * table.sum(axis=1)[:, None, :]
        observed = total * (table * self.disagreement).sum(axis=(1, 2))
        return 1 - _ratio(observed, (expected * self.disagreement).sum(axis=(1, 2)))


class Light:
    """The mean of Cohen's kappa over pairs of raters; of two raters, Cohen's kappa."""

    def __init__(self, kappas: tuple[Kappa, ...]) -> None:
        self.kappas = tuple(kappa for kappa in kappas if kappa.n_units)
        self.name = "cohen_kappa" if len(kappas) == 1 else "light_kappa"
        self.weights = kappas[0].weights
        self.n_units = int(np.any([kappa.cells.any(axis=1) for kappa in self.kappas], axis=0).sum())

    def __call__(self, drawn: Floats) -> Floats:
        each = np.stack([kappa(drawn) for kappa in self.kappas])
        return np.asarray(each.mean(axis=0), dtype=np.float64)


Statistic: TypeAlias = Percent | Gwet | Alpha | Light
