"""``best`` and ``rerank``: the best of n candidates, or the order of the first k, within a number of questions."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from pairscale.contest.engine import Contest
from pairscale.contest.source import CandidateSet, ContestSource
from pairscale.core.columns import ColumnChoice, choose_columns, named_column
from pairscale.core.comparisons import key_expressions
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, JudgeError, StoreMismatchError, TableError, UnsureColumnError
from pairscale.core.files import read_table
from pairscale.core.notices import notice, plural, without_notices
from pairscale.core.options import (
    FilePath,
    ProgressMode,
    checked,
    optional,
    require_int,
    require_level,
    require_mapping,
    require_progress,
    require_text,
)
from pairscale.core.provenance import Provenance, fingerprint
from pairscale.core.samples import read_samples
from pairscale.core.tables import listed, require_columns, require_ids, to_frame
from pairscale.evaluate.judge import make_task_judge, model_settings
from pairscale.judges.base import Item, Judge
from pairscale.judges.build import want_probability
from pairscale.judges.orders import BothOrders
from pairscale.judges.panel import PanelJudge, split_panel
from pairscale.runtime import (
    CONCURRENCY,
    RETRIES,
    TIMEOUT,
    Budget,
    Progress,
    RunOptions,
    Runtime,
    close,
    record_prices,
    require_prices,
    run_sync,
)
from pairscale.store.policies import JournalWriter
from pairscale.store.runfile import RunFile, open_run

if TYPE_CHECKING:
    from pairscale.core.tables import Table
    from pairscale.providers.catalog import Price

    Judges = str | Judge | Callable[..., Any] | Sequence[str | Judge | Callable[..., Any]]

__all__ = ["Best", "best", "rerank"]

PER_CANDIDATE = 7
"""Comparisons per candidate where no limit is named."""

_BETTER = "the better answer: correct, complete, clear and to the point"
_RELEVANT = "relevance: how well the text serves a reader who asked the query that is given as the task"
_MARK = "best"
_TASK_COLUMNS = ("query", "input")
_NAMED = 0.05  # who is at least so probable is named
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Best(ReprMixin, table="items"):
    """The best of the candidates, and how sure that is.

    Attributes:
        winner: the ID of the best candidate, None where nothing was answered; of many sets a table with a row per set:
            the set, ``ID p_best comparisons``.
        items: one row per candidate, the best first: ``ID rank p_best score``, of many sets behind the set's name.
            ``p_best`` is the probability that the candidate is the best of its set, ``score`` how many of 100
            comparisons with the others it is expected to win. Of :func:`rerank`, the first k alone.
        asked: how many attempts this call made; 0 when everything was known already.
        comparisons: how many answers it rests on, of all calls.
        set_aside: the candidates that the judge never answered on, as in ``items``.
        k: of :func:`rerank`, how many places were wanted; else None.
        provenance: how it was done.
    """

    winner: str | pl.DataFrame | None
    items: pl.DataFrame
    asked: int
    comparisons: int
    set_aside: tuple[str, ...]
    k: int | None
    provenance: Provenance

    def __str__(self) -> str:
        count = plural(self.comparisons, "comparison")
        if isinstance(self.winner, pl.DataFrame):
            sure = int((self.winner["p_best"] >= self.provenance.settings["confidence"]).sum())
            return f"{plural(self.winner.height, 'set')}, {sure:,} with a sure winner; {count}"
        if self.k is not None:
            return f"the first {self.items.height}: {', '.join(self.items['ID'].head(10))}; {count}"
        if self.winner is None:
            return f"nothing is known yet; {count}"
        shares = dict(self.items.select("ID", "p_best").iter_rows())
        winner = self.winner
        others = [name for name in shares if name != winner]
        alike = [name for name in others if shares[name] >= shares[winner] / 2]
        if not alike:
            could_be = _could_be([name for name in others if shares[name] >= _NAMED], shares)
            return f"{winner} is best ({_percent(shares[winner])}){could_be}; {count}"
        if len(alike) == 1:
            percents = f"{_percent(shares[winner])} and {_percent(shares[alike[0]])}"
            return f"{winner} and {alike[0]} cannot be told apart ({percents}); {count}"
        names = [winner, *alike]
        return f"{plural(len(names), 'candidate')} cannot be told apart: {_with_shares(names, shares)}; {count}"


def _percent(share: float) -> str:
    return f"{math.floor(100 * share + 0.5)} %"


def _could_be(others: Sequence[str], shares: Mapping[str, float]) -> str:
    if not others:
        return ""
    if len(others) == 1:
        return f"; {others[0]} could be ({_percent(shares[others[0]])})"
    return f"; {_with_shares(others, shares)} could be"


def _with_shares(names: Sequence[str], shares: Mapping[str, float]) -> str:
    words = [f"{name} ({_percent(shares[name])})" for name in names[:_MOST_NAMED]]
    if len(names) > _MOST_NAMED:
        words.append(f"{len(names) - _MOST_NAMED:,} more")
    return f"{', '.join(words[:-1])} and {words[-1]}"


@checked
def best(
    candidates: Table | Mapping[str, str] | Sequence[str] | FilePath,
    judge: Judges = "lexical",
    *,
    query: str | None = None,
    by: str | None = None,
    k: int | None = None,
    criterion: str = _BETTER,
    max_comparisons: int | None = None,
    max_cost: float | None = None,
    confidence: float = 0.95,
    both_orders: bool = False,
    repeats: bool | None = None,
    run: FilePath | None = None,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    price: Price | Mapping[str, Any] | None = None,
    answer: Literal["winner", "probability"] = "winner",
    id_col: str | None = None,
    text_col: str | None = None,
    input_col: str | None = None,
    encoding: str | None = None,
    seed: int = 1,
    progress: ProgressMode = True,
) -> Best:
    """Which candidate is the best? Asks where it matters, and stops when the best is sure.

    Two candidates are compared at a time. The answers say how probable it is that each candidate is the best, and the
    next two are drawn by that. One lost comparison never ends a candidate. Run the same call again to resume a run.

    Args:
        candidates: A list of texts, which are called 1, 2 and so on; a mapping from ID to text; or a table or a file
            with ``ID`` and ``text``.
        judge: A name (``openai:gpt-5.1``, ``lexical``, ``module:function``), a function ``judge(A, B)`` or a
            :class:`Judge`; several are a panel that shares the comparisons. A model is asked with the query, the
            criterion and both texts; a function finds ``query`` and ``criterion`` in ``A`` and ``B``.
        query: What the candidates answer: a task, a question, a search query.
        by: For many sets of candidates in one table: the column that says which set a row belongs to.
        k: For the order of the first k in place of the best alone; ``items`` then ends there.
        criterion: What "better" means.
        max_comparisons: Comparisons that may be asked, of all sets, calls and resumptions together. By default 7 per
            candidate.
        max_cost: US dollars that the run may spend, all calls and resumptions together.
        confidence: How probable the winner has to be for an early stop.
        both_orders: Whether to ask about every pair in both orders, which are two calls; a win only if they agree.
        repeats: Whether the judge may answer differently when a pair is asked again; False asks about no pair twice.
            By default that is found out.
        run: The run file; without one, nothing is kept.
        concurrency: Questions open at once. With 1, the same call asks the same questions.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer may take; None for no limit.
        judge_args: Settings of the judge.
        base_url: Address of the provider.
        price: US dollars per million tokens, such as ``{"input": 1.25, "output": 10}``; by default the dated table.
        answer: What is wanted of an answer: the ``winner``, or also the ``probability`` that the first text is better.
        id_col: The column of IDs.
        text_col: The column of texts.
        input_col: The column of the query, the same in all rows of a set; by default the one called "query" or
            "input", where there is one.
        encoding: Encoding of a text file that is not UTF-8.
        seed: Seed of the draws.
        progress: Show progress on standard error.

    Returns:
        A :class:`Best` with ``winner``, ``items`` and ``asked``.

    Raises:
        InputError: If the candidates, the judge or a setting cannot be used.
        JudgeError: If the judge cannot be asked, answers nothing, or fails in the same way on ten different questions
            in a row; its ``result`` holds what is known.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> answers = {"a": "It rain.", "b": "It rained, so we stayed at home.", "c": "No."}
        >>> ps.best(answers, "lexical", max_comparisons=9, progress=False).winner
        'b'
    """
    options = RunOptions(concurrency, retries, timeout=timeout, max_cost=max_cost)
    optional(require_int, max_comparisons, "max_comparisons", least=1)
    optional(require_int, k, "k", least=1)
    require_text(criterion, "criterion")
    require_level(confidence, "confidence")
    require_int(seed, "seed", least=0)
    samples, ids = _read(candidates, by, id_col, text_col, encoding)
    groups = _groups(samples, by, query, input_col)
    settings: dict[str, Any] = {"places": k or 1, "confidence": confidence, "repeats": repeats}
    sets = [
        _candidate_set(
            name,
            rows,
            ids,
            words,
            criterion,
            Contest(len({row["text"] for row in rows}), seed=(seed, set_number), **settings),
        )
        for set_number, (name, rows, words) in enumerate(groups)
    ]
    most = _limit(sets, max_comparisons)
    task_judge = _judge(judge, criterion, answer, both_orders, judge_args, base_url=base_url, price=price)
    require_prices([task_judge], max_cost)
    provenance = Provenance("best", settings | {"criterion": criterion, "run": run and str(run)}, seed)

    def result(source: ContestSource, asked: int) -> Best:
        return _result(sets, by, k, source.n_answers, asked, provenance)

    return run_sync(lambda: _ask(sets, task_judge, options, most, run, result, progress), run=run)


@checked
def rerank(
    documents: Table | Mapping[str, str] | Sequence[str] | FilePath,
    judge: Judges = "lexical",
    *,
    query: str | None = None,
    k: int = 10,
    max_comparisons: int | None = None,
    criterion: str = _RELEVANT,
    **options: Any,
) -> Best:
    """The order of the first k documents for a query.

    Args:
        documents: As the candidates of :func:`best`.
        judge: Who is asked, as in :func:`best`.
        query: The search query.
        k: How many places matter.
        max_comparisons: Comparisons that may be asked; by default 7 per document.
        criterion: What "better" means.
        options: Further options of :func:`best`.

    Returns:
        A :class:`Best` whose ``items`` are the first k documents in their order.

    Raises:
        InputError: As :func:`best`; likewise the other errors.

    Example:
        >>> import pairscale as ps
        >>> about_rain = lambda A, B: A["text"].count("rain") > B["text"].count("rain")
        >>> documents = ["Sun.", "rain rain rain", "rain", "rain and rain"]
        >>> ps.rerank(documents, about_rain, query="rain", k=2, progress=False).items["ID"].to_list()
        ['2', '4']
    """
    require_int(k, "k", least=1)
    return best(documents, judge, query=query, k=k, max_comparisons=max_comparisons, criterion=criterion, **options)


# The judge


def _judge(
    judge: Judges,
    criterion: str,
    answer: Literal["winner", "probability"],
    both_orders: bool,
    judge_args: Mapping[str, Any] | None,
    **of_models: Any,
) -> Judge:
    """The judge, or a panel of several, asked by the criterion."""
    members: Any = split_panel(judge) if isinstance(judge, str) else judge
    if not isinstance(members, list | tuple):
        members = [members]
    if not members:
        raise InputError("judge is an empty list; name one judge or more", argument="judge")
    settings = {**require_mapping(judge_args or {}, "judge_args"), **model_settings(members, **of_models)}
    judges = []
    for member in members:
        own = dict(settings)
        in_both = both_orders or bool(own.pop("both_orders", False))
        if answer == "probability":
            want_probability(member, own)
        task_judge = make_task_judge(member, criterion, own or None)
        judges.append(BothOrders(task_judge) if in_both and not isinstance(task_judge, BothOrders) else task_judge)
    return judges[0] if len(judges) == 1 else PanelJudge(judges)


# The candidates


def _read(
    candidates: Any, by: str | None, id_col: str | None, text_col: str | None, encoding: str | None
) -> tuple[pl.DataFrame, dict[str, str]]:
    """The samples, and by their IDs in the run file (with ``by``, they name the set) those that the user knows."""
    if isinstance(candidates, Mapping) and candidates and all(isinstance(text, str) for text in candidates.values()):
        candidates = [{"ID": str(name), "text": text} for name, text in candidates.items()]
    elif isinstance(candidates, Sequence) and not isinstance(candidates, str):
        texts = [text for text in candidates if isinstance(text, str)]
        if texts and len(texts) == len(candidates):
            candidates = [{"ID": str(number), "text": text} for number, text in enumerate(texts, start=1)]
    if by is None:
        samples = read_samples(candidates, id_col=id_col, text_col=text_col, encoding=encoding)
        return samples, {name: name for name in samples["ID"]}
    if isinstance(candidates, str | os.PathLike):
        named = [name for name in (by, id_col) if name is not None]
        frame = read_table(candidates, text=named, encoding=encoding, paths=(id_col, text_col))
    else:
        frame = to_frame(candidates, "candidates")
    require_columns(frame, [by], "candidates")
    frame, choice = _named(frame, by, id_col, text_col)
    frame = require_ids(frame, [by, choice.ids], "candidates")
    keyed = frame.with_columns(key_expressions(by, choice.ids)[0].alias(choice.ids))
    with without_notices():
        samples = read_samples(keyed, id_col=choice.ids, text_col=choice.texts)
    return samples, dict(zip(samples["ID"], frame[choice.ids], strict=True))


def _named(frame: pl.DataFrame, by: str, id_col: str | None, text_col: str | None) -> tuple[pl.DataFrame, ColumnChoice]:
    """The columns of IDs and texts; where nothing names the candidates of a set, they are numbered."""
    if id_col == by:
        raise InputError(f"`by=` and `id_col=` are both {by!r}, which does not name a candidate in its set", "id_col")
    try:
        choice = choose_columns(frame, id_col, text_col, "candidates")
        if choice.ids != by:
            return frame, choice
    except UnsureColumnError:
        if id_col is not None:
            raise
    frame = frame.with_columns(ID=(pl.int_range(pl.len()) + 1).over(by).cast(pl.String))
    choice = choose_columns(frame, "ID", text_col, "candidates")
    notice(f"no column is certain to name the candidates, so they are numbered in each {by!r}; `id_col=` names one")
    return frame, choice


def _groups(
    samples: pl.DataFrame, by: str | None, query: str | None, input_col: str | None
) -> list[tuple[str, list[dict[str, Any]], str | None]]:
    """The sets in the order of the table: name, rows and query."""
    if query is not None and input_col is not None:
        raise InputError("`query=` is one for all and `input_col=` the column of each set's; leave one out")
    column = named_column(samples.columns, input_col, "input", "candidates") if input_col is not None else None
    if query is None and column is None:
        column = next((name for name in _TASK_COLUMNS if name in samples.columns), None)
    rows_of: dict[str, list[dict[str, Any]]] = {}
    for row in samples.iter_rows(named=True):
        rows_of.setdefault("" if by is None else row[by], []).append(row)
    groups = []
    for name, rows in rows_of.items():
        words = query
        if column is not None:
            different = {row[column] for row in rows}
            if len(different) > 1:
                where = f" {name!r}" if name else ""
                raise TableError(
                    f"candidates: the rows of the set{where} have {len(different)} values in {column!r}, not one"
                )
            words = None if rows[0][column] is None else str(rows[0][column])
        groups.append((name, rows, words))
    alone = [name for name, rows, _ in groups if len(rows) == 1]
    if len(alone) == len(groups):
        what = "there is one candidate" if by is None else "every set has one candidate"
        raise InputError(f"{what}; the best is found of two or more", argument="candidates")
    if alone:
        notice(f"one candidate alone, which wins unasked, in {plural(len(alone), 'set')}: {listed(alone, 3)}")
    return groups


def _candidate_set(
    name: str,
    rows: Sequence[dict[str, Any]],
    ids: Mapping[str, str],
    query: str | None,
    criterion: str,
    contest: Contest,
) -> CandidateSet:
    """One set, each of its texts once."""
    twins: dict[str, list[str]] = {}
    candidates: list[Item] = []
    for row in rows:
        if row["text"] not in twins:
            candidates.append(row | {"item_id": row["ID"], "query": query, "input": query, "criterion": criterion})
        twins.setdefault(row["text"], []).append(ids[row["ID"]])
    return CandidateSet(name, candidates, list(twins.values()), contest)


def _limit(sets: Sequence[CandidateSet], max_comparisons: int | None) -> float:
    """How many questions may be asked in all; without a limit of the user's, every set has one of its own."""
    n = sum(candidate_set.contest.n for candidate_set in sets)
    if max_comparisons is None:
        for candidate_set in sets:
            candidate_set.most = PER_CANDIDATE * candidate_set.contest.n
        notice(
            f"asks at most {PER_CANDIDATE * n:,} comparisons, {PER_CANDIDATE} per candidate; `max_comparisons=` sets "
            "another limit"
        )
        return math.inf
    if len(sets) > 1 and max_comparisons < n:
        notice(
            f"{plural(max_comparisons, 'comparison')} for {n:,} candidates in {len(sets):,} sets: `max_comparisons=` "
            "limits all sets together"
        )
    return max_comparisons


