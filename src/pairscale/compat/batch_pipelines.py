"""The manual's pipelines: from pairs to results through batches, one provider or any, one batch or many."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.collect.batch.manager import BatchManager
from pairscale.collect.batch.registry import RegistryEntry
from pairscale.compat._given import TraitAndTemplate, judge_from, require_waiting
from pairscale.compat._names import copy_pairs
from pairscale.compat._tables import ANSWERS, PREFIXES, batch_table, named_as_in_r
from pairscale.core.display import ReprMixin
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.files import replacing
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.tables import ANSWER_COLUMNS
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import batch_format
from pairscale.providers.client import ProviderError
from pairscale.runtime import run_sync

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.tables import Table
    from pairscale.judges.batched import BatchJudge

_DAY = 86_400.0


@dataclass(frozen=True, slots=True, repr=False)
class BatchResult(ReprMixin, table="results", columns=ANSWER_COLUMNS):
    """What came of pairs that were submitted in batches.

    Attributes:
        backend: The provider.
        batch_input_path: the file of requests; of the first batch when there are several.
        batch_output_path: the file of results; None until there is one.
        file: the uploaded file, where the provider has files.
        batch: the batch as the provider describes it.
        results: One row per pair; one that failed says why in ``error_message``. None if the end was not waited for.
        failed_attempts: every attempt without an answer.
        run: the run file, from which everything can be taken up again.
        batch_ids: the provider's names of all batches.
    """

    backend: str
    batch_input_path: Path | None
    batch_output_path: Path | None
    file: Mapping[str, Any] | None
    batch: Mapping[str, Any]
    results: pl.DataFrame | None
    failed_attempts: pl.DataFrame
    run: Path | str
    batch_ids: Sequence[str] = field(default_factory=list[str])

    def __repr__(self) -> str:
        answered = None if self.results is None else self.results["outcome"].is_in(ANSWERS).sum()
        got = "not waited for" if answered is None else f"{answered:,} pairs answered"
        return f"<BatchResult of {self.backend}: {len(self.batch_ids)} batches, {got}, in {self.run}>"


@dataclass(frozen=True, slots=True)
class _Way:
    """How a pipeline goes: where copies of its files go, how it waits, and what it gives."""

    batch_input_path: str | os.PathLike[str] | None = None
    batch_output_path: str | os.PathLike[str] | None = None
    poll: bool = True
    interval_seconds: float = 60.0
    timeout_seconds: float = _DAY
    verbose: bool = True
    max_attempts: float = math.inf
    metadata: Mapping[str, str] | None = None
    include_raw: bool = False

    def __post_init__(self) -> None:
        waiting = require_waiting(self.interval_seconds, self.timeout_seconds, self.max_attempts)
        for name, value in zip(("interval_seconds", "timeout_seconds", "max_attempts"), waiting, strict=True):
            object.__setattr__(self, name, value)


_SPLITTING = ("batch_size", "n_segments", "max_cost")


def _pipeline(
    backend: str,
    pairs: Table,
    model: str,
    question: TraitAndTemplate,
    api_key: str | None,
    way: _Way,
    settings: dict[str, Any],
) -> BatchResult:
    """Any provider's pipeline; what the settings say of the way, the run file and the splitting is not the judge's."""
    run = settings.pop("run", None)
    splitting = {name: settings.pop(name) for name in _SPLITTING if name in settings}
    way = replace(way, **{one.name: settings.pop(one.name) for one in fields(_Way) if one.name in settings})
    for name in ("batch_input_path", "batch_output_path"):
        _require_place(name, getattr(way, name))
    judge = judge_from(backend, model, question, api_key, settings)
    where = Path(tempfile.mkdtemp(prefix="pairscale-batch-")) / "run.db" if run is None else run

    async def main() -> BatchResult:
        manager = BatchManager(where)
        try:
            plan, found = await manager.submit(
                pairs, judge, metadata=way.metadata, include_raw=way.include_raw, **splitting
            )
            mine = [entry.key for entry in manager.entries() if entry.condition_id == plan.condition_id]
            if way.poll:
                await manager.wait(
                    mine, interval=way.interval_seconds, timeout=way.timeout_seconds, rounds=way.max_attempts,
                    told=tell if way.verbose else None,
                )  # fmt: skip
            found = manager.entries([entry.key for entry in found] or mine)
            answered, failed = manager.results(mine, raw=True)
            results = batch_table(answered, failed, backend, model, raw=way.include_raw)
            source, output = _copied(backend, found, way, where)
            return BatchResult(
                judge.provider,
                source,
                output,
                None if not found or found[0].file_id is None else {"id": found[0].file_id},
                await _described(judge, found),
                results if way.poll else None,
                named_as_in_r(failed, PREFIXES[backend]),
                _named(where),
                [entry.batch_id for entry in found if entry.batch_id is not None],
            )
        finally:
            await manager.aclose()

    return run_sync(main, run=where if run is not None else f"{where} (pass this file as `run=`)")


def _named(where: str | os.PathLike[str]) -> Path | str:
    return str(where) if "://" in str(where) else Path(where)


def tell(found: Sequence[RegistryEntry]) -> None:
    """Say in notices how the batches stand that are under way."""
    for entry in found:
        if entry.open:
            notice(f"batch {entry.batch_id}: {entry.state}")


async def _described(judge: BatchJudge, found: Sequence[RegistryEntry]) -> Mapping[str, Any]:
    """The first batch, as the provider describes it now."""
    if not found or found[0].batch_id is None:
        return {}
    try:
        return (await batch_format(judge.provider).get(BatchHTTP(judge.client), found[0].batch_id)).raw
    except ProviderError:
        return {"id": found[0].batch_id}


def _require_place(name: str, path: str | os.PathLike[str] | None) -> None:
    """Refuse a name that no file can have, before anything is paid for."""
    if path is None:
        return
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise InputError(f"{name}: {path} is a folder; name a file in it")
    if not real.parent.is_dir():
        raise InputError(f"{name}: there is no folder {real.parent}; make it first")
    if not os.access(real.parent, os.W_OK):
        raise InputError(f"{name}: the folder {real.parent} may not be written; name another")


_IN_ONE_DOCUMENT = ("anthropic", "gemini")
"""Providers whose requests are one JSON document in the manual; those of others are JSON Lines."""


def _copied(
    backend: str, found: Sequence[RegistryEntry], way: _Way, run: str | os.PathLike[str]
) -> tuple[Path | None, Path | None]:
    """The first batch's files, under the names that were asked for."""
    if not found:
        return None, None
    source = Path(found[0].input_path)
    as_document = backend in _IN_ONE_DOCUMENT
    input_path = way.batch_input_path
    if input_path is None and as_document:
        input_path = source.with_suffix(".json")
    paths = []
    for wanted, path in ((input_path, source), (way.batch_output_path, Path(found[0].output_path))):
        if wanted is not None and path.is_file():
            try:
                with replacing(Path(wanted), private=True) as temporary:
                    if as_document and path == source:
                        _write_document(path, temporary)
                    else:
                        shutil.copyfile(path, temporary)
                if wanted is way.batch_output_path:
                    copy_pairs(run, found[0].key, Path(wanted))
            except FileFormatError as error:
                raise FileFormatError(f"{error}; nothing is lost, it is all in the run file {run}") from None
            path = Path(wanted)  # noqa: PLW2901
        paths.append(path if path.is_file() else None)
    return paths[0], paths[1]


