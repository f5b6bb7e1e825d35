"""``pairscale bias-study``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import chart_file, emit, resumable, say, say_unsaved, show_table
from pairscale.cli._inputs import make_named_judge, run_file
from pairscale.cli._opening import read_pairs, say_judged
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from pairscale.checks.templates import TemplateStudy

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale bias-study essays/ --judge mine:better --run study.db",
    "pairscale bias-study p.csv --judge a:b --template weigh --template mine.txt",
    "pairscale bias-study judgements.csv --out study.csv --chart study.svg",
    "pairscale bias-study --published",
)


def command(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="Texts or pairs to ask about, or judgements that were made already."),
    ] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(metavar="JUDGE", autocompletion=_names.judges, help="As in `pairscale judge`; can be repeated."),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=_names.templates,
            help="Prompt template, a name or a .txt file; can be repeated.",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", callback=run_file, help="The run file of all answers; the same line resumes the study."
        ),
    ] = None,
    trait: opt.TraitName = None,
    judge_arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of every judge; can be repeated."),
    ] = None,
    n_pairs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most this many pairs, drawn at random.")
    ] = None,
    concurrency: opt.Concurrency = 8,
    retries: opt.Retries = 3,
    timeout: opt.Timeout = 300.0,
    max_cost: opt.MaxCost = None,
    price: opt.PriceOption = None,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same pairs.")] = 1,
    n_jobs: opt.NJobs = None,
    published: Annotated[
        bool, typer.Option("--published", help="Show the published study of five templates instead, and ask nothing.")
    ] = False,
    chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=chart_file,
            help="Draw the study, beside the published one: svg, png, html or json, by the ending.",
        ),
    ] = None,
    id_col: opt.IdCol = None,
    text_col: opt.TextCol = None,
    a_col: opt.ACol = None,
    b_col: opt.BCol = None,
    encoding: opt.Encoding = None,
    strict: opt.Strict = False,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Find the prompt template that lets the position sway judges least.

    Every judge sees every pair with every template, in both orders. DATA is a folder or table of texts, a table of
    pairs, or, without --judge, a table of judgements: results with the columns template_id and direction (forward or
    reverse), and backend, model, thinking or judge where there are several judges.

    A template is good when the same text wins in both orders (prop_consistent near 1), the first position wins half
    of the comparisons (prop_pos1 near 0.5), and the effect is near 0 logits.
    """
    columns = {"id_col": id_col, "text_col": text_col, "a_col": a_col, "b_col": b_col}
    study = _study(
        data, judge, template, run, trait, judge_arg, n_pairs, price, level, seed, published,
        {**columns, "encoding": encoding, "strict": strict},
        n_jobs=n_jobs, concurrency=concurrency, retries=retries, timeout=timeout, max_cost=max_cost,
    )  # fmt: skip
    biased = int((study.table["p_paired"] < 1 - study.level).sum())
    best = study.ranking.row(0, named=True)
    verdict = (
        f"most consistent: {best['template_id']} ({best['mean_consistent']:.1%} of the pairs had the same winner in "
        f"both orders); {biased:,} of {study.table.height:,} judge and template combinations favour a position "
        f"(p < {1 - study.level:.2g}, pair by pair)"
    )
    document = {
        "verdict": verdict,
        "source": study.source,
        "level": study.level,
        "notices": study.notices,
        "ranking": study.ranking,
        "table": study.table,
    }

    def show() -> None:
        show_table(study.ranking)
        typer.echo()
        show_table(_shown(study.table), most=100)
        typer.echo(f"\n{verdict}")
        if study.source is not None:
            typer.echo(f"Source: {study.source}.")

    if chart is not None:
        from pairscale.checks.published import published_template_study
        from pairscale.reporting.charts import save_chart, study_chart

        save_chart(study_chart(study, None if published else published_template_study()), chart)
        say(f"wrote the chart to {chart}")
    if study.source is not None and (out is not None or as_json):
        say(f"note: {study.source}")
    emit(document, study.table, as_json=as_json, out=out, show=show)
    say_judged(judge or [])


def _study(
    data: Path | None,
    judge: list[str] | None,
    template: list[str] | None,
    run: str | None,
    trait: str | None,
    judge_arg: list[str] | None,
    n_pairs: int | None,
    price: str | None,
    level: float,
    seed: int,
    published: bool,
    reading: Mapping[str, Any],
    **options: Any,
) -> TemplateStudy:
    from pairscale.checks.published import published_template_study
    from pairscale.checks.templates import template_study
    from pairscale.core.files import read_table

    if published:
        if data is not None or judge or template:
            raise InputError("--published shows a study that was made already; leave DATA, --judge and --template out")
        return published_template_study()
    if data is None:
        raise InputError("name texts, pairs or judgements as DATA, or see --published")
    if not judge:
        if template or run or trait or judge_arg:
            raise InputError("--template, --run, --trait and --judge-arg belong to a judge; name one with --judge")
        if data.is_dir():
            raise InputError(f"{data} is a folder of texts; say who judges them with --judge")
        table = read_table(data)
        if "direction" not in table.columns:
            raise InputError(
                f"{data} has no column 'direction', so these are not judgements; say who judges with --judge"
            )
        return template_study(table, level=level, n_jobs=options["n_jobs"])
    pairs = _pairs(data, n_pairs, seed, reading, judge)
    factories = {name: _factory(name, trait, judge_arg, price) for name in dict.fromkeys(judge)}
    say_unsaved(run)
    # What a judge function prints is no part of the result.
    with resumable(run), contextlib.redirect_stdout(sys.stderr):
        return template_study(
            pairs,
            templates=template or ["default"],
            judge=factories,
            run=run,
            level=level,
            **options,
        )


def _factory(name: str, trait: str | None, judge_arg: list[str] | None, price: str | None) -> Any:
    return lambda template: make_named_judge(name, trait, template, judge_arg, price=price)


def _pairs(data: Path, n_pairs: int | None, seed: int, reading: Mapping[str, Any], judges: list[str]) -> pl.DataFrame:
    pairs, ids, opening = read_pairs(data, **reading)
    opening.say(judges)
    if n_pairs is not None:
        pairs = ps.sample_pairs(pairs, 1, n_pairs, seed)
    return pairs if ids is None else ps.randomize_pair_order(pairs, seed)


def _shown(table: pl.DataFrame) -> pl.DataFrame:
    """What a person wants to know first, and nothing that is empty."""
    columns = [
        "template_id", "judge", "backend", "model", "thinking", "n_pairs", "prop_consistent", "prop_pos1",
        "p_sample1_overall", "p_paired", "effect", "effect_lower", "effect_upper",
    ]  # fmt: skip
    if table["judge"].null_count() == 0:  # the name says it all
        columns = [name for name in columns if name not in {"backend", "model"}]
    return table.select(name for name in columns if table[name].null_count() < table.height)
