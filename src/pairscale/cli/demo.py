"""``pairscale demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Json, Out, emit, say, show_table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EXAMPLES", "SUMMARY", "command"]

SUMMARY = "Rank the bundled texts with the embedded judge: no key, no network."
EXAMPLES = ("pairscale demo", "pairscale demo --folder demo --json")

_BAR = 24


def command(
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the run file and the report go.")] = Path(
        "pairscale-demo"
    ),
    seed: Annotated[int, typer.Option(metavar="N", help="Decides which of two texts stands first.")] = 1,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Rank the bundled texts with the embedded judge: no key, no network, in seconds.

    Twenty short answers to one question are compared, each with every other, by a baseline judge that looks at
    surface features. The scores come from a Bradley-Terry model. The demo starts anew every time.
    """
    from pairscale.report import write_ranking_report

    run, report = _fresh(folder)
    samples = ps.example_writing_samples
    pairs = ps.randomize_pair_order(ps.make_pairs(samples), seed=seed)
    say(f"Judging {pairs.height} pairs of {samples.height} texts with the embedded judge (a baseline, not a model) …")
    answers = ps.submit_pairs(pairs, "lexical", run=run, concurrency=8)
    fit = ps.fit_bt_model(ps.build_bt_data(answers.results))
    write_ranking_report(report, fit, samples, title="Why is it hard to change a habit?", judge="lexical")
    ranking = fit.theta.join(samples.select("ID", "quality_score", "text"), on="ID", maintain_order="left")
    agreement = _spearman(ranking)

    def show() -> None:
        import polars as pl

        theta = pl.col("theta")
        length = (_BAR * (theta - theta.min()) / (theta.max() - theta.min())).round().cast(pl.Int64)
        bar = pl.lit("█" * _BAR).str.head(pl.max_horizontal(length, 1))
        show_table(ranking.select("rank", "ID", "theta", "se_mean", bar.alias("score"), "text"), digits=2)
        typer.echo(
            f"\nreliability {fit.reliability:.2f}; Spearman with the intended order of the texts {agreement:.2f}"
        )
        typer.echo("(reliability says how repeatable this judge's ranking is, not whether the judge is right)")
        typer.echo(f"report   {report}  (open it in a browser)")
        typer.echo(f"answers  {run}  (try: pairscale fit {run})")

    document = {
        "reliability": fit.reliability,
        "spearman_quality_score": agreement,
        "report": str(report),
        "run": str(run),
        "items": ranking.drop("text"),
    }
    emit(document, ranking, as_json=as_json, out=out, show=show)


def _fresh(folder: Path) -> tuple[Path, Path]:
    """The demo's files in a folder, without those of an earlier demo; what is not a demo's is never touched."""
    from pairscale.errors import InputError, StoreError

    run, report = folder / "run.db", folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = InputError(f"{folder} holds a run or a report that is not the demo's; name another with --folder")
        if report.exists() and not run.exists():
            raise strange
        if run.exists():
            with ps.open_run(run) as store:
                if not store.get_meta("demo"):
                    raise strange
            ps.open_run(run, write=True).close()  # a demo that is still running keeps its files
            for name in ("run.db", "run.db-wal", "run.db-shm", "report.html"):
                (folder / name).unlink(missing_ok=True)
        with ps.open_run(run, write=True) as store:
            store.set_meta("demo", value=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be used: {error.strerror}; name another with --folder") from None
    except StoreError as error:
        raise InputError(f"{error}; name another place with --folder") from None
    return run, report


def _spearman(ranking: pl.DataFrame) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(ranking["theta"], ranking["quality_score"]).statistic)
