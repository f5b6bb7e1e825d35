"""``gate``: may B take the place of A? A verdict for continuous integration, with the option names of the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pairscale.core.errors import JudgeError, PairscaleError
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, checked, require_int
from pairscale.core.provenance import Provenance
from pairscale.evaluate.baseline import Baseline
from pairscale.evaluate.calibration import CardLike
from pairscale.evaluate.gate_files import append_step_summary, gate_junit, gate_markdown, write_text
from pairscale.evaluate.gate_inputs import read_given
from pairscale.evaluate.gate_options import GateOptions, Missing
from pairscale.evaluate.gate_result import GateResult, gate_criterion
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.inference.gate import FailIf
from pairscale.evaluate.verbs import AnswerColumns, compared, with_variants
from pairscale.judges.function import words_of
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT

if TYPE_CHECKING:
    import os

    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.evaluate.suite import SuiteLike
    from pairscale.evaluate.variants import VariantLike
    from pairscale.evaluate.verbs import Answers, JudgeLike
    from pairscale.providers.catalog import Price


__all__ = ["gate", "gated"]


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
    judge_card: CardLike | Sequence[CardLike] | None = None,
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
        judge_card: The judge card of :func:`check_judge`, one per criterion: ``margin`` then is what people may see,
            and the judge is held to a smaller one. A card of another judge or prompt is refused before anything is
            asked.
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
    if judge is None or (isinstance(judge, str) and judge == "lexical"):
        notice("the judge is lexical, a baseline that reads no criterion; name a better one with `judge=`")
    found = gated(
        a, b, judge=judge, variants=(variant_a, variant_b), prompts=(prompt_a, prompt_b),
        suite=suite, run=run, swap=swap, repeats=repeats, concurrency=concurrency,
        retries=retries, timeout=timeout, variant_timeout=variant_timeout, max_cost=max_cost, price=price, seed=seed,
        judge_args=judge_args, judge_card=judge_card, base_url=base_url, save=save, progress=progress,
        columns=AnswerColumns(id_col, input_col, output_col, a_col, b_col, encoding),
        options=GateOptions.of(
            criterion, fail_if=fail_if, margin=margin, level=level, fixed=fixed, failures=failures, missing=missing,
            max_errors=max_errors, baseline=baseline, update_baseline=update_baseline, summary=summary,
            step_summary=step_summary, junit=junit, names=(name_a, name_b), judge=judge, judge_card=judge_card,
        ),
    )  # fmt: skip
    if found.problem is not None:
        error = JudgeError(found.problem)
        error.result = found
        raise error
    return found


def gated(
    a: Any,
    b: Any,
    *,
    options: GateOptions,
    judge: Any,
    variants: tuple[Any, Any],
    prompts: tuple[str | None, str | None],
    suite: Any,
    columns: AnswerColumns,
    repeats: int,
    tell: Callable[[Sequence[str]], object] = lambda _lines: None,
    paid: Callable[[Sequence[object]], object] = lambda _judges: None,
    **others: Any,
) -> GateResult:
    """What :func:`gate` does before it raises for a gate that could not run.

    Args:
        a: Answers of A, of B, or a suite.
        b: Answers of B.
        options: Those of the gate.
        judge: The judges.
        variants: The variants that answer a suite.
        prompts: Their prompts.
        suite: The tasks of the answers.
        columns: The columns of the files.
        repeats: Answers per task.
        tell: Is told what was read, in lines, before a judge is asked.
        paid: Is told the judges and variants that may have a price.
        others: Further options of :func:`pairscale.ab`.

    Raises:
        InputError: If anything does not fit.
    """
    names, lines = options.names, list[str]()
    repeats = require_int(repeats, "repeats", least=1)
    a, b, suite, variants = with_variants(a, b, suite, variants)
    try:
        given = read_given(a, b, options, variants, prompts, names, suite, columns, lines.append)
        if given.b is None and options.update_baseline:
            tell(lines)
            return _finish(None, None, options, given.baseline)
        result = compared(
            given.a, given.b, judge=judge, labels=None, key=None, variants=given.variants, prompts=prompts, names=names,
            suite=given.suite, manifest=None, repeats=repeats, columns=AnswerColumns(), failures=options.failures,
            criterion=options.criteria, stop_when=None if options.fixed else options.rule,
            tell=lambda more: tell([*lines, *more]), **others,
        )  # fmt: skip
    except BaseException as error:  # so that no report of an earlier run stays in its place, on Ctrl-C neither
        _finish(None, str(error) if isinstance(error, PairscaleError) else words_of(error), options, None)
        raise
    paid(result.paid)
    return _finish(result.result, _problem(result.result, options), options, given.baseline)


def _problem(result: PairwiseRunResult, options: GateOptions) -> str | None:
    """Why these cases are no basis for a verdict; None when they are."""
    for key in result.keys:
        cases = [case for case in result.of(key) if case.failed is None or result.failures == "shown"]
        if not cases and any(case.failed != "b" for case in result.of(key)):
            return "no case was judged, as a variant failed in each of them; have the tasks answered again"
        unanswered = [case for case in cases if not case.outcome.is_answer]
        about = f" ({key})" if len(result.keys) > 1 else ""
        if not any(case.outcome.is_answer for case in result.of(key)):
            why = f"; the first: {unanswered[0].reasoning[:160]}" if unanswered else ""
            stop = "; `max_cost=` was reached, raise it" if result.stopped == "max_cost" else ""
            return f"no case was answered{about}{why}{stop}"
        if len(unanswered) > max(1, options.max_errors * len(cases)):
            return (
                f"the judge gave no answer to {len(unanswered):,} of {len(cases):,} cases{about}, more than the "
                f"{100 * options.max_errors:g} % that `max_errors=` allows; the first: "
                f"{unanswered[0].reasoning[:160]}; "
                "run it again to ask them again, or name another judge"
            )
    if options.fixed and result.unasked:
        return (
            f"{len(result.unasked):,} tasks were not asked ({result.stopped}), and a test of fixed size needs all; "
            "raise `max_cost=`, or leave out `fixed=`"
        )
    return None


def _finish(
    result: PairwiseRunResult | None, problem: str | None, options: GateOptions, baseline: Baseline | None
) -> GateResult:
    criteria = () if result is None else tuple(gate_criterion(result, key, options.rule) for key in result.keys)
    settings = {
        name: getattr(options, name) for name in ("fail_if", "margin", "level", "fixed", "missing", "max_errors")
    }
    inputs = {} if baseline is None else {"baseline": baseline.digest}
    seed = None if result is None else result.provenance.seed
    found = GateResult(
        criteria,
        options.fail_if,
        options.margin,
        options.level,
        options.fixed,
        result,
        problem,
        None if baseline is None else str(baseline),
        Provenance("gate", settings, seed, inputs),
    )
    if options.summary is not None:
        write_text(gate_markdown(found), options.summary)
    if options.step_summary:
        append_step_summary(gate_markdown(found))
    if options.junit is not None:
        write_text(gate_junit(found), options.junit)
    return found
