"""Logs of inspect_ai: ``.eval`` (a zip file, one part per sample) and ``.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pairscale.core.documents.kinds import Unreadable
from pairscale.core.documents.parts import Parts
from pairscale.core.errors import FileFormatError
from pairscale.core.notices import notice
from pairscale.evaluate.formats.answers import Answer, Unfinished, answer_of, object_at, plain_number
from pairscale.evaluate.formats.messages import asked_in, error_of, reply_in
from pairscale.evaluate.suite import id_of

__all__ = ["is_inspect_log", "read_inspect_archive", "read_inspect_log"]

_MOST_SAMPLE = 256 * 2**20
_SAMPLE = re.compile(r"^samples/.*\.json$")
_HEADERS = ("header.json", "_journal/start.json")  # a run that was killed has no header
_ATTACHED = "attachment://"
_LEFT_OUT = {"events", "attachments", "events_data"}


def is_inspect_log(row: Mapping[str, Any]) -> bool:
    """Whether it is a log in JSON."""
    return isinstance(row.get("eval"), Mapping) and {"version", "status"} <= row.keys()


def read_inspect_log(rows: Sequence[Mapping[str, Any]], path: str) -> list[Answer]:
    """The answers of logs in JSON.

    Raises:
        FileFormatError: one has no samples.
    """
    return [answer for log in rows for answer in _read(log, log.get("samples") or (), path)]


def read_inspect_archive(path: Path) -> list[Answer]:
    """The answers of a ``.eval`` log; parts other than samples are not read.

    Raises:
        FileFormatError: it is no such log, or expands to too much.
    """
    try:
        parts = Parts(path)
        names = parts.names()
        header = next((name for name in _HEADERS if name in names), None)
        if header is None:
            raise FileFormatError(f"{path} is a zip file without header.json, and no log of inspect_ai")
        samples = sorted(name for name in names if _SAMPLE.match(name))
        return _read(_part(parts, header), (_part(parts, name) for name in samples), str(path))
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    except Unreadable as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from None


def _part(parts: Parts, name: str) -> Any:
    return json.loads(parts.read(name, _MOST_SAMPLE))


def _read(log: Mapping[str, Any], samples: Iterable[Any], path: str) -> list[Answer]:
    model = log["eval"].get("model")
    answers = [_answer(sample, model, path) for sample in samples]
    if not answers:
        why = f", as its status is {log.get('status')}" if log.get("status") != "success" else ""
        raise FileFormatError(f"{path} is a log of inspect_ai without samples{why}; log them (log_samples=True)")
    answers.sort(key=lambda answer: plain_number(answer.row.get("epoch")) or 0)  # epochs are repeats
    unfinished = _unfinished(log, answers, path)
    return [replace(answer, unfinished=unfinished) for answer in answers]


def _unfinished(log: Mapping[str, Any], answers: list[Answer], path: str) -> Unfinished | None:
    """Whether a log ended before all its samples were answered; its status is said where it is not success."""
    status = log.get("status") or "started"  # a run that was killed has none
    if status == "success":
        return None
    dataset = object_at(log["eval"], "dataset")
    sample_ids = dataset.get("sample_ids") or ()
    n_samples = len(sample_ids) or dataset.get("samples") or 0
    n_samples *= object_at(log["eval"], "config").get("epochs") or 1
    of_all = f" of {n_samples:,}" if n_samples else ""
    words = f"{path} has the status {status} and {len(answers):,}{of_all} samples"
    notice(words)
    if n_samples and len(answers) >= n_samples:
        return None
    reached = {answer.task_id for answer in answers}
    names = dict.fromkeys(id_of(sample_id, path) for sample_id in sample_ids)
    return Unfinished(words, tuple(name for name in names if name not in reached))


def _answer(sample: Mapping[str, Any], model: Any, path: str) -> Answer:
    known = {name: value for name, value in sample.items() if name not in _LEFT_OUT}
    row = _resolved(known, object_at(sample, "attachments"))
    output = object_at(row, "output")
    text, failure = output.get("completion"), None
    if text is None:
        text, failure = reply_in(output)
    failure = error_of(row.get("error")) or error_of(output.get("error")) or failure
    limit = object_at(row, "limit").get("type")
    if failure is None and limit and not str(text or "").strip():  # a limit does not matter where there is an answer
        failure = f"the {limit} limit was reached"
    seconds = plain_number(row.get("total_time"))
    usage = object_at(row, "model_usage").values()
    return answer_of(
        row,
        f"{path}, sample {row['id']!r}",
        text or "",
        failure,
        question=asked_in(row.get("input")),
        task_id=row["id"],
        variant=model,
        tokens=sum(plain_number(one.get("total_tokens")) or 0 for one in usage),
        duration_ms=None if seconds is None else seconds * 1000,
        metadata={"reference": row["target"]} if row.get("target") else None,
    )


def _resolved(value: Any, attached: Mapping[str, Any]) -> Any:
    """A value with the texts that the log keeps apart."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attached.get(value.removeprefix(_ATTACHED), value)
    if isinstance(value, list):
        return [_resolved(inner, attached) for inner in value]
    if isinstance(value, Mapping):
        return {name: _resolved(inner, attached) for name, inner in value.items()}
    return value
