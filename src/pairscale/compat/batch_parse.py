"""Files of results, read on their own: no run file and no provider is needed.

The judge's own code reads each reply. The ids of the two samples come from a table of requests, when one is given;
else from the request's name, where it has the form ``PREFIX_ID1_vs_ID2`` or ``ID1:ID2#1``. Requests of our own pipeline
have names without ids: their pairs are looked up in its run file, and without it the file is refused. A line that
cannot be read, and a name that does not say its ids, is named in a notice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.collect.batch.files import read_lines
from pairscale.compat._names import RequestNames, ids_of
from pairscale.compat._tables import signature_of
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.tables import Table
from pairscale.judges.answers import read_structured, read_tag
from pairscale.judges.llm import NO_ANSWER
from pairscale.providers.base import HTTPCall, Reply
from pairscale.providers.batches import Line, batch_format
from pairscale.providers.catalog import provider_named
from pairscale.providers.openai import read_response
from pairscale.providers.wire import read_chat

__all__ = [
    "ids_of",
    "parse_anthropic_batch_output",
    "parse_gemini_batch_output",
    "parse_openai_batch_output",
]


_TEXT, _INT = pl.String(), pl.Int64()
_HEAD: dict[str, pl.DataType] = {
    "custom_id": _TEXT, "ID1": _TEXT, "ID2": _TEXT, "model": _TEXT, "object_type": _TEXT, "status_code": _INT,
}  # fmt: skip
_ANSWER: dict[str, pl.DataType] = {"content": _TEXT, "better_sample": _TEXT, "better_id": _TEXT}
_TOKENS: dict[str, pl.DataType] = {"prompt_tokens": _INT, "completion_tokens": _INT, "total_tokens": _INT}
_DETAILS: dict[str, pl.DataType] = {"prompt_cached_tokens": _INT, "reasoning_tokens": _INT}
_WHY: dict[str, pl.DataType] = {"error_message": _TEXT, "thoughts": _TEXT}
_OPENAI = {**_HEAD, **_WHY, **_ANSWER, **_TOKENS, **_DETAILS}
_ANTHROPIC = {**_HEAD, "result_type": _TEXT, **_WHY, **_ANSWER, **_TOKENS, **_DETAILS}
_THOUGHTS: dict[str, pl.DataType] = {"thought_signature": _TEXT, "thoughts_token_count": _INT}
_GEMINI = {**_HEAD, "result_type": _TEXT, **_WHY, **_THOUGHTS, **_ANSWER, **_TOKENS, "prompt_cached_tokens": _INT}
_SCHEMAS = {"openai": _OPENAI, "anthropic": _ANTHROPIC, "gemini": _GEMINI}


@checked
def parse_openai_batch_output(
    path: str | os.PathLike[str],
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    *,
    requests_tbl: Table | None = None,
    prefix: str | None = None,
    include_raw: bool = False,
    run: str | os.PathLike[str] | None = None,
) -> pl.DataFrame:
    """Read a file of results of OpenAI's batches, or of Together's.

    Args:
        path: the file; output and errors may stand in one.
        tag_prefix: what stands before the answer.
        tag_suffix: what stands behind it.
        requests_tbl: ``custom_id ID1 ID2``, for names of requests that do not hold the ids.
        prefix: what stands before the first id in a request's name; by default up to the first underscore.
        include_raw: Add ``raw_response``.
        run: the run file of the pipeline that submitted the requests, when it is not beside the results.

    Returns:
        One row per line: ``custom_id ID1 ID2 model object_type status_code error_message thoughts content better_sample
        better_id prompt_tokens completion_tokens total_tokens prompt_cached_tokens reasoning_tokens``.

    Example:
        >>> from pathlib import Path
        >>> import pairscale as ps
        >>> _ = Path("openai.jsonl").write_text(ps.example_openai_batch_output[0], "utf-8")
        >>> parse_openai_batch_output("openai.jsonl").select("ID1", "ID2", "better_id").rows()
        [('S01', 'S02', 'S01')]
    """
    return _parsed("openai", path, (tag_prefix, tag_suffix), requests_tbl, prefix, run, raw=include_raw)


@checked
def parse_anthropic_batch_output(
    jsonl_path: str | os.PathLike[str],
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    *,
    requests_tbl: Table | None = None,
    prefix: str | None = None,
    include_raw: bool = False,
    run: str | os.PathLike[str] | None = None,
) -> pl.DataFrame:
    """Read a file of results of Anthropic's message batches.

    Args:
        jsonl_path: the file.
        tag_prefix: what stands before the answer.
        tag_suffix: what stands behind it.
        requests_tbl: ``custom_id ID1 ID2``, for names of requests that do not hold the ids.
        prefix: what stands before the first id in a request's name; by default up to the first underscore.
        include_raw: Add ``raw_response``.
        run: the run file of the pipeline that submitted the requests, when it is not beside the results.

    Returns:
        One row per line, also for one that cannot be read: the columns of OpenAI's with ``result_type``.

    Example:
        >>> import json
        >>> from pathlib import Path
        >>> said = {"type": "message", "content": [{"type": "text", "text": "<BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>"}]}
        >>> line = {"custom_id": "ANTH_a_vs_b", "result": {"type": "succeeded", "message": said}}
        >>> _ = Path("anthropic.jsonl").write_text(json.dumps(line), "utf-8")
        >>> parse_anthropic_batch_output("anthropic.jsonl").select("ID1", "ID2", "better_id").rows()
        [('a', 'b', 'b')]
    """
    return _parsed("anthropic", jsonl_path, (tag_prefix, tag_suffix), requests_tbl, prefix, run, raw=include_raw)


@checked
def parse_gemini_batch_output(
    results_path: str | os.PathLike[str],
    requests_tbl: Table | None = None,
    tag_prefix: str = "<BETTER_SAMPLE>",
    tag_suffix: str = "</BETTER_SAMPLE>",
    *,
    include_raw: bool = False,
    run: str | os.PathLike[str] | None = None,
) -> pl.DataFrame:
    """Read a file of results of Gemini's batches, as Gemini writes it or as :func:`gemini_download_batch_results` does.

    Args:
        results_path: the file.
        requests_tbl: ``custom_id ID1 ID2``; without it, the ids are taken out of the requests' names.
        tag_prefix: what stands before the answer.
        tag_suffix: what stands behind it.
        include_raw: Add ``raw_response``.
        run: the run file of the pipeline that submitted the requests, when it is not beside the results.

    Returns:
        One row per line, also for one that cannot be read: the columns of Anthropic's with ``thought_signature`` and
        ``thoughts_token_count``.

    Example:
        >>> import json
        >>> from pathlib import Path
        >>> said = {"content": {"parts": [{"text": "<BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>"}]}}
        >>> line = {"custom_id": "GEM_a_vs_b", "result": {"type": "succeeded", "response": {"candidates": [said]}}}
        >>> _ = Path("gemini.jsonl").write_text(json.dumps(line), "utf-8")
        >>> requests = [{"custom_id": "GEM_a_vs_b", "ID1": "a", "ID2": "b"}]
        >>> parse_gemini_batch_output("gemini.jsonl", requests).select("ID1", "ID2", "better_id").rows()
        [('a', 'b', 'b')]
    """
    return _parsed("gemini", results_path, (tag_prefix, tag_suffix), requests_tbl, None, run, raw=include_raw)


def _parsed(
    provider: str,
    path: str | os.PathLike[str],
    tags: tuple[str, str],
    requests: Table | None,
    prefix: str | None,
    run: str | os.PathLike[str] | None,
    *,
    raw: bool,
) -> pl.DataFrame:
    """The table of a file; refuses one of our own pipeline whose pairs cannot be found."""
    names = RequestNames(Path(path), requests, prefix, run)
    table = _Reader(provider, tags, names, raw=raw).table(path)
    if names.unresolved is not None:
        raise InputError(
            f"{path}: pairscale's own pipeline named its requests ({names.unresolved}), and these names hold no ids; "
            "pass `run=`, the run file of that pipeline, or requests_tbl= with custom_id ID1 ID2"
        )
    if count := len(names.unknown):
        many, some = count != 1, ", ".join(names.unknown[:3]) + (", …" if count > 3 else "")
        what = f"{path}: {count:,} name{'s' * many} of requests {'do' if many else 'does'} not"
        if requests is None:
            notice(f"{what} say which two samples they are of: {some}; pass requests_tbl=")
        else:
            notice(f"{what} stand in requests_tbl: {some}; their ids and winners are empty")
    return table


class _Reader:
    """Reads one provider's files."""

    def __init__(self, provider: str, tags: tuple[str, str], names: RequestNames, *, raw: bool = False) -> None:
        provider = "openai" if provider == "together" else provider
        self._form, self._provider = batch_format(provider), provider_named(provider)
        self._schema = {**_SCHEMAS[provider], **({"raw_response": _TEXT} if raw else {})}
        self._tags, self._names = tags, names

    def table(self, path: str | os.PathLike[str]) -> pl.DataFrame:
        """The whole file."""
        file = Path(path)
        if not file.is_file():
            raise FileFormatError(f"{file}: there is no such file of results")
        bad: list[str] = []
        rows = [{name: row.get(name) for name in self._schema} for row in self._rows(file, bad)]
        if bad:
            some = "; ".join(bad[:3]) + ("; …" if len(bad) > 3 else "")
            notice(f"{file}: {len(bad):,} line{'s' * (len(bad) > 1)} cannot be read: {some}")
        return pl.DataFrame(rows, schema=self._schema)

    def _rows(self, file: Path, bad: list[str]) -> Iterator[dict[str, Any]]:
        named = self._provider.name != "openai"  # whose table has readable lines alone, as in the manual
        for _, line in read_lines(file, self._form):
            if isinstance(line, Line):
                yield self._row(line)
                continue
            bad.append(line)
            if named:
                kind = {"result_type": "errored", "object_type": "generateContent"}
                more = kind if self._provider.name == "gemini" else {}
                yield {"error_message": f"Failed to parse JSON line: {line}", **more}

    def _row(self, line: Line) -> dict[str, Any]:
        first, second = self._names.ids(line.custom_id)
        row: dict[str, Any] = {"custom_id": line.custom_id, "ID1": first, "ID2": second, "status_code": line.status}
        row |= {"result_type": line.result_type, "error_message": line.error, "raw_response": _written(line.body)}
        if self._provider.name == "gemini":
            row["object_type"] = "generateContent"
        if line.kind != "succeeded":
            return row
        try:
            reply = self._reply(line.body)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            return row | {"error_message": str(error)}
        return row | self._read(reply, line.body, first, second)

    def _reply(self, body: Any) -> Reply:
        if self._provider.name != "openai":
            return self._provider.reply(HTTPCall("POST", "", {}), body)
        is_response = isinstance(body, Mapping) and body.get("object") == "response"
        return read_response(body) if is_response else read_chat(body, think_tags=True)

    def _read(self, reply: Reply, body: Any, first: str | None, second: str | None) -> dict[str, Any]:
        found = read_tag(reply.text, *self._tags)
        if found.position is None and reply.text.lstrip().startswith("{"):
            found = read_structured(reply.text)
        usage, position = reply.usage, found.position
        if reply.stop_reason in NO_ANSWER:
            position = None
        row = {
            "model": reply.model,
            "object_type": reply.object_type,
            "thoughts": reply.thoughts,
            "content": reply.text or reply.refusal or "",
            "better_sample": None if position is None else f"SAMPLE_{position}",
            "better_id": None if position is None else (first, second)[position - 1],
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.total,
            "prompt_cached_tokens": usage.cached,
            "reasoning_tokens": usage.reasoning,
        }
        if "thought_signature" in self._schema:
            row |= {"thought_signature": signature_of(body), "thoughts_token_count": usage.reasoning}
        return row


def _written(body: Any) -> str | None:
    return None if body is None else json.dumps(body, ensure_ascii=False)
