"""Batches: what every provider's batch API has in common, behind one protocol.

A batch is a file of requests that a provider works off within a day, at a discount. The providers agree on that and on
nothing else: how requests are written, uploaded and named, what the states are called, and where results lie. Each has
a module of its own; this one has what they share.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args
from urllib.parse import quote

from pairscale.core.errors import InputError
from pairscale.providers.base import Fields, JsonObject
from pairscale.providers.batch_http import MOST_RESULTS, BatchHTTP
from pairscale.providers.catalog import CLASSES
from pairscale.providers.client import ProviderError
from pairscale.providers.wire import field, objects, problem, text

if TYPE_CHECKING:
    from pairscale.providers.base import HTTPCall


State = Literal["validating", "running", "finishing", "done", "partly", "failed", "expired", "cancelled"]
"""The states of a batch: ``partly`` has ended with some requests failed, ``failed`` before any was answered."""

ENDED: frozenset[State] = frozenset(set(get_args(State)) - {"validating", "running", "finishing"})
"""The states after which nothing more happens."""

_PAGES = 500

_WORDS: Mapping[str, State] = {
    **dict.fromkeys(("validating", "queued", "pending"), "validating"),
    **dict.fromkeys(("in_progress", "running", "updating", "paused"), "running"),
    **dict.fromkeys(("finalizing", "cancelling", "canceling"), "finishing"),
    **dict.fromkeys(("completed", "succeeded"), "done"),
    "partially_succeeded": "partly",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
}
"""What the providers call the states."""


def state_of(word: Any, *, lost: Any = None) -> State:
    """The state that a provider's word means; an unknown word counts as running.

    Args:
        word: as the provider has it, such as ``in_progress``, ``IN_PROGRESS`` or ``JOB_STATE_RUNNING``.
        lost: whether some requests failed, which makes ``done`` ``partly``.

    Example:
        >>> state_of("BATCH_STATE_SUCCEEDED"), state_of("completed", lost=3)
        ('done', 'partly')
    """
    name = str(word).lower().removeprefix("job_state_").removeprefix("batch_state_")
    state = _WORDS.get(name, "running")
    return "partly" if state == "done" and lost else state


@contextmanager
def reading(provider: str, document: Any) -> Iterator[None]:
    """Inside the block, read what a provider reports about a file or a batch; its shape may be a surprise.

    Raises:
        ProviderError: it cannot be read; the next reply may be another, so that it may pass.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        words = f"{provider}: the reply cannot be read ({error}): {str(document)[:200]}"
        raise ProviderError("parse_error", words, failure="transient", raw=document) from None


def name_of(document: Any, name: str = "id") -> str:
    """The provider's name of a file or a batch.

    Raises:
        ValueError: there is none.
    """
    value = text(document, name)
    if value is None:
        raise ValueError(f"it has no {name}")
    return value


def seconds_of(moment: Any) -> float | None:
    """A moment in seconds since 1970, given as such or in ISO 8601; None when there is none.

    Raises:
        ValueError: it is no moment.
    """
    if moment in (None, ""):
        return None
    seconds = datetime.fromisoformat(moment).timestamp() if isinstance(moment, str) else float(moment)
    if not math.isfinite(seconds):
        raise ValueError(f"{moment} is no moment")
    return seconds


LineKind = Literal["succeeded", "errored", "expired", "cancelled"]
"""What became of one request."""


class BatchLimits(NamedTuple):
    """How large a batch may be: how many requests, and how many bytes their file may have."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A batch that is about to be created.

    Attributes:
        key: our own name for it; no other batch has it.
        model: the model.
        endpoint: where each request goes, such as ``/v1/chat/completions``.
        path: the file of requests, one JSON object a line.
        n_requests: how many there are.
        prepared_at: when it was written down, in seconds since 1970; it was not created before.
        file_id: the provider's name of the uploaded file, once it is there.
        metadata: further names and values for a provider that keeps them.
    """

    key: str
    model: str
    endpoint: str
    path: Path
    n_requests: int
    prepared_at: float
    file_id: str | None = None
    metadata: Mapping[str, str] = dataclass_field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch as its provider sees it.

    Attributes:
        id: the provider's name of it.
        state: its state.
        total: requests in it; None where the provider does not say.
        succeeded: of these, answered.
        failed: of these, ended without an answer.
        key: our own name of it, where the provider keeps one.
        created_at: in seconds since 1970.
        expires_at: when the provider gives up.
        message: why it failed.
        outputs: what there is to download.
        raw: as it came.
    """

    id: str
    state: State
    total: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    key: str | None = None
    created_at: float | None = None
    expires_at: float | None = None
    message: str | None = None
    outputs: tuple[str, ...] = ()
    raw: JsonObject = dataclass_field(default_factory=dict, repr=False)

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one request.

    Attributes:
        custom_id: the request's name.
        kind: whether it was answered.
        status: of HTTP, where there is one.
        body: the reply, or the error as it came.
        error: the provider's message.
        result_type: the provider's own word for ``kind``.
    """

    custom_id: str
    kind: LineKind
    status: int | None = None
    body: Any = None
    error: str | None = None
    result_type: str | None = None


