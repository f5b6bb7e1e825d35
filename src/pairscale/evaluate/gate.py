"""``gate``: may B take the place of A? A verdict for continuous integration, with the option names of the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from pairscale.checks.card import JudgeCard, JudgeIdentity, read_judge_card
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, JudgeError, PairscaleError
from pairscale.core.files import replacing
from pairscale.core.notices import mention, notice, plural, without_notices
from pairscale.core.options import FilePath, ProgressMode, checked, require_choice, require_probability
from pairscale.core.provenance import Provenance
from pairscale.core.tables import Table, Values, listed
from pairscale.evaluate.ab import ab, read_sides, read_source, read_suite
from pairscale.evaluate.formats.reading import named_columns
from pairscale.evaluate.inference.cases import Scores, Texts, by_task, read_cases, used_cases
from pairscale.evaluate.inference.failures import Failures, require_failures, ways_to_count
from pairscale.evaluate.inference.gate import (
    FAIL_IF,
    VERDICTS,
    FailIf,
    GateRule,
    GateVerdict,
    RunningVerdict,
    Shown,
    cases_to_decide,
    fails,
    fixed_bounds,
    require_margin,
    shown_by,
    two_sided,
    verdict_of_ways,
)
from pairscale.evaluate.judge import JudgeLike, criteria_of, make_task_judge, model_settings
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult, flips_of
from pairscale.evaluate.run import Couple, Look, named_two, paired
from pairscale.evaluate.tasks import Suite
from pairscale.evaluate.wording import (
    cannot_tell,
    gate_advice,
    gate_line,
    gate_markdown,
    gate_sentence,
    percent,
    too_few_tasks,
)
from pairscale.judges.function import words_of
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT, run_sync

if TYPE_CHECKING:
    from pairscale.evaluate.ab import Answers
    from pairscale.evaluate.tasks import SuiteLike
    from pairscale.providers.catalog import Price

Missing: TypeAlias = Literal["refuse", "excluded"]
"""What to do if B has no answer to a task of A."""

_LEAST_NET_AGREEMENT = 0.5  # of the tasks in which one answer is better: those told right, less those told wrong
_MOST_PLANTED = 0.25  # of the tasks that planted answers may win, ties and flips as half
_ASKING = "judge run swap concurrency retries timeout price failures seed judge_args base_url progress".split()
_COLUMNS: Values = {
    "criterion": pl.String,
    "verdict": pl.String,
    "failed": pl.Boolean,
    "rate": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "n": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class GateCriterion:
    """The verdict of one criterion.

    Attributes:
        key: the criterion.
        verdict: ``better``, ``equivalent``, ``not-worse``, ``worse``, ``inconclusive`` or ``untested``.
        failed: whether the gate fails by it.
        rate: B's win rate over the tasks that decided it, ties and flips as half; None without an answer.
        lower: the lower bound of it, true with the chance ``level``; None without an answer.
        upper: the upper bound, likewise.
        level: of each bound; with several criteria, higher than that of the gate, so that it holds for all together.
        n: tasks (with ``fixed``, cases) that the verdict rests on.
        wins: cases that B won, of all that were asked.
        losses: cases that A won.
        ties: cases without a winner, flips among them.
        unanswered: cases that the judge gave no answer to.
        by_failures: by the way to count failures, the verdict if that were the only way.
        cases_needed: about how many cases would decide it, where it is open.
        lost: tasks that B lost.
        untested: why nothing was tested by this criterion: the gate could not have failed, or the judge has
            not shown that it can tell; None otherwise.
        can_tell: whether the judge has shown that it can tell A from B; None where the verdict does not rest on it.
        sentence: the verdict as a sentence.
        advice: what to do next.
    """

    key: str
    verdict: GateVerdict
    failed: bool
    rate: float | None
    lower: float | None
    upper: float | None
    level: float
    n: int
    wins: int
    losses: int
    ties: int
    unanswered: int
    by_failures: Mapping[Failures, GateVerdict]
    cases_needed: int | None
    lost: Texts
    untested: str | None = None
    can_tell: bool | None = None
    sentence: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class GateResult(ReprMixin, table="frame"):
    """What a gate found; see :func:`gate`.

    Attributes:
        criteria: one verdict per criterion.
        fail_if: what the gate fails on.
        margin: how far B's win rate may lie below one half.
        level: the chance that a bound is true, over all criteria together.
        fixed: whether all cases were asked, and looked at once.
        result: every case, and the figures over them; None when the gate could not run.
        problem: why the gate could not run; None when it did.
        provenance: how it was made.
    """

    criteria: tuple[GateCriterion, ...]
    fail_if: tuple[FailIf, ...]
    margin: float
    level: float
    fixed: bool
    result: PairwiseRunResult | None
    problem: str | None
    provenance: Provenance

    def __str__(self) -> str:
        return gate_line(self)

    @property
    def verdict(self) -> GateVerdict | None:
        """The least favourable verdict of all criteria; None when nothing was compared."""
        return max((one.verdict for one in self.criteria), key=VERDICTS.index, default=None)

    @property
    def passed(self) -> bool:
        """Whether the gate ran and tested something, and no verdict is among ``fail_if``."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """What the command exits with: 0 passed, 3 failed, 4 untested, 1 could not run."""
        if self.problem is not None:
            return 1
        if any(one.failed for one in self.criteria):
            return 3
        if any(one.verdict == "untested" for one in self.criteria):
            return 4
        return 0

    def frame(self) -> pl.DataFrame:
        """One row per criterion: ``criterion verdict failed rate lower upper n``."""
        rows = [{**asdict(criterion), "criterion": criterion.key} for criterion in self.criteria]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the cases, as JSON has it."""
        run = self.result
        own = "verdict passed exit_code problem fail_if margin level fixed"
        return {
            **{name: getattr(self, name) for name in own.split()},
            **{name: getattr(run, name, None) for name in ("failures", "variant_a", "variant_b")},
            "criteria": [asdict(criterion) for criterion in self.criteria],
            "run": run and {name: getattr(run, name) for name in ("asked", "answered", "cost", "stopped")},
            "unmatched": [asdict(task) for task in run.unmatched] if run else [],
            "unasked": list(run.unasked) if run else [],
            "provenance": asdict(self.provenance),
        }


