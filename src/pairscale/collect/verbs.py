"""``judge`` and ``compare``, with the option names and defaults of the command."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pairscale.collect.live import SubmitResult, submit_pairs
from pairscale.collect.shards import judge_in_shards, judge_shard
from pairscale.core.documents import DOCUMENT_SUFFIXES
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.jobs import require_jobs
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, ProgressMode, checked
from pairscale.core.texts import read_document
from pairscale.core.traits import AnyTrait
from pairscale.judges.base import AnyJudge
from pairscale.judges.build import judge_with
from pairscale.pairing.reading import read_given_pairs
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT

if TYPE_CHECKING:
    import polars as pl

    from pairscale.core.tables import Table
    from pairscale.providers.catalog import Price

    Answer = Literal["winner", "probability"]

_FILES = {*DOCUMENT_SUFFIXES, ".doc", ".rtf", ".csv", ".json", ".jsonl"}
"""A single word that ends in one of these is the name of a file, not a text."""


@checked
def judge(
    pairs: Table | FilePath,
    judge: AnyJudge = "lexical",
    *,
    run: FilePath | None = None,
    trait: AnyTrait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    base_url: str | None = None,
    price: Price | Mapping[str, Any] | None = None,
    answer: Answer = "winner",
    cache: bool | None = None,
    max_cost: float | None = None,
    shard: str | None = None,
    shards: int | None = None,
    n_jobs: int | None = None,
    save_path: FilePath | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    encoding: str | None = None,
    progress: ProgressMode = True,
) -> SubmitResult:
    """Have pairs judged, and keep every answer.

    Every answer is on the disk before it is used. Run the same call again after an error or Ctrl-C: it asks only what
    is missing for this judge, trait, template and settings. Another judge may use the same run file.

    One process keeps hundreds of questions open (``concurrency``). For more than one machine, deal the job in shards,
    each with a run file of its own: ``shard="3/16"`` judges one of them, ``shards=16`` all of them, through joblib.
    Whatever reads results takes the folder of their run files.

    Args:
        pairs: A table or a file with ``ID1 text1 ID2 text2``; :func:`make_pairs` makes it.
        judge: A name (``lexical``, ``openai:gpt-5.1``, ``module:function``), a function ``judge(A, B)`` or a
            :class:`Judge`.
        run: The run file, created if it is missing; without one, nothing is kept. With ``shards``, a folder for them.
        trait: What to judge: the key of a built-in trait, or a :class:`Trait`.
        template: A prompt template, by its name, file or text.
        judge_args: Settings of the judge; of a function, keyword arguments of every call.
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer may take; None for no limit.
        base_url: Address of the provider, such as ``http://localhost:8000/v1``.
        price: US dollars per million tokens, such as ``{"input": 1.25, "output": 10}``; by default the dated table.
        answer: What is wanted of an answer: the ``winner``, or also the ``probability`` that the first text is better,
            for which a model is asked for log-probabilities.
        cache: Whether to use answers of earlier runs to the same request; by default for temperature 0.
        max_cost: US dollars that the run may spend, all calls and resumptions together. Of shards, the whole job: each
            spends at most its own part.
        shard: Judge this part of the pairs alone, such as ``3/16``; name all pairs, and a run file of its own.
        shards: Judge the pairs in this many shards.
        n_jobs: Of ``shards``: how many at once, -1 for all cores; by default one, or what ``joblib.parallel_config``
            says, such as a Dask cluster.
        save_path: A CSV file to keep up to date as well, and to resume from.
        a_col: The column of the text that is shown first, where it is not ``text1``; a name or a path in JSON.
        b_col: The column of the text that is shown second, where it is not ``text2``.
        encoding: Encoding of a text file that is not UTF-8.
        progress: Show progress on standard error.

    Returns:
        A :class:`SubmitResult` with ``results``, ``failed_pairs`` and ``failed_attempts``.

    Raises:
        InputError: If the pairs, the judge or a setting cannot be used.
        JudgeError: If the judge cannot be asked, or fails in the same way on ten different questions in a row; its
            ``result`` holds what came before.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> pairs = [{"ID1": "a", "text1": "Yes.", "ID2": "b", "text2": "No, because it rains."}]
        >>> ps.judge(pairs, judge=longer, progress=False).results["better_id"].to_list()
        ['b']
    """
    table = read_given_pairs(pairs, encoding=encoding, a_col=a_col, b_col=b_col)
    asked = judge_with(
        judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url, cache=cache, price=price,
        answer=answer,
    )  # fmt: skip
    require_jobs(n_jobs)
    settings: dict[str, Any] = {
        "concurrency": concurrency, "retries": retries, "timeout": timeout, "max_cost": max_cost, "run": run,
        "progress": progress,
    }  # fmt: skip
    if shards is None and n_jobs is not None:
        raise InputError("`n_jobs=` runs shards at once: say how many there are with `shards=`")
    if shard is None and shards is None:
        result = submit_pairs(table, asked, save_path=save_path, **settings)
    elif save_path is not None or (shard is not None and shards is not None):
        raise InputError("give `shard=` (one of them), `shards=` (all) or `save_path=` (one table), not two of them")
    elif shard is not None:
        result = judge_shard(table, asked, shard, **settings)
    else:
        result = judge_in_shards(table, asked, shards, n_jobs=n_jobs, **settings)
    if answer == "probability":
        missing = result.results["probability"].null_count()
        if missing:
            notice(f"{missing:,} of {result.results.height:,} answers came without a probability")
    return result


@checked
def compare(
    text1: str | Path,
    text2: str | Path,
    *,
    judge: AnyJudge = "lexical",
    trait: AnyTrait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    cache: bool | None = None,
    timeout: float | None = TIMEOUT,
    encoding: str | None = None,
) -> pl.DataFrame:
    """Ask a judge which of two texts is better: a quick try before a study.

    Args:
        text1: The text that is shown first: a file (txt, md, html, docx, odt, pdf), or the text itself.
        text2: The text that is shown second.
        judge: A name, a function ``judge(A, B)`` or a :class:`Judge`, as in :func:`judge`.
        trait: What to judge: the key of a built-in trait, or a :class:`Trait`.
        template: A prompt template, by its name, file or text.
        judge_args: Settings of the judge; of a function, keyword arguments of every call.
        base_url: Address of the provider, such as ``http://localhost:8000/v1``.
        cache: Whether to use answers of earlier runs to the same request; by default for temperature 0.
        timeout: Seconds that one answer may take; None for no limit.
        encoding: Encoding of text files that are not UTF-8.

    Returns:
        The answer, a table of results with one row; ``better_id`` is ``first`` or ``second``, or null if there is no
        winner.

    Raises:
        InputError: If a text, the judge or a setting cannot be used.
        JudgeError: If there is no answer.

    Example:
        >>> import pairscale as ps
        >>> ps.compare("It rain.", "It rained, so we stayed at home and read.")["better_id"].item()
        'second'
    """
    pair = pair_of(text1, text2, encoding)
    asked = judge_with(judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url, cache=cache)
    answers = submit_pairs([pair], asked, timeout=timeout, progress=False)
    if answers.results.height == 0:
        failed = answers.failed_pairs.row(0, named=True)
        raise JudgeError(f"no answer: {failed['error_code']}: {failed['error_message']}")
    return answers.results


def pair_of(text1: FilePath, text2: FilePath, encoding: str | None = None) -> dict[str, str]:
    """Two texts, or text files, as a pair.

    Args:
        text1: The text that is shown first, or its file.
        text2: The text that is shown second, or its file.
        encoding: Encoding of the files.

    Raises:
        InputError: If a text is empty, or a file is missing.
    """
    return {"ID1": "first", "text1": _text(text1, encoding), "ID2": "second", "text2": _text(text2, encoding)}


def _text(text_or_file: FilePath, encoding: str | None) -> str:
    is_file = not isinstance(text_or_file, str)
    with contextlib.suppress(OSError, ValueError):  # a long text is not the name of a file
        is_file = is_file or Path(text_or_file).is_file()
    if is_file:
        return read_document(text_or_file, encoding).text
    text = str(text_or_file)
    if not text.strip():
        raise InputError("a text is empty; name a file, or give the text itself")
    if len(text.split()) == 1 and Path(text).suffix.lower() in _FILES:
        raise InputError(f"{text}: no such file")
    return text
