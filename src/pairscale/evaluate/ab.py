"""``ab``: is B better than A? With the option names and defaults of the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.encodings import read_text
from pairscale.core.errors import InputError
from pairscale.core.notices import mention, notice, plural
from pairscale.core.options import FilePath, ProgressMode, checked
from pairscale.evaluate.formats.reading import (
    Columns,
    holds_rows,
    is_path,
    name_of,
    named_columns,
    of_variant,
    read_answers,
    read_both_outputs,
    recorded,
    source_of,
    variants_of,
)
from pairscale.evaluate.human import human_labels, human_pairwise
from pairscale.evaluate.inference.control import control_names
from pairscale.evaluate.inference.failures import Failures
from pairscale.evaluate.judge import JudgeLike, criteria_of, model_settings, pairwise_judge, pairwise_panel
from pairscale.evaluate.manifest import export_pairwise_cases
from pairscale.evaluate.ranking import couples_of, ranked
from pairscale.evaluate.run import Couple, PairwiseRun, StopWhen, named_two
from pairscale.evaluate.tasks import Suite, SuiteLike, Trace, TraceSource, as_suite
from pairscale.evaluate.variants import ModelVariant, VariantLike
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT, RunOptions, run_sync

if TYPE_CHECKING:
    from pairscale.core.tables import Table
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.providers.catalog import Price

Answers: TypeAlias = "FilePath | Table | TraceSource | Mapping[str, str | Trace] | Callable[..., Any] | ModelVariant"


@checked
def ab(
    a: Answers | SuiteLike,
    b: Answers | None = None,
    *more: Answers,
    criterion: str | Sequence[str],
    judge: JudgeLike | Sequence[JudgeLike] | None = None,
    labels: FilePath | None = None,
    key: FilePath | None = None,
    variant_a: VariantLike | None = None,
    variant_b: VariantLike | None = None,
    prompt_a: str | None = None,
    prompt_b: str | None = None,
    name_a: str = "A",
    name_b: str = "B",
    variant: Mapping[str, VariantLike] | Sequence[str] = (),
    baseline: str | None = None,
    suite: SuiteLike | None = None,
    run: FilePath | None = None,
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
    base_url: str | None = None,
    manifest: FilePath | None = None,
    id_col: str | None = None,
    input_col: str | None = None,
    output_col: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    encoding: str | None = None,
    progress: ProgressMode = True,
) -> PairwiseRunResult | Any:
    """Is B better than A? Compare two prompts, models or agents task by task, or rank more of them.

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
        more: The same for further variants: three or more are compared two by two and ranked. They are called like
            their files, tables C, D and so on.
        criterion: What "better" means; one criterion or several.
        judge: A name, a function ``judge(A, B)``, a :class:`Judge` or ``human``; several are a panel that decides by
            majority. By default ``lexical``, a baseline, unless ``labels`` are given.
        labels: A file with what people said: ``case_id`` and ``preferred`` per row.
        key: The key of the labelled manifest, unless it lies beside the labels.
        variant_a: With a suite: a function of a task, ``provider:model`` or ``module:function``.
        variant_b: The same for B.
        prompt_a: Prompt of a model that is A: a text or a ``.txt`` file, with ``{input}``.
        prompt_b: The same for B.
        name_a: What A is called; in a file with the answers of several, whose answers are A's.
        name_b: What B is called, likewise.
        variant: With a suite: three variants or more that are ranked, by their names or as ``NAME=VARIANT``; see
            :func:`run_variants`.
        baseline: Of three variants or more: the name of the only one that the others are compared with.
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
        base_url: Address of the provider of the judge.
        manifest: With recorded answers: a ``.jsonl`` file to write the cases to as well, blinded, for labellers.
        id_col: The column of the tasks' names, or its path in JSON, where it is not ``task_id``.
        input_col: The column of the tasks, or its path in JSON, where it is not ``input``.
        output_col: The column of the answers, or its path in JSON, where it is not ``output``.
        a_col: With one file that holds the answers of both: the column of A's, or its path in JSON.
        b_col: The same for B.
        encoding: The encoding of text files that are not UTF-8.
        progress: Show progress on standard error.

    Returns:
        A :class:`PairwiseRunResult`; of three variants or more a :class:`VariantsResult`.

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
    given = dict(locals())
    if (judge is None and labels is None) or (isinstance(judge, str) and judge == "lexical"):
        notice("the judge is lexical, a baseline that reads no criterion; name a better one with `judge=`")
    criteria = criteria_of(criterion)
    judges: list[Any] = list(judge) if isinstance(judge, list | tuple) else [judge]
    if judge is None:
        judges = ["lexical"] if labels is None else []
    named = named_columns(id_col, input_col, output_col)
    is_ranking = bool(more or variant) or baseline is not None
    answers: dict[str, Any] = {}
    variants: dict[str, Any] = {}
    # What is compared is read before the judge is made, which asks for a key.
    if is_ranking:
        _refuse_options_of_two(given)
        tasks = read_suite(a if variant else suite, named, encoding)
        if variant:
            variants = dict(variant) if isinstance(variant, Mapping) else _named_variants(variant)
        else:
            answers = _named_sources([a, b, *more], named, encoding)
        couples = couples_of(tuple(variants or answers), baseline)
        about: dict[str, Any] = {"baseline": baseline}
    else:
        sides, two, names, tasks = read_compared(
            a, b, suite, (variant_a, variant_b), (prompt_a, prompt_b), (name_a, name_b), named, (a_col, b_col), encoding
        )
        answers = {} if sides is None else named_two(names, sides)
        variants = named_two(names, two) if sides is None else {}
        couples = [names]
        about = {"control": control_names(control) if control else ()}
    settings = {**(judge_args or {}), **model_settings(judges, base_url=base_url, price=price)}
    comparators = _comparators(
        criteria, judges, labels, key, encoding, swap=swap, retries=retries, judge_args=settings or None
    )
    options = RunOptions(concurrency=1 if judges == ["human"] else concurrency, timeout=timeout, max_cost=max_cost)
    asking = PairwiseRun(
        comparators, options, run=run, failures=failures, stop_when=stop_when, seed=seed, progress=progress
    )
    if variants:
        if manifest is not None:
            raise InputError(
                "`manifest=` belongs to recorded answers; export_pairwise_cases writes one from those that a run file "
                "keeps"
            )
        about |= {"repeats": repeats, "variant_timeout": variant_timeout}
        done = run_sync(lambda: asking.of_variants(tasks or (), variants, couples, "ab", **about), run=run)
    else:
        if repeats != 1 or variant_timeout is not None:
            raise InputError("`repeats=` and `variant_timeout=` belong to a suite, not to recorded answers")
        if manifest is not None:
            cases = export_pairwise_cases(*answers.values(), criteria=criteria, out=manifest, suite=tasks)
            mention(
                f"wrote {cases.n_cases:,} cases to {manifest}, and their key (not for labellers) to {cases.key_path}"
            )
        done = run_sync(lambda: asking.of_answers(answers, couples, tasks, "ab", **about), run=run)
    return ranked(done, baseline) if is_ranking else done[couples[0]]


