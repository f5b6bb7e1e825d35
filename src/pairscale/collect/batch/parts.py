"""Files of requests: the same calls as live judging makes, one per line, split below what a provider takes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pairscale.collect.batch.registry import Half, RegistryEntry, event, new_key, pairs_named
from pairscale.core.errors import InputError
from pairscale.core.files import open_private
from pairscale.judges.base import JudgePair
from pairscale.judges.batched import BatchJudge, calls_of, max_batch_cost
from pairscale.providers.batches import BatchFormat, BatchLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.providers.base import HTTPCall
    from pairscale.store.runfile import RunFile

_TURNED = "r"
_NAME = re.compile(rf"(.*)-([1-9][0-9]{{0,17}})({_TURNED}?)", re.DOTALL)
_KEY = re.compile("ps[0-9a-f]{20}")


@dataclass(frozen=True, slots=True)
class BatchPart:
    """One file of requests.

    Attributes:
        key: the name that its batch will have.
        path: the file.
        pair_ids: the pairs in it.
        n_requests: its lines.
        bytes: its size.
        endpoint: where the requests go.
    """

    key: str
    path: Path
    pair_ids: list[int]
    n_requests: int
    bytes: int
    endpoint: str


def custom_id(key: str, pair_id: int, *, turned: bool = False) -> str:
    """A request's name: the batch's key and the pair's number, which mean nothing outside the run file."""
    return f"{key}-{pair_id}{_TURNED if turned else ''}"


def split_id(name: str, key: str) -> tuple[int, bool] | None:
    """The pair's number, and whether the samples were turned; None for a name that this batch did not give."""
    found = _NAME.fullmatch(name)
    if found is None or found[1] != key:
        return None
    return int(found[2]), found[3] == _TURNED


def own_name(name: str) -> tuple[str, int, bool] | None:
    """The batch's key, the pair's number and whether the samples were turned; None for a name that is not ours."""
    found = _NAME.fullmatch(name)
    if found is None or not _KEY.fullmatch(found[1]):
        return None
    return found[1], int(found[2]), found[3] == _TURNED


def even_sizes(count: int, parts: int) -> Iterator[int]:
    """The sizes of this many parts, as even as can be, the larger ones first; what is left over is divided likewise."""
    least, more = divmod(count, parts)
    return chain([least + 1] * more, repeat(max(1, least)))


def write_parts(
    judge: BatchJudge,
    form: BatchFormat,
    questions: Iterable[tuple[int, JudgePair]],
    folder: Path,
    sizes: Iterator[int],
    limits: BatchLimits | None = None,
    halves: Mapping[int, Half] = MappingProxyType({}),
) -> Iterator[BatchPart]:
    """Write requests into as few files as the provider's limits and ``sizes`` allow.

    Args:
        judge: who is asked.
        form: how the provider writes requests.
        questions: the pairs, by their numbers.
        folder: where the files go.
        sizes: how many pairs the first file may have, the second, and so on.
        limits: other limits than the provider's own.
        halves: the pairs of which one order is answered, so that only the other is asked.

    Raises:
        InputError: when the requests of one pair alone are too large.
    """
    folder.mkdir(parents=True, exist_ok=True)
    limits = limits or form.limits
    writer: _PartWriter | None = None
    try:
        for pair_id, pair in questions:
            calls = calls_of(judge, pair)
            writer = writer or _PartWriter(folder, form.endpoint(calls[0]), next(sizes))
            half = halves.get(pair_id)
            lines, size = _lines(form, writer.key, pair_id, calls, half)
            if len(lines) > limits.requests or size > limits.bytes:
                raise InputError(f"the request for pair {pair.uid!r} has {size:,} bytes, more than a batch may have")
            full = writer.n_requests + len(lines) > limits.requests or writer.bytes + size > limits.bytes
            if full or len(writer.pair_ids) == writer.most:
                yield writer.closed()
                writer = _PartWriter(folder, writer.endpoint, next(sizes))
                lines, size = _lines(form, writer.key, pair_id, calls, half)  # under the name of the new batch
            writer.add(pair_id, lines, size)
        if writer is not None and writer.pair_ids:
            yield writer.closed()
    finally:
        if writer is not None:
            writer.dropped()


