"""What a gate compares: recorded answers, a baseline, or a suite and its variants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.tables import listed
from pairscale.evaluate.baseline import (
    Baseline,
    loaded,
    read_baseline,
    require_same_answers,
    require_same_inputs,
    write_baseline,
)
from pairscale.evaluate.formats.reading import unfinished_of
from pairscale.evaluate.gate_options import GateOptions
from pairscale.evaluate.gate_wording import too_few_tasks
from pairscale.evaluate.inference.gate import cases_to_decide
from pairscale.evaluate.jobs import answer_source
from pairscale.evaluate.matching import matched
from pairscale.evaluate.suite import as_suite
from pairscale.evaluate.traces import InMemoryTraceSource, Trace, TraceRef
from pairscale.evaluate.verbs import AnswerColumns, read_sides
from pairscale.runtime import run_sync

__all__ = ["Given", "read_given"]


@dataclass(frozen=True, slots=True)
class Given:
    """What is compared: recorded answers of A and B, or a suite and its variants."""

    a: Any
    b: Any
    suite: Any
    variants: tuple[Any, Any]
    baseline: Baseline | None


def read_given(
    a: Any,
    b: Any,
    options: GateOptions,
    variants: tuple[Any, Any],
    prompts: tuple[str | None, str | None],
    names: tuple[str, str],
    suite: Any,
    columns: AnswerColumns,
    tell: Callable[[str], object],
) -> Given:
    """Read the answers, and the baseline or record it; refuse what cannot be compared before a judge is asked.

    Args:
        a: Answers of A, of B, or a suite.
        b: Answers of B.
        options: Those of the gate.
        variants: The variants that answer a suite.
        prompts: Their prompts.
        names: What they are called.
        suite: The tasks of the answers.
        columns: The columns of the files.
        tell: Is told what was read, line by line.

    Raises:
        InputError: If anything does not fit.
    """
    path, update = options.baseline, options.update_baseline
    if any((*variants, *prompts)):
        tasks, *_ = read_sides(a, b, suite, columns, names, tell, is_suite=True)
        if b is None:
            _tell_size(len(tasks), options, names, tell)
        return _of_suite(Given(tasks, b, suite, variants, None), prompts, options, tell)
    both, origin = b is not None or columns.a_col is not None, a
    if not both and path is None:
        raise InputError("name the answers of A and of B; with `baseline=`, those of B alone")
    if both:
        a, b, tasks, _ = read_sides(a, b, suite, columns, names, tell)
    else:  # one file: A's if it is to be recorded, else B's
        a, _, tasks, _ = read_sides(a, a, suite, columns, (names[0 if update else 1],) * 2, _first(tell))
    answers_a, answers_b = (_load(one, name) for one, name in zip((a, b if both else a), names, strict=True))
    _require_finished((a, b), options)
    known: Baseline | None = None
    if path is not None and update:
        known = write_baseline(answers_a, path, source=_origin(origin), name=names[0])
        tell(f"recorded as baseline in {path}: {known}")
        if not both:
            return Given(a, None, None, variants, known)
    elif path is not None:
        known = _recorded(path, tell)
        if both:
            require_same_answers(known, answers_a, path)
        answers_a = list(known.answers)
    if tasks is None:
        require_same_inputs(answers_a, answers_b)
    _tell_size(_require_pairs(answers_a, answers_b, options, names, tasks), options, names, tell)
    return Given(a if known is None else known.source, b if both else a, tasks, variants, known)


def _of_suite(
    given: Given, prompts: tuple[str | None, str | None], options: GateOptions, tell: Callable[[str], object]
) -> Given:
    """A suite and its variants, where a baseline may hold the answers of A."""
    if options.update_baseline:
        raise InputError("`update_baseline=` records a file of answers; variants that are run have none yet")
    if options.baseline is None:
        return given
    if given.variants[0] is not None or prompts[0] is not None:
        raise InputError("`baseline=` holds the answers of A; leave out `variant_a=` and `prompt_a=`")
    recorded = _recorded(options.baseline, tell)
    return replace(given, variants=(recorded.source, given.variants[1]), baseline=recorded)


def _first(tell: Callable[[str], object]) -> Callable[[str], object]:
    """Say each line once: a file that is read for both sides is one file."""
    said: set[str] = set()

    def once(line: str) -> None:
        if line not in said:
            said.add(line)
            tell(line)

    return once


def _require_finished(sources: tuple[Any, Any], options: GateOptions) -> None:
    """Refuse logs that ended too early, as the tasks that they lack may be those that a variant failed on."""
    logs = [log.words for source in sources for log in unfinished_of(source)]
    if logs and options.missing != "excluded":
        raise InputError(
            f"{' and '.join(logs)}; finish the run, or give `missing=excluded` to compare only the tasks that it "
            "reached"
        )


def _load(given: Any, name: str) -> list[tuple[str, Trace]]:
    source = answer_source(given, name)
    return run_sync(lambda: loaded(source))


def _recorded(path: Path, tell: Callable[[str], object]) -> Baseline:
    known = read_baseline(path)
    tell(f"baseline {path}: {known}")
    return known


def _origin(given: Any) -> str:
    """Where answers come from: the name of the file, without its folder, which is another one on another machine."""
    return Path(given).name if isinstance(given, str | Path) else type(given).__name__


def _require_pairs(
    a: list[tuple[str, Trace]], b: list[tuple[str, Trace]], options: GateOptions, names: tuple[str, str], tasks: Any
) -> int:
    """How many tasks can be compared; refuse a B that lacks answers, as they may be those that it failed on."""

    async def refs_of(answers: list[tuple[str, Trace]]) -> list[TraceRef]:
        return [ref async for ref in InMemoryTraceSource(answers).list()]

    refs_a, refs_b = run_sync(lambda: refs_of(a)), run_sync(lambda: refs_of(b))
    matches, _ = matched(refs_a, refs_b, () if tasks is None else as_suite(tasks), names, tell=lambda _words: None)
    wanted = [one for one in matches if one.a]
    lacking = [one.name for one in wanted if not one.b]
    if lacking and options.missing != "excluded":
        raise InputError(
            f"{names[1]} has no answer to {len(lacking):,} of the {len(wanted):,} tasks of {names[0]}: "
            f"{listed(lacking, 5)}; if it failed on them, add them with an empty output, so that they count as "
            "failures; if they are no longer asked, give `missing=excluded`"
        )
    return len(wanted) - len(lacking)


def _tell_size(tasks: int, options: GateOptions, names: tuple[str, str], tell: Callable[[str], object]) -> None:
    """Say before a judge is asked when there are too few tasks for the gate to fail, or for the margin."""
    if untested := too_few_tasks(tasks, options.rule, names[1], fixed=options.fixed):
        notice(f"{untested}; the verdict will be untested")
        return
    needed = cases_to_decide(options.margin, level=options.rule.level, fixed=options.fixed)
    if needed is not None and tasks < needed:
        many = f"{tasks:,} task{'s' * (tasks != 1)}"
        tell(
            f"note: {many} can show that {names[1]} is worse, but hardly that it is not, with a margin of "
            f"{100 * options.margin:g} %: that takes about {needed:,} tasks without ties, fewer with ties"
        )