def _write_document(lines: Path, document: Path) -> None:
    """The requests of a batch as the JSON document that the manual's pipelines write: ``{"requests": [...]}``."""
    with lines.open("r", encoding="utf-8") as source, document.open("w", encoding="utf-8") as target:
        target.write('{"requests": [\n')
        target.write(",\n".join(line.rstrip("\n") for line in source))
        target.write("\n]}\n")


@checked
def run_openai_batch_pipeline(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    include_thoughts: bool = False,
    include_raw: bool = False,
    endpoint: str | None = None,
    batch_input_path: str | os.PathLike[str] | None = None,
    batch_output_path: str | os.PathLike[str] | None = None,
    poll: bool = True,
    interval_seconds: float = 5,
    timeout_seconds: float = 600,
    max_attempts: float = math.inf,
    metadata: Mapping[str, str] | None = None,
    api_key: str | None = None,
    *,
    verbose: bool = False,
    **settings: Any,
) -> BatchResult:
    """Have pairs judged in an OpenAI batch: build, upload, create, wait, download, read.

    Args:
        pairs: A table of ``ID1 text1 ID2 text2``.
        model: Name of the model.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; by default overall quality is judged.
        prompt_template: Name, file or text of a prompt template.
        include_thoughts: Ask for a summary of the thoughts.
        include_raw: Add ``raw_response`` to the results.
        endpoint: ``chat.completions`` or ``responses``; None chooses by the model.
        batch_input_path: File for a copy of the requests.
        batch_output_path: where to put a copy of the results; ``NAME.pairs.csv`` beside it says which two samples
            each request is of, for :func:`parse_openai_batch_output`.
        poll: Wait until the batch has ended; False returns as soon as it is created.
        interval_seconds: Seconds between two checks; longer while nothing changes.
        timeout_seconds: Maximum seconds to wait.
        max_attempts: how often to look.
        metadata: names and values that OpenAI keeps with the batch.
        api_key: The API key; by default that of the environment.
        verbose: Report the state of the batch in notices.
        settings: ``run`` (the run file), ``batch_size``, ``n_segments``, ``max_cost``, and those of :class:`LLMJudge`.

    Returns:
        A :class:`BatchResult`.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> run_openai_batch_pipeline(pair, "gpt-4.1", interval_seconds=0.01).results["better_id"].to_list()
        ['b']
    """
    way = _Way(
        batch_input_path, batch_output_path, poll, interval_seconds, timeout_seconds, verbose, max_attempts, metadata,
        include_raw,
    )  # fmt: skip
    settings |= {"include_thoughts": include_thoughts, "endpoint": endpoint}
    question = TraitAndTemplate(trait_name, trait_description, prompt_template)
    return _pipeline("openai", pairs, model, question, api_key, way, settings)


