"""``pairscale fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pairscale as ps
from pairscale.cli._common import Arguments, Output, echo, fields, popped, require_chart, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError
from pairscale.core.notices import NOT_TOLD, is_told
from pairscale.core.options import FilePath

if TYPE_CHECKING:
    import polars as pl

    from pairscale.cli._common import Facts
    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit


_FIGURES = {
    "reliability": "reliability",
    "reliability_weighted": "reliability, weighted",
    "reliability_eap": "EAP reliability",
    "rank_correlation": "expected rank correlation with the true order",
    "reliability_without_outliers": "reliability without texts that lost or won nearly everything",
    "prior_sd": "prior standard deviation of the scores",
    "epsilon": "lapse rate",
    "error": "error of the judge's probabilities, in logits",
}
"""What is shown of a fit, where it has it."""

_POSITION = "preference for the first position, in logits"


@from_verb(
    "models.fitting.fit",
    "DATA...",
    hidden="ids rank_intervals covariance variant prior_sd chosen cluster weights repeats runs position level seed",
)
def command(
    arguments: Arguments,
    emit: Output,
    *,
    fit_statistics: bool = False,
    chart: FilePath | None = None,
    chart_kind: Literal["scores", "ranks", "judges"] = "scores",
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
        chart_kind: What to draw: scores; ranks (bt and bayes; adds rank intervals to the table of bt); judges (bt): how
            well each judge fits the scale.
        width: With --chart: its width in pixels.
        font_size: With --chart: the size of names and numbers in pixels.
        no_title: With --chart: neither title nor notes.
        columns: short: rank, ID, score and interval; all. By default the screen shows short, and --out writes all.

    Examples:
        pairscale fit run.db
        pairscale fit results.csv --out ranking.xlsx
        pairscale fit labels.jsonl --model bayes
        pairscale fit votes.jsonl --a-col pair.0 --b-col pair.1 --winner-col vote
        pairscale fit 'parts/*.parquet' --bootstrap 200 --n-jobs 2
        pairscale fit run.db --model bayes --answer probability
        pairscale fit shards/
        pairscale fit gpt.db claude.db --model bayes --judges slopes
        pairscale fit run.db --model elo --json
        pairscale fit run.db --chart ranking.svg
        pairscale fit people.jsonl --chart judges.pdf --chart-kind judges
        pairscale fit results.csv --engine mle --reference S01
    """
    from pairscale.core.samples import with_kept
    from pairscale.core.tables import TIMES
    from pairscale.models.fitting import counted_by
    from pairscale.models.model_checks import check_model
    from pairscale.reporting.charts import plot
    from pairscale.store.reading import read_comparisons

    model = arguments["model"]
    if chart is not None:
        require_chart(chart)
    if fit_statistics and model != "bt":
        raise InputError("fit_statistics belongs to model='bt'; leave it out", "fit_statistics")
    source = arguments["data"]
    reading = popped(arguments, ("condition", "a_col", "b_col", "winner_col", "encoding", "key"))
    keep = None
    if not fit_statistics and chart_kind != "judges":
        keep = counted_by(model, answer=arguments["answer"], judges=arguments["judges"])
    every_judge = arguments["judges"] == "slopes"
    results = read_comparisons(source, **reading, aloud=False, keep=keep, every_judge=every_judge)
    say(f"{source if isinstance(source, str) else ', '.join(source)}: {results.line}")
    is_ranked = chart is not None and chart_kind == "ranks" and model == "bt"
    fit: Any = ps.fit(**arguments | {"data": results}, rank_intervals=is_ranked, progress=True)
    if model == "elo":
        facts, items, names = _elo(fit)
    elif model == "bt":
        facts, items, names = _bradley_terry(fit, arguments["reference"])
    else:
        facts, items, names = _bayes(fit)
    facts["n_items"] = items.height
    # Whether the model holds for these answers, where they are in their order and not counted.
    checks = [] if model == "elo" or TIMES in results.table.columns else check_model(results.table)
    facts["checks"] = [fields(check, "name meaning warning z p p_text passes") for check in checks]
    if results.samples is not None:
        items, kept = with_kept(items, results.samples)
        names += kept
    short = items.select(names)
    if chart is not None:
        plot(fit, chart_kind, chart, title="" if no_title else None, width=width, font_size=font_size)
        say(f"wrote the chart to {chart}")
    more = [facts.get("judges")]
    if fit_statistics:
        facts["fit_statistics"] = fields(ps.fit_statistics(fit), "items judges")
        more += facts["fit_statistics"].values()

    def show() -> None:
        show_table(items if columns == "all" else short)
        echo("\n".join(["", *_lines(facts)]))
        for table in more:
            if table is not None:
                echo()
                show_table(table)

    document = {"model": model, "read": results.line, **facts, "items": items}
    emit(document, short if columns == "short" else items, show)


