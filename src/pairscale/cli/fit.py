"""``pairscale fit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import chart_file, emit, say, show_table
from pairscale.cli._fit_shown import shown_fit
from pairscale.cli._groups import ResultCols, with_groups
from pairscale.core.errors import InputError
from pairscale.core.options import require_number_or

if TYPE_CHECKING:
    import polars as pl

    from pairscale.models.bayes.results import BayesFit
    from pairscale.models.bradley_terry import BTFit
    from pairscale.models.elo import EloFit
    from pairscale.store.reading import Comparisons

EXAMPLES = (
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
    "pairscale fit results.csv --engine mle --reference S01 --covariance c.csv",
)


Model = Literal["bt", "elo", "bayes"]
Chosen = Literal["beforehand", "adaptive"]
ChartKind = Literal["scores", "ranks", "wins"]


def _covariance_file(path: Path | None) -> Path | None:
    """The file of the covariance, refused before any work is done."""
    try:
        return opt.writable(path)
    except InputError as error:
        raise type(error)(str(error).replace("--out", "--covariance")) from None


@dataclass(frozen=True, eq=False, repr=False)
class OfModel:
    """Options that belong to some models or engines, and are refused with the others."""

    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="For bt: sirt (auto; the figures of R's sirt::btm), mle, map or firth. For bayes: sampler (auto) or "
            "laplace, the normal approximation.",
        ),
    ] = "auto"
    answer: opt.Answer = "winner"
    judges: Annotated[
        Literal["pooled", "slopes"],
        typer.Option(
            metavar="HOW",
            help="If there are several judges (column judge_id or judge): pooled, as if they were one; for bayes, "
            "slopes: a slope and a position effect for each, and who is weak.",
        ),
    ] = "pooled"
    variant: Annotated[
        Literal["btl", "btl_e", "btl_b", "btl_e_b"] | None,
        typer.Option(
            metavar="NAME",
            help="For bayes: btl, btl_e (lapses), btl_b (position), btl_e_b (both; the default where results say who "
            "stood first).",
        ),
    ] = None
    ties: Annotated[
        Literal["drop", "half", "davidson"] | None,
        typer.Option(
            metavar="HOW",
            help="drop (default of bt), half (half a win for each; default of bayes), or for bt davidson (a model of "
            "ties).",
        ),
    ] = None
    repeats: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="How to count repeats of a pair: learned, by what they add (for bayes and engine map); independent, "
            "each is new evidence (otherwise); or their excess agreement, 0 to 1.",
        ),
    ] = None
    prior_sd: Annotated[
        str | None,
        typer.Option(
            metavar="SD",
            help="For bayes and engine map: the standard deviation of the scores' prior, a number or learned (the "
            "default).",
        ),
    ] = None
    position: Annotated[
        bool, typer.Option("--position", help="bt only: also estimate the preference for the first position.")
    ] = False
    separate: Annotated[
        bool,
        typer.Option("--separate", help="For bt: fit groups that were never compared separately, instead of refusing."),
    ] = False
    chosen: Annotated[
        Chosen | None,
        typer.Option(
            metavar="HOW", help="For bt: how the pairs were chosen, beforehand or adaptive. A run file knows it."
        ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="For bt: robust standard errors, clustered by judge_id or another column."),
    ] = None
    bootstrap: Annotated[
        int, typer.Option(metavar="N", min=0, help="For bt: number of bootstrap rounds for the intervals.")
    ] = 0
    n_jobs: opt.NJobs = None
    level: Annotated[float | None, typer.Option(metavar="SHARE", help="For bt: level of the intervals (0.95).")] = None
    reference: Annotated[
        str | None,
        typer.Option(metavar="ID", help="For bt with engine mle, map or firth: the text whose score is 0."),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="For bt: the column with the weight of each comparison; by default weight."
        ),
    ] = None
    covariance: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=_covariance_file,
            help="For bt: write the covariance of all scores, with one row and one column per text.",
        ),
    ] = None
    runs: Annotated[int | None, typer.Option(metavar="N", min=1, help="For elo: number of random orders (100).")] = None

    @property
    def given(self) -> dict[str, bool]:
        """Which of them were given."""
        return {one.name: getattr(self, one.name) != one.default for one in fields(self)}


_Results = Annotated[
    list[str],
    typer.Argument(
        metavar="RESULTS...",
        help="A run file, several or their folder, people's labels, a table of results of any known form, or "
        "'parts/*.parquet'.",
    ),
]
_Model = Annotated[
    Model, typer.Option(metavar="MODEL", help="bt: Bradley-Terry; elo: EloChoice; bayes: the whole posterior.")
]
_Condition = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="If the run file has several: the judge, the condition (its beginning is enough), people, or all. For "
        "labels: the criterion.",
    ),
]
_Chart = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=chart_file, help="Draw the result: svg, png, html or json, by the ending."),
]
_FitStatistics = Annotated[
    bool,
    typer.Option(
        "--fit-statistics",
        help="For bt: also show how well each text and each judge fits the scores (infit, outfit).",
    ),
]
_ChartKind = Annotated[
    ChartKind,
    typer.Option(
        metavar="KIND",
        help="scores; ranks (bt and bayes; adds rank intervals to the table of bt); wins: who beats whom.",
    ),
]


@with_groups
def command(
    results: _Results,
    model: _Model = "bt",
    of_model: OfModel = OfModel(),
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same figures.")] = 1,
    condition: _Condition = None,
    columns_of: ResultCols = ResultCols(),
    key: opt.Key = None,
    fit_statistics: _FitStatistics = False,
    chart: _Chart = None,
    chart_kind: _ChartKind = "scores",
    columns: opt.WhichColumns = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Turn comparisons into scores, ranks, intervals and a reliability.

    RESULTS is a run file, the labels that `pairscale label` wrote, or a csv, tsv, jsonl, json, parquet or xlsx table.
    Its columns may be ID1 ID2 better_id, A_id B_id better_id, object1 object2 result, winner loser, candidate_chosen
    candidate_not_chosen, model_a model_b winner (arena files), or generator_1 generator_2 preference (AlpacaEval). Name
    others with --a-col, --b-col and --winner-col. Rows without a winner are left out, and counted.

    The score (theta) is in logits, with mean 0: a text that is one above another wins 73 of 100 comparisons with it.
    The screen shows four columns; --columns all shows, and --out writes, all of them, among them the engine's own
    standard error (se).
    """
    from pairscale.models.fitting import counted_by
    from pairscale.store.reading import read_comparisons

    ranks = chart is not None and chart_kind == "ranks"
    if ranks and (of_model.separate or model == "elo"):
        why = "groups never compared have none" if of_model.separate else "Elo ratings have none"
        raise InputError(f"--chart-kind ranks draws rank intervals, and {why}; take scores or wins")
    if fit_statistics and model != "bt":
        raise InputError(f"--fit-statistics belongs to --model bt, not to --model {model}; leave it out")
    _require_own(of_model.given, model, of_model.engine)
    covariance = of_model.covariance
    if covariance is not None and out is not None and covariance.resolve() == out.resolve():
        raise InputError(f"--covariance and --out both name {out}; name two files")
    needs_rows = fit_statistics or (chart is not None and chart_kind == "wins")
    keep = counted_by(
        model, answer=of_model.answer, judges=of_model.judges, weights=of_model.weights, cluster=of_model.cluster
    )
    known = read_comparisons(
        opt.single(results),
        condition,
        **vars(columns_of),
        key=key,
        aloud=False,
        keep=None if needs_rows else keep,
        every_judge=of_model.judges == "slopes",
    )
    say(f"{', '.join(results)}: {known.line}")
    fit = ps.fit(
        known.table,
        model,
        **_arguments(of_model, known, model),
        ids=known.ids if model != "elo" else None,
        seed=seed,
        rank_intervals=ranks,
        progress=True,
    )
    shown = shown_fit(fit, seed, of_model.level or 0.95, of_model.reference)
    if known.samples is not None:
        from pairscale.core.samples import with_kept

        items, short = (with_kept(table, known.samples)[0] for table in (shown.items, shown.short))
        shown = replace(shown, items=items, short=short)
    if covariance is not None:
        _write_covariance(fit, covariance)
    if chart is not None:
        _draw(fit, known.table, chart_kind, chart)

    tables = _statistics(fit) if fit_statistics else {}

    def show() -> None:
        show_table(shown.items if columns == "all" else shown.short)
        typer.echo("")
        for line in shown.lines:
            typer.echo(line)
        for table in tables.values():
            typer.echo("")
            show_table(table)

    document = {"model": model, "read": known.line, **shown.facts, "items": shown.items}
    if fit_statistics:
        document["fit_statistics"] = tables
    written = shown.short if columns == "short" else shown.items
    emit(document, written, as_json=as_json, out=out, show=show)