@checked
def run_anthropic_batch_pipeline(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    reasoning: str = "none",
    include_thoughts: bool = False,
    batch_input_path: str | os.PathLike[str] | None = None,
    batch_output_path: str | os.PathLike[str] | None = None,
    poll: bool = True,
    interval_seconds: float = 60,
    timeout_seconds: float = _DAY,
    api_key: str | None = None,
    anthropic_version: str = "2023-06-01",
    verbose: bool = True,
    **settings: Any,
) -> BatchResult:
    """Have pairs judged in an Anthropic message batch; see :func:`run_openai_batch_pipeline`.

    Args:
        pairs: A table of ``ID1 text1 ID2 text2``.
        model: Name of the model, such as ``claude-sonnet-4-5``.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; required with ``trait_name``.
        prompt_template: Name, file or text of a prompt template.
        reasoning: ``none``, ``enabled``, or how hard to think.
        include_thoughts: Ask for the thoughts, which turns thinking on.
        batch_input_path: File for the requests, as one JSON document ``{"requests": [...]}``.
        batch_output_path: File for a copy of the results.
        poll: Wait until the batch has ended; False returns as soon as it is created.
        interval_seconds: Seconds between two checks; up to ten times that while nothing changes.
        timeout_seconds: Maximum seconds to wait; by default a day, the most that Anthropic takes.
        api_key: The API key; by default that of the environment.
        anthropic_version: Version of the API.
        verbose: Report the state of the batch in notices.
        settings: ``run``, ``batch_size``, ``n_segments``, and those of :class:`LLMJudge`.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> done = run_anthropic_batch_pipeline(pair, "claude-sonnet-4-5", interval_seconds=0.01)
        >>> done.results["better_id"].to_list()
        ['b']
    """
    settings |= {"include_thoughts": include_thoughts, "reasoning": reasoning, "anthropic_version": anthropic_version}
    way = _Way(batch_input_path, batch_output_path, poll, interval_seconds, timeout_seconds, verbose)
    question = TraitAndTemplate(trait_name, trait_description, prompt_template)
    return _pipeline("anthropic", pairs, model, question, api_key, way, settings)


@checked
def run_gemini_batch_pipeline(
    pairs: Table,
    model: str,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    thinking_level: str | None = None,
    batch_input_path: str | os.PathLike[str] | None = None,
    batch_output_path: str | os.PathLike[str] | None = None,
    poll: bool = True,
    interval_seconds: float = 60,
    timeout_seconds: float = _DAY,
    api_key: str | None = None,
    api_version: str = "v1beta",
    verbose: bool = True,
    include_thoughts: bool = False,
    **settings: Any,
) -> BatchResult:
    """Have pairs judged in a Gemini batch; see :func:`run_openai_batch_pipeline`.

    Args:
        pairs: A table of ``ID1 text1 ID2 text2``.
        model: Name of the model, such as ``gemini-2.5-flash``.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; required with ``trait_name``.
        prompt_template: Name, file or text of a prompt template.
        thinking_level: ``minimal low medium high``; by default the model's, ``low`` for Gemini 3.
        batch_input_path: File for the requests, as one JSON document ``{"requests": [...]}``.
        batch_output_path: File for a copy of the results.
        poll: Wait until the batch has ended; False returns as soon as it is created.
        interval_seconds: Seconds between two checks; longer while nothing changes.
        timeout_seconds: Maximum seconds to wait.
        api_key: The API key; by default ``GEMINI_API_KEY``.
        api_version: ``v1beta`` or ``v1``.
        verbose: Report the state of the batch in notices.
        include_thoughts: Ask for the thoughts.
        settings: ``run``, ``batch_size``, ``n_segments``, and those of :class:`LLMJudge`.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> run_gemini_batch_pipeline(pair, "gemini-2.5-flash", interval_seconds=0.01).results["better_id"].to_list()
        ['b']
    """
    settings |= {"include_thoughts": include_thoughts, "reasoning": thinking_level or settings.get("reasoning")}
    settings["api_version"] = api_version
    way = _Way(batch_input_path, batch_output_path, poll, interval_seconds, timeout_seconds, verbose)
    question = TraitAndTemplate(trait_name, trait_description, prompt_template)
    return _pipeline("gemini", pairs, model, question, api_key, way, settings)


