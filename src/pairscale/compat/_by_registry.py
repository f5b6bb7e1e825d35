"""Batches that nothing but a registry knows of: the R package submitted them, or their run file is not here.

The columns of the manual suffice to look at them, to download them and to read their results. What was asked is not
among them, so there are tables of results, but no run file that could ask the rest again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.collect.batch.files import read_lines
from pairscale.collect.batch.registry import REST, here
from pairscale.compat.batch_calls import write_inline
from pairscale.compat.batch_parse import read_output
from pairscale.core.errors import FileFormatError, InputError, JudgeError
from pairscale.core.failures import Failure, failure_of
from pairscale.core.files import read_table
from pairscale.core.notices import notice
from pairscale.core.tables import FAILED, RESULTS, listed, result_columns
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import BatchJob, Line, batch_format
from pairscale.providers.catalog import provider_named
from pairscale.providers.client import LLMClient, ProviderError

_NEEDED = ("provider", "model", "batch_id", "batch_output_path")
_READ = {**RESULTS, "result_type": pl.String(), "raw_response": pl.String()}
_CODES = {"expired": "timeout", "canceled": "cancelled"}
_FAILED: dict[str, pl.DataType] = {
    **dict.fromkeys(("custom_id", "ID1", "ID2"), pl.String()),
    **FAILED,
    "condition_id": pl.String(),
}


@dataclass(slots=True)
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


def read_registry(source: Path | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a registry, as this package or the R package writes it.

    Raises:
        InputError: a row does not say which batch it is.
    """
    given: Sequence[Mapping[str, Any]]
    if isinstance(source, Path):
        named, given = f"{source}, ", read_table(source, text=("batch_id", "model", "provider", "done")).to_dicts()
    else:
        named, given = "jobs, ", source
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(given, start=1):
        if missing := [name for name in _NEEDED if not row.get(name)]:
            raise InputError(f"{named}row {number}: no {', '.join(missing)}, so this batch cannot be found")
        done = str(row.get("done")).lower() == "true"
        rows.append({"segment_index": number, "pairs_path": None} | dict(row) | {"done": done})
    return rows


async def follow(
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
    *,
    tags: tuple[str, str],
    interval: float,
    delay: float,
    timeout: float | None,
    rounds: float,
    retries: int,
    api_key: str | None,
    verbose: bool,
    raw: bool | None = False,
    taken: Callable[[Segment], None],
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Segment], pl.DataFrame, pl.DataFrame]:
    """Look at batches until all have ended, download and read them.

    A batch that its provider does not know is not waited for; the next call asks about it again.

    Args:
        rows: Rows of the registry.
        folder: where files go whose own folder is not on this machine.
        tags: what stands before and behind an answer.
        interval: seconds between two looks at all.
        delay: seconds between two batches of one look.
        timeout: seconds to wait in all.
        rounds: how often to look.
        retries: how often to try again what may pass.
        api_key: The API key; by default those of the environment.
        verbose: Report the state of the batches in notices.
        raw: add ``raw_response`` to the results.
        taken: called after each look with every batch whose results are there.
        sleep: how to wait.
        clock: tells the time, in seconds.

    Returns:
        The batches, every result without an answer, and the same as a table of the rest.
    """
    batches = [_Batch(dict(row), folder, tags, raw=bool(raw)) for row in rows]
    connections = {name: _http(name, api_key, retries) for name in dict.fromkeys(str(row["provider"]) for row in rows)}
    end, turn = None if timeout is None else clock() + timeout, 0
    try:
        while True:
            for number, batch in enumerate(waiting := [batch for batch in batches if batch.table is None]):
                if number and delay:
                    await sleep(delay)
                await batch.look(connections[batch.provider])
                if verbose:
                    notice(f"batch {batch.batch_id}: {batch.state}")
            for batch in batches:
                if batch.table is not None:
                    taken(batch.segment())
            turn += 1
            late = end is not None and clock() >= end
            if late or turn >= rounds or all(batch.table is not None or batch.state == "unknown" for batch in waiting):
                break
            await sleep(interval)
    finally:
        for http in connections.values():
            await http.aclose()
    failed = [batch.failed() for batch in batches]
    return (
        [batch.segment() for batch in batches],
        pl.concat([table.select(*_FAILED) for table in failed]) if failed else pl.DataFrame(schema=_FAILED),
        pl.concat([table.select(*REST) for table in failed]) if failed else pl.DataFrame(schema=REST),
    )


def _http(provider: str, api_key: str | None, retries: int) -> BatchHTTP:
    batch_format(provider)  # says which providers have batches
    return BatchHTTP(LLMClient(provider_named(provider), api_key=api_key), retries=retries)


