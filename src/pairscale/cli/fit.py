"""``pairscale fit``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pairscale as ps
from pairscale.cli._common import Output, chart_look, echo, require_chart, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit


@from_verb(
    "fit",
    "DATA...",
    "pairscale fit run.db",
    "pairscale fit results.csv --out ranking.xlsx",
    "pairscale fit labels.jsonl --model bayes",
    "pairscale fit votes.jsonl --a-col pair.0 --b-col pair.1 --winner-col vote",
    "pairscale fit results.csv --model bayes --seed 1",
    "pairscale fit 'parts/*.parquet' --bootstrap 200 --n-jobs 2",
    "pairscale fit run.db --model bayes --answer probability",
    "pairscale fit shards/",
    "pairscale fit gpt.db claude.db --model bayes --judges slopes",
    "pairscale fit run.db --model elo --runs 100 --json",
    "pairscale fit run.db --chart ranking.svg",
    "pairscale fit people.jsonl --chart judges.pdf --chart-kind judges",
    "pairscale fit results.csv --engine mle --reference S01",
    hidden="ids rank_intervals covariance",
)
def command(
    arguments: dict[str, Any],
    emit: Output,
    *,
    fit_statistics: bool = False,
    chart: str | Path | None = None,
    chart_kind: Literal["scores", "ranks", "wins", "judges"] = "scores",
    width: int | None = None,
    font_size: float | None = None,
    no_title: bool = False,
    columns: Literal["short", "all"] | None = None,
) -> None:
    """Turn comparisons into scores, ranks, intervals and a reliability.

    DATA is a run file, the labels that `pairscale label` wrote, or a csv, tsv, jsonl, json, parquet or xlsx table.
    Its columns may be ID1 ID2 better_id, A_id B_id better_id, object1 object2 result, winner loser, candidate_chosen
    candidate_not_chosen, model_a model_b winner (arena files), or generator_1 generator_2 preference (AlpacaEval). Name
    others with --a-col, --b-col and --winner-col. Rows without a winner are left out, and counted.

    The score (theta) is in logits, with mean 0: a text that is one above another wins 73 of 100 comparisons with it.
    The screen shows four columns; --columns all shows, and --out writes, all of them, among them the engine's own
    standard error (se).

    Args:
        data: A run file, several or their folder, people's labels, a table of results of any known form, or
            'parts/*.parquet'.
        fit_statistics: For bt: also show how well each text and each judge fits the scores (infit, outfit).
        chart: Draw the result: svg, png, pdf, html or json, by the ending.
        chart_kind: What to draw: scores; ranks (bt and bayes; adds rank intervals to the table of bt); wins: who beats
            whom; judges (bt): how well each judge fits the scale.
        width: With --chart: its width in pixels.
        font_size: With --chart: the size of names and numbers in pixels.
        no_title: With --chart: neither title nor notes.
        columns: short: rank, ID, score and interval; all. By default the screen shows short, and --out writes all.
    """
    from pairscale.core.samples import with_kept
    from pairscale.models.fitting import counted_by
    from pairscale.store.reading import read_comparisons

    model = arguments["model"]
    if chart is not None:
        require_chart(chart)
    is_ranked = chart is not None and chart_kind == "ranks"
    if is_ranked and (arguments["separate"] or model == "elo"):
        raise InputError("--chart-kind ranks needs rank intervals, which this fit does not have; take scores or wins")
    if chart is not None and chart_kind == "judges" and model != "bt":
        raise InputError("--chart-kind judges belongs to model='bt', whose fit has statistics of judges")
    if fit_statistics and model != "bt":
        raise InputError("fit_statistics belongs to model='bt'; leave it out", "fit_statistics")
    source = arguments["data"]
    reading = {name: arguments.pop(name) for name in ("condition", "a_col", "b_col", "winner_col", "encoding", "key")}
    keep = None
    if not fit_statistics and chart_kind not in {"wins", "judges"}:
        keep = counted_by(model, **{name: arguments[name] for name in ("answer", "judges", "weights", "cluster")})
    every_judge = arguments["judges"] == "slopes"
    known = read_comparisons(source, **reading, aloud=False, keep=keep, every_judge=every_judge)
    say(f"{source if isinstance(source, str) else ', '.join(source)}: {known.line}")
    fit = ps.fit(**arguments | {"data": known}, rank_intervals=is_ranked and model == "bt", progress=True)
    facts, lines, items, names = _shown(fit, arguments)
    if known.samples is not None:
        items, kept = with_kept(items, known.samples)
        names += kept
    short = items.select(names)
    if chart is not None:
        _draw(fit, known.table, chart_kind, chart, chart_look(width, font_size, no_title))
    tables = {}
    if fit_statistics:
        statistics = ps.fit_statistics(fit)
        tables = {"items": statistics.items, "judges": statistics.judges}
        facts["fit_statistics"] = tables

    def show() -> None:
        show_table(items if columns == "all" else short)
        echo("\n".join(["", *lines]))
        for table in (*tables.values(), facts.get("judges")):
            if table is not None:
                echo()
                show_table(table)

    document = {"model": model, "read": known.line, **facts, "items": items}
    emit(document, short if columns == "short" else items, show)


def _shown(
    fit: BTFit | BayesFit | EloFit, arguments: dict[str, Any]
) -> tuple[dict[str, Any], list[str], pl.DataFrame, list[str]]:
    """The facts of the JSON, the lines under the table, the table, and the columns that most people want."""
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit

    if isinstance(fit, EloFit):
        facts = {name: getattr(fit, name) for name in ("engine", "reliability", "reliability_weighted", "notices")}
        facts["runs"] = fit.fit.runs
        lines = [f"{fit.elo.height:,} items, mean rating over {fit.fit.runs:,} random orders, elo_sd between them"]
        lines += _figures({"reliability": (fit.reliability,), "reliability, weighted": (fit.reliability_weighted,)})
        return facts | {"n_items": fit.elo.height}, lines, fit.elo, ["rank", "ID", "elo", "elo_sd"]
    if isinstance(fit, BTFit):
        return _bradley_terry(fit, arguments["level"] or 0.95, arguments["reference"])
    return _bayes(fit)


def _bradley_terry(
    fit: BTFit, level: float, reference: str | None
) -> tuple[dict[str, Any], list[str], pl.DataFrame, list[str]]:
    ranking = fit.theta
    n_comparisons = round(ranking["comparisons"].sum() / 2)
    facts = {name: getattr(fit, name) for name in ("engine", "reliability", "unjudged", "notices", "prior_sd")}
    facts |= {"n_items": ranking.height, "n_comparisons": n_comparisons, "components": len(fit.components)}
    facts |= {"level": level, "reference": reference}
    for name in ("position", "ties", "repeat_agreement"):
        record = getattr(fit, name)
        facts[name] = None if record is None else asdict(record)
    lines = [f"{ranking.height:,} items, {n_comparisons:,} comparisons, engine {fit.engine}"]
    lines += _figures({"reliability": (fit.reliability,)})
    if fit.reliability is not None and fit.reliability < 0:
        lines[-1] += ": the errors of the scores are larger than their spread, so that the order says little"
    figures: dict[str, tuple[float | None, ...]] = {"prior standard deviation of the scores": (fit.prior_sd,)}
    if fit.position is not None:
        figures["preference for the first position, in logits"] = (
            fit.position.b,
            fit.position.lower,
            fit.position.upper,
        )
    if fit.ties is not None:
        figures["ties: nu"] = (fit.ties.nu, fit.ties.lower, fit.ties.upper)
    lines += _figures(figures)
    lines.append(f"lower, upper: {100 * level:g} % interval of the difference to {reference or 'the mean'}")
    first = "component" if "component" in ranking.columns else "rank"
    return facts, lines, ranking, [first, "ID", "theta", "lower", "upper"]


def _bayes(fit: BayesFit) -> tuple[dict[str, Any], list[str], pl.DataFrame, list[str]]:
    from pairscale.adaptive.messages import provisional

    last = fit.fit
    log = fit.round_log.row(0, named=True)
    items = ps.summarize_items(fit)
    spread = last.provenance.settings["prior_sd"] if last.prior_sd is None else float(last.prior_sd.mean())
    error = getattr(last, "error", None)
    facts: dict[str, Any] = {
        "model_variant": last.model_variant,
        "reliability": log["reliability_EAP"],
        "n_items": items.height,
        "n_comparisons": last.n_comparisons,
        "diagnostics": last.diagnostics.log_columns(),
        "epsilon": log["epsilon_mean"],
        "b": log["b_mean"],
        "prior_sd": spread,
        "repeats": asdict(last.repeat_agreement),
        "notices": fit.notices,
        "error": None if error is None else float(error.mean()),
        "judges": fit.judges,
    }
    lines = [f"{items.height:,} items, {last.n_comparisons:,} comparisons, {last.model_variant}"]
    lines += [f"{line}{provisional(log)}" for line in _figures({"EAP reliability": (log["reliability_EAP"],)})]
    ends = ("mean", "p2.5", "p97.5")
    figures = {
        "lapse rate": [log[f"epsilon_{end}"] for end in ends],
        "preference for the first position, in logits": [log[f"b_{end}"] for end in ends],
        "standard deviation of the scores' prior": (spread,),
        "error of the judge's probabilities, in logits": (facts["error"],),
    }
    lines += _figures(figures)
    lines += [f"diagnostics FAIL: {reason}" for reason in last.diagnostics.reasons]
    return facts, lines, items, ["rank", "ID", "theta_mean", "theta_p2.5", "theta_p97.5"]


def _figures(figures: Mapping[str, Sequence[float | None]]) -> list[str]:
    """Figures that there are, each with its interval."""
    lines = []
    for name, (value, *ends) in figures.items():
        if value is not None:
            interval = "" if None in ends or not ends else f" ({ends[0]:.3f} to {ends[1]:.3f})"
            lines.append(f"{name} {value:.3f}{interval}")
    return lines


def _draw(
    fit: BTFit | BayesFit | EloFit, table: pl.DataFrame, kind: str, path: str | Path, look: Mapping[str, Any]
) -> None:
    from pairscale.reporting.charts import plot

    if kind == "wins":
        plot(table, kind, path, order=fit, **look)
    else:
        plot(fit, kind, path, **look)
    say(f"wrote the chart to {path}")
