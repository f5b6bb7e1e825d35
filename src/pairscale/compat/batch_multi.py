"""The manual's many batches at once: submit them all, come back for them later, from anywhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.collect.batch.files import custom_id, pairs_from
from pairscale.collect.batch.manager import BatchManager
from pairscale.collect.batch.registry import REGISTRY, RegistryEntry, csv_path, registry_table
from pairscale.compat._given import TraitAndTemplate, judge_from, require_waiting
from pairscale.compat._tables import ANSWERS, batch_table
from pairscale.compat.batch_pipelines import tell
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.files import write_table
from pairscale.core.notices import notice
from pairscale.core.options import checked, require_int, require_number
from pairscale.core.tables import ANSWER_COLUMNS, to_frame
from pairscale.runtime import run_sync
from pairscale.store.runfile import open_run

if TYPE_CHECKING:
    from pairscale.core.tables import Table

_REGISTRY = "jobs_registry.csv"
_FAILURES: dict[str, pl.DataType] = {
    "segment_index": pl.Int64(), "provider": pl.String(), "model": pl.String(), "batch_id": pl.String(),
    "status": pl.String(), "message": pl.String(), "unanswered": pl.Int64(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Segment:
    """One batch of many, as far as it is known now.

    Attributes:
        job: the columns of the registry.
        state: where it stands.
        message: why it failed.
        results: One row per pair; one that failed says why.
    """

    job: dict[str, Any]
    state: str
    message: str | None
    results: pl.DataFrame


@dataclass(frozen=True, slots=True, repr=False)
class MultiBatch(ReprMixin, table="registry"):
    """Batches that were submitted.

    Attributes:
        jobs: one mapping a batch, with the columns of the registry.
        registry: the same as a table.
        run: the run file, which knows everything else.
        folder: where the files are.
    """

    jobs: list[dict[str, Any]]
    registry: pl.DataFrame
    run: Path
    folder: Path

    def __repr__(self) -> str:
        return f"<MultiBatch: {len(self.jobs)} batches, in {self.run}>"


@dataclass(frozen=True, slots=True, repr=False)
class MultiBatchResult(ReprMixin, table="combined", columns=ANSWER_COLUMNS):
    """What came of many batches.

    Attributes:
        jobs: one mapping a batch, with ``done`` and its ``results``.
        combined: All results, one row per pair; one that failed says why. None if no batch is done.
        failed_attempts: every attempt without an answer.
        batch_failures: the batches that ended in any other way than well.
        rest: the pairs of the batches that have no answer.
    """

    jobs: list[dict[str, Any]]
    combined: pl.DataFrame | None
    failed_attempts: pl.DataFrame
    batch_failures: pl.DataFrame
    rest: pl.DataFrame

    @property
    def results(self) -> pl.DataFrame | None:
        """The same as ``combined``, under the name that every other result has."""
        return self.combined

    def __repr__(self) -> str:
        n = 0 if self.combined is None else self.combined["outcome"].is_in(ANSWERS).sum()
        return f"<MultiBatchResult: {len(self.jobs)} batches, {n:,} pairs answered>"


@checked
def llm_submit_pairs_multi_batch(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    backend: str = "openai",
    batch_size: int | None = None,
    n_segments: int | None = None,
    output_dir: str | os.PathLike[str] | None = None,
    write_registry: bool = False,
    keep_jsonl: bool = True,
    verbose: bool = False,
    openai_max_retries: int = 3,
    **settings: Any,
) -> MultiBatch:
    """Split pairs into batches and create them all, without waiting for any.

    The run file ``run.db`` in ``output_dir`` remembers them: the same call again submits nothing twice, and
    :func:`llm_resume_multi_batches` continues from there, also in another process.

    Args:
        pairs: A table of ``ID1 text1 ID2 text2``.
        model: Name of the model.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; by default overall quality is judged.
        prompt_template: Name, file or text of a prompt template.
        backend: ``openai``, ``anthropic``, ``gemini`` or ``together``.
        batch_size: pairs in a batch, at the most.
        n_segments: how many batches; without either, as few as the provider takes.
        output_dir: the folder of everything; a temporary one by default.
        write_registry: write ``jobs_registry.csv`` there.
        keep_jsonl: whether :func:`llm_resume_multi_batches` keeps the files of requests and results when the results
            are in.
        verbose: Report the created batches in notices.
        openai_max_retries: how often to try again what may pass, with any provider.
        settings: of :class:`LLMJudge`; ``run`` names another run file; ``include_raw=True`` has
            :func:`llm_resume_multi_batches` add ``raw_response`` to the results.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(4)
        >>> jobs = llm_submit_pairs_multi_batch(pairs, "gpt-4.1", n_segments=2, output_dir="jobs")
        >>> jobs.registry.select("segment_index", "provider", "done").rows()
        [(1, 'openai', False), (2, 'openai', False)]
    """
    openai_max_retries = require_int(openai_max_retries, "openai_max_retries", least=0)
    folder = Path(tempfile.mkdtemp(prefix="llm_multi_batch_")) if output_dir is None else Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    run, metadata = Path(settings.pop("run", None) or folder / "run.db"), settings.pop("metadata", None)
    question = TraitAndTemplate(trait_name, trait_description, prompt_template)
    include_raw = bool(settings.pop("include_raw", False))
    judge = judge_from(backend.lower(), model, question, settings.pop("api_key", None), settings)

    async def main() -> list[RegistryEntry]:
        manager = BatchManager(run, folder=folder, retries=openai_max_retries)
        try:
            plan, _ = await manager.submit(
                pairs, judge, batch_size=batch_size, n_segments=n_segments, metadata=metadata
            )
            mine = [entry.key for entry in manager.entries() if entry.open and entry.condition_id == plan.condition_id]
            manager.wish(mine, keep_jsonl=keep_jsonl, include_raw=include_raw)
            return manager.entries()
        finally:
            await manager.aclose()

    found = run_sync(main, run=run)
    registry = _registry(found, run, folder)
    if write_registry:
        write_table(registry, folder / _REGISTRY)
    if verbose:
        for entry in found:
            notice(f"batch {entry.segment}, {len(entry.pair_ids):,} pairs, {entry.provider}: {entry.batch_id}")
    return MultiBatch(registry.to_dicts(), registry, run, folder)


def _registry(found: Sequence[RegistryEntry], run: Path, folder: Path) -> pl.DataFrame:
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
                    | {"custom_id": custom_id(entry.key, number)}
                    for number, pair in pairs_from(store, entry.pair_ids)
                ]
                write_table(pl.DataFrame(rows), path)
            places.append(str(path))
    return table.with_columns(
        pairs_path=pl.Series(places, dtype=pl.String), segment_index=pl.int_range(1, pl.len() + 1)
    )


@checked
def llm_resume_multi_batches(
    jobs: MultiBatch | list[Mapping[str, Any]] | Table | None = None,
    output_dir: str | os.PathLike[str] | None = None,
    interval_seconds: float = 60,
    per_job_delay: float = 2,
    write_results_csv: bool = False,
    keep_jsonl: bool | None = None,
    write_registry: bool = False,
    tag_prefix: str = "<BETTER_SAMPLE>",  # noqa: ARG001 - of the manual
    tag_suffix: str = "</BETTER_SAMPLE>",  # noqa: ARG001
    verbose: bool = False,
    write_combined_csv: bool = False,
    combined_csv_path: str | os.PathLike[str] | None = None,
    openai_max_retries: int = 3,
    *,
    run: str | os.PathLike[str] | None = None,
    timeout_seconds: float | None = None,
    poll: bool = True,
    api_key: str | None = None,
    include_raw: bool | None = None,
) -> MultiBatchResult:
    """Wait for batches, take in what they give, and put it together.

    Args:
        jobs: what :func:`llm_submit_pairs_multi_batch` returned, or some of its ``jobs``, or its registry; not needed
            with ``output_dir``.
        output_dir: the folder that was given there, with its run file.
        interval_seconds: Seconds between two checks; longer while nothing changes.
        per_job_delay: seconds between two batches of one look.
        write_results_csv: write the results of each batch to its ``csv_path``, as soon as they are there.
        keep_jsonl: keep the files of requests and results when they are taken in; by default as it was said when the
            batches were submitted, else True.
        write_registry: write ``jobs_registry.csv`` again.
        tag_prefix: as in R; the run file knows how its judges answer.
        tag_suffix: likewise.
        verbose: Report the state of the batches in notices.
        write_combined_csv: write all results to one file.
        combined_csv_path: which; ``combined_results.csv`` by default, in ``output_dir`` unless it names a folder.
        openai_max_retries: how often to try again what may pass, with any provider.
        run: the run file, when it is another than ``run.db`` of the folder.
        timeout_seconds: Maximum seconds to wait; by default until all batches have ended.
        poll: False looks once, takes in what is there, and returns.
        api_key: The API key; by default those of the environment.
        include_raw: add ``raw_response`` to the results; by default as it was said when the batches were submitted.

    Raises:
        InputError: there is no run file to continue from.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(4)
        >>> jobs = llm_submit_pairs_multi_batch(pairs, "gpt-4.1", n_segments=2, output_dir="more_jobs")
        >>> llm_resume_multi_batches(jobs, interval_seconds=0.01, per_job_delay=0)
        <MultiBatchResult: 2 batches, 4 pairs answered>
    """
    interval_seconds, timeout_seconds, _ = require_waiting(interval_seconds, timeout_seconds)
    per_job_delay = require_number(per_job_delay, "per_job_delay", least=0)
    openai_max_retries = require_int(openai_max_retries, "openai_max_retries", least=0)
    given = None if isinstance(jobs, MultiBatch) else _rows(jobs)
    if isinstance(jobs, MultiBatch):
        output_dir, run = output_dir or jobs.folder, run or jobs.run
    folder, where = _places(given, output_dir, run)
    rounds = float("inf") if poll else 1
    options: dict[str, Any] = {"interval": interval_seconds, "timeout": timeout_seconds, "rounds": rounds}
    options |= {"delay": per_job_delay, "retries": openai_max_retries, "api_key": api_key, "verbose": verbose}
    options["raw"] = include_raw
    csv = _Csv(write_results_csv)

    async def main() -> tuple[list[Segment], pl.DataFrame, pl.DataFrame]:
        return await _followed(where, folder, given, csv, keep_jsonl=keep_jsonl, **options)

    segments, failed, rest = run_sync(main, run=where)
    registry = pl.DataFrame([segment.job | {"results": None} for segment in segments], schema=REGISTRY)
    done = [segment for segment in segments if segment.job["done"]]
    combined = pl.concat([segment.results for segment in done], how="diagonal") if done else None
    if combined is not None:
        combined = combined.unique(["custom_id", "condition_id", "judge_id"], maintain_order=True)
    if keep_jsonl is False:
        for segment in done:
            for kind in ("input", "output"):
                Path(segment.job[f"batch_{kind}_path"]).unlink(missing_ok=True)
    if write_registry:
        write_table(registry, folder / _REGISTRY)
    if write_combined_csv and combined is not None:
        write_table(combined, _combined_path(combined_csv_path, folder))
    listed = [
        segment.job | {"results": segment.results if segment.job["done"] else None, "status": segment.state}
        for segment in segments
    ]
    return MultiBatchResult(listed, combined, failed, _failures(segments, rest), rest)


class _Csv:
    """Writes the results of batches as soon as they are there, each once; nothing unless asked for."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._written: set[str] = set()

    def keep_entries(self, found: Sequence[RegistryEntry], manager: BatchManager) -> None:
        """Write the results of batches that are in the run file."""
        for entry in found:
            if self._wanted and not entry.open and csv_path(entry) not in self._written:
                write_table(_results(manager, entry, raw=False), csv_path(entry))  # without raw replies, as in R
                self._written.add(csv_path(entry))


