"""One fit of the Bayesian model: by the sampler, or by the normal approximation.

``rows`` say what the answers are: with a column ``probability`` they are logits, with ``judge_id`` every judge has a
slope and a position effect, else they are winners of pooled judges. See :mod:`pairscale.models.bayes.model`.

The normal approximation takes milliseconds where the sampler takes seconds. Means are off by some hundredths of a
standard deviation, standard deviations by a few per cent. With a wide prior, that of an item that never won comes out
some 15 % too small. With a learned prior, a lapse rate and few comparisons, scores and standard deviations all come out
too small, by up to a third. And nothing is diagnosed: it is for tests, simulations and plans, not for results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.special import expit

from pairscale._version import __version__
from pairscale.core.arrays import Floats, Ints
from pairscale.core.display import ReprMixin
from pairscale.core.errors import FitError
from pairscale.core.notices import TOLD, notice
from pairscale.core.options import ProgressMode, require_choice, require_number_or
from pairscale.core.provenance import Provenance
from pairscale.core.tables import times_of
from pairscale.models.bayes.density import Density, slope_basis
from pairscale.models.bayes.diagnostics import Diagnostics, DiagnosticsGate
from pairscale.models.bayes.model import (
    LEARNED_SCALE,
    LOG_PRIORS,
    Answers,
    Cells,
    JudgeParameters,
    read_logits,
)
from pairscale.models.bayes.normal import N_DRAWS, Target, around_center, draw_around
from pairscale.models.bayes.posterior import Posterior
from pairscale.models.bayes.repeats import (
    RepeatAgreement,
    count_repeats,
    learn_shared_error,
    repeat_agreement,
    repeat_weights,
    repeats_per_item,
)
from pairscale.models.bayes.sampler import Warm, sampled, sampling_bar, warm_of, warmed_up
from pairscale.models.bayes.settings import MCMCSettings, Repeats, Variant, require_repeats
from pairscale.models.reliability import ReliabilityOfDraws, reliability_of_draws
from pairscale.pairing.table import generator, linked_groups, numbered

WEAK_SLOPE = 1 / 3
"""A judge whose slope is estimated below this share of the mean slope is weak."""

_VARIANTS = {"btl": (False, False), "btl_e": (True, False), "btl_b": (False, True), "btl_e_b": (True, True)}
_ROUNDS = 4
_SETTLED = 0.005


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BTLFit(ReprMixin):
    """One fit: the draws, what the diagnostics said of them, and what they were fitted to.

    Attributes:
        posterior: the draws of theta (centred), epsilon and b; of several judges, b is the mean over comparisons.
        diagnostics: divergences, R-hat, effective sample size, and whether they pass; the normal approximation has
            nothing to judge.
        model_variant: ``btl``, ``btl_e``, ``btl_b`` or ``btl_e_b``; with probabilities, outliers take the place of
            lapses, and with several judges slopes do.
        n_comparisons: how many comparisons it was fitted to.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it stood first.
        pos_count_B: per item, in how many of them it stood second.
        repeated_pairs: per item, how many of them repeat a pair.
        n_unique_pairs: how many different pairs were compared.
        prior_sd: draws of the scores' prior standard deviation, when it was learned.
        repeat_agreement: how far repeats of a pair agree, and how they were counted; with probabilities, its ``rho`` is
            the share of an error that repeats share.
        notices: what to be careful with.
        provenance: how to get the same again.
        engine: what made it, for the log.
        evidence: the answers that it was fitted to.
        n_gradients: how many gradients of the density were computed, for all chains at once.
        error: draws of the scale of the judge's errors, in logits; of probabilities.
        judges: ``judge_id n slope lower upper position position_lower position_upper weak``, highest slope first; of
            judges with slopes.
        slopes: draws of the slopes, one column per judge, in the order of ``judges``.
    """

    posterior: Posterior
    diagnostics: Diagnostics
    model_variant: str
    n_comparisons: int
    degree: Ints
    pos_count_A: Ints
    pos_count_B: Ints
    repeated_pairs: Ints
    n_unique_pairs: int
    prior_sd: Floats | None
    repeat_agreement: RepeatAgreement
    notices: tuple[str, ...]
    provenance: Provenance
    engine: str
    evidence: FitEvidence
    n_gradients: int = 0
    error: Floats | None = None
    judges: pl.DataFrame | None = None
    slopes: Floats | None = None
    _warm: Warm | None = None

    @property
    def spread_told(self) -> bool:
        """Whether the data say something of the scores' spread, and not its prior alone."""
        if self.prior_sd is None:
            return False
        if self.error is not None:  # with probabilities, the prior is that of the logarithm
            return bool(np.log(self.prior_sd).std() < TOLD * LOG_PRIORS["t"][1])
        return bool(self.prior_sd.std() < TOLD * LEARNED_SCALE * math.sqrt(1 - 2 / math.pi))

    def reliability(self) -> ReliabilityOfDraws:
        """How reliable the scores are, and without texts that lost or won nearly everything."""
        return reliability_of_draws(self.posterior.theta, self.evidence.cells, self.evidence.model)

    def __repr__(self) -> str:
        parts = [f"{self.posterior.n_items:,} items", f"{self.n_comparisons:,} comparisons"]
        parts.append(f"{self.posterior.n_draws:,} draws")
        if self._warm is not None:
            parts.append(f"diagnostics {'pass' if self.diagnostics.diagnostics_pass else 'FAIL'}")
        return f"<BTLFit {self.model_variant}: {', '.join(parts)}>"


