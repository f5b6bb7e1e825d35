"""``gate``: may B take the place of A? A verdict for continuous integration, with the option names of the command."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from pairscale.checks.card import JudgeCard, JudgeIdentity, read_judge_card
from pairscale.core.display import ReprMixin
from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError, InputError, JudgeError, PairscaleError
from pairscale.core.files import replacing
from pairscale.core.notices import mention, notice, plural, without_notices
from pairscale.core.options import (
    ProgressMode,
    checked,
    require_choice,
    require_path,
    require_probability,
    require_text,
)
from pairscale.core.provenance import Provenance, fingerprint
from pairscale.core.tables import Table, listed
from pairscale.evaluate.ab import ab, is_variant, read_sides, read_source, read_suite
from pairscale.evaluate.formats.reading import named_columns
from pairscale.evaluate.inference.cases import Scores, by_task, read_cases, used_cases
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
from pairscale.evaluate.judge import make_task_judge, model_settings
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult, flips_of, write_document
from pairscale.evaluate.run import Look, answer_source, paired, require_two_names
from pairscale.evaluate.tasks import InMemoryTraceSource, Suite, Trace, TraceRef, TraceSource, name_of_input
from pairscale.evaluate.wording import (
    cannot_tell,
    gate_advice,
    gate_junit,
    gate_line,
    gate_markdown,
    gate_sentence,
    percent,
    too_few_tasks,
)
from pairscale.judges.function import words_of
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT, run_sync

if TYPE_CHECKING:
    from pairscale.evaluate.ab import Answers, JudgeLike
    from pairscale.evaluate.tasks import SuiteLike
    from pairscale.evaluate.variants import VariantLike
    from pairscale.providers.catalog import Price

Missing: TypeAlias = Literal["refuse", "excluded"]
"""What to do if B has no answer to a task of A."""

_BASELINE = {"kind": "pairscale baseline", "version": 1}
_HEX = 64
_SURELY_TOLD = 0.5  # of the tasks in which one answer is better: those told right, less those told wrong
_LOST = 20  # tasks that B lost and that a result names
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
        wins: cases that B won, of all that were asked.
        losses: cases that A won.
        ties: cases without a winner, flips among them.
        unanswered: cases that the judge gave no answer to.
        failures_a: cases in which A failed.
        failures_b: cases in which B failed.
        by_failures: by the way to count failures, the verdict if that were the only way.
        cases_needed: about how many cases would decide it, where it is open.
        lost: tasks that B lost, the first of them.
        untested: why nothing was tested by this criterion, in words: the gate could not have failed, or the judge has
            not shown that it can tell; None otherwise.
        can_tell: whether the judge has shown that it can tell A from B; None where the verdict does not rest on it.
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
        rows = [{**asdict(one), "criterion": one.key} for one in self.criteria]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the cases, as JSON has it."""
        run = self.result
        own = "verdict passed exit_code problem fail_if margin level fixed baseline"
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
    planted: str | os.PathLike[str] | Table | None = None,
    card: JudgeCard | str | os.PathLike[str] | None = None,
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
    not have failed (there are too few tasks to show that B is worse, even if it loses all of them) or the judge has not
    shown that it can tell. Tasks are asked in a random order, and no more than the decision needs: the bounds behind
    the verdict hold however often you look. If A and B are equal, the gate says ``worse`` with a chance of at most 5 %;
    if B is worse by the whole margin, it says ``not-worse`` with a chance of at most 5 %.

    A judge that cannot tell A from B makes them even. So every verdict but ``better`` and ``worse`` takes a judge that
    surely names the same winner in both orders in more than half of the tasks, or a ``card`` that shows how well it
    agrees with people, or ``planted`` answers that it surely finds to be worse.

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
        planted: Answers that are known to be worse than those of A, to some of its tasks, about 20 of them. They are
            compared with A's recorded answers first, and show whether the judge can tell.
        card: The judge card of this judge and criterion, from :func:`check_judge` with labels of people: another way to
            show that it can tell.
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
    require_two_names(name_a, name_b)
    options: dict[str, Any] = {"margin": margin, "level": level, "fixed": fixed, "missing": missing}
    options |= {"max_errors": max_errors}
    criteria, rule = _require_options(criterion, judge, fail_if, failures, **options)
    if update_baseline and baseline is None:
        raise InputError("`update_baseline=` needs a file for it: give `baseline=`", "update_baseline")
    reports = {name: _require_file(path, name) for name, path in (("summary", summary), ("junit", junit)) if path}
    finish = partial(_finished, rule=rule, options=options, seed=seed, reports=reports)
    asking: dict[str, Any] = {
        "criterion": criteria, "judge": judge, "run": run, "swap": swap, "concurrency": concurrency, "retries": retries,
        "timeout": timeout, "price": price, "failures": failures, "seed": seed, "judge_args": judge_args,
        "base_url": base_url, "progress": progress,
    }  # fmt: skip
    names = (name_a, name_b)
    variants = (variant_a, variant_b)
    if b is not None and suite is not None and (is_variant(a) or is_variant(b)):
        variants = (a, b)
        a, b, suite = suite, None, None
    recorded = None
    try:
        told = _told_by_card(card, asking)
        named = named_columns(id_col, input_col, output_col)
        runs_variants = any((*variants, prompt_a, prompt_b))
        if baseline is not None:
            if variants[0] is not None or prompt_a is not None:
                raise InputError("`baseline=` holds the answers of A: leave out `variant_a=` and `prompt_a=`")
            a, b, recorded = _with_baseline(
                a, b, baseline, names, named, encoding, runs_variants=runs_variants, update=update_baseline
            )
            if update_baseline and b is None:
                return finish(None, recorded, None)
        if runs_variants:
            a = read_suite(a, named, encoding)
            variants = (recorded.source if recorded else variants[0], variants[1])
            tasks = len(a or ())
        else:
            sides, names = read_sides(a, b, names, named, a_col=a_col, b_col=b_col, encoding=encoding)
            if sides is None:
                raise InputError("name the answers of A and of B; with `baseline=`, those of B alone", "b")
            a, b = sides
            suite = read_suite(suite, named, encoding)
            tasks = _shared_tasks(a, b, suite, names, missing)
        _tell_size(tasks, rule, names[1], fixed=fixed)
        if planted is not None:
            answers = (variants[0] if runs_variants else a, read_source(planted, named, "planted", encoding))
            max_cost = _told_by_planted(answers, rule, max_cost, asking, told)
        rule = replace(rule, by_flips=not told.keys() >= set(criteria))
        result = ab(
            a, b, variant_a=variants[0], variant_b=variants[1], prompt_a=prompt_a, prompt_b=prompt_b, name_a=names[0],
            name_b=names[1], suite=suite, repeats=repeats, variant_timeout=variant_timeout, max_cost=max_cost,
            stop_when=None if fixed else rule, save=save, **asking,
        )  # fmt: skip
    except BaseException as error:  # so that no report of an earlier run stays in its place, on Ctrl-C neither
        finish(None, None, str(error) if isinstance(error, PairscaleError) else words_of(error))
        raise
    gated = finish(result, recorded, _problem(result, max_errors, fixed=fixed), told=told)
    if gated.problem is not None:
        raised = JudgeError(gated.problem)
        raised.result = gated
        raise raised
    return gated


