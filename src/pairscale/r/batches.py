"""The manual's batches of one provider: their requests, the single calls of its API, and the pipeline through it all.

Each function takes the provider as its ``backend``; :mod:`pairscale.r.manual` makes the manual's functions of them.
"""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from pairscale.collect.batch.files import requests_of
from pairscale.collect.batch.manager import BatchManager
from pairscale.collect.batch.registry import RegistryEntry, pairs_named
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, JudgeError, TableError
from pairscale.core.files import replacing, write_table
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath, checked, require_number
from pairscale.core.tables import ANSWER_COLUMNS, Table, listed, to_frame
from pairscale.judges.base import JudgePair
from pairscale.judges.batched import calls_of
from pairscale.pairing.table import as_pairs
from pairscale.providers.base import Fields, JsonObject
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import batch_format
from pairscale.providers.catalog import provider_named
from pairscale.providers.client import LLMClient, ProviderError
from pairscale.providers.openai import OpenAIBatches
from pairscale.r.settings import judge_from, taken
from pairscale.r.tables import PREFIXES, batch_table, n_answered, named_as_in_r
from pairscale.runtime import run_sync
from pairscale.store.runfile import open_run

T = TypeVar("T")
_COLUMNS = {
    "openai": ("custom_id", "method", "url", "body"),
    "anthropic": ("custom_id", "params"),
    "gemini": ("custom_id", "ID1", "ID2", "request"),
}
"""The manual's columns of requests; the last one holds the request's body."""


# Requests


def build_requests(backend: str, pairs: Table, model: str, prefix: str, **settings: Any) -> pl.DataFrame:
    """Every pair with its name and the call that live judging would make, as the provider writes it."""
    settings["api_key"] = settings.get("api_key") or "not-needed-here"
    judge = judge_from(backend, model, **settings)
    frame = as_pairs(pairs)
    names = pl.format("{}_{}_vs_{}", pl.lit(prefix), "ID1", "ID2")
    if "pair_uid" in frame.columns:
        names = pl.col("pair_uid").cast(pl.String)
    frame = frame.with_columns(custom_id=names)
    twice = frame.filter(pl.col("custom_id").is_duplicated())["custom_id"]
    if len(twice):
        raise InputError(f"pairs: {listed(sorted({*twice}))} names two requests; give a column pair_uid")
    form = batch_format(backend)
    rows = []
    for row in frame.iter_rows(named=True):
        pair = JudgePair({"ID": row["ID1"], "text": row["text1"]}, {"ID": row["ID2"], "text": row["text2"]}, "")
        rows.append(row | form.line(row["custom_id"], calls_of(judge, pair)[0]))
    *texts, body = _COLUMNS[backend]
    return pl.DataFrame(rows, schema=dict.fromkeys(texts, pl.String()) | {body: pl.Object()})


@checked
def write_openai_batch_file(batch_tbl: Table, path: FilePath) -> Path:
    """Write requests into the file that OpenAI takes, one JSON object a line.

    Args:
        batch_tbl: A column ``jsonl`` of lines, or ``custom_id method url body``.
        path: The file.

    Returns:
        The file.

    Example:
        >>> from pairscale.r import build_openai_batch_requests
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> write_openai_batch_file(build_openai_batch_requests(pair, "gpt-4.1"), "requests.jsonl").name
        'requests.jsonl'
    """
    lines = (row.get("jsonl") or _as_line(_required(row, "openai")) for row in _rows(batch_tbl))
    return _copied("".join(f"{line}\n" for line in lines), path)


def _rows(table: Table) -> Sequence[JsonObject]:
    """The rows of a table; a list of them as it is, since a table would fill up what its requests leave out."""
    if isinstance(table, list | tuple):
        return table
    return to_frame(table, "requests").to_dicts()


def _required(row: JsonObject, backend: str) -> Fields:
    """What a request of OpenAI or Anthropic consists of."""
    try:
        return {name: row[name] for name in _COLUMNS[backend]}
    except KeyError as error:
        raise TableError(f"requests: no column {error}") from None


def _as_line(content: Fields) -> str:
    return json.dumps(content, ensure_ascii=False)


# Single calls


def _call(backend: str, api_key: str | None, work: Callable[[BatchHTTP], Coroutine[Any, Any, T]], **version: Any) -> T:
    """Do something with a provider, and close the connection."""
    own = {"anthropic_version": "version"}
    provider = provider_named(backend, **{own.get(name, name): value for name, value in version.items()})

    async def main() -> T:
        http = BatchHTTP(LLMClient(provider, api_key=api_key or None))
        try:
            return await work(http)
        except ProviderError as error:
            raise JudgeError(error.message) from None
        finally:
            await http.aclose()

    return run_sync(main)


