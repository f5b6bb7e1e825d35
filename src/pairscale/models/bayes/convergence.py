"""Have the chains met, and how much are their draws worth: split R-hat and bulk effective sample size.

Both look at ranks instead of values (Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021), so that heavy tails do not
fool them. Every chain is cut in two, and the S draws of a parameter become normal scores of their pooled ranks::

    z = Phi^-1((rank - 3/8) / (S + 1/4))        ties share their average rank

    R-hat = sqrt((n - 1) / n + B / W)           n draws in each of the m half chains,
                                                B the variance of their means, W the mean of their variances

R-hat is the larger of that of z (are the chains at the same place?) and that of the z of ``|x - median|`` (are they
equally wide?). The effective sample size adds up the autocorrelations of z up to where they are noise (Geyer's
initial monotone sequence)::

    rho_t = 1 - (W - mean autocovariance at lag t) / (W (n - 1) / n + B),    P_k = rho_2k + rho_2k+1
    tau = -1 + 2 sum_(k < K) min(P_0 .. P_k) + rho_2K,    K the first with P_K <= 0,    ESS = m n / tau

The figures are those of arviz-stats and of Stan's ``posterior``. Where these two differ it is ``posterior``: one
chain is enough, since it is cut in two, and a parameter that is constant or not finite has no figures (NaN).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

if TYPE_CHECKING:
    import numpy.typing as npt

    from pairscale.core.arrays import Floats

BLOCK = 2**18
"""Numbers that are worked on at a time: some arrays of 2 MB, whatever the number of parameters."""


def rhat_and_ess(draws: npt.NDArray[np.generic]) -> tuple[Floats, Floats]:
    """Rank-normalised split R-hat, the larger of bulk and tail, and bulk effective sample size, per parameter.

    Args:
        draws: of shape (draws, chains, parameters), four draws or more.

    Returns:
        Two numbers a parameter. R-hat is perfect at 1, and infinite when every chain stands still at its own place.
        The size is more than there are draws when these alternate. NaN for a parameter that is constant or not finite.
    """
    n_draws, n_chains, n_params = draws.shape
    rhats = np.full(n_params, np.nan)
    sizes = np.full(n_params, np.nan)
    half = n_draws // 2
    total = 2 * half * n_chains
    ranks = np.arange(2, 2 * total + 1) / 2  # an average rank is whole or half
    scores = ndtri((ranks - 3 / 8) / (total + 1 / 4))
    width = max(1, BLOCK // total)
    for start in range(0, n_params, width):
        block = slice(start, start + width)
        values = _split(draws[:, :, block], half)
        usable = np.isfinite(values).all(axis=1) & (values.max(axis=1) > values.min(axis=1))
        if not usable.any():
            continue
        values = values[usable]
        at = start + np.flatnonzero(usable)
        z = by_rank(values, scores).reshape(len(at), -1, half)
        values -= np.median(values, axis=1, keepdims=True)
        np.abs(values, out=values)
        folded = by_rank(values, scores).reshape(len(at), -1, half)
        # A parameter of two values is constant when folded: then the bulk alone counts.
        rhats[at] = np.fmax(_rhat(z), _rhat(folded))
        sizes[at] = _ess(z)
    return rhats, sizes


def _split(draws: npt.NDArray[np.generic], half: int) -> Floats:
    """Parameters as rows: first the first halves of all chains, then their last; an odd middle draw is left out."""
    n_chains, width = draws.shape[1:]
    rows = np.empty((width, 2, n_chains, half))
    rows[:, 0] = draws[:half].transpose(2, 1, 0)
    rows[:, 1] = draws[-half:].transpose(2, 1, 0)
    return rows.reshape(width, -1)


def by_rank(values: Floats, table: Floats) -> Floats:
    """Every value replaced by what a table has for its rank in its row, 1 the smallest; ties share their average rank.

    Args:
        values: one ranking a row, none of them NaN.
        table: what to put in place of the ranks 1, 1.5, 2, 2.5, ... up to the length of a row.
    """
    length = values.shape[1]
    order = np.argsort(values, axis=1)
    in_order = np.take_along_axis(values, order, axis=1)
    # Runs of equal values, over all rows laid end to end. A rejected proposal repeats a draw, so ties are the rule.
    begins = np.ones(values.shape, dtype=bool)
    np.not_equal(in_order[:, 1:], in_order[:, :-1], out=begins[:, 1:])
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=begins.size)
    shared = np.repeat(table[2 * (starts % length) + lengths - 1], lengths)
    np.put_along_axis(in_order, order, shared.reshape(values.shape), axis=1)
    return in_order


def _rhat(z: Floats) -> Floats:
    """R-hat of normal scores of shape (parameters, chains, draws)."""
    n_draws = z.shape[2]
    between = z.mean(axis=2).var(axis=1, ddof=1)
    within = z.var(axis=2, ddof=1).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat: Floats = np.sqrt((n_draws - 1) / n_draws + between / within)
    return rhat


def _ess(z: Floats) -> Floats:
    """Effective sample size of normal scores of shape (parameters, chains, draws)."""
    n_chains, n_draws = z.shape[1:]
    means = z.mean(axis=2)
    # Zeros behind the draws keep the end from meeting the beginning. The mean over chains comes before the way back,
    # which is then one transform a parameter.
    padded = next_fast_len(2 * n_draws, real=True)
    spectrum = rfft(z - means[:, :, None], padded, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    covariance = irfft(power, padded, axis=1)[:, :n_draws] / n_draws
    within = covariance[:, :1] * n_draws / (n_draws - 1)
    total = covariance[:, :1] + means.var(axis=1, ddof=1)[:, None]
    rho = 1 - (within - covariance) / total
    rho[:, 0] = 1
    sums = rho[:, 0 : n_draws // 2 * 2 : 2] + rho[:, 1::2]
    last = max(0, (n_draws - 3) // 2)
    noise = sums[:, : last + 1] <= 0
    noise[:, last] = True
    stop = noise.argmax(axis=1)[:, None]
    kept = np.where(np.arange(last) < stop, np.minimum.accumulate(sums[:, :last], axis=1), 0)
    tail = np.take_along_axis(rho, 2 * stop, axis=1)
    tail_sum = np.take_along_axis(sums, stop, axis=1)
    tail = np.where((tail > 0) | (tail_sum >= 0), tail, 0)
    tau = -1 + 2 * kept.sum(axis=1) + tail[:, 0]
    draws = n_chains * n_draws
    # No parameter is worth more than draws * log10(draws), however its draws alternate.
    ess: Floats = draws / np.maximum(tau, 1 / np.log10(draws))
    return ess