def _finished(
    result: PairwiseRunResult | None,
    recorded: Baseline | None,
    problem: str | None,
    *,
    rule: GateRule,
    options: Mapping[str, Any],
    seed: int,
    reports: Mapping[str, Path],
    told: Mapping[str, bool] | None = None,
) -> GateResult:
    """The result of a gate, with its reports written."""
    verdicts = tuple(gate_criterion(result, key, rule, told) for key in result.keys) if result else ()
    digests = {"baseline": recorded.digest} if recorded else {}
    provenance = Provenance("gate", {"fail_if": rule.fail_if, **options}, seed, digests)
    figures = (options["margin"], options["level"], options["fixed"])
    described = None if recorded is None else str(recorded)
    gated = GateResult(verdicts, rule.fail_if, *figures, result, problem, described, provenance)
    for name, path in reports.items():
        with replacing(path) as temporary:
            temporary.write_text((gate_markdown if name == "summary" else gate_junit)(gated), "utf-8")
    return gated


def _told_by_card(card: JudgeCard | str | os.PathLike[str] | None, asking: Mapping[str, Any]) -> dict[str, bool]:
    """Whether a card shows that the judge can tell, by the criterion that the card is about."""
    if card is None:
        return {}
    read = card if isinstance(card, JudgeCard) else read_judge_card(card)
    judge = asking["judge"] or "lexical"
    if isinstance(judge, list | tuple):
        if len(judge) > 1:
            raise InputError("`card=` is of one judge, not of a panel; show by `planted=` that it can tell", "card")
        judge = judge[0]
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
    return {criterion: net.lower is not None and net.lower > _SURELY_TOLD}