@dataclass(frozen=True, slots=True, eq=False)
class FitEvidence:
    """What a model is fitted to.

    Attributes:
        names: all items.
        model: which parameters there are.
        answers: the comparisons.
        cells: the same, each repeat and tie for as much evidence as it is.
        agreement: how far repeats agree.
        judges: who judged, by number, where judges have slopes.
        n_probabilities: how many rows have a probability.
        settings: for the provenance.
    """

    names: pl.Series
    model: JudgeParameters
    answers: Answers
    cells: Cells
    agreement: RepeatAgreement
    judges: pl.Series | None
    n_probabilities: int
    settings: dict[str, Any]


def judge_parameters(variant: str, prior_sd: float | Literal["learned"]) -> JudgeParameters:
    """Which parameters a variant has."""
    lapse, position = _VARIANTS[require_choice(variant, "model_variant", _VARIANTS)]
    spread = require_number_or(prior_sd, "prior_sd", ("learned",), above=0)
    return JudgeParameters(lapse, position, None if isinstance(spread, str) else spread)


def fit_btl(
    rows: pl.DataFrame,
    ids: Sequence[str],
    model_variant: Variant = "btl_e_b",
    settings: MCMCSettings | None = None,
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = 1.0,
    warm: Any = None,
    near_stop: bool = False,
    gate: DiagnosticsGate | None = None,
    repeats: Repeats = "independent",
    approximate: bool = False,
    progress: ProgressMode = False,
) -> BTLFit:
    """Fit once, with draws from the exact posterior or from the normal approximation.

    Args:
        rows: ``ID1 ID2 better_id``; a missing ``better_id`` is a tie, half a win for each. With ``probability``, a row
            without one says who won, and without a winner it is a tie. With ``judge_id``, judges have slopes.
        ids: all items.
        model_variant: which faults the judge may have.
        settings: how to sample.
        seed: of the draws.
        prior_sd: of the scores, or ``learned``.
        warm: an earlier fit of fewer comparisons of the same items; its coordinates and draws are the start.
        near_stop: require the stricter effective sample size.
        gate: other limits than the default ones.
        repeats: how to count repeats of a pair: ``independent``, each is new evidence; ``learned``, by how far repeats
            agree beyond what the scores explain; or that excess agreement, from 0 (independent) to 1 (nothing new).
        approximate: take the normal approximation, which needs neither settings nor warm. With a slope per judge the
            mode is far from the mass of the posterior, so that judges are sampled all the same.
        progress: show a bar when standard error is a terminal.
    """
    evidence = read_evidence(rows, ids, judge_parameters(model_variant, prior_sd), repeats)
    names = tuple(evidence.names)
    gate = gate or DiagnosticsGate.for_items(len(names))
    if approximate and evidence.judges is None:
        required = gate.ess_bulk_min_near_stop if near_stop else gate.ess_bulk_min
        size = max(N_DRAWS, 2 * math.ceil(required / 2))
        x, draws = draw_around(Target(evidence.cells, evidence.model), size, generator(seed))
        diagnostics = gate.judge(divergences=0, max_rhat=1.0, min_ess_bulk=float(size), near_stop=near_stop)
        return _fit(evidence, x[:, : len(names)], draws, 1, diagnostics, "laplace", {}, seed)
    settings = settings or MCMCSettings()
    density = Density(evidence.cells, evidence.model)
    start = warm_of(warm)
    if start is not None and (start.ids != names or start.model != evidence.model):
        start = None
    with sampling_bar(settings.iter_warmup + settings.iter_sampling, show=progress) as tick:
        begun = warmed_up(density, start, settings, generator(seed), tick)
        sample = sampled(begun, settings, near_stop, gate, tick)
    draws = {name: sample.draws[:, :, at].ravel() for name, at in density.row.items()}
    theta = sample.theta.reshape(-1, len(names))
    how = {"warm": begun.warm, "coordinates": "learned" if begun.learned else "unlearned", **asdict(settings)}
    taught = begun.coordinates.learn(sample.draws[::2].reshape(-1, density.size).T)
    later = Warm(names, evidence.model, sample.draws[-1].T, *taught, begun.sampler.step)
    return _fit(
        evidence, theta, draws, settings.chains, sample.diagnostics, "lock-step HMC", how, seed,
        warnings=begun.fallbacks, n_gradients=begun.sampler.gradients, _warm=later,
    )  # fmt: skip


