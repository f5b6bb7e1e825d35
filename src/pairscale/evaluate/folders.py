"""Folders of traces, one JSON file each: ours, and those that AG2 writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

from pairscale.core.errors import FileFormatError
from pairscale.core.files import replacing
from pairscale.core.options import checked
from pairscale.core.provenance import text_hash
from pairscale.evaluate.formats.answers import Answer
from pairscale.evaluate.formats.reading import asked_of, read_quietly
from pairscale.evaluate.traces import Trace, TraceRef

__all__ = ["DirectoryTraceSource", "save_trace"]


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
            answer = self._answer(path.name)
            yield TraceRef(path.name, answer.task_id or None, {"where": path.name, "input": asked_of(answer)})

    async def load(self, ref: TraceRef) -> Trace:
        """One of them."""
        return self._answer(Path(ref.trace_id).name).trace

    def _answer(self, name: str) -> Answer:
        return read_quietly(self._folder / name).answers[0]


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
