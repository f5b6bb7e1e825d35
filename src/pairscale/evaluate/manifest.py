"""Blinded cases for people to label in any tool, and the key that stays with the evaluator."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.files import read_rows, replacing
from pairscale.core.options import checked, optional, require_int, require_path, require_seed, require_suffix
from pairscale.core.tables import listed
from pairscale.evaluate.inference.failures import failed_sides
from pairscale.evaluate.labels import answers_digest, case_name, labelled_answers
from pairscale.evaluate.result import Unmatched
from pairscale.evaluate.run import paired
from pairscale.evaluate.suite import SuiteLike
from pairscale.evaluate.traces import TraceSource
from pairscale.runtime import awaitable, blocking
from pairscale.store.label_keys import key_path, known_key

__all__ = ["MANIFEST", "ExportedCases", "export_pairwise_cases", "export_pairwise_cases_async", "require_manifest"]

MANIFEST = ("case_id", "task_id", "criterion", "task_input", "response_1", "response_2")
"""The fields of a case."""


@dataclass(frozen=True, slots=True, repr=False)
class ExportedCases(ReprMixin):
    """What was exported; it can be given wherever the path of the manifest is wanted.

    Attributes:
        path: the manifest: one case a line.
        key_path: the key; None when it is in the manifest itself.
        n_cases: how many cases.
        parts: by labeller, their own manifest, where labellers were named.
        unmatched: tasks that could not be exported, because a side has no answer.
    """

    path: Path
    key_path: Path | None
    n_cases: int
    parts: Mapping[str, Path]
    unmatched: tuple[Unmatched, ...]

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        left = f", {len(self.unmatched):,} left out" if self.unmatched else ""
        return f"{self.n_cases:,} case{'s' * (self.n_cases != 1)} in {self.path}{left}"


@blocking()
@checked
async def export_pairwise_cases(
    source_a: TraceSource | str | os.PathLike[str],
    source_b: TraceSource | str | os.PathLike[str],
    *,
    criteria: str | Iterable[str],
    out: str | os.PathLike[str],
    suite: SuiteLike | None = None,
    seed: int | None = None,
    embed_key: bool = False,
    labellers: Sequence[str] = (),
    overlap: int | None = None,
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
        seed: makes the sides and the shares of the labellers reproducible.
        embed_key: write ``first_variant`` into the manifest itself, in one file with everything; not for labellers.
        labellers: names; each gets a file ``STEM.NAME.jsonl`` with a share of the cases.
        overlap: how many labellers get each case; by default all of them.

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
    seed = require_seed(seed)
    wanted = [criteria] if isinstance(criteria, str) else list(criteria)
    target = require_path(out, "out")
    _require(wanted, target, labellers, overlap)
    if embed_key and labellers:
        raise InputError("embed_key would tell the labellers which variant is which; leave it out, and keep the key")
    files = {name: target.with_name(f"{target.stem}.{name}{target.suffix}") for name in labellers}
    for path in files.values():
        _unlabelled(path)
    before = _exported(target)
    jobs, unmatched = await paired(source_a, source_b, suite)
    rng = random.Random(random.SystemRandom().getrandbits(64) if seed is None else seed)  # noqa: S311 - sides, no secret
    cases: list[dict[str, Any]] = []
    key: list[dict[str, Any]] = []
    left_out = list(unmatched)
    for job in jobs:
        task, a, b = await job.load()
        failed = failed_sides(a.failure, b.failure)
        if failed is not None:
            left_out.append(Unmatched(job.task_id, job.repeat, failed))
            continue
        for criterion in wanted:
            name = case_name(task.task_id, criterion, job.repeat)
            drawn = rng.choice("ab")
            first = before[name]["first_variant"] if name in before else drawn
            shown = (a.output, b.output) if first == "a" else (b.output, a.output)
            values = (name, task.task_id, criterion, task.input, *shown)
            cases.append(dict(zip(MANIFEST, values, strict=True)))
            known = {"case_id": name, "task_id": task.task_id, "criterion": criterion, "repeat": job.repeat}
            key.append({**known, "first_variant": first, "answers": answers_digest(*shown)})
    _require_names(cases)
    _require_kept(before, key, target)
    where = None if embed_key else key_path(target)
    if where is not None:
        _write(where, key)
    else:
        cases = [{**case, "first_variant": one["first_variant"]} for case, one in zip(cases, key, strict=True)]
    parts = _shares(cases, labellers, overlap or len(labellers), rng)
    for name, part in parts.items():
        _write(files[name], part)
    _write(target, cases)
    return ExportedCases(target, where, len(cases), files, tuple(left_out))


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


def _require(criteria: Sequence[str], out: Path, labellers: Sequence[str], overlap: int | None) -> None:
    if not criteria or not all(isinstance(one, str) and one.strip() for one in criteria):
        raise InputError("criteria must be texts such as 'more helpful'")
    require_manifest(out)
    strange = [name for name in labellers if not name or not name.replace("-", "").replace("_", "").isalnum()]
    if strange or len(set(labellers)) < len(labellers) or "key" in labellers:
        raise InputError(f"labellers need names of their own, of letters, digits, - and _; not {listed(labellers)}")
    if (optional(require_int, overlap, "overlap", least=1) or 1) > max(1, len(labellers)):
        raise InputError(f"overlap={overlap!r}: each case goes to 1 to {len(labellers)} of the labellers")


def require_manifest(out: Path) -> None:
    """Refuse a name that no manifest has."""
    require_suffix(out, "the manifest", (".jsonl", ".ndjson"))


def _exported(target: Path) -> dict[str, dict[str, Any]]:
    """The key of what was exported under this name before: by case, which variant stood first, and of which answers."""
    rows = _unlabelled(target)
    shown = {str(row.get("case_id")): row for row in rows}
    known = known_key(target, rows) or {}
    return {name: {**row, "answers": labelled_answers(shown.get(name, {}), row)} for name, row in known.items()}


def _unlabelled(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that is about to be replaced; none when it does not exist."""
    rows = read_rows(path) if path.exists() else []
    if any(row.get("preferred") is not None for row in rows):
        raise InputError(f"{path} holds labels; move it elsewhere first, or name another file for the manifest")
    return rows


