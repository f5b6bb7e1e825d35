"""Files of batches: requests, one per line, below what a provider takes; and results, on their way to the run file."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from pairscale.collect.batch.registry import EVENTS, RegistryEntry, event, pairs_named
from pairscale.core.errors import InputError
from pairscale.core.failures import failure_of
from pairscale.core.files import open_private
from pairscale.core.notices import notice, plural
from pairscale.core.provenance import utc_now
from pairscale.core.tables import Row, Values
from pairscale.judges.base import JudgePair, Verdict
from pairscale.judges.batched import BatchJudge, calls_of, verdict_of_line, with_batch_cost
from pairscale.judges.orders import BothOrders, merge_verdicts, swapped
from pairscale.providers.batches import BatchFormat, Line
from pairscale.store.schema import attempt_columns, comparison_columns
from pairscale.store.writer import Asked, Entry

if TYPE_CHECKING:
    from pairscale.providers.base import HTTPCall
    from pairscale.store.runfile import RunFile

_CHUNK = 1_000


def custom_id(key: str, pair_id: int, *, turned: bool = False) -> str:
    """A request's name: the batch's key and the pair's number, which mean nothing outside the run file."""
    return f"{key}-{pair_id}{'r' * turned}"


def requests_of(entry: RegistryEntry) -> dict[str, tuple[int, bool]]:
    """The requests of a batch by their names: the pair's number, and whether its samples were turned."""
    orders = (False,) if entry.n_requests == len(entry.pair_ids) else (False, True)
    return {
        custom_id(entry.key, number, turned=turned): (number, turned) for number in entry.pair_ids for turned in orders
    }


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
) -> Iterator[Values]:
    """Write requests into as few files as the provider's limits and ``sizes`` allow; yields the entry of each.

    Args:
        judge: who is asked.
        form: how the provider writes requests.
        questions: the pairs, by their numbers.
        folder: where the files go.
        sizes: how many pairs the first file may have, the second, and so on.

    Raises:
        InputError: when the requests of one pair alone are too large.
    """
    folder.mkdir(parents=True, exist_ok=True)
    part: _Part | None = None
    for pair_id, pair in questions:
        calls = calls_of(judge, pair)
        if part is not None and part.add(pair_id, calls):
            continue
        if part is not None:
            yield part.closed()
        part = _Part(folder, form, form.endpoint(calls[0]), next(sizes))
        if not part.add(pair_id, calls):
            part.file.close()
            part.path.unlink()
            raise InputError(f"the request for pair {pair.uid!r} has more bytes than a batch may have")
    if part is not None:
        yield part.closed()


class _Part:
    """One file of requests that is being written; it counts only once the registry names it."""

    def __init__(self, folder: Path, form: BatchFormat, endpoint: str, size: int) -> None:
        self.key = f"ps{secrets.token_hex(10)}"  # letters and digits, which every provider takes
        self.path = folder / f"{self.key}.jsonl"
        self.file = open_private(self.path)
        self._form = form
        self._endpoint = endpoint
        self._size = size
        self._pair_ids: list[int] = []
        self._n_requests = 0

    def add(self, pair_id: int, calls: Sequence[HTTPCall]) -> bool:
        """Write the requests of a pair, in one order or both; False when there is no room for them."""
        lines = b""
        for turned, call in enumerate(calls):
            document = self._form.line(custom_id(self.key, pair_id, turned=bool(turned)), call)
            lines += f"{json.dumps(document, ensure_ascii=False)}\n".encode("utf-8", "replace")
        n_requests = self._n_requests + len(calls)
        n_bytes = self.file.tell() + len(lines)
        limits = self._form.limits
        if len(self._pair_ids) == self._size or n_requests > limits.requests or n_bytes > limits.bytes:
            return False
        self.file.write(lines)
        self._pair_ids.append(pair_id)
        self._n_requests = n_requests
        return True

    def closed(self) -> Values:
        """Close the file, once it is whole and on the disk, and return its entry in the registry."""
        n_bytes = self.file.tell()
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        return {
            "key": self.key,
            "pair_ids": self._pair_ids,
            "n_requests": self._n_requests,
            "bytes": n_bytes,
            "input_path": str(self.path),
            "output_path": str(self.path.with_suffix(".results.jsonl")),
            "endpoint": self._endpoint,
        }


def pairs_from(store: RunFile, numbers: Sequence[int]) -> dict[int, JudgePair]:
    """Pairs as the judge sees them, from the run file, by their numbers and in their order."""
    texts = dict(store.items().select("ID", "text").iter_rows())
    named = pairs_named(store)
    pairs = {}
    for number in numbers:
        uid, *ids = named[number]
        sides = [{"ID": name, "item_id": name, "text": texts[name]} for name in ids]
        pairs[number] = JudgePair(sides[0], sides[1], uid)
    return pairs


# Results


