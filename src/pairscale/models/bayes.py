"""Bayesian Bradley–Terry–Luce: the whole posterior of the scores and of the judge's faults.

``P(A wins) = (1 - eps) logistic(theta_A - theta_B + b) + eps / 2`` with ``theta_raw ~ N(0, 1)``, theta centred in every
draw, a lapse rate ``eps ~ Beta(2, 20)`` and a position effect ``b ~ N(0, 0.3)``; the variants ``btl``, ``btl_e``,
``btl_b`` and ``btl_e_b`` have neither, one or both. Sampled exactly, by :mod:`pairscale.models._hmc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.special import expit

from pairscale.comparisons import decided, says_who_stood_first
from pairscale.display import Charted, Shown
from pairscale.errors import FitError, InputError
from pairscale.models._btl import BTLDensity, Cells, Coordinates, Learned, Model, count_outcomes
from pairscale.models._convergence import likely_worst
from pairscale.models._counts import Floats, Ints
from pairscale.models._gate import Diagnostics, DiagnosticsGate, diagnose
from pairscale.models._hmc import LockStepHMC
from pairscale.models._row import model_columns
from pairscale.models.logs import ITEM_FIGURES, round_log_row, summarize_items
from pairscale.models.posterior import Posterior, item_log
from pairscale.notices import notice
from pairscale.options import (
    optional,
    require_choice,
    require_int,
    require_list,
    require_mapping,
    require_number,
    require_number_or,
    require_seed,
)
from pairscale.pairs._edges import count_cells, linked_groups, numbered
from pairscale.pairs._table import generator
from pairscale.provenance import Provenance
from pairscale.tables import Table, listed, require_ids, to_frame

__all__ = ["BTLFit", "BayesFit", "MCMCSettings", "Variant", "fit_bayes_btl_mcmc", "fit_btl"]

Variant = Literal["btl", "btl_e", "btl_b", "btl_e_b"]
_VARIANTS = {"btl": (False, False), "btl_e": (True, False), "btl_b": (False, True), "btl_e_b": (True, True)}
FIRST_LAPSE = 0.07  # where the search for coordinates begins; the prior's mean is 0.09
_TEACH = 100  # so many draws of the warm-up can teach other coordinates
_SUSPECTS = 24  # of each kind are judged before all the others
_PATH = 1.7  # a little more than a quarter turn of a unit normal: means and spreads both mix well


@dataclass(frozen=True, slots=True)
class MCMCSettings:
    """How to sample.

    Attributes:
        chains: how many chains, which advance together.
        iter_warmup: transitions that find the step size and the coordinates, and are thrown away; a warm fit makes a
            quarter of them.
        iter_sampling: transitions of each chain that are kept, at least.
        target_accept: the acceptance that the step size aims at.
        extend: when R-hat or the effective sample size falls short, draw on until they pass, up to this many times
            ``iter_sampling``; with 1 there are exactly ``iter_sampling``.
        seed: of the sampler; the same seed gives the same draws, bit for bit.
    """

    chains: int = 8
    iter_warmup: int = 200
    iter_sampling: int = 300
    target_accept: float = 0.8
    extend: int = 8
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("chains", 1), ("iter_warmup", 20), ("iter_sampling", 4), ("extend", 1)):
            object.__setattr__(self, name, require_int(getattr(self, name), f"mcmc: {name}", least=least))
        accept = require_number(self.target_accept, "mcmc: target_accept", above=0, below=1)
        object.__setattr__(self, "target_accept", accept)
        object.__setattr__(self, "seed", require_seed(self.seed, "mcmc: seed"))

    @classmethod
    def given(cls, fields: Mapping[str, Any] | MCMCSettings | None) -> MCMCSettings:
        """From a mapping; an unknown field is refused by its name."""
        if isinstance(fields, cls):
            return fields
        given = optional(require_mapping, fields, "mcmc") or {}
        known = set(cls.__dataclass_fields__)
        if unknown := sorted(set(given) - known):
            raise InputError(f"mcmc: no field {listed(unknown)}; there are {listed(sorted(known), 10)}")
        return cls(**given)


@dataclass(frozen=True, slots=True, eq=False)
class _Warm:
    """What a later fit of more comparisons of the same items can start from."""

    ids: tuple[str, ...]
    model: Model
    last: Floats
    center: Floats
    learned: Learned
    step: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BTLFit(Shown):
    """One fit: the draws, what the diagnostics said of them, and what they were fitted to.

    Attributes:
        posterior: the draws of theta (centred), epsilon and b.
        diagnostics: divergences, R-hat, effective sample size, and whether they pass.
        model_variant: ``btl``, ``btl_e``, ``btl_b`` or ``btl_e_b``.
        n_comparisons: how many comparisons it was fitted to.
        degree: per item, in how many comparisons it was.
        pos_count_A: per item, in how many of them it stood first.
        pos_count_B: per item, in how many of them it stood second.
        prior_sd: draws of the abilities' prior standard deviation, when it was learned.
        accept: the mean acceptance.
        n_unique_pairs: how many different pairs were compared.
        notices: what to be careful with.
        provenance: how to get the same again.
    """

    posterior: Posterior
    diagnostics: Diagnostics
    model_variant: str
    n_comparisons: int
    degree: Ints
    pos_count_A: Ints
    pos_count_B: Ints
    prior_sd: Floats | None
    accept: float
    n_unique_pairs: int
    notices: tuple[str, ...]
    provenance: Provenance
    _warm: _Warm

    def __repr__(self) -> str:
        verdict = "diagnostics pass" if self.diagnostics.diagnostics_pass else "diagnostics FAIL"
        return (
            f"<BTLFit {self.model_variant}: {self.posterior.n_items:,} items, {self.n_comparisons:,} comparisons, "
            f"{self.posterior.n_draws:,} draws, {verdict}>"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BayesFit(Charted, table="_items", columns=ITEM_FIGURES, charts=("scores", "ranks", "wins")):
    """Bayesian fits of one set of results, or of growing parts of it.

    Attributes:
        item_log_list: per fit, the item log: means, standard deviations, quantiles and ranks of every item.
        item_summary: all of them in one table.
        round_log: one row a fit: diagnostics, reliability, epsilon and b, and measures of what is still uncertain.
        fits: the fits themselves.
    """

    item_log_list: list[pl.DataFrame]
    item_summary: pl.DataFrame
    round_log: pl.DataFrame
    fits: list[BTLFit]

    @property
    def fit(self) -> BTLFit:
        """The last fit: of all the comparisons."""
        return self.fits[-1]

    @property
    def _items(self) -> pl.DataFrame:
        return summarize_items(self)

    def __repr__(self) -> str:
        return f"<BayesFit: {len(self.fits)} {'fit' if len(self.fits) == 1 else 'fits, the last'} {self.fit!r}>"


def fit_bayes_btl_mcmc(
    results: Table,
    ids: Iterable[Any] | None = None,
    model_variant: Variant = "btl_e_b",
    mcmc: Mapping[str, Any] | MCMCSettings | None = None,
    pair_counts: Sequence[int] | None = None,
    subset_method: Literal["first", "sample"] = "first",
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = 1.0,
    progress: bool = False,
) -> BayesFit:
    """Fit the Bayesian model to results, once or on growing parts of them.

    Args:
        results: canonical results, or results of any shape; rows without a winner are left out, and said.
        ids: all items there are; those without a comparison keep the prior. Default: those in the results.
        model_variant: ``btl``, ``btl_e`` (lapse), ``btl_b`` (position) or ``btl_e_b`` (both).
        mcmc: fields of :class:`MCMCSettings`, such as ``{"iter_sampling": 1000}``.
        pair_counts: fit the first so many comparisons, for each of these sizes; each fit starts from the one before.
        subset_method: ``first`` takes them in their order, ``sample`` in a random one.
        seed: of the sampler (unless ``mcmc`` has one) and of ``sample``.
        prior_sd: the standard deviation of the abilities' prior, or ``learned`` (half-normal with scale 2.5).
        progress: show a bar when standard error is a terminal.

    Returns:
        A :class:`BayesFit` with ``item_log_list``, ``item_summary``, ``round_log``, ``fits`` and ``fit``.

    Raises:
        InputError: for an unknown variant or field, or ids that are not among ``ids``.
        FitError: when no row has a winner.

    Example:
        >>> import pairscale as ps
        >>> fit = fit_bayes_btl_mcmc(ps.example_writing_results, model_variant="btl", mcmc={"chains": 4}, seed=1)
        >>> ps.summarize_items(fit, top_n=3)["ID"].to_list()
        ['S20', 'S19', 'S18']
    """
    settings = MCMCSettings.given(mcmc)
    require_choice(subset_method, "subset_method", ("first", "sample"))
    if _model(model_variant, prior_sd).position and not says_who_stood_first(results):
        raise InputError(
            "results list winners and losers without saying who stood first, so there is no position effect to "
            "estimate; use model_variant='btl_e' or 'btl'"
        )
    rows, names = _read(results, ids)
    sizes = _sizes(pair_counts, rows.height)
    seed = require_seed(seed)
    base = seed if settings.seed is None else settings.seed
    if base is None:
        base = int(np.random.default_rng().integers(2**32))  # drawn here so that it can be told
    if subset_method == "sample":
        rows = rows[generator(base).permutation(rows.height)]
    fits: list[BTLFit] = []
    for size in sizes:
        warm = fits[-1] if fits else None
        fits.append(
            fit_btl(rows[:size], names, model_variant, settings, base, prior_sd=prior_sd, warm=warm, progress=progress)
        )
    items = [
        item_log(fit.posterior, at, fit.degree, fit.pos_count_A, fit.pos_count_B)
        for at, fit in enumerate(fits, start=1)
    ]
    rounds = [_round_row(fit, at, fits) for at, fit in enumerate(fits, start=1)]
    return BayesFit(items, pl.concat(items), pl.concat(rounds), fits)


def fit_btl(
    rows: pl.DataFrame,
    ids: Sequence[str],
    model_variant: Variant = "btl_e_b",
    settings: MCMCSettings | None = None,
    seed: int | None = None,
    *,
    prior_sd: float | Literal["learned"] = 1.0,
    warm: BTLFit | None = None,
    near_stop: bool = False,
    gate: DiagnosticsGate | None = None,
    progress: bool = False,
) -> BTLFit:
    """Fit once.

    Args:
        rows: ``ID1 ID2 better_id``, each with a winner.
        ids: all items.
        model_variant: which faults the judge may have.
        settings: how to sample.
        seed: of the sampler.
        prior_sd: of the abilities, or ``learned``.
        warm: an earlier fit of fewer comparisons of the same items; its coordinates and draws are the start.
        near_stop: require the stricter effective sample size.
        gate: other limits than the default ones.
        progress: show a bar when standard error is a terminal.
    """
    settings = settings or MCMCSettings()
    model = _model(model_variant, prior_sd)
    names = pl.Series(list(ids), dtype=pl.String)
    first, second = numbered(rows["ID1"], names), numbered(rows["ID2"], names)
    first_won = rows["better_id"] == rows["ID1"]
    cells = count_outcomes(first, second, first_won, len(names), position=model.position)
    density = BTLDensity(cells, model)
    rng = generator(seed)
    start = warm._warm if warm is not None else None
    if start is not None and (start.ids != tuple(names) or start.model != model):
        start = None
    with _Bar(settings, progress) as tick:
        sampler, coordinates = _warmed_up(density, start, settings, rng, tick)
        draws, theta, diagnostics, accept = _sampled(sampler, coordinates, settings, near_stop, gate, tick)
    judge = {name: draws[:, :, row] for name, row in density.row.items()}
    posterior = Posterior.from_chains(
        tuple(names),
        theta,
        expit(judge["u"]) if "u" in judge else None,
        judge.get("b"),
        diagnostics,
    )
    inputs = {"comparisons": _digest(cells)}
    groups = [group for group in linked_groups(cells.winner, cells.loser, len(names)) if len(group) > 1]
    apart = f"{len(groups):,} groups were never compared; only the prior says how far apart they are"
    notices = (notice(apart),) if len(groups) > 1 else ()
    options = {"model_variant": model_variant, "prior_sd": prior_sd, "warm": start is not None, **_fields(settings)}
    return BTLFit(
        posterior=posterior,
        diagnostics=diagnostics,
        model_variant=model_variant,
        n_comparisons=rows.height,
        degree=np.bincount(first, minlength=len(names)) + np.bincount(second, minlength=len(names)),
        pos_count_A=np.bincount(first, minlength=len(names)),
        pos_count_B=np.bincount(second, minlength=len(names)),
        prior_sd=np.exp(judge["t"]).ravel() if "t" in judge else None,
        accept=accept,
        n_unique_pairs=len(count_cells(np.minimum(first, second), np.maximum(first, second), len(names))[0]),
        notices=notices,
        provenance=Provenance("lock-step HMC", options, seed, inputs),
        _warm=_Warm(tuple(names), model, draws[-1].T, *coordinates.learn(_flat(draws[::2])), sampler.step),
    )


# Warm-up and sampling


def _warmed_up(
    density: BTLDensity,
    start: _Warm | None,
    settings: MCMCSettings,
    rng: np.random.Generator,
    tick: Callable[[], None],
) -> tuple[LockStepHMC, Coordinates]:
    if start is not None:
        coordinates = Coordinates.around(density, start.center, start.learned)
        z = coordinates.to_z(_columns(start.last, settings.chains))
        sampler = LockStepHMC(coordinates, z, rng, path=_PATH, step=start.step, target_accept=settings.target_accept)
        sampler.advance(max(20, settings.iter_warmup // 4), adapt=True, on_draw=tick)
        return sampler, coordinates
    x = np.zeros((density.size, 1))
    if "u" in density.row:
        x[density.row["u"]] = np.log(FIRST_LAPSE / (1 - FIRST_LAPSE))
    coordinates = Coordinates.around(density, x)
    z = 0.7 * rng.standard_normal((density.size, settings.chains))
    sampler = LockStepHMC(coordinates, z, rng, path=_PATH, target_accept=settings.target_accept)
    n_first = int(0.6 * settings.iter_warmup)
    skipped = n_first // 4
    sampler.advance(skipped, adapt=True, on_draw=tick)
    found = sampler.advance(n_first - skipped, adapt=True, on_draw=tick)
    draws = np.concatenate([coordinates.to_x(z) for z in found.positions], axis=1)
    if draws.shape[1] >= _TEACH:
        center, learned = coordinates.learn(draws)
        coordinates = Coordinates.around(density, center, learned)
        sampler.move(coordinates, coordinates.to_z(draws[:, -settings.chains :]))
    sampler.advance(settings.iter_warmup - n_first, adapt=True, on_draw=tick)
    return sampler, coordinates


def _sampled(
    sampler: LockStepHMC,
    coordinates: Coordinates,
    settings: MCMCSettings,
    near_stop: bool,
    gate: DiagnosticsGate | None,
    tick: Callable[[], None],
) -> tuple[Floats, Floats, Diagnostics, float]:
    """Draw until the diagnostics pass, or the plan has been extended as far as it may.

    The parameters that look worst are judged first. If one of them does not pass, the whole does not, and its figures
    say how many draws are missing.
    """
    parts: list[Floats] = []
    divergences, accepted = 0, 0.0
    n, most = coordinates.posterior.n, settings.extend * settings.iter_sampling
    planned = settings.iter_sampling
    while True:
        done = sampler.advance(planned - len(parts), adapt=False, on_draw=tick)
        accepted += done.accept * len(done.positions)
        parts += [coordinates.to_x(z).T for z in done.positions]
        divergences += done.divergences
        draws = np.stack(parts)  # draws, chains, parameters
        theta = draws[:, :, :n]
        theta = theta - theta.mean(axis=2, keepdims=True)
        judge = draws[:, :, n:]
        final = planned == most
        if not final:
            suspects = theta[:, :, likely_worst(theta, _SUSPECTS)]
            diagnostics = diagnose([suspects, judge], divergences, n, near_stop, gate=gate)
            final = not diagnostics.diagnostics_divergences_pass
        if final or diagnostics.diagnostics_pass:
            diagnostics = diagnose([theta, judge], divergences, n, near_stop, gate=gate)
            if final or diagnostics.diagnostics_pass:
                return draws, theta, diagnostics, accepted / planned
        planned = min(_enough(planned, diagnostics), most)


def _enough(n: int, found: Diagnostics) -> int:
    """How many draws of each chain should pass, when ``n`` did not: the excess of R-hat falls like 1 / n."""
    excess = (found.max_rhat**2 - 1) / max(found.max_rhat_allowed**2 - 1, 1e-9)
    missing = found.ess_bulk_required / max(found.min_ess_bulk, 1e-9)
    factor = np.nan_to_num(max(excess, missing), nan=2.0, posinf=2.0)
    return int(np.ceil(n * min(max(factor, 1.08), 2.0)))


def _flat(draws: Floats) -> Floats:
    """Parameters as rows."""
    return draws.reshape(-1, draws.shape[2]).T


def _columns(last: Floats, chains: int) -> Floats:
    """The last draws for a number of chains that may be another one."""
    return last[:, np.arange(chains) % last.shape[1]]


# What goes in


def _read(results: Table, ids: Iterable[Any] | None) -> tuple[pl.DataFrame, list[str]]:
    rows = decided(results)[0].select("ID1", "ID2", "better_id")
    themselves = rows.filter(pl.col("ID1") == pl.col("ID2"))["ID1"].to_list()
    if themselves:
        notice(f"left out {len(themselves):,} comparisons of a sample with itself: {listed(themselves)}")
        rows = rows.filter(pl.col("ID1") != pl.col("ID2"))
    if rows.height == 0:
        raise FitError("no comparison has a winner; there is nothing to fit")
    seen = pl.concat([rows["ID1"], rows["ID2"].alias("ID1")]).unique().sort().to_list()
    if ids is None:
        return rows, seen
    if isinstance(ids, str):
        raise InputError("ids must be a list of ids, not a text")
    names = require_ids(to_frame({"ID": list(ids)}, "ids"), ["ID"], "ids")["ID"].to_list()
    if len(set(names)) < len(names):
        raise InputError("ids must be unique")
    if unknown := sorted(set(seen) - set(names)):
        raise InputError(f"results: {listed(unknown)} not among ids")
    return rows, names


def _sizes(pair_counts: Sequence[int] | None, available: int) -> list[int]:
    if pair_counts is None:
        return [available]
    sizes = sorted(set(require_list(pair_counts, "pair_counts", require_int, least=1, most=available)))
    if not sizes:
        raise InputError("pair_counts must have one number or more")
    return sizes


def _model(variant: str, prior_sd: Any) -> Model:
    kinds = _VARIANTS[require_choice(variant, "model_variant", _VARIANTS)]
    spread = require_number_or(prior_sd, "prior_sd", ("learned",), above=0)
    return Model(*kinds, prior_sd=None if isinstance(spread, str) else spread)


def _fields(settings: MCMCSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in MCMCSettings.__dataclass_fields__}


def _digest(cells: Cells) -> str:
    from hashlib import sha256

    columns = (cells.winner, cells.loser, cells.sign.astype(np.int64), cells.times.astype(np.int64))
    return sha256(np.stack(columns).astype("<i8").tobytes()).hexdigest()[:16]


# What comes out


def _round_row(fit: BTLFit, refit_id: int, fits: Sequence[BTLFit]) -> pl.DataFrame:
    before = fits[refit_id - 2].n_comparisons if refit_id > 1 else 0
    known: dict[str, Any] = {
        "refit_id": refit_id,
        "timestamp": fit.provenance.created_at,
        "model_variant": fit.model_variant,
        "total_pairs_done": fit.n_comparisons,
        "new_pairs_since_last_refit": fit.n_comparisons - before,
        "n_unique_pairs_seen": fit.n_unique_pairs,
        **model_columns(fit.posterior, fit.diagnostics, fit.degree, fit.pos_count_A, fit.pos_count_B),
    }
    return round_log_row(**known)


class _Bar:
    """A progress bar over transitions, or nothing."""

    def __init__(self, settings: MCMCSettings, show: bool) -> None:
        import sys

        self._progress = None
        if show and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._progress = Progress(console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task("sampling", total=settings.iter_warmup + settings.iter_sampling)

    def __enter__(self) -> Callable[[], None]:
        if self._progress is None:
            return lambda: None
        self._progress.start()
        progress, task = self._progress, self._task
        return lambda: progress.update(task, advance=1)

    def __exit__(self, *_exc: object) -> None:
        if self._progress is not None:
            self._progress.stop()