def _elo(fit: EloFit) -> tuple[Facts, pl.DataFrame, list[str]]:
    """The facts of the JSON, the table, and the columns that most people want."""
    facts = fields(fit, "engine reliability reliability_weighted notices") | {"runs": fit.fit.runs}
    return facts, fit.elo, ["rank", "ID", "elo", "elo_sd"]


def _bradley_terry(fit: BTFit, reference: str | None) -> tuple[Facts, pl.DataFrame, list[str]]:
    facts = fields(fit, "engine reliability unjudged notices prior_sd repeat_agreement")
    facts |= {"n_comparisons": round(fit.theta["comparisons"].sum() / 2), "components": len(fit.components)}
    facts |= {"level": 0.95, "reference": reference or "the mean"}
    first = "component" if "component" in fit.theta.columns else "rank"
    return facts, fit.theta, [first, "ID", "theta", "lower", "upper"]


def _bayes(fit: BayesFit) -> tuple[Facts, pl.DataFrame, list[str]]:
    last = fit.fit
    log = fit.round_log.row(0, named=True)
    error = getattr(last, "error", None)
    facts: Facts = {
        "engine": last.model_variant, **last.reliability().columns, "n_comparisons": last.n_comparisons,
        "diagnostics": last.diagnostics.log_columns(), "failures": last.diagnostics.reasons,
        "epsilon": log["epsilon_mean"], "b": log["b_mean"], "b_interval": (log["b_p2.5"], log["b_p97.5"]),
        "prior_sd": last.provenance.settings["prior_sd"], "repeats": last.repeat_agreement, "notices": fit.notices,
        "error": None if error is None else float(error.mean()), "judges": fit.judges, "not_told": [],
    }  # fmt: skip
    told = {name: is_told(log, name) for name in ("epsilon", "b")}
    if last.prior_sd is not None:
        facts["prior_sd"] = float(last.prior_sd.mean())
        told["prior_sd"] = last.spread_told
    for name, is_known in told.items():
        if facts[name] is not None and not is_known:
            facts[name] = None
            facts["not_told"].append(_FIGURES.get(name, _POSITION))
    return facts, ps.summarize_items(fit), ["rank", "ID", "theta_mean", "theta_p2.5", "theta_p97.5"]


def _lines(facts: Facts) -> list[str]:
    """What stands under the table."""
    counted = f", {facts['n_comparisons']:,} comparisons" if "n_comparisons" in facts else ""
    lines = [f"{facts['n_items']:,} items{counted}, engine {facts['engine']}"]
    lines += [f"{words} {facts[name]:.3f}" for name, words in _FIGURES.items() if facts.get(name) is not None]
    if facts.get("reliability_lower") is not None:
        interval = "({reliability_lower:.3f} to {reliability_upper:.3f})".format_map(facts)
        lines[1] += f" {interval}: the expected squared correlation with the true scores"
    elif (facts["reliability"] or 0) < 0:
        lines[1] += ": the errors of the scores are larger than their spread, so that the order says little"
    if facts.get("b") is not None:
        lines.append("{} {:.3f} ({:.3f} to {:.3f})".format(_POSITION, facts["b"], *facts["b_interval"]))
    lines += [f"{words}: {NOT_TOLD}" for words in facts.get("not_told", ())]
    if "level" in facts:
        lines.append(f"lower, upper: 95 % interval of the difference to {facts['reference']}")
    if "runs" in facts:
        lines.append(f"elo: mean over {facts['runs']:,} random orders of the comparisons; elo_sd: spread between them")
    for check in facts["checks"]:
        if not check["passes"]:
            lines.append("the model does not hold everywhere: {warning} (p {p_text})".format_map(check))
    return lines + [f"diagnostics FAIL, figures are provisional: {reason}" for reason in facts.get("failures", ())]
