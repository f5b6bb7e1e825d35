"""What will it cost? A few pairs are asked, and their tokens say what the others will use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import polars as pl

from pairscale.collect._cost_model import InputFit, Spread, choose_pilot, fit_input, likely_sum
from pairscale.collect._plan import named_pairs, say_unnamed
from pairscale.collect.live import SubmitResult, submit_into
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.options import (
    FilePath,
    ProgressMode,
    checked,
    require_choice,
    require_int,
    require_number,
    require_progress,
    require_seed,
)
from pairscale.core.provenance import Provenance
from pairscale.core.tables import Schema, Values
from pairscale.core.traits import AnyTrait
from pairscale.judges.base import AnyJudge, Judge, JudgePair, judge_member
from pairscale.judges.build import judge_with
from pairscale.judges.llm import LLMJudge
from pairscale.judges.orders import unwrapped
from pairscale.pairing.reading import read_pairs
from pairscale.pairing.table import as_pairs
from pairscale.providers.base import Usage
from pairscale.providers.catalog import PROVIDERS, UNDATED, Price, capabilities, cost_of, price_note
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT, RunOptions, run_sync
from pairscale.store.queries import ANSWERED
from pairscale.store.runfile import open_run

if TYPE_CHECKING:
    from pairscale.core.arrays import Ints
    from pairscale.core.columns import Column
    from pairscale.core.tables import Table

OFFLINE_KEY = "no-key-needed"
"""The key of a judge that is made but not asked."""

_SHORT_ANSWER = 20  # tokens of an answer: the tag alone
_THOUGHTS = 1_000  # tokens of an answer with thoughts
_BYTES_PER_TOKEN = 4.0  # of English; fewer of most other languages
_DENSE_TEXT = 0.75  # of the bytes per token: the budget of a rough estimate
_SMALL_PILOT = 10

_TEXT_COLUMNS = "backend model mode method test_strategy"
_COUNT_COLUMNS = "n_total n_test n_known n_remaining pilot_prompt_tokens pilot_completion_tokens"
_REAL_COLUMNS = (
    "pilot_cost known_cost est_remaining_prompt_tokens_expected est_remaining_prompt_tokens_budget "
    "est_remaining_completion_tokens_expected est_remaining_completion_tokens_budget expected_cost_remaining "
    "budget_cost_remaining expected_prompt_tokens_total budget_prompt_tokens_total expected_completion_tokens_total "
    "budget_completion_tokens_total expected_cost_total budget_cost_total budget_quantile cost_per_million_input "
    "cost_per_million_output batch_discount"
)
_SUMMARY: Schema = {
    **dict.fromkeys(_TEXT_COLUMNS.split(), pl.String()),
    **dict.fromkeys(_COUNT_COLUMNS.split(), pl.Int64()),
    **dict.fromkeys(_REAL_COLUMNS.split(), pl.Float64()),
    "prices_as_of": pl.String(),
}
_USED = (
    "n_test n_known pilot_cost known_cost pilot_prompt_tokens pilot_completion_tokens known_prompt_tokens "
    "known_completion_tokens"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CostEstimate(ReprMixin, table="summary", columns=None):
    """What a set of pairs will cost, with what it rests on.

    Attributes:
        summary: one row: ``backend model mode method test_strategy``; pairs (``n_total n_test n_known n_remaining``);
            what the pilot used and cost; tokens and cost of the remaining pairs and of all, ``expected`` and
            ``budget``; the quantile and the prices. Costs are null where prices are not known.
        calibration: how bytes become input tokens (``intercept slope r_squared residual_sd``, of ``n`` pairs with
            ``mean_bytes`` and ``sum_squares`` around it), and the output tokens of the pilot (``output_mean output_sd
            output_max``).
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

    def __repr__(self) -> str:
        row = self.summary.row(0, named=True)
        title = "Cost estimate" if row["method"] == "pilot" else "Rough cost estimate without a pilot"
        budget = "budget"
        if row["budget_quantile"]:
            budget = f"budget (p{100 * row['budget_quantile']:g})"
        counts = f"{row['n_total']:,}: {row['n_test']:,} in the pilot"
        if row["n_known"]:
            counts += f", {row['n_known']:,} known already"
        lines = {"pairs": f"{counts}, {row['n_remaining']:,} remaining"}
        for name, column in (("input tokens", "prompt_tokens"), ("output tokens", "completion_tokens")):
            expected = row[f"expected_{column}_total"]
            lines[name] = f"{expected:,.0f} expected, {row[f'budget_{column}_total']:,.0f} {budget}"
        if row["expected_cost_total"] is None:
            lines["cost"] = "not known: give the prices of a million tokens"
        else:
            cost = f"{_money(row['expected_cost_total'])} expected, {_money(row['budget_cost_total'])} {budget}"
            if row["n_test"]:
                cost += f"; {_money(row['pilot_cost'] + row['known_cost'])} of it spent"
            prices = f"${row['cost_per_million_input']:g} input, ${row['cost_per_million_output']:g} output"
            prices += f" per million tokens{price_note([row['prices_as_of'] or UNDATED])}"
            if row["mode"] == "batch":
                prices += f"; batches x {row['batch_discount']:g}"
            lines |= {"cost": cost, "prices": prices}
        shown = [f"{title}: {row['backend']} {row['model'] or ''}, {row['mode']}"]
        shown += [f"{name:<15}{text}" for name, text in lines.items()]
        return "\n".join([*shown, *(f"note: {text}" for text in self.notes)])


