"""From files of results to answers in the run file: in any order, in bounded memory, and never twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.collect._asking import Stopwatch
from pairscale.collect.batch import _steps
from pairscale.collect.batch._parts import split_id
from pairscale.collect.batch._registry import Entry, append, appending, event, pairs_named
from pairscale.judges._batched import asks_both_orders, joined_verdict, verdict_of
from pairscale.judges.base import JudgePair, Verdict
from pairscale.notices import notice
from pairscale.provenance import utc_now
from pairscale.providers.batches import BatchFormat, Line
from pairscale.store import Answer

if TYPE_CHECKING:
    from pairscale.judges.llm import LLMJudge
    from pairscale.store import Progress, RunFile

__all__ = ["read_lines", "take_in"]

_CHUNK = 1_000
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
            except ValueError as error:
                yield number, f"line {number}: {error}"


def take_in(store: RunFile, form: BatchFormat, judge: LLMJudge, entry: Entry) -> bool:
    """Enter the results of a batch that has ended into the run file, and say of the rest why there is none.

    Returns:
        False when the results turn out to be somebody else's: the batch was taken for this one by mistake.
    """
    path = Path(entry.output_path)
    if path.is_file() and _is_foreign(path, form, entry):
        append(store, [event("foreign", entry.key, batch_id=entry.batch_id)])
        path.unlink()
        return False
    desk = _Intake(store, judge, entry)
    bad: list[str] = []
    if path.is_file():
        for _, line in read_lines(path, form):
            if isinstance(line, str):
                bad.append(line)
            else:
                desk.add(line)
    if bad:
        named = "; ".join(bad[:3])
        notice(f"{path}: {len(bad):,} line{'s' * (len(bad) > 1)} of the results cannot be read: {named}")
    desk.finish(bad[:_SHOWN])
    _steps.reached("collected")
    return True


def _is_foreign(path: Path, form: BatchFormat, entry: Entry) -> bool:
    """Whether a file has results, and none of them is this batch's."""
    some = False
    for _, line in read_lines(path, form):
        if isinstance(line, Line):
            some = True
            if split_id(line.custom_id, entry.key) is not None:
                return False
    return some


class _Intake:
    """Takes results as they come, and writes them down a thousand at a time."""

    def __init__(self, store: RunFile, judge: LLMJudge, entry: Entry) -> None:
        self._store, self._judge, self._entry = store, judge, entry
        self._known: Progress = store.progress(entry.condition_id)
        self._named = pairs_named(store, entry.pair_ids)
        self._texts = dict(store.items().select("ID", "text").iter_rows())
        self._both = asks_both_orders(judge)
        self._halves: dict[int, dict[bool, Verdict]] = {}
        self._done = set(entry.recorded)
        self._waiting: list[Answer] = []

    def add(self, line: Line) -> None:
        """One result; one that is known already, or that nobody asked for, is passed over."""
        found = split_id(line.custom_id, self._entry.key)
        if found is None or found[0] not in self._named or found[0] in self._done:
            return
        number, turned = found
        pair = self._pair(number)
        verdict = verdict_of(self._judge, pair, line, turned=turned)
        if self._both:
            halves = self._halves.setdefault(number, {})
            halves.setdefault(turned, verdict)
            if len(halves) < 2:
                return
            del self._halves[number]
            verdict = joined_verdict(self._judge, [halves[False], halves[True]])
        self._settle(number, verdict)

    def finish(self, bad: list[str]) -> None:
        """Say of the pairs without a result why there is none, and that the batch is done with."""
        for number, halves in list(self._halves.items()):
            both = [halves.get(turned) or self._missing() for turned in (False, True)]
            self._settle(number, joined_verdict(self._judge, both))
        for number in self._entry.pair_ids:
            if number not in self._done:
                self._settle(number, self._missing())
        self._write(event("collected", self._entry.key, collected_at=utc_now(), bad_lines=bad))

    def _missing(self) -> Verdict:
        state, message = self._entry.state, self._entry.message
        if state == "expired":
            return Verdict.fail("timeout", "the batch expired before this request was worked off", passing=True)
        if state == "cancelled":
            return Verdict.fail("cancelled", "the batch was cancelled before this request was worked off")
        if state == "failed":
            return Verdict.fail("http_error", f"the batch failed: {message or 'the provider does not say why'}")
        return Verdict.fail("parse_error", "the batch's results hold nothing for this request", passing=True)

    def _pair(self, number: int) -> JudgePair:
        uid, first, second = self._named[number]
        return JudgePair(self._item(first), self._item(second), uid)

    def _item(self, name: str) -> dict[str, str]:
        return {"ID": name, "item_id": name, "text": self._texts[name]}

    def _settle(self, number: int, verdict: Verdict) -> None:
        self._done.add(number)
        values = Stopwatch().attempt(verdict, self._known.attempts.get(number, 0) + 1)
        values |= {"latency_s": None, "attempted_at": self._entry.created_at or self._entry.prepared_at}
        settles = number not in self._known.answered and verdict.error_code != "cancelled"
        comparison = self._comparison(number, verdict) if settles else None
        self._waiting.append(Answer(number, values, comparison, number in self._known.failed))
        if len(self._waiting) >= _CHUNK:
            self._write()

    def _comparison(self, number: int, verdict: Verdict) -> dict[str, Any]:
        _, first, second = self._named[number]
        winner = None if verdict.winner_pos is None else (first, second)[verdict.winner_pos - 1]
        return {
            "outcome": str(verdict.outcome),
            "winner_pos": verdict.winner_pos,
            "better_id": winner,
            "probability": verdict.probability,
            "received_at": utc_now(),
        }

    def _write(self, *more: Mapping[str, Any]) -> None:
        """The answers, and that they are in, in one transaction."""
        answers, self._waiting = self._waiting, []
        rows = [event("recorded", self._entry.key, pairs=[answer.pair_id for answer in answers]), *more]
        self._store.record(answers, self._entry.condition_id, appending(rows))
        _steps.reached("recorded")
