"""Which prompt template sways judges least by position: templates by judges, each pair in both orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from pairscale.checks.effect import sign_test, wilson
from pairscale.checks.position import PositionalBias, compare_orders, measure_bias
from pairscale.core.display import ReportMixin, ReprMixin
from pairscale.core.errors import InputError, TableError
from pairscale.core.jobs import run_tasks, values_of
from pairscale.core.notices import notice, plural
from pairscale.core.options import (
    FilePath,
    ProgressMode,
    checked,
    require_int,
    require_level,
    require_number,
    require_progress,
)
from pairscale.core.tables import Table, as_text, require_columns, row_numbers, to_frame
from pairscale.pairing.table import as_pairs, swapped
from pairscale.providers.catalog import capabilities
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT, RunOptions, require_prices, run_sync
from pairscale.store.marks import STUDY_MARK

if TYPE_CHECKING:
    from pairscale.collect.batch.registry import RegistryEntry
    from pairscale.core.comparisons import Condition
    from pairscale.core.traits import Trait
    from pairscale.judges.base import Judge
    from pairscale.providers.catalog import Price
    from pairscale.store.runfile import RunFile

StudyJudge: TypeAlias = "str | Callable[..., Any]"
"""A judge's name, a judge ``judge(A, B)``, or a function that makes the judge for a template's name."""

_TEXT = pl.String()
_INT = pl.Int64()
_REAL = pl.Float64()

STUDY: dict[str, pl.DataType] = {
    "template_id": _TEXT,
    "backend": _TEXT,
    "model": _TEXT,
    "thinking": _TEXT,
    "prop_consistent": _REAL,
    "prop_pos1": _REAL,
    "p_sample1_overall": _REAL,
    "judge": _TEXT,
    "n_pairs": _INT,
    "consistent_lower": _REAL,
    "consistent_upper": _REAL,
    "pos1_lower": _REAL,
    "pos1_upper": _REAL,
    "n_both_first": _INT,
    "n_both_second": _INT,
    "p_paired": _REAL,
    "effect": _REAL,
    "effect_lower": _REAL,
    "effect_upper": _REAL,
    "n_left_out": _INT,
}
"""The columns of a study's table; the first seven are those of the published studies."""

_CELL = ("template_id", "backend", "model", "thinking", "judge")
_FIGURES = (*_CELL, "prop_consistent", "prop_pos1", "p_paired", "effect", "effect_lower", "effect_upper")
_FORWARD = {"forward": True, "main": True, "reverse": False, "reversed": False, "rev": False}


@dataclass(frozen=True, slots=True)
class _Cell:
    """One template with one judge: who it is by the columns of the study, and the results of both orders."""

    names: Mapping[str, Any]
    forward: pl.DataFrame
    reverse: pl.DataFrame
    failed: int = 0  # pairs that got no answer at all, so that no table shows them


@dataclass(frozen=True, slots=True, repr=False)
class TemplateStudy(ReprMixin, ReportMixin, table="table", columns=_FIGURES):
    """Templates by judges, measured in both orders.

    Attributes:
        table: one row per template and judge, with the columns of :data:`STUDY`. ``consistent_*`` and ``pos1_*`` are
            Wilson intervals; that of ``prop_pos1`` counts the comparisons as independent and is too wide where a judge
            is consistent. ``n_both_first`` pairs went to the first position in both orders, ``n_both_second`` to the
            second; ``p_paired`` is the exact sign test between the two, ``effect`` the position effect in logits, null
            where the data do not tell it.
        ranking: one row per template: ``rank template_id n_judges mean_consistent worst_pos1`` (the largest distance of
            ``prop_pos1`` from one half) ``n_significant`` (judges with ``p_sample1_overall`` below 1 - level) and
            ``n_significant_paired``. Ranked by consistency, then by ``worst_pos1``.
        level: Level of the intervals.
        notices: what was left out, and what to be careful with.
        source: who measured it, when it was not this call.
    """

    table: pl.DataFrame
    ranking: pl.DataFrame
    level: float
    notices: tuple[str, ...]
    source: str | None = None

    def __str__(self) -> str:
        best = self.ranking.row(0, named=True)
        judges = self.table.select(_CELL[1:]).n_unique()
        facts = (
            f"{plural(self.ranking.height, 'template')}, {plural(judges, 'judge')}, "
            f"most consistent {best['template_id']!r} ({best['mean_consistent']:.1%})"
        )
        return f"{facts}; {self.source}" if self.source else facts