def read_lines(path: Path, form: BatchFormat) -> Iterator[Line | str]:
    """The lines of a file of results; a text says why one cannot be read."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.strip():
                continue
            try:
                document = json.loads(raw)
                if not isinstance(document, Mapping):
                    raise ValueError("it is no JSON object")
                yield form.read(document)
            except (ValueError, OverflowError, RecursionError) as error:
                yield f"line {number}: {error}"


def ingest_results(store: RunFile, form: BatchFormat, judge: BatchJudge, entry: RegistryEntry) -> None:
    """Enter the results of a batch that has ended into the run file, and why the other requests have none."""
    path = Path(entry.output_path)
    intake = _Intake(store, judge, entry)
    unreadable: list[str] = []
    if path.is_file():
        for line in read_lines(path, form):
            if isinstance(line, Line):
                intake.add(line)
            else:
                unreadable.append(line)
    if unreadable:
        lines = plural(len(unreadable), "line")
        notice(f"{path}: {lines} of the results cannot be read: {'; '.join(unreadable[:3])}")
    intake.finish()


_ENDED_EARLY = {
    "expired": ("timeout", "the batch expired before this request was worked off"),
    "cancelled": ("cancelled", "the batch was cancelled before this request was worked off"),
}


class _Intake:
    """Takes results as they come, and writes them down a thousand at a time."""

    def __init__(self, store: RunFile, judge: BatchJudge, entry: RegistryEntry) -> None:
        self._store = store
        self._judge = judge
        self._entry = entry
        self._requests = requests_of(entry)
        self._before = store.progress(entry.condition_id)
        self._pairs = pairs_from(store, entry.pair_ids)
        self._done = set(entry.recorded)
        self._verdicts: dict[int, dict[bool, Verdict]] = {}  # by number and order
        self._waiting: list[Asked] = []
        self._n_answered = 0
        self._n_estimated = 0
        self._last_error: str | None = None

    def add(self, line: Line) -> None:
        """One result; one that is recorded already, that was not asked for, or that comes twice is left out."""
        number, turned = self._requests.get(line.custom_id, (None, False))
        if number is None or number in self._done:
            return
        orders = self._verdicts.setdefault(number, {})
        if turned not in orders:
            orders[turned] = verdict_of_line(self._judge, self._pairs[number], line, turned=turned)
        if len(orders) == 1 + isinstance(self._judge, BothOrders):
            self._settle(number)

    def finish(self) -> None:
        """Record why the other pairs have no result, and that the batch is collected."""
        for number in self._entry.pair_ids:
            if number not in self._done:
                self._settle(number)
        name = f"batch {self._entry.batch_id}"
        if self._n_estimated:
            notice(
                f"{name}: what {self._n_estimated:,} of its questions cost is not known, so the most that they may "
                "have cost is counted"
            )
        if not self._n_answered:
            notice(f"{name}: none of its questions was answered; the last: {self._last_error}")
        self._write(event("collected", self._entry.key, collected_at=utc_now()))

    def _missing(self, number: int, *, turned: bool) -> Verdict:
        """Why a request has no result."""
        state = self._entry.state
        if state in _ENDED_EARLY:
            code, words = _ENDED_EARLY[state]
            return Verdict.fail(code, words, failure="transient")
        if state == "failed":
            message = self._entry.message or "the provider does not say why"
            return Verdict.fail("http_error", f"the batch failed: {message}", failure=failure_of(None, None, message))
        unread = Verdict.fail("parse_error", "the batch's results hold nothing for this request", failure="transient")
        pair = self._pairs[number]
        return with_batch_cost(self._judge, swapped(pair) if turned else pair, unread)

    def _settle(self, number: int) -> None:
        """Record the outcome of a pair: no further result of it is expected."""
        orders = self._verdicts.pop(number, {})
        verdict = orders.get(False) or self._missing(number, turned=False)
        if isinstance(self._judge, BothOrders):
            verdict = merge_verdicts(verdict, orders.get(True) or self._missing(number, turned=True))
        self._done.add(number)
        self._n_answered += verdict.outcome.is_answer
        self._n_estimated += verdict.cost_is_estimate
        self._last_error = verdict.error_message
        asked_at = self._entry.created_at or self._entry.prepared_at
        values = attempt_columns(verdict, self._before.attempts.get(number, 0) + 1, asked_at)
        comparison = None
        if number not in self._before.answered and verdict.error_code != "cancelled":
            pair = self._pairs[number]
            comparison = comparison_columns(verdict, pair.first["ID"], pair.second["ID"])
        replaces = number in self._before.failed
        self._waiting.append(Asked(self._entry.condition_id, (values,), comparison, number, replaces=replaces))
        if len(self._waiting) >= _CHUNK:
            self._write()

    def _write(self, *more: Row) -> None:
        """The answers, and that they are in, in one transaction."""
        answers = self._waiting
        self._waiting = []
        recorded = event("recorded", self._entry.key, pairs=[answer.pair_id for answer in answers])
        rows = [(EVENTS, row) for row in (recorded, *more)]
        self._store.writer.commit([*(Entry(answer) for answer in answers), Entry(rows=rows)])
