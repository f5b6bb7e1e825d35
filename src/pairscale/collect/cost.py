"""What will it cost? A few pairs are asked, and their tokens say what the others will use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_args

import polars as pl

from pairscale.collect._cost_model import Strategy, choose_pilot
from pairscale.collect._cost_study import SUMMARY, Figures, Rates, Study, assumed_output, calibrated, rough, totals
from pairscale.collect._plan import say_unnamed
from pairscale.collect.live import SubmitResult, submit_into
from pairscale.collect.progress import progress_of
from pairscale.core.display import ReprMixin
from pairscale.core.options import (
    ProgressMode,
    checked,
    optional,
    require_choice,
    require_int,
    require_number,
    require_probability,
    require_progress,
    require_seed,
)
from pairscale.core.provenance import Provenance
from pairscale.core.traits import Trait, choose_trait
from pairscale.judges.base import Judge
from pairscale.judges.resolve import make_judge, make_llm_judge
from pairscale.providers.catalog import PROVIDERS, UNDATED, price_note, require_price
from pairscale.runtime import RETRIES, TIMEOUT, RunOptions, require_prices, run_sync
from pairscale.store.runfile import open_run

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import NDArray

    from pairscale.core.tables import Table
    from pairscale.providers.catalog import Price

_OFFLINE_KEY = "no-key-needed"
_SMALL = 10
_UNLIKE = 0.2
_UNSURE, _SURE = 0.15, 0.1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CostEstimate(ReprMixin, table="summary", columns=None):
    """What a set of pairs will cost, with what it rests on.

    Attributes:
        summary: one row: ``backend model mode method test_strategy``; pairs (``n_total n_test n_known n_remaining``);
            what the pilot used and cost; tokens and cost of the remaining pairs and of all, ``expected`` and
            ``budget``; the quantile and the prices. Costs are null where prices are not known.
        calibration: how bytes become input tokens (``intercept slope r_squared residual_sd``), and the output tokens
            of the pilot (``output_mean output_sd output_max``); ``relative_error`` is one standard error of the
            expected cost of the remaining pairs, as a share of it.
        test_pairs: the pairs of the pilot.
        pilot: their results, as of :func:`submit_pairs`; None without a pilot or when not wanted.
        remaining_pairs: the pairs that are still to be asked; None when not wanted. Two pairs that are the same in the
            table have a ``pair_uid`` here, so that the run file can tell them apart.
        failed_pairs: the pairs of the pilot that have no answer, with the reason.
        notes: what to know about these figures.
        provenance: how it was done.
    """

    summary: pl.DataFrame
    calibration: Mapping[str, Any]
    test_pairs: pl.DataFrame
    pilot: pl.DataFrame | None
    remaining_pairs: pl.DataFrame | None
    failed_pairs: pl.DataFrame
    notes: tuple[str, ...]
    provenance: Provenance

    @property
    def expected_cost(self) -> float | None:
        """What all pairs cost, in US dollars; None when prices are not known."""
        return self._figure("expected_cost_total")

    @property
    def budget_cost(self) -> float | None:
        """What they stay below, with the probability ``budget_quantile``."""
        return self._figure("budget_cost_total")

    def _figure(self, name: str) -> float | None:
        value = self.summary[name][0]
        return None if value is None else float(value)

    def __repr__(self) -> str:
        row = self.summary.row(0, named=True)
        rough = row["method"] == "offline"
        budget = "budget" if rough else f"budget (p{100 * row['budget_quantile']:g})"
        who = f"{row['backend']} {row['model'] or ''}".rstrip()
        title = "Rough cost estimate without a pilot" if rough else "Cost estimate"
        pilot = f"{row['n_test']:,} in the pilot"
        known = f", {row['n_known']:,} known already" if row["n_known"] else ""
        lines = [
            f"{title}: {who}, {row['mode']}",
            f"pairs          {row['n_total']:,}: {pilot}{known}, {row['n_remaining']:,} remaining",
        ]
        for name, column in (("input tokens", "prompt_tokens"), ("output tokens", "completion_tokens")):
            figures = [row[f"{kind}_{column}_total"] for kind in ("expected", "budget")]
            lines.append(f"{name:<13}  {figures[0]:,.0f} expected, {figures[1]:,.0f} {budget}")
        lines.append(f"cost           {_cost_line(row, budget)}")
        if row["cost_per_million_input"] is not None:
            lines.append(f"prices         {_price_line(row)}")
        if self.calibration["n"]:
            lines.append(f"calibration    {_fit_line(self.calibration)}")
        return "\n".join([*lines, *(f"note: {text}" for text in self.notes)])


def _cost_line(row: Mapping[str, Any], budget: str) -> str:
    if row["expected_cost_total"] is None:
        return "not known: give the prices of a million tokens"
    spent = row["pilot_cost"] + row["known_cost"]
    said = f"{_money(row['expected_cost_total'])} expected, {_money(row['budget_cost_total'])} {budget}"
    return f"{said}; {_money(spent)} of it spent" if row["n_test"] else said


def _price_line(row: Mapping[str, Any]) -> str:
    said = f"${row['cost_per_million_input']:g} input, ${row['cost_per_million_output']:g} output per million tokens"
    said += price_note([row["prices_as_of"] or UNDATED])
    return said + (f"; batches x {row['batch_discount']:g}" if row["mode"] == "batch" else "")


def _fit_line(fit: Mapping[str, Any]) -> str:
    said = f"{fit['slope']:.4g} tokens per byte" + (f" and {fit['intercept']:.4g}" if fit["intercept"] else "")
    said += "" if fit["r_squared"] is None else f", R2 {fit['r_squared']:.3f}"
    said += f"; output {fit['output_mean']:,.0f} tokens per answer"
    return said + ("" if fit["output_sd"] is None else f" (sd {fit['output_sd']:,.0f}, most {fit['output_max']:,.0f})")


def _money(value: float) -> str:
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.2g}" if value < 0.01 else f"${value:.3f}"


@checked
def estimate_llm_pairs_cost(
    pairs: Table,
    model: str | None = None,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    backend: str = "openai",
    endpoint: str | None = None,
    mode: str = "live",
    n_test: int = 25,
    test_strategy: str = "stratified_prompt_bytes",
    seed: int | None = 1,
    cost_per_million_input: float | None = None,
    cost_per_million_output: float | None = None,
    batch_discount: float | None = None,
    budget_quantile: float = 0.9,
    return_test_results: bool = True,
    return_remaining_pairs: bool = True,
    *,
    judge: str | Judge | Callable[..., Any] | None = None,
    trait: str | Trait = "overall_quality",
    run: str | os.PathLike[str] | None = None,
    api_key: str | None = None,
    offline: bool = False,
    bytes_per_token: float = 4.0,
    output_tokens: float | None = None,
    progress: ProgressMode = True,
    save_path: str | os.PathLike[str] | None = None,
    parallel: bool = False,
    workers: int = 1,
    concurrency: int | None = None,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    retry_wait: float = 1.0,
    include_raw: bool = False,
    verbose: bool = True,
    status_every: int | None = None,
    **settings: Any,
) -> CostEstimate:
    """Estimate the tokens and the cost of a set of pairs from a small pilot.

    The pilot is asked live. Its input tokens are set against the bytes of its prompts by least squares, which gives the
    input tokens of all others; their output tokens are those of the pilot on average. The expected total is what the
    pilot cost and what the others are expected to. It is right on average for a pilot taken by chance, whatever the
    distribution of the tokens; a single one is off by about ``calibration["relative_error"]``. The budget is a total
    that is not passed with the probability ``budget_quantile``: it counts that a pilot is a sample, and that the others
    vary. Output tokens that depend on rare events (one answer in twenty thinks for long) need a pilot large enough to
    have seen some.

    Args:
        pairs: A table of ``ID1 text1 ID2 text2``.
        model: Name of the model; not needed with ``judge``.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; without one, see ``trait``.
        prompt_template: Name, file or text of a prompt template.
        backend: The provider.
        endpoint: For OpenAI: ``chat.completions`` or ``responses``; None chooses by the model.
        mode: how the remaining pairs will be asked: ``live``, or ``batch`` at the batch price. The pilot is live.
        n_test: pairs of the pilot; all when there are fewer.
        test_strategy: which: ``stratified_prompt_bytes`` (short and long prompts in their proportion), ``random``, or
            ``first`` (good only when the first pairs are like the others).
        seed: of the choice; the same seed takes the same pairs, None others each time.
        cost_per_million_input: price of a million input tokens; by default from the dated table.
        cost_per_million_output: of a million output tokens, thoughts included.
        batch_discount: what batches cost of the live price, such as 0.5; by default from the dated table, and 1 with
            prices of your own.
        budget_quantile: the probability of staying within the budget, 0.5 or more.
        return_test_results: return the results of the pilot, so that they need not be paid for twice.
        return_remaining_pairs: return the remaining pairs.
        judge: a judge in place of ``backend`` and ``model``: its name (``openai:gpt-5.1``), a callable or a
            :class:`Judge`; it must say how many tokens it used.
        trait: a built-in trait's key, or a :class:`Trait`.
        run: the run file. The answers of the pilot are kept there: the same call asks nothing again, and
            :func:`submit_pairs` on the same file asks only the remaining pairs. Pairs outside the pilot that it has
            answers for count with what they cost.
        api_key: The API key; by default that of the environment.
        offline: ask nothing; estimate from bytes alone. The figures are rough.
        bytes_per_token: of such an estimate; about 4 for English, less for most other languages.
        output_tokens: of each answer in such an estimate; by default 20, and 1,000 for a model that thinks.
        progress: show a bar in a terminal, and lines elsewhere; see :func:`submit_llm_pairs`, also for ``verbose`` and
            ``status_every``.
        save_path: a CSV of the pilot's results, as in :func:`submit_pairs`.
        parallel: ask ``workers`` questions at once.
        workers: how many.
        concurrency: the same as ``parallel=True`` with this many ``workers``.
        retries: how often to ask again when an error may pass.
        timeout: seconds that one answer may take; None for no limit.
        retry_wait: seconds before the first of these.
        include_raw: add ``raw_response`` to the pilot's results.
        verbose: print lines on standard error that say how far the pilot is.
        status_every: print a line per this many pairs of the pilot.
        settings: of :class:`LLMJudge`: ``reasoning temperature max_tokens both_orders base_url price …``.

    Returns:
        A :class:`CostEstimate` with ``summary``, ``calibration``, ``test_pairs``, ``pilot`` and ``remaining_pairs``.

    Raises:
        InputError: pairs or settings cannot be used, no pair of the pilot was answered, or the judge counts no tokens.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples)
        >>> est = estimate_llm_pairs_cost(pairs, "gpt-4.1", offline=True)
        >>> est.summary.select("n_total", "expected_completion_tokens_total").row(0)
        (190, 3800.0)
    """
    strategy, seed = _strategy(test_strategy), require_seed(seed)
    n_test = require_int(n_test, "n_test", least=0 if offline else 1)
    _check(mode, budget_quantile, batch_discount, bytes_per_token, output_tokens, status_every, progress)
    options = RunOptions(_open_at_once(concurrency, workers, parallel=parallel), retries, retry_wait, timeout)
    key = _OFFLINE_KEY if offline and api_key is None else api_key

    def made(price: Price | None = None) -> Judge:
        more = settings | ({} if price is None else {"price": price})
        what = choose_trait(trait, trait_name, trait_description)
        if judge is None:
            of_model: dict[str, Any] = {"endpoint": endpoint, "api_key": key, "judge_args": more}
            return make_llm_judge(backend, model, what, prompt_template, **of_model)
        said = trait != "overall_quality" or trait_name is not None or trait_description is not None
        return _judge(judge, what if said else None, prompt_template, more, key)

    asked = made()
    rates = Rates.of(asked, _paid(cost_per_million_input, cost_per_million_output), mode, batch_discount)
    if rates.own and (judge is None or _is_model(judge)):
        asked = made(rates.price)  # so that the run file remembers the same prices
    study = Study.of(pairs, asked)
    how = {"mode": mode, "n_test": n_test, "test_strategy": strategy, "budget_quantile": budget_quantile}
    condition, chosen = asked.condition, how | {"offline": offline}
    provenance = Provenance("estimate_llm_pairs_cost", chosen, seed, {"condition": condition.condition_id})
    facts = {"backend": condition.backend, "model": condition.model, "mode": mode, "n_total": study.pairs.height}
    if offline:
        each = assumed_output(asked) if output_tokens is None else output_tokens
        left = study.pairs if return_remaining_pairs else None
        return _offline(study, rates, bytes_per_token, each, facts, left, provenance)
    say_unnamed(asked, run or save_path)
    pilot = choose_pilot(study.bytes, n_test, strategy, seed)
    test_pairs = study.pairs[pilot[0]]
    bar, every = progress_of(test_pairs, verbose=verbose, status_every=status_every, progress=progress)
    more = {"progress": bar, "status_every": every, "save_path": save_path, "include_raw": include_raw}
    done, usage = run_sync(lambda: _asked(run, test_pairs, asked, options, more), run=run or save_path)
    found = calibrated(study, rates, pilot, done, usage, budget_quantile)
    answers = done.results if return_test_results else None
    left = study.pairs.filter(pl.Series(found.left)) if return_remaining_pairs else None
    notes = (*_pilot_notes(strategy, done, found, study.bytes, pilot[0]), *rates.notes)
    method = {"method": "pilot", "test_strategy": strategy, "budget_quantile": budget_quantile}
    table = _table(facts | method | totals(found, rates))
    return CostEstimate(table, found.calibration, test_pairs, answers, left, done.failed_pairs, notes, provenance)


def _open_at_once(concurrency: int | None, workers: int, *, parallel: bool) -> int:
    """Questions open at once, by our option or by R's two."""
    workers = require_int(workers, "workers", least=1)
    return concurrency if concurrency is not None else workers if parallel else 1


