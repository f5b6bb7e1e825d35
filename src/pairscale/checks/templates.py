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
from pairscale.checks.orders import split_orders
from pairscale.checks.position import PositionalBias, compare_orders, measure_bias
from pairscale.core.display import ReportMixin, ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.jobs import run_tasks, values_of
from pairscale.core.notices import notice, plural
from pairscale.core.options import (
    FilePath,
    ProgressMode,
    checked,
    require_level,
    require_number,
    require_progress,
)
from pairscale.core.tables import Table, as_text, require_columns, to_frame
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

_NAMES = ("template_id", "backend", "model", "thinking", "judge")
_FIGURES = (*_NAMES, "prop_consistent", "prop_pos1", "p_paired", "effect", "effect_lower", "effect_upper")


_Cell: TypeAlias = tuple[Mapping[str, Any], pl.DataFrame, int]
"""One template with one judge: its names, its answers in both orders, and how many pairs no answer stands for."""


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
        judges = self.table.select(_NAMES[1:]).n_unique()
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

    Without ``judge``, ``data`` are judgements that were made already, of pairs in both orders: a results table of any
    shape with a column ``template_id`` and, where there are several judges, ``backend``, ``model``, ``thinking`` or
    ``judge``. With ``judge``, ``data`` are pairs, which are now judged with every template
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
    interval = require_number(interval, "interval", least=0)
    notices: list[str] = []
    cells: list[_Cell]
    if judge is not None:
        if batch and run is None:
            raise InputError(
                "batch=True needs a run file, which knows the batches while they are under way; give `run=`"
            )
        options = RunOptions(concurrency, retries, timeout=timeout, max_cost=max_cost)
        judges = _made(judge, templates, {"trait": trait, "judge_args": judge_args, "price": price})
        names = pl.DataFrame([names for names, _ in judges], infer_schema_length=None)
        alike = names.filter(names.select("judge", "condition_id").is_duplicated())
        notices += [
            notice(f"{name} answers without regard to the template; templates are equal")
            for name in alike["judge"].unique(maintain_order=True)
        ]
        require_prices([made for _, made in judges], options.max_cost)
        pairs = _both_orders(data)
        ask = partial(_batched, interval=interval) if batch else _answered
        answered = run_sync(lambda: ask(judges, pairs, run, options, progress), run=run)
        cells = [(made[0], table, pairs.height - table.height) for made, table in zip(judges, answered, strict=True)]
    elif templates or run is not None or batch:
        raise InputError("templates, run and batch belong to a study that asks judges; give `judge=` too")
    else:
        cells = _cells_of(data)
    if not cells:
        raise InputError("there are no judgements to study")
    rows = []
    for row, messages in values_of(list(run_tasks(partial(_measured, level=level), cells, n_jobs)), "cell"):
        rows.append(row)
        notices += map(notice, messages)
    study = study_of(rows, level, ())
    if study.table.height < study.ranking.height * study.table.select(_NAMES[1:]).n_unique():
        notices.append(notice("not every judge used every template, so the ranking does not compare like with like"))
    return replace(study, notices=tuple(notices))


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


def _cells_of(data: Table) -> list[_Cell]:
    """The cells of judgements that were made already."""
    frame = to_frame(data, "judgements")
    require_columns(frame, ["template_id"], "judgements")
    names = [name for name in _NAMES if name in frame.columns]
    frame = frame.with_columns(as_text(frame[name], "judgements") for name in names)
    return [
        (dict(zip(names, values, strict=True)), results, 0)
        for values, results in frame.group_by(names, maintain_order=True)
    ]


def _measured(cell: _Cell, level: float) -> tuple[dict[str, Any], list[str]]:
    """A row of the study's table, and what was left out of it."""
    names, results, unanswered = cell
    parts = (names["template_id"], names.get("judge") or names.get("model"), names.get("thinking"))
    who = " ".join(filter(None, parts))
    consistency = compare_orders(*split_orders(results))
    if consistency.details.height == 0:
        raise InputError(f"{who}: no pair has a winner in both directions; there is nothing to measure")
    row = row_of(measure_bias(consistency, level), names)
    row["n_left_out"] += unanswered
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


