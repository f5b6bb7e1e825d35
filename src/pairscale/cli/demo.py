"""``pairscale demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, say, show_table
from pairscale.cli._opening import say_judged

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = ("pairscale demo", "pairscale demo --folder demo --json")

_BAR = 24


def command(
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the run file and the report go.")] = Path(
        "pairscale-demo"
    ),
    seed: Annotated[int, typer.Option(metavar="N", help="Decides which of two texts stands first.")] = 1,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Rank the bundled texts with the embedded judge: no key, no network, in seconds.

    Twenty short answers to one question are ranked adaptively: each pair is chosen by what is known so far, and the
    run stops by itself when the ranking is reliable. The judge is a baseline that looks at surface features; the
    scores come from a Bayesian Bradley-Terry model. The demo starts from the beginning every time.
    """
    from pairscale.reporting.verbs import write_report

    run, report = _fresh(folder)
    samples = ps.example_writing_samples
    say(f"Ranking {samples.height} texts with the embedded judge (a baseline, not a model) …")
    result = ps.rank(samples, judge="lexical", run=run, seed=seed, progress="line")
    write_report(run, report, title="Why is it hard to change a habit?")
    texts = samples.select("ID", "text")
    ranking = result.items.join(texts, on="ID", maintain_order="left")
    reliability, agreement = result.refits["reliability"][-1], _spearman(ranking)
    asked = result.summary["committed_pairs"][0]

    def show() -> None:
        import polars as pl

        from pairscale.adaptive.messages import provisional

        theta = pl.col("theta_mean")
        length = (_BAR * (theta - theta.min()) / (theta.max() - theta.min())).round().cast(pl.Int64)
        bar = pl.lit("█" * _BAR).str.head(pl.max_horizontal(length, 1))
        shown = ranking.select(
            "rank", "ID", theta.alias("theta"), pl.col("theta_sd").alias("sd"), bar.alias("score"), "text"
        )
        show_table(shown, digits=2)
        typer.echo(f"\n{asked} comparisons, each chosen by what was known so far; {_ending(result)}")
        unsure = provisional(result.refits.row(-1, named=True))
        typer.echo(
            f"reliability {reliability:.2f}{unsure}; Spearman with the intended order of the texts {agreement:.2f}"
        )
        typer.echo("(reliability says how repeatable this judge's ranking is, not whether the judge is right)")
        typer.echo(f"report   {report}  (open it in a browser)")
        typer.echo(f"answers  {run}  (try: pairscale audit {run})")

    document = {
        "comparisons": asked,
        "stop_reason": result.summary["last_stop_reason"][0],
        "reliability": reliability,
        "spearman_quality_score": agreement,
        "report": str(report),
        "run": str(run),
        "items": ranking.drop("text"),
    }
    emit(document, ranking, as_json=as_json, out=out, show=show)
    say_judged(["lexical"])


def _ending(result: ps.AdaptiveResult) -> str:
    reason = result.state.stop_reason
    return "reliable and stable, so it stopped" if reason == "btl_converged" else f"it stopped: {reason}"


def _fresh(folder: Path) -> tuple[Path, Path]:
    """The demo's files in a folder, without those of an earlier demo; what is not a demo's is never touched."""
    from pairscale.core.errors import InputError, StoreError

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
    from pairscale.models.correlations import spearman

    return spearman(ranking["theta_mean"].to_numpy(), ranking["quality_score"].to_numpy()) or 0.0