def failed_line(
    custom_id: str, status: int | None, error: Any, kind: LineKind = "errored", result_type: str | None = None
) -> Line:
    """A request that has an error instead of a reply."""
    return Line(custom_id, kind, status, error, problem(status or 0, {"error": error}).message, result_type)


class BatchFormat:
    """One provider's batch API.

    Attributes:
        name: the provider.
        limits: how large a batch may be.
        path: where its batches are.
    """

    name: ClassVar[str]
    limits: ClassVar[BatchLimits]
    path: ClassVar[str] = "/batches"

    def line(self, custom_id: str, call: HTTPCall) -> Fields:
        """One request of the file, from the call that live judging would make."""
        raise NotImplementedError

    def endpoint(self, call: HTTPCall) -> str:
        """Where the requests of a batch go."""
        return call.path

    async def upload(self, http: BatchHTTP, draft: Draft) -> str | None:  # noqa: ARG002
        """Upload the file of requests, and return its name there; None when requests go with the creation."""
        return None

    async def create(self, http: BatchHTTP, draft: Draft) -> BatchJob:
        """Create the batch; never asked twice, because it may be there although no answer came.

        Raises:
            ProviderError: it is not known to be there.
        """
        raise NotImplementedError

    def job_path(self, http: BatchHTTP, job_id: str, action: str = "") -> str:  # noqa: ARG002
        """The address of a batch."""
        return f"{self.path}/{quote(job_id, safe='')}{action}"

    async def get(self, http: BatchHTTP, job_id: str) -> BatchJob:
        """A batch as it is now."""
        return self.job(await http.json("GET", self.job_path(http, job_id)))

    async def cancel(self, http: BatchHTTP, job_id: str) -> None:
        """Ask for an end; what was answered until then is kept."""
        await http.json("POST", self.job_path(http, job_id, "/cancel"))

    async def find(self, http: BatchHTTP, draft: Draft, taken_ids: Collection[str]) -> list[BatchJob]:
        """The batches that may be this draft's, likeliest first; ``taken_ids`` are known to be others."""
        raise NotImplementedError

    async def pages(self, http: BatchHTTP, path: str, argument: str) -> AsyncIterator[list[BatchJob]]:
        """The list of batches, a page at a time; ``argument`` names the next page.

        Raises:
            ProviderError: the list does not end, so that nothing can be said of what is not in it.
        """
        following = ""
        for _ in range(_PAGES):
            page = await http.json("GET", path + following)
            rows = objects(page, "data") or objects(page, "operations") or objects(page, "batches")
            yield [self.job(row) for row in rows]
            token = field(page, "nextPageToken")
            if rows and field(page, "has_more"):
                token = rows[-1].get("id")
            if not token:
                return
            following = f"&{argument}={quote(str(token), safe='')}"
        raise ProviderError("parse_error", f"{self.name}: the list of batches does not end", failure="transient")

    def result_paths(self, job: BatchJob) -> list[str]:
        """The addresses of the results."""
        raise NotImplementedError

    async def download(self, http: BatchHTTP, job: BatchJob, target: Path, most: int = MOST_RESULTS) -> None:
        """Write all results into one file of at most ``most`` bytes, one JSON object per line."""
        await http.fetch(self.result_paths(job), target, most)

    def job(self, document: Any) -> BatchJob:
        """A batch as its provider describes it.

        Raises:
            ProviderError: it cannot be read.
        """
        with reading(self.name, document):
            return self.read_job(document if isinstance(document, dict) else {})

    def read_job(self, document: JsonObject) -> BatchJob:
        """The same; whatever it raises means that the document cannot be read."""
        raise NotImplementedError

    def read(self, document: JsonObject) -> Line:
        """One line of a file of results.

        Raises:
            ValueError: it is not a result.
        """
        raise NotImplementedError


BATCH_PROVIDERS = ("openai", "anthropic", "gemini", "together")
"""The providers that have batches."""


def batch_format(provider: str) -> BatchFormat:
    """The batch API of a provider.

    Raises:
        InputError: when it has none.

    Example:
        >>> batch_format("openai").limits.requests
        50000
    """
    if provider not in BATCH_PROVIDERS:
        raise InputError(f"{provider} has no batches; there are {', '.join(BATCH_PROVIDERS)}: judge live instead")
    batches: BatchFormat = getattr(import_module(f"pairscale.providers.{provider}"), f"{CLASSES[provider]}Batches")()
    return batches
