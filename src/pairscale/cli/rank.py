"""``pairscale rank``."""

from __future__ import annotations

import contextlib
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli import _options as opt
from pairscale.cli._common import as_argument, emit, printable, resumable, say_unsaved, show_table
from pairscale.cli._groups import Asking, Judging, Reading, with_groups
from pairscale.cli._inputs import make_named_judge, run_file, say_reused, show_request
from pairscale.cli._opening import read_texts, say_judged
from pairscale.cli._people import answering
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.options import read_setting, require_choice

if TYPE_CHECKING:
    import polars as pl

    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.judges.base import Judge

EXAMPLES = (
    "pairscale rank essays/ --run run.db",
    "pairscale rank essays.csv --judge mine:better --run run.db --concurrency 8",
    "pairscale rank essays.csv --judge openai:gpt-5.1 --run run.db --max-cost 2",
    "pairscale rank texts.jsonl --selector information --reliability 0.8",
    "pairscale rank essays.csv --goal top:10 --run run.db",
    "pairscale rank essays/ --judge human --labellers ann,bob --run run.db",
)

_Data = Annotated[Path, typer.Argument(metavar="DATA", help="A folder of texts, or a table with ids and texts.")]
_Run = Annotated[
    str | None,
    typer.Option(metavar="FILE", callback=run_file, help="The run file; the same command resumes it."),
]
_Reliability = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, metavar="R", help="Stop at this EAP reliability; 0.9 by default. May change in a pause."
    ),
]
_Without = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Withdraw this text from the run, for good; can be repeated."),
]
_MaxComparisons = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Maximum number of comparisons in the whole run.")
]
_Selector = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_names.selectors,
        help="How pairs are chosen: pollitt (for the order), information (for top:K), random, nearest, or "
        "module:function.",
    ),
]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A field of the configuration, such as cap_frac=0.1."),
]


