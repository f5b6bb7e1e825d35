"""From files of results to answers in the run file: in any order, in bounded memory, and never twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pairscale.collect.batch import _steps
from pairscale.collect.batch.parts import item_of, split_id
from pairscale.collect.batch.registry import (
    EVENTS,
    Half,
    RegistryEntry,
    append,
    entries,
    event,
    halves_of,
    left_out_of,
    pairs_named,
    remember_left_out,
)
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import JudgeError
from pairscale.core.failures import failure_of
from pairscale.core.notices import notice
from pairscale.core.provenance import utc_now
from pairscale.judges.base import JudgePair, Verdict
from pairscale.judges.batched import BatchJudge, is_both_orders, verdict_of, with_batch_cost
from pairscale.judges.orders import merge_verdicts, swapped
from pairscale.providers.batches import BatchFormat, Line
from pairscale.runtime import MOST_ALIKE, FailureStreak, Stopwatch, comparison_of
from pairscale.store.writer import Asked, Entry

if TYPE_CHECKING:
    from pairscale.store.runfile import PairProgress, RunFile

_CHUNK = 1_000
_COUNTED = (
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "cost",
)  # fmt: skip
_SHOWN = 20


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
            found = split_id(line.custom_id, entry.key)
            others += found is None
            own |= {found} if found is not None else set()
    return Counted(len(own), others)


def is_anothers(found: Counted, entry: RegistryEntry) -> bool:
    """Whether results show that a batch found by a search is another's."""
    return entry.is_guess and found.others > 0 and found.own == 0


@dataclass(frozen=True, slots=True)
class Ingested:
    """The results of a batch are in the run file.

    Attributes:
        failure: the model answered nothing, and failed in the same way on many questions; None when it did not.
    """

    failure: JudgeError | None


def ingest_results(store: RunFile, form: BatchFormat, judge: BatchJudge, entry: RegistryEntry) -> Ingested | None:
    """Enter the results of a batch that has ended into the run file, and say of the rest why there is none.

    Returns:
        None when the results turn out to be somebody else's: the batch was taken for this one by mistake.
    """
    path = Path(entry.output_path)
    if entry.is_guess and path.is_file() and is_anothers(count_results(path, form, entry), entry):
        append(store, [event("foreign", entry.key, batch_id=entry.batch_id)])
        path.unlink()
        return None
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
    intake.finish(bad[:_SHOWN])
    _steps.reached("collected")
    return Ingested(intake.failure)


class _Intake:
    """Takes results as they come, and writes them down a thousand at a time."""

    def __init__(self, store: RunFile, judge: BatchJudge, entry: RegistryEntry) -> None:
        self._store, self._judge, self._entry = store, judge, entry
        self._known: PairProgress = store.progress(entry.condition_id)
        self._named = pairs_named(store, entry.pair_ids)
        self._texts = dict(store.items().select("ID", "text").iter_rows())
        self._both = is_both_orders(judge)
        self._left_out = left_out_of(store, entry.condition_id)
        self._done = set(entry.recorded)
        self._waiting: list[Asked] = []
        self._streak = FailureStreak()
        self._alike: JudgeError | None = None
        self._has_answer = False
        self._taken: dict[tuple[int, bool], tuple[Outcome, int | None]] = {}
        self._unasked = self._twice = self._contrary = self._estimated = 0
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
            self._unasked += 1
            return
        number, turned = found
        pair = self._pair(number)
        if found in self._taken:
            again = verdict_of(self._judge, pair, line, turned=turned)
            self._twice += 1
            self._contrary += (again.outcome, again.winner_pos) != self._taken[found]
            return
        if number in self._done:
            return
        if line.parameter is not None:
            self._learn(pair, line.parameter)
        verdict = verdict_of(self._judge, pair, line, turned=turned)
        self._taken[found] = verdict.outcome, verdict.winner_pos
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

    def _learn(self, pair: JudgePair, parameter: str) -> None:
        """Leave a field out from now on that the model does not take, as live judging does."""
        client = self._judge.client
        if parameter in self._left_out or client.provider.without(self._judge.request(pair), parameter) is None:
            return
        self._left_out.add(parameter)
        remember_left_out(self._store, self._entry.condition_id, parameter)
        client.leave_out(self._judge.model, parameter)
        who = f"{self._judge.provider}: {self._judge.model}"
        notice(f"{who} does not take {parameter}; it is left out when these pairs are submitted again")

    def finish(self, bad: list[str]) -> None:
        """Say of the pairs without a result why there is none, and that the batch is done with."""
        self._say_left_out()
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
        self._write(event("collected", self._entry.key, collected_at=utc_now(), bad_lines=bad))

    def _say_left_out(self) -> None:
        """Name the results that were not used: of requests that were not made, and second ones."""
        who = f"batch {self._entry.batch_id}"
        if self._unasked:
            notice(f"{who}: {self._unasked:,} of the results are of requests that it does not have; they are not used")
        if self._twice:
            contrary = f", {self._contrary:,} of them with another answer" if self._contrary else ""
            notice(f"{who}: {self._twice:,} requests have a second result{contrary}; the first of each is used")

    def _missing(self, number: int, turned: bool = False) -> Verdict:
        """Why a request has no result."""
        state, message = self._entry.state, self._entry.message
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
        answers, self._waiting, kept, self._kept = self._waiting, [], self._kept, []
        rows = [*kept, event("recorded", self._entry.key, pairs=[answer.pair_id for answer in answers]), *more]
        settled = [Entry(one) for one in answers]
        self._store.writer.commit([*settled, Entry(rows=[(EVENTS, row) for row in rows])])
        _steps.reached("recorded")