@checked
def gate(
    a: Answers,
    b: Answers | None = None,
    *,
    criterion: str | Sequence[str],
    judge: JudgeLike | Sequence[JudgeLike] | None = None,
    fail_if: FailIf | Sequence[FailIf] = ("worse",),
    margin: float = 0.05,
    level: float = 0.95,
    fixed: bool = False,
    name_a: str = "A",
    name_b: str = "B",
    suite: SuiteLike | None = None,
    baseline: FilePath | None = None,
    run: FilePath | None = None,
    swap: bool = True,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    max_cost: float | None = None,
    price: Price | Mapping[str, Any] | None = None,
    failures: Failures = "loss",
    missing: Missing = "refuse",
    max_errors: float = 0.1,
    planted: FilePath | Table | None = None,
    card: JudgeCard | FilePath | None = None,
    seed: int = 1,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    summary: FilePath | None = None,
    id_col: str | None = None,
    input_col: str | None = None,
    output_col: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    encoding: str | None = None,
    progress: ProgressMode = True,
) -> GateResult:
    """May B take the place of A? Compare them task by task until that is decided.

    The verdict is ``better``, ``worse``, ``not-worse`` (worse by less than the margin, if at all), ``equivalent``
    (within the margin on both sides) or ``inconclusive``; or ``untested``, and the gate has not passed, where it could
    not have failed (there are too few tasks to show that B is worse, even if it loses all of them) or the judge has not
    shown that it can tell. Tasks are asked in a random order, and no more than the decision needs: the bounds behind
    the verdict hold however often you look. If A and B are equal, the gate says ``worse`` with a chance of at most 5 %;
    if B is worse by the whole margin, it says ``not-worse`` with a chance of at most 5 %.

    A judge that cannot tell A from B makes them even. So every verdict but ``better`` and ``worse`` takes a judge that
    surely names the same winner in both orders in more than half of the tasks, or ``planted`` answers that it surely
    finds to be worse, or a ``card`` that shows how well it agrees with people.

    A variant that fails on a task has lost it, unless ``failures`` says otherwise. ``better``, ``not-worse`` and
    ``equivalent`` must hold however failures count. A judge that fails gives no outcome, and too many such cases mean
    that the gate could not run. Run the same call again to resume a run.

    Args:
        a: The recorded answers of A: a file, a table, a :class:`TraceSource` or a mapping from task to answer; or one
            file with the answers of both. Without ``b``: the answers of B, if there is a ``baseline``.
        b: The same for B.
        criterion: What "better" means; one criterion or several. The gate fails if it fails by one of them.
        judge: A name, a function ``judge(A, B)`` or a :class:`Judge`; several are a panel that decides by majority. By
            default ``lexical``, a baseline that reads no criterion.
        fail_if: What the gate fails on: ``worse``, ``inconclusive`` or ``not-better`` (every verdict but ``better``).
        margin: How far the win rate of B may lie below one half.
        level: The chance that what a verdict says is true, over all criteria together.
        fixed: Whether to ask all cases and look once, as a test of fixed size does.
        name_a: What A is called.
        name_b: What B is called.
        suite: The tasks that the answers belong to.
        baseline: A file with the recorded answers of A, such as one that lies in the repository; ``a`` then is B's.
        run: The run file; without one, nothing is kept.
        swap: Whether to ask judges in both orders; a win only if they agree.
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        max_cost: US dollars that the run may spend, all calls and resumptions together.
        price: US dollars per million tokens, such as ``{"input": 1.25, "output": 10}``; by default the dated table.
        failures: How a failed answer of a variant counts: ``loss``, ``shown`` (the judges see "(no answer)") or
            ``excluded``.
        missing: What to do if B has no answer to a task of A: ``refuse`` to run, or leave the task out (``excluded``).
        max_errors: The largest share of cases that the judge may leave without an answer.
        planted: Answers that are known to be worse than those of A, to some of its tasks, about 20 of them. They are
            compared with A's recorded answers first, and show whether the judge can tell.
        card: The judge card of this judge and criterion, from :func:`check_judge` with labels of people: another way to
            show that it can tell.
        seed: Seed of the order of tasks.
        judge_args: Settings of the judge.
        base_url: Address of the provider of the judge.
        summary: A file to write a Markdown summary to.
        id_col: The column of the tasks' names, or its path in JSON, where it is not ``task_id``.
        input_col: The column of the tasks, or its path in JSON, where it is not ``input``.
        output_col: The column of the answers, or its path in JSON, where it is not ``output``.
        a_col: With one file that holds the answers of both: the column of A's, or its path in JSON.
        b_col: The same for B.
        encoding: The encoding of text files that are not UTF-8.
        progress: Show progress on standard error.

    Returns:
        A :class:`GateResult` with ``.verdict``, ``.passed`` and one entry in ``.criteria`` per criterion.

    Raises:
        InputError: If the answers, the suite, a variant, a judge or a setting cannot be used.
        JudgeError: If the judge cannot be asked, or left too many cases without an answer; its ``result`` is what there
            is.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> old = {f"t{n}": "Yes, it does, and here is why." for n in range(40)}
        >>> new = {f"t{n}": "Yes." for n in range(40)}
        >>> found = ps.gate(old, new, criterion="says more", judge=longer, concurrency=1, progress=False)
        >>> found.verdict, found.passed, found.criteria[0].n
        ('worse', False, 8)
    """
    given = dict(locals())
    named_two((name_a, name_b), (a, b))
    criteria, rule = _require_options(criterion, judge, fail_if, failures, margin, level)
    require_choice(missing, "missing", ("refuse", "excluded"))
    require_probability(max_errors, "max_errors")
    report = _require_file(summary)
    settings = {name: given[name] for name in ("margin", "level", "fixed", "missing", "max_errors")}
    provenance = Provenance("gate", settings | {"fail_if": rule.fail_if}, seed)
    empty = GateResult((), rule.fail_if, margin, level, fixed, None, None, provenance)
    asking = {name: given[name] for name in _ASKING} | {"criterion": criteria}
    try:
        sensitivity = _shown_by_card(card, asking)
        named = named_columns(id_col, input_col, output_col)
        if baseline is not None:
            if b is not None:
                raise InputError("`baseline=` holds the answers of A: leave out those of A", "baseline")
            a, b = baseline, a
        sides, names = read_sides(a, b, (name_a, name_b), named, (a_col, b_col), encoding)
        if sides is None:
            raise InputError(
                "name two files of answers, A and B, or the columns of both in one file (`a_col=` and `b_col=`); "
                "`ps.ab` runs variants",
                "b",
            )
        tasks = read_suite(suite, named, encoding)
        _tell_size(_shared_tasks(sides, tasks, names, missing), rule, names[1], fixed=fixed)
        if planted is not None:
            worse = read_source(planted, named, "planted", encoding)
            with without_notices():  # the comparison itself says the same
                lost = ab(sides[0], worse, name_a="A", name_b="planted", max_cost=max_cost, **asking)
            sensitivity |= _planted_lose(lost, rule)
            if max_cost is not None and run is None:  # a run file knows by itself what was spent
                max_cost = max(0.0, max_cost - lost.cost)
        rule = replace(rule, by_flips=not sensitivity.keys() >= {*criteria})
        result = ab(
            *sides, suite=tasks, name_a=names[0], name_b=names[1], max_cost=max_cost,
            stop_when=None if fixed else rule, **asking,
        )  # fmt: skip
    except BaseException as error:  # so that no summary of an earlier run stays in its place, on Ctrl-C neither
        words = str(error) if isinstance(error, PairscaleError) else words_of(error)
        _write_summary(replace(empty, problem=words), report)
        raise
    gated = replace(
        empty,
        criteria=tuple(gate_criterion(result, key, rule, sensitivity) for key in result.keys),
        result=result,
        problem=_problem(result, max_errors, fixed=fixed),
    )
    _write_summary(gated, report)
    if gated.problem is not None:
        raised = JudgeError(gated.problem)
        raised.result = gated
        raise raised
    return gated


