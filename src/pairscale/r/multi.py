"""The manual's many batches at once: submit them all, come back for them later, from anywhere."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.batch import registry_table
from pairscale.collect.batch.manager import BatchManager
from pairscale.collect.batch.registry import RegistryEntry
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.files import write_table
from pairscale.core.notices import plural
from pairscale.core.tables import ANSWER_COLUMNS, to_frame
from pairscale.r.batches import tell, write_pairs
from pairscale.r.settings import judge_from, taken
from pairscale.r.tables import batch_table, n_answered
from pairscale.runtime import run_sync

if TYPE_CHECKING:
    from pairscale.core.tables import Table
    from pairscale.providers.base import Fields

_REGISTRY = "jobs_registry.csv"
_FAILED = {"failed", "expired", "cancelled", "dropped"}
_FAILURES: dict[str, pl.DataType] = {
    "segment_index": pl.Int64(), "provider": pl.String(), "model": pl.String(), "batch_id": pl.String(),
    "status": pl.String(), "message": pl.String(), "unanswered": pl.Int64(),
}  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class MultiBatch(ReprMixin, table="registry"):
    """Batches that were submitted.

    Attributes:
        jobs: One mapping per batch, with the columns of the registry.
        registry: The same as a table.
        run: The run file, which knows everything else.
        folder: Where the files are.
    """

    jobs: list[Fields]
    registry: pl.DataFrame
    run: Path
    folder: Path

    def __str__(self) -> str:
        return f"{plural(len(self.jobs), 'batch', 'batches')}, in {self.run}"


@dataclass(frozen=True, slots=True, repr=False)
class MultiBatchResult(ReprMixin, table="combined", columns=ANSWER_COLUMNS):
    """The results of many batches.

    Attributes:
        jobs: One mapping per batch, with ``done`` and its ``results``.
        combined: All results, one row per pair; one that failed says why. None if no batch is done.
        failed_attempts: Every attempt without an answer.
        batch_failures: The batches that ended in any other way than well.
        rest: The pairs of the batches that have no answer.
    """

    jobs: list[Fields]
    combined: pl.DataFrame | None
    failed_attempts: pl.DataFrame
    batch_failures: pl.DataFrame
    rest: pl.DataFrame

    @property
    def results(self) -> pl.DataFrame | None:
        """The same as ``combined``, under the name that every other result has."""
        return self.combined

    def __str__(self) -> str:
        answered = 0 if self.combined is None else n_answered(self.combined)
        return f"{plural(len(self.jobs), 'batch', 'batches')}, {plural(answered, 'pair')} answered"


def submit_multi(
    backend: str,
    pairs: Table,
    model: str,
    output_dir: str | None,
    write_registry: bool,
    verbose: bool,
    openai_max_retries: int,
    run: str | None = None,
    **settings: Any,
) -> MultiBatch:
    """Split pairs into batches and create them all, without waiting for any."""
    folder = Path(output_dir or tempfile.mkdtemp(prefix="llm_multi_batch_"))
    folder.mkdir(parents=True, exist_ok=True)
    where = Path(run or folder / "run.db")
    submission = taken(settings, "batch_size n_segments keep_jsonl include_raw metadata max_cost")
    judge = judge_from(backend.lower(), model, **settings)

    manager = BatchManager(where, folder=folder, retries=openai_max_retries)

    async def main() -> None:
        async with manager:
            await manager.submit(pairs, judge, **submission)

    run_sync(main, run=where)
    found = manager.entries()
    registry = _registry(found, where)
    if write_registry:
        write_table(registry, folder / _REGISTRY)
    if verbose:
        tell(found)
    return MultiBatch(registry.to_dicts(), registry, where, folder)


def _registry(found: Sequence[RegistryEntry], run: Path) -> pl.DataFrame:
    """The registry; the pairs of each batch are written beside its results."""
    paths = [str(write_pairs(run, entry, Path(entry.output_path))) for entry in found]
    numbers = pl.int_range(1, pl.len() + 1)
    return registry_table(found).with_columns(pairs_path=pl.Series(paths, dtype=pl.String), segment_index=numbers)


def resume_multi(
    jobs: Any,
    output_dir: str | None,
    run: str | None,
    write_results_csv: bool,
    keep_jsonl: bool | None,
    write_registry: bool,
    verbose: bool,
    write_combined_csv: bool,
    combined_csv_path: str | None,
    openai_max_retries: int,
    api_key: str | None,
    include_raw: bool | None,
    poll: bool,
    interval_seconds: float,
    timeout_seconds: float | None,
    per_job_delay: float,
    **_unused: Any,
) -> MultiBatchResult:
    """Wait for batches, take in what they give, and put it together."""
    folder, where, wanted = _places(jobs, output_dir, run)

    manager = BatchManager(where, folder=folder, api_key=api_key, retries=openai_max_retries, keep_jsonl=keep_jsonl)
    keys = [entry.key for entry in manager.entries() if wanted is None or entry.batch_id in wanted]

    def told(entries: Sequence[RegistryEntry]) -> None:
        for entry in entries:
            if write_results_csv and not entry.open and not Path(entry.csv_path).is_file():
                write_table(_results(manager, entry, raw=False), entry.csv_path)  # without replies, as in R
        if verbose:
            tell(entries)

    async def main() -> list[RegistryEntry]:
        async with manager:
            timeout = timeout_seconds if poll else 0
            return await manager.wait(
                keys, on_look=told, interval=interval_seconds, timeout=timeout, delay=per_job_delay
            )

    entries = run_sync(main, run=where)
    registry = _registry(entries, where)
    if write_registry:
        write_table(registry, folder / _REGISTRY)
    rest = manager.rest(keys)
    rows = registry.to_dicts()
    tables = []
    failures = []
    for job, entry in zip(rows, entries, strict=True):
        job |= {"status": entry.state, "message": entry.message}
        if job["done"]:
            raw = entry.include_raw if include_raw is None else include_raw
            job["results"] = _results(manager, entry, raw=raw)
            tables.append(job["results"])
        if entry.state in _FAILED:
            failures.append(job | {"unanswered": rest.filter(batch_id=entry.batch_id).height})
    combined = None
    if tables:
        question = ["custom_id", "condition_id", "judge_id"]
        combined = pl.concat(tables, how="diagonal").unique(question, maintain_order=True)
        if write_combined_csv:
            path = Path(combined_csv_path or "combined_results.csv").expanduser()
            write_table(combined, folder / path if path.parent == Path() else path)
    failed = manager.results(keys)[1]
    return MultiBatchResult(rows, combined, failed, pl.DataFrame(failures, schema=_FAILURES), rest)


def _results(manager: BatchManager, entry: RegistryEntry, *, raw: bool) -> pl.DataFrame:
    """The results of one batch, failed requests included."""
    answered, failed = manager.results([entry.key], raw=True)
    return batch_table(answered, failed, entry.provider, entry.model, raw=raw)


def _places(jobs: Any, output_dir: str | Path | None, run: str | Path | None) -> tuple[Path, Path, set[str] | None]:
    """The folder, the run file, and the ids of the batches that are wanted; None for all."""
    wanted: set[str] | None = None
    if isinstance(jobs, MultiBatch):
        output_dir = output_dir or jobs.folder
        run = run or jobs.run
    elif jobs is not None:
        try:
            rows = jobs if isinstance(jobs, list) else to_frame(jobs, "jobs").to_dicts()
            wanted = {row["batch_id"] for row in rows}
            output_dir = output_dir or Path(rows[0]["batch_output_path"]).parent
        except (LookupError, TypeError):
            raise InputError(
                "jobs: no batch_id and batch_output_path; give those of llm_submit_pairs_multi_batch, or output_dir"
            ) from None
    if output_dir is None:
        raise InputError("say where the batches are: jobs or output_dir")
    where = Path(run or Path(output_dir) / "run.db")
    if not where.is_file():
        raise InputError(
            f"{where}: no such run file; give output_dir, or run, as it was when the batches were submitted. Batches "
            "that R submitted are read by download and parse: openai_download_batch_output, parse_openai_batch_output"
        )
    return Path(output_dir), where, wanted
