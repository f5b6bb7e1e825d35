"""What a cost estimate is made of: the pairs and their prompts, the prices, what was used, and the row of figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.collect._cost_model import Spread, fit_input, likely_sum
from pairscale.collect._plan import named_pairs
from pairscale.core.errors import InputError
from pairscale.judges.base import Judge, JudgePair, judge_member
from pairscale.judges.llm import LLMJudge
from pairscale.judges.orders import unwrapped
from pairscale.pairing.table import as_pairs
from pairscale.providers.base import Usage
from pairscale.providers.families import capabilities
from pairscale.providers.prices import Price, cost_of
from pairscale.providers.registry import PROVIDERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairscale.collect.live import SubmitResult
    from pairscale.core.tables import Table

_MILLION = 1_000_000
_SILENT, _THINKING = 20, 1_000  # tokens of an answer: the tag alone, or with thoughts
_DENSEST = 0.75  # of the bytes a token: the budget of a rough estimate
_ANSWERED = ("win", "tie", "flip")
_TEXT, _INT, _REAL = pl.String(), pl.Int64(), pl.Float64()

SUMMARY: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("backend", "model", "mode", "method", "test_strategy"), _TEXT),
    **dict.fromkeys(("n_total", "n_test", "n_known", "n_remaining"), _INT),
    **dict.fromkeys(("pilot_prompt_tokens", "pilot_completion_tokens"), _INT),
    "pilot_cost": _REAL,
    "known_cost": _REAL,
    **{
        f"est_remaining_{tokens}_{kind}": _REAL
        for tokens in ("prompt_tokens", "completion_tokens")
        for kind in ("expected", "budget")
    },
    **{
        f"{kind}_{what}"
        : _REAL
        for what in ("cost_remaining", "prompt_tokens_total", "completion_tokens_total", "cost_total")
        for kind in ("expected", "budget")
    },
    **dict.fromkeys(("budget_quantile", "cost_per_million_input", "cost_per_million_output", "batch_discount"), _REAL),
    "prices_as_of": _TEXT,
}  # fmt: skip
"""The columns of a summary."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What tokens will cost.

    Attributes:
        price: of a million; None if unknown.
        own: whether it was given for this estimate, so that it holds for what was paid before, too.
        mode: ``live`` or ``batch``.
        discount: what batches cost of the live price; 1 when the remaining pairs are asked live.
        notes: what to know about them.
        tier: what the service tier that is asked for costs of the usual price; batches have none.
    """

    price: Price | None
    own: bool
    mode: str
    discount: float
    notes: tuple[str, ...] = ()
    tier: float = 1.0

    @classmethod
    def of(cls, judge: Judge, given: tuple[float | None, float | None], mode: str, discount: float | None) -> Rates:
        """The judge's prices, or those given for input and output, and the batch price."""
        found = judge_member(judge, "price")
        price = found if isinstance(found, Price) else None
        own = given != (None, None)
        if own:
            if price is None and None in given:
                raise InputError("give both cost_per_million_input and cost_per_million_output")
            base = price or Price(0.0, 0.0)
            parts = [base.input if given[0] is None else given[0], base.output if given[1] is None else given[1]]
            price = Price(parts[0], parts[1])
        notes: tuple[str, ...] = (
            () if price else (f"no price of {judge.condition.judge_id} is known; these are tokens alone",)
        )
        if mode == "live":
            tier = _tier_share(price, judge.condition.settings.get("service_tier"))
            if tier is None:
                notes += ("the price of this service tier is not known; these figures are of the usual one",)
            return cls(price, own, mode, 1.0, notes, 1.0 if tier is None else tier)
        if discount is None and price is not None:
            discount = price.batch
            if discount is None:
                notes += (
                    "no batch price is known, so batches count at the live price; batch_discount= says otherwise",
                )
        return cls(price, own, mode, 1.0 if discount is None else discount, notes)

    def paid(self, usage: pl.DataFrame) -> float | None:
        """What attempts cost: as they were recorded, or by the prices given for this estimate."""
        if self.price is None:
            known = usage["cost"].drop_nulls()
            return float(known.sum()) if known.len() or usage.height == 0 else None
        prompt, completion = pl.col("prompt_tokens").fill_null(0), pl.col("completion_tokens").fill_null(0)
        cached = pl.min_horizontal(pl.col("prompt_cached_tokens").fill_null(0), prompt)
        cheaper = self.price.input if self.price.cached is None else self.price.cached
        counted = (prompt - cached) * self.price.input + cached * cheaper + completion * self.price.output
        cost = counted / _MILLION if self.own else pl.coalesce("cost", counted / _MILLION)
        return float(usage.select(cost.sum()).item())

    def input_price(self, usage: pl.DataFrame) -> float:
        """Of a million input tokens of the remaining pairs; live, as many are cached as in the pilot."""
        if self.price is None:
            return 0.0
        known = usage.drop_nulls("prompt_tokens")
        prompt = float(known["prompt_tokens"].sum())
        if self.mode != "live" or self.price.cached is None or prompt == 0:
            return self.price.input
        share = min(1.0, float(known["prompt_cached_tokens"].fill_null(0).sum()) / prompt)
        return self.price.input + share * (self.price.cached - self.price.input)