def _write_summary(gated: GateResult, report: Path | None) -> None:
    if report is not None:
        with replacing(report) as temporary:
            temporary.write_text(gate_markdown(gated), "utf-8")


def _shown_by_card(card: JudgeCard | FilePath | None, asking: Mapping[str, Any]) -> dict[str, bool]:
    """Whether a card shows that the judge can tell, by the criterion that the card is about."""
    if card is None:
        return {}
    judge = asking["judge"] or "lexical"
    if isinstance(judge, list | tuple):
        raise InputError("`card=` is of one judge, not of a panel; show by `planted=` that it can tell", "card")
    read = card if isinstance(card, JudgeCard) else read_judge_card(card)
    criterion = read.judge.trait or ""
    if criterion not in asking["criterion"]:
        raise InputError(f"the judge card is about {criterion!r}, which is no criterion of this gate", "card")
    settings = {**(asking["judge_args"] or {})}
    settings |= model_settings([judge], base_url=asking["base_url"], price=asking["price"])
    condition = make_task_judge(judge, criterion, settings or None).condition
    differences = read.judge.differences(JudgeIdentity.of(condition, "cases", criterion))
    if differences:
        raise InputError(f"the judge card is of another judge: {'; '.join(differences)}", "card")
    net = read.measures["net_agreement"]
    return {criterion: net.lower is not None and net.lower > _LEAST_NET_AGREEMENT}


