"""``pairscale.batch``: judging through the providers' batch APIs, with the option names and defaults of the command.

The run file knows every batch and keeps every answer, so that you may submit in one process, and collect in another,
days later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from pairscale.collect.batch.manager import BatchManager
from pairscale.collect.batch.registry import RegistryEntry
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.files import write_table
from pairscale.core.options import FilePath, checked, optional, require_number
from pairscale.core.tables import ANSWER_COLUMNS
from pairscale.judges.base import Judge
from pairscale.judges.batched import require_batches
from pairscale.judges.build import judge_with
from pairscale.pairing.reading import read_given_pairs
from pairscale.providers.batches import ENDED
from pairscale.runtime import run_sync

if TYPE_CHECKING:
    from pairscale.core.tables import Schema, Table
    from pairscale.core.traits import AnyTrait

__all__ = ["BatchAnswers", "cancel", "collect", "resume", "status", "submit"]

T = TypeVar("T")
_TEXT = pl.String()
REGISTRY: Schema = {
    "segment_index": pl.Int64(), "provider": _TEXT, "model": _TEXT, "batch_id": _TEXT, "batch_input_path": _TEXT,
    "batch_output_path": _TEXT, "csv_path": _TEXT, "pairs_path": _TEXT, "done": pl.Boolean(), "results": _TEXT,
}  # fmt: skip
"""The manual's columns of the registry."""


@dataclass(frozen=True, slots=True, repr=False)
class BatchAnswers(ReprMixin, table="results", columns=ANSWER_COLUMNS):
    """What came back from the batches of a run.

    Attributes:
        results: one row per pair that was answered.
        failed_attempts: one row per request without an answer.
        rest: the pairs without an answer that are in no batch under way.
        batches: one row per batch, as :func:`status` gives them.
        collected: how many batches this call has collected.
    """

    results: pl.DataFrame
    failed_attempts: pl.DataFrame
    rest: pl.DataFrame
    batches: pl.DataFrame
    collected: int = 0

    def __str__(self) -> str:
        pairs = f"{self.results.height:,} pairs answered, {self.rest.height:,} without an answer"
        return f"{pairs}, {self.batches.height:,} batches"


def registry_table(chosen: Sequence[RegistryEntry]) -> pl.DataFrame:
    """The registry in the manual's columns."""
    rows = [
        (
            entry.segment, entry.provider, entry.model, entry.batch_id, entry.input_path, entry.output_path,
            str(entry.csv_path), None, not entry.open, None,
        )
        for entry in chosen
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=REGISTRY, orient="row")


@checked
def submit(
    pairs: Table | FilePath,
    *,
    judge: str | Judge,
    run: FilePath,
    trait: AnyTrait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    batch_size: int | None = None,
    segments: int | None = None,
    base_url: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    encoding: str | None = None,
) -> pl.DataFrame:
    """Create the batches that these pairs need, and return at once.

    Pairs that have an answer, or are in a batch that is under way, are left out: the same call again pays for nothing
    twice, also after a crash.

    Args:
        pairs: A table or a file with ``ID1 text1 ID2 text2``.
        judge: A model of OpenAI, Anthropic, Gemini or Together, as ``provider:model`` or an :class:`LLMJudge`.
        run: The run file, created if it is missing.
        trait: What to judge: the key of a built-in trait, or a :class:`Trait`.
        template: A prompt template, by its name, file or text.
        judge_args: Settings of the model.
        batch_size: Maximum number of pairs in one batch.
        segments: How many batches; by default as few as the provider takes.
        base_url: Address of the provider.
        a_col: The column of the text that is shown first, where it is not ``text1``; a name or a path in JSON.
        b_col: The column of the text that is shown second, where it is not ``text2``.
        encoding: Encoding of a text file that is not UTF-8.

    Returns:
        The new batches, one row per batch; no rows if nothing had to be submitted.

    Raises:
        InputError: If the pairs, the judge or a setting cannot be used.
        JudgeError: If the provider refuses the request.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(4)
        >>> made = ps.batch.submit(pairs, judge="openai:gpt-4.1", run="submit.db", segments=2)
        >>> made["pairs"].to_list()
        [2, 2]
    """
    table = read_given_pairs(pairs, encoding=encoding, a_col=a_col, b_col=b_col)
    asked = require_batches(judge_with(judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url))

    async def work(manager: BatchManager) -> pl.DataFrame:
        await manager.resume()
        _, created = await manager.submit(table, asked, batch_size=batch_size, n_segments=segments)
        return manager.status([entry.key for entry in created])

    return _managed(run, work)


