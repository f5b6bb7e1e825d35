"""The manual's cost estimate, with R's names of its options."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pairscale.collect.cost import OFFLINE_KEY, CostEstimate, estimate_cost, is_model
from pairscale.compat.live import progress_of
from pairscale.core.errors import InputError
from pairscale.core.options import (
    ProgressMode,
    checked,
    optional,
    require_choice,
    require_int,
    require_number,
    require_probability,
)
from pairscale.core.tables import to_frame
from pairscale.core.traits import Trait, choose_trait
from pairscale.judges.base import Judge, judge_member
from pairscale.judges.build import make_judge, make_llm_judge
from pairscale.providers.catalog import Price, require_price
from pairscale.runtime import RETRIES, TIMEOUT, RunOptions

if TYPE_CHECKING:
    from pairscale.core.tables import Table


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
    trait: str | Trait | None = None,
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
    mode = require_choice(mode, "mode", ("live", "batch"))
    n_test = require_int(n_test, "n_test", least=0 if offline else 1)
    full_name = "stratified_prompt_bytes" if test_strategy == "stratified" else test_strategy
    strategy = require_choice(full_name, "test_strategy", ("stratified_prompt_bytes", "random", "first"))
    require_number(budget_quantile, "budget_quantile", least=0.5, below=1)
    optional(require_probability, batch_discount, "batch_discount")
    require_number(bytes_per_token, "bytes_per_token", above=0)
    optional(require_int, status_every, "status_every", least=1)
    workers = require_int(workers, "workers", least=1)
    if concurrency is None:
        concurrency = workers if parallel else 1
    if offline and api_key is None:
        api_key = OFFLINE_KEY
    question = None
    if trait is not None or trait_name is not None or trait_description is not None:
        question = choose_trait(trait or "overall_quality", trait_name, trait_description)
    made = partial(_made, judge, backend, model, question, prompt_template, endpoint, api_key)
    asked = made(settings)
    price = _own_price(asked, cost_per_million_input, cost_per_million_output)
    if price is not None and (judge is None or is_model(judge)):
        asked = made(settings | {"price": price})  # so that the run file remembers the same prices
    table = to_frame(pairs, "pairs")
    bar, every = progress_of(min(n_test, table.height), verbose=verbose, status_every=status_every, progress=progress)
    found = estimate_cost(
        table, asked, options=RunOptions(concurrency, retries, retry_wait, timeout), pilot=n_test, strategy=strategy,
        seed=seed, price=price, batch=mode == "batch", discount=batch_discount, quantile=budget_quantile,
        offline=offline, bytes_per_token=bytes_per_token, output_tokens=output_tokens, run=run, save_path=save_path,
        progress=bar, status_every=every, include_raw=include_raw,
    )  # fmt: skip
    if not return_test_results:
        found = replace(found, pilot=None)
    if not return_remaining_pairs:
        found = replace(found, remaining_pairs=None)
    return found


def _made(
    judge: str | Judge | Callable[..., Any] | None,
    backend: str,
    model: str | None,
    trait: Trait | None,
    template: str | None,
    endpoint: str | None,
    api_key: str | None,
    settings: dict[str, Any],
) -> Judge:
    """The judge that is named or given, else that of the backend and the model."""
    if judge is None:
        asked = trait or choose_trait("overall_quality", None, None)
        return make_llm_judge(backend, model, asked, template, endpoint=endpoint, api_key=api_key, judge_args=settings)
    if is_model(judge) and api_key is not None:
        settings = {"api_key": api_key, **settings}
    return make_judge(judge, trait=trait, template=template, judge_args=settings or None)


def _own_price(judge: Judge, per_input: float | None, per_output: float | None) -> Price | None:
    """The price that is given, where one of two is given with the judge's other; None when none is."""
    per_input = require_price(per_input, "cost_per_million_input")
    per_output = require_price(per_output, "cost_per_million_output")
    if per_input is None and per_output is None:
        return None
    usual = judge_member(judge, "price")
    if isinstance(usual, Price):
        per_input = usual.input if per_input is None else per_input
        per_output = usual.output if per_output is None else per_output
    if per_input is None or per_output is None:
        raise InputError("give both cost_per_million_input and cost_per_million_output")
    return Price(per_input, per_output)
