"""Which answer of A belongs to which answer of B: by the names of the tasks, else by what was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.notices import notice, plural
from pairscale.core.provenance import text_hash
from pairscale.core.tables import listed
from pairscale.evaluate.result import Unmatched
from pairscale.evaluate.suite import Task, id_key, input_key
from pairscale.evaluate.traces import TraceRef

_Groups: TypeAlias = dict[str, list[TraceRef]]

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
    *,
    strict: bool = False,
) -> tuple[list[Match], list[Unmatched]]:
    """The answers of each task, and those that belong to none.

    Answers are matched by ``task_id``. Where a side names no task, or A and B share no name, they are matched by what
    was asked, which is said.

    Args:
        refs_a: what A has.
        refs_b: what B has.
        tasks: those of a suite; none without one.
        names: of the variants.
        strict: whether to refuse answers to different questions under the same name; otherwise that is said.

    Raises:
        InputError: nothing can be matched.
    """
    suite = list(tasks)
    by_id = [_groups(refs, _id_of) for refs in (refs_a, refs_b)]
    by_input = [_groups(refs, _input_of) for refs in (refs_a, refs_b)]
    if suite:
        ids = {id_key(task.task_id) for task in suite}
        sides = []
        for side in (0, 1):
            if ids & by_id[side].keys():
                sides.append([by_id[side].get(id_key(task.task_id), []) for task in suite])
            else:
                sides.append([by_input[side].get(input_key(task.input), []) for task in suite])
        matches = [Match(task.task_id, task, a, b) for task, a, b in zip(suite, *sides, strict=True)]
    else:
        groups = _shared(by_id, by_input, names)
        order = dict.fromkeys([*groups[0], *groups[1]])
        pairs = [(key, groups[0].get(key, []), groups[1].get(key, [])) for key in order]
        matches = [Match(_name(key, [*a, *b]), None, a, b) for key, a, b in pairs]
    kept = {id(ref) for match in matches for ref in (*match.a, *match.b)}
    left = {ref.task_id or f"trace {ref.trace_id}" for ref in (*refs_a, *refs_b) if id(ref) not in kept}
    _tell_unusual(matches, names, strict=strict)
    return matches, [Unmatched(name, 1, "suite" if suite else "task_id") for name in sorted(left)]


def _id_of(ref: TraceRef) -> str | None:
    return None if ref.task_id is None else id_key(ref.task_id)


def _input_of(ref: TraceRef) -> str | None:
    asked = ref.metadata.get("input")
    return input_key(asked) if isinstance(asked, str) and asked.strip() else None


def _groups(refs: Sequence[TraceRef], key_of: Callable[[TraceRef], str | None]) -> _Groups:
    """References by their key; those without are left out."""
    groups: _Groups = {}
    for ref in refs:
        key = key_of(ref)
        if key is not None:
            groups.setdefault(key, []).append(ref)
    return groups


def _shared(by_id: list[_Groups], by_input: list[_Groups], names: tuple[str, str]) -> list[_Groups]:
    """The groups by which A and B have tasks in common."""
    a, b = names
    if by_id[0].keys() & by_id[1].keys():
        return by_id
    if by_input[0].keys() & by_input[1].keys():
        if by_id[0] or by_id[1]:
            notice(f"{a} and {b} share no task_id; answers are paired by the text of the task")
        return by_input
    has = ", ".join(
        f"{name} has {listed(sorted(groups), 3) or 'no names'}" for name, groups in zip(names, by_id, strict=True)
    )
    raise InputError(
        f"{a} and {b} have no task in common ({has}); answers are paired by task_id, else by the text of the task: "
        "name the column of the names (`id_col=`), or of the text (`input_col=`)"
    )


def _name(key: str, refs: Sequence[TraceRef]) -> str:
    """The name of a task: as a side writes it, else one that is made from its text."""
    return next((ref.task_id for ref in refs if ref.task_id is not None), None) or name_of_input(key)


def _tell_unusual(matches: Sequence[Match], names: tuple[str, str], *, strict: bool) -> None:
    """Say which tasks a side has more often, and where both were asked different things; a suite decides on those."""
    both = [match for match in matches if match.a and match.b]
    uneven = [match.name for match in both if len(match.a) != len(match.b)]
    if uneven:
        notice(
            f"{plural(len(uneven), 'task is', 'tasks are')} duplicated on one side: {listed(uneven, _SHOWN)}; the "
            "first answers are compared with each other, and those that are left have no partner"
        )
    different = [match.name for match in both if not match.task and len(_groups([*match.a, *match.b], _input_of)) > 1]
    if different:
        words = (
            f"{names[0]} and {names[1]} were asked different things under the same name in {len(different):,} of "
            f"{len(matches):,} tasks ({listed(different, _SHOWN)})"
        )
        if strict:
            raise InputError(f"{words}; have both answer the same tasks, and record a baseline again if there is one")
        notice(f"{words}; judges are shown what {names[0]} was asked: check the names")
