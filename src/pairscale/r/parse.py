"""Files of results, read on their own: no run file and no provider is needed.

The judge's own code reads each reply. The ids of the two samples come from a table of requests, when one is given;
from the file of pairs beside the results, for those of our own pipeline; else from the request's name,
``PREFIX_ID1_vs_ID2``. Lines that cannot be read, and names that do not say their ids, are counted in a notice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.collect.batch.files import read_lines
from pairscale.core.errors import FileFormatError
from pairscale.core.files import read_table
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath
from pairscale.core.tables import Table, require_columns, to_frame
from pairscale.judges.answers import read_structured, read_tag
from pairscale.judges.llm import NO_ANSWER
from pairscale.providers.base import Fields, HTTPCall, Reply
from pairscale.providers.batches import Line, batch_format
from pairscale.providers.catalog import provider_named
from pairscale.providers.openai import read_response
from pairscale.providers.wire import read_chat
from pairscale.r.batches import pairs_beside
from pairscale.r.tables import signature_of

_IDS = ("custom_id", "ID1", "ID2")
_COLUMNS = {
    "openai": "custom_id ID1 ID2 model object_type status_code error_message thoughts content better_sample better_id "
    "prompt_tokens completion_tokens total_tokens prompt_cached_tokens reasoning_tokens",
    "anthropic": "custom_id ID1 ID2 model object_type status_code result_type error_message thoughts content "
    "better_sample better_id prompt_tokens completion_tokens total_tokens prompt_cached_tokens reasoning_tokens",
    "gemini": "custom_id ID1 ID2 model object_type status_code result_type error_message thoughts thought_signature "
    "thoughts_token_count content better_sample better_id prompt_tokens completion_tokens total_tokens "
    "prompt_cached_tokens",
}
"""The manual's columns."""


def parse_output(
    backend: str,
    path: FilePath,
    tag_prefix: str,
    tag_suffix: str,
    requests_tbl: Table | None = None,
    prefix: str | None = None,
    include_raw: bool = False,
) -> pl.DataFrame:
    """The table of a file of results."""
    file = Path(path)
    if not file.is_file():
        raise FileFormatError(f"{file}: there is no such file of results")
    known = _known_ids(file, requests_tbl)
    rows: list[Fields] = []
    unread: list[str] = []
    nameless: list[str] = []
    for line in read_lines(file, batch_format(backend)):
        if isinstance(line, str):
            unread.append(line)
            rows.append({"error_message": f"Failed to parse JSON line: {line}"})
            continue
        ids = ids_of(line.custom_id, prefix) if known is None else known.get(line.custom_id)
        if ids is None:
            nameless.append(line.custom_id)
        rows.append(_row(backend, line, ids or (None, None), (tag_prefix, tag_suffix)))
    if backend == "openai":  # whose table has readable lines alone, as in the manual
        rows = [row for row in rows if "custom_id" in row]
    if backend == "gemini":
        rows = [{"result_type": "errored", **row, "object_type": "generateContent"} for row in rows]
    columns = _COLUMNS[backend].split() + ["raw_response"] * include_raw
    is_number = ("tokens", "code", "count")
    schema = {name: pl.Int64() if name.endswith(is_number) else pl.String() for name in columns}
    table = pl.DataFrame(rows, schema=schema)
    if unread:
        notice(f"{file}: {plural(len(unread), 'line')} cannot be read: {'; '.join(unread[:3])}")
    if nameless:
        notice(
            f"{file}: {plural(len(nameless), 'name')} of requests without known samples: {', '.join(nameless[:3])}; "
            "pass requests_tbl= with custom_id ID1 ID2"
        )
    return table


def _known_ids(file: Path, requests: Table | None) -> Mapping[str, tuple[str, str]] | None:
    """The ids of requests by their names, where a table says them."""
    if requests is None and pairs_beside(file).is_file():
        requests = read_table(pairs_beside(file), text=_IDS)
    if requests is None:
        return None
    frame = to_frame(requests, "requests_tbl")
    require_columns(frame, _IDS, "requests_tbl")
    return {name: (first, second) for name, first, second in frame.select(pl.col(_IDS).cast(pl.String)).iter_rows()}


def ids_of(custom_id: str, prefix: str | None = None) -> tuple[str, str] | None:
    """The two ids in a request's name, ``PREFIX_ID1_vs_ID2``; None when it does not say them.

    Args:
        custom_id: The name.
        prefix: What stands before the first id; by default everything up to the first underscore.

    Example:
        >>> ids_of("EXP_stu_01_vs_stu_02")
        ('stu_01', 'stu_02')
    """
    parts = custom_id.split("_vs_")
    if len(parts) != 2 or not all(parts):
        return None
    first, second = parts
    if prefix is None:
        return first.partition("_")[2] or first, second
    if not first.startswith(f"{prefix}_"):
        return None
    return first.removeprefix(f"{prefix}_"), second


def _row(backend: str, line: Line, ids: tuple[str | None, str | None], tags: tuple[str, str]) -> Fields:
    """The row of a line that could be read."""
    row: Fields = {
        "custom_id": line.custom_id, "ID1": ids[0], "ID2": ids[1], "status_code": line.status,
        "result_type": line.result_type, "error_message": line.error,
    }  # fmt: skip
    if line.body is not None:
        row["raw_response"] = json.dumps(line.body, ensure_ascii=False)
    if line.kind != "succeeded":
        return row
    try:
        reply = _reply(backend, line.body)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return row | {"error_message": str(error)}
    usage = reply.usage
    row |= {
        "model": reply.model,
        "object_type": reply.object_type,
        "thoughts": reply.thoughts,
        "content": reply.text or reply.refusal or "",
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
        "prompt_cached_tokens": usage.cached,
        "reasoning_tokens": usage.reasoning,
        "thoughts_token_count": usage.reasoning,
    }
    answer = read_tag(reply.text, *tags)
    if answer.position is None and reply.text.lstrip().startswith("{"):
        answer = read_structured(reply.text)
    if answer.position is not None and reply.stop_reason not in NO_ANSWER:
        row |= {"better_sample": f"SAMPLE_{answer.position}", "better_id": ids[answer.position - 1]}
    if backend == "gemini":
        row["thought_signature"] = signature_of(line.body)
    return row


def _reply(backend: str, body: Any) -> Reply:
    if backend != "openai":
        return provider_named(backend).reply(HTTPCall("POST", "", {}), body)
    is_response = isinstance(body, Mapping) and body.get("object") == "response"
    return read_response(body) if is_response else read_chat(body, think_tags=True)