def _told_by_planted(
    answers: tuple[Any, Any], rule: GateRule, max_cost: float | None, asking: Mapping[str, Any], told: dict[str, bool]
) -> float | None:
    """Note whether the judge finds planted answers to be worse than A's, by criterion; what may still be spent."""
    a, planted = answers
    if not isinstance(a, TraceSource):
        raise InputError("`planted=` needs recorded answers of A: two files, or `baseline=`", "planted")
    with without_notices():  # the comparison itself says the same
        result = ab(a, planted, name_a="A", name_b="planted", max_cost=max_cost, **asking)
    for key in result.keys:
        scores = by_task(used_cases(read_cases(result.frame(key)), "half"))
        most = fixed_bounds(scores, 0.0, rule.level)[1] if scores.n else 1.0
        told[key] = 1 - 2 * most > _SURELY_TOLD
        words = f"planted answers, {key}: they won {percent(scores.mean)} of {plural(scores.tasks, 'task')}"
        mention(f"{words} (surely at most {percent(most)}, where {percent((1 - _SURELY_TOLD) / 2)} are allowed)")
    if max_cost is not None and asking["run"] is None:  # a run file knows by itself what was spent
        max_cost = max(0.0, max_cost - result.cost)
    return max_cost


def _require_options(
    criterion: Any, judge: Any, fail_if: Any, failures: Any, *, margin: float, level: float, **options: Any
) -> tuple[list[str], GateRule]:
    """The criteria, and when the gate has seen enough of each of them; every option is checked."""
    criteria = [criterion] if isinstance(criterion, str) else list(criterion or [])
    named = fail_if if isinstance(fail_if, list | tuple) else [fail_if]
    parts = [part.strip() for words in named for part in str(words).split(",")]
    if not criteria:
        raise InputError('say what "better" means, as in `criterion="more helpful"`', "criterion")
    if not parts:
        raise InputError(f"`fail_if=` must name what the gate fails on: {', '.join(FAIL_IF)}", "fail_if")
    if "human" in (judge if isinstance(judge, list | tuple) else [judge]):
        words = "`judge=human` answers in ab, not in a gate, which runs without people; name another judge"
        raise InputError(words, "judge")
    require_margin(margin)
    two_sided(level)
    require_failures(failures)
    require_choice(options["missing"], "missing", ("refuse", "excluded"))
    require_probability(options["max_errors"], "max_errors")
    criteria = list(dict.fromkeys(require_text(name, "criterion") for name in criteria))
    fails_on = tuple(dict.fromkeys(require_choice(part, "fail_if", FAIL_IF) for part in parts))
    return criteria, GateRule(margin, 1 - (1 - level) / len(criteria), fails_on)


