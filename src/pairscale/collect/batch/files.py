"""Files of batches: requests, one per line, below what a provider takes; and results, on their way to the run file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pairscale.collect.batch import registry
from pairscale.collect.batch.registry import (
    EVENTS,
    Half,
    RegistryEntry,
    append,
    entries,
    event,
    halves_of,
    new_key,
    pairs_named,
)
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.failures import failure_of
from pairscale.core.files import open_private
from pairscale.core.notices import notice
from pairscale.core.provenance import utc_now
from pairscale.judges.base import JudgePair, Verdict
from pairscale.judges.batched import BatchJudge, calls_of, is_both_orders, verdict_of, with_batch_cost
from pairscale.judges.orders import merge_verdicts, swapped
from pairscale.providers.batches import BatchFormat, BatchLimits, Line
from pairscale.runtime import MOST_ALIKE, FailureStreak, Stopwatch, comparison_of
from pairscale.store.writer import Asked, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.providers.base import HTTPCall
    from pairscale.store.runfile import PairProgress, RunFile

_TURNED = "r"
_NAME = re.compile(rf"(.*)-([1-9][0-9]{{0,17}})({_TURNED}?)", re.DOTALL)
_KEY = re.compile("ps[0-9a-f]{20}")


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
) -> Iterator[dict[str, Any]]:
    """Write requests into as few files as the provider's limits and ``sizes`` allow; what the registry says of each.

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

    def __init__(self, folder: Path, endpoint: str, most: int) -> None:
        self.key = new_key()
        self.endpoint = endpoint
        self.most = most
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

    def closed(self) -> dict[str, Any]:
        """What the registry says of the file, which is whole and on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        Path(self._file.name).replace(self._path)
        return {
            "key": self.key,
            "pair_ids": self.pair_ids,
            "n_requests": self.n_requests,
            "bytes": self.bytes,
            "input_path": str(self._path),
            "output_path": str(self._path.with_name(f"{self.key}.results.jsonl")),
            "endpoint": self.endpoint,
        }

    def dropped(self) -> None:
        """Give up what is not whole; nothing when it is."""
        if not self._file.closed:
            self._file.close()
            Path(self._file.name).unlink()


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


_CHUNK = 1_000
_COUNTED = (
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "cost",
)  # fmt: skip


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


class Counted(NamedTuple):
    """What a file of results holds: requests of this batch with a result, and readable results of other requests."""

    own: int
    others: int


def count_results(path: Path, form: BatchFormat, entry: RegistryEntry) -> Counted:
    """How much of a batch a file of results holds."""
    own: set[tuple[int, bool]] = set()
    others = 0
    for _, line in read_lines(path, form):
        if isinstance(line, Line):
            request = split_id(line.custom_id, entry.key)
            if request is None:
                others += 1
            else:
                own.add(request)
    return Counted(len(own), others)


def is_anothers(found: Counted, entry: RegistryEntry) -> bool:
    """Whether results show that a batch found by a search is another's."""
    return entry.is_guess and found.others > 0 and found.own == 0


def is_foreign(store: RunFile, form: BatchFormat, entry: RegistryEntry) -> bool:
    """Whether the results are of another's batch, which was taken for this one; then that is written down."""
    path = Path(entry.output_path)
    if not entry.is_guess or not path.is_file() or not is_anothers(count_results(path, form, entry), entry):
        return False
    append(store, [event("foreign", entry.key, batch_id=entry.batch_id)])
    path.unlink()
    return True


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
        named = "; ".join(bad[:3])
        notice(f"{path}: {len(bad):,} line{'s' * (len(bad) > 1)} of the results cannot be read: {named}")
    intake.finish()
    registry.reached("collected")
    return intake.failure