async def _asked(
    run: str | os.PathLike[str] | None,
    pairs: pl.DataFrame,
    judge: Judge,
    options: RunOptions,
    more: Mapping[str, Any],
) -> tuple[SubmitResult, pl.DataFrame]:
    """The pilot's answers, and every attempt that the run file has under its condition."""
    require_prices([judge], None)
    with open_run(run, write=True) as store:
        done = await submit_into(store, pairs, judge, options, **more)
        return done, store.usage(done.condition_id)


def _judge(
    judge: str | Judge | Callable[..., Any],
    trait: Trait | None,
    template: str | None,
    settings: dict[str, Any],
    key: str | None,
) -> Judge:
    if not isinstance(judge, str):
        return make_judge(judge, trait=trait, template=template, judge_args=settings or None)
    if key is not None and _is_model(judge):
        settings.setdefault("api_key", key)
    return make_judge(judge, trait=trait, template=template, judge_args=settings)


def _is_model(judge: object) -> bool:
    return isinstance(judge, str) and judge.partition(":")[0] in PROVIDERS


def _paid(
    cost_per_million_input: float | None, cost_per_million_output: float | None
) -> tuple[float | None, float | None]:
    """The prices that the user gave."""
    return (
        require_price(cost_per_million_input, "cost_per_million_input"),
        require_price(cost_per_million_output, "cost_per_million_output"),
    )