_OF_TWO = (
    "variant_a variant_b prompt_a prompt_b name_a name_b a_col b_col labels manifest control stop_when repeats".split()
)


def _refuse_options_of_two(given: Mapping[str, Any]) -> None:
    """Refuse what belongs to two variants in a ranking of three or more."""
    options = signature(ab).parameters
    unused = [name for name in _OF_TWO if given[name] != options[name].default]
    if given["variant"]:
        unused += [name for name in ("b", "suite") if given[name] is not None]
    elif given["variant_timeout"] is not None:
        unused.append("variant_timeout")
    if unused:
        words = f"`{unused[0]}=` does not go with a ranking of three variants or more; leave it out"
        raise InputError(words, unused[0])


def _named_variants(variants: Sequence[str]) -> dict[str, str]:
    """Variants by their names, from ``NAME=VARIANT``."""
    pairs = [text.partition("=") for text in variants]
    named = {name.strip(): variant for name, _, variant in pairs if name.strip() and variant}
    if len(named) < len(pairs):
        raise InputError("each variant has a name of its own: NAME=VARIANT, such as old=openai:gpt-4.1", "variant")
    return named


def _named_sources(sources: Sequence[Any], named: Columns, encoding: str | None) -> dict[str, Any]:
    """Answers by what their files are called, by their paths where two are called alike; tables are A, B, C."""
    paths = [str(one) if is_path(one) else chr(ord("A") + at) for at, one in enumerate(sources) if one is not None]
    names = [Path(path).stem for path in paths]
    if len(set(names)) < len(names):
        names = paths
    return {name: read_source(source, named, name, encoding) for name, source in zip(names, sources, strict=False)}


def _comparators(
    criteria: Sequence[str],
    judges: list[Any],
    labels: FilePath | None,
    key: FilePath | None,
    encoding: str | None,
    **asking: Any,
) -> list[Any]:
    """One comparator per criterion; with labels, people's beside it."""
    if key is not None and labels is None:
        raise InputError("`key=` belongs to `labels=`")
    if "human" in judges and len(judges) > 1:
        raise InputError("`judge=human` stands alone; people and models are compared with `labels=`")
    made: list[Any] = []
    for criterion in criteria:
        if judges == ["human"]:
            made.append(human_pairwise(key=criterion, criterion=criterion))
        elif len(judges) == 1:
            made.append(pairwise_judge(judges[0], criterion=criterion, key=criterion, **asking))
        elif judges:
            made.append(pairwise_panel(judges, criterion=criterion, key=criterion, **asking))
        if labels is not None:
            name = f"{criterion} (people)" if judges else criterion
            made.append(human_labels(labels, criterion=criterion, key=name, key_file=key, encoding=encoding))
    return made