def _results(manager: BatchManager, entry: RegistryEntry, *, raw: bool) -> pl.DataFrame:
    """The results of one batch, failed requests included."""
    answered, failed = manager.results([entry.key], raw=True)
    return batch_table(answered, failed, entry.provider, entry.model, raw=raw)


async def _followed(
    run: Path,
    folder: Path,
    given: Sequence[Mapping[str, Any]] | None,
    csv: _Csv,
    *,
    retries: int,
    api_key: str | None,
    verbose: bool,
    raw: bool | None,
    keep_jsonl: bool | None,
    **options: Any,
) -> tuple[list[Segment], pl.DataFrame, pl.DataFrame]:
    """Wait for the batches of a run file."""
    manager = BatchManager(run, folder=folder, api_key=api_key, retries=retries, keep_jsonl=keep_jsonl)

    def told(found: Sequence[RegistryEntry]) -> None:
        csv.keep_entries(found, manager)
        if verbose:
            tell(found)

    try:
        wanted = None if given is None else {job["batch_id"] for job in given}
        keys = [entry.key for entry in manager.entries() if wanted is None or entry.batch_id in wanted]
        found = await manager.wait(keys, told=told, **options)
        wanted_raw = any(entry.include_raw for entry in found) if raw is None else raw
        each = [_results(manager, entry, raw=wanted_raw) for entry in found]
        states = zip(_registry(found, run, folder).to_dicts(), found, each, strict=True)
        segments = [Segment(job, entry.state, entry.message, table) for job, entry, table in states]
        return segments, manager.results(keys)[1], manager.rest(keys)
    finally:
        await manager.aclose()


