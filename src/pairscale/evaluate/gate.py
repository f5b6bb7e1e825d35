"""``gate``: may B take the place of A? A verdict for continuous integration, with the option names of the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, JudgeError, PairscaleError
from pairscale.core.notices import mention, notice, plural, without_notices
from pairscale.core.options import (
    ProgressMode,
    checked,
    require_choice,
    require_probability,
    require_text,
)
from pairscale.core.provenance import Provenance
from pairscale.core.tables import listed
from pairscale.evaluate.ab import ab, is_variant, read_sides, read_source, read_suite
from pairscale.evaluate.formats.reading import named_columns
from pairscale.evaluate.gate_files import (
    Baseline,
    read_baseline,
    record_baseline,
    require_file,
    write_reports,
)
from pairscale.evaluate.inference.cases import by_task, read_cases, used_cases
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
    is_decided,
    require_margin,
    shown_by,
    two_sided,
    verdict_of_ways,
)
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult
from pairscale.evaluate.run import Look, answer_source, paired, require_two_names
from pairscale.evaluate.tasks import Suite
from pairscale.evaluate.wording import gate_advice, gate_line, gate_sentence, too_few_tasks
from pairscale.judges.function import words_of
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT, run_sync

if TYPE_CHECKING:
    from pairscale.evaluate.ab import Answers, JudgeLike
    from pairscale.evaluate.tasks import SuiteLike
    from pairscale.evaluate.variants import VariantLike
    from pairscale.providers.catalog import Price

Missing: TypeAlias = Literal["refuse", "excluded"]
"""What to do if B has no answer to a task of A."""

_COLUMNS: dict[str, pl.DataType] = {
    "criterion": pl.String(),
    "verdict": pl.String(),
    "failed": pl.Boolean(),
    "rate": pl.Float64(),
    "lower": pl.Float64(),
    "upper": pl.Float64(),
    "n": pl.Int64(),
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
        extra: tasks that were under way when it was decided; they count in no figure.
        wins: cases that B won, of all that were asked.
        losses: cases that A won.
        ties: cases without a winner, flips among them.
        unanswered: cases that the judge gave no answer to.
        failures_a: cases in which A failed.
        failures_b: cases in which B failed.
        by_failures: by the way to count failures, the verdict if that were the only way.
        cases_needed: about how many cases would decide it, where it is open.
        lost: tasks that B lost, the first of them.
        untested: why the gate could not have failed by this criterion, in words; None where it could.
        sentence: the verdict in words.
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
    extra: int
    wins: int
    losses: int
    ties: int
    unanswered: int
    failures_a: int
    failures_b: int
    by_failures: Mapping[Failures, GateVerdict]
    cases_needed: int | None
    lost: tuple[str, ...]
    untested: str | None = None
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
        result: every case, and the figures over them; None when a baseline was recorded and nothing was compared.
        problem: why the gate could not run, in words; None when it did.
        baseline: what the baseline is, in words; None without one.
        provenance: how it was made.
    """

    criteria: tuple[GateCriterion, ...]
    fail_if: tuple[FailIf, ...]
    margin: float
    level: float
    fixed: bool
    result: PairwiseRunResult | None
    problem: str | None
    baseline: str | None
    provenance: Provenance

    def __str__(self) -> str:
        return gate_line(self)

    @property
    def verdict(self) -> GateVerdict | None:
        """The least favourable verdict of all criteria; None when nothing was compared."""
        found = {one.verdict for one in self.criteria}
        return max(found, key=VERDICTS.index, default=None)

    @property
    def passed(self) -> bool:
        """Whether the gate ran and could have failed, and no verdict is among ``fail_if``."""
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
        rows = [{**asdict(one), "criterion": one.key} for one in self.criteria]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the cases, as JSON has it."""
        run = self.result
        of_run = ("failures", "variant_a", "variant_b")
        counted = ("asked", "answered", "cost", "stopped")
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "exit_code": self.exit_code,
            **{name: getattr(self, name) for name in ("problem", "fail_if", "margin", "level", "fixed", "baseline")},
            **{name: getattr(run, name, None) for name in of_run},
            "criteria": [asdict(one) for one in self.criteria],
            "run": None if run is None else {name: getattr(run, name) for name in counted},
            "unmatched": [] if run is None else [asdict(one) for one in run.unmatched],
            "unasked": [] if run is None else list(run.unasked),
            "provenance": asdict(self.provenance),
        }


@checked
def gate(
    a: Answers | SuiteLike,
    b: Answers | None = None,
    *,
    criterion: str | Sequence[str],
    judge: JudgeLike | Sequence[JudgeLike] | None = None,
    fail_if: FailIf | Sequence[FailIf] = ("worse",),
    margin: float = 0.05,
    level: float = 0.95,
    fixed: bool = False,
    variant_a: VariantLike | None = None,
    variant_b: VariantLike | None = None,
    prompt_a: str | None = None,
    prompt_b: str | None = None,
    name_a: str = "A",
    name_b: str = "B",
    suite: SuiteLike | None = None,
    baseline: str | os.PathLike[str] | None = None,
    update_baseline: bool = False,
    run: str | os.PathLike[str] | None = None,
    swap: bool = True,
    repeats: int = 1,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    variant_timeout: float | None = None,
    max_cost: float | None = None,
    price: Price | Mapping[str, Any] | None = None,
    failures: Failures = "loss",
    missing: Missing = "refuse",
    max_errors: float = 0.1,
    seed: int = 1,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    summary: str | os.PathLike[str] | None = None,
    junit: str | os.PathLike[str] | None = None,
    save: str | os.PathLike[str] | None = None,
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
    not have failed: there are too few tasks to show that B is worse, even if it loses all of them. Tasks are asked in a
    random order, and no more than the decision needs: the bounds behind the verdict hold however often you look. If A
    and B are equal, the gate says ``worse`` with a chance of at most 5 %; if B is worse by the whole margin, it says
    ``not-worse`` with a chance of at most 5 %.

    A variant that fails on a task has lost it, unless ``failures`` says otherwise. ``better``, ``not-worse`` and
    ``equivalent`` must hold however failures count. A judge that fails gives no outcome, and too many such cases mean
    that the gate could not run. Run the same call again to resume a run.

    Args:
        a: The recorded answers of A: a file, a table, a :class:`TraceSource` or a mapping from task to answer; or a
            function, with ``suite``. Without ``b``: the answers of B, if there is a ``baseline``; or the suite that
            both variants answer.
        b: The same for B.
        criterion: What "better" means; one criterion or several. The gate fails if it fails by one of them.
        judge: A name, a function ``judge(A, B)`` or a :class:`Judge`; several are a panel that decides by majority. By
            default ``lexical``, a baseline that reads no criterion.
        fail_if: What the gate fails on: ``worse``, ``inconclusive`` or ``not-better`` (every verdict but ``better``).
        margin: How far the win rate of B may lie below one half.
        level: The chance that what a verdict says is true, over all criteria together.
        fixed: Whether to ask all cases and look once, as a test of fixed size does.
        variant_a: With a suite: a function of a task, ``provider:model``, ``module:function`` or recorded answers.
        variant_b: The same for B.
        prompt_a: Prompt of a model that is A: a text or a ``.txt`` file, with ``{input}``.
        prompt_b: The same for B.
        name_a: What A is called.
        name_b: What B is called.
        suite: With ``a`` and ``b``: the tasks that the answers belong to.
        baseline: A file with the answers of A, recorded before; B is compared with them.
        update_baseline: Whether to record the answers of A in the baseline file. Without ``b``, nothing is compared.
        run: The run file; without one, nothing is kept.
        swap: Whether to ask judges in both orders; a win only if they agree.
        repeats: With a suite: how often each variant answers each task.
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer of a judge may take; None for no limit.
        variant_timeout: With a suite: seconds that one answer of a variant may take before it has failed. An ``async``
            variant is cancelled; the thread of a plain function is left behind, and what it still returns is ignored.
        max_cost: US dollars that the run may spend, all calls and resumptions together.
        price: US dollars per million tokens, such as ``{"input": 1.25, "output": 10}``; by default the dated table.
        failures: How a failed answer of a variant counts: ``loss``, ``shown`` (the judges see "(no answer)") or
            ``excluded``.
        missing: What to do if B has no answer to a task of A: ``refuse`` to run, or leave the task out (``excluded``).
        max_errors: The largest share of cases that the judge may leave without an answer.
        seed: Seed of the order of tasks.
        judge_args: Settings of the judge.
        base_url: Address of the provider of the judge.
        summary: A file to write a Markdown summary to.
        junit: A file to write JUnit XML to, one test case per criterion.
        save: A folder to write the cases to as well, as ``RUN_ID.json``.
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
    options: dict[str, Any] = {"margin": margin, "level": level, "fixed": fixed, "missing": missing}
    options |= {"max_errors": max_errors}
    names = (name_a, name_b)
    files = {"summary": summary, "junit": junit, "baseline": baseline}
    require_two_names(*names)
    criteria, fails_on = require_gate_options(criterion, fail_if, judge, failures, update_baseline, files, **options)
    rule = GateRule(margin, 1 - (1 - level) / len(criteria), fails_on)

    def finish(result: PairwiseRunResult | None, known: Baseline | None, problem: str | None) -> GateResult:
        verdicts = () if result is None else tuple(gate_criterion(result, one, rule) for one in result.keys)
        digests = {} if known is None else {"baseline": known.digest}
        provenance = Provenance("gate", {"fail_if": fails_on, **options}, seed, digests)
        told = None if known is None else str(known)
        found = GateResult(verdicts, fails_on, margin, level, fixed, result, problem, told, provenance)
        write_reports(found, summary=summary, junit=junit)
        return found

    variants = (variant_a, variant_b)
    if b is not None and suite is not None and (is_variant(a) or is_variant(b)):
        variants = (a, b)
        a, b, suite = suite, None, None
    try:
        named = named_columns(id_col, input_col, output_col)
        runs_variants = any((*variants, prompt_a, prompt_b))
        known = None
        if baseline is not None:
            if variants[0] is not None or prompt_a is not None:
                raise InputError("`baseline=` holds the answers of A: leave out `variant_a=` and `prompt_a=`")
            reading: dict[str, Any] = {"update": update_baseline, "runs_variants": runs_variants, "encoding": encoding}
            a, b, known = _with_baseline(a, b, baseline, names, named, **reading)
            if update_baseline and b is None:
                return finish(None, known, None)
        if runs_variants:
            a = read_suite(a, named, encoding)
            variants = (variants[0] if known is None else known.source, variants[1])
            tasks = len(a or ())
        else:
            sides, names = read_sides(a, b, names, named, a_col=a_col, b_col=b_col, encoding=encoding)
            if sides is None:
                raise InputError("name the answers of A and of B; with `baseline=`, those of B alone", "b")
            a, b = sides
            suite = read_suite(suite, named, encoding)
            tasks = _shared_tasks(a, b, suite, names, missing)
        _tell_size(tasks, rule, names[1], fixed=fixed)
        result = ab(
            a, b, criterion=criteria, judge=judge, variant_a=variants[0], variant_b=variants[1], prompt_a=prompt_a,
            prompt_b=prompt_b, name_a=names[0], name_b=names[1], suite=suite, run=run,
            swap=swap, repeats=repeats, concurrency=concurrency, retries=retries, timeout=timeout,
            variant_timeout=variant_timeout, max_cost=max_cost, price=price, failures=failures,
            stop_when=None if fixed else rule, seed=seed, judge_args=judge_args, base_url=base_url, save=save,
            progress=progress,
        )  # fmt: skip
    except BaseException as error:  # so that no report of an earlier run stays in its place, on Ctrl-C neither
        finish(None, None, str(error) if isinstance(error, PairscaleError) else words_of(error))
        raise
    found = finish(result, known, _problem(result, max_errors, fixed=fixed))
    if found.problem is not None:
        raised = JudgeError(found.problem)
        raised.result = found
        raise raised
    return found


def require_gate_options(
    criterion: Any,
    fail_if: Any,
    judge: Any,
    failures: Any,
    update_baseline: bool,
    files: Mapping[str, Any],
    **options: Any,
) -> tuple[tuple[str, ...], tuple[FailIf, ...]]:
    """Check the options of a gate before anything is read.

    Returns:
        The criteria, and what the gate fails on.

    Raises:
        InputError: one of them is wrong.
    """
    criteria = [criterion] if isinstance(criterion, str) else list(criterion or [])
    named = fail_if if isinstance(fail_if, list | tuple) else [fail_if]
    parts = [part.strip() for one in named for part in str(one).split(",")]
    if not criteria:
        raise InputError('say what "better" means, as in `criterion="more helpful"`', "criterion")
    if not parts:
        raise InputError(f"`fail_if=` must name what the gate fails on: {', '.join(FAIL_IF)}", "fail_if")
    if "human" in (judge if isinstance(judge, list | tuple) else [judge]):
        words = "`judge=human` answers in ab, not in a gate, which runs without people; name another judge"
        raise InputError(words, "judge")
    if update_baseline and files["baseline"] is None:
        raise InputError("`update_baseline=` needs a file for it: give `baseline=`", "update_baseline")
    for name in ("summary", "junit"):
        if files[name] is not None:
            require_file(files[name], name)
    require_margin(options["margin"])
    two_sided(options["level"])
    require_failures(failures)
    require_choice(options["missing"], "missing", ("refuse", "excluded"))
    require_probability(options["max_errors"], "max_errors")
    return (
        tuple(dict.fromkeys(require_text(one, "criterion") for one in criteria)),
        tuple(dict.fromkeys(require_choice(one, "fail_if", FAIL_IF) for one in parts)),
    )


def _with_baseline(
    a: Any,
    b: Any,
    path: str | os.PathLike[str],
    names: tuple[str, str],
    named: Mapping[str, str],
    *,
    update: bool,
    runs_variants: bool,
    encoding: str | None,
) -> tuple[Any, Any, Baseline]:
    """The answers of A and B where a baseline holds those of A, or is to hold them from now on."""
    if update:
        origin = Path(a).name if isinstance(a, str | os.PathLike) else type(a).__name__
        a = answer_source(read_source(a, named, names[0], encoding), names[0])
        known = record_baseline(a, path, source_name=origin, name=names[0])
        mention(f"recorded as baseline in {path}: {known}")
        return a, b, known
    if b is not None:
        raise InputError("`baseline=` holds the answers of A: leave out A, or give `update_baseline=True` to record it")
    known = read_baseline(path)
    mention(f"baseline {path}: {known}")
    if runs_variants:
        return a, None, known
    return known.source, read_source(a, named, names[1], encoding), known


def _shared_tasks(a: Any, b: Any, suite: Suite | None, names: tuple[str, str], missing: Missing) -> int:
    """How many tasks can be compared; refuse a B that lacks answers, as they may be those that it failed on."""
    with without_notices():  # the comparison says the same
        jobs, unmatched = run_sync(lambda: paired(a, b, suite, names, strict=True))
    lacking = [one.task_id for one in unmatched if one.missing == "b"]
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
        cases = [case for case in every if case.failed is None or result.failures == "shown"]
        unanswered = [case for case in cases if not case.outcome.is_answer]
        why = f"; the first: {unanswered[0].reasoning[:160]}" if unanswered else ""
        failed_alike = not cases and any(case.failed != "b" for case in every)
        if failed_alike or not any(case.outcome.is_answer for case in every):
            stop = "; `max_cost=` was reached, raise it" if result.stopped == "max_cost" else ""
            return f"no case was answered ({key}){why}{stop}"
        if len(unanswered) > max(1, max_errors * len(cases)):
            return (
                f"the judge gave no answer to {len(unanswered):,} of {len(cases):,} cases ({key}), more than the "
                f"{100 * max_errors:g} % that `max_errors=` allows{why}; run it again to ask them again, or name "
                "another judge"
            )
    if fixed and result.unasked:
        return (
            f"{len(result.unasked):,} tasks were not asked ({result.stopped}), and a test of fixed size needs all; "
            "raise `max_cost=`, or leave out `fixed=`"
        )
    return None


def gate_criterion(run: PairwiseRunResult, key: str, rule: GateRule) -> GateCriterion:
    """The verdict of one criterion.

    The cases are looked at in the order in which they were to be asked, and the verdict is that of the first look at
    which it was decided; without such a look, that of the last one.

    Args:
        run: the result; by the confidence sequence if it was looked at after every case, else by one look.
        key: the criterion.
        rule: the margin, the level and what the gate fails on.
    """
    cases = list(run.of(key))
    shown, rate, ends, n, looked = _by_sequence(run, cases, rule) if run.sequential else _by_interval(run, key, rule)
    verdict = verdict_of_ways(shown, run.failures)
    extra = 0
    if run.sequential and is_decided(verdict, rule.fail_if):
        extra = len({case.task_id for case in cases}) - looked
    answered = [case for case in cases if case.outcome.is_answer]
    wins = sum(case.winner == "b" for case in answered)
    lost = [case.task_id for case in answered if case.winner == "a"]
    ties = len(answered) - wins - len(lost)
    tasks = len({case.task_id for case in answered})
    if run.stopped == "decided":
        tasks += len(run.unasked)  # they would have been asked, had they been needed
    plain = all(case.repeat == 1 and case.preference is None for case in cases)
    untested = too_few_tasks(tasks, rule, run.variant_b, fixed=not run.sequential and plain)
    if untested is not None:
        verdict = "untested"
    needed = None
    if verdict == "inconclusive" and answered:
        needed = cases_to_decide(rule.margin, level=rule.level, ties=ties / len(answered), fixed=not run.sequential)
    lower, upper = ends or (None, None)
    failed = run.failed_cases(key)
    found = GateCriterion(
        key,
        verdict,
        fails(verdict, rule.fail_if),
        rate,
        lower,
        upper,
        rule.level,
        n,
        extra,
        wins,
        len(lost),
        ties,
        sum(not case.outcome.is_answer and (case.failed is None or run.failures == "shown") for case in cases),
        failed["a"],
        failed["b"],
        {way: verdict_of_ways({way: one}, way) for way, one in shown.items()},
        needed,
        tuple(dict.fromkeys(lost))[:20],
        untested,
    )
    return replace(found, sentence=gate_sentence(found, run, rule), advice=gate_advice(found, run, rule))


_Figures: TypeAlias = tuple[Mapping[Failures, Shown], float | None, tuple[float, float] | None, int, int]
"""What is shown by the way to count failures; of the way that was asked for, rate, ends and tasks; tasks looked at."""


def _by_sequence(run: PairwiseRunResult, cases: list[PairwiseCase], rule: GateRule) -> _Figures:
    look = Look([case.task_id for case in cases], run.failures, rule)
    for place, case in enumerate(cases):
        before = look.looked
        look.take(place, case)
        if look.looked > before and rule.decided(look.sequences, run.failures):
            break
    shown = {way: one.shown for way, one in look.sequences.items()}
    asked: RunningVerdict = look.sequences[run.failures]
    if not asked.n:
        return shown, None, None, 0, look.looked
    return shown, asked.mean, asked.ci, asked.n, look.looked


def _by_interval(run: PairwiseRunResult, key: str, rule: GateRule) -> _Figures:
    scores = {
        way: by_task(used_cases(read_cases(run.frame(key, failures=way)), "half"))
        for way in ways_to_count(run.failures)
    }
    ends = {way: fixed_bounds(one, rule.margin, rule.level) if one.n else None for way, one in scores.items()}
    shown = {way: Shown() if one is None else shown_by(*one, rule.margin) for way, one in ends.items()}
    asked = scores[run.failures]
    return shown, asked.mean, ends[run.failures], asked.n, asked.tasks