def _statistics(fit: BTFit | BayesFit | EloFit) -> dict[str, pl.DataFrame]:
    """How well texts and, where they are named, judges fit the scores."""
    found = ps.fit_statistics(fit)
    tables = {"items": found.items}
    if found.judges is not None:
        tables["judges"] = found.judges
    return tables


_LEARNED: tuple[Literal["learned"]] = ("learned",)
_REPEATS: tuple[Literal["learned", "independent"], ...] = ("learned", "independent")
_Choice = TypeVar("_Choice", bound=str)


def _require_own(given: Mapping[str, bool], model: Model, engine: str) -> None:
    """Refuse an option of another model, or of another engine, by its name."""
    from pairscale.models.fitting import misplaced

    if given["prior_sd"] and (model == "elo" or (model == "bt" and engine != "map")):
        what = f"--model {model}" if model == "elo" else f"--engine {engine}"
        raise InputError(f"--prior-sd belongs to --model bayes and to --engine map, not to {what}; leave it out")
    wrong = misplaced(given, model)
    if wrong is not None:
        option = wrong[0].replace("_", "-")
        models = " and ".join(f"--model {name}" for name in wrong[1])
        raise InputError(f"--{option} belongs to {models}, not to --model {model}; leave it out")


def _number_or(text: str | None, option: str, choices: tuple[_Choice, ...], **bounds: float) -> float | _Choice | None:
    """A number or one of a few words, as it was given."""
    if text is None:
        return None
    given: float | str = text
    try:
        given = float(text)
    except ValueError:  # no number; one of the words, or refused
        pass
    return require_number_or(given, option, choices, **bounds)


def _arguments(given: OfModel, known: Comparisons, model: Model) -> dict[str, Any]:
    """The arguments of :func:`pairscale.fit`, which takes numbers, and a table where a column is named."""
    return {
        **vars(given),
        "prior_sd": _number_or(given.prior_sd, "--prior-sd", _LEARNED, above=0),
        "repeats": _number_or(given.repeats, "--repeats", _REPEATS, least=0),
        "chosen": given.chosen or known.chosen if model == "bt" else None,
        "covariance": given.covariance is not None,
    }


def _write_covariance(fit: BTFit | BayesFit | EloFit, path: Path) -> None:
    import polars as pl

    from pairscale.core.files import write_table

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
    from pairscale.reporting.charts import rank_chart, save_chart, score_chart, win_matrix

    if kind == "wins":
        drawn = win_matrix(table, fit)
    elif kind == "ranks":
        drawn = rank_chart(fit)
    else:
        drawn = score_chart(fit)
    save_chart(drawn, path)
    say(f"wrote the chart to {path}")