def _money(value: float) -> str:
    if value >= 1 or value == 0:
        return f"${value:,.2f}"
    return f"${value:.2g}" if value < 0.01 else f"${value:.3f}"


@checked
def cost(
    pairs: Table | FilePath,
    *,
    judge: AnyJudge,
    pilot: int = 25,
    select: Literal["stratified", "random", "first"] = "stratified",
    seed: int = 1,
    batch: bool = False,
    offline: bool = False,
    price: Mapping[str, Any] | None = None,
    quantile: float = 0.9,
    run: FilePath | None = None,
    trait: AnyTrait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    cache: bool | None = None,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    id_col: Column | None = None,
    text_col: Column | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    encoding: str | None = None,
    strict: bool = False,
    skip_unreadable: bool = False,
    progress: ProgressMode = True,
) -> CostEstimate:
    """Estimate what judging pairs will cost: a few are asked, and their tokens say what all of them will need.

    The pilot is asked live and paid for. With ``run``, its answers are kept, and :func:`judge` on the same run file
    asks only the others. The expected cost is the mean; the budget is not exceeded with the probability ``quantile``.

    Args:
        pairs: A table or a file with ``ID1 text1 ID2 text2``, or texts: then all their pairs.
        judge: A name such as ``openai:gpt-5.1``, a function ``judge(A, B)`` or a :class:`Judge`; it must count tokens.
        pilot: How many pairs to ask.
        select: Which pairs to ask: ``stratified`` (by the length of the prompts), ``random`` or ``first``.
        seed: Seed of the choice of pairs.
        batch: Whether the other pairs will go through a batch, at its price.
        offline: Ask nothing and need no key: a rough estimate from the length of the texts.
        price: US dollars per million tokens, such as ``{"input": 1.25, "output": 10}``; by default the dated table.
        quantile: Probability of staying within the budget.
        run: The run file that keeps the pilot.
        trait: What to judge: the key of a built-in trait, or a :class:`Trait`.
        template: A prompt template, by its name, file or text.
        judge_args: Settings of the judge; of a function, keyword arguments of every call.
        base_url: Address of the provider, such as ``http://localhost:8000/v1``.
        cache: Whether to use answers of earlier runs to the same request; by default for temperature 0.
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer may take; None for no limit.
        id_col: The column of ids, by name, position from 0 or path in JSON.
        text_col: The column of texts, by name, position from 0 or path in JSON.
        a_col: The column of the text that is shown first, where it is not ``text1``; a name or a path in JSON.
        b_col: The column of the text that is shown second, where it is not ``text2``.
        encoding: Encoding of text files that are not UTF-8.
        strict: Raise an error if any file was not read.
        skip_unreadable: Continue without the files that need an optional package that is not installed.
        progress: Show progress on standard error.

    Returns:
        A :class:`CostEstimate` with ``summary``, ``calibration``, ``test_pairs``, ``pilot`` and ``remaining_pairs``.

    Raises:
        InputError: If the pairs or a setting cannot be used, no pair of the pilot was answered, or the judge counts no
            tokens.

    Example:
        >>> import pairscale as ps
        >>> estimate = ps.cost(ps.example_writing_samples, judge="openai:gpt-4.1", offline=True)
        >>> estimate.summary.select("n_total", "expected_completion_tokens_total").row(0)
        (190, 3800.0)
    """
    table, _ = read_pairs(
        pairs,
        id_col=id_col,
        text_col=text_col,
        encoding=encoding,
        a_col=a_col,
        b_col=b_col,
        strict=strict,
        skip_unreadable=skip_unreadable,
    )
    pilot = require_int(pilot, "pilot", least=0 if offline else 1)
    quantile = require_number(quantile, "quantile", least=0.5, below=1)
    require_choice(select, "select", ("stratified", "random", "first"))
    require_progress(progress)
    settings = dict(judge_args or {})
    if offline and isinstance(judge, str) and judge.partition(":")[0] in PROVIDERS:
        settings.setdefault("api_key", OFFLINE_KEY)
    asked = judge_with(
        judge, trait=trait, template=template, judge_args=settings or None, base_url=base_url, cache=cache, price=price
    )
    return estimate_cost(
        table, asked, pilot=pilot, strategy="stratified_prompt_bytes" if select == "stratified" else select, seed=seed,
        batch=batch, quantile=quantile, offline=offline, run=run,
        options=RunOptions(concurrency, retries, timeout=timeout), progress=progress,
    )  # fmt: skip


