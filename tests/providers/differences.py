"""Where our requests differ from those of the official SDKs, and why: the table of docs/validation.md."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

__all__ = ["DIFFERENCES", "Difference", "differing", "documented"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference that is meant.

    Attributes:
        requests: pattern of the names of the requests that have it.
        field: of the request: ``path``, ``query.x``, ``header.x``, ``body.x``.
        theirs: pattern of what the SDK sends; ``nothing`` where it sends nothing.
        ours: pattern of what we send.
        reason: why.
    """

    requests: str
    field: str
    theirs: str
    ours: str
    reason: str

    def covers(self, request: str, field: str, theirs: Any, ours: Any) -> bool:
        """Whether a difference that was found is this one."""
        found = (request, field, _in_words(theirs), _in_words(ours))
        return all(map(fnmatchcase, found, (self.requests, self.field, self.theirs, self.ours)))

    def row(self) -> str:
        """As a row of the table in the documentation."""
        cells = [self.requests, f"`{self.field}`", f"`{self.theirs}`", f"`{self.ours}`", self.reason]
        return f"| {' | '.join(cells)} |".replace("*", "…").replace("`nothing`", "nothing")


def _in_words(value: Any) -> str:
    return "nothing" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


VERSION = "the version that the manual sends; `version=` changes it"
KEY = 'the older header of the key, which Anthropic still takes; `key_header="bearer"` changes it'
WHOLE = "a reply in one piece is the default of the API"
READING = "the SDK names a type where there is no body"
DIFFERENCES: tuple[Difference, ...] = (
    Difference("anthropic*", "header.anthropic-version", "2026-10-21", "2023-06-01", VERSION),
    Difference("anthropic*", "header.authorization", "Bearer *", "nothing", KEY),
    Difference("anthropic*", "header.x-api-key", "nothing", "*", KEY),
    Difference("anthropic batch results, asked before", "*", "*", "nothing",
               "the SDK asks for the address of the results first; ours was told it when the batch had ended"),
    Difference("gemini address", "version", "v1", "v1beta", "the version of the manual; `api_version=` changes it"),
    Difference("gemini spelling", "body", "snake_case", "camelCase",
               "the API takes both, and its reference has this one"),
    Difference("gemini batch list", "header.content-type", "application/json", "nothing", READING),
    Difference("gemini batch retrieve", "header.content-type", "application/json", "nothing", READING),
    Difference("gemini batch results", "header.content-type", "application/json", "nothing", READING),
    Difference("gemini batch upload", "header.content-type", "application/json", "application/jsonl",
               "the type of what is sent"),
    Difference("gemini batch upload", "header.x-goog-upload-*", "*", "nothing",
               "the SDK repeats the headers of the request before"),
    Difference("gemini batch upload, asked before", "body.file.sizeBytes", "*", "nothing",
               "a header of the same request has the size"),
    Difference("openrouter by openrouter*", "body.stream", "false", "nothing", WHOLE),
    Difference("mistral by mistral*", "body.stream", "false", "nothing", WHOLE),
    Difference("azure by openai*", "header.authorization", "Bearer *", "nothing",
               "Azure's own SDK sends a key as `api-key`, and tokens as `Authorization`, and so do we"),
    Difference("azure by openai*", "header.api-key", "nothing", "*", "the same"),
    Difference("bedrock address", "host", "bedrock-mantle.*.api.aws", "bedrock-runtime.*.amazonaws.com",
               "both have chat completions; `AWS_BEDROCK_BASE_URL` or `--base-url` chooses the other"),
)  # fmt: skip


def documented() -> str:
    """The table of the documentation."""
    head = "| requests | field | the SDK | pairscale | why |\n| --- | --- | --- | --- | --- |"
    return "\n".join([head, *(one.row() for one in DIFFERENCES)])


def differing(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """By field, what two requests have that is not the same."""
    names = sorted(theirs.keys() | ours.keys())
    return {name: (theirs.get(name), ours.get(name)) for name in names if theirs.get(name) != ours.get(name)}
