"""``pairscale bias-study``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._asking import opening, read_pairs, say_judged
from pairscale.cli._common import Output, chart_look, echo, require_chart, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from pairscale.checks.templates import TemplateStudy


@from_verb(
    "checks.templates.template_study pairing.reading.read_pairs",
    "[DATA]",
    "pairscale bias-study essays/ --judge mine:better --run study.db",
    "pairscale bias-study p.csv --judge a:b --template weigh --template mine.txt",
    "pairscale bias-study p.csv --judge openai:gpt-4.1,seed=1 --run s.db --batch",
    "pairscale bias-study judgements.csv --out study.csv --chart study.svg",
    "pairscale bias-study --published",
    hidden="templates tell",
)
def command(
    arguments: dict[str, Any],
    emit: Output,
    data: str | None = None,
    *,
    template: list[str] | None = None,
    n_pairs: int | None = None,
    seed: int = 1,
    published: bool = False,
    chart: str | Path | None = None,
    width: int | None = None,
    font_size: float | None = None,
    no_title: bool = False,
) -> None:
    """Find the prompt template that lets the position sway judges least.

    Every judge sees every pair with every template, in both orders. DATA is a folder or table of texts, a table of
    pairs, or, without --judge, a table of judgements: results with the columns template_id and direction (forward or
    reverse), and backend, model, thinking or judge where there are several judges.

    A template is good when the same text wins in both orders (prop_consistent near 1), the first position wins half
    of the comparisons (prop_pos1 near 0.5), and the effect is near 0 logits.

    Args:
        data: Texts or pairs to ask about, or judgements that were made already.
        template: Prompt template, a name or a .txt file; can be repeated.
        judge: As in `pairscale judge`, also with settings: openai:gpt-5.1,reasoning=low; can be repeated.
        run: The run file of all answers; the same command resumes the study.
        n_pairs: Maximum number of pairs, drawn at random.
        seed: The same seed gives the same pairs.
        published: Show the published study of five templates instead, and ask nothing.
        chart: Draw the study, beside the published one: svg, png, pdf, html or json, by the ending.
        width: With --chart: the width of a panel in pixels.
        font_size: With --chart: the size of names and numbers in pixels.
        no_title: With --chart: neither title nor notes.
    """
    from pairscale.checks.published import published_template_study
    from pairscale.checks.templates import template_study
    from pairscale.core.files import read_table

    judges = arguments["judge"] or []
    if chart is not None:
        require_chart(chart)
    if published:
        study = published_template_study()
    elif data is None:
        raise InputError("name texts, pairs or judgements as DATA, or see --published")
    elif judges:
        arguments["data"] = data
        ids = read_pairs(arguments, "data")
        opening(*judges, saved=arguments["run"] is not None)
        arguments["data"] = _drawn(arguments["data"], ids, n_pairs, seed)
        study = template_study(**arguments, templates=template or ["default"])
    elif Path(data).is_dir() or "direction" not in read_table(data, encoding=arguments["encoding"]).columns:
        raise InputError(f"{data} holds no judgements (there is no column 'direction'); say who judges with --judge")
    else:
        judgements = read_table(data, encoding=arguments["encoding"])
        study = template_study(judgements, level=arguments["level"], n_jobs=arguments["n_jobs"])
    if chart is not None:
        beside = None if published else published_template_study()
        study.plot(chart, beside=beside, **chart_look(width, font_size, no_title))
        say(f"wrote the chart to {chart}")
    if study.source is not None and not emit.is_screen:
        say(f"note: {study.source}")
    fields = ("source", "level", "notices", "ranking", "table")
    document = {"verdict": _verdict(study)} | {name: getattr(study, name) for name in fields}
    emit(document, study.table, lambda: _show(study))
    if judges:
        say_judged(*judges)


def _drawn(pairs: pl.DataFrame, ids: list[str] | None, n_pairs: int | None, seed: int) -> pl.DataFrame:
    if n_pairs is not None:
        pairs = ps.sample_pairs(pairs, 1, n_pairs, seed)
    return pairs if ids is None else ps.randomize_pair_order(pairs, seed)


def _verdict(study: TemplateStudy) -> str:
    biased = int((study.table["p_paired"] < 1 - study.level).sum())
    best = study.ranking.row(0, named=True)
    return (
        f"most consistent: {best['template_id']} ({best['mean_consistent']:.1%} of the pairs had the same winner in "
        f"both orders); {biased:,} of {study.table.height:,} judge and template combinations favour a position "
        f"(p < {1 - study.level:.2g}, pair by pair)"
    )


def _show(study: TemplateStudy) -> None:
    show_table(study.ranking)
    echo()
    columns = (
        "template_id judge backend model thinking n_pairs prop_consistent prop_pos1 p_sample1_overall p_paired effect "
        "effect_lower effect_upper"
    )
    table = study.table
    show_table(table.select(name for name in columns.split() if table[name].null_count() < table.height), most=100)
    echo(f"\n{_verdict(study)}")
    if study.source is not None:
        echo(f"Source: {study.source}.")
