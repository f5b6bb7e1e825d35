"""Is this judge fit for this study? A few pairs, in both orders, and the answer in figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.checks.position import PositionalBias, check_positional_bias, compute_reverse_consistency
from pairscale.collect import SubmitResult, submit_pairs
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.options import require_int
from pairscale.core.samples import read_samples
from pairscale.judges.base import Judge, judge_member
from pairscale.judges.resolve import judge_with
from pairscale.pairing import randomize_pair_order
from pairscale.pairing.make import some_pairs
from pairscale.pairing.table import swapped
from pairscale.providers.prices import price_date
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT

if TYPE_CHECKING:
    import os

    from pairscale.core.tables import Table
    from pairscale.core.traits import Trait
    from pairscale.providers.prices import Price

__all__ = ["JudgeCheck", "check_judge"]


@dataclass(frozen=True, slots=True, repr=False)
class JudgeCheck(ReprMixin):
    """What some pairs in both orders say of a judge.

    Attributes:
        judge_id: who was asked.
        n_items: texts of the data set.
        n_pairs: pairs that were asked about, in both orders.
        n_asked: questions.
        n_valid: of these, answered with a winner.
        failures: ``error_code error_message n`` of the others.
        prop_consistent: the share of pairs with the same winner both ways; None when no pair was answered twice.
        bias: what the two orders say of the position; None likewise.
        cost_each: US dollars a question, where the judge says; also of one that came from the answer cache.
        seconds_each: seconds a question that was asked.
        tokens_each: tokens a question, where the judge says.
        prices_as_of: date of the prices behind ``cost_each``; None where the judge states its costs itself.
    """

    judge_id: str
    n_items: int
    n_pairs: int
    n_asked: int
    n_valid: int
    failures: pl.DataFrame
    prop_consistent: float | None
    bias: PositionalBias | None
    cost_each: float | None
    seconds_each: float | None
    tokens_each: float | None
    prices_as_of: str | None = None

    @property
    def prop_valid(self) -> float:
        """The share of questions that were answered with a winner."""
        return self.n_valid / self.n_asked

    def __str__(self) -> str:
        valid = f"{self.judge_id}: {self.n_valid:,} of {self.n_asked:,} questions answered with a winner"
        if self.bias is None or self.prop_consistent is None:
            return valid
        return f"{valid}, {self.prop_consistent:.1%} of pairs consistent; {self.bias.verdict}"


def check_judge(
    data: Table,
    judge: str | Judge | Callable[..., Any] = "lexical",
    *,
    run: str | os.PathLike[str] | None = None,
    n_pairs: int = 30,
    trait: str | Trait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    cache: bool | None = None,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    max_cost: float | None = None,
    price: Price | Mapping[str, Any] | None = None,
    seed: int = 1,
    progress: bool = True,
    id_col: int | str | None = None,
    text_col: int | str | None = None,
    encoding: str | None = None,
    strict: bool = False,
) -> JudgeCheck:
    """Ask a judge about some pairs of a data set in both orders, and see what it is worth.

    Args:
        data: Samples: a table, a file (csv, tsv, jsonl, parquet, xlsx), a folder or zip archive of texts.
        judge: A name (``lexical``, ``openai:gpt-5.1``, ``module:function``), a function ``judge(A, B)`` or a
            :class:`Judge`.
        run: The run file; the same call again asks nothing twice.
        n_pairs: How many pairs; each is asked twice.
        trait: What to judge: the key of a built-in trait, or a :class:`Trait`.
        template: A prompt template, by its name, file or text.
        judge_args: Settings of the judge; of a function, keyword arguments of every call.
        base_url: Address of the provider, such as ``http://localhost:8000/v1``.
        cache: Whether to use answers of earlier runs to the same request; by default for temperature 0.
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer may take; None for no limit.
        max_cost: US dollars that the run may spend, all calls together.
        price: US dollars per million tokens, such as ``{"input": 1.25, "output": 10}``; by default the dated table.
        seed: Seed of the choice of pairs.
        progress: Show progress on standard error.
        id_col: The column of ids, by name, position from 0 or path in JSON.
        text_col: The column of texts, by name, position from 0 or path in JSON.
        encoding: Encoding of the text files; detected by default.
        strict: Raise an error if any file was not read.

    Returns:
        A :class:`JudgeCheck`.

    Raises:
        InputError: If the data, the judge or a setting cannot be used.
        JudgeError: If the judge cannot be asked, or fails in the same way on ten different questions in a row.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> ps.check_judge(ps.example_writing_samples, "lexical", n_pairs=10, progress=False).prop_consistent
        1.0
    """
    n_pairs, seed = require_int(n_pairs, "n_pairs", least=1), require_int(seed, "seed", least=0)
    concurrency = require_int(concurrency, "concurrency", least=1)
    samples = read_samples(data, id_col=id_col, text_col=text_col, encoding=encoding, strict=strict)
    if samples.height < 2:
        raise InputError(f"a judge compares two texts; there are {samples.height}")
    asked = judge_with(
        judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url, cache=cache, price=price
    )
    forward = randomize_pair_order(some_pairs(samples, n_pairs, seed), seed=seed)
    both = pl.concat([forward, swapped(forward, np.ones(forward.height, dtype=bool))])
    done = submit_pairs(
        both, asked, run=run, concurrency=concurrency, retries=retries, timeout=timeout, max_cost=max_cost,
        progress=progress,
    )  # fmt: skip
    results = done.results
    bias = None
    if results.filter(pl.col("better_id").is_not_null()).height:
        keys = forward.select("ID1", "ID2")
        main = results.join(keys, on=["ID1", "ID2"], how="semi")
        reverse = results.join(keys, left_on=["ID2", "ID1"], right_on=["ID1", "ID2"], how="semi")
        consistency = compute_reverse_consistency(main, reverse)
        if consistency.details.height:
            bias = check_positional_bias(consistency, seed=seed)
    failures = done.failed_pairs.group_by("error_code", "error_message").len("n").sort("n", descending=True)
    return JudgeCheck(
        judge_id=asked.condition.judge_id,
        n_items=samples.height,
        n_pairs=forward.height,
        n_asked=both.height,
        n_valid=results.filter(pl.col("better_id").is_not_null()).height,
        failures=failures,
        prop_consistent=None if bias is None else float(bias.summary["prop_consistent"][0]),
        bias=bias,
        cost_each=_cost_each(done),
        seconds_each=_mean(_paid(done), "latency_s"),
        tokens_each=_mean(results, "total_tokens"),
        prices_as_of=price_date(judge_member(asked, "price")),
    )


def _paid(done: SubmitResult) -> pl.DataFrame:
    """The answers that were asked for: one of the answer cache has no status and costs nothing."""
    from_cache = pl.col("model").is_not_null() & pl.col("status_code").is_null() & (pl.col("cost") == 0)
    return done.results.filter(~from_cache.fill_null(value=False))


def _cost_each(done: SubmitResult) -> float | None:
    paid = _mean(_paid(done), "cost")
    return done.saved / done.cached if paid is None and done.cached and done.saved else paid


def _mean(results: pl.DataFrame, name: str) -> float | None:
    values = results[name].drop_nulls()
    return None if values.len() == 0 else float(values.cast(pl.Float64).to_numpy().mean())