# Asking


async def _ask(
    sets: Sequence[CandidateSet],
    judge: Judge,
    options: RunOptions,
    most: float,
    run: FilePath | None,
    result: Callable[[ContestSource, int], Best],
    progress: ProgressMode,
) -> Best:
    """Ask until the winners are sure or a limit is met."""
    try:
        with open_run(run, write=True) as store:
            condition_id = _entered(store, sets, judge)
            source = ContestSource(sets, judge, condition_id, store.results(condition_id), most)
            budget = Budget.of(store, options.max_cost)
            limits = [min(candidate_set.most, PER_CANDIDATE * candidate_set.contest.n) for candidate_set in sets]
            total = int(min(most, sum(limits)))
            show = require_progress(progress) != "none"
            with (
                Progress(total, source.n_asked, show=show, prices=budget.prices) as bar,
                JournalWriter(store) as journal,
            ):
                runtime = Runtime(source, journal, options, budget=budget, progress=bar)
                try:
                    await runtime.run()
                except JudgeError as error:
                    error.result = result(source, runtime.asked)
                    raise
    finally:
        await close(judge)
    if not source.n_answers and source.last_failure is not None:
        raise JudgeError(
            f"the judge answered none of {plural(source.n_asked, 'question')}; the last: {source.last_failure}"
        )
    return result(source, runtime.asked)


