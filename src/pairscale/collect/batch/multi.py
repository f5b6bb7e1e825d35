"""The manual's many batches at once: submit them all, come back for them later, from anywhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.collect._background import run_sync
from pairscale.collect.batch._parts import pairs_from
from pairscale.collect.batch._registry import REGISTRY, Entry, registry_table
from pairscale.collect.batch.desk import BatchDesk
from pairscale.collect.batch.pipelines import _judge, _tell
from pairscale.errors import InputError
from pairscale.files import write_table
from pairscale.notices import notice
from pairscale.store import open_run

if TYPE_CHECKING:
    from pairscale.tables import Table

__all__ = ["MultiBatch", "MultiBatchResult", "llm_resume_multi_batches", "llm_submit_pairs_multi_batch"]

_PATHS = str | os.PathLike[str]
_REGISTRY = "jobs_registry.csv"
_FAILURES: dict[str, pl.DataType] = {
    "segment_index": pl.Int64(), "provider": pl.String(), "model": pl.String(), "batch_id": pl.String(),
    "status": pl.String(), "message": pl.String(), "unanswered": pl.Int64(),
}  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class MultiBatch:
    """Batches that were submitted.

    Attributes:
        jobs: one mapping a batch, with the columns of the registry.
        registry: the same as a table.
        run: the run file, which knows everything else.
    """

    jobs: list[dict[str, Any]]
    registry: pl.DataFrame
    run: Path

    def __repr__(self) -> str:
        return f"<MultiBatch: {len(self.jobs)} batches, in {self.run}>"


@dataclass(frozen=True, slots=True, repr=False)
class MultiBatchResult:
    """What came of many batches.

    Attributes:
        jobs: one mapping a batch, with ``done`` and its ``results``.
        combined: all results; None when no batch is done.
        failed_attempts: every attempt without an answer.
        batch_failures: the batches that ended in any other way than well.
        rest: the pairs of the batches that have no answer.
    """

    jobs: list[dict[str, Any]]
    combined: pl.DataFrame | None
    failed_attempts: pl.DataFrame
    batch_failures: pl.DataFrame
    rest: pl.DataFrame

    def __repr__(self) -> str:
        n = 0 if self.combined is None else self.combined.height
        return f"<MultiBatchResult: {len(self.jobs)} batches, {n:,} pairs answered>"


def llm_submit_pairs_multi_batch(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    backend: str = "openai",
    batch_size: int | None = None,
    n_segments: int | None = None,
    output_dir: _PATHS | None = None,
    write_registry: bool = False,
    keep_jsonl: bool = True,  # noqa: ARG001 - decided when the results are in
    verbose: bool = False,
    openai_max_retries: int = 3,
    **settings: Any,
) -> MultiBatch:
    """Split pairs into batches and create them all, without waiting for any.

    The run file ``run.db`` in ``output_dir`` remembers them: the same call again submits nothing twice, and
    :func:`llm_resume_multi_batches` goes on from there, also in another process.

    Args:
        pairs: ``ID1 text1 ID2 text2``.
        model: the model's name.
        trait_name: of a trait of your own, with
        trait_description: its definition; by default overall quality.
        prompt_template: a template's name, file or text.
        backend: ``openai``, ``anthropic``, ``gemini`` or ``together``.
        batch_size: pairs in a batch, at the most.
        n_segments: how many batches; without either, as few as the provider takes.
        output_dir: the folder of everything; a temporary one by default.
        write_registry: write ``jobs_registry.csv`` there.
        keep_jsonl: matters when results are in; see :func:`llm_resume_multi_batches`.
        verbose: say in notices what was created.
        openai_max_retries: how often to try again what may pass, with any provider.
        settings: of :class:`LLMJudge`; ``run`` names another run file.
    """
    folder = Path(tempfile.mkdtemp(prefix="llm_multi_batch_")) if output_dir is None else Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    api_key = settings.pop("api_key", None)
    judge, own = _judge(backend.lower(), model, trait_name, trait_description, prompt_template, api_key, settings)
    run = Path(own.get("run") or folder / "run.db")

    async def main() -> list[Entry]:
        desk = BatchDesk(run, folder=folder, retries=openai_max_retries)
        try:
            await desk.submit(pairs, judge, batch_size=batch_size, n_segments=n_segments, metadata=own.get("metadata"))
            return desk.entries()
        finally:
            await desk.aclose()

    found = run_sync(main)
    registry = _registry(found, run, folder)
    if write_registry:
        write_table(registry, folder / _REGISTRY)
    if verbose:
        for entry in found:
            notice(f"batch {entry.segment}, {len(entry.pair_ids):,} pairs, {entry.provider}: {entry.batch_id}")
    return MultiBatch(_jobs(registry), registry, run)


def _registry(found: Sequence[Entry], run: Path, folder: Path) -> pl.DataFrame:
    """The registry; the pairs of each batch are written beside its requests."""
    table = registry_table(found)
    places = []
    with open_run(run) as store:
        for entry in found:
            path = folder / f"{entry.key}.pairs.csv"
            if not path.exists():
                rows = [
                    {"ID1": pair.first["ID"], "text1": pair.first["text"]}
                    | {"ID2": pair.second["ID"], "text2": pair.second["text"]}
                    for _, pair in pairs_from(store, entry.pair_ids)
                ]
                write_table(pl.DataFrame(rows), path)
            places.append(str(path))
    return table.with_columns(
        pairs_path=pl.Series(places, dtype=pl.String), segment_index=pl.int_range(1, pl.len() + 1)
    )


def _jobs(registry: pl.DataFrame) -> list[dict[str, Any]]:
    return registry.to_dicts()


def llm_resume_multi_batches(
    jobs: Sequence[Mapping[str, Any]] | MultiBatch | None = None,
    output_dir: _PATHS | None = None,
    interval_seconds: float = 60,
    per_job_delay: float = 2,
    write_results_csv: bool = False,
    keep_jsonl: bool = True,
    write_registry: bool = False,
    tag_prefix: str = "<BETTER_SAMPLE>",  # noqa: ARG001 - the run file knows the tags of every judge
    tag_suffix: str = "</BETTER_SAMPLE>",  # noqa: ARG001
    verbose: bool = False,
    write_combined_csv: bool = False,
    combined_csv_path: _PATHS | None = None,
    openai_max_retries: int = 3,
    *,
    run: _PATHS | None = None,
    timeout_seconds: float | None = None,
    poll: bool = True,
    api_key: str | None = None,
) -> MultiBatchResult:
    """Wait for batches, take in what they give, and put it together.

    Args:
        jobs: what :func:`llm_submit_pairs_multi_batch` returned, or its ``jobs``; not needed with ``output_dir``.
        output_dir: the folder that was given there.
        interval_seconds: between two looks; longer while nothing changes.
        per_job_delay: seconds between two batches of one look.
        write_results_csv: write the results of each batch to its ``csv_path``.
        keep_jsonl: keep the files of requests and results when they are taken in.
        write_registry: write ``jobs_registry.csv`` again.
        tag_prefix: has no effect: the run file knows how each judge answers.
        tag_suffix: likewise.
        verbose: say in notices how the batches stand.
        write_combined_csv: write all results to one file.
        combined_csv_path: which; ``combined_results.csv`` by default, in ``output_dir`` unless it names a folder.
        openai_max_retries: how often to try again what may pass, with any provider.
        run: the run file, when it is another than ``run.db`` of the folder.
        timeout_seconds: to wait in all; by default until all have ended.
        poll: False looks once, takes in what is there, and returns.
        api_key: the key; by default those of the environment.

    Raises:
        InputError: there is no run file to go on from.
    """
    folder, store_path = _places(jobs, output_dir, run)

    async def main() -> tuple[list[Entry], list[pl.DataFrame], pl.DataFrame, pl.DataFrame]:
        desk = BatchDesk(store_path, folder=folder, api_key=api_key, retries=openai_max_retries)
        try:
            rounds = float("inf") if poll else 1
            found = await desk.wait(
                interval=interval_seconds, timeout=timeout_seconds, rounds=rounds, delay=per_job_delay,
                told=_tell if verbose else None,
            )  # fmt: skip
            each = [desk.results([entry.key])[0] for entry in found]
            return found, each, desk.results()[1], desk.rest()
        finally:
            await desk.aclose()

    found, each, failed, rest = run_sync(main)
    registry = _registry(found, store_path, folder)
    done = [table for entry, table in zip(found, each, strict=True) if not entry.open]
    combined = pl.concat(done).unique(["custom_id", "condition_id"], maintain_order=True) if done else None
    listed = [
        job | {"results": None if entry.open else table}
        for job, entry, table in zip(_jobs(registry), found, each, strict=True)
    ]
    for job, entry in zip(listed, found, strict=True):
        if not entry.open:
            if write_results_csv:
                write_table(job["results"], job["csv_path"])
            if not keep_jsonl:
                for path in (entry.input_path, entry.output_path):
                    Path(path).unlink(missing_ok=True)
    if write_registry:
        write_table(registry.select(*REGISTRY), folder / _REGISTRY)
    if write_combined_csv and combined is not None:
        write_table(combined, _combined_path(combined_csv_path, folder))
    return MultiBatchResult(listed, combined, failed, _failures(found, rest), rest)


def _places(jobs: Any, output_dir: _PATHS | None, run: _PATHS | None) -> tuple[Path, Path]:
    """The folder and the run file."""
    if isinstance(jobs, MultiBatch):
        run, jobs = run or jobs.run, jobs.jobs
    if output_dir is None:
        if not jobs:
            raise InputError("say where the batches are: jobs or output_dir")
        output_dir = Path(str(jobs[0]["batch_output_path"])).parent
    folder = Path(output_dir)
    where = Path(run) if run is not None else folder / "run.db"
    if not where.is_file():
        raise InputError(
            f"{where}: no such run file; give output_dir, or run, as it was when the batches were submitted"
        )
    return folder, where


def _combined_path(wanted: _PATHS | None, folder: Path) -> Path:
    path = Path(wanted or "combined_results.csv").expanduser()
    return path if path.is_absolute() or path.parent != Path() else folder / path


def _failures(found: Sequence[Entry], rest: pl.DataFrame) -> pl.DataFrame:
    left = dict(rest.group_by("key").len().iter_rows())
    rows = [
        {
            "segment_index": number,
            "provider": entry.provider,
            "model": entry.model,
            "batch_id": entry.batch_id,
            "status": entry.state,
            "message": entry.message,
            "unanswered": left.get(entry.key, 0),
        }
        for number, entry in enumerate(found, start=1)
        if entry.state in {"failed", "expired", "cancelled", "dropped"}
    ]
    return pl.DataFrame(rows, schema=_FAILURES)
