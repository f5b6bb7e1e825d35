"""What comparing two variants gave: the cases, and the figures over them."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.checks.agreement import LEAST_UNITS, agreement
from pairscale.checks.effect import wilson
from pairscale.core.comparisons import Outcome
from pairscale.core.display import PlotMixin, ReportMixin, ReprMixin
from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError, InputError, UnknownNameError
from pairscale.core.files import replacing
from pairscale.core.notices import plural, without_notices
from pairscale.core.options import FilePath, checked
from pairscale.core.provenance import Provenance, utc_now
from pairscale.core.tables import Values, listed
from pairscale.evaluate.comparators import Winner
from pairscale.evaluate.inference.cases import Ends, Texts, score_of
from pairscale.evaluate.inference.control import ControlledRate, control_names, controlled_rate
from pairscale.evaluate.inference.failures import (
    Bounds,
    Failed,
    Failures,
    count_failure,
    require_failures,
    ways_to_count,
)
from pairscale.evaluate.inference.win_rate import WinRate, win_rate
from pairscale.evaluate.tasks import Row, Trace, Unmatched
from pairscale.evaluate.wording import summary_of, verdict_of

if TYPE_CHECKING:
    from pairscale.evaluate.inference.cases import Ties
    from pairscale.evaluate.inference.win_rate import Interval

# How far two comparators agree


@dataclass(frozen=True, slots=True, repr=False)
class PairwiseAgreement(ReprMixin):
    """How far two comparators agree, over the cases to which both gave a winner or a tie.

    Attributes:
        rate: the share of equal answers; None when there is no such case.
        cohen_kappa: the same beyond chance; None where it is not defined.
        n: such cases.
        disagreements: ``(task_id, winner_x, winner_y)``.
        ci: of kappa, 95 %; None where there is none.
        left_out: cases that one of them answered with a flip, an abstention or an error, or that none was asked about,
            because a variant failed.
        rate_ci: of the rate, 95 %, Wilson's.
        confusion: how often which two answers met: ``x y n``, for every two of ``b``, ``tie`` and ``a``.
        notices: what to be careful with.
    """

    rate: float | None = None
    cohen_kappa: float | None = None
    n: int = 0
    disagreements: tuple[tuple[str, str, str], ...] = ()
    ci: Ends | None = None
    left_out: int = 0
    rate_ci: Ends | None = None
    confusion: tuple[Row, ...] = ()
    notices: Texts = ()

    def __str__(self) -> str:
        if self.rate is None:
            return "no case that both answered"
        kappa = "undefined" if self.cohen_kappa is None else f"{self.cohen_kappa:.2f}"
        return f"agree on {self.rate * 100:.0f} % of {plural(self.n, 'case')}, kappa {kappa}"


def cohen_kappa(x: list[str], y: list[str]) -> Values:
    """Cohen's kappa of two who answered the same cases: ``estimate lower upper interval``."""
    table = agreement({"first": x, "second": y}, unit="case", seed=1).table
    return table.row(by_predicate=pl.col("statistic") == "cohen_kappa", named=True)


def agreement_of(run: PairwiseRunResult, x: str, y: str) -> PairwiseAgreement:
    """How far two comparators of a run agree; see :meth:`PairwiseRunResult.agreement`."""
    by_x, by_y = ({(case.task_id, case.repeat): case for case in run.of(key)} for key in (x, y))
    shared = [(by_x[name], by_y[name]) for name in by_x if name in by_y]
    answered = [
        (one.task_id, str(one.winner), str(two.winner))
        for one, two in shared
        if one.winner and two.winner and (run.failures == "shown" or one.failed is None)
    ]
    n = len(answered)
    if not n:
        return PairwiseAgreement(left_out=len(shared))
    met = [(winner_x, winner_y) for _, winner_x, winner_y in answered]
    with without_notices():  # the result carries them
        kappa = cohen_kappa(*(list(winners) for winners in zip(*met, strict=True)))
    differing = tuple(case for case in answered if case[1] != case[2])
    agreed = n - len(differing)
    few = f"no interval of kappa: {n} cases are too few, it takes {LEAST_UNITS}"
    return PairwiseAgreement(
        rate=agreed / n,
        cohen_kappa=kappa["estimate"],
        n=n,
        disagreements=differing,
        ci=None if kappa["lower"] is None else (kappa["lower"], kappa["upper"]),
        left_out=len(shared) - n,
        rate_ci=wilson(agreed, n, 0.95),  # type: ignore[arg-type]  # there is a case
        confusion=tuple({"x": x, "y": y, "n": met.count((x, y))} for x, y in product(("b", "tie", "a"), repeat=2)),
        notices=(few,) if n < LEAST_UNITS else (),
    )