class _Intake:
    """Takes results as they come, and writes them down a thousand at a time."""

    def __init__(self, store: RunFile, judge: BatchJudge, entry: RegistryEntry) -> None:
        self._store = store
        self._judge = judge
        self._entry = entry
        self._known: PairProgress = store.progress(entry.condition_id)
        self._named = pairs_named(store, entry.pair_ids)
        self._texts = dict(store.items().select("ID", "text").iter_rows())
        self._both = is_both_orders(judge)
        self._done = set(entry.recorded)
        self._waiting: list[Asked] = []
        self._streak = FailureStreak()
        self._alike: JudgeError | None = None
        self._has_answer = False
        self._taken: set[tuple[int, bool]] = set()
        self._unused = 0
        self._estimated = 0
        self._kept: list[dict[str, Any]] = []
        self._halves: dict[int, dict[bool, tuple[Verdict, Line | None]]] = {}
        if self._both:
            for number, half in halves_of(entries(store), entry.condition_id).items():
                if number in self._named and number not in self._done:
                    self._halves[number] = {half.turned: (self._paid(number, half), None)}

    def add(self, line: Line) -> None:
        """One result; one that is recorded already, that was not asked for, or that comes twice is left out."""
        found = split_id(line.custom_id, self._entry.key)
        if found is None or found[0] not in self._named:
            self._unused += 1
            return
        number, turned = found
        pair = self._pair(number)
        if found in self._taken:
            self._unused += 1
            return
        if number in self._done:
            return
        verdict = verdict_of(self._judge, pair, line, turned=turned)
        self._taken.add(found)
        if self._both:
            halves = self._halves.setdefault(number, {})
            halves.setdefault(turned, (verdict, line))
            if len(halves) < 2:
                return
            verdict = self._joined(number)
        self._count(pair, verdict)
        self._settle(number, verdict)

    def _count(self, pair: JudgePair, verdict: Verdict) -> None:
        """Find out whether the judge itself fails: many alike failures, and no answer in the whole batch.

        The order of the lines says nothing: providers give failures in a file of their own. What expired or was
        cancelled with its batch is asked again.
        """
        self._has_answer = self._has_answer or verdict.outcome.is_answer
        if verdict.failure == "transient":
            return
        if self._streak.count(verdict, str(pair.first["ID"]), str(pair.second["ID"])) and self._alike is None:
            self._alike = JudgeError(
                f"{self._judge.provider}:{self._judge.model} answered no question of the batch, and failed in the same "
                f"way on {MOST_ALIKE} or more: {verdict.error_message}. Everything is stored"
            )

    @property
    def failure(self) -> JudgeError | None:
        """That the judge itself fails; None when it does not."""
        return None if self._has_answer else self._alike

    def _joined(self, number: int) -> Verdict:
        """One verdict of both orders; when only one was answered, that one is kept, and need not be asked again."""
        halves = self._halves.pop(number, {})
        both = {turned: halves.get(turned) or (self._missing(number, turned), None) for turned in (False, True)}
        answered = [turned for turned, (verdict, _) in both.items() if verdict.outcome.is_answer]
        if len(answered) == 1 and (line := both[answered[0]][1]) is not None:
            body = self._judge.client.redactor.value(line.body)
            kept = {"pair": number, "turned": answered[0], "status": line.status, "body": body}
            self._kept.append(event("half", self._entry.key, **kept))
        return merge_verdicts(both[False][0], both[True][0])

    def _paid(self, number: int, half: Half) -> Verdict:
        """The verdict of an order that an earlier batch answered; its tokens count there."""
        line = Line("", "succeeded", half.status, half.body)
        verdict = verdict_of(self._judge, self._pair(number), line, turned=half.turned)
        nothing: dict[str, Any] = dict.fromkeys(_COUNTED)
        return replace(verdict, **nothing, cost_is_estimate=False)

    def finish(self) -> None:
        """Say of the pairs without a result why there is none, and that the batch is done with."""
        if self._unused:
            notice(
                f"batch {self._entry.batch_id}: {self._unused:,} results are not used: they are of requests that it "
                "does not have, or second ones"
            )
        for number in list(self._halves):
            self._settle(number, self._joined(number))
        for number in self._entry.pair_ids:
            if number not in self._done:
                self._settle(number, self._joined(number) if self._both else self._missing(number))
        if self._estimated:
            notice(
                f"batch {self._entry.batch_id}: what {self._estimated:,} of its questions cost is not known, so the "
                "most that they may have cost is counted"
            )
        self._write(event("collected", self._entry.key, collected_at=utc_now()))

    def _missing(self, number: int, turned: bool = False) -> Verdict:
        """Why a request has no result."""
        state = self._entry.state
        message = self._entry.message
        if state == "expired":
            return Verdict.fail("timeout", "the batch expired before this request was worked off", failure="transient")
        if state == "cancelled":
            words = "the batch was cancelled before this request was worked off"
            return Verdict.fail("cancelled", words, failure="transient")
        if state == "failed":
            words = f"the batch failed: {message or 'the provider does not say why'}"
            return Verdict.fail("http_error", words, failure=failure_of(None, None, message or ""))
        unread = Verdict.fail("parse_error", "the batch's results hold nothing for this request", failure="transient")
        pair = self._pair(number)
        return with_batch_cost(self._judge, swapped(pair) if turned else pair, unread)

    def _pair(self, number: int) -> JudgePair:
        uid, first, second = self._named[number]
        return JudgePair(item_of(first, self._texts), item_of(second, self._texts), uid)

    def _settle(self, number: int, verdict: Verdict) -> None:
        self._done.add(number)
        self._estimated += verdict.cost_is_estimate
        values = Stopwatch().attempt(verdict, self._known.attempts.get(number, 0) + 1)
        values |= {"latency_s": None, "attempted_at": self._entry.created_at or self._entry.prepared_at}
        settles = number not in self._known.answered and verdict.error_code != "cancelled"
        comparison = comparison_of(verdict, *self._named[number][1:]) if settles else None
        replaces = number in self._known.failed
        self._waiting.append(Asked(self._entry.condition_id, (values,), comparison, number, replaces=replaces))
        if len(self._waiting) >= _CHUNK:
            self._write()

    def _write(self, *more: Mapping[str, Any]) -> None:
        """The answers, and that they are in, in one transaction."""
        answers = self._waiting
        self._waiting = []
        kept = self._kept
        self._kept = []
        rows = [*kept, event("recorded", self._entry.key, pairs=[answer.pair_id for answer in answers]), *more]
        settled = [Entry(one) for one in answers]
        self._store.writer.commit([*settled, Entry(rows=[(EVENTS, row) for row in rows])])
        registry.reached("recorded")