def _tier_share(price: Price | None, tier: str | None) -> float | None:
    """What a service tier costs of the usual price; None if unknown."""
    if price is None:
        return 1.0
    return cost_of(Usage(prompt=_MILLION, completion=0), Price(1.0, 1.0, tiers=price.tiers), tier=tier)


@dataclass(frozen=True, slots=True)
class Study:
    """The pairs, by their names in the run file and with the bytes of their prompts."""

    pairs: pl.DataFrame
    names: pl.Series
    bytes: NDArray[np.int64]

    @classmethod
    def of(cls, pairs: Table, judge: Judge) -> Study:
        """Check the pairs, and write the prompts to see how long they are."""
        frame = as_pairs(pairs)
        if frame.height == 0:
            raise InputError("there are no pairs whose cost could be estimated")
        named = named_pairs(frame)
        if "pair_uid" not in frame.columns and frame.select("ID1", "ID2").is_duplicated().any():
            # Asked in two parts, the second of two equal pairs would pass for the first.
            frame = frame.with_columns(pair_uid=named["custom_id"])
        return cls(frame, named["custom_id"], _prompt_bytes(judge, frame))


def _prompt_bytes(judge: Judge, pairs: pl.DataFrame) -> NDArray[np.int64]:
    """Bytes of what is asked; of the texts alone, where a judge does not show its prompt."""
    orders = 2 if judge.condition.settings.get("both_orders") else 1
    asked = unwrapped(judge)
    texts = pairs.select("text1", "text2").iter_rows()
    if isinstance(asked, LLMJudge):
        prompts = [asked.request(JudgePair({"text": first}, {"text": second})).prompt for first, second in texts]
    else:
        prompts = [first + second for first, second in texts]
    return orders * np.array([len(prompt.encode()) for prompt in prompts], np.int64)


@dataclass(frozen=True, slots=True)
class Figures:
    """What came out, before it is a table.

    Attributes:
        row: columns of the summary that the estimate itself fills.
        calibration: what it rests on.
        left: which pairs are still to be asked.
        prompt: input tokens of these.
        completion: output tokens of these.
        input_price: of a million of the former.
    """

    row: Mapping[str, Any]
    calibration: Mapping[str, Any]
    left: NDArray[np.bool_]
    prompt: Spread
    completion: Spread
    input_price: float


