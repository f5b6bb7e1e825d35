"""Files of batches: requests, one per line, below what a provider takes; and results, on their way to the run file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.collect.batch import registry
from pairscale.collect.batch.registry import EVENTS, RegistryEntry, event, new_key, pairs_named
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.failures import failure_of
from pairscale.core.files import open_private
from pairscale.core.notices import notice, plural
from pairscale.core.provenance import utc_now
from pairscale.judges.base import JudgePair, Verdict
from pairscale.judges.batched import BatchJudge, calls_of, verdict_of, with_batch_cost
from pairscale.judges.orders import BothOrders, merge_verdicts, swapped
from pairscale.providers.batches import BatchFormat, BatchLimits, Line
from pairscale.runtime import MOST_ALIKE, FailureStreak
from pairscale.store.schema import attempt_columns, comparison_columns
from pairscale.store.writer import Asked, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.store.runfile import RunFile

_TURNED = "r"
_NAME = re.compile(rf"(.*)-([1-9][0-9]{{0,17}})({_TURNED}?)", re.DOTALL)
_CHUNK = 1_000


def custom_id(key: str, pair_id: int, *, turned: bool = False) -> str:
    """A request's name: the batch's key and the pair's number, which mean nothing outside the run file."""
    return f"{key}-{pair_id}{_TURNED if turned else ''}"


def split_id(name: str, key: str) -> tuple[int, bool] | None:
    """The pair's number, and whether the samples were turned; None for a name that this batch did not give."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] != key:
        return None
    return int(match[2]), match[3] == _TURNED


# Requests


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
) -> Iterator[dict[str, Any]]:
    """Write requests into as few files as the provider's limits and ``sizes`` allow; what the registry says of each.

    Args:
        judge: who is asked.
        form: how the provider writes requests.
        questions: the pairs, by their numbers.
        folder: where the files go.
        sizes: how many pairs the first file may have, the second, and so on.
        limits: other limits than the provider's own.

    Raises:
        InputError: when the requests of one pair alone are too large.
    """
    folder.mkdir(parents=True, exist_ok=True)
    limits = limits or form.limits
    part: _Part | None = None
    for pair_id, pair in questions:
        calls = calls_of(judge, pair)
        part = part or _Part(folder, form.endpoint(calls[0]), next(sizes))
        lines = [
            json.dumps(form.line(custom_id(part.key, pair_id, turned=turned), call), ensure_ascii=False)
            for turned, call in zip((False, True), calls, strict=False)
        ]
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        if len(lines) > limits.requests or len(data) > limits.bytes:
            part.file.close()
            Path(part.file.name).unlink()
            raise InputError(f"the request for pair {pair.uid!r} has {len(data):,} bytes, more than a batch may have")
        too_many = part.n_requests + len(lines) > limits.requests or part.bytes + len(data) > limits.bytes
        if too_many or len(part.pair_ids) == part.size:
            yield part.closed()
            full = part
            part = _Part(folder, full.endpoint, next(sizes))
            data = data.replace(full.key.encode(), part.key.encode())  # its own name, which no text holds
        part.file.write(data)
        part.pair_ids.append(pair_id)
        part.n_requests += len(lines)
        part.bytes += len(data)
    if part is not None:
        yield part.closed()


class _Part:
    """One file that is being written."""

    def __init__(self, folder: Path, endpoint: str, size: int) -> None:
        self.key = new_key()
        self.endpoint = endpoint
        self.size = size
        self.pair_ids: list[int] = []
        self.n_requests = 0
        self.bytes = 0
        self._path = folder / f"{self.key}.jsonl"
        self.file = open_private(self._path.with_name(f"{self._path.name}.part"))

    def closed(self) -> dict[str, Any]:
        """What the registry says of the file, which is whole and on the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        Path(self.file.name).replace(self._path)
        return {
            "key": self.key,
            "pair_ids": self.pair_ids,
            "n_requests": self.n_requests,
            "bytes": self.bytes,
            "input_path": str(self._path),
            "output_path": str(self._path.with_name(f"{self.key}.results.jsonl")),
            "endpoint": self.endpoint,
        }


def pairs_from(store: RunFile, numbers: Sequence[int]) -> dict[int, JudgePair]:
    """Pairs as the judge sees them, from the run file, by their numbers and in their order."""
    texts = dict(store.items().select("ID", "text").iter_rows())
    named = pairs_named(store, numbers)
    pairs = {}
    for number in numbers:
        uid, *ids = named[number]
        sides = [{"ID": name, "item_id": name, "text": texts[name]} for name in ids]
        pairs[number] = JudgePair(sides[0], sides[1], uid)
    return pairs


# Results


