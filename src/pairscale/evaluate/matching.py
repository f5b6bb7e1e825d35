"""Which answer of A belongs to which answer of B: by the names of the tasks, else by what was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.notices import notice
from pairscale.core.provenance import text_hash
from pairscale.core.tables import listed
from pairscale.evaluate.result import Unmatched
from pairscale.evaluate.suite import Task, id_key, input_key
from pairscale.evaluate.traces import TraceRef

__all__ = ["Match", "matched", "name_of_input"]

_Key: TypeAlias = Callable[[TraceRef], str | None]

_SHORT = 40
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Match:
    """The answers of A and of B to one task.

    Attributes:
        name: the task's.
        task: the task, where a suite has it.
        a: A's answers, in their order.
        b: B's.
    """

    name: str
    task: Task | None
    a: Sequence[TraceRef]
    b: Sequence[TraceRef]


def name_of_input(given: str) -> str:
    """A name for a task that has none: how it begins, and a digest.

    Example:
        >>> name_of_input("How do I boil an egg?")
        'How do I boil an egg? #c7853475'
    """
    words = " ".join(given.split())
    start = words if len(words) <= _SHORT else f"{words[:_SHORT].rstrip()}…"
    return f"{start} #{text_hash(input_key(given))[:8]}"


def matched(
    refs_a: Sequence[TraceRef],
    refs_b: Sequence[TraceRef],
    tasks: Iterable[Task],
    names: tuple[str, str] = ("A", "B"),
    tell: Callable[[str], object] = notice,
) -> tuple[list[Match], list[Unmatched]]:
    """The answers of each task, and those that belong to none.

    Answers are matched by ``task_id``. Where a side names no task, or A and B share no name, they are matched by what
    was asked, which is said.

    Args:
        refs_a: what A has.
        refs_b: what B has.
        tasks: those of a suite; none without one.
        names: of the variants.
        tell: Is told what is unusual.

    Raises:
        InputError: nothing can be matched.
    """
    suite = {task.task_id: task for task in tasks}
    sides = (refs_a, refs_b)
    unmatched = []
    if suite:
        grouped = [_by_suite(refs, suite, name, tell) for refs, name in zip(sides, names, strict=True)]
        order = list(suite)
        shown = {key: key for key in order}
    else:
        key_of, why = _how(sides, names)
        if why:
            tell(why)
        grouped = [_groups(refs, key_of) for refs in sides]
        order = list(dict.fromkeys([*grouped[0], *grouped[1]]))
        shown = {key: _shown_name(key, grouped, by_input=key_of is _by_input) for key in order}
    for refs, groups in zip(sides, grouped, strict=True):
        kept = {id(ref) for group in groups.values() for ref in group}
        for ref in refs:
            if id(ref) in kept:
                continue
            if ref.task_id is None or not suite:
                unmatched.append(Unmatched(ref.task_id or f"trace {ref.trace_id}", 1, "task_id"))
            elif all(one.task_id != ref.task_id for one in unmatched):
                unmatched.append(Unmatched(ref.task_id, 1, "suite"))
    found = [Match(shown[key], suite.get(key), *(groups.get(key, ()) for groups in grouped)) for key in order]
    _tell_duplicates(found, names, tell)
    _tell_inputs(found, names, tell)
    return found, unmatched


def _by_id(ref: TraceRef) -> str | None:
    return None if ref.task_id is None else id_key(ref.task_id)


def _by_input(ref: TraceRef) -> str | None:
    asked = ref.metadata.get("input")
    return input_key(asked) if isinstance(asked, str) and asked.strip() else None


def _groups(refs: Sequence[TraceRef], key_of: _Key) -> dict[str, list[TraceRef]]:
    found: dict[str, list[TraceRef]] = {}
    for ref in refs:
        if (key := key_of(ref)) is not None:
            found.setdefault(key, []).append(ref)
    return found


def _how(sides: Sequence[Sequence[TraceRef]], names: tuple[str, str]) -> tuple[_Key, str]:
    """How to match two sides, and what to say of it."""
    ids = [{key for ref in refs if (key := _by_id(ref)) is not None} for refs in sides]
    if ids[0] & ids[1]:
        return _by_id, ""
    asked = [{key for ref in refs if (key := _by_input(ref)) is not None} for refs in sides]
    without = [name for name, known in zip(names, ids, strict=True) if not known]
    if asked[0] & asked[1]:
        if len(without) == 2:
            return _by_input, ""
        why = f"{without[0]} names no tasks" if without else f"{names[0]} and {names[1]} share no task_id"
        return _by_input, f"{why}; answers are paired by the text of the task"
    if without:
        verb = "names" if len(without) == 1 else "name"
        raise InputError(
            f"{' and '.join(without)} {verb} no tasks, and no task of {names[0]} and {names[1]} has the same text; "
            "name the column of the tasks' names (`id_col=`), or of their text (`input_col=`)"
        )
    has = ", ".join(f"{name} has {listed(sorted(known), 3)}" for name, known in zip(names, ids, strict=True))
    raise InputError(
        f"{names[0]} and {names[1]} have no task in common ({has}); answers are paired by task_id, else by the text of "
        "the task: name the column of the names (`id_col=`), or of the text (`input_col=`)"
    )


def _by_suite(
    refs: Sequence[TraceRef], suite: Mapping[str, Task], name: str, tell: Callable[[str], object]
) -> dict[str, list[TraceRef]]:
    """The answers of one side, by the tasks of a suite."""
    by_id = {id_key(task_id): task_id for task_id in suite}
    found: dict[str, list[TraceRef]] = {}
    for ref in refs:
        if (key := _by_id(ref)) in by_id and key is not None:
            found.setdefault(by_id[key], []).append(ref)
    if found:
        return found
    by_input = {input_key(task.input): task_id for task_id, task in suite.items()}
    for ref in refs:
        if (key := _by_input(ref)) in by_input and key is not None:
            found.setdefault(by_input[key], []).append(ref)
    if found and any(ref.task_id is not None for ref in refs):
        tell(f"{name} shares no task_id with the suite; its answers are paired by the text of the task")
    return found


def _shown_name(key: str, grouped: Sequence[Mapping[str, Sequence[TraceRef]]], *, by_input: bool) -> str:
    """The name of a task: as a side writes it, else one that is made from its text."""
    for groups in grouped:
        for ref in groups.get(key, ()):
            if ref.task_id is not None:
                return ref.task_id
    return name_of_input(key) if by_input else key


def _tell_duplicates(found: Sequence[Match], names: tuple[str, str], tell: Callable[[str], object]) -> None:
    """Say which tasks one side has more often than the other."""
    odd = [one for one in found if one.a and one.b and len(one.a) != len(one.b)]
    if not odd:
        return
    words = [
        f"{one.name!r} ({len(one.a)} in {names[0]}{_places(one.a)}, {len(one.b)} in {names[1]}{_places(one.b)})"
        for one in odd[:_SHOWN]
    ]
    more = f" and {len(odd) - _SHOWN:,} more" if len(odd) > _SHOWN else ""
    tell(
        f"{len(odd):,} task{'s are' if len(odd) != 1 else ' is'} duplicated on one side: {', '.join(words)}{more}; the "
        "first answers are compared with each other, and those that are left have no partner"
    )


def _places(refs: Sequence[TraceRef]) -> str:
    known = [str(ref.metadata["where"]) for ref in refs if ref.metadata.get("where")]
    return f": {', '.join(known[:_SHOWN])}" if len(refs) > 1 and known else ""


def _tell_inputs(found: Sequence[Match], names: tuple[str, str], tell: Callable[[str], object]) -> None:
    """Say where two answers under one name were asked for different things; a suite has the last word on the task."""
    different = []
    for one in found:
        asked = {key for ref in (*one.a, *one.b) if (key := _by_input(ref)) is not None}
        if len(asked) > 1 and one.a and one.b and one.task is None:
            different.append(one.name)
    if different:
        shown = ", ".join(map(repr, different[:_SHOWN]))
        more = f" and {len(different) - _SHOWN:,} more" if len(different) > _SHOWN else ""
        tell(
            f"{names[0]} and {names[1]} were asked different things under the same name in {len(different):,} of "
            f"{len(found):,} tasks ({shown}{more}); judges are shown what {names[0]} was asked: check the names"
        )
