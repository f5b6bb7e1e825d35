"""``pairscale demo``."""

from __future__ import annotations

from pathlib import Path

import pairscale as ps
from pairscale.cli._asking import say_judged
from pairscale.cli._common import Output, echo, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.options import FilePath


@from_verb("", "")
def command(emit: Output, *, folder: FilePath = "pairscale-demo") -> None:
    """Rank the bundled texts with the embedded judge: no key, no network, in seconds.

    Twenty short answers to one question are ranked adaptively: each pair is chosen by what is known so far, and the
    run stops by itself when the ranking is reliable. The judge is a baseline that looks at surface features; the
    scores come from a Bayesian Bradley-Terry model. The demo starts from the beginning every time.

    Args:
        folder: Where the run file and the report go.

    Examples:
        pairscale demo
        pairscale demo --folder demo --json
    """
    from pairscale.adaptive.messages import STOPS
    from pairscale.cli.rank import on_screen, short
    from pairscale.models.reliability import spearman

    run, report = _fresh(Path(folder))
    samples = ps.example_writing_samples
    say(f"Ranking {samples.height} texts with the embedded judge (a baseline, not a model) …")
    result = ps.rank(samples, judge="lexical", run=run, progress="line")
    ps.report(run, out=report, title="Why is it hard to change a habit?")
    ranking = result.items
    reliability = result.refits["reliability"][-1]
    agreement = spearman(ranking["theta_mean"].to_numpy(), ranking["quality_score"].to_numpy()) or 0.0
    summary = result.summary.row(0, named=True)

    def show() -> None:
        show_table(on_screen(short(result.items)), digits=2)
        reason = STOPS.get(summary["last_stop_reason"], summary["last_stop_reason"])
        echo(f"\n{summary['committed_pairs']} comparisons, each chosen by what was known so far; it stopped: {reason}")
        echo(f"reliability {reliability:.2f}; Spearman with the intended order of the texts {agreement:.2f}")
        echo("(reliability says how repeatable this judge's ranking is, not whether the judge is right)")
        echo(f"report   {report}  (open it in a browser)")
        echo(f"answers  {run}  (try: pairscale audit {run})")

    document = {
        "comparisons": summary["committed_pairs"], "stop_reason": summary["last_stop_reason"],
        "reliability": reliability, "spearman_quality_score": agreement, "report": str(report), "run": str(run),
        "items": ranking,
    }  # fmt: skip
    emit(document, ranking, show)
    say_judged("lexical")


def _fresh(folder: Path) -> tuple[Path, Path]:
    """The demo's files in a folder, without those of an earlier demo; what is not a demo's is never touched."""
    from pairscale.core.errors import InputError, StoreError

    run = folder / "run.db"
    report = folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if run.exists() or report.exists():
            with ps.open_run(run) as store:
                if not store.get_meta("demo"):
                    raise InputError(f"{folder} holds a run that is not the demo's; name another with --folder")
            ps.open_run(run, write=True).close()  # a demo that is still running keeps its files
            for name in ("run.db", "run.db-wal", "run.db-shm", "report.html"):
                (folder / name).unlink(missing_ok=True)
        with ps.open_run(run, write=True) as store:
            store.set_meta("demo", value=True)
    except (OSError, StoreError) as error:
        raise InputError(f"{folder} cannot be used: {error}; name another with --folder") from None
    return run, report
