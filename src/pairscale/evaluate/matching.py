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
_Groups: TypeAlias = dict[str, list[TraceRef]]
_Tell: TypeAlias = Callable[[str], object]

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
    tell: _Tell = notice,
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
    if suite:
        sides = [_by_suite(refs, suite, name, tell) for refs, name in zip((refs_a, refs_b), names, strict=True)]
        matches = [Match(key, suite[key], *(side.get(key, ()) for side in sides)) for key in suite]
    else:
        key_of = _how((refs_a, refs_b), names, tell)
        sides = [_groups(refs, key_of) for refs in (refs_a, refs_b)]
        order = dict.fromkeys(key for side in sides for key in side)
        pairs = [(key, sides[0].get(key, []), sides[1].get(key, [])) for key in order]
        matches = [Match(_name(key, [*a, *b]), None, a, b) for key, a, b in pairs]
    kept = {id(ref) for match in matches for ref in (*match.a, *match.b)}
    left = [ref for ref in (*refs_a, *refs_b) if id(ref) not in kept]
    unknown = dict.fromkeys(ref.task_id for ref in left if suite and ref.task_id is not None)
    unmatched = [Unmatched(str(name), 1, "suite") for name in unknown]
    unmatched += [
        Unmatched(ref.task_id or f"trace {ref.trace_id}", 1, "task_id") for ref in left if ref.task_id not in unknown
    ]
    _tell_duplicates(matches, names, tell)
    _tell_inputs(matches, names, tell)
    return matches, unmatched


def _by_id(ref: TraceRef) -> str | None:
    return None if ref.task_id is None else id_key(ref.task_id)


def _by_input(ref: TraceRef) -> str | None:
    asked = ref.metadata.get("input")
    return input_key(asked) if isinstance(asked, str) and asked.strip() else None


def _groups(refs: Sequence[TraceRef], key_of: _Key, tasks: Mapping[str, str] | None = None) -> _Groups:
    """References by their key, or by the task that it stands for; those without are left out."""
    groups: _Groups = {}
    for ref in refs:
        key = key_of(ref)
        if tasks is not None and key is not None:
            key = tasks.get(key)
        if key is not None:
            groups.setdefault(key, []).append(ref)
    return groups


def _how(sides: Sequence[Sequence[TraceRef]], names: tuple[str, str], tell: _Tell) -> _Key:
    """How to match two sides; by what was asked is said where there are names."""
    ids = [set(_groups(refs, _by_id)) for refs in sides]
    if ids[0] & ids[1]:
        return _by_id
    unnamed = [name for name, known in zip(names, ids, strict=True) if not known]
    a, b = (_groups(refs, _by_input) for refs in sides)
    if a.keys() & b.keys():
        if len(unnamed) < 2:
            why = f"{unnamed[0]} names no tasks" if unnamed else f"{names[0]} and {names[1]} share no task_id"
            tell(f"{why}; answers are paired by the text of the task")
        return _by_input
    if unnamed:
        verb = "names" if len(unnamed) == 1 else "name"
        raise InputError(
            f"{' and '.join(unnamed)} {verb} no tasks, and no task of {names[0]} and {names[1]} has the same text; "
            "name the column of the tasks' names (`id_col=`), or of their text (`input_col=`)"
        )
    has = ", ".join(f"{name} has {listed(sorted(known), 3)}" for name, known in zip(names, ids, strict=True))
    raise InputError(
        f"{names[0]} and {names[1]} have no task in common ({has}); answers are paired by task_id, else by the text of "
        "the task: name the column of the names (`id_col=`), or of the text (`input_col=`)"
    )


def _by_suite(refs: Sequence[TraceRef], suite: Mapping[str, Task], name: str, tell: _Tell) -> _Groups:
    """The answers of one side, by the tasks of a suite."""
    groups = _groups(refs, _by_id, {id_key(task_id): task_id for task_id in suite})
    if groups:
        return groups
    groups = _groups(refs, _by_input, {input_key(task.input): task_id for task_id, task in suite.items()})
    if groups and any(ref.task_id is not None for ref in refs):
        tell(f"{name} shares no task_id with the suite; its answers are paired by the text of the task")
    return groups


def _name(key: str, refs: Sequence[TraceRef]) -> str:
    """The name of a task: as a side writes it, else one that is made from its text."""
    return next((ref.task_id for ref in refs if ref.task_id is not None), None) or name_of_input(key)


def _tell_duplicates(matches: Sequence[Match], names: tuple[str, str], tell: _Tell) -> None:
    """Say which tasks one side has more often than the other."""
    odd = [match for match in matches if match.a and match.b and len(match.a) != len(match.b)]
    if odd:
        words = [
            f"{one.name!r} ({len(one.a)} in {names[0]}{_places(one.a)}, {len(one.b)} in {names[1]}{_places(one.b)})"
            for one in odd
        ]
        tell(
            f"{len(odd):,} task{'s are' if len(odd) != 1 else ' is'} duplicated on one side: {_first_few(words)}; the "
            "first answers are compared with each other, and those that are left have no partner"
        )


def _places(refs: Sequence[TraceRef]) -> str:
    known = [str(ref.metadata["where"]) for ref in refs if ref.metadata.get("where")]
    return f": {', '.join(known[:_SHOWN])}" if len(refs) > 1 and known else ""


def _tell_inputs(matches: Sequence[Match], names: tuple[str, str], tell: _Tell) -> None:
    """Say where two answers under one name were asked for different things; a suite has the last word on the task."""
    different = [
        repr(match.name)
        for match in matches
        if match.task is None and match.a and match.b and len(_groups([*match.a, *match.b], _by_input)) > 1
    ]
    if different:
        tell(
            f"{names[0]} and {names[1]} were asked different things under the same name in {len(different):,} of "
            f"{len(matches):,} tasks ({_first_few(different)}); judges are shown what {names[0]} was asked: check the "
            "names"
        )


def _first_few(words: Sequence[str]) -> str:
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more