def estimate_cost(
    pairs: Table,
    judge: Judge,
    *,
    options: RunOptions,
    pilot: int = 25,
    strategy: str = "stratified_prompt_bytes",
    seed: int | None = 1,
    batch: bool = False,
    discount: float | None = None,
    quantile: float = 0.9,
    offline: bool = False,
    run: FilePath | None = None,
    save_path: FilePath | None = None,
    **asking: Any,
) -> CostEstimate:
    """Estimate the tokens and the cost of pairs; see :func:`cost`.

    Args:
        pairs: ``ID1 text1 ID2 text2``.
        judge: who is asked.
        options: how to ask.
        pilot: how many pairs to ask.
        strategy: which of them.
        seed: of that choice.
        batch: whether the other pairs go through a batch.
        discount: what batches cost of the live price; by default as the price says.
        quantile: the probability of staying within the budget.
        offline: ask nothing.
        run: the run file.
        save_path: a CSV of the pilot's results.
        asking: further options of :func:`submit_into`.
    """
    seed = require_seed(seed)
    frame = as_pairs(pairs)
    if frame.height == 0:
        raise InputError("there are no pairs whose cost could be estimated")
    names = named_pairs(frame)["custom_id"]
    if "pair_uid" not in frame.columns and frame.select("ID1", "ID2").is_duplicated().any():
        # Asked in two parts, the second of two equal pairs would pass for the first.
        frame = frame.with_columns(pair_uid=names)
    rates = Rates.of(judge, batch=batch, discount=discount)
    sizes = prompt_bytes(judge, frame)
    condition = judge.condition
    row: Values = {
        "mode": "batch" if batch else "live",
        "n_total": frame.height,
        "backend": condition.backend,
        "model": condition.model,
    }
    provenance = Provenance("cost", {"n_test": pilot} | row, seed, {"condition": condition.condition_id})
    if offline:
        each = assumed_output(judge)
        figures = _rough(sizes, each)
        summary = pl.DataFrame([row | {"method": "offline"} | totals(figures, rates)], _SUMMARY)
        note = (
            f"rough: nothing was asked; it assumes {_BYTES_PER_TOKEN:g} bytes per token and {each:,.0f} tokens per "
            "answer, and the budget a third more input and twice the output"
        )
        none = frame.clear()
        notes = [note, rates.note]
        return CostEstimate(
            summary, figures.calibration, none, None, frame, none, tuple(filter(None, notes)), provenance
        )
    say_unnamed(judge, run or save_path)
    rows, weights = choose_pilot(sizes, pilot, strategy, seed)
    test_pairs = frame[rows]

    async def ask() -> tuple[SubmitResult, pl.DataFrame]:
        with open_run(run, write=True) as store:
            done = await submit_into(store, test_pairs, judge, options, save_path=save_path, **asking)
            return done, store.usage(done.condition_id)

    done, usage = run_sync(ask, run=run or save_path)
    asked = pl.DataFrame({"custom_id": names.gather(rows), "bytes": sizes[rows], "weight": weights})
    figures = _calibrated(names, sizes, rates, asked, done, usage, quantile)
    row |= {"method": "pilot", "test_strategy": strategy, "budget_quantile": quantile}
    failed = done.failed_pairs.height
    notes = []
    if failed:
        notes.append(
            f"{failed} of the {len(rows)} pairs of the pilot have no answer and will be asked, and paid for, again"
        )
    if figures.left.any() and len(rows) < _SMALL_PILOT:
        notes.append(f"a pilot of {len(rows)} says little of rare long answers; take {_SMALL_PILOT} or more")
    notes.append(rates.note)
    return CostEstimate(
        pl.DataFrame([row | totals(figures, rates)], _SUMMARY), figures.calibration, test_pairs, done.results,
        frame.filter(figures.left), done.failed_pairs, tuple(filter(None, notes)), provenance,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rates:
    """What tokens will cost.

    Attributes:
        price: of a million; None if unknown.
        batch: whether the remaining pairs go through a batch.
        tier: the service tier that they are asked at.
        note: what to know about them.
    """

    price: Price | None
    batch: bool = False
    tier: str | None = None
    note: str = ""

    @classmethod
    def of(cls, judge: Judge, *, batch: bool, discount: float | None = None) -> Rates:
        """The judge's price, for live answers or for those of a batch."""
        price = judge_member(judge, "price")
        if not isinstance(price, Price):
            return cls(None, batch, note=f"no price of {judge.condition.judge_id} is known; only tokens are estimated")
        price = msgspec.structs.replace(price, long=None)  # which is for single prompts
        tier = None if batch else judge.condition.settings.get("service_tier")
        if cost_of(Usage(0, 0), price, tier=tier) is None:
            return cls(None, note="the price of this service tier is not known; only tokens are estimated")
        if discount is not None:
            price = msgspec.structs.replace(price, batch=discount)
        note = ""
        if batch and price.batch is None:
            note = "no batch price is known, so batches count at the live price; batch_discount= says otherwise"
        return cls(price, batch, tier, note)

    def cost(self, prompt: float, completion: float) -> float:
        """What further tokens cost, none of them from the provider's cache."""
        usage = Usage(prompt, completion)  # type: ignore[arg-type]
        return cost_of(usage, self.price, batch=self.batch, tier=self.tier) or 0.0


def prompt_bytes(judge: Judge, pairs: pl.DataFrame) -> Ints:
    """Bytes of what is asked; of the texts alone, where a judge does not show its prompt."""
    orders = 2 if judge.condition.settings.get("both_orders") else 1
    asked = unwrapped(judge)
    sizes = []
    for id1, text1, id2, text2 in pairs.select("ID1", "text1", "ID2", "text2").iter_rows():
        text = text1 + text2
        if isinstance(asked, LLMJudge):
            text = asked.prompt(JudgePair({"ID": id1, "text": text1}, {"ID": id2, "text": text2}))
        sizes.append(orders * len(text.encode("utf-8", "surrogatepass")))
    return np.array(sizes, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the estimate rests on: what was used before, and the tokens of the pairs that are left.

    Attributes:
        used: columns of the summary about the pilot and other known answers.
        calibration: how bytes become tokens.
        left: which pairs are still to be asked.
        prompt: input tokens of these.
        completion: output tokens of these.
    """

    used: Values
    calibration: Values
    left: pl.Series
    prompt: Spread
    completion: Spread


def _calibrated(
    names: pl.Series,
    sizes: Ints,
    rates: Rates,
    asked: pl.DataFrame,
    done: SubmitResult,
    usage: pl.DataFrame,
    quantile: float,
) -> Figures:
    """From what the pilot used to what the others will."""
    mine = usage.join(asked, on="custom_id", how="semi", maintain_order="left")
    last = mine.drop_nulls(["prompt_tokens", "completion_tokens"]).unique("custom_id", keep="last")
    if last.height == 0 and done.results.height == 0:
        failed = done.failed_pairs.row(0, named=True)
        reason = f"{failed['error_code']}: {failed['error_message']}"
        raise InputError(f"none of the {done.failed_pairs.height} pairs of the pilot was answered; the first: {reason}")
    if last.height == 0:
        judge = done.results["judge_id"][0]
        raise InputError(f"the judge {judge} does not say how many tokens it uses; an estimate offline needs none")
    pilot = asked.join(last, on="custom_id", maintain_order="left")
    weights = pilot["weight"].to_numpy()
    fit = fit_input(pilot["bytes"].to_numpy(), pilot["prompt_tokens"].to_numpy().astype(float), weights)
    output = pilot["completion_tokens"].to_numpy().astype(float)
    answered = usage.filter(ANSWERED)["custom_id"]
    is_outside = ~names.is_in(asked["custom_id"].implode())
    is_known = is_outside & names.is_in(answered.implode())
    left = is_outside & ~is_known
    before = usage.filter(pl.col("custom_id").is_in(names.filter(is_known).implode()))
    used: Values = {"n_test": asked.height, "n_known": is_known.sum()}
    for when, attempts in (("pilot", mine), ("known", before)):
        for name in ("cost", "prompt_tokens", "completion_tokens"):
            used[f"{when}_{name}"] = attempts[name].sum()
    if rates.price is None and not usage["cost"].count():
        used |= {"pilot_cost": None, "known_cost": None}
    calibration = asdict(fit) | {
        "output_n": output.size,
        "output_mean": float(np.average(output, weights=weights)),
        "output_sd": pilot["completion_tokens"].std(),
        "output_max": float(output.max()),
    }
    prompt = fit.total(sizes[left.to_numpy()], quantile)
    return Figures(used, calibration, left, prompt, likely_sum(output, weights - 1, int(left.sum()), quantile))


def _rough(sizes: Ints, output_tokens: float) -> Figures:
    """From bytes alone: no pilot, and a budget for denser text and answers twice as long."""
    fit = InputFit(0.0, 1 / _BYTES_PER_TOKEN, None, None, 0, 0.0, 0.0)
    tokens = fit.slope * float(sizes.sum())
    answers = sizes.size * output_tokens
    calibration = asdict(fit) | {"output_n": 0, "output_mean": output_tokens, "output_sd": None, "output_max": None}
    left = pl.repeat(True, sizes.size, eager=True)
    prompt = Spread(tokens, tokens / _DENSE_TEXT)
    return Figures(dict.fromkeys(_USED.split(), 0), calibration, left, prompt, Spread(answers, 2 * answers))


def assumed_output(judge: Judge) -> float:
    """Tokens of an answer before one was seen: the tag alone, or with thoughts; twice that in both orders."""
    condition = judge.condition
    settings = condition.settings
    thinks = settings.get("reasoning") not in {None, "none"} or bool(settings.get("thinking_budget"))
    if not thinks and settings.get("reasoning") is None and condition.backend in PROVIDERS:
        thinks = capabilities(condition.backend, condition.model or "").thinks_unasked
    tokens = _THOUGHTS if thinks else _SHORT_ANSWER
    return float(tokens * (2 if settings.get("both_orders") else 1))


def totals(figures: Figures, rates: Rates) -> Values:
    """All figures of the summary that follow from tokens and prices."""
    row: Values = dict(figures.used)
    row |= {"n_remaining": figures.left.sum(), "batch_discount": 1.0}
    for tokens, spread in (("prompt_tokens", figures.prompt), ("completion_tokens", figures.completion)):
        spent = row[f"pilot_{tokens}"] + row[f"known_{tokens}"]
        for kind, further in (("expected", spread.expected), ("budget", spread.budget)):
            row[f"est_remaining_{tokens}_{kind}"] = further
            row[f"{kind}_{tokens}_total"] = spent + further
    price = rates.price
    if price is None:
        return row
    expected = rates.cost(figures.prompt.expected, figures.completion.expected)
    input_margin = rates.cost(figures.prompt.budget - figures.prompt.expected, 0)
    output_margin = rates.cost(0, figures.completion.budget - figures.completion.expected)
    # Two errors that know nothing of each other; those of a rough estimate come together.
    margin = math.hypot(input_margin, output_margin) if row["n_test"] else input_margin + output_margin
    spent = row["pilot_cost"] + row["known_cost"]
    for kind, further in (("expected", expected), ("budget", expected + margin)):
        row[f"{kind}_cost_remaining"] = further
        row[f"{kind}_cost_total"] = spent + further
    if rates.batch and price.batch is not None:
        row["batch_discount"] = price.batch
    prices = {"cost_per_million_input": price.input, "cost_per_million_output": price.output}
    return row | prices | {"prices_as_of": price.as_of}