def _require_file(path: object, name: str) -> Path:
    """A file that can be written, refused before any work is done rather than after it."""
    target = require_path(path, name)
    if target.is_dir():
        raise InputError(f"{name} must be a file, not the folder {target}", name)
    folder = target.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"{name} must be a file in a folder that exists and can be written to, not {target}", name)
    return target


def _with_baseline(
    a: Any,
    b: Any,
    path: str | os.PathLike[str],
    names: tuple[str, str],
    named: Mapping[str, str],
    encoding: str | None,
    *,
    runs_variants: bool,
    update: bool,
) -> tuple[Any, Any, Baseline]:
    """The answers of A and B where a baseline holds those of A, or is to hold them from now on."""
    if update:
        origin = Path(a).name if isinstance(a, str | os.PathLike) else type(a).__name__
        source = answer_source(read_source(a, named, names[0], encoding), names[0])
        recorded = record_baseline(source, path, source_name=origin, name=names[0])
        mention(f"recorded as baseline in {path}: {recorded}")
        return a if runs_variants else recorded.source, b, recorded
    if b is not None:
        raise InputError("`baseline=` holds the answers of A: leave out A, or give `update_baseline=True` to record it")
    recorded = read_baseline(path)
    mention(f"baseline {path}: {recorded}")
    if runs_variants:
        return a, None, recorded
    return recorded.source, read_source(a, named, names[1], encoding), recorded


def _shared_tasks(a: Any, b: Any, suite: Suite | None, names: tuple[str, str], missing: Missing) -> int:
    """How many tasks can be compared; refuse a B that lacks answers, as they may be those that it failed on."""
    with without_notices():  # the comparison says the same
        jobs, unmatched = run_sync(lambda: paired(a, b, suite, names, strict=True))
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
    run: PairwiseRunResult, key: str, rule: GateRule, told: Mapping[str, bool] | None = None
) -> GateCriterion:
    """The verdict of one criterion.

    The cases are looked at in the order in which they were to be asked, and the verdict is that of the first look at
    which it was decided; without such a look, that of the last one.

    Args:
        run: the result; by the confidence sequence if it was looked at after every case, else by one look.
        key: the criterion.
        rule: the margin, the level and what the gate fails on.
        told: by criterion, whether a card or planted answers have shown that the judge can tell.
    """
    cases = list(run.of(key))
    shown, rate, ends, n = _by_sequence(run, cases, rule) if run.sequential else _by_interval(run, key, rule)
    answered = [case for case in cases if case.outcome.is_answer]
    lost = [case.task_id for case in answered if case.winner == "a"]
    wins = sum(case.winner == "b" for case in answered)
    ties = len(answered) - wins - len(lost)
    tasks = len({case.task_id for case in answered})
    if run.stopped == "decided":
        tasks += len(run.unasked)  # they would have been asked, had they been needed
    plain = all(case.repeat == 1 and case.preference is None for case in cases)
    untested = too_few_tasks(tasks, rule, run.variant_b, fixed=plain and not run.sequential)
    verdict = verdict_of_ways(shown, run.failures)
    can_tell = None
    if untested is None and verdict not in {"better", "worse"}:
        can_tell = told[key] if told and key in told else _is_consistent(cases, rule.level)
        if not can_tell:
            untested = cannot_tell(None if told and key in told else flips_of(cases))
    if untested is not None:
        verdict = "untested"
    needed = None
    if verdict == "inconclusive" and answered:
        needed = cases_to_decide(rule.margin, level=rule.level, ties=ties / len(answered), fixed=not run.sequential)
    failed = run.failed_cases(key)
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
        losses=len(lost),
        ties=ties,
        unanswered=sum(not case.outcome.is_answer for case in run.asked_cases(key)),
        failures_a=failed["a"],
        failures_b=failed["b"],
        by_failures={way: verdict_of_ways({way: one}, way) for way, one in shown.items()},
        cases_needed=needed,
        lost=tuple(dict.fromkeys(lost))[:_LOST],
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


