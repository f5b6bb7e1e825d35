"""Logs of inspect_ai: ``.eval`` (a zip file, one part per sample) and ``.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pairscale.core.documents.kinds import Unreadable
from pairscale.core.documents.parts import Parts
from pairscale.core.errors import FileFormatError
from pairscale.core.notices import notice
from pairscale.evaluate.formats.answers import Answer, FileContent, Unfinished, plain_number
from pairscale.evaluate.formats.chat import completions
from pairscale.evaluate.formats.messages import are_messages, conversation
from pairscale.evaluate.suite import as_words, id_of
from pairscale.evaluate.traces import Trace

__all__ = ["is_inspect_log", "read_inspect_archive", "read_inspect_log"]

_MOST_SAMPLE = 256 * 2**20
_SAMPLE = re.compile(r"^samples/.*\.json$")
_HEADERS = ("header.json", "_journal/start.json")  # a run that was killed has no header
_ATTACHED = "attachment://"


def is_inspect_log(document: FileContent) -> bool:
    """Whether it is a log in JSON."""
    log = document.content
    return (
        not document.is_rows
        and isinstance(log, Mapping)
        and isinstance(log.get("eval"), Mapping)
        and {"version", "status"} <= set(log)
    )


def read_inspect_log(document: FileContent) -> list[Answer]:
    """The answers of a log in JSON.

    Raises:
        FileFormatError: it has no samples.
    """
    log = document.content
    return _read(log, iter(log.get("samples") or ()), document.path)


def read_inspect_archive(path: str | Path) -> list[Answer]:
    """The answers of a ``.eval`` log; parts other than samples are not read.

    Raises:
        FileFormatError: it is no such log, expands to too much, or is compressed with zstd where nothing reads it.
    """
    try:
        parts = Parts(Path(path))
        names = parts.names()
        header = next((name for name in _HEADERS if name in names), None)
        if header is None:
            raise FileFormatError(f"{path} is a zip file without header.json, and no log of inspect_ai")
        log = _part(parts, header, path)
        if not isinstance(log, Mapping) or not isinstance(log.get("eval"), Mapping):
            raise FileFormatError(f"{path}: {header} is not that of a log of inspect_ai")
        samples = [name for name in names if _SAMPLE.match(name)]
        return _read(log, (_part(parts, name, path) for name in sorted(samples)), str(path))
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    except Unreadable as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from None


def _part(parts: Parts, name: str, path: str | Path) -> Any:
    try:
        return json.loads(parts.read(name, _MOST_SAMPLE))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: {name} is not JSON: {error}") from None


def _read(log: Mapping[str, Any], samples: Iterator[Any], path: str) -> list[Answer]:
    found = [(_epoch(sample), _answer(sample, log["eval"], path)) for sample in samples]
    if not found:
        why = f", as its status is {log.get('status')}" if log.get("status") != "success" else ""
        raise FileFormatError(f"{path} is a log of inspect_ai without samples{why}; log them (log_samples=True)")
    answers = [answer for _, answer in sorted(found, key=lambda one: one[0])]  # epochs are repeats
    unfinished = _unfinished(log, answers, path)
    return [replace(answer, unfinished=unfinished) for answer in answers]


def _unfinished(log: Mapping[str, Any], answers: list[Answer], path: str) -> Unfinished | None:
    """Whether a log ended before all its samples were answered; its status is said where it is not success."""
    status = log.get("status") or "started"  # a run that was killed has none
    if status == "success":
        return None
    run = log["eval"]
    dataset = run.get("dataset") or {}
    sample_ids = dataset.get("sample_ids") or ()
    n_samples = len(sample_ids) or dataset.get("samples")
    epochs = (run.get("config") or {}).get("epochs") or 1
    words = f"{path} has the status {status} and {len(answers):,} samples"
    if n_samples:
        words = f"{path} has the status {status} and {len(answers):,} of {n_samples * epochs:,} samples"
    notice(words)
    if n_samples and len(answers) >= n_samples * epochs:
        return None
    reached = {answer.task_id for answer in answers}
    named = dict.fromkeys(id_of(sample_id, path) for sample_id in sample_ids)
    return Unfinished(words, tuple(name for name in named if name not in reached))


def _epoch(sample: Any) -> float:
    return plain_number(sample.get("epoch")) or 0.0 if isinstance(sample, Mapping) else 0.0


def _answer(sample: Any, run: Mapping[str, Any], path: str) -> Answer:
    if not isinstance(sample, Mapping) or "id" not in sample:
        raise FileFormatError(f"{path}: a sample must be an object with an id")
    where = f"{path}, sample {sample['id']!r}"
    attached = sample.get("attachments")
    texts = attached if isinstance(attached, Mapping) else {}
    given, output = _resolved(sample.get("input"), texts, 0), _resolved(sample.get("output"), texts, 0)
    talk = conversation(given, "") if are_messages(given) else None
    known: dict[str, Any] = {"input": as_words(given) if talk is None else talk.input}
    if target := sample.get("target"):
        known["reference"] = _resolved(target, texts, 0)
    output = output if isinstance(output, Mapping) else {}
    said = output.get("completion")
    text = said if isinstance(said, str) else completions(output)[0][0] if output.get("choices") else ""
    usage = sample.get("model_usage")
    tokens = [plain_number(one.get("total_tokens")) for one in usage.values()] if isinstance(usage, Mapping) else []
    took = plain_number(sample.get("total_time"))
    trace = Trace(
        text,
        tokens=int(sum(one or 0 for one in tokens)) if tokens else None,
        duration_ms=None if took is None else took * 1000,
        exception=_failure(sample, output),
        metadata=known,
    )
    variant = run.get("model")
    row = {name: value for name, value in sample.items() if name not in {"events", "attachments", "events_data"}}
    return Answer(
        trace, id_of(sample["id"], where), None if talk is None else talk.asked, variant and str(variant), row, where
    )


def _failure(sample: Mapping[str, Any], output: Mapping[str, Any]) -> str | None:
    """Why a sample has no answer; a limit that was reached does not matter where there is one."""
    for error in (sample.get("error"), output.get("error")):
        if isinstance(error, Mapping):
            return str(error.get("message") or "an error")
        if error:
            return str(error)
    limit = sample.get("limit")
    if isinstance(limit, Mapping) and not str(output.get("completion") or "").strip():
        return f"the {limit.get('type')} limit was reached"
    return None


def _resolved(value: Any, attached: Mapping[str, Any], depth: int) -> Any:
    """A value with the texts that the log keeps apart."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attached.get(value.removeprefix(_ATTACHED), value)
    if depth < 20 and isinstance(value, list):
        return [_resolved(one, attached, depth + 1) for one in value]
    if depth < 20 and isinstance(value, Mapping):
        return {name: _resolved(one, attached, depth + 1) for name, one in value.items()}
    return value
