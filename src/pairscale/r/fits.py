"""The manual's models: our fits, with R's positions, engines and settings beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.tables import Table
from pairscale.models import bradley_terry, elo
from pairscale.models.bayes import results as bayes
from pairscale.models.bayes.results import BayesFit
from pairscale.models.bayes.settings import MCMCSettings, Variant
from pairscale.models.bradley_terry import BTFit
from pairscale.models.elo import EloFit
from pairscale.r.logs import with_r_names
from pairscale.r.settings import Settings

_EXACT = "the equations are solved to nine digits"
_TOGETHER = "all chains of this sampler advance together"
_WITHOUT_EFFECT = {
    **dict.fromkeys(("maxiter", "conv"), _EXACT),
    **dict.fromkeys(("core_fraction", "parallel_chains", "threads_per_chain"), _TOGETHER),
    "output_dir": "this sampler writes no files",
    "refresh": "this sampler prints no iterations",
}
"""Settings of the R packages that mean nothing here, and why."""


@checked
def fit_bt_model(bt_data: Table, engine: str = "auto", verbose: bool = False, **options: Any) -> BTFit:
    """Fit a Bradley–Terry model: a score for every item, from comparisons of two.

    Args:
        bt_data: ``object1 object2 result``, or results of any shape that :func:`build_bt_data` takes.
        engine: ``auto`` (``sirt``), ``sirt``, ``mle``, ``map`` or ``firth``. ``BradleyTerry2`` is ``mle`` with the
            first item, by id, at 0.
        verbose: Say how the engine went.
        options: Ours: ``ids eps prior_sd reference position ties weights level covariance cluster bootstrap
            rank_intervals seed unconnected repeats chosen n_jobs``. Of ``sirt::btm``: ``eps``, ``ignore_ties``
            (``ties``), ``fix_eta`` (``position``), ``maxiter`` and ``conv`` (no effect). Of ``BradleyTerry2::BTm``:
            ``refcat`` (``reference``) and ``br`` (the engine ``firth``). A dot in a name may be an underscore.

    Returns:
        A :class:`BTFit` with ``theta`` (``ID theta se rank …``), ``reliability``, ``engine`` and ``fit``.

    Raises:
        TableError: If the columns are of no known shape, an id is missing, or a result is not 1, 0, 0.5 or missing.
        InputError: If an option is out of range.
        UnknownNameError: If there is no such engine.
        FitError: If there is nothing to fit, the engine has no finite answer, or the comparisons fall into parts.

    Example:
        >>> rows = [("a", "b", 1), ("b", "c", 1), ("a", "c", 1), ("c", "a", 1)]
        >>> data = [{"object1": x, "object2": y, "result": z} for x, y, z in rows]
        >>> fit_bt_model(data, "BradleyTerry2").theta.filter(ID="a")["theta"].item()
        0.0
    """
    given = _renamed(options, refcat="reference")
    if given.pop("ignore_ties", True) is False and "ties" not in given:
        raise InputError("ties are not modelled; count half a win for each with ties='half', or leave ignore_ties out")
    if "fix_eta" in given:
        fixed = given.pop("fix_eta")
        if fixed not in (None, 0):
            raise InputError(f"fix_eta is {fixed!r}; it can be 0 (no position effect) or None (estimate it)")
        given.setdefault("position", fixed is None)
    if engine != "BradleyTerry2":
        return bradley_terry.fit_bt_model(bt_data, engine=engine, verbose=verbose, **given)
    own: Literal["firth", "mle"] = "firth" if given.pop("br", False) else "mle"
    if given.get("reference") is None:
        scores = bradley_terry.fit_bt_model(bt_data, engine=own, **given | {"bootstrap": 0})
        given["reference"] = min(scores.theta["ID"])
    fit = bradley_terry.fit_bt_model(bt_data, engine=own, verbose=verbose, **given)
    return replace(fit, engine=engine)


@checked
def fit_elo_model(elo_data: Table, runs: int = 5, verbose: bool = False, **options: Any) -> EloFit:
    """Fit Elo ratings: every decision moves the ratings of its two items, averaged over random orders.

    Args:
        elo_data: ``winner loser``, or results of any shape that :func:`build_elo_data` takes.
        runs: Random orders.
        verbose: Say how it went.
        options: ``k``, the most points that a decision can move, 100 by default; ``start``, the rating that every item
            starts with, 0; ``seed``. ``kval`` and ``startvalue`` are EloChoice's names of the first two.

    Returns:
        An :class:`EloFit` with ``elo``, ``reliability``, ``reliability_weighted``, ``engine`` and ``fit``.

    Raises:
        InputError: If an option is out of range.
        FitError: If no decision is between two items.

    Example:
        >>> games = [{"winner": "a", "loser": "b"}, {"winner": "b", "loser": "c"}, {"winner": "a", "loser": "c"}]
        >>> fit_elo_model(games, kval=50, startvalue=1000, seed=1).elo["ID"].to_list()
        ['a', 'b', 'c']
    """
    given = _renamed(options, kval="k", startvalue="start")
    return elo.fit_elo_model(elo_data, runs, verbose=verbose, **given)


def fit_bayes_btl_mcmc(
    results: Table,
    ids: Iterable[Any] | None = None,
    model_variant: Variant = "btl_e_b",
    cmdstan: Mapping[str, Any] | MCMCSettings | None = None,
    pair_counts: Sequence[int] | None = None,
    subset_method: Literal["first", "sample"] = "first",
    seed: int | None = None,
    *,
    mcmc: Mapping[str, Any] | MCMCSettings | None = None,
    **options: Any,
) -> BayesFit:
    """Fit the Bayesian model to results, once or on growing parts of them, with the prior of R's pairwiseLLM.

    The prior has a standard deviation of 1, repeats count as new evidence, and ties are left out. ``ps.fit(results,
    model="bayes")`` learns the standard deviation, counts repeats by what they add, and takes ties as evidence.

    Args:
        results: Canonical results, or results of any shape; rows without a winner are left out, with a notice.
        ids: All items there are; those without a comparison keep the prior. Default: those in the results.
        model_variant: ``btl``, ``btl_e`` (lapse), ``btl_b`` (position) or ``btl_e_b`` (both).
        cmdstan: R's name of ``mcmc``: ``chains iter_warmup iter_sampling seed``, and ``adapt_delta``, which is our
            ``target_accept``. Settings of CmdStan that mean nothing here are named in a notice.
        pair_counts: Fit the first n comparisons, for each of these sizes n.
        subset_method: ``first`` takes them in their order, ``sample`` in a random one.
        seed: Of the sampler (unless ``mcmc`` has one) and of ``sample``.
        mcmc: Fields of ``MCMCSettings``: ``chains iter_warmup iter_sampling target_accept extend seed``.
        options: ``prior_sd`` (a number or ``"learned"``), ``repeats``, ``ties`` and ``progress``.

    Returns:
        A :class:`BayesFit` with ``item_log_list``, ``item_summary``, ``round_log``, ``fits`` and ``fit``.

    Raises:
        InputError: If a variant or a field is unknown, or an id is not among ``ids``.
        FitError: If no row has a winner.

    Example:
        >>> import pairscale as ps
        >>> fit = fit_bayes_btl_mcmc(ps.example_writing_results, model_variant="btl", cmdstan={"chains": 4}, seed=1)
        >>> ps.summarize_items(fit, top_n=3)["ID"].to_list()
        ['S20', 'S19', 'S18']
    """
    if cmdstan is not None and mcmc is not None:
        raise InputError("cmdstan and mcmc are two names of the same settings; give one of them")
    settings = cmdstan if mcmc is None else mcmc
    if isinstance(settings, Mapping):
        given = {name: value for name, value in settings.items() if value is not None}
        settings = _renamed(given, adapt_delta="target_accept")
    fit = bayes.fit_bayes_btl_mcmc(results, ids, model_variant, settings, pair_counts, subset_method, seed, **options)
    return replace(fit, round_log=with_r_names(fit.round_log))


def _renamed(options: Mapping[str, Any], **names: str) -> Settings:
    """Options under our names; says which of R's have no effect."""
    given: Settings = {}
    for name, value in options.items():
        own = names.get(name.replace(".", "_"), name.replace(".", "_"))
        if own in _WITHOUT_EFFECT:
            notice(f"{name} has no effect: {_WITHOUT_EFFECT[own]}")
        elif own in given:
            raise InputError(f"{name} and {own} are two names of the same option; give one of them")
        else:
            given[own] = value
    return given