def _run_together_batch_pipeline(
    pairs: Table,
    model: str,
    *,
    include_thoughts: bool = False,
    api_key: str | None = None,
    **settings: Any,
) -> BatchResult:
    """Have pairs judged in a Together batch, which the manual does not know."""
    question = TraitAndTemplate(*(settings.pop(name, None) for name in TraitAndTemplate._fields))
    settings |= {"include_thoughts": include_thoughts}
    return _pipeline("together", pairs, model, question, api_key, _Way(), settings)


_PIPELINES: Mapping[str, Callable[..., BatchResult]] = {
    "openai": run_openai_batch_pipeline,
    "anthropic": run_anthropic_batch_pipeline,
    "gemini": run_gemini_batch_pipeline,
    "together": _run_together_batch_pipeline,
}


@checked
def llm_submit_pairs_batch(
    pairs: Table,
    backend: str = "openai",
    model: str | None = None,
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    include_thoughts: bool = False,
    include_raw: bool = False,
    **settings: Any,
) -> BatchResult:
    """Have pairs judged in batches of any provider that has them, and wait for the end.

    Args:
        pairs: A table of ``ID1 text1 ID2 text2``.
        backend: ``openai``, ``anthropic``, ``gemini`` or ``together``.
        model: Name of the model.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; by default overall quality is judged.
        prompt_template: Name, file or text of a prompt template.
        include_thoughts: ask for the thoughts, where they are given.
        include_raw: Add ``raw_response`` to the results.
        settings: of the pipeline (``poll interval_seconds timeout_seconds run batch_size n_segments
            batch_input_path batch_output_path``) and of :class:`LLMJudge`.

    Returns:
        A :class:`BatchResult`; ``poll=False`` returns as soon as the batches are created.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> llm_submit_pairs_batch(pair, "openai", "gpt-4.1", interval_seconds=0.01).results["better_id"].to_list()
        ['b']
    """
    backend = backend.lower()
    if model is None:
        raise InputError(f"name a model of {backend}")
    batch_format(backend)  # says which providers have batches
    return _PIPELINES[backend](
        pairs, model, trait_name=trait_name, trait_description=trait_description, prompt_template=prompt_template,
        include_thoughts=include_thoughts, include_raw=include_raw, **settings,
    )  # fmt: skip


def llm_download_batch_results(x: Any) -> pl.DataFrame:
    """The results of :func:`llm_submit_pairs_batch`; of one that was not waited for, as far as they are there now.

    Args:
        x: what it returned, or anything with ``results``.

    Example:
        >>> pair = [{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}]
        >>> done = llm_submit_pairs_batch(pair, "openai", "gpt-4.1", interval_seconds=0.01)
        >>> llm_download_batch_results(done)["better_id"].to_list()
        ['b']
    """
    results = x.get("results") if isinstance(x, Mapping) else getattr(x, "results", None)
    if results is None and isinstance(x, BatchResult):

        async def main() -> pl.DataFrame:
            manager = BatchManager(x.run)
            try:
                found = await manager.wait(rounds=1)
                wanted = any(entry.include_raw for entry in found)
                answered, failed = manager.results(raw=True)
                return batch_table(answered, failed, x.backend, found[0].model if found else None, raw=wanted)
            finally:
                await manager.aclose()

        return run_sync(main, run=x.run)
    if results is None:
        raise InputError("there are no results in this; give what llm_submit_pairs_batch returned")
    found: pl.DataFrame = results
    return found