def _made(
    judge: StudyJudge | Sequence[str] | Mapping[str, StudyJudge], templates: Sequence[str], settings: Mapping[str, Any]
) -> list[tuple[dict[str, Any], Judge]]:
    """Every judge with every template, beside its names; what cannot be made is refused before anything is paid for."""
    if isinstance(templates, str) or not templates:
        raise InputError("say which templates to study, such as templates=['default', 'concise']")
    if isinstance(judge, str):
        judge = {judge: judge}
    elif not isinstance(judge, Mapping | Sequence):
        judge = {"": judge}
    elif not isinstance(judge, Mapping):
        judge = {name: name for name in judge}
    judges = []
    for name, source in judge.items():
        for template in dict.fromkeys(templates):
            made = _judge_for(source, template, settings)
            condition = made.condition
            names = {
                "template_id": template, "backend": condition.backend, "model": condition.model,
                "thinking": _thinking(condition), "judge": name or condition.judge_id,
                "condition_id": condition.condition_id,
            }  # fmt: skip
            judges.append((names, made))
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


def _both_orders(data: Table) -> pl.DataFrame:
    """The pairs as they stand, and the other way round where they do not stand so already."""
    # A pair's own name means one order of it; the reversed pairs are other questions.
    forward = as_pairs(data).drop("pair_uid", "custom_id", strict=False)
    if forward.height == 0:
        raise InputError("there are no pairs to judge")
    reverse = swapped(forward, np.ones(forward.height, dtype=bool))
    new = reverse.join(forward, on=["ID1", "ID2"], how="anti", maintain_order="left")
    return pl.concat([forward, new])


async def _answered(
    judges: Sequence[tuple[Mapping[str, Any], Judge]],
    pairs: pl.DataFrame,
    run: FilePath | None,
    options: RunOptions,
    progress: ProgressMode,
) -> list[pl.DataFrame]:
    """What each judge says to the pairs, in one run file and one budget."""
    from pairscale.collect.live import submit_into
    from pairscale.store.runfile import open_run

    with open_run(run, write=True) as store:
        _mark(store, judges)
        return [(await submit_into(store, pairs, judge, options, progress=progress)).results for _, judge in judges]


async def _batched(
    judges: Sequence[tuple[Mapping[str, Any], Judge]],
    pairs: pl.DataFrame,
    run: FilePath | None,
    options: RunOptions,
    progress: ProgressMode,
    *,
    interval: float,
) -> list[pl.DataFrame]:
    """The same through the providers' batch APIs: all batches are created, then awaited."""
    from pairscale.collect.batch.manager import BatchManager
    from pairscale.judges.batched import require_batches
    from pairscale.store.runfile import open_run

    models = [require_batches(judge) for _, judge in judges]
    with open_run(run, write=True) as store:
        _mark(store, judges)
    async with BatchManager(str(run)) as manager:
        await manager.resume()
        plans = [(await manager.submit(pairs, model, max_cost=options.max_cost))[0] for model in models]
        told = None if require_progress(progress) == "none" else _tell_waiting
        await manager.wait(interval=interval, on_look=told)
    with open_run(run) as store:
        return [plan.outcome(store, raw=False)[0] for plan in plans]


def _tell_waiting(batches: Sequence[RegistryEntry]) -> None:
    """Say how many batches are under way."""
    waiting = sum(batch.open for batch in batches)
    if waiting:
        notice(f"{waiting:,} of {plural(len(batches), 'batch', 'batches')} under way")


def _mark(store: RunFile, judges: Sequence[tuple[Mapping[str, Any], Judge]]) -> None:
    """Write down which conditions are the cells of the study, for its report."""
    marked = [{name: names[name] for name in ("template_id", "judge", "condition_id")} for names, _ in judges]
    cells = pl.DataFrame([*(store.get_meta(STUDY_MARK) or ()), *marked])
    store.set_meta(STUDY_MARK, cells.unique(["template_id", "judge"], keep="last", maintain_order=True).to_dicts())


def _thinking(condition: Condition) -> str | None:
    """How a model reasons, in the words of the published study; None where it is not known.

    What was asked for decides; where nothing was, what models of its family do then.
    """
    settings = condition.settings
    able = capabilities(condition.backend, condition.model or "", settings.get("provider_args", {}).get("overrides"))
    asked = settings.get("reasoning")
    if asked is None:
        asked = settings.get("thinking_budget")
    if able.thinking == "none":
        thinks = False
    elif settings.get("include_thoughts") and (asked is None or condition.backend == "anthropic"):
        thinks = True  # asking for thoughts means thinking
    elif asked is not None:
        thinks = asked not in {"none", 0}
    elif able.thinking == "any":
        return None
    else:
        thinks = able.thinks_unasked and (condition.backend != "ollama" or able.thinking != "switch")
    return "with_thinking" if thinks else "no_thinking"