def _planted_lose(result: PairwiseRunResult, rule: GateRule) -> dict[str, bool]:
    """By criterion, whether the judge surely finds planted answers to be worse."""
    are_worse = {}
    for key in result.keys:
        scores = by_task(used_cases(read_cases(result.frame(key)), "half"))
        most = fixed_bounds(scores, 0.0, rule.level)[1] if scores.n else 1.0
        are_worse[key] = most < _MOST_PLANTED
        mention(
            f"planted answers, {key}: they won {percent(scores.mean)} of {plural(scores.tasks, 'task')} "
            f"(surely at most {percent(most)}, where {percent(_MOST_PLANTED)} are allowed)"
        )
    return are_worse


def _require_options(
    criterion: Any, judge: Any, fail_if: Any, failures: Any, margin: float, level: float
) -> tuple[list[str], GateRule]:
    """The criteria, and when the gate has seen enough of each of them; every option is checked."""
    criteria = criteria_of(criterion)
    if "human" in (judge if isinstance(judge, list | tuple) else [judge]):
        words = "`judge=human` answers in ab, not in a gate, which runs without people; name another judge"
        raise InputError(words, "judge")
    named = fail_if if isinstance(fail_if, list | tuple) else [fail_if]
    parts = ",".join(map(str, named)).split(",")
    fails_on = dict.fromkeys(require_choice(part.strip(), "fail_if", FAIL_IF) for part in parts)
    require_margin(margin)
    two_sided(level)
    require_failures(failures)
    return criteria, GateRule(margin, 1 - (1 - level) / len(criteria), tuple(fails_on))