def _rows(jobs: Any) -> list[Mapping[str, Any]] | None:
    """Jobs as they come: a list of mappings, or the registry as any kind of table."""
    if jobs is None:
        return None
    rows = jobs if isinstance(jobs, list) else list(to_frame(jobs, "jobs").iter_rows(named=True))
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping) or "batch_id" not in row:
            raise InputError(
                f"jobs, row {number}: no batch_id; give those of llm_submit_pairs_multi_batch, or a registry"
            )
    return rows


def _places(
    jobs: Sequence[Mapping[str, Any]] | None,
    output_dir: str | os.PathLike[str] | None,
    run: str | os.PathLike[str] | None,
) -> tuple[Path, Path]:
    """The folder and the run file."""
    if output_dir is None:
        if not jobs:
            raise InputError("say where the batches are: jobs or output_dir")
        if not jobs[0].get("batch_output_path"):
            raise InputError("jobs, row 1: no batch_output_path, which would tell the folder; give output_dir")
        output_dir = Path(str(jobs[0]["batch_output_path"])).parent
    folder = Path(output_dir)
    where = Path(run) if run is not None else folder / "run.db"
    if not where.is_file():
        raise InputError(
            f"{where}: no such run file; give output_dir, or run, as it was when the batches were submitted. Batches "
            "that R submitted are read by download and parse: openai_download_batch_output, parse_openai_batch_output"
        )
    return folder, where


def _combined_path(wanted: str | os.PathLike[str] | None, folder: Path) -> Path:
    path = Path(wanted or "combined_results.csv").expanduser()
    return path if path.is_absolute() or path.parent != Path() else folder / path


def _failures(segments: Sequence[Segment], rest: pl.DataFrame) -> pl.DataFrame:
    left = dict(rest.group_by("batch_id").len().iter_rows())
    rows = [
        {name: segment.job[name] for name in ("segment_index", "provider", "model", "batch_id")}
        | {"status": segment.state, "message": segment.message, "unanswered": left.get(segment.job["batch_id"], 0)}
        for segment in segments
        if segment.state in {"failed", "expired", "cancelled", "dropped"}
    ]
    return pl.DataFrame(rows, schema=_FAILURES)