def judge_and_people(run: PairwiseRunResult) -> list[tuple[str, str]]:
    """The comparators to hold against each other: each judge with each comparator whose answers are people's."""
    people = {case.key for case in run.cases if "labels" in case.detail or "first_variant" in case.detail}
    return [(judge, key) for judge in run.keys if judge not in people for key in run.keys if key in people]


# What is counted of answers: failures, time, tokens, cost; and of their style, Markdown and other numbers


@dataclass(frozen=True, slots=True)
class VariantFigures:
    """What the answers of one variant took, over the cases that were compared.

    Attributes:
        side: ``a`` or ``b``.
        answers: how many were asked for: one per task and repeat.
        failures: how many of them failed: an exception, an empty or missing output, or an error.
        latency_ms: the median time of an answer, in milliseconds; None when no trace says it.
        tokens: the mean number of tokens; None when no trace says it.
        cost: the mean cost in US dollars; None when no trace says it.
    """

    side: str
    answers: int = 0
    failures: int = 0
    latency_ms: float | None = None
    tokens: float | None = None
    cost: float | None = None

    @property
    def failure_rate(self) -> float | None:
        """The share of answers that failed; None without an answer."""
        return self.failures / self.answers if self.answers else None

    def words(self) -> dict[str, str]:
        """The figures as texts, ``unknown`` where no trace has them."""
        rate = "" if self.failure_rate is None else f" ({100 * self.failure_rate:.0f} %)"
        shown = [("median latency", self.latency_ms, "{:,.0f} ms"), ("mean tokens", self.tokens, "{:,.0f}")]
        shown.append(("mean cost", self.cost, "${:,.4f}"))
        words = {what: "unknown" if value is None else form.format(value) for what, value, form in shown}
        return {"failed": f"{self.failures:,} of {self.answers:,}{rate}", **words}


def figures_of(side: str, traces: Sequence[Trace]) -> VariantFigures:
    """What the traces of a variant say together.

    Args:
        side: ``a`` or ``b``.
        traces: its answers, failed ones included.

    Example:
        >>> figures_of("b", [Trace("Rome.", tokens=3), Trace("", tokens=5)]).words()["failed"]
        '1 of 2 (50 %)'
    """
    latency, tokens, cost = (
        [value for value in (getattr(trace, name) for trace in traces) if value is not None]
        for name in ("duration_ms", "tokens", "cost")
    )
    return VariantFigures(
        side,
        len(traces),
        sum(trace.failure is not None for trace in traces),
        statistics.median(latency) if latency else None,
        statistics.fmean(tokens) if tokens else None,
        statistics.fmean(cost) if cost else None,
    )


# Style

_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_COUNTED = {
    "headers": re.compile(r"^ {0,3}#{1,6}\s+\S", re.MULTILINE),
    "lists": re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])\s+\S", re.MULTILINE),
    "bold": re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__"),
}


def markdown_counts(text: str) -> dict[str, float]:
    """How many headers, list items and bold passages a Markdown text has; code blocks do not count.

    Example:
        >>> lines = ["# Dyeing", "- **madder**", "- alum", "1. Heat the water."]
        >>> markdown_counts(chr(10).join(lines))
        {'headers': 1.0, 'lists': 3.0, 'bold': 1.0}
    """
    plain = _FENCED.sub("", text)
    return {name: float(len(pattern.findall(plain))) for name, pattern in _COUNTED.items()}