@with_groups
def command(
    data: _Data,
    judge: opt.JudgeName = "lexical",
    run: _Run = None,
    judging: Judging = Judging(),
    dry_run: opt.DryRun = False,
    asking: Asking = Asking(concurrency=1),
    goal: opt.Goal = "order",
    answer: opt.Answer = "winner",
    reliability: _Reliability = None,
    without: _Without = None,
    steps: Annotated[int | None, typer.Option(min=0, metavar="N", help="Maximum number of questions now.")] = None,
    max_comparisons: _MaxComparisons = None,
    max_minutes: Annotated[float | None, typer.Option(min=0, metavar="M", help="Stop after this many minutes.")] = None,
    selector: _Selector = None,
    preset: opt.PresetName = "pairscale",
    set_: _Set = None,
    fit: Annotated[str, typer.Option(metavar="HOW", help="exact (sampled), or laplace (fast, approximate).")] = "exact",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed makes the same choices.")] = 1,
    progress: Annotated[str, typer.Option(metavar="WHAT", help="all, refits, steps, line or none.")] = "all",
    labellers: opt.Labellers = None,
    instructions: opt.Instructions = None,
    host: opt.Host = "127.0.0.1",
    port: opt.Port = 8484,
    url: opt.Url = None,
    reading: Reading = Reading(),
    columns: opt.WhichColumns = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Rank texts adaptively, with any judge.

    Each comparison is chosen by what is known so far. The Bayesian model is fitted again and again; the run stops by
    itself when the ranking is reliable and stable, or at a limit. Every answer is on the disk before the run ends. Run
    the same command again to resume after a limit, a crash or Ctrl-C. New texts in DATA join the run; --without ID
    withdraws one.

    `pairscale audit RUN` recomputes every choice and every stop from the log; `pairscale plan` says beforehand how many
    comparisons it may take.

    With --judge human, people answer on a page: each of --labellers has a link, and pairs come as they free up.
    """
    report, opening = read_texts(data, reading)
    samples = report.samples
    adaptive, btl = _configured(set_ or [])
    require_choice(fit, "--fit", ("exact", "laplace"))
    with contextlib.redirect_stdout(sys.stderr):  # what a judge of the user's prints is no part of the result
        asked = make_named_judge(judge, judging, asking.price, answer)
    opening.say([asked.condition.judge_id])
    if dry_run:
        _show_first_request(asked, samples, max_comparisons or steps or 25 * samples.height, as_json=as_json)
        return
    say_unsaved(run)
    page = answering(asked, labellers, (host, port, url), instructions, asking.concurrency, asking.timeout)
    started = datetime.now(UTC)
    with resumable(run), contextlib.redirect_stdout(sys.stderr), page as options:
        result = ps.rank(
            report,
            judge=asked,
            answer=answer,
            steps=steps,
            run=run,
            seed=seed,
            preset=preset,  # type: ignore[arg-type]
            goal=goal,
            selector=selector,
            reliability=reliability,
            max_comparisons=max_comparisons,
            max_minutes=max_minutes,
            fit=fit,
            adaptive_config=adaptive,
            btl_config=btl,
            without=without or (),
            progress=progress,  # type: ignore[arg-type]
            **asking.limits | options,
        )
    say_reused(asked)
    document = {"summary": result.summary, "run": run, "items": result.items, "refits": result.refits}
    short = _short(result.items)
    emit(document, short if columns == "short" else result.items, as_json=as_json, out=out, show=lambda: None)
    if not as_json:
        if result.items.height:
            show_table(result.items if columns == "all" else short, digits=2)
        _show(result, run, selector)
    say_judged([asked.condition.judge_id])
    _require_answers(result, started)


def _show_first_request(judge: Judge, samples: pl.DataFrame, calls: int, *, as_json: bool) -> None:
    if samples.height < 2:
        raise InputError(f"the data hold {samples.height} text: there is nothing to compare it with")
    first, second = samples.head(2).select("ID", "text").rows()
    pair = {"ID1": first[0], "text1": first[1], "ID2": second[0], "text2": second[1]}
    show_request(judge, pair, calls=calls, as_json=as_json)


def _require_answers(result: AdaptiveResult, started: datetime) -> None:
    """End with exit code 1 where the judge fails, or gave no valid answer in this call."""
    import polars as pl

    if result.state.stop_reason in ("judge_failing", "judge_flips"):
        raise typer.Exit(1)
    asked = result.logs["step_log"].filter(pl.col("timestamp") >= started, pl.col("status") != "starved")
    if asked.height and "committed" not in asked["status"]:
        reason = asked["invalid_reason"][-1]
        raise JudgeError(f"no question got a valid answer ({asked.height:,} asked); the last reason: {reason}")


def _configured(given: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """``--set`` fields, each to the configuration that has it."""
    from pairscale.adaptive.config import AdaptiveConfig, BTLConfig

    tables = (AdaptiveConfig.describe(), BTLConfig.describe())
    known = {entry["name"]: at for at, table in enumerate(tables) for entry in table}
    found: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for text in given:
        name, value = read_setting(text, "--set")
        if name not in known:
            raise InputError(f"--set {name}: there is no such field; docs/adaptive.md lists them")
        found[known[name]][name] = {"true": True, "false": False}.get(str(value).lower(), value)
    return found


def _short(items: pl.DataFrame) -> pl.DataFrame:
    """The columns that most people want: rank, ID, score and the interval of the rank, and those of their own table."""
    import polars as pl

    from pairscale.models.bayes.logs import ITEM_LOG

    known = {*ITEM_LOG, "rank", "95 %", "withdrawn", "in the top"}
    is_top = items["top_prob"].null_count() < items.height
    top = [pl.col("top_prob").fill_null(0.0).alias("in the top")] if is_top else []
    ends = pl.format("{}-{}", *_whole("rank_p2.5", "rank_p97.5")).alias("95 %")
    kept = (name for name in items.columns if name not in known)
    return items.select("rank", "ID", "theta_mean", ends, *top, *kept)


def _show(result: AdaptiveResult, run: str | None, selector: str | None) -> None:
    from pairscale.adaptive.messages import provisional, shown_figure, top_sought

    state = result.state
    said = f"\n{state.engine.committed:,} comparisons of {len(state.ids):,} texts"
    last = result.refits.row(-1, named=True) if result.refits.height else None
    if last is not None and top_sought(last) is not None:
        wrong = shown_figure(last["top_wrong"], last["top_wrong_allowed"], at_most=True)
        said += f"; goal {last['goal']}, {wrong} wrong members expected"
    elif last is not None:
        figure = shown_figure(last["reliability"], last["eap_reliability_min"])
        said += f"; reliability {figure}{provisional(last)}"
    typer.echo(f"{said}; preset {state.preset}")
    if state.withdrawn:
        typer.echo(printable(f"withdrawn: {', '.join(state.withdrawn)}"))
    typer.echo(_ending(result))
    if run is not None:
        own = f" --selector {selector}" if ":" in (selector or "") else ""
        name = as_argument(run)
        typer.echo(f"run file  {name}  (next: pairscale report {name}; to check it: pairscale audit {name}{own})")


def _whole(*names: str) -> list[Any]:
    import polars as pl

    return [pl.col(name).round().cast(pl.Int64) for name in names]


_ENDINGS = {
    "btl_converged": "stopped: the ranking is reliable and stable; a higher --reliability continues the run",
    "max_comparisons": "paused at --max-comparisons; run the same command with a higher one to continue",
    "max_cost": "paused at --max-cost; run the same command with a higher one to continue",
    "max_minutes": "paused at --max-minutes; run the same command again to continue",
    "judge_failing": "paused: the judge gives no valid answers; fix it, and run the same command again to continue",
    "judge_flips": "paused: the judge goes by position; run the same command with --set flip_share_max=S to continue",
}


def _ending(result: AdaptiveResult) -> str:
    from pairscale.adaptive.messages import stop_in_words, stop_meaning, why_stopped

    state = result.state
    if state.stop_reason is None:
        return "paused; run the same command again to continue"
    if state.stop_reason == "pairs_exhausted":
        return f"stopped: {why_stopped(state)}"
    rows = [row for row in result.refits.iter_rows(named=True) if not row["is_closing"]]
    if rows and rows[-1]["stop_reason"] == state.stop_reason == "btl_converged":
        why = stop_in_words(rows[-1])
        if state.engine.config.top is not None:
            return f"stopped: {stop_meaning('btl_converged', rows[-1])}; a lower top_wrong_max continues it\n  {why}"
        return f"{_ENDINGS['btl_converged']}\n  {why}"
    if state.stop_reason != "candidate_starvation":
        return _ENDINGS.get(state.stop_reason, state.stop_reason)
    more = "--set dup_max_obs=3 --set dup_p_margin=0.5 continues with more answers to a pair"
    if state.engine.ledger.given_up:
        limit = 2 * state.engine.config.max_invalid_per_pair
        more += f", --set max_invalid_per_pair={limit} asks about what was refused"
    return printable(f"stopped: {why_stopped(state)} ({more})")