def _entered(store: RunFile, sets: Sequence[CandidateSet], judge: Judge) -> str:
    """Enter texts and judge into the run file, or find that it holds other ones."""
    candidates = [item for candidate_set in sets for item in candidate_set.candidates]
    asked = fingerprint([[item["ID"], item["query"], item["criterion"]] for item in candidates])
    before = store.get_meta(_MARK)
    if before not in (None, asked) or (before is None and store.counts()["pairs"]):
        raise StoreMismatchError(
            f"{store.name} holds answers about other candidates, or to another query or criterion; name another run "
            "file"
        )
    store.add_items([{name: value for name, value in item.items() if name != "item_id"} for item in candidates])
    condition_id = store.add_condition(judge.condition)
    store.set_meta(_MARK, asked)
    record_prices(store, [judge])
    return condition_id


# The result


def _result(
    sets: Sequence[CandidateSet], by: str | None, k: int | None, n_answers: int, asked: int, provenance: Provenance
) -> Best:
    rows = []
    winners = []
    for candidate_set in sets:
        ranked = _ranked(candidate_set)
        rows += [(candidate_set.name, *row) for row in ranked[:k]]
        answered = candidate_set.contest.n_answers
        is_known = answered > 0 or candidate_set.contest.n == 1
        winners.append(
            (candidate_set.name, ranked[0][0] if is_known else None, ranked[0][2] if is_known else None, answered)
        )
    name = by or "set"
    items = pl.DataFrame(
        rows,
        {name: pl.String, "ID": pl.String, "rank": pl.Int64, "p_best": pl.Float64, "score": pl.Float64},
        orient="row",
    )
    winner: str | pl.DataFrame | None = winners[0][1]
    if by is None:
        items = items.drop(name)
    else:
        schema = {name: pl.String, "ID": pl.String, "p_best": pl.Float64, "comparisons": pl.Int64}
        winner = pl.DataFrame(winners, schema, orient="row")
    aside = tuple(
        twin for candidate_set in sets for number in candidate_set.aside for twin in candidate_set.twins[number]
    )
    return Best(winner, items, asked, n_answers, aside, k, provenance)


def _ranked(candidate_set: CandidateSet) -> list[tuple[str, int | None, float, float | None]]:
    """Rows of a set's items, the best first; candidates that were set aside come last, without a rank."""
    contest = candidate_set.contest
    shares = contest.shares()[0]
    scores = contest.scores()
    order = np.lexsort((-contest.mean, ~contest.usable))
    rows: list[tuple[str, int | None, float, float | None]] = []
    for number in order:
        usable = contest.usable[number]
        rank = len(rows) + 1 if usable else None
        score = float(scores[number]) if usable else None
        rows += [(twin, rank, float(shares[number]), score) for twin in candidate_set.twins[number]]
    return rows