@checked
def template_study(
    data: Table,
    *,
    templates: Sequence[str] = (),
    judge: StudyJudge | Sequence[str] | Mapping[str, StudyJudge] | None = None,
    run: FilePath | None = None,
    trait: str | Trait | None = None,
    judge_args: Mapping[str, Any] | None = None,
    price: Price | Mapping[str, Any] | None = None,
    batch: bool = False,
    interval: float = 60.0,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    max_cost: float | None = None,
    progress: ProgressMode = True,
    level: float = 0.95,
    n_jobs: int | None = None,
) -> TemplateStudy:
    """Measure how much each template lets the position sway each judge.

    Without ``judge``, ``data`` are judgements that were made already: a results table of any shape with a column
    ``direction`` (``forward`` or ``reverse``), ``template_id`` and, where there are several judges, ``backend``,
    ``model``, ``thinking`` or ``judge``. With ``judge``, ``data`` are pairs, which are now judged with every template
    and judge, as they stand and the other way round. Everything goes into one run file, and the same call again asks
    only what is missing.

    Args:
        data: judgements, or pairs.
        templates: with ``judge``: the templates' names or files.
        judge: A judge's name, also with settings of its own (``openai:gpt-5.1,reasoning=low``), or several in a list; a
            function ``judge(A, B)``, which is given the template as ``prompt_template`` if it takes it; or
            ``judge(template)``, which makes the judge that uses this template. A mapping names several of any kind.
        run: the run file; None keeps nothing.
        trait: With names or ``judge(A, B)``: what to judge.
        judge_args: With names or ``judge(A, B)``: settings of every judge.
        price: With names: prices of the models.
        batch: Ask through the providers' batch APIs, at their lower price, and wait for the answers, which may take a
            day. It needs ``run``; an interrupted study waits on with the same call.
        interval: With ``batch``: seconds between two looks.
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer may take; None for no limit.
        max_cost: US dollars that the study may spend, all templates, judges and calls together.
        progress: Show progress on standard error.
        level: Level of the intervals.
        n_jobs: How many templates and judges are measured at once, in processes of their own; -1 for all cores. Asking
            them is a matter of ``concurrency``. One that cannot be measured is left out, and named in a notice.

    Raises:
        InputError: when there is nothing to study, or an argument is missing.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.synthetic_essays(8, seed=1))
        >>> swayed = lambda template: ps.SimulatedJudge("theta_true", bias={"concise": 0, "weigh": 5}[template])
        >>> study = template_study(pairs, templates=["weigh", "concise"], judge=swayed, progress=False)
        >>> study.ranking["template_id"].to_list()
        ['concise', 'weigh']
    """
    level = require_level(level)
    concurrency = require_int(concurrency, "concurrency", least=1)
    notices: list[str] = []
    if judge is None:
        if templates or run is not None or batch:
            raise InputError("templates, run and batch belong to a study that asks judges; give `judge=` too")
        cells = _cells_of(data)
    else:
        if batch and run is None:
            raise InputError(
                "batch=True needs a run file, which knows the batches while they are under way; give `run=`"
            )
        interval = require_number(interval, "interval", least=0)
        options = RunOptions(concurrency, retries, timeout=timeout, max_cost=max_cost)
        judges = _made(judge, templates, {"trait": trait, "judge_args": judge_args, "price": price})
        cells, notices = _asked(data, judges, run, options, progress, interval if batch else None)
    if not cells:
        raise InputError("there are no judgements to study")
    rows = []
    for row, messages in values_of(list(run_tasks(partial(_measured, level=level), cells, n_jobs)), "cell"):
        rows.append(row)
        notices += map(notice, messages)
    study = study_of(rows, level, notices)
    if study.table.height < study.ranking.height * study.table.select(_CELL[1:]).n_unique():
        gaps = notice("not every judge used every template, so the ranking does not compare like with like")
        study = replace(study, notices=(*study.notices, gaps))
    return study


def study_of(rows: Sequence[Mapping[str, Any]], level: float, notices: Iterable[str]) -> TemplateStudy:
    """A study from its rows; see :func:`row_of`."""
    table = pl.DataFrame(rows, schema=STUDY)
    return TemplateStudy(table, rank_templates(table, level), level, tuple(notices))


def rank_templates(table: pl.DataFrame, level: float) -> pl.DataFrame:
    """The templates of a study's table over its judges, the most consistent first."""
    significant = {
        name: pl.when(pl.col(p).count() > 0).then((pl.col(p) < 1 - level).sum()).cast(pl.Int64)
        for name, p in (("n_significant", "p_sample1_overall"), ("n_significant_paired", "p_paired"))
    }
    return (
        table.group_by("template_id", maintain_order=True)
        .agg(
            n_judges=pl.len().cast(pl.Int64),
            # Rounded, because equal figures in another order may add up to a mean that differs in its last digit.
            mean_consistent=pl.col("prop_consistent").mean().round(12),
            worst_pos1=(pl.col("prop_pos1") - 0.5).abs().max().round(12),
            **significant,
        )
        .sort("mean_consistent", "worst_pos1", "template_id", descending=[True, False, False], nulls_last=True)
        .with_columns(rank=pl.struct(-pl.col("mean_consistent"), "worst_pos1").rank("min").cast(pl.Int64))
        .select("rank", pl.exclude("rank"))
    )