def calibrated(
    study: Study,
    rates: Rates,
    pilot: tuple[NDArray[np.int64], NDArray[np.float64]],
    done: SubmitResult,
    usage: pl.DataFrame,
    quantile: float,
) -> Figures:
    """From what the pilot used to what the others will.

    Args:
        study: all pairs.
        rates: the prices.
        pilot: the rows that were asked, and for how many pairs each stands.
        done: what was answered.
        usage: every attempt under this condition.
        quantile: of the budget.
    """
    chosen, stand_for = pilot
    names = study.names.gather(chosen)
    mine = usage.filter(pl.col("custom_id").is_in(names.implode()))
    weights = pl.DataFrame({"custom_id": names, "bytes": study.bytes[chosen], "weight": stand_for})
    prompts = _last(mine, "prompt_tokens", weights)
    answers = _last(mine, "completion_tokens", weights)
    if prompts.height == 0 or answers.height == 0:
        _complain(done)
    fit = fit_input(
        prompts["bytes"].to_numpy(), prompts["prompt_tokens"].to_numpy().astype(float), prompts["weight"].to_numpy()
    )
    output = answers["completion_tokens"].to_numpy().astype(float)
    left = np.ones(study.pairs.height, dtype=bool)
    left[chosen] = False
    answered = usage.filter(pl.col("outcome").is_in(_ANSWERED))["custom_id"]
    known = left & study.names.is_in(answered.implode()).to_numpy()
    left &= ~known
    count = int(left.sum())
    before = usage.filter(pl.col("custom_id").is_in(study.names.filter(pl.Series(known)).implode()))
    row = {
        "n_test": chosen.size,
        "n_known": int(known.sum()),
        "pilot_prompt_tokens": mine["prompt_tokens"].sum(),
        "pilot_completion_tokens": mine["completion_tokens"].sum(),
        "pilot_cost": rates.paid(mine),
        "known_cost": rates.paid(before),
        "known_prompt_tokens": before["prompt_tokens"].sum(),
        "known_completion_tokens": before["completion_tokens"].sum(),
    }
    calibration = {
        "method": "least_squares" if fit.sum_squares else "proportional" if fit.slope else "mean",
        "n": fit.n,
        "intercept": fit.intercept,
        "slope": fit.slope,
        "bytes_per_token": 1 / fit.slope if fit.slope else None,
        "r_squared": fit.r_squared,
        "residual_sd": fit.residual_sd,
        "output_n": output.size,
        "output_mean": float(np.average(output, weights=answers["weight"].to_numpy())),
        "output_sd": float(output.std(ddof=1)) if output.size > 1 else None,
        "output_max": float(output.max()),
    }
    completion = likely_sum(output, answers["weight"].to_numpy() - 1, count, quantile)
    prompt, price = fit.total(study.bytes[left], quantile), rates.input_price(mine)
    calibration["relative_error"] = _relative_error(prompt, completion, rates, price, output)
    return Figures(row, calibration, left, prompt, completion, price)


def _relative_error(
    prompt: Spread, completion: Spread, rates: Rates, input_price: float, output: NDArray[np.float64]
) -> float | None:
    """One standard error of the expected cost of the remaining pairs, as a share of it; None with one answer.

    The input is known from the texts to a few parts in a thousand, so the error is that of the mean output.
    """
    mean = float(output.mean())
    if output.size < 2 or mean == 0:
        return None
    worth = (input_price, rates.price.output) if rates.price is not None else (0.0, 1.0)
    share = completion.expected * worth[1] / max(prompt.expected * worth[0] + completion.expected * worth[1], 1e-300)
    return share * float(output.std(ddof=1)) / math.sqrt(output.size) / mean


def _last(usage: pl.DataFrame, tokens: str, pilot: pl.DataFrame) -> pl.DataFrame:
    """Of each pair, the last attempt that says how many tokens it used."""
    used = usage.drop_nulls(tokens).unique("custom_id", keep="last", maintain_order=True)
    return pilot.join(used.select("custom_id", tokens), on="custom_id", maintain_order="left")


