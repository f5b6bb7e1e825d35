"""Scores from probabilities: the Bayesian model of logits with errors.

``logit q = theta_i - theta_j + b + e``: a judge that says how probable it is that the first text is better tells more
than its winner. Scores are in the judge's logits, with the spread of the scores and the scale of the errors learned.
See :mod:`pairscale.models._logits` for the likelihood, and docs/guides/probabilities.md for what it buys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from pairscale._version import __version__
from pairscale.core.display import ReprMixin
from pairscale.core.errors import FitError
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode
from pairscale.core.provenance import Provenance
from pairscale.models._logit_density import LogitDensity, Whitened
from pairscale.models._logit_repeats import shared_error
from pairscale.models._logit_target import LogitTarget, SparseLogitTarget
from pairscale.models._logits import SATURATED, Logits, read_logits
from pairscale.models._sampling import sampled, whitened
from pairscale.models._sampling_bar import SamplingBar
from pairscale.models.bayes import judge_parameters
from pairscale.models.diagnostics import Diagnostics, DiagnosticsGate
from pairscale.models.laplace import DENSE, N_DRAWS, around_center, draw_around
from pairscale.models.posterior import Posterior
from pairscale.models.repeats import RepeatAgreement, repeat_agreement, repeat_weights, repeats_per_item
from pairscale.models.sampling import MCMCSettings, Repeats, Variant, require_repeats
from pairscale.pairing.edges import linked_groups, numbered
from pairscale.pairing.table import generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.core.arrays import Floats, Ints
    from pairscale.models._cells import JudgeParameters

__all__ = ["SATURATED", "LogitFit", "fit_logits", "fit_logits_laplace"]

_ROUNDS, _SETTLED = 4, 0.005
_MOST_SAMPLED = 1500  # items: the sampler's coordinates are a dense matrix
_MANY = f"with more than {_MOST_SAMPLED:,} texts, scores from probabilities are those of the normal approximation"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LogitFit(ReprMixin):
    """One fit of probabilities.

    Attributes:
        posterior: draws of theta (centred, in the judge's logits) and b.
        diagnostics: R-hat, effective sample size, and whether they pass; the normal approximation has nothing to judge.
        model_variant: ``btl`` or ``btl_b``; outliers take the place of lapses.
        n_comparisons: how many comparisons it was fitted to.
        n_probabilities: how many of these have a probability.
        n_saturated: how many of these are at the limit, where an answer says only "at least this".
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it stood first.
        pos_count_B: per item, in how many of them it stood second.
        repeated_pairs: per item, how many of them repeat a pair.
        n_unique_pairs: how many different pairs were compared.
        prior_sd: draws of the abilities' prior standard deviation, when it was learned.
        error: draws of the scale of the judge's errors, in logits.
        slope: draws of what a standard deviation of ``known`` is worth, in the judge's logits; None without it.
        repeat_agreement: how far repeats of a pair agree; its ``rho`` is the share of an error that repeats share.
        notices: what to be careful with.
        provenance: how to get the same again.
        engine: what made it, for the log.
    """

    posterior: Posterior
    diagnostics: Diagnostics
    model_variant: str
    n_comparisons: int
    n_probabilities: int
    n_saturated: int
    degree: Ints
    pos_count_A: Ints
    pos_count_B: Ints
    repeated_pairs: Ints
    n_unique_pairs: int
    prior_sd: Floats | None
    error: Floats
    slope: Floats | None
    repeat_agreement: RepeatAgreement
    notices: tuple[str, ...]
    provenance: Provenance
    engine: str

    def __repr__(self) -> str:
        return (
            f"<LogitFit {self.model_variant}: {self.posterior.n_items:,} items, {self.n_probabilities:,} probabilities "
            f"of {self.n_comparisons:,} comparisons, error {np.mean(self.error):.2f} logits>"
        )


def fit_logits(
    rows: pl.DataFrame,
    ids: Sequence[str],
    model_variant: Variant = "btl_b",
    settings: MCMCSettings | None = None,
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = "learned",
    warm: Any = None,
    near_stop: bool = False,
    gate: DiagnosticsGate | None = None,
    repeats: Repeats = "learned",
    known: Sequence[float] | Floats | None = None,
    progress: ProgressMode = False,
) -> LogitFit:
    """Fit once, with draws from the exact posterior; takes what :func:`pairscale.models.bayes.fit_btl` takes.

    Args:
        rows: ``ID1 ID2 better_id probability``. A row without a probability says who won; without a winner it is a tie.
        ids: all items.
        model_variant: whether there is a position effect; outliers take the place of lapses.
        settings: how to sample.
        seed: of the draws.
        prior_sd: of the abilities, or ``learned``.
        warm: not needed: chains start from the normal approximation.
        near_stop: require the stricter effective sample size.
        gate: other limits than the default ones.
        repeats: how to count repeats of a pair, as in :func:`pairscale.models.bayes.fit_btl`.
        known: per item, a number known beforehand, as there; what it is worth has the prior N(0, 2²).
        progress: show a bar when standard error is a terminal.
    """
    del warm
    if len(ids) > _MOST_SAMPLED:
        near = fit_logits_laplace(
            rows, ids, model_variant, settings, seed, prior_sd=prior_sd, near_stop=near_stop, gate=gate,
            repeats=repeats, known=known,
        )  # fmt: skip
        return replace(near, notices=(*near.notices, notice(_MANY)))
    settings = settings or MCMCSettings()
    read = _read(rows, ids, model_variant, prior_sd, repeats, known)
    rng = generator(seed)
    model = read.model
    density = LogitDensity(read.logits, model)
    x, judge = draw_around(read.target, N_DRAWS, rng)
    center, _ = around_center(read.target)
    factor = read.target.dense_factor(center)
    others = np.stack([judge[name] for name in ("t", "s") if name in judge], axis=1)
    coordinates = Whitened.of_draws(density, factor, np.concatenate([x, others], axis=1))
    with SamplingBar(settings.iter_warmup + settings.iter_sampling, show=progress) as tick:
        begun = whitened(
            coordinates, lambda draws: Whitened.of_draws(density, factor, draws), 10 * density.size, settings, rng,
            tick, "engine='laplace'",
        )  # fmt: skip
        drawn = sampled(begun, settings, near_stop, gate, tick)
    parameters = {name: drawn.draws[:, :, at] for name, at in density.row.items()}
    posterior = Posterior.from_chains(tuple(read.names), drawn.theta, None, parameters.get("b"), drawn.diagnostics)
    spread = np.exp(parameters["t"]).ravel() if model.prior_sd is None else None
    how = "lock-step HMC", f"pairscale {__version__} logits"
    worth = parameters["g"].ravel() if "g" in parameters else None
    fit = read.fit(posterior, drawn.diagnostics, spread, np.exp(parameters["s"]).ravel(), worth, how, seed)
    return replace(fit, notices=(*fit.notices, *map(notice, begun.fallbacks)))


def fit_logits_laplace(
    rows: pl.DataFrame,
    ids: Sequence[str],
    model_variant: Variant = "btl_b",
    settings: MCMCSettings | None = None,
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = "learned",
    warm: Any = None,
    near_stop: bool = False,
    gate: DiagnosticsGate | None = None,
    repeats: Repeats = "learned",
    known: Sequence[float] | Floats | None = None,
) -> LogitFit:
    """Fit once, by a normal approximation; takes what :func:`fit_logits` takes, and needs neither settings nor warm."""
    del settings, warm
    read = _read(rows, ids, model_variant, prior_sd, repeats, known)
    gate = DiagnosticsGate.for_items(len(read.names)) if gate is None else gate
    required = gate.ess_bulk_min_near_stop if near_stop else gate.ess_bulk_min
    size = max(N_DRAWS, 2 * math.ceil(required / 2))
    x, judge = draw_around(read.target, size, generator(seed))
    n = len(read.names)
    diagnostics = gate.judge(divergences=0, max_rhat=1.0, min_ess_bulk=float(size), near_stop=near_stop)
    theta = read.target.abilities(x)
    theta = theta - theta.mean(axis=1, keepdims=True)
    b = x[:, n].copy() if read.model.position else None
    posterior = Posterior(tuple(read.names), theta, None, b, 1, diagnostics)
    learned = np.exp(judge["t"]) if "t" in judge else None
    approximated = "normal approximation", f"pairscale {__version__} logits laplace"
    worth = None if known is None else x[:, -1].copy()
    return read.fit(posterior, diagnostics, learned, np.exp(judge["s"]), worth, approximated, seed)


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """The comparisons of a fit, as its engines take them."""

    names: pl.Series
    first: Ints
    second: Ints
    answers: Logits
    logits: Logits
    model: JudgeParameters
    target: LogitTarget
    agreement: RepeatAgreement
    variant: str
    options: dict[str, Any]
    n_probabilities: int

    def fit(
        self, posterior: Posterior, diagnostics: Diagnostics, prior_sd: Floats | None, error: Floats,
        slope: Floats | None, how: tuple[str, str], seed: int | None,
    ) -> LogitFit:  # fmt: skip
        """The result."""
        n = len(self.names)
        pos_A, pos_B = np.bincount(self.first, minlength=n), np.bincount(self.second, minlength=n)
        answers = self.answers
        columns = (answers.first, answers.second, answers.kind, answers.z)
        digest = sha256(b"".join(np.ascontiguousarray(one, dtype="<f8").tobytes() for one in columns)).hexdigest()
        return LogitFit(
            posterior=posterior,
            diagnostics=diagnostics,
            model_variant=self.variant,
            n_comparisons=len(self.first),
            n_probabilities=self.n_probabilities,
            n_saturated=int(((answers.kind != 0) & (answers.z != 0)).sum()),
            degree=pos_A + pos_B,
            pos_count_A=pos_A,
            pos_count_B=pos_B,
            repeated_pairs=repeats_per_item(self.first, self.second, n),
            n_unique_pairs=len(np.unique(answers.pair)),
            prior_sd=prior_sd,
            error=error,
            slope=slope,
            repeat_agreement=self.agreement,
            notices=self._said(),
            provenance=Provenance(how[0], self.options, seed, {"comparisons": digest[:16]}),
            engine=how[1],
        )

    def _said(self) -> tuple[str, ...]:
        said = []
        if missing := len(self.first) - self.n_probabilities:
            said.append(
                f"{missing:,} of {len(self.first):,} comparisons have no probability; they count by their winner alone"
            )
        groups = [one for one in linked_groups(self.first, self.second, len(self.names)) if len(one) > 1]
        if len(groups) > 1:
            said.append(f"{len(groups):,} groups were never compared; only the prior says how far apart they are")
        return tuple(notice(text) for text in said)


def _read(
    rows: pl.DataFrame, ids: Sequence[str], variant: Variant, prior_sd: float | Literal["learned"], repeats: Repeats,
    beforehand: Sequence[float] | Floats | None = None,
) -> _Read:  # fmt: skip
    model = replace(judge_parameters(variant, prior_sd, beforehand), lapse=False)
    names = pl.Series(list(ids), dtype=pl.String)
    first, second = numbered(rows["ID1"], names), numbered(rows["ID2"], names)
    first_won = rows["better_id"] == rows["ID1"]
    result = first_won.cast(pl.Float64).fill_null(0.5).to_numpy()
    probability = rows["probability"].cast(pl.Float64).fill_nan(None)
    known = int(probability.is_not_null().sum())
    if not known:
        raise FitError(
            "no comparison has a probability, so there is no unit for the scores; use answer='winner', or ask a judge "
            "that gives probabilities"
        )
    answers = read_logits(first, second, result, probability, len(names))
    repeats = require_repeats(repeats)
    rho = 0.0 if repeats == "independent" else 1.0 if repeats == "learned" else float(repeats)
    again = len(np.unique(answers.pair)) < len(first)
    logits = replace(answers, times=repeat_weights(first, second, len(names), rho))
    target = _target(logits, model)
    if repeats == "learned" and again:
        for _ in range(_ROUNDS):
            center, _ = around_center(target)
            b = float(center.mean[len(names)]) if model.position else 0.0
            before, rho = rho, shared_error(answers, b, math.exp(target.lapse(center.judge)))
            logits = replace(answers, times=repeat_weights(first, second, len(names), rho))
            target = _target(logits, model)
            if abs(rho - before) < _SETTLED:
                break
    elif repeats == "learned":
        rho = 0.0
    how: Literal["independent", "given", "learned"] = repeats if repeats in ("independent", "learned") else "given"
    agreement = replace(repeat_agreement(first, second, first_won, target.cells, model, rho), how=how)
    options = {"model_variant": variant, "prior_sd": prior_sd, "repeats": repeats, "answer": "probability"}
    named = "btl_b" if model.position else "btl"
    return _Read(names, first, second, answers, logits, model, target, agreement, named, options, known)


def _target(logits: Logits, model: JudgeParameters) -> LogitTarget:
    return (LogitTarget if logits.n_items <= DENSE else SparseLogitTarget)(logits, model)