# Judgements that were made already.


def _cells_of(data: Table) -> list[_Cell]:
    frame = to_frame(data, "judgements")
    require_columns(frame, ["template_id", "direction"], "judgements")
    direction = as_text(frame["direction"], "judgements").str.to_lowercase()
    unknown = ~direction.is_in(list(_FORWARD)).fill_null(value=False)
    if unknown.any():
        raise TableError(f"judgements: direction must be 'forward' or 'reverse'; it is not in {row_numbers(unknown)}")
    names = [name for name in _CELL if name in frame.columns]
    frame = frame.with_columns(
        *(as_text(frame[name], "judgements") for name in names),
        is_forward=direction.replace_strict(_FORWARD, return_dtype=pl.Boolean),
    )
    return [
        _Cell(dict(zip(names, values, strict=True)), part.filter("is_forward"), part.filter(~pl.col("is_forward")))
        for values, part in frame.group_by(names, maintain_order=True)
    ]


def _measured(cell: _Cell, level: float) -> tuple[dict[str, Any], list[str]]:
    """A row of the study's table, and what was left out of it."""
    names = cell.names
    who = " ".join(
        filter(None, (names["template_id"], names.get("judge") or names.get("model"), names.get("thinking")))
    )
    consistency = compare_orders(cell.forward, cell.reverse)
    if consistency.details.height == 0:
        raise InputError(f"{who}: no pair has a winner in both directions; there is nothing to measure")
    row = row_of(measure_bias(consistency, level), names)
    row["n_left_out"] += cell.failed
    return row, [f"{who}: {message}" for message in consistency.notices]