def _complain(done: SubmitResult) -> None:
    if done.results.height == 0:
        failed = done.failed_pairs.row(0, named=True)
        reason = f"{failed['error_code']}: {failed['error_message']}"
        raise InputError(f"none of the {done.failed_pairs.height} pairs of the pilot was answered; the first: {reason}")
    judge = done.results["judge_id"][0]
    raise InputError(f"the judge {judge} does not say how many tokens it uses; an estimate offline needs none")


def rough(study: Study, rates: Rates, bytes_per_token: float, output_tokens: float) -> Figures:
    """From bytes alone: no pilot, and a budget for denser text and answers twice as long."""
    count = study.pairs.height
    tokens = float(study.bytes.sum()) / bytes_per_token
    row: dict[str, Any] = {"n_test": 0, "n_known": 0, "pilot_prompt_tokens": 0, "pilot_completion_tokens": 0}
    row |= {"pilot_cost": 0.0, "known_cost": 0.0, "known_prompt_tokens": 0, "known_completion_tokens": 0}
    calibration = {
        "method": "rough",
        "n": 0,
        "intercept": 0.0,
        "slope": 1 / bytes_per_token,
        "bytes_per_token": bytes_per_token,
        "r_squared": None,
        "residual_sd": None,
        "output_n": 0,
        "output_mean": output_tokens,
        "output_sd": None,
        "output_max": None,
        "relative_error": None,
    }
    return Figures(
        row,
        calibration,
        np.ones(count, dtype=bool),
        Spread(tokens, tokens / _DENSEST),
        Spread(count * output_tokens, 2 * count * output_tokens),
        0.0 if rates.price is None else rates.price.input,
    )


def assumed_output(judge: Judge) -> float:
    """Tokens of an answer before one was seen: the tag alone, or with thoughts; twice that in both orders."""
    condition = judge.condition
    settings = condition.settings
    thinks = settings.get("reasoning") not in {None, "none"} or bool(settings.get("thinking_budget"))
    if not thinks and settings.get("reasoning") is None and condition.backend in PROVIDERS:
        thinks = capabilities(condition.backend, condition.model or "").thinks_unasked
    return float((_THINKING if thinks else _SILENT) * (2 if settings.get("both_orders") else 1))


def totals(found: Figures, rates: Rates) -> dict[str, Any]:
    """All figures of the summary that follow from tokens and prices."""
    row: dict[str, Any] = dict(found.row) | {"n_remaining": int(found.left.sum())}
    for tokens, spread in (("prompt_tokens", found.prompt), ("completion_tokens", found.completion)):
        spent = row[f"pilot_{tokens}"] + row[f"known_{tokens}"]
        for kind in ("expected", "budget"):
            value = getattr(spread, kind)
            row |= {f"est_remaining_{tokens}_{kind}": value, f"{kind}_{tokens}_total": spent + value}
    price = rates.price
    row |= dict.fromkeys(
        ("expected_cost_remaining", "budget_cost_remaining", "expected_cost_total", "budget_cost_total")
    )
    row |= {"batch_discount": rates.discount, "prices_as_of": None if price is None else price.as_of}
    row |= {"cost_per_million_input": None, "cost_per_million_output": None}
    if price is None:
        return row
    row |= {"cost_per_million_input": price.input, "cost_per_million_output": price.output}
    worth = rates.discount * rates.tier / _MILLION
    prompt, completion = _times(found.prompt, worth * found.input_price), _times(found.completion, worth * price.output)
    expected = prompt.expected + completion.expected
    # Two errors that know nothing of each other; those of a rough estimate come together.
    margins = prompt.budget - prompt.expected, completion.budget - completion.expected
    margin = math.hypot(*margins) if row["n_test"] else sum(margins)
    spent = (row["pilot_cost"] or 0.0) + (row["known_cost"] or 0.0)
    for kind, value in (("expected", expected), ("budget", expected + margin)):
        row |= {f"{kind}_cost_remaining": value, f"{kind}_cost_total": spent + value}
    return row


def _times(spread: Spread, factor: float) -> Spread:
    return replace(spread, expected=spread.expected * factor, budget=spread.budget * factor)