@checked
def status(run: FilePath, *, offline: bool = False, registry: FilePath | None = None) -> pl.DataFrame:
    """Show the batches of a run: states, counts, ages, and the time they have left.

    Args:
        run: The run file.
        offline: Show what is known, and ask no provider.
        registry: A file to write the batches to as well, in the columns of the R package's registry.

    Returns:
        One row per batch.

    Raises:
        JudgeError: If the provider refuses the key.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(2)
        >>> _ = ps.batch.submit(pairs, judge="openai:gpt-4.1", run="status.db")
        >>> ps.batch.status("status.db", offline=True)["provider"].to_list()
        ['openai']
    """

    async def work(manager: BatchManager) -> pl.DataFrame:
        if not offline:
            await manager.look()
        if registry is not None:
            write_table(registry_table(manager.entries()), Path(registry))
        return manager.status()

    return _managed(run, work)


@checked
def collect(run: FilePath) -> BatchAnswers:
    """Collect the results of the batches that have ended, without waiting for the others.

    Args:
        run: The run file, which holds the results afterwards.

    Returns:
        A :class:`BatchAnswers` with ``results``, ``failed_attempts``, ``rest`` and ``batches``.

    Raises:
        JudgeError: If the provider refuses the key.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(2)
        >>> _ = ps.batch.submit(pairs, judge="openai:gpt-4.1", run="collect.db")
        >>> ps.batch.collect("collect.db").batches.height
        1
    """

    async def work(manager: BatchManager) -> BatchAnswers:
        await manager.look()
        return _answers(manager, len(await manager.collect()))

    return _managed(run, work)


@checked
def resume(
    run: FilePath,
    *,
    interval: float = 60.0,
    max_minutes: float | None = None,
    again: bool = False,
    on_look: Callable[[pl.DataFrame], None] | None = None,
    on_again: Callable[[pl.DataFrame], None] | None = None,
) -> BatchAnswers:
    """Continue where any earlier call stopped: create what was only prepared, wait for all batches, and collect them.

    You may interrupt it at any time, and call it from another machine that has the run file and the key.

    Args:
        run: The run file.
        interval: Seconds between two looks.
        max_minutes: Minutes that this call may wait; what has ended by then is collected, and a later call continues.
        again: First submit again what failed, expired or was cancelled.
        on_look: Called after each look with the table of all batches.
        on_again: Called with the table of the batches that ``again`` has created.

    Returns:
        A :class:`BatchAnswers` with ``results``, ``failed_attempts``, ``rest`` and ``batches``.

    Raises:
        InputError: If a setting is out of range.
        JudgeError: If the provider refuses the key.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(2)
        >>> _ = ps.batch.submit(pairs, judge="openai:gpt-4.1", run="resume.db")
        >>> ps.batch.resume("resume.db", interval=0.1).results.height
        2
    """
    minutes = optional(require_number, max_minutes, "max_minutes", least=0)
    timeout = None if minutes is None else 60 * minutes

    async def work(manager: BatchManager) -> BatchAnswers:
        before = sum(entry.collected_at is not None for entry in manager.entries())
        await manager.resume()
        if again:
            await manager.look()
            await manager.collect()
            created = await manager.resubmit()
            if on_again is not None:
                on_again(manager.status([entry.key for entry in created]))
        after_look = None if on_look is None else lambda _entries: on_look(manager.status())
        entries = await manager.wait(interval=interval, timeout=timeout, on_look=after_look)
        return _answers(manager, sum(entry.collected_at is not None for entry in entries) - before)

    return _managed(run, work)


@checked
def cancel(run: FilePath, *, batch: str | Sequence[str] | None = None) -> pl.DataFrame:
    """Ask the providers to end batches; what was answered until then can be collected, and is paid for.

    Args:
        run: The run file.
        batch: Only these batches, by their id or key; all that are under way by default.

    Returns:
        The batches that were asked to end, one row per batch.

    Raises:
        InputError: If the run file knows no such batch.
        JudgeError: If the provider refuses the key.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples).head(2)
        >>> _ = ps.batch.submit(pairs, judge="openai:gpt-4.1", run="cancel.db")
        >>> ps.batch.cancel("cancel.db").height
        1
    """
    wanted = {batch} if isinstance(batch, str) else set(batch or [])

    async def work(manager: BatchManager) -> pl.DataFrame:
        entries = manager.entries()
        chosen = [entry.key for entry in entries if not wanted or {entry.key, entry.batch_id} & wanted]
        if unknown := wanted - {name for entry in entries for name in (entry.key, entry.batch_id)}:
            raise InputError(
                f"{run} knows no batch {', '.join(sorted(unknown))}; `pairscale batch status {run}` lists them"
            )
        mine = [entry for entry in entries if entry.key in chosen and entry.open]
        ending = [entry.key for entry in mine if wanted or entry.state not in ENDED]
        await manager.cancel(ending)
        return manager.status(ending)

    return _managed(run, work)


def _managed(run: FilePath, work: Callable[[BatchManager], Awaitable[T]]) -> T:
    async def main() -> T:
        async with BatchManager(str(run)) as manager:
            return await work(manager)

    return run_sync(main)


def _answers(manager: BatchManager, collected: int) -> BatchAnswers:
    return BatchAnswers(*manager.results(), manager.rest(), manager.status(), collected)