def measures_of(trace: Trace) -> dict[str, float]:
    """What is counted of an answer besides its length: its Markdown, and the numbers among its other columns.

    A variant that failed has no answer to measure.
    """
    if trace.exception is not None:
        return {}
    numbers = {
        str(name): float(value)
        for name, value in trace.metadata.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    return {**numbers, **markdown_counts(trace.output)}


# The result


SCHEMA_VERSION = "0.1"
CASES: Values = {
    "task_id": pl.String,
    "repeat": pl.Int64,
    "key": pl.String,
    "outcome": pl.String,
    "winner": pl.String,
    "reasoning": pl.String,
    "cost": pl.Float64,
    "tags": pl.List(pl.String),
    "length_a": pl.Int64,
    "length_b": pl.Int64,
    "failed": pl.String,
    "preference": pl.Float64,
    "probability": pl.Float64,
}
"""The columns of :meth:`PairwiseRunResult.frame`."""


@dataclass(frozen=True, slots=True)
class PairwiseCase:
    """One task under one criterion.

    Attributes:
        task_id: the task.
        key: the comparator's.
        winner: ``a``, ``b`` or ``tie``; None for a flip, an abstention or an error.
        reasoning: why.
        detail: anything else: of a judge, what it said in each order, and of a flip, which place it preferred.
        outcome: one of the five kinds.
        cost: of the comparison, in US dollars, where it is known.
        repeat: which answer to the task, from 1.
        tags: of the task.
        length_a: characters of A's answer; None when A failed.
        length_b: characters of B's answer; None when B failed.
        measures_a: what else was counted of A's answer: ``headers``, ``lists``, ``bold``, and the numbers among its
            other columns.
        measures_b: the same of B's.
        failed: the variant that failed, ``a``, ``b`` or ``both``; None when both answered.
        preference: the probability that B is better, of a graded case; None of a hard verdict.
    """

    task_id: str
    key: str
    winner: Winner | None
    reasoning: str
    detail: Mapping[str, Any]
    outcome: Outcome
    cost: float | None = None
    repeat: int = 1
    tags: Texts = ()
    length_a: int | None = None
    length_b: int | None = None
    measures_a: Mapping[str, float] = field(default_factory=dict[str, float])
    measures_b: Mapping[str, float] = field(default_factory=dict[str, float])
    failed: Failed | None = None
    preference: float | None = None

    def measures(self, side: str) -> Mapping[str, float]:
        """What was counted of A's or B's answer besides its length."""
        return self.measures_a if side == "a" else self.measures_b

    @property
    def probability(self) -> float | None:
        """The probability that A, the first of the two variants, is better: 1 - ``preference``."""
        return None if self.preference is None else 1 - self.preference


def cases_table(cases: Iterable[PairwiseCase], failures: Failures) -> pl.DataFrame:
    """Cases as a table with the columns of :data:`CASES`, as they count when failures count in this way."""
    rows = []
    for case in cases:
        kind, winner = count_failure(case.failed, case.outcome, case.winner, failures)
        row = {name: getattr(case, name) for name in CASES}
        row |= {"outcome": str(kind), "winner": winner if kind is Outcome.WIN else None, "tags": list(case.tags)}
        if case.failed is not None and failures != "shown":  # no comparator was asked
            row |= {"preference": None, "probability": None}
        rows.append(row)
    return pl.DataFrame(rows, schema=CASES)


def counted_score(case: PairwiseCase, failures: Failures) -> float | None:
    """What a case is worth to B when failures count in this way: its preference, else 1, ½ or 0; None for neither."""
    kind, winner = count_failure(case.failed, case.outcome, case.winner, failures)
    asked = case.failed is None or failures == "shown"
    return score_of(str(kind), winner, case.preference if asked else None)


def flips_of(cases: Iterable[PairwiseCase]) -> list[float]:
    """Of the cases in which a judge named a winner in both orders: 1 where these differ, 0 where they are the same.

    Two equal answers need no judge, and count as the same.
    """
    flips = []
    for case in cases:
        asked = case.detail.get("members", [{}])[0].get("detail") or case.detail
        in_both_orders = case.outcome is Outcome.WIN and len(asked.get("orders", ())) == 2
        if case.outcome is Outcome.FLIP:
            flips.append(1.0)
        elif in_both_orders or case.detail.get("identical"):
            flips.append(0.0)
    return flips


@dataclass(frozen=True, slots=True, repr=False)
class PairwiseRunResult(PlotMixin, ReportMixin, table="frame", charts=("win rates",)):
    """What a run gave: every case, and the figures over them.

    Attributes:
        run_id: the run's own name.
        cases: one for each task and comparator, in the order of the tasks.
        keys: the comparators' keys.
        variant_a: what A is called.
        variant_b: what B is called.
        label: what several runs share.
        unmatched: tasks that could not be compared, because a side has no answer.
        unasked: tasks that were not reached: decided before, or the money was spent.
        stopped: why it ended before all tasks were asked: ``decided``, ``max_cost``, or None.
        sequential: whether the outcomes were looked at after every case; intervals then allow for that.
        control: the styles to control for, besides length.
        failures: how failures of variants count in every figure: ``loss``, ``shown`` or ``excluded``.
        variants: what the answers of A and of B took: failures, latency, tokens, cost.
        asked: how many questions this call put to variants and judges; 0 when everything was known already.
        answered: how many of these were tasks for variants; the others were questions to judges.
        cost: what this call spent, in US dollars, as far as judges and variants say.
        prices_as_of: the dates of the prices behind ``cost``; empty where judges and variants state their costs.
        duration_ms: how long this call took.
        created_at: when, UTC.
        provenance: how it was made.
        store_dir: the folder that :meth:`save` writes to.
    """

    run_id: str
    cases: tuple[PairwiseCase, ...]
    keys: Texts
    variant_a: str = "A"
    variant_b: str = "B"
    label: str | None = None
    unmatched: tuple[Unmatched, ...] = ()
    unasked: Texts = ()
    stopped: str | None = None
    sequential: bool = False
    control: Texts = ()
    failures: Failures = "loss"
    variants: tuple[VariantFigures, ...] = ()
    asked: int = 0
    answered: int = 0
    cost: float = 0.0
    prices_as_of: Texts = ()
    duration_ms: float = 0.0
    created_at: str = field(default_factory=utc_now)
    provenance: Provenance = field(default_factory=lambda: Provenance("run_pairwise"))
    store_dir: str | None = None
    _tables: dict[Any, pl.DataFrame] = field(default_factory=dict[Any, Any], init=False, repr=False, compare=False)
    _rates: dict[Any, WinRate] = field(default_factory=dict[Any, Any], init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<PairwiseRunResult {self.run_id}: {self}>"

    def __str__(self) -> str:
        return "\n".join(
            self.verdict(key) if len(self.keys) == 1 else f"{key}: {self.verdict(key)}" for key in self.keys
        )

    # Figures

    @property
    def interval(self) -> Interval:
        """How intervals are made: ``betting`` where the outcomes were looked at after every case, else ``wilson``."""
        return "betting" if self.sequential else "wilson"

    @property
    def names(self) -> dict[str, str]:
        """What A and B are called, by ``a`` and ``b``."""
        return {"a": self.variant_a, "b": self.variant_b}

    @property
    def n_cases(self) -> int:
        """How many pairs of answers were compared, each once however many comparators there are."""
        return len({(case.task_id, case.repeat) for case in self.cases})

    def of(self, key: str) -> Iterator[PairwiseCase]:
        """The cases of a comparator.

        Raises:
            UnknownNameError: when no comparator has that key.
        """
        if key not in self.keys:
            raise UnknownNameError(f"no comparator has the key {key!r}; there are {listed(self.keys)}")
        return (case for case in self.cases if case.key == key)

    def asked_cases(self, key: str) -> list[PairwiseCase]:
        """The cases that the comparator was asked about: not those in which a variant failed, unless it was shown them.

        Args:
            key: the comparator.
        """
        return [case for case in self.of(key) if case.failed is None or self.failures == "shown"]

    def counts(self, key: str) -> dict[str, int]:
        """How many cases are of each kind: ``win tie flip abstention error``."""
        kinds = [str(case.outcome) for case in self.of(key)]
        return {str(kind): kinds.count(str(kind)) for kind in Outcome}

    def tally(self, key: str) -> tuple[int, int, int]:
        """How often A won, how often B won, and the ties; flips, abstentions and errors are none of these."""
        winners = [case.winner for case in self.of(key)]
        return winners.count("a"), winners.count("b"), winners.count("tie")

    def failed_cases(self, key: str) -> dict[str, int]:
        """In how many cases A and B failed, by ``a`` and ``b``."""
        failed = [case.failed for case in self.of(key)]
        both = failed.count("both")
        return {"a": failed.count("a") + both, "b": failed.count("b") + both}

    def flips(self, key: str) -> int:
        """How many cases have another winner in the other order."""
        return self.counts(key)["flip"]

    def flip_directions(self, key: str) -> dict[str, int]:
        """Of these, in how many the judge preferred whatever stood ``first``, and whatever stood ``second``."""
        directions = [case.detail.get("direction") for case in self.of(key) if case.outcome is Outcome.FLIP]
        return {place: directions.count(place) for place in ("first", "second")}

    def win_rate(self, key: str, *, ties: Ties = "half", failures: Failures | None = None, **options: Any) -> WinRate:
        """B's win rate with its interval; see :func:`pairscale.evaluate.inference.win_rate`.

        Of graded cases it is the mean preference, and ``graded`` of the result says so; ``graded=False`` gives the
        discrete rate. Where the outcomes were looked at after every case, the interval is that of the confidence
        sequence: another one would not allow for the looks.

        Args:
            key: the comparator.
            ties: ``half`` (a tie and a flip are half a win) or ``excluded`` (cases with a winner alone).
            failures: How failures of variants count; by default as the run was asked to.
            options: ``interval``, ``level`` and ``graded``: False for the rate of hard verdicts where cases are graded.

        Raises:
            InputError: when another interval is asked for after such looks.
        """
        interval = options.setdefault("interval", self.interval)
        if self.sequential and interval != "betting":
            raise InputError(f"interval={interval!r} does not hold for a run with stop_when; leave it out")
        name = (key, ties, failures or self.failures, *sorted(options.items()))
        if name not in self._rates:
            rate = win_rate(self.frame(key, failures=failures), ties=ties, **options)
            self._rates[name] = replace(rate, variant=self.variant_b)
        return self._rates[name]

    def rates(self, key: str) -> dict[Failures, WinRate]:
        """B's win rate by each way to count failures, the one that was asked for first.

        ``shown`` is among them only when the comparators were shown failures.
        """
        return {way: self.win_rate(key, failures=way) for way in ways_to_count(self.failures)}

    def bounds(self, key: str) -> Bounds:
        """The lowest and the highest win rate of B over all ways to count failures; see :meth:`rates`.

        Example:
            >>> cases = [PairwiseCase(f"t{n}", "k", "b", "", {}, Outcome.WIN) for n in range(3)]
            >>> failed = PairwiseCase("t3", "k", "a", "", {}, Outcome.WIN, failed="b")
            >>> PairwiseRunResult("r", (*cases, failed), ("k",)).bounds("k")
            Bounds(lower=0.75, upper=1.0)
        """
        rates = [rate.rate for rate in self.rates(key).values() if rate.rate is not None]
        return Bounds(min(rates), max(rates)) if rates else Bounds(None, None)

    def length_controlled(self, key: str, *, level: float = 0.95) -> ControlledRate:
        """B's win rate if both answers were equally long; see :meth:`controlled`.

        Args:
            key: the comparator.
            level: of the intervals.
        """
        return self.controlled(key, "length", level=level)

    def controlled(
        self, key: str, control: str | Sequence[str] | None = None, *, level: float = 0.95
    ) -> ControlledRate:
        """B's win rate if both answers were alike in style; see :func:`pairscale.evaluate.inference.controlled_rate`.

        Args:
            key: the comparator.
            control: the styles: ``length``, ``markdown`` (or ``headers``, ``lists``, ``bold``), or a numeric column of
                the answers; by default those of the run, else length.
            level: of the intervals.
        """
        names = control_names(control or self.control or "length")
        cases = list(self.of(key))
        table = self.frame(key)
        notices = []
        for name in names:
            if name == "length":
                continue
            columns = {f"{name}_{side}": [case.measures(side).get(name) for case in cases] for side in "ab"}
            table = table.with_columns(pl.Series(column, values, pl.Float64) for column, values in columns.items())
            if table[f"{name}_a"].null_count() == len(cases):
                notices.append(f"no case has a number {name!r} of both answers")
        rate = controlled_rate(table, names, level=level)
        if self.sequential and rate.ci is not None:
            notices.append("no interval: the outcomes were looked at after every case, and none here allows for that")
            rate = replace(rate, ci=None)
        return replace(rate, notices=(*notices, *rate.notices))

    def agreement(self, x: str, y: str) -> PairwiseAgreement:
        """How far two comparators agree, such as a model and people: over cases with a winner or a tie of both.

        Kappa is by variant: two agree when both name A, both name B, or both say tie. Cases that none was asked about,
        because a variant failed, are left out. Of graded comparators the hard verdicts are compared.

        Args:
            x: a comparator.
            y: another one.
        """
        return agreement_of(self, x, y)

    def frame(self, key: str | None = None, *, failures: Failures | None = None) -> pl.DataFrame:
        """The cases (of one comparator) as a table with the columns of :data:`CASES`, for any other statistic.

        ``winner`` is ``a`` or ``b`` where ``outcome`` is ``win``, and null otherwise. ``failed`` is the variant that
        failed: ``a``, ``b``, ``both``, or null. Graded cases have ``preference``, the probability that B is better, and
        ``probability``, that the first of the two variants, A, is better.

        Args:
            key: the comparator; all of them by default.
            failures: How failures of variants count; by default as the run was asked to.

        Raises:
            InputError: ``shown`` is asked for, and no comparator was shown the failures.
        """
        way = require_failures(failures or self.failures)
        if (key, way) not in self._tables:
            cases = list(self.cases if key is None else self.of(key))
            if way == "shown" and self.failures != "shown" and any(case.failed for case in cases):
                raise InputError('failures="shown" needs a run that shows failures; give it to run_pairwise')
            self._tables[key, way] = cases_table(cases, way)
        return self._tables[key, way]

    def verdict(self, key: str) -> str:
        """Which is better, in a sentence."""
        return verdict_of(self, key)

    def summary(self) -> str:
        """All figures on a few lines."""
        return summary_of(self)

    # Files

    def to_dict(self) -> Values:
        """Everything, as JSON has it."""
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in _FIELDS},
            "n_pairs": self.n_cases,
            "keys": list(self.keys),
            "win_rates": {key: asdict(self.win_rate(key)) for key in self.keys},
            "bounds": {key: self.bounds(key)._asdict() for key in self.keys},
            "variants": [asdict(one) | {"failure_rate": one.failure_rate} for one in self.variants],
            "flips": {key: self.flips(key) for key in self.keys},
            "unmatched": [asdict(one) for one in self.unmatched],
            "provenance": asdict(self.provenance),
            "cases": [asdict(case) | {"outcome": str(case.outcome)} for case in self.cases],
        }

    @checked
    def save(self, path: FilePath | None = None) -> Path:
        """Write it to a ``.json`` file, or as ``RUN_ID.json`` into a folder; by default that of ``store_dir``.

        Raises:
            InputError: when neither is given.
        """
        where = path if path is not None else self.store_dir
        if where is None:
            raise InputError("name a file or a folder: save(path), or store_dir= of the run")
        target = Path(where)
        if target.suffix.lower() != ".json":
            target = target / f"{self.run_id}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=1, default=str) + "\n", "utf-8")
        return target

    @classmethod
    @checked
    def load(cls, path: FilePath) -> PairwiseRunResult:
        """A run that was saved.

        Raises:
            FileFormatError: when the file is not one.
        """
        try:
            return cls.from_dict(json.loads(read_bytes(path)), path)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileFormatError(f"{path} is not a saved run: {type(error).__name__}: {error}") from None

    @classmethod
    def from_dict(cls, document: Row, where: object = "this") -> PairwiseRunResult:
        """What :meth:`to_dict` gave.

        Args:
            document: the document.
            where: it comes from, for messages.

        Raises:
            FileFormatError: when it is of another version.
        """
        version = document["schema_version"]
        if version != SCHEMA_VERSION:
            raise FileFormatError(f"{where} has schema_version {version!r}; this pairscale reads {SCHEMA_VERSION!r}")
        kept = {name: value for name, value in document.items() if name in _FIELDS}
        for name in ("keys", "unasked", "control", "prices_as_of"):
            kept[name] = tuple(document.get(name, ()))
        cases = []
        for case in document["cases"]:  # also those of an earlier version
            own = {name: case[name] for name in _CASE_FIELDS if name in case}
            cases.append(PairwiseCase(**own | {"outcome": Outcome(case["outcome"]), "tags": tuple(case["tags"])}))
        kept["cases"] = tuple(cases)
        kept["unmatched"] = tuple(Unmatched(**task) for task in document["unmatched"])
        kept["variants"] = tuple(
            VariantFigures(**{name: value for name, value in variant.items() if name != "failure_rate"})
            for variant in document["variants"]
        )
        kept["provenance"] = Provenance(**document["provenance"])
        return cls(**kept)


_CASE_FIELDS = tuple(one.name for one in fields(PairwiseCase))
_FIELDS = tuple(one.name for one in fields(PairwiseRunResult) if one.init and one.name != "store_dir")
"""What a saved result holds."""