# What is compared


def read_compared(
    a: Any,
    b: Any,
    suite: Any,
    variants: tuple[Any, Any],
    prompts: tuple[str | None, str | None],
    names: Couple,
    named: Columns,
    columns: Sequence[str | None],
    encoding: str | None,
) -> tuple[tuple[Any, Any] | None, Any, tuple[str, str], Suite | None]:
    """What two variants are compared by: their recorded answers, or else the variants; their names; the tasks.

    Args:
        a: Answers of A, of both, or a suite.
        b: Answers of B.
        suite: The tasks, where ``a`` is none.
        variants: A and B, where ``a`` is a suite.
        prompts: Of models that are A and B.
        names: What A and B are called.
        named: By our name, the columns that the user named.
        columns: Of A's and B's answers in one file that holds both.
        encoding: Of text files that are not UTF-8.

    Raises:
        InputError: If something cannot be read, or does not belong together.
    """
    if (
        b is not None
        and suite is not None
        and any((callable(one) and not isinstance(one, TraceSource)) or isinstance(one, ModelVariant) for one in (a, b))
    ):
        variants = (a, b)
        a, b, suite = suite, None, None
    if not any((*variants, *prompts)):
        sides, names = read_sides(a, b, names, named, columns, encoding)
        if sides is not None:
            return sides, variants, names, read_suite(suite, named, encoding)
    if b is not None or suite is not None:
        raise InputError("variants belong to a suite, which is the first argument and alone; `suite=` to two files")
    made = []
    for side, variant, prompt in zip("ab", variants, prompts, strict=True):
        if variant is None:
            raise InputError(
                f"a suite needs `variant_{side}=`; else name two files of answers, A and B, or the columns of both in "
                "one file (`a_col=` and `b_col=`)",
                f"variant_{side}",
            )
        if prompt is None:
            made.append(variant)
        else:
            made.append(ModelVariant(variant, read_text(prompt) if prompt.endswith(".txt") else prompt))
    return None, made, names, read_suite(a, named, encoding)


def read_sides(
    a: Any, b: Any, names: Couple, named: Columns, columns: Sequence[str | None], encoding: str | None
) -> tuple[Any, Couple]:
    """The recorded answers of A and B, and their names; None for the answers where ``a`` is a suite."""
    if any(columns):
        return _read_columns(a, b, names, named, columns, encoding), names
    if b is not None:
        return (read_source(a, named, names[0], encoding), read_source(b, named, names[1], encoding)), names
    return _read_both(a, names, named, encoding) if holds_rows(a) else (None, names)


def _read_columns(
    a: Any,
    b: Any,
    names: Couple,
    named: Columns,
    columns: Sequence[str | None],
    encoding: str | None,
) -> Any:
    """The answers of A and B from two columns of one file."""
    if None in columns or b is not None or not holds_rows(a) or "output" in named:
        raise InputError(
            "`a_col=` and `b_col=` belong together, to one file or table that holds the answers of A and B, and "
            "`output_col=` to a file with those of one"
        )
    sides = read_both_outputs(a, columns, named, encoding)
    shown = ", ".join(f"{name} = column {column}" for name, column in zip(names, columns, strict=True))
    mention(f"{plural(len(sides[0]), 'task')} from {name_of(a)}; {shown}")
    return sides


def _read_both(a: Any, names: Couple, named: Columns, encoding: str | None) -> tuple[Any, Any]:
    """The answers of two variants from one file, and their names; None for the answers where it is a suite."""
    try:
        answers = read_answers(a, named, encoding)
    except InputError:
        return None, names  # a suite, or nothing; the reader of suites reports what is wrong with it
    variants = variants_of(answers)
    if not variants:
        return None, names
    chosen = names if set(names) <= set(variants) else variants
    if len(chosen) != 2:
        raise InputError(
            f"{name_of(a)} holds the answers of {', '.join(variants)}; name two of them with name_a= and name_b="
        )
    return [source_of(of_variant(answers, name, name_of(a))) for name in chosen], chosen


def read_source(given: Any, named: Columns, name: str, encoding: str | None) -> Any:
    """The recorded answers of one variant."""
    if not holds_rows(given):
        return recorded(given) or given
    source = source_of(of_variant(read_answers(given, named, encoding), name, name_of(given)))
    mention(f"{name}: {plural(len(source), 'answer')} from {name_of(given)}")
    return source


def read_suite(given: Any, named: Columns, encoding: str | None) -> Suite | None:
    """The tasks; None where there are none."""
    if given is None:
        return None
    suite = as_suite(given, named, encoding)
    if is_path(given):
        mention(f"{plural(len(suite), 'task')} from {given}")
    return suite
