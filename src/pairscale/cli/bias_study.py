"""``pairscale bias-study``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import chart_file, emit, resumable, say, say_unsaved, show_table
from pairscale.cli._groups import Asking, Reading, with_groups
from pairscale.cli._inputs import run_file, settings_of
from pairscale.cli._opening import read_pairs, say_judged
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = (
    "pairscale bias-study essays/ --judge mine:better --run study.db",
    "pairscale bias-study p.csv --judge a:b --template weigh --template mine.txt",
    "pairscale bias-study p.csv --judge openai:gpt-4.1,seed=1 --run s.db --batch",
    "pairscale bias-study judgements.csv --out study.csv --chart study.svg",
    "pairscale bias-study --published",
)

_Data = Annotated[
    Path | None,
    typer.Argument(metavar="DATA", help="Texts or pairs to ask about, or judgements that were made already."),
]
_Judge = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JUDGE",
        autocompletion=_names.judges,
        help="As in `pairscale judge`, also with settings: openai:gpt-5.1,reasoning=low; can be repeated.",
    ),
]
_Template = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_names.templates,
        help="Prompt template, a name or a .txt file; can be repeated.",
    ),
]
_Run = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", callback=run_file, help="The run file of all answers; the same command resumes the study."
    ),
]
_JudgeArg = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A setting of every judge; can be repeated."),
]
_Batch = Annotated[
    bool,
    typer.Option(
        "--batch", help="Ask through the providers' batch APIs and wait, up to a day; the same command waits on."
    ),
]
_Interval = Annotated[
    float,
    typer.Option(min=0, metavar="SECONDS", help="With --batch: seconds between two checks, longer if nothing changes."),
]
_NPairs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Maximum number of pairs, drawn at random.")]
_Published = Annotated[
    bool, typer.Option("--published", help="Show the published study of five templates instead, and ask nothing.")
]
_Chart = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=chart_file,
        help="Draw the study, beside the published one: svg, png, pdf, html or json, by the ending.",
    ),
]


@with_groups
def command(
    data: _Data = None,
    judge: _Judge = None,
    template: _Template = None,
    run: _Run = None,
    trait: opt.TraitName = None,
    judge_arg: _JudgeArg = None,
    batch: _Batch = False,
    interval: _Interval = 60.0,
    n_pairs: _NPairs = None,
    asking: Asking = Asking(),
    level: Annotated[float, typer.Option(metavar="SHARE", help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed gives the same pairs.")] = 1,
    n_jobs: opt.NJobs = None,
    published: _Published = False,
    chart: _Chart = None,
    reading: Reading = Reading(),
    a_col: opt.ACol = None,
    b_col: opt.BCol = None,
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
    from pairscale.checks.published import published_template_study
    from pairscale.checks.templates import template_study

    if published:
        if data is not None or judge or template:
            raise InputError("--published shows a study that was made already; leave DATA, --judge and --template out")
        study = published_template_study()
    elif data is None:
        raise InputError("name texts, pairs or judgements as DATA, or see --published")
    elif not judge:
        if template or run or trait or judge_arg or batch:
            raise InputError("--template, --run, --trait, --judge-arg and --batch need a judge; name one with --judge")
        study = template_study(_judgements(data, reading.encoding), level=level, n_jobs=n_jobs)
    else:
        pairs, ids, opening = read_pairs(data, reading, a_col, b_col)
        opening.say(judge)
        pairs = _drawn(pairs, ids, n_pairs, seed)
        say_unsaved(run)
        with resumable(run), contextlib.redirect_stdout(sys.stderr):  # what a judge prints is no part of the result
            study = template_study(
                pairs, templates=template or ["default"], judge=judge, run=run, trait=trait,
                judge_args=settings_of(judge_arg) or None, batch=batch, interval=interval,
                level=level, n_jobs=n_jobs, **asking.arguments,
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
        study.plot(chart, beside=None if published else published_template_study())
        say(f"wrote the chart to {chart}")
    if study.source is not None and (out is not None or as_json):
        say(f"note: {study.source}")
    emit(document, study.table, as_json=as_json, out=out, show=show)
    say_judged(judge or [])


def _judgements(data: Path, encoding: str | None) -> pl.DataFrame:
    """A table of judgements that were made already."""
    from pairscale.core.files import read_table

    if data.is_dir():
        raise InputError(f"{data} is a folder of texts; say who judges them with --judge")
    table = read_table(data, encoding=encoding)
    if "direction" not in table.columns:
        raise InputError(f"{data} has no column 'direction', so these are not judgements; say who judges with --judge")
    return table


def _drawn(pairs: pl.DataFrame, ids: list[str] | None, n_pairs: int | None, seed: int) -> pl.DataFrame:
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