def _offline(
    study: Study,
    rates: Rates,
    bytes_per_token: float,
    output_tokens: float,
    facts: Mapping[str, Any],
    left: pl.DataFrame | None,
    provenance: Provenance,
) -> CostEstimate:
    """An estimate from the length of the texts; nothing is asked."""
    found = rough(study, rates, bytes_per_token, output_tokens)
    row = {**facts, "method": "offline", "test_strategy": None, "budget_quantile": None, **totals(found, rates)}
    notes = (*_rough_notes(bytes_per_token, output_tokens), *rates.notes)
    none = study.pairs.clear()
    return CostEstimate(_table(row), found.calibration, none, None, left, none, notes, provenance)


def _table(row: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([{name: row[name] for name in SUMMARY}], schema=SUMMARY)


def _strategy(name: str) -> Strategy:
    full = "stratified_prompt_bytes" if name == "stratified" else name
    return cast("Strategy", require_choice(full, "test_strategy", get_args(Strategy)))


def _check(
    mode: str,
    quantile: float,
    discount: float | None,
    bytes_per_token: float,
    output_tokens: float | None,
    status_every: int | None,
    progress: ProgressMode,
) -> None:
    require_choice(mode, "mode", ("live", "batch"))
    require_number(quantile, "budget_quantile", least=0.5, below=1)
    optional(require_probability, discount, "batch_discount")
    require_number(bytes_per_token, "bytes_per_token", above=0)
    optional(require_number, output_tokens, "output_tokens", least=0)
    optional(require_int, status_every, "status_every", least=1)
    require_progress(progress)


def _rough_notes(bytes_per_token: float, output_tokens: float) -> tuple[str, ...]:
    assumed = f"{bytes_per_token:g} bytes per token and {output_tokens:,.0f} tokens per answer"
    return (f"rough: nothing was asked; it assumes {assumed}, and the budget a third more input and twice the output",)


def _pilot_notes(
    strategy: Strategy, done: SubmitResult, found: Figures, lengths: NDArray[np.int64], pilot: NDArray[np.int64]
) -> tuple[str, ...]:
    asked, failed = done.results.height + done.failed_pairs.height, done.failed_pairs.height
    more, error = bool(found.left.any()), found.calibration["relative_error"]
    notes = []
    if failed:
        notes.append(
            f"{failed} of the {asked} pairs of the pilot have no answer and will be asked, and paid for, again"
        )
    if more and asked < _SMALL:
        notes.append(f"a pilot of {asked} says little of rare long answers; take {_SMALL} or more")
    if more and error is not None and error > _UNSURE and asked >= _SMALL:
        need = math.ceil(asked * (error / _SURE) ** 2)
        notes.append(
            f"answers vary much in length: one standard error of the expected cost is {error:.0%}; a pilot of about "
            f"{min(need, found.left.size):,} would bring it to {_SURE:.0%}"
        )
    if more and strategy == "first" and abs(lengths[pilot].mean() / lengths.mean() - 1) > _UNLIKE:
        notes.append(
            "the first pairs are longer or shorter than the others; choose the pilot by stratified_prompt_bytes"
        )
    return tuple(notes)
