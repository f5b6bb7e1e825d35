"""Blinded cases for people to label in any tool, and the key that stays with the evaluator."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.files import read_rows, replacing
from pairscale.core.notices import plural
from pairscale.core.options import FilePath, checked, require_path, require_seed, require_suffix
from pairscale.core.tables import Values, listed
from pairscale.evaluate.inference.failures import failed_sides
from pairscale.evaluate.judge import criteria_of
from pairscale.evaluate.labels import answers_digest, case_name, labelled_answers
from pairscale.evaluate.run import paired
from pairscale.evaluate.tasks import Row, SuiteLike, TraceSource, Unmatched
from pairscale.runtime import awaitable, blocking
from pairscale.store.label_keys import key_path, known_key

MANIFEST = ("case_id", "task_id", "criterion", "task_input", "response_1", "response_2")
"""The fields of a case."""


@dataclass(frozen=True, slots=True, repr=False)
class ExportedCases(ReprMixin):
    """What was exported; it can be given wherever the path of the manifest is wanted.

    Attributes:
        path: the manifest: one case a line.
        key_path: the key.
        n_cases: how many cases.
        unmatched: tasks that could not be exported, because a side has no answer.
    """

    path: Path
    key_path: Path
    n_cases: int
    unmatched: tuple[Unmatched, ...]

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        left = f", {len(self.unmatched):,} left out" if self.unmatched else ""
        return f"{plural(self.n_cases, 'case')} in {self.path}{left}"


@blocking()
@checked
async def export_pairwise_cases(
    source_a: TraceSource | FilePath,
    source_b: TraceSource | FilePath,
    *,
    criteria: str | Iterable[str],
    out: FilePath,
    suite: SuiteLike | None = None,
    seed: int | None = None,
) -> ExportedCases:
    """Write blinded cases for people to label: one JSON line for each task and criterion.

    A line has ``case_id task_id criterion task_input response_1 response_2`` and nothing that tells which variant is
    which; chance decides who is Response 1. That is in the key, ``STEM.key.jsonl`` beside the manifest, which
    :func:`human_labels` needs and labellers must not see. They add ``preferred``: 1, 2 or tie.

    Exported again under the same name, a case keeps its sides, so that labels which are under way stay true; new cases
    join. What would make them untrue is refused: other answers, a case that is no longer there.

    Args:
        source_a: where A's answers are; see :func:`evaluate_pairwise`.
        source_b: where B's are.
        criteria: one criterion, or several, each of which makes a case of each task.
        out: the manifest, a ``.jsonl`` file.
        suite: the tasks, for ``task_input``; see :func:`evaluate_pairwise`.
        seed: makes the sides reproducible.

    Returns:
        What was written; its ``unmatched`` lists tasks without an answer of both sides, failed ones included.

    Raises:
        InputError: when there is nothing to export, two cases would have the same name, or what was exported under
            this name before would be lost.

    Example:
        >>> from pairscale import InMemoryTraceSource
        >>> old = InMemoryTraceSource({"t1": "Rome?", "t2": "Oslo?"})
        >>> new = InMemoryTraceSource({"t1": "Rome.", "t2": "Oslo."})
        >>> export_pairwise_cases(old, new, criteria="more certain", out="cases.jsonl", seed=1)
        <ExportedCases: 2 cases in cases.jsonl>
    """
    wanted = criteria_of(criteria, "criteria")
    target = require_path(out, "out")
    require_suffix(target, "the manifest", (".jsonl", ".ndjson"))
    before = _exported(target)
    jobs, unmatched = await paired(source_a, source_b, suite)
    rng = random.Random(require_seed(seed))  # noqa: S311 - sides, no secret
    cases: dict[str, Values] = {}
    key: dict[str, Values] = {}
    left_out = list(unmatched)
    for job in jobs:
        task, a, b = await job.load()
        failed = failed_sides(a.failure, b.failure)
        if failed is not None:
            left_out.append(Unmatched(job.task_id, job.repeat, failed))
            continue
        for criterion in wanted:
            name = case_name(task.task_id, criterion, job.repeat)
            if name in cases:
                raise InputError(f"two cases would be called {name!r}; give tasks and criteria other names")
            drawn = rng.choice("ab")
            first = before.get(name, {}).get("first_variant", drawn)
            shown = (a.output, b.output) if first == "a" else (b.output, a.output)
            cases[name] = dict(zip(MANIFEST, (name, task.task_id, criterion, task.input, *shown), strict=True))
            key[name] = {
                "case_id": name,
                "task_id": task.task_id,
                "criterion": criterion,
                "repeat": job.repeat,
                "first_variant": first,
                "answers": answers_digest(*shown),
            }
    if not cases:
        raise InputError("there is no case to label")
    lost = [name for name, row in before.items() if key.get(name, {}).get("answers") != row["answers"]]
    if lost:
        raise InputError(
            f"{target} was exported before, with other answers or other cases: {listed(lost)}; labels of those would "
            "be lost. Name another file, or remove the old manifest and its key if it has not been labelled"
        )
    _write(key_path(target), key.values())
    _write(target, cases.values())
    return ExportedCases(target, key_path(target), len(cases), tuple(left_out))


@awaitable(export_pairwise_cases)
async def export_pairwise_cases_async(*args: Any, **settings: Any) -> Any:
    """The same as :func:`export_pairwise_cases`, to be awaited.

    Example:
        >>> import asyncio
        >>> from pairscale import InMemoryTraceSource
        >>> old, new = InMemoryTraceSource({"t1": "Rome?"}), InMemoryTraceSource({"t1": "Rome."})
        >>> asyncio.run(export_pairwise_cases_async(old, new, criteria="more certain", out="awaited.jsonl", seed=1))
        <ExportedCases: 1 case in awaited.jsonl>
    """


def _exported(target: Path) -> dict[str, Values]:
    """The key of what was exported under this name before: by case, which variant stood first, and of which answers."""
    rows = read_rows(target) if target.exists() else []
    if any(row.get("preferred") is not None for row in rows):
        raise InputError(f"{target} holds labels; move it elsewhere first, or name another file for the manifest")
    shown = {str(row.get("case_id")): row for row in rows}
    key = known_key(target, rows) or {}
    return {name: {**row, "answers": labelled_answers(shown.get(name, {}), row)} for name, row in key.items()}


def _write(path: Path, rows: Iterable[Row]) -> None:
    with replacing(path) as temporary:
        # Escaped, so that halves of characters and odd line ends survive whatever tool reads it.
        temporary.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
