"""The manual's cost estimate: ours, with R's names of its options; see :mod:`pairscale.r.manual`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pairscale.collect.cost import OFFLINE_KEY, CostEstimate, estimate_cost
from pairscale.core.options import optional, require_choice, require_int, require_number, require_probability
from pairscale.core.tables import Table
from pairscale.r.live import asking_options
from pairscale.r.settings import judge_from, taken
from pairscale.runtime import RunOptions

_STRATEGIES = ("stratified_prompt_bytes", "random", "first")


def estimate(
    backend: str,
    pairs: Table,
    model: str,
    mode: str,
    n_test: int,
    test_strategy: str,
    batch_discount: float | None,
    budget_quantile: float,
    cost_per_million_input: float | None,
    cost_per_million_output: float | None,
    return_test_results: bool,
    return_remaining_pairs: bool,
    **settings: Any,
) -> CostEstimate:
    """Estimate the tokens and the cost of a set of pairs from a small pilot."""
    require_choice(mode, "mode", ("live", "batch"))
    require_choice(test_strategy, "test_strategy", _STRATEGIES)
    require_number(budget_quantile, "budget_quantile", least=0.5, below=1)
    optional(require_probability, batch_discount, "batch_discount")
    is_offline = settings.get("offline", False)
    require_int(n_test, "n_test", least=0 if is_offline else 1)
    if is_offline:
        settings["api_key"] = settings.get("api_key") or OFFLINE_KEY
    given = {"input": cost_per_million_input, "output": cost_per_million_output}
    price = {name: value for name, value in given.items() if value is not None}
    if price:
        settings["price"] = price
        batch_discount = 1.0 if batch_discount is None else batch_discount
    asking = asking_options(settings)
    options = RunOptions(asking.pop("concurrency"), **taken(settings, "retries retry_wait timeout"))
    asking |= taken(settings, "seed offline run save_path include_raw")
    estimated = estimate_cost(
        pairs, judge_from(backend, model, **settings), options=options, pilot=n_test, strategy=test_strategy,
        batch=mode == "batch", discount=batch_discount, quantile=budget_quantile, **asking,
    )  # fmt: skip
    if not return_test_results:
        estimated = replace(estimated, pilot=None)
    if not return_remaining_pairs:
        estimated = replace(estimated, remaining_pairs=None)
    return estimated