def read_lines(path: Path, form: BatchFormat) -> Iterator[tuple[int, Line | str]]:
    """The lines of a file of results by their numbers; a text says why one cannot be read."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.strip():
                continue
            try:
                document = json.loads(raw)
                if not isinstance(document, Mapping):
                    raise ValueError("it is no JSON object")
                yield number, form.read(document)
            except (ValueError, OverflowError, RecursionError) as error:
                yield number, f"line {number}: {error}"


def count_results(path: Path, form: BatchFormat, key: str) -> tuple[int, int]:
    """How many requests of a batch a file of results holds, and how many results of other requests."""
    own: set[tuple[int, bool]] = set()
    others = 0
    for _, line in read_lines(path, form):
        if isinstance(line, Line):
            request = split_id(line.custom_id, key)
            if request is None:
                others += 1
            else:
                own.add(request)
    return len(own), others


def ingest_results(store: RunFile, form: BatchFormat, judge: BatchJudge, entry: RegistryEntry) -> JudgeError | None:
    """Enter the results of a batch that has ended into the run file, and say of the rest why there is none.

    Returns:
        That the model answered nothing, and failed in the same way on many questions; None when it did not.
    """
    path = Path(entry.output_path)
    intake = _Intake(store, judge, entry)
    bad: list[str] = []
    if path.is_file():
        for _, line in read_lines(path, form):
            if isinstance(line, str):
                bad.append(line)
            else:
                intake.add(line)
    if bad:
        notice(f"{path}: {plural(len(bad), 'line')} of the results cannot be read: {'; '.join(bad[:3])}")
    failure = intake.finish()
    registry.reached("collected")
    return failure


class _Intake:
    """Takes results as they come, and writes them down a thousand at a time."""

    def __init__(self, store: RunFile, judge: BatchJudge, entry: RegistryEntry) -> None:
        self._store = store
        self._judge = judge
        self._entry = entry
        self._known = store.progress(entry.condition_id)
        self._pairs = pairs_from(store, entry.pair_ids)
        self._done = set(entry.recorded)
        self._waiting: list[Asked] = []
        self._has_answer = False
        self._n_estimated = 0
        self._streak = FailureStreak()
        self._alike: str | None = None  # how the judge itself fails, as it seems
        self._verdicts: dict[int, dict[bool, Verdict]] = {}  # by number and order, of pairs that are asked in both

    def add(self, line: Line) -> None:
        """One result; one that is recorded already, that was not asked for, or that comes twice is left out."""
        request = split_id(line.custom_id, self._entry.key)
        if request is None or request[0] not in self._pairs or request[0] in self._done:
            return
        number, turned = request
        verdict = verdict_of(self._judge, self._pairs[number], line, turned=turned)
        if not isinstance(self._judge, BothOrders):
            self._settle(number, verdict)
            return
        orders = self._verdicts.setdefault(number, {})
        orders.setdefault(turned, verdict)
        if len(orders) == 2:
            self._settle(number, merge_verdicts(orders[False], orders[True]))

    def finish(self) -> JudgeError | None:
        """Say of the pairs without a result why there is none, and that the batch is done with.

        Returns:
            That the judge itself fails: many alike failures, and no answer in the whole batch. What expired or was
            cancelled with its batch is asked again.
        """
        for number in self._entry.pair_ids:
            if number in self._done:
                continue
            orders = self._verdicts.get(number, {})
            verdict = orders.get(False) or self._missing(number)
            if isinstance(self._judge, BothOrders):
                verdict = merge_verdicts(verdict, orders.get(True) or self._missing(number, turned=True))
            self._settle(number, verdict)
        if self._n_estimated:
            notice(
                f"batch {self._entry.batch_id}: what {self._n_estimated:,} of its questions cost is not known, so the "
                "most that they may have cost is counted"
            )
        self._write(event("collected", self._entry.key, collected_at=utc_now()))
        if self._has_answer or self._alike is None:
            return None
        return JudgeError(
            f"{self._judge.provider}:{self._judge.model} answered no question of the batch, and failed in the same "
            f"way on {MOST_ALIKE} or more: {self._alike}. Everything is stored"
        )

    def _missing(self, number: int, *, turned: bool = False) -> Verdict:
        """Why a request has no result."""
        state = self._entry.state
        message = self._entry.message or "the provider does not say why"
        if state == "expired":
            return Verdict.fail("timeout", "the batch expired before this request was worked off", failure="transient")
        if state == "cancelled":
            words = "the batch was cancelled before this request was worked off"
            return Verdict.fail("cancelled", words, failure="transient")
        if state == "failed":
            return Verdict.fail("http_error", f"the batch failed: {message}", failure=failure_of(None, None, message))
        unread = Verdict.fail("parse_error", "the batch's results hold nothing for this request", failure="transient")
        pair = self._pairs[number]
        return with_batch_cost(self._judge, swapped(pair) if turned else pair, unread)

    def _settle(self, number: int, verdict: Verdict) -> None:
        self._done.add(number)
        pair = self._pairs[number]
        self._has_answer = self._has_answer or verdict.outcome.is_answer
        self._n_estimated += verdict.cost_is_estimate
        if verdict.failure != "transient" and self._streak.count(verdict, pair.first["ID"], pair.second["ID"]):
            self._alike = self._alike or verdict.error_message
        asked_at = self._entry.created_at or self._entry.prepared_at
        values = attempt_columns(verdict, self._known.attempts.get(number, 0) + 1, asked_at)
        comparison = None
        if number not in self._known.answered and verdict.error_code != "cancelled":
            comparison = comparison_columns(verdict, pair.first["ID"], pair.second["ID"])
        replaces = number in self._known.failed
        self._waiting.append(Asked(self._entry.condition_id, (values,), comparison, number, replaces=replaces))
        if len(self._waiting) >= _CHUNK:
            self._write()

    def _write(self, *more: Mapping[str, Any]) -> None:
        """The answers, and that they are in, in one transaction."""
        answers = self._waiting
        self._waiting = []
        recorded = event("recorded", self._entry.key, pairs=[answer.pair_id for answer in answers])
        rows = [(EVENTS, row) for row in (recorded, *more)]
        self._store.writer.commit([*(Entry(answer) for answer in answers), Entry(rows=rows)])
        registry.reached("recorded")
