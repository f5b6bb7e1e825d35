"""Folders of traces, one JSON file each: ours, and those that AG2 writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pairscale.core.encodings import read_bytes
from pairscale.core.errors import FileFormatError
from pairscale.core.files import replacing
from pairscale.core.options import checked
from pairscale.core.provenance import text_hash
from pairscale.evaluate.formats.answers import Answer, FileContent, read_as
from pairscale.evaluate.formats.spans import is_ag2, read_ag2
from pairscale.evaluate.suite import id_of
from pairscale.evaluate.traces import OUTPUT_NAMES, Trace, TraceRef

__all__ = ["DirectoryTraceSource", "is_trace_document", "save_trace"]


class DirectoryTraceSource:
    """Traces in a folder, one JSON file each, as :func:`save_trace` writes them, or the one of AG2.

    Args:
        folder: the folder.

    Raises:
        FileFormatError: when there is no such folder.
    """

    @checked
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise FileFormatError(f"{folder} is not a folder of traces; save_trace writes one")

    async def list(self) -> AsyncIterator[TraceRef]:
        """What there is, by the names of the files."""
        for path in sorted(self._folder.glob("*.json")):
            document = _document(path)
            task_id = id_of(document.get("task_id"), str(path)) or None
            known = {"input": asked, "where": path.name} if (asked := _asked(document, path)) else {"where": path.name}
            yield TraceRef(path.name, task_id, known)

    async def load(self, ref: TraceRef) -> Trace:
        """One of them."""
        path = self._folder / Path(ref.trace_id).name
        row = _document(path)
        if _is_ag2(row, path):
            return _read_ag2(row, path).trace
        return Trace.from_dict({name: row[name] for name in row if name not in _OF_THE_REF}, str(path))


_OF_THE_REF = {"task_id", "trace_id"}


def is_trace_document(path: Path) -> bool:
    """Whether a file holds one trace, ours or AG2's."""
    try:
        found = _document(path)
    except FileFormatError:
        return False
    return _is_ag2(found, path) or ("task_id" in found and any(name in found for name in OUTPUT_NAMES))


def _is_ag2(document: dict[str, Any], path: Path) -> bool:
    return "spans" in document and is_ag2(FileContent(document, str(path), is_rows=False))


def _read_ag2(document: dict[str, Any], path: Path) -> Answer:
    whole = FileContent(document, str(path), is_rows=False)
    return read_as("a trace of AG2", lambda: read_ag2(whole), str(path))[0]


def _asked(document: dict[str, Any], path: Path) -> str | None:
    """The task that a trace says it answers."""
    if _is_ag2(document, path):
        answer = _read_ag2(document, path)
        found = answer.asked or answer.trace.metadata.get("input")
    else:
        held = document.get("metadata")
        found = held.get("input") if isinstance(held, dict) else None
    return found if isinstance(found, str) else None


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_bytes(path))
    except ValueError as error:
        raise FileFormatError(f"{path} is not a trace in JSON: {error}") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"{path} is not a trace; save_trace writes them")
    return found


@checked
def save_trace(trace: Trace, folder: str | os.PathLike[str], *, task_id: str, trace_id: str | None = None) -> Path:
    """Write a trace to a file of its own in a folder (made when it is missing), for :class:`DirectoryTraceSource`.

    Args:
        trace: the trace.
        folder: where to.
        task_id: the task that it belongs to.
        trace_id: its own name; by default that of the task, so that a second trace of a task takes its place.

    Example:
        >>> save_trace(Trace("Rome."), "traces", task_id="t1").name
        't1-628b49d9.json'
    """
    name = trace_id or task_id
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder} cannot be made: {error.strerror}") from None
    # Names of tasks may hold anything; those of files may not.
    path = target / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', name)[:80].lstrip('.')}-{text_hash(name)[:8]}.json"
    document = {"task_id": task_id, "trace_id": name, **trace.to_dict()}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1, default=str), "utf-8")
    return path
