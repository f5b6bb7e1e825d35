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
from pairscale.core.notices import mention, notice, plural
from pairscale.core.options import (
    ProgressMode,
    checked,
    require_choice,
    require_flag,
    require_probability,
    require_text,
)
from pairscale.core.provenance import Provenance
from pairscale.core.tables import listed
from pairscale.evaluate.ab import ab, is_variant, read_sides
from pairscale.evaluate.formats.reading import Columns, unfinished_of
from pairscale.evaluate.gate_files import (
    Baseline,
    load_answers,
    read_baseline,
    require_file,
    require_same_answers,
    require_same_inputs,
    step_summary_file,
    write_baseline,
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
from pairscale.evaluate.matching import matched
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult
from pairscale.evaluate.run import Look, answer_source, require_two_names
from pairscale.evaluate.suite import Suite
from pairscale.evaluate.traces import InMemoryTraceSource, Trace, TraceRef
from pairscale.evaluate.wording import gate_advice, gate_line, gate_sentence, too_few_tasks
from pairscale.judges.function import words_of
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT, run_sync

if TYPE_CHECKING:
    from pairscale.evaluate.ab import Answers, JudgeLike
    from pairscale.evaluate.suite import SuiteLike
    from pairscale.evaluate.variants import VariantLike
    from pairscale.providers.catalog import Price

__all__ = ["GateCriterion", "GateResult", "gate", "gate_criterion", "require_gate_options"]

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
        rows = [
            {"criterion": one.key} | {name: getattr(one, name) for name in list(_COLUMNS)[1:]} for one in self.criteria
        ]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the cases, as JSON has it."""
        run = self.result
        counts = None
        if run is not None:
            counts = {name: getattr(run, name) for name in ("asked", "answered", "cost", "stopped")}
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "exit_code": self.exit_code,
            "problem": self.problem,
            "fail_if": list(self.fail_if),
            "margin": self.margin,
            "level": self.level,
            "fixed": self.fixed,
            "failures": None if run is None else run.failures,
            "variant_a": None if run is None else run.variant_a,
            "variant_b": None if run is None else run.variant_b,
            "criteria": [asdict(one) for one in self.criteria],
            "run": counts,
            "unmatched": [] if run is None else [asdict(one) for one in run.unmatched],
            "unasked": [] if run is None else list(run.unasked),
            "baseline": self.baseline,
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
    step_summary: bool = False,
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
        step_summary: Whether to add the summary to the page of a GitHub workflow.
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
    names = (name_a, name_b)
    options: dict[str, Any] = {"margin": margin, "level": level, "fixed": fixed, "missing": missing}
    options |= {"max_errors": max_errors}
    criteria, fails_on = require_gate_options(
        criterion, fail_if, judge=judge, names=names, baseline=baseline, update_baseline=update_baseline,
        summary=summary, step_summary=step_summary, junit=junit, failures=failures, **options,
    )  # fmt: skip
    rule = GateRule(margin, 1 - (1 - level) / len(criteria), fails_on)

    def finish(result: PairwiseRunResult | None, known: Baseline | None, problem: str | None) -> GateResult:
        verdicts = () if result is None else tuple(gate_criterion(result, one, rule) for one in result.keys)
        digests = {} if known is None else {"baseline": known.digest}
        provenance = Provenance("gate", {"fail_if": fails_on, **options}, seed, digests)
        told = None if known is None else str(known)
        found = GateResult(verdicts, fails_on, margin, level, fixed, result, problem, told, provenance)
        write_reports(found, summary=summary, step_summary=step_summary, junit=junit)
        return found

    variants = (variant_a, variant_b)
    if b is not None and suite is not None and (is_variant(a) or is_variant(b)):
        variants = (a, b)
        a, b, suite = suite, None, None
    try:
        reading: dict[str, Any] = {"a_col": a_col, "b_col": b_col, "encoding": encoding}
        columns = Columns(id_col, input_col, output_col)
        if any((*variants, prompt_a, prompt_b)):
            a, b, suite, _ = read_sides(a, b, suite, names, columns, **reading, is_suite=True)
            variants, known = _suite_variants(variants, prompt_a, baseline, update=update_baseline)
            tasks = len(a) if b is None else None
        else:
            a, b, suite, known, tasks = _recorded_sides(
                a, b, suite, names, columns, baseline, missing, update=update_baseline, **reading
            )
            if b is None:
                return finish(None, known, None)
        if tasks is not None:
            _tell_size(tasks, rule, names, fixed=fixed)
        result = ab(
            a, b, criterion=criteria, judge=judge, variant_a=variants[0], variant_b=variants[1], prompt_a=prompt_a,
            prompt_b=prompt_b, name_a=name_a, name_b=name_b, suite=suite, run=run, swap=swap, repeats=repeats,
            concurrency=concurrency, retries=retries, timeout=timeout, variant_timeout=variant_timeout,
            max_cost=max_cost, price=price, failures=failures, stop_when=None if fixed else rule, seed=seed,
            judge_args=judge_args, base_url=base_url, save=save, progress=progress,
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
    *,
    judge: Any,
    names: tuple[str, str],
    baseline: Any,
    update_baseline: Any,
    summary: Any,
    step_summary: Any,
    junit: Any,
    failures: Any,
    margin: Any,
    level: Any,
    fixed: Any,
    missing: Any,
    max_errors: Any,
) -> tuple[tuple[str, ...], tuple[FailIf, ...]]:
    """Check the options of a gate before anything is read.

    Returns:
        The criteria, and what the gate fails on.

    Raises:
        InputError: one of them is wrong.
    """
    criteria = [criterion] if isinstance(criterion, str) else list(criterion or [])
    if not criteria:
        raise InputError('say what "better" means, as in `criterion="more helpful"`', "criterion")
    named = [fail_if] if isinstance(fail_if, str) else list(fail_if)
    parts = [part.strip() for one in named for part in (one.split(",") if isinstance(one, str) else [one])]
    if not parts:
        raise InputError(f"`fail_if=` must name what the gate fails on: {', '.join(FAIL_IF)}", "fail_if")
    judges = judge if isinstance(judge, list | tuple) else [judge]
    if any(isinstance(one, str) and one == "human" for one in judges):
        words = "`judge=human` answers in ab, not in a gate, which runs without people; name another judge"
        raise InputError(words, "judge")
    if require_flag(update_baseline, "update_baseline") and baseline is None:
        raise InputError("`update_baseline=` needs a file for it: give `baseline=`", "update_baseline")
    for name, path in {"summary": summary, "junit": junit}.items():
        if path is not None:
            require_file(path, name)
    if require_flag(step_summary, "step_summary"):
        step_summary_file()
    require_margin(margin)
    two_sided(level)
    require_flag(fixed, "fixed")
    require_failures(failures)
    require_choice(missing, "missing", ("refuse", "excluded"))
    require_probability(max_errors, "max_errors")
    require_two_names(*names)
    return (
        tuple(dict.fromkeys(require_text(one, "criterion") for one in criteria)),
        tuple(dict.fromkeys(require_choice(one, "fail_if", FAIL_IF) for one in parts)),
    )


# What is compared


def _suite_variants(
    variants: tuple[Any, Any], prompt_a: str | None, path: str | os.PathLike[str] | None, *, update: bool
) -> tuple[tuple[Any, Any], Baseline | None]:
    """The variants that answer a suite, where a baseline may hold the answers of A."""
    if path is None:
        return variants, None
    if update or variants[0] is not None or prompt_a is not None:
        raise InputError(
            "with variants, `baseline=` holds the answers of A: leave out `variant_a=`, `prompt_a=` and "
            "`update_baseline=`"
        )
    known = read_baseline(path)
    mention(f"baseline {path}: {known}")
    return (known.source, variants[1]), known


def _recorded_sides(
    a: Any,
    b: Any,
    suite: Any,
    names: tuple[str, str],
    columns: Columns,
    path: str | os.PathLike[str] | None,
    missing: Missing,
    *,
    update: bool,
    **reading: Any,
) -> tuple[Any, Any, Suite | None, Baseline | None, int | None]:
    """Recorded answers of A and B and their tasks, the baseline where there is one, and how many tasks they share."""
    has_both = b is not None or reading["a_col"] is not None
    origin = Path(a).name if isinstance(a, str | os.PathLike) else type(a).__name__
    if not has_both and path is None:
        raise InputError("name the answers of A and of B; with `baseline=`, those of B alone", "b")
    known: Baseline | None = None
    if not has_both:  # one file: A's if it is to be recorded, else B's
        only, _, tasks, _ = read_sides(a, {}, suite, (names[0] if update else names[1], ""), columns, **reading)
        a, b = (only, None) if update else (None, only)
    else:
        a, b, tasks, names = read_sides(a, b, suite, names, columns, **reading)
    _require_finished((a, b), missing)
    answers_a = [] if a is None else run_sync(lambda: load_answers(answer_source(a, names[0])))
    if path is not None and update:
        known = write_baseline(answers_a, path, source=origin, name=names[0])
        mention(f"recorded as baseline in {path}: {known}")
        if b is None:
            return a, None, None, known, 0
    elif path is not None:
        known = read_baseline(path)
        mention(f"baseline {path}: {known}")
        if a is not None:
            require_same_answers(known, answers_a, path)
        answers_a = list(known.answers)
        a = known.source
    answers_b = run_sync(lambda: load_answers(answer_source(b, names[1])))
    if tasks is None:
        require_same_inputs(answers_a, answers_b)
    return a, b, tasks, known, _shared_tasks(answers_a, answers_b, missing, names, tasks)


def _require_finished(sources: Sequence[Any], missing: Missing) -> None:
    """Refuse logs that ended too early, as the tasks that they lack may be those that a variant failed on."""
    logs = [log.words for source in sources for log in unfinished_of(source)]
    if logs and missing != "excluded":
        raise InputError(
            f"{' and '.join(logs)}; finish the run, or give `missing=excluded` to compare only the tasks that it "
            "reached"
        )


def _shared_tasks(
    a: list[tuple[str, Trace]],
    b: list[tuple[str, Trace]],
    missing: Missing,
    names: tuple[str, str],
    tasks: Suite | None,
) -> int:
    """How many tasks can be compared; refuse a B that lacks answers, as they may be those that it failed on."""

    async def refs_of(answers: list[tuple[str, Trace]]) -> list[TraceRef]:
        return [ref async for ref in InMemoryTraceSource(answers).list()]

    refs_a = run_sync(lambda: refs_of(a))
    refs_b = run_sync(lambda: refs_of(b))
    matches, _ = matched(refs_a, refs_b, tasks or (), names, tell=lambda _words: None)
    wanted = [match for match in matches if match.a]
    lacking = [match.name for match in wanted if not match.b]
    if lacking and missing != "excluded":
        raise InputError(
            f"{names[1]} has no answer to {len(lacking):,} of the {len(wanted):,} tasks of {names[0]}: "
            f"{listed(lacking, 5)}; if it failed on them, add them with an empty output, so that they count as "
            "failures; if they are no longer asked, give `missing=excluded`"
        )
    return len(wanted) - len(lacking)


def _tell_size(tasks: int, rule: GateRule, names: tuple[str, str], *, fixed: bool) -> None:
    """Say before a judge is asked when there are too few tasks for the gate to fail, or for the margin."""
    untested = too_few_tasks(tasks, rule, names[1], fixed=fixed)
    if untested is not None:
        notice(f"{untested}; the verdict will be untested")
        return
    needed = cases_to_decide(rule.margin, level=rule.level, fixed=fixed)
    if needed is not None and tasks < needed:
        mention(
            f"note: {plural(tasks, 'task')} can show that {names[1]} is worse, but hardly that it is not, with a "
            f"margin of {100 * rule.margin:g} %: that takes about {needed:,} tasks without ties, fewer with ties"
        )


# The verdict


def _problem(result: PairwiseRunResult, max_errors: float, *, fixed: bool) -> str | None:
    """Why these cases are no basis for a verdict; None when they are."""
    for key in result.keys:
        every = list(result.of(key))
        cases = [case for case in every if case.failed is None or result.failures == "shown"]
        if not cases and any(case.failed != "b" for case in every):
            return "no case was judged, as a variant failed in each of them; have the tasks answered again"
        unanswered = [case for case in cases if not case.outcome.is_answer]
        about = f" ({key})" if len(result.keys) > 1 else ""
        why = f"; the first: {unanswered[0].reasoning[:160]}" if unanswered else ""
        if not any(case.outcome.is_answer for case in every):
            stop = "; `max_cost=` was reached, raise it" if result.stopped == "max_cost" else ""
            return f"no case was answered{about}{why}{stop}"
        if len(unanswered) > max(1, max_errors * len(cases)):
            return (
                f"the judge gave no answer to {len(unanswered):,} of {len(cases):,} cases{about}, more than the "
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
    untested = _untested(run, cases, rule)
    if untested is not None:
        verdict = "untested"
    needed = None
    if verdict == "inconclusive" and answered:
        needed = cases_to_decide(rule.margin, level=rule.level, ties=ties / len(answered), fixed=not run.sequential)
    asked = [case for case in cases if case.failed is None or run.failures == "shown"]
    found = GateCriterion(
        key,
        verdict,
        fails(verdict, rule.fail_if),
        rate,
        None if ends is None else ends[0],
        None if ends is None else ends[1],
        rule.level,
        n,
        extra,
        wins,
        len(lost),
        ties,
        sum(not case.outcome.is_answer for case in asked),
        sum(case.failed in {"a", "both"} for case in cases),
        sum(case.failed in {"b", "both"} for case in cases),
        {way: verdict_of_ways({way: one}, way) for way, one in shown.items()},
        needed,
        tuple(dict.fromkeys(lost))[:20],
        untested,
    )
    return replace(found, sentence=gate_sentence(found, run, rule), advice=gate_advice(found, run, rule))


def _untested(run: PairwiseRunResult, cases: list[PairwiseCase], rule: GateRule) -> str | None:
    """Why the gate could not have failed by a criterion; None when it could."""
    tasks = len({case.task_id for case in cases if case.outcome.is_answer})
    if run.stopped == "decided":
        tasks += len(run.unasked)  # they would have been asked, had they been needed
    plain = all(case.repeat == 1 and case.preference is None for case in cases)
    return too_few_tasks(tasks, rule, run.variant_b, fixed=not run.sequential and plain)


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