class _Batch:
    """One row of a registry, and what came of it."""

    def __init__(self, row: dict[str, Any], folder: Path, tags: tuple[str, str], *, raw: bool) -> None:
        self.row, self._tags, self._raw = row, tags, raw
        self.provider, self.batch_id = str(row["provider"]), str(row["batch_id"])
        self.state: str = "not looked at"
        self.message: str | None = None
        self._input, self._output = (
            _here(row.get(f"batch_{kind}_path"), folder) or folder / f"batch_{self.batch_id}_{kind}.jsonl"
            for kind in ("input", "output")
        )
        self._pairs = _here(row.get("pairs_path"), folder)
        self.table: pl.DataFrame | None = None
        row |= {"batch_input_path": str(self._input), "batch_output_path": str(self._output)}
        row["csv_path"] = str(_here(row.get("csv_path"), folder) or self._output.with_suffix(".csv"))
        if row["done"] and self._output.is_file():
            self.state = "done"
            self._read()

    async def look(self, http: BatchHTTP) -> None:
        """Ask where it stands, and take the results when it has ended."""
        form = batch_format(self.provider)
        try:
            job = await form.get(http, self.batch_id)
            if job.ended:
                await self._download(http, job)
                self._read()
            self.state, self.message = job.state, job.message
        except ProviderError as error:
            if error.status == 404:  # so they say of a batch of another project, too
                self.message = f"{self.provider} does not know the batch; is this the key of the project it is of?"
                if self.state != "unknown":
                    notice(f"batch {self.batch_id}: {self.message}")
                self.state = "unknown"
            elif error.failure == "judge":
                raise JudgeError(error.message) from None
            else:
                notice(f"batch {self.batch_id}: {error.message}; it is asked again later")

    async def _download(self, http: BatchHTTP, job: BatchJob) -> None:
        if self.provider == "gemini" and not job.outputs and (names := self._names()):
            write_inline(job.raw, names, self._output)  # the R package's requests carry no names of their own
        elif job.outputs or job.state != "failed":
            form = batch_format(self.provider)
            await form.download(http, job, self._output)
            if job.succeeded != 0 and not any(isinstance(line, Line) for _, line in read_lines(self._output, form)):
                self._output.unlink()
                words = f"{self.provider}: what it gives as the results holds none"
                raise ProviderError("parse_error", words, failure="transient")

    def _document(self) -> list[Mapping[str, Any]]:
        """The requests as the R package wrote them into one document; none when the file is not of that kind."""
        try:
            found = json.loads(self._input.read_bytes())
        except (OSError, ValueError):
            return []
        rows = found.get("requests") if isinstance(found, Mapping) else None
        return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []

    def _names(self) -> list[str]:
        return [str(row["custom_id"]) for row in self._document() if row.get("custom_id")]

    def _requests(self) -> pl.DataFrame | None:
        """``custom_id ID1 ID2``, where a file says so; else the names of the requests have to."""
        columns = ("custom_id", "ID1", "ID2")
        rows = [row for row in self._document() if all(row.get(name) for name in columns)]
        if rows:
            return pl.DataFrame([{name: str(row[name]) for name in columns} for row in rows])
        if self._pairs is None or not self._pairs.is_file() or self._pairs.suffix == ".rds":
            return None
        pairs = read_table(self._pairs, text=columns)
        return pairs.select(columns) if set(columns) <= set(pairs.columns) else None

    def _read(self) -> None:
        """The table of the results; an empty one when there are none."""
        self.row["done"] = True
        known, empty = self._requests(), pl.DataFrame(schema=_READ)
        try:
            found, nameless = read_output(self.provider, self._output, known, self._tags, raw=True)
        except FileFormatError:
            found, nameless = empty.clear(), []
        self.table = pl.concat([empty, found.select(pl.col(set(found.columns) & set(empty.columns)))], how="diagonal")
        if nameless:
            notice(
                f"batch {self.batch_id}: the names {listed(nameless, 2)} do not say which two samples they "
                f"are of; keep {self._input.name}, or write custom_id ID1 ID2 to a CSV file and name it in pairs_path"
            )

    def segment(self) -> Segment:
        """What is known of it now."""
        table = pl.DataFrame(schema=_READ) if self.table is None else self.table
        judge = pl.lit(f"{self.provider}:{self.row['model']}")
        outcome = pl.when(pl.col("better_id").is_not_null()).then(pl.lit("win")).otherwise(pl.lit("error"))
        table = table.with_columns(outcome=outcome, judge_id=judge)
        return Segment(self.row, self.state, self.message, table.select(*result_columns(raw=self._raw)))

    def failed(self) -> pl.DataFrame:
        """The results without an answer, in the columns of both tables of those."""
        table = pl.DataFrame(schema=_READ) if self.table is None else self.table
        code = pl.col("result_type").replace_strict(_CODES, default=None)
        plain = pl.when(pl.col("status_code") == 200).then(pl.lit("parse_error")).otherwise(pl.lit("http_error"))
        none = pl.lit(None, pl.String)
        rows = table.filter(pl.col("better_id").is_null())
        read = rows.select("result_type", "status_code", "error_message").iter_rows()
        return rows.with_columns(
            pl.Series("failure", [_failure(*row) for row in read], pl.String),
            error_code=pl.coalesce(code, plain), attempt=pl.lit(1, pl.Int64), attempted_at=none, key=none,
            outcome=pl.lit("error"), batch_id=pl.lit(self.batch_id), state=pl.lit(self.state),
        )  # fmt: skip


def _failure(result_type: str | None, status: int | None, message: str | None) -> Failure:
    """The kind of failure of a line without an answer; a reply that cannot be read has the status of success."""
    if result_type in _CODES:
        return "transient"
    return "question" if status is not None and 200 <= status < 300 else failure_of(status, None, message or "")


def _here(path: Any, folder: Path) -> Path | None:
    return here(str(path), folder) if path else None