def _require_file(summary: FilePath | None) -> Path | None:
    """A file that can be written, refused before any work is done rather than after it."""
    if summary is None:
        return None
    target = Path(summary)
    if target.is_dir() or not os.access(target.absolute().parent, os.W_OK):
        words = f"summary must be a file in a folder that exists and can be written to, not {target}"
        raise InputError(words, "summary")
    return target


def _shared_tasks(sides: Any, suite: Suite | None, names: Couple, missing: Missing) -> int:
    """How many tasks can be compared; refuse a B that lacks answers, as they may be those that it failed on."""
    with without_notices():  # the comparison says the same
        jobs, unmatched = run_sync(lambda: paired(sides[0], sides[1], suite, names, strict=True))
    lacking = [task.task_id for task in unmatched if task.missing == "b"]
    if lacking and missing != "excluded":
        raise InputError(
            f"{names[1]} has no answer to {plural(len(lacking), 'task')} of {names[0]}: {listed(lacking, 5)}; if it "
            "failed on them, add them with an empty output, so that they count as failures; if they are no longer "
            "asked, give `missing=excluded`"
        )
    return len({job.task_id for job in jobs})


def _tell_size(tasks: int, rule: GateRule, b: str, *, fixed: bool) -> None:
    """Say before a judge is asked when there are too few tasks for the gate to fail, or for the margin."""
    untested = too_few_tasks(tasks, rule, b, fixed=fixed)
    needed = cases_to_decide(rule.margin, level=rule.level, fixed=fixed)
    if untested is not None:
        notice(f"{untested}; the verdict will be untested")
    elif needed is not None and tasks < needed:
        mention(
            f"note: {plural(tasks, 'task')} can show that {b} is worse, but hardly that it is not, with a margin of "
            f"{100 * rule.margin:g} %: that takes about {needed:,} tasks without ties, fewer with ties"
        )


# The verdict


def _problem(result: PairwiseRunResult, max_errors: float, *, fixed: bool) -> str | None:
    """Why these cases are no basis for a verdict; None when they are."""
    for key in result.keys:
        every = list(result.of(key))
        asked = result.asked_cases(key)
        unanswered = [case for case in asked if not case.outcome.is_answer]
        why = f"; the first: {unanswered[0].reasoning[:160]}" if unanswered else ""
        a_always_failed = not asked and any(case.failed != "b" for case in every)
        if a_always_failed or not any(case.outcome.is_answer for case in every):
            stop = "; `max_cost=` was reached, raise it" if result.stopped == "max_cost" else ""
            return f"no case was answered ({key}){why}{stop}"
        if len(unanswered) > max(1, max_errors * len(asked)):
            return (
                f"the judge gave no answer to {len(unanswered):,} of {len(asked):,} cases ({key}), more than the "
                f"{100 * max_errors:g} % that `max_errors=` allows{why}; run it again to ask them again, or name "
                "another judge"
            )
    if fixed and result.unasked:
        return (
            f"{len(result.unasked):,} tasks were not asked ({result.stopped}), and a test of fixed size needs all; "
            "raise `max_cost=`, or leave out `fixed=`"
        )
    return None