fit_btl_laplace = partial(fit_btl, approximate=True)
"""Fit once, by the normal approximation."""


def read_evidence(rows: pl.DataFrame, ids: Sequence[str], model: JudgeParameters, repeats: Repeats) -> FitEvidence:
    """The answers of rows, each repeat and tie for as much evidence as it is.

    Raises:
        FitError: when there is a column ``probability`` without any.
    """
    repeats = require_repeats(repeats)
    names = pl.Series(list(ids), dtype=pl.String)
    won = (rows["better_id"] == rows["ID1"]).cast(pl.Float64).fill_null(0.5).to_numpy()
    counted = times_of(rows)
    answers = Answers(
        numbered(rows["ID1"], names), numbered(rows["ID2"], names), won, len(names),
        None if counted is None else counted.to_numpy(),
    )  # fmt: skip
    settings: dict[str, Any] = {"prior_sd": "learned" if model.prior_sd is None else model.prior_sd, "repeats": repeats}
    judges = None
    n_probabilities = 0
    if "probability" in rows.columns:
        model = replace(model, lapse=False, probabilities=True)
        settings["answer"] = "probability"
        probability = rows["probability"].cast(pl.Float64).fill_nan(None)
        n_probabilities = len(probability) - probability.null_count()
        cells, agreement = _read_probabilities(answers, probability, model, repeats)
    else:
        if "judge_id" in rows.columns:
            settings["judges"] = "slopes"
            judge_names = rows["judge_id"].unique().sort()
            if len(judge_names) > 1:
                judges = judge_names
                answers = replace(answers, judge=numbered(rows["judge_id"], judge_names))
                model = replace(model, lapse=False, prior_sd=None, judges=len(judge_names))
        cells, agreement = count_repeats(answers, model, repeats)
    settings["model_variant"] = next(name for name, has in _VARIANTS.items() if has == (model.lapse, model.position))
    if repeats != "independent":
        settings["repeat_agreement"] = agreement.rho
    return FitEvidence(names, model, answers, cells, agreement, judges, n_probabilities, settings)


def _read_probabilities(
    answers: Answers, probability: pl.Series, model: JudgeParameters, repeats: Repeats
) -> tuple[Cells, RepeatAgreement]:
    """Probabilities as logits, each repeat for as much evidence as it is, and how far repeats agree."""
    if probability.null_count() == len(probability):
        raise FitError(
            "no comparison has a probability, so there is no unit for the scores; use answer='winner', or ask a judge "
            "that gives probabilities"
        )
    logits = read_logits(answers, probability)
    counted = repeat_agreement(answers, logits, model, 0.0 if repeats == "learned" else repeats)
    rho = counted.rho
    if repeats == "learned" and len(np.unique(answers.pair)) < len(answers.first):
        rho = 1.0
        for _ in range(_ROUNDS):
            target = Target(replace(logits, times=repeat_weights(answers, rho)), model)
            center, _ = around_center(target)
            b = float(center.mean[answers.n_items]) if model.position else 0.0
            before = rho
            rho = learn_shared_error(logits, b, math.exp(target.noise(center.judge)))
            if abs(rho - before) < _SETTLED:
                break
    if repeats == "learned":
        counted = replace(counted, rho=rho, how="learned")
    return replace(logits, times=repeat_weights(answers, rho)), counted


def _mean_position(evidence: FitEvidence, draws: Mapping[str, Floats]) -> Floats | None:
    """The position effect; of several judges, its mean over comparisons."""
    if not evidence.model.position:
        return None
    if evidence.cells.share is None:
        return draws["b"]
    effects = np.stack([draws[name] for name in evidence.model.position_names], axis=-1)
    return effects @ evidence.cells.share