def _require_kept(before: Mapping[str, Mapping[str, Any]], key: Iterable[Mapping[str, Any]], target: Path) -> None:
    """Refuse to replace a key that labels may rest on by one that says something else."""
    now = {row["case_id"]: row["answers"] for row in key}
    lost = [name for name, row in before.items() if now.get(name) != row["answers"]]
    if lost:
        raise InputError(
            f"{target} was exported before, with other answers or other cases: {listed(lost)}; labels of those would "
            "be lost. Name another file, or remove the old manifest and its key if it has not been labelled"
        )


def _require_names(cases: Sequence[Mapping[str, Any]]) -> None:
    if not cases:
        raise InputError("there is no case to label: no task has an answer of both variants")
    names = Counter(case["case_id"] for case in cases)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        raise InputError(f"two cases would be called {listed(twice)}; give tasks and criteria names without '::'")


def _shares(
    cases: Sequence[dict[str, Any]], labellers: Sequence[str], overlap: int, rng: random.Random
) -> dict[str, list[dict[str, Any]]]:
    """Each case to so many labellers, those with the fewest so far; among equals, chance decides."""
    shares: dict[str, list[dict[str, Any]]] = {name: [] for name in labellers}
    for case in cases:
        for name in sorted(labellers, key=lambda one: (len(shares[one]), rng.random()))[:overlap]:
            shares[name].append(case)
    return shares


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with replacing(path) as temporary:
        # Escaped, so that halves of characters and odd line ends survive whatever tool reads it.
        temporary.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