def gate_criterion(
    run: PairwiseRunResult, key: str, rule: GateRule, sensitivity: Mapping[str, bool] | None = None
) -> GateCriterion:
    """The verdict of one criterion.

    The cases are looked at in the order in which they were to be asked, and the verdict is that of the first look at
    which it was decided; without such a look, that of the last one.

    Args:
        run: the result; by the confidence sequence if it was looked at after every case, else by one look.
        key: the criterion.
        rule: the margin, the level and what the gate fails on.
        sensitivity: by criterion, whether a card or planted answers have shown that the judge can tell.
    """
    cases = list(run.of(key))
    shown, rate, ends, n = _by_sequence(run, cases, rule) if run.sequential else _by_interval(run, key, rule)
    answered = [case for case in cases if case.outcome.is_answer]
    lost = dict.fromkeys(case.task_id for case in answered if case.winner == "a")
    losses, wins, _ = run.tally(key)
    ties = len(answered) - wins - losses
    tasks = len({case.task_id for case in answered})
    if run.stopped == "decided":
        tasks += len(run.unasked)  # they would have been asked, had they been needed
    plain = all(case.repeat == 1 and case.preference is None for case in cases)
    untested = too_few_tasks(tasks, rule, run.variant_b, fixed=plain and not run.sequential)
    verdict = verdict_of_ways(shown, run.failures)
    can_tell = None
    if untested is None and verdict not in {"better", "worse"}:
        shown_before = (sensitivity or {}).get(key)
        can_tell = _is_consistent(cases, rule.level) if shown_before is None else shown_before
        if not can_tell:
            untested = cannot_tell(flips_of(cases) if shown_before is None else None)
    needed = None
    if untested is not None:
        verdict = "untested"
    elif verdict == "inconclusive" and answered:
        needed = cases_to_decide(rule.margin, level=rule.level, ties=ties / len(answered), fixed=not run.sequential)
    criterion = GateCriterion(
        key=key,
        verdict=verdict,
        failed=fails(verdict, rule.fail_if),
        rate=rate,
        lower=ends[0],
        upper=ends[1],
        level=rule.level,
        n=n,
        wins=wins,
        losses=losses,
        ties=ties,
        unanswered=sum(not case.outcome.is_answer for case in run.asked_cases(key)),
        by_failures={way: verdict_of_ways({way: one}, way) for way, one in shown.items()},
        cases_needed=needed,
        lost=tuple(lost),
        untested=untested,
        can_tell=can_tell,
    )
    sentence = gate_sentence(criterion, run, rule)
    return replace(criterion, sentence=sentence, advice=gate_advice(criterion, run, rule))


def _is_consistent(cases: Sequence[PairwiseCase], level: float) -> bool:
    """Whether both orders surely name the same winner in more than half of the tasks in which they name any."""
    tasks: dict[str, list[PairwiseCase]] = {}
    for case in cases:
        tasks.setdefault(case.task_id, []).append(case)
    flips = [flipped for flipped in map(flips_of, tasks.values()) if flipped]
    shares = Scores(np.array([np.mean(flipped) for flipped in flips]), sum(map(len, flips)))
    return bool(flips) and fixed_bounds(shares, 0.0, level)[1] < 0.5


_Ends: TypeAlias = tuple[float | None, float | None]
_Figures: TypeAlias = tuple[dict[Failures, Shown], float | None, _Ends, int]
"""What is shown, by the way to count failures; the rate, its ends and the tasks in the way that was asked for."""


def _by_sequence(run: PairwiseRunResult, cases: Sequence[PairwiseCase], rule: GateRule) -> _Figures:
    look = Look([case.task_id for case in cases], run.failures, rule)
    for place, case in enumerate(cases):
        look.take(place, case)
        if rule.decided(look, run.failures):
            break
    shown = {way: sequence.shown for way, sequence in look.sequences.items()}
    asked: RunningVerdict = look.sequences[run.failures]
    return shown, asked.mean if asked.n else None, asked.ci if asked.n else (None, None), asked.n


def _by_interval(run: PairwiseRunResult, key: str, rule: GateRule) -> _Figures:
    figures = {}
    for way in ways_to_count(run.failures):
        scores = by_task(used_cases(read_cases(run.frame(key, failures=way)), "half"))
        ends: _Ends = (None, None)
        shown = Shown()
        if scores.n:
            lower, upper = ends = fixed_bounds(scores, rule.margin, rule.level)
            shown = shown_by(lower, upper, rule.margin)
        figures[way] = (shown, scores.mean, ends, scores.n)
    return {way: figure[0] for way, figure in figures.items()}, *figures[run.failures][1:]