_Figures: TypeAlias = tuple[dict[Failures, Shown], float | None, tuple[float | None, float | None], int]
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
    shown = {}
    figures: tuple[float | None, tuple[float | None, float | None], int] = (None, (None, None), 0)
    for way in ways_to_count(run.failures):
        scores = by_task(used_cases(read_cases(run.frame(key, failures=way)), "half"))
        shown[way] = Shown()
        if scores.n:
            ends = fixed_bounds(scores, rule.margin, rule.level)
            shown[way] = shown_by(*ends, rule.margin)
            if way == run.failures:
                figures = (scores.mean, ends, scores.n)
    return shown, *figures


# The baseline


@dataclass(frozen=True, slots=True)
class Baseline:
    """Recorded answers of A.

    Attributes:
        answers: by task, in their order; a task may have several.
        provenance: when, by which version and from which file they were recorded.
        digest: SHA-256 over the answers.
    """

    answers: tuple[tuple[str, Trace], ...]
    provenance: Mapping[str, Any]
    digest: str

    @property
    def source(self) -> InMemoryTraceSource:
        """The answers as a source."""
        return InMemoryTraceSource(self.answers)

    def __str__(self) -> str:
        settings = self.provenance.get("settings") or {}
        day = str(self.provenance.get("created_at"))[:10]
        return f"{len(self.answers):,} answers of {settings.get('name')}, recorded {day} from {settings.get('source')}"


def record_baseline(source: TraceSource, path: str | os.PathLike[str], *, source_name: object, name: str) -> Baseline:
    """Record the answers of A in a JSON file, in place of what it held.

    Args:
        source: the answers.
        path: the file.
        source_name: where they came from, in a word.
        name: what A is called.

    Raises:
        FileFormatError: the file cannot be written.
        InputError: an answer has neither a name nor a text of its task.
    """

    async def load() -> list[tuple[str, Trace]]:
        return [(_task_name(ref), await source.load(ref)) async for ref in source.list()]

    answers = run_sync(load)
    rows = json.loads(json.dumps([{"task_id": task, **trace.to_dict()} for task, trace in answers], default=str))
    digest = fingerprint(rows, _HEX)
    provenance = asdict(Provenance("gate", {"name": name, "source": str(source_name)}, inputs={"answers": digest}))
    write_document({**_BASELINE, "provenance": provenance, "sha256": digest, "answers": rows}, Path(path))
    return Baseline(tuple(answers), provenance, digest)


def _task_name(ref: TraceRef) -> str:
    if ref.task_id is not None:
        return ref.task_id
    asked = ref.metadata.get("input")
    if not isinstance(asked, str) or not asked.strip():
        raise InputError(f"trace {ref.trace_id} has no task_id and no input, by which answers are paired")
    return name_of_input(asked)


def read_baseline(path: str | os.PathLike[str]) -> Baseline:
    """Read a baseline, and check that nothing in it was changed.

    Raises:
        FileFormatError: there is none, it is no baseline, or its answers are not those that were recorded.
    """
    again = "record it with `update_baseline=True`"
    if not Path(path).exists():
        raise FileFormatError(f"there is no baseline {path}; {again}")
    try:
        document = json.loads(read_bytes(path))
        if {name: document[name] for name in _BASELINE} != _BASELINE:
            raise ValueError(document["kind"])
        rows = [dict(row) for row in document["answers"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{path} is not a baseline of a gate ({error}); name another file, or {again}") from None
    digest = fingerprint(rows, _HEX)
    if digest != document.get("sha256"):
        raise FileFormatError(
            f"{path} was changed after it was recorded: its SHA-256 does not fit its answers; {again}"
        )
    answers = [(str(row.pop("task_id")), Trace.from_dict(row, str(path))) for row in rows]
    return Baseline(tuple(answers), document.get("provenance") or {}, digest)