def _fit(
    evidence: FitEvidence, theta: Floats, draws: Mapping[str, Floats], chains: int, diagnostics: Diagnostics,
    method: str, how: Mapping[str, Any], seed: int | None, *, warnings: Sequence[str] = (), **more: Any,
) -> BTLFit:  # fmt: skip
    """The result, from draws of the scores and of the judge's parameters."""
    posterior = Posterior(
        tuple(evidence.names),
        theta - theta.mean(axis=1, keepdims=True),
        expit(draws["u"]) if "u" in draws else None,
        _mean_position(evidence, draws),
        chains,
    )
    model = evidence.model
    cells = evidence.cells
    answers = evidence.answers
    n = answers.n_items
    pos_A = np.bincount(answers.first, answers.times, n).astype(np.int64)
    pos_B = np.bincount(answers.second, answers.times, n).astype(np.int64)
    engine = f"pairscale {__version__}"
    if model.probabilities:
        engine += " logits"
    if evidence.judges is not None:
        engine += " judge slopes"
    if method == "laplace":
        engine += " laplace"
    judges, slopes = _judges(evidence, draws)
    return BTLFit(
        posterior=posterior,
        diagnostics=diagnostics,
        model_variant=evidence.settings["model_variant"],
        n_comparisons=int(pos_A.sum()),
        degree=pos_A + pos_B,
        pos_count_A=pos_A,
        pos_count_B=pos_B,
        repeated_pairs=repeats_per_item(answers.first, answers.second, n, answers.times),
        n_unique_pairs=len(np.unique(replace(answers, judge=None).pair)),
        prior_sd=np.exp(draws["t"]) if "t" in draws else None,
        repeat_agreement=evidence.agreement,
        notices=tuple(notice(text) for text in (*_warnings(evidence), *warnings)),
        provenance=Provenance(method, evidence.settings | dict(how), seed, {"comparisons": _digest(cells)}),
        engine=engine,
        evidence=evidence,
        error=np.exp(draws["s"]) if "s" in draws else None,
        judges=judges,
        slopes=slopes,
        **more,
    )


def _warnings(evidence: FitEvidence) -> list[str]:
    """What to be careful with."""
    warnings = []
    answers = evidence.answers
    missing = len(answers.first) - evidence.n_probabilities
    if evidence.model.probabilities and missing:
        warnings.append(
            f"{missing:,} of {len(answers.first):,} comparisons have no probability; they count by their winner alone"
        )
    groups = linked_groups(answers.first, answers.second, answers.n_items)
    apart = sum(len(group) > 1 for group in groups)
    if apart > 1:
        warnings.append(f"{apart:,} groups were never compared; only the prior says how far apart they are")
    return warnings


def _digest(cells: Cells) -> str:
    columns = [cells.winner, cells.loser, cells.sign, cells.times, cells.judge, cells.z, cells.kind]
    parts = [np.ascontiguousarray(column, dtype="<f8").tobytes() for column in columns if column is not None]
    return sha256(b"".join(parts)).hexdigest()[:16]


def _judges(evidence: FitEvidence, draws: Mapping[str, Floats]) -> tuple[pl.DataFrame | None, Floats | None]:
    """The table of the judges, and draws of their slopes in its order; nothing when judges are pooled."""
    judge_names = evidence.judges
    basis = slope_basis(evidence.cells)
    if judge_names is None or basis is None:
        return None, None
    slopes = 1 + np.stack([draws[name] for name in evidence.model.slope_names], axis=1) @ basis.T
    effects = np.full(slopes.shape, np.nan)
    if evidence.model.position:
        effects = np.stack([draws[name] for name in evidence.model.position_names], axis=1)
    columns = {
        "judge_id": judge_names,
        "n": np.rint(np.asarray(evidence.cells.share) * len(evidence.answers.first)).astype(np.int64),
    }
    figures = {("slope", "lower", "upper"): slopes, ("position", "position_lower", "position_upper"): effects}
    for names, values in figures.items():
        columns |= zip(names, np.quantile(values, (0.5, 0.025, 0.975), axis=0), strict=True)
    table = pl.DataFrame(columns, nan_to_null=True)
    table = table.with_columns(weak=pl.col("slope") < WEAK_SLOPE).sort("slope", "judge_id", descending=[True, False])
    return table, slopes[:, numbered(table["judge_id"], judge_names)]