def upload_file(backend: str, path: FilePath, purpose: str, api_key: str | None) -> JsonObject:
    """Upload a file of requests."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file to upload")
    return _call(backend, api_key, lambda http: OpenAIBatches().upload_file(http, Path(path), purpose=purpose))


def create_from_file(backend: str, metadata: Mapping[str, str] | None, api_key: str | None, **body: str) -> JsonObject:
    """Create a batch from an uploaded file."""
    document = body | ({"metadata": dict(metadata)} if metadata else {})
    return _call(backend, api_key, lambda http: http.json("POST", "/batches", document, again=False))


def create_batch(
    backend: str,
    requests: Iterable[JsonObject] | pl.DataFrame,
    model: str = "",
    api_key: str | None = None,
    display_name: str | None = None,
    **version: Any,
) -> JsonObject:
    """Create a batch whose requests go with the creation; the batch."""
    path = "/v1/messages/batches"
    if backend == "anthropic":
        body: Any = {"requests": [_required(row, backend) for row in _rows(requests)]}
    else:
        path = f"/{version.get('api_version')}/models/{model.removeprefix('models/')}:batchGenerateContent"
        inline = [
            {"request": row.get("request") or row, "metadata": {"key": row.get("custom_id") or f"request-{number}"}}
            for number, row in enumerate(_rows(requests))
        ]
        named = {"displayName": display_name or "pairscale", "inputConfig": {"requests": {"requests": inline}}}
        body = {"batch": named}
    return _call(backend, api_key, lambda http: http.json("POST", path, body, again=False), **version)


def poll_batch(
    backend: str,
    batch_id: str,
    interval_seconds: float = 0.0,
    timeout_seconds: float = 0.0,
    max_attempts: float = math.inf,
    api_key: str | None = None,
    verbose: bool = False,
    **version: Any,
) -> JsonObject:
    """Look at a batch once, or until it has ended, the time is over, or the number of looks is reached."""
    interval = require_number(interval_seconds, "interval_seconds", least=0)
    timeout = require_number(timeout_seconds, "timeout_seconds", least=0, infinite=True)

    async def work(http: BatchHTTP) -> JsonObject:
        end = time.monotonic() + timeout
        looks = 0
        while True:
            job = await batch_format(backend).get(http, batch_id)
            looks += 1
            if verbose:
                notice(f"batch {batch_id}: {job.state}")
            left = end - time.monotonic()
            if job.ended or looks >= max_attempts or left <= 0:
                return job.raw
            await asyncio.sleep(min(interval, left))

    return _call(backend, api_key, work, **version)


def download_batch(
    backend: str,
    batch_id: JsonObject | str,
    path: FilePath,
    api_key: str | None = None,
    requests_tbl: Table | None = None,
    **version: Any,
) -> Path:
    """Write everything that came of a batch into one file; requests without a name get that of ``requests_tbl``."""
    target = Path(path)

    async def work(http: BatchHTTP) -> None:
        name = batch_id if isinstance(batch_id, str) else batch_id["name"]
        job = await batch_format(backend).get(http, name)
        if not job.ended or (job.state == "failed" and not job.outputs):
            raise JudgeError(f"batch {job.id} is {job.state} and has no results to download")
        await batch_format(backend).download(http, job, target)

    _call(backend, api_key, work, **version)
    if requests_tbl is not None:
        names = {f"request-{number}": row["custom_id"] for number, row in enumerate(_rows(requests_tbl))}
        lines = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
        named = (line | {"custom_id": names.get(line["custom_id"], line["custom_id"])} for line in lines)
        target.write_text("".join(f"{_as_line(line)}\n" for line in named), "utf-8")
    return target


# Pipelines


@dataclass(frozen=True, slots=True, repr=False)
class BatchResult(ReprMixin, table="results", columns=ANSWER_COLUMNS):
    """The results of pairs that were submitted in batches.

    Attributes:
        backend: The provider.
        batch_input_path: The file of requests; of the first batch when there are several.
        batch_output_path: The file of results; None until there is one.
        file: The uploaded file, where the provider has files.
        batch: The batch as the provider describes it.
        results: One row per pair; one that failed says why in ``error_message``. None if the end was not waited for.
        failed_attempts: Every attempt without an answer.
        run: The run file, from which everything can be taken up again.
        batch_ids: The provider's names of all batches.
    """

    backend: str
    batch_input_path: Path | None
    batch_output_path: Path | None
    file: JsonObject | None
    batch: JsonObject
    results: pl.DataFrame | None
    failed_attempts: pl.DataFrame
    run: FilePath
    batch_ids: Sequence[str] = ()

    def __str__(self) -> str:
        answered = "not waited for"
        if self.results is not None:
            answered = f"{plural(n_answered(self.results), 'pair')} answered"
        return f"{plural(len(self.batch_ids), 'batch', 'batches')} of {self.backend}, {answered}, in {self.run}"


def run_pipeline(
    backend: str,
    pairs: Table,
    model: str | None,
    *,
    batch_input_path: FilePath | None = None,
    batch_output_path: FilePath | None = None,
    poll: bool = True,
    interval_seconds: float = 60.0,
    timeout_seconds: float = 86_400.0,
    max_attempts: float = math.inf,
    verbose: bool = True,
    include_raw: bool = False,
    run: FilePath | None = None,
    **settings: Any,
) -> BatchResult:
    """Have pairs judged in batches of a provider: build, upload, create, wait, download, read."""
    copies = {"batch_input_path": batch_input_path, "batch_output_path": batch_output_path}
    for name, copy in copies.items():  # before anything is paid for
        if copy is not None and (Path(copy).is_dir() or not Path(copy).absolute().parent.is_dir()):
            raise InputError(f"{name}: {copy} is not a file in a folder that exists; name one")
    submission = taken(settings, "metadata batch_size n_segments max_cost")
    backend = backend.lower()
    batch_format(backend)  # says which providers have batches
    judge = judge_from(backend, model, **settings)
    where = Path(tempfile.mkdtemp(prefix="pairscale-batch-")) / "run.db" if run is None else run

    manager = BatchManager(where)

    async def main() -> tuple[list[str], list[RegistryEntry], JsonObject]:
        async with manager:
            plan, made = await manager.submit(pairs, judge, include_raw=include_raw, **submission)
            keys = [entry.key for entry in manager.entries() if entry.condition_id == plan.condition_id]
            if poll:
                told = tell if verbose else None
                await manager.wait(
                    keys, on_look=told, interval=interval_seconds, timeout=timeout_seconds, rounds=max_attempts
                )
            entries = manager.entries([entry.key for entry in made] or keys)
            batch: JsonObject = {}
            if entries:
                batch = (await batch_format(backend).get(BatchHTTP(judge.client), str(entries[0].batch_id))).raw
            return keys, entries, batch

    keys, entries, batch = run_sync(main, run=where if run is not None else f"{where} (pass this file as `run=`)")
    file = source = output = results = None
    if entries:
        source, output = _files(backend, entries[0], where, batch_input_path, batch_output_path)
        if entries[0].file_id is not None:
            file = {"id": entries[0].file_id}
    answered, failed = manager.results(keys, raw=True)
    if poll:
        results = batch_table(answered, failed, backend, model, raw=include_raw)
    return BatchResult(
        backend, source, output, file, batch, results, named_as_in_r(failed, PREFIXES[backend]), where,
        [entry.batch_id for entry in entries if entry.batch_id is not None],
    )  # fmt: skip


def tell(found: Sequence[RegistryEntry]) -> None:
    """Say in notices how the batches stand that are under way."""
    for entry in found:
        if entry.open:
            notice(f"batch {entry.batch_id}: {entry.state}")


def _files(
    backend: str,
    entry: RegistryEntry,
    run: FilePath,
    input_path: FilePath | None,
    output_path: FilePath | None,
) -> tuple[Path | None, Path | None]:
    """A batch's files, under the names that were asked for; the pairs of the results are written beside them."""
    source = Path(entry.input_path)
    output = Path(entry.output_path)
    is_document = backend in ("anthropic", "gemini")  # one JSON document in the manual, where others are JSON Lines
    if input_path is None and is_document:
        input_path = source.with_suffix(".json")
    if input_path is not None and source.is_file():
        text = source.read_text("utf-8")
        if is_document:
            text = '{{"requests": [\n{}\n]}}\n'.format(",\n".join(text.splitlines()))
        source = _copied(text, input_path)
    if not output.is_file():
        return source, None
    if output_path is not None:
        output = _copied(output.read_text("utf-8"), output_path)
    write_pairs(run, entry, output)
    return source, output