def _lines(
    form: BatchFormat, key: str, pair_id: int, calls: Sequence[HTTPCall], half: Half | None
) -> tuple[list[bytes], int]:
    """The requests of one pair as lines, without the order that is answered, and their size with their ends."""
    asked = [(bool(n), call) for n, call in enumerate(calls) if half is None or half.turned != bool(n)]
    documents = [form.line(custom_id(key, pair_id, turned=turned), call) for turned, call in asked]
    lines = [json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") for document in documents]
    return lines, sum(len(line) + 1 for line in lines)


class _PartWriter:
    """One file that is being written."""

    def __init__(self, folder: Path, endpoint: str, most: int, key: str | None = None) -> None:
        self.key, self.endpoint, self.most = key or new_key(), endpoint, most
        self.pair_ids: list[int] = []
        self.n_requests = self.bytes = 0
        self._path = folder / f"{self.key}.jsonl"
        self._file = open_private(self._path.with_name(f"{self._path.name}.part"))

    def add(self, pair_id: int, lines: Sequence[bytes], size: int) -> None:
        """Add the requests of one pair."""
        self._file.writelines(line + b"\n" for line in lines)
        self.pair_ids.append(pair_id)
        self.n_requests += len(lines)
        self.bytes += size

    def closed(self) -> BatchPart:
        """The file, whole and on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        Path(self._file.name).replace(self._path)
        return BatchPart(self.key, self._path, self.pair_ids, self.n_requests, self.bytes, self.endpoint)

    def dropped(self) -> None:
        """Give up what is not whole; nothing when it is."""
        if not self._file.closed:
            self._file.close()
            Path(self._file.name).unlink()


def write_again(
    judge: BatchJudge, form: BatchFormat, entry: RegistryEntry, store: RunFile, halves: Mapping[int, Half]
) -> None:
    """Make the file of a batch again when it does not exist, or not whole: another machine, an emptied folder."""
    path = Path(entry.input_path)
    if path.is_file() and path.stat().st_size == entry.bytes:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = _PartWriter(path.parent, entry.endpoint, len(entry.pair_ids), entry.key)
    try:
        for pair_id, pair in pairs_from(store, entry.pair_ids):
            writer.add(pair_id, *_lines(form, entry.key, pair_id, calls_of(judge, pair), halves.get(pair_id)))
        writer.closed()
    finally:
        writer.dropped()


def prepared(
    part: BatchPart, judge: BatchJudge, condition_id: str, *, segment: int, metadata: Mapping[str, str] | None
) -> dict[str, Any]:
    """The event that a file of requests is written, and is a batch to be."""
    return event(
        "prepared",
        part.key,
        provider=judge.provider,
        model=judge.model,
        condition_id=condition_id,
        segment=segment,
        pair_ids=part.pair_ids,
        n_requests=part.n_requests,
        bytes=part.bytes,
        input_path=str(part.path),
        output_path=str(part.path.with_name(f"{part.key}.results.jsonl")),
        endpoint=part.endpoint,
        metadata=dict(metadata or {}),
        max_cost=max_batch_cost(judge, part.bytes, part.n_requests),
    )


def remove_files(entry: RegistryEntry) -> None:
    """Delete the files of requests and results of a batch whose results are in the run file."""
    for path in (entry.input_path, entry.output_path):
        Path(path).unlink(missing_ok=True)


def pairs_from(store: RunFile, numbers: Sequence[int]) -> Iterator[tuple[int, JudgePair]]:
    """Pairs as the judge sees them, from the run file, in the order of their numbers here."""
    texts = dict(store.items().select("ID", "text").iter_rows())
    named = pairs_named(store, numbers)
    for number in numbers:
        uid, first, second = named[number]
        yield number, JudgePair(item_of(first, texts), item_of(second, texts), uid)


def item_of(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    """A text as the judge sees it."""
    return {"ID": name, "item_id": name, "text": texts[name]}
