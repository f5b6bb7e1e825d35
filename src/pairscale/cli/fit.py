"""``pairscale fit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import pairscale as ps
from pairscale.cli._common import Json, Out, chart_file, emit, say, show_table
from pairscale.cli._common import _writable as writable
from pairscale.cli._inputs import read_results
from pairscale.errors import InputError
from pairscale.options import require_number, require_number_or

if TYPE_CHECKING:
    import polars as pl

    from pairscale.models import BayesFit, BTFit, EloFit

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "pairscale fit run.db",
    "pairscale fit results.csv --out ranking.xlsx",
    "pairscale fit results.csv --model bayes --seed 1",
    "pairscale fit run.db --model elo --runs 100 --json",
    "pairscale fit run.db --chart ranking.svg",
    "pairscale fit results.csv --engine mle --reference S01 --covariance c.csv",
)


class Model(StrEnum):
    """The models there are."""

    BT = "bt"
    ELO = "elo"
    BAYES = "bayes"


class Variant(StrEnum):
    """What the judge of the Bayesian model may have."""

    BTL = "btl"
    LAPSE = "btl_e"
    POSITION = "btl_b"
    BOTH = "btl_e_b"


class ChartKind(StrEnum):
    """What a chart may show."""

    SCORES = "scores"
    RANKS = "ranks"
    WINS = "wins"


class Ties(StrEnum):
    """What a tie counts."""

    DROP = "drop"
    HALF = "half"
    DAVIDSON = "davidson"


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a model gave, as the command shows it."""

    facts: Mapping[str, Any]
    items: pl.DataFrame
    columns: tuple[str, ...]
    lines: tuple[str, ...]
    fit: BTFit | BayesFit | EloFit


def _covariance_file(path: Path | None) -> Path | None:
    """The file of the covariance, refused before any work is done."""
    try:
        return writable(path)
    except InputError as error:
        raise type(error)(str(error).replace("--out", "--covariance")) from None