def row_of(bias: PositionalBias, names: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a study's table for one template and one judge, who have these names."""
    row = bias.summary.row(0, named=True)
    n_comparisons = 2 * row["n_pairs"]
    n_first = round(row["prop_pos1"] * n_comparisons)
    lower, upper = wilson(n_first, n_comparisons, bias.level)
    return {
        **{column: row[column] for column in STUDY if column in row},
        "p_sample1_overall": sign_test(n_first, n_comparisons),
        "pos1_lower": lower,
        "pos1_upper": upper,
        "n_left_out": bias.consistency.without_winner,
        **names,
    }


# Judgements made now.


@dataclass(frozen=True, slots=True)
class _StudyJudge:
    """A judge that asks with one template, and what it is called in the study."""

    name: str
    template: str
    judge: Judge


def _made(
    judge: StudyJudge | Sequence[str] | Mapping[str, StudyJudge], templates: Sequence[str], settings: Mapping[str, Any]
) -> list[_StudyJudge]:
    """Every judge with every template: one that does not exist is refused before anything is paid for."""
    if isinstance(templates, str) or not templates:
        raise InputError("say which templates to study, such as templates=['default', 'concise']")
    named: Sequence[tuple[Any, StudyJudge]]
    if isinstance(judge, Mapping):
        named = list(judge.items())
    elif isinstance(judge, str) or not isinstance(judge, Sequence):
        named = [(judge, judge)]
    else:
        named = [(name, name) for name in judge]
    judges = []
    for name, source in named:
        for template in dict.fromkeys(templates):
            made = _judge_for(source, template, settings)
            judges.append(_StudyJudge(name if isinstance(name, str) else made.condition.judge_id, template, made))
    return judges


def _judge_for(source: StudyJudge, template: str, settings: Mapping[str, Any]) -> Judge:
    from pairscale.judges.base import Judge
    from pairscale.judges.build import judge_with, make_judge  # judgements that were made already need no judge

    if isinstance(source, Judge) or not (isinstance(source, str) or callable(source)):
        raise InputError(
            "judge: a study makes a judge for each template; give its name, such as 'openai:gpt-5.1', or a function of "
            "the template that makes it"
        )
    if isinstance(source, str) or not _takes_template(source):
        return judge_with(source, template=template, **settings)
    if any(value is not None for value in settings.values()):
        raise InputError("trait, judge_args and price belong to named judges; a function of the template sets its own")
    return make_judge(source(template))


def _takes_template(function: Callable[..., Any]) -> bool:
    """Whether a function takes a template alone, and not two texts."""
    try:
        signature(function).bind("default")
    except TypeError:
        return False
    return True


def _asked(
    data: Table,
    judges: Sequence[_StudyJudge],
    run: FilePath | None,
    options: RunOptions,
    progress: ProgressMode,
    interval: float | None,
) -> tuple[list[_Cell], list[str]]:
    # A pair's own name means one order of it; the reversed pairs are other questions.
    forward = as_pairs(data).drop("pair_uid", "custom_id", strict=False)
    if forward.height == 0:
        raise InputError("there are no pairs to judge")
    orders = (forward, swapped(forward, np.ones(forward.height, dtype=bool)))
    notices = []
    for name in dict.fromkeys(asked.name for asked in judges):
        conditions = [asked.judge.condition.condition_id for asked in judges if asked.name == name]
        if len(set(conditions)) < len(conditions):
            notices.append(notice(f"{name} answers without regard to the template; templates are equal"))
    require_prices([asked.judge for asked in judges], options.max_cost)
    if interval is not None:
        told = None if require_progress(progress) == "none" else _tell_waiting
        answered = run_sync(lambda: _batched(str(run), judges, orders, options.max_cost, interval, told), run=run)
    else:
        answered = run_sync(lambda: _answered(run, judges, orders, options, progress), run=run)
    cells = []
    for asked, tables in zip(judges, answered, strict=True):
        condition = asked.judge.condition
        names = {
            "template_id": asked.template, "backend": condition.backend, "model": condition.model,
            "thinking": _thinking(condition), "judge": asked.name,
        }  # fmt: skip
        unanswered = 2 * forward.height - sum(table.height for table in tables)
        cells.append(_Cell(names, tables[0], tables[1], unanswered))
    return cells, notices


async def _answered(
    run: FilePath | None,
    judges: Sequence[_StudyJudge],
    orders: tuple[pl.DataFrame, pl.DataFrame],
    options: RunOptions,
    progress: ProgressMode,
) -> list[list[pl.DataFrame]]:
    """What each judge says to the pairs as they stand and the other way round, in one run file and one budget."""
    from pairscale.collect.live import submit_into
    from pairscale.store.runfile import open_run

    answered = []
    with open_run(run, write=True) as store:
        _mark(store, judges)
        for asked in judges:
            tables = [await submit_into(store, pairs, asked.judge, options, progress=progress) for pairs in orders]
            answered.append([table.results for table in tables])
    return answered


def _tell_waiting(batches: Sequence[RegistryEntry]) -> None:
    waiting = sum(batch.open for batch in batches)
    if waiting:
        notice(f"{waiting:,} of {plural(len(batches), 'batch', 'batches')} under way")


async def _batched(
    run: str,
    judges: Sequence[_StudyJudge],
    orders: tuple[pl.DataFrame, pl.DataFrame],
    max_cost: float | None,
    interval: float,
    told: Callable[[Sequence[RegistryEntry]], None] | None,
) -> list[list[pl.DataFrame]]:
    """The same through the providers' batch APIs: all batches are created, then awaited."""
    from pairscale.collect.batch.manager import BatchManager
    from pairscale.judges.batched import require_batches
    from pairscale.store.runfile import open_run

    models = [require_batches(asked.judge) for asked in judges]
    with open_run(run, write=True) as store:
        _mark(store, judges)
    async with BatchManager(run) as manager:
        await manager.resume()
        plans = []
        for model in models:
            for pairs in orders:
                plan, _ = await manager.submit(pairs, model, max_cost=max_cost)
                plans.append(plan)
        await manager.wait(interval=interval, on_look=told)
    with open_run(run) as store:
        tables = [plan.outcome(store, raw=False)[0] for plan in plans]
    return [tables[number : number + 2] for number in range(0, len(tables), 2)]


def _mark(store: RunFile, judges: Sequence[_StudyJudge]) -> None:
    """Write down which conditions are the cells of the study, for its report."""
    cells = {(cell["template_id"], cell["judge"]): cell for cell in store.get_meta(STUDY_MARK) or ()}
    for asked in judges:
        cells[asked.template, asked.name] = {
            "template_id": asked.template,
            "judge": asked.name,
            "condition_id": asked.judge.condition.condition_id,
        }
    store.set_meta(STUDY_MARK, list(cells.values()))


def _thinking(condition: Condition) -> str | None:
    """How a model reasons, in the words of the published study; None where it is not known.

    What was asked for decides; where nothing was, what models of its family do then.
    """
    settings, backend = condition.settings, condition.backend
    asked, budget = settings.get("reasoning"), settings.get("thinking_budget")
    if asked is None and budget is not None:
        asked = "enabled" if budget else "none"
    if settings.get("include_thoughts") and (asked is None or backend == "anthropic"):
        asked = "enabled"  # asking for thoughts means thinking
    able = capabilities(backend, condition.model or "", settings.get("provider_args", {}).get("overrides"))
    if able.thinking == "none":
        asked = "none"
    elif asked is None and able.thinking != "any":
        hushed = backend == "ollama" and able.thinking == "switch"
        asked = "enabled" if able.thinks_unasked and not hushed else "none"
    return None if asked is None else "no_thinking" if asked == "none" else "with_thinking"
