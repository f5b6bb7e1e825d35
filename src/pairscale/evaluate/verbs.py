"""``ab``: is B better than A? With the option names and defaults of the command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.encodings import read_text
from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, checked, require_int
from pairscale.evaluate.calibration import CardLike, cards_by_criterion
from pairscale.evaluate.formats.reading import (
    AnswerFile,
    Columns,
    RecordedAnswers,
    is_table,
    name_of,
    of_variant,
    read_answers,
    read_both_outputs,
    read_tasks,
    source_at,
)
from pairscale.evaluate.human import human_labels, human_pairwise
from pairscale.evaluate.inference.control import control_names
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.judge import pairwise_judge
from pairscale.evaluate.manifest import ExportedCases, export_pairwise_cases, require_manifest
from pairscale.evaluate.panel import pairwise_panel
from pairscale.evaluate.run import Settings, StopWhen, compare_answers, compare_variants
from pairscale.evaluate.stored import RunTraceSource, read_suite
from pairscale.evaluate.suite import Suite, SuiteLike, as_suite
from pairscale.evaluate.traces import InMemoryTraceSource, Trace, TraceSource
from pairscale.evaluate.variants import ModelVariant, VariantLike
from pairscale.judges.base import Judge
from pairscale.providers.catalog import PROVIDERS
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT, RunOptions, run_sync

if TYPE_CHECKING:
    from pairscale.core.tables import Table
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.providers.catalog import Price

__all__ = ["AnswerColumns", "Answers", "Comparison", "JudgeLike", "ab", "compared", "read_sides", "with_variants"]

JudgeLike: TypeAlias = "str | Judge | Callable[..., Any]"
Answers: TypeAlias = (
    "str | os.PathLike[str] | Table | TraceSource | Mapping[str, str | Trace] | Callable[..., Any] | ModelVariant"
)


_SHARED = ("failures", "stop_when", "variant_timeout", "seed", "progress")


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The columns of files of answers and tasks that the user named; see :func:`ab`."""

    id_col: str | None = None
    input_col: str | None = None
    output_col: str | None = None
    a_col: str | None = None
    b_col: str | None = None
    encoding: str | None = None

    @property
    def of_answers(self) -> Columns:
        """Those of a file with the answers of one variant."""
        return Columns(self.id_col, self.input_col, self.output_col)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A result of :func:`ab`, before the manifest is written.

    Attributes:
        result: the result.
        paid: the judges and variants that may have a price.
        write_manifest: writes the cases, blinded, where a file for them was given.
    """

    result: PairwiseRunResult
    paid: Sequence[object]
    write_manifest: Callable[[], ExportedCases | None]


@checked
def ab(
    a: Answers | SuiteLike,
    b: Answers | None = None,
    *,
    criterion: str | Sequence[str],
    judge: JudgeLike | Sequence[JudgeLike] | None = None,
    labels: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    variant_a: VariantLike | None = None,
    variant_b: VariantLike | None = None,
    prompt_a: str | None = None,
    prompt_b: str | None = None,
    name_a: str = "A",
    name_b: str = "B",
    suite: SuiteLike | None = None,
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
    stop_when: StopWhen | None = None,
    seed: int = 1,
    control: str | Sequence[str] = (),
    judge_args: Mapping[str, Any] | None = None,
    judge_card: CardLike | Sequence[CardLike] | None = None,
    base_url: str | None = None,
    manifest: str | os.PathLike[str] | None = None,
    save: str | os.PathLike[str] | None = None,
    id_col: str | None = None,
    input_col: str | None = None,
    output_col: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    encoding: str | None = None,
    progress: ProgressMode = True,
) -> PairwiseRunResult:
    """Is B better than A? Compare two prompts, models or agents task by task.

    Recorded answers are compared task by task; with a suite, both variants answer it first. Judges are asked in both
    orders. A win, a tie, a flip (another winner in the other order), an abstention and an error stay five different
    outcomes, and the last two never count as ties. A variant that fails on a task has lost it, unless ``failures`` says
    otherwise. Run the same call again to resume a run.

    Args:
        a: The recorded answers of A: a file of your own or of another tool (see :func:`read_outputs`), a table (a list
            of dicts, pandas, Polars, Arrow), a folder of traces, a :class:`TraceSource` or a mapping from task to
            answer; a function, with ``suite``; or, without ``b``, the suite that both variants answer, or one file with
            the answers of both.
        b: The same for B.
        criterion: What "better" means; one criterion or several.
        judge: A name, a function ``judge(A, B)``, a :class:`Judge` or ``human``; several are a panel that decides by
            majority. By default ``lexical``, a baseline, unless ``labels`` are given.
        labels: A file with what people said: ``case_id`` and ``preferred`` per row.
        key: The key of the labelled manifest, unless it lies beside the labels.
        variant_a: With a suite: a function of a task, ``provider:model``, ``module:function`` or recorded answers.
        variant_b: The same for B.
        prompt_a: Prompt of a model that is A: a text or a ``.txt`` file, with ``{input}``.
        prompt_b: The same for B.
        name_a: What A is called; in a file with the answers of several, whose answers are A's.
        name_b: What B is called, likewise.
        suite: With ``a`` and ``b``: the tasks that the answers belong to.
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
        stop_when: ``decided`` stops as soon as one is shown to be better, however often you look.
        seed: Seed of the order of tasks with ``stop_when``.
        control: Styles to control for: ``length``, ``markdown`` (or ``headers``, ``lists``, ``bold``), or a numeric
            column of the answers; see :meth:`PairwiseRunResult.controlled`.
        judge_args: Settings of the judge.
        judge_card: The judge card of :func:`check_judge`, or one per criterion: win rates are also given as people
            would see them. A card of another judge, criterion or prompt is refused before anything is asked.
        base_url: Address of the provider of the judge.
        manifest: A ``.jsonl`` file to write the cases to as well, blinded, for labellers.
        save: A folder to write the result to as well, as ``RUN_ID.json``.
        id_col: The column of the tasks' names, or its path in JSON, where it is not ``task_id``.
        input_col: The column of the tasks, or its path in JSON, where it is not ``input``.
        output_col: The column of the answers, or its path in JSON, where it is not ``output``.
        a_col: With one file that holds the answers of both: the column of A's, or its path in JSON.
        b_col: The same for B.
        encoding: The encoding of text files that are not UTF-8.
        progress: Show progress on standard error.

    Returns:
        A :class:`PairwiseRunResult`.

    Raises:
        InputError: If the answers, the suite, a variant, a judge or a setting cannot be used.
        JudgeError: If the judge cannot be asked, or fails in the same way on ten different questions in a row.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> old, new = {"t1": "Paris.", "t2": "No."}, {"t1": "Paris, in France.", "t2": "No, it does not."}
        >>> ps.ab(old, new, criterion="says more", judge=longer, progress=False).tally("says more")
        (0, 2, 0)
    """
    if (judge is None and labels is None) or (isinstance(judge, str) and judge == "lexical"):
        notice("the judge is lexical, a baseline that reads no criterion; name a better one with `judge=`")
    found = compared(
        a, b, criterion=criterion, judge=judge, labels=labels, key=key, variants=(variant_a, variant_b),
        prompts=(prompt_a, prompt_b), names=(name_a, name_b), suite=suite, run=run, swap=swap, repeats=repeats,
        concurrency=concurrency, retries=retries, timeout=timeout,
        variant_timeout=variant_timeout, max_cost=max_cost, price=price, failures=failures, stop_when=stop_when,
        seed=seed, control=control, judge_args=judge_args, judge_card=judge_card,
        base_url=base_url, manifest=manifest, save=save, progress=progress,
        columns=AnswerColumns(id_col, input_col, output_col, a_col, b_col, encoding),
    )  # fmt: skip
    found.write_manifest()
    return found.result


def compared(
    a: Any,
    b: Any,
    *,
    criterion: str | Sequence[str] | None,
    judge: Any,
    labels: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    variants: tuple[VariantLike | None, VariantLike | None],
    prompts: tuple[str | None, str | None],
    names: tuple[str, str],
    suite: SuiteLike | None,
    run: str | os.PathLike[str] | None,
    manifest: str | os.PathLike[str] | None,
    save: str | os.PathLike[str] | None,
    repeats: int,
    concurrency: int,
    columns: AnswerColumns,
    control: str | Sequence[str] = (),
    tell: Callable[[Sequence[str]], object] = lambda _lines: None,
    **options: Any,
) -> Comparison:
    """What :func:`ab` does before it writes the manifest, so that the result is there whatever is wrong with that.

    Args:
        a: Answers of A, or a suite.
        b: Answers of B.
        criterion: The criteria.
        judge: The judges.
        labels: What people said.
        key: The key of their manifest.
        variants: The variants that answer a suite.
        prompts: Their prompts.
        names: What they are called.
        suite: The tasks of the answers.
        run: The run file.
        manifest: A file for the cases.
        save: A folder for the result.
        repeats: Answers per task.
        concurrency: Questions open at once.
        columns: The columns of the files.
        control: The styles to control for.
        tell: Is told what was read, in lines, before a judge is asked.
        options: The others of :func:`ab`.

    Raises:
        InputError: If anything does not fit.
    """
    repeats = require_int(repeats, "repeats", least=1)
    styles = control_names(control) if control else ()
    criteria = [criterion] if isinstance(criterion, str) else list(criterion or [])
    judges = list(judge) if isinstance(judge, list | tuple) else [] if judge is None else [judge]
    a, b, suite, variants = with_variants(a, b, suite, variants)
    lines: list[str] = []
    a, b, tasks, names = read_sides(a, b, suite, columns, names, lines.append, is_suite=any((*variants, *prompts)))
    told = {name: options[name] for name in ("swap", "judge_args", "judge_card", "base_url", "retries", "price")}
    comparators = _comparators(criteria, judges, labels, key, encoding=columns.encoding, **told)
    tell(lines)
    asking = RunOptions(
        concurrency=1 if judges == ["human"] else concurrency, timeout=options["timeout"], max_cost=options["max_cost"]
    )
    shared = {name: options[name] for name in _SHARED}
    settings = Settings(comparators=comparators, options=asking, run=run, store_dir=save, control=styles, **shared)
    if manifest is not None:
        require_manifest(Path(manifest))
        if b is None and run is None:
            raise InputError("`manifest=` with a suite needs `run=`, where the answers are")
    paid = [one for made in comparators for one in getattr(made, "judges", ())]
    if b is not None:
        if any((*variants, *prompts)) or repeats > 1 or settings.variant_timeout is not None:
            raise InputError(
                "`variant=`, `prompt=`, `repeats=` and `variant_timeout=` belong to a suite, not to recorded answers"
            )
        result = run_sync(lambda: compare_answers(a, b, names, settings, suite=tasks), run=run)
    elif suite is not None:
        raise InputError("`suite=` belongs to two files of answers; a suite alone is the first argument")
    else:
        sides = (_variant(variants[0], prompts[0], "a"), _variant(variants[1], prompts[1], "b"))
        paid += sides
        result = run_sync(lambda: compare_variants(a, sides, names, settings, repeats=repeats), run=run)

    def write() -> ExportedCases | None:
        if manifest is None:
            return None
        sources = (a, b) if b is not None else [RunTraceSource(str(run), name) for name in names]
        of = tasks if b is not None else read_suite(str(run))
        return export_pairwise_cases(*sources, criteria=criteria, out=manifest, suite=of)

    return Comparison(result, paid, write)


def with_variants(a: Any, b: Any, suite: Any, variants: tuple[Any, Any]) -> tuple[Any, Any, Any, tuple[Any, Any]]:
    """``a``, ``b``, the suite and the variants, where ``a`` or ``b`` may be a variant that answers the suite."""
    if b is not None and suite is not None and (_is_variant(a) or _is_variant(b)):
        return suite, None, None, (a, b)
    return a, b, suite, variants


def read_sides(
    a: Any,
    b: Any,
    suite: Any,
    columns: AnswerColumns,
    names: tuple[str, str],
    tell: Callable[[str], object],
    *,
    is_suite: bool = False,
) -> tuple[Any, Any, Suite | None, tuple[str, str]]:
    """The answers of A and B and the tasks, or a suite alone, read before any judge is made; and the names."""
    if (columns.a_col is None) != (columns.b_col is None):
        raise InputError("`a_col=` and `b_col=` name the answers of A and B in one file; give both")
    if columns.a_col is not None and columns.b_col is not None:
        if b is not None or not (isinstance(a, str | os.PathLike) or is_table(a)):
            raise InputError("`a_col=` and `b_col=` belong to one file or table that holds the answers of A and B")
        if columns.output_col is not None:
            raise InputError("`output_col=` belongs to a file with the answers of one variant; leave it out")
        one, two = read_both_outputs(
            a, columns.a_col, columns.b_col, names,
            id_col=columns.id_col, input_col=columns.input_col, encoding=columns.encoding,
        )  # fmt: skip
        sides = f"{names[0]} = column {columns.a_col}, {names[1]} = column {columns.b_col}"
        tell(f"{len(one):,} tasks from {name_of(a)}; {sides}")
        return one, two, _suite(suite, columns, tell), names
    one_file = b is None and not is_suite and (_is_file(a) or is_table(a))
    if one_file and (both := _both(a, columns, names, tell)) is not None:
        return both[0][0], both[0][1], _suite(suite, columns, tell), both[1]
    if b is None:
        if columns.output_col is not None:
            raise InputError("`output_col=` belongs to files of answers; a suite has none")
        return _suite(a, columns, tell), None, None, names
    sources = [_source(given, columns, name, tell) for given, name in ((a, names[0]), (b, names[1]))]
    return sources[0], sources[1], _suite(suite, columns, tell), names


def _is_variant(given: Any) -> bool:
    return isinstance(given, ModelVariant) or (callable(given) and not isinstance(given, TraceSource))


def _is_file(given: Any) -> bool:
    return isinstance(given, str | os.PathLike) and not Path(given).is_dir()


def _both(
    given: Any, columns: AnswerColumns, names: tuple[str, str], tell: Callable[[str], object]
) -> tuple[list[RecordedAnswers], tuple[str, str]] | None:
    """The answers of A and B from one file or table with those of two variants; None when it holds no answers of both.

    Raises:
        InputError: it holds those of more than two, and the names say not which.
    """
    try:
        found = read_answers(given, columns.of_answers, encoding=columns.encoding)
    except InputError:
        return None  # a suite, or nothing; what is wrong with it is said where a suite is read
    if not found.variants:
        return None
    chosen = names if set(names) <= set(found.variants) else found.variants
    if len(chosen) != 2:
        raise InputError(
            f"{name_of(given)} holds the answers of {', '.join(found.variants)}; name two of them with name_a= and "
            "name_b="
        )
    sides = (chosen[0], chosen[1])
    sources = [RecordedAnswers(of_variant(found, name, name_of(given))) for name in sides]
    for side, name, source in zip("AB", sides, sources, strict=True):
        tell(f"{side}: {len(source):,} answers of {name} from {name_of(given)}")
    return sources, sides


def _source(given: Any, columns: AnswerColumns, name: str, tell: Callable[[str], object]) -> Any:
    if isinstance(given, Mapping):
        return InMemoryTraceSource(given)
    if not isinstance(given, str | os.PathLike) and not is_table(given):
        return given
    if not is_table(given) and Path(given).is_dir():
        return source_at(given)
    found: AnswerFile = read_answers(given, columns.of_answers, encoding=columns.encoding)
    source = RecordedAnswers(of_variant(found, name, name_of(given)))
    tell(f"{name}: {len(source):,} answer{'s' * (len(source) != 1)} from {name_of(given)}")
    return source


def _suite(given: Any, columns: AnswerColumns, tell: Callable[[str], object]) -> Suite | None:
    if given is None or isinstance(given, Suite):
        return given
    if isinstance(given, str | os.PathLike):
        found = Suite.from_file(given, id_col=columns.id_col, input_col=columns.input_col, encoding=columns.encoding)
        tell(f"{len(found):,} task{'s' * (len(found) != 1)} from {given}")
        return found
    if is_table(given):
        return Suite.from_list(read_tasks(given, columns.of_answers), source=name_of(given))
    return as_suite(given)


def _variant(variant: Any, prompt: str | None, side: str) -> Any:
    if variant is None:
        raise InputError(f"a suite needs `variant_{side}=`; or name two files of answers, A and B")
    if prompt is None:
        return variant
    return ModelVariant(variant, read_text(prompt) if prompt.endswith(".txt") else prompt)


def _comparators(
    criteria: Sequence[str],
    judges: list[Any],
    labels: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    *,
    swap: bool,
    judge_args: Mapping[str, Any] | None,
    judge_card: CardLike | Sequence[CardLike] | None,
    base_url: str | None,
    retries: int,
    price: Price | Mapping[str, Any] | None,
    encoding: str | None,
) -> list[Any]:
    if not criteria:
        raise InputError('say what "better" means, as in `criterion="more helpful"`')
    if key is not None and labels is None:
        raise InputError("`key=` belongs to `labels=`")
    asked = judges or ([] if labels is not None else ["lexical"])
    settings = {**(judge_args or {}), **_of_model(asked, base_url, price)}
    cards = cards_by_criterion(judge_card, criteria, asked)
    made: list[Any] = []
    how: dict[str, Any] = {"swap": swap, "retries": retries, "judge_args": settings or None}
    for criterion in dict.fromkeys(criteria):
        if "human" in asked:
            if len(asked) > 1:
                raise InputError("`judge=human` stands alone; people and models are compared with `labels=`")
            made.append(human_pairwise(key=criterion, criterion=criterion))
        elif len(asked) == 1:
            card = cards.get(criterion)
            made.append(pairwise_judge(asked[0], criterion=criterion, key=criterion, judge_card=card, **how))
        elif asked:
            made.append(pairwise_panel(asked, criterion=criterion, key=criterion, **how))
        if labels is not None:
            name = f"{criterion} (people)" if asked else criterion
            made.append(human_labels(labels, criterion=criterion, key=name, key_file=key, encoding=encoding))
    return made


def _of_model(judges: Sequence[Any], base_url: str | None, price: Any) -> dict[str, Any]:
    """Settings that only a provider's model has."""
    is_model = any(isinstance(judge, str) and judge.partition(":")[0] in PROVIDERS for judge in judges)
    found = {name: value for name, value in (("base_url", base_url), ("price", price)) if value is not None}
    if found and not is_model:
        raise InputError(f"`{next(iter(found))}=` belongs to a provider's model, such as compatible:MODEL")
    return found