def command(
    results: Annotated[
        str, typer.Argument(metavar="RESULTS", help="A run file, or a table of results (also one from R).")
    ],
    model: Annotated[
        Model, typer.Option(metavar="MODEL", help="bt: Bradley-Terry; elo: EloChoice; bayes: the whole posterior.")
    ] = Model.BT,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Of bt: sirt (auto; the figures of R's sirt::btm), mle, map or firth.")
    ] = "auto",
    variant: Annotated[
        Variant | None,
        typer.Option(
            metavar="NAME",
            help="Of bayes: btl, btl_e (lapses), btl_b (position), btl_e_b (both; the default where results say who "
            "stood first).",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", min=1, help="Of elo: how many random orders.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed, the same figures.")] = 1,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Of the intervals of bt.")] = 0.95,
    condition: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of a run file with several: this judge, this condition (its beginning is enough), or all.",
        ),
    ] = None,
    separate: Annotated[
        bool, typer.Option("--separate", help="Of bt: fit groups never compared one by one, instead of refusing.")
    ] = False,
    position: Annotated[
        bool, typer.Option("--position", help="Of bt: estimate the preference for the first position, too.")
    ] = False,
    ties: Annotated[
        Ties, typer.Option(metavar="HOW", help="Of bt: drop, half (a half win for each) or davidson (a model of ties).")
    ] = Ties.DROP,
    cluster: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of bt: robust errors, by judge_id or another column.")
    ] = None,
    bootstrap: Annotated[int, typer.Option(metavar="N", min=0, help="Of bt: so many rounds for the intervals.")] = 0,
    reference: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Of bt, engines mle, map and firth: the text whose score is 0."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of bt: the column that says what each comparison counts.")
    ] = None,
    prior_sd: Annotated[
        str | None,
        typer.Option(
            metavar="SD",
            help="Of bayes and of engine map: the standard deviation of the scores' prior (1); of bayes also learned.",
        ),
    ] = None,
    covariance: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=_covariance_file,
            help="Of bt: write the covariance of all scores, a row and a column for each text.",
        ),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=chart_file, help="Draw the result: svg, png, html or json, by the ending."
        ),
    ] = None,
    chart_kind: Annotated[
        ChartKind,
        typer.Option(
            metavar="KIND",
            help="scores; ranks (bt and bayes; adds rank intervals to the table of bt); wins: who beats whom.",
        ),
    ] = ChartKind.SCORES,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Turn comparisons into scores, ranks, intervals and a reliability.

    RESULTS is a run file, or a csv, tsv, jsonl, json, parquet or xlsx table with the columns ID1 ID2 better_id, or
    A_id B_id better_id, or object1 object2 result, or winner loser. Rows without a winner are left out, and counted.

    The score (theta) is in logits, with mean 0: a text that is one above another wins 73 of 100 comparisons with it.
    The file that --out writes has further columns, among them the engine's own standard error (se).
    """
    ranks = chart is not None and chart_kind is ChartKind.RANKS
    if ranks and (separate or model is Model.ELO):
        why = "groups never compared have none" if separate else "Elo ratings have none"
        raise InputError(f"--chart-kind ranks draws rank intervals, and {why}; take scores or wins")
    others = {
        "--engine": engine != "auto", "--separate": separate, "--position": position, "--ties": ties is not Ties.DROP,
        "--cluster": cluster is not None, "--bootstrap": bootstrap > 0, "--reference": reference is not None,
        "--weights": weights is not None, "--covariance": covariance is not None,
    }  # fmt: skip
    if model is not Model.BT and (wrong := [name for name, given in others.items() if given]):
        raise InputError(f"{wrong[0]} belongs to --model bt, not to --model {model}; leave it out")
    if model is not Model.BAYES and variant is not None:
        raise InputError(f"--variant belongs to --model bayes, not to --model {model}; leave it out")
    spread = None if prior_sd is None else _prior_sd(prior_sd, model, engine)
    if covariance is not None and out is not None and covariance.resolve() == out.resolve():
        raise InputError(f"--covariance and --out both name {out}; name two files")
    table, ids = read_results(results, condition)
    if model is Model.ELO:
        shown = _elo(table, runs, seed)
    elif model is Model.BAYES:
        shown = _bayes(table, ids, variant, seed, 1.0 if spread is None else spread)
    else:
        options: dict[str, Any] = {
            "position": position, "ties": ties.value, "cluster": cluster, "bootstrap": bootstrap, "seed": seed,
            "reference": reference, "weights": weights, "covariance": covariance is not None, "rank_intervals": ranks,
        }  # fmt: skip
        if spread is not None:
            options["prior_sd"] = spread
        shown = _bradley_terry(table, ids, engine, level, separate, options)
        if covariance is not None:
            _write_covariance(shown.fit, covariance)
    if chart is not None:
        _draw(shown.fit, table, chart_kind, chart)

    def show() -> None:
        show_table(shown.items.select(shown.columns))
        typer.echo("")
        for line in shown.lines:
            typer.echo(line)

    document = {"model": str(model), **shown.facts, "items": shown.items}
    emit(document, shown.items, as_json=as_json, out=out, show=show)


_LEARNED: tuple[Literal["learned"]] = ("learned",)


def _prior_sd(text: str, model: Model, engine: str) -> float | Literal["learned"]:
    """The standard deviation that was given."""
    if model is Model.ELO or (model is Model.BT and engine != "map"):
        what = f"--model {model}" if model is Model.ELO else f"--engine {engine}"
        raise InputError(f"--prior-sd belongs to --model bayes and to --engine map, not to {what}; leave it out")
    given: float | str = text
    try:
        given = float(text)
    except ValueError:  # no number; refused, or learned
        pass
    if model is Model.BAYES:
        return require_number_or(given, "--prior-sd", _LEARNED, above=0)
    return require_number(given, "--prior-sd", above=0)


def _write_covariance(fit: BTFit | BayesFit | EloFit, path: Path) -> None:
    import polars as pl

    from pairscale.files import write_table

    if not isinstance(fit, ps.BTFit) or fit.covariance is None:
        raise InputError("--covariance: this fit has no standard errors, and so no covariance; leave it out")
    ids = fit.theta["ID"].to_list()
    head = "ID"
    while head in ids:  # a text may be called so
        head += "_"
    columns = {name: fit.covariance[:, at] for at, name in enumerate(ids)}
    write_table(pl.DataFrame({head: ids, **columns}), path)
    say(f"wrote the covariance of {len(ids):,} scores to {path}")


def _draw(fit: BTFit | BayesFit | EloFit, table: pl.DataFrame, kind: ChartKind, path: Path) -> None:
    from pairscale.report.charts import rank_chart, save_chart, score_chart, win_matrix

    if kind is ChartKind.WINS:
        drawn = win_matrix(table, fit)
    elif kind is ChartKind.RANKS:
        drawn = rank_chart(fit)
    else:
        drawn = score_chart(fit)
    save_chart(drawn, path)
    say(f"wrote the chart to {path}")


def _bradley_terry(
    table: pl.DataFrame, ids: list[str] | None, engine: str, level: float, separate: bool, options: dict[str, Any]
) -> _Shown:
    fit = ps.fit_bt_model(
        table, engine=engine, ids=ids, level=level, unconnected="separate" if separate else "error", **options
    )
    ranking = fit.theta
    n_comparisons = round(ranking["comparisons"].sum() / 2)
    facts = {
        "engine": fit.engine,
        "reliability": fit.reliability,
        "n_items": ranking.height,
        "n_comparisons": n_comparisons,
        "level": level,
        "reference": options["reference"],
        "components": len(fit.components),
        "unjudged": fit.unjudged,
        "notices": fit.notices,
        "position": None if fit.position is None else asdict(fit.position),
        "ties": None if fit.ties is None else asdict(fit.ties),
    }
    first = "component" if "component" in ranking.columns else "rank"
    lines = [f"{ranking.height:,} items, {n_comparisons:,} comparisons, engine {fit.engine}"]
    if fit.reliability is not None:
        lines.append(f"reliability {fit.reliability:.3f}")
    if fit.position is not None:
        b = fit.position
        lines.append(f"preference for the first position {b.b:+.3f} logits ({b.lower:+.3f} to {b.upper:+.3f})")
    if fit.ties is not None:
        lines.append(f"ties: nu {fit.ties.nu:.3f} ({fit.ties.lower:.3f} to {fit.ties.upper:.3f})")
    reference = options["reference"]
    simple = "se_mean" if reference is None else "se"
    error = "se_bootstrap" if options["bootstrap"] else "se_robust" if options["cluster"] else simple
    other = "the mean" if reference is None else reference
    lines.append(f"lower to upper: {100 * level:g}% interval of the difference to {other}, theta ± z · {error}")
    columns = (first, "ID", "theta", error, "lower", "upper", "wins", "comparisons")
    return _Shown(facts, ranking, columns, tuple(lines), fit)


def _elo(table: pl.DataFrame, runs: int, seed: int) -> _Shown:
    fit = ps.fit_elo_model(table, runs=runs, seed=seed)
    facts = {
        "engine": fit.engine,
        "reliability": fit.reliability,
        "reliability_weighted": fit.reliability_weighted,
        "n_items": fit.elo.height,
        "runs": runs,
        "seed": seed,
        "notices": fit.notices,
    }
    lines = (
        f"{fit.elo.height:,} items, mean rating over {runs:,} random orders, elo_sd between them",
        f"reliability {_number(fit.reliability)}, weighted {_number(fit.reliability_weighted)} (for the higher rated)",
    )
    return _Shown(facts, fit.elo, ("rank", "ID", "elo", "elo_sd"), lines, fit)


def _bayes(
    table: pl.DataFrame,
    ids: list[str] | None,
    chosen: Variant | None,
    seed: int,
    prior_sd: float | Literal["learned"],
) -> _Shown:
    from pairscale.comparisons import says_who_stood_first

    variant = chosen or (Variant.BOTH if says_who_stood_first(table) else Variant.LAPSE)
    fit = ps.fit_bayes_btl_mcmc(table, ids, variant.value, seed=seed, prior_sd=prior_sd, progress=True)
    last, log = fit.fit, fit.round_log.row(0, named=True)
    items = ps.summarize_items(fit)
    facts = {
        "model_variant": variant.value,
        "reliability": log["reliability_EAP"],
        "n_items": items.height,
        "n_comparisons": last.n_comparisons,
        "seed": seed,
        "diagnostics": last.diagnostics.log_columns(),
        "epsilon": log["epsilon_mean"],
        "b": log["b_mean"],
        "prior_sd": prior_sd if last.prior_sd is None else float(last.prior_sd.mean()),
    }
    lines = [
        f"{items.height:,} items, {last.n_comparisons:,} comparisons, {last.posterior.n_draws:,} draws of {variant}",
        f"EAP reliability {_number(log['reliability_EAP'])}",
    ]
    if log["epsilon_mean"] is not None:
        lines.append(f"lapse rate {log['epsilon_mean']:.3f} ({log['epsilon_p2.5']:.3f} to {log['epsilon_p97.5']:.3f})")
    if log["b_mean"] is not None:
        low, high = log["b_p2.5"], log["b_p97.5"]
        lines.append(f"preference for the first position {log['b_mean']:+.3f} logits ({low:+.3f} to {high:+.3f})")
    if last.prior_sd is not None:
        lines.append(f"prior standard deviation of the scores, learned: {last.prior_sd.mean():.3f}")
    lines += [f"diagnostics FAIL: {reason}" for reason in last.diagnostics.reasons] or ["diagnostics pass"]
    columns = (
        "ID",
        "theta_mean",
        "theta_sd",
        "theta_p2.5",
        "theta_p97.5",
        "rank_mean",
        "rank_p2.5",
        "rank_p97.5",
        "degree",
    )
    return _Shown(facts, items, columns, tuple(lines), fit)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