def _copied(text: str, path: FilePath) -> Path:
    """A file that only its owner can read."""
    with replacing(Path(path), private=True) as temporary:
        temporary.write_text(text, "utf-8")
    return Path(path)


def write_pairs(run: FilePath, entry: RegistryEntry, results: Path) -> Path:
    """Write ``custom_id ID1 ID2`` of a batch beside its results, so that they can be read alone."""
    path = pairs_beside(results)
    if path.is_file():
        return path
    with open_run(run) as store:
        named = pairs_named(store)
    rows = []
    for name, (number, is_turned) in requests_of(entry).items():
        _, *ids = named[number]
        if is_turned:
            ids.reverse()
        rows.append((name, *ids))
    write_table(pl.DataFrame(rows, schema=["custom_id", "ID1", "ID2"], orient="row"), path)
    return path


def pairs_beside(results: Path) -> Path:
    """The file that says of which pairs the results of a batch of ours are; its requests have names without ids."""
    return results.with_suffix(".pairs.csv")


def llm_download_batch_results(x: Any) -> pl.DataFrame:
    """The results of :func:`llm_submit_pairs_batch`, when their end was waited for.

    Args:
        x: What it returned, or a mapping with ``results``.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> from pairscale.r import llm_submit_pairs_batch
        >>> done = llm_submit_pairs_batch(pair, "openai", "gpt-4.1", interval_seconds=0.01)
        >>> llm_download_batch_results(done)["better_id"].to_list()
        ['b']
    """
    results: pl.DataFrame | None = x.get("results") if isinstance(x, Mapping) else getattr(x, "results", None)
    if results is None:
        raise InputError(
            "there are no results in this: give what llm_submit_pairs_batch returned; of batches that were not waited "
            "for (poll=False), pairscale.batch.collect(x.run) takes in what is there"
        )
    return results
