"""``pairscale rank``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import pairscale as ps
from pairscale.cli._asking import make_judge, opening, read_texts, say_judged
from pairscale.cli._common import Arguments, Output, as_argument, echo, popped, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.options import FilePath, read_setting

if TYPE_CHECKING:
    import polars as pl

    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.adaptive.session import AdaptiveState

ENDINGS = {
    "btl_converged": "a higher --reliability continues the run",
    "candidate_starvation": "--set dup_max_obs=3 --set dup_p_margin=0.5 continues with more answers to a pair",
    "pairs_exhausted": "new texts continue the run",
    "max_comparisons": "paused at --max-comparisons; run the same command with a higher one to continue",
    "max_cost": "paused at --max-cost; run the same command with a higher one to continue",
    "max_minutes": "paused at --max-minutes; run the same command again to continue",
    "judge_failing": "paused: the judge gives no valid answers; fix it, and run the same command again to continue",
    "judge_flips": "paused: the judge goes by position; run the same command with --set flip_share_max=S to continue",
}
"""How to continue a run, by the reason why it stopped."""
PAUSED = "paused; run the same command again to continue"
TOP_KNOWN = "a lower --set top_wrong_max or a higher --set eap_reliability_min continues the run"
"""How to continue a run for the top K that has stopped."""


@from_verb("adaptive.rank.rank", "DATA", hidden="adaptive_config btl_config timeout")
def command(
    arguments: Arguments,
    emit: Output,
    *,
    set_: list[str] | None = None,
    labellers: str | None = None,
    instructions: FilePath | None = None,
    host: str = "127.0.0.1",
    port: int = 8484,
    url: str | None = None,
    columns: Literal["short", "all"] = "short",
) -> int:
    """Rank texts adaptively, with any judge.

    Each comparison is chosen by what is known so far. The Bayesian model is fitted again and again; the run stops by
    itself when the ranking is reliable and stable, or at a limit. Every answer is on the disk before the run ends. Run
    the same command again to resume after a limit, a crash or Ctrl-C. New texts in DATA join the run; --without ID
    withdraws one.

    `pairscale audit RUN` recomputes every choice and every stop from the log; `pairscale plan` says beforehand how many
    comparisons it may take.

    With --judge human, people answer on a page: each of --labellers has a link, and pairs come as they free up.

    Args:
        data: A folder of texts, or a table with ids and texts; or a study file.
        run: The run file; the same command resumes it.
        reliability: Stop at this reliability, the squared correlation to expect between the scores and the judge's true
            scale; 0.9 by default. May change in a pause.
        without: Withdraw this text from the run, for good; can be repeated.
        selector: How pairs are chosen: pollitt (for the order), information (for top:K), random, nearest, or
            module:function.
        set_: A field of the configuration, such as cap_frac=0.1; can be repeated.
        fit: How the model is fitted: exact (sampled), or laplace (fast, approximate).
        labellers: Names of the labellers, such as ann,bob, or their number; each gets a link.
        instructions: What labellers read first, in Markdown.
        host: Where the page listens; 127.0.0.1 is reached from this machine alone.
        port: Port of the page; 0 takes a free one.
        url: How people reach the page, such as https://labels.example.org.
        columns: short: rank, ID, name, score with its interval, and your own columns; all: the whole log as well.

    Examples:
        pairscale rank essays/ --run run.db
        pairscale rank essays.csv --judge mine:better --run run.db --concurrency 8
        pairscale rank essays.csv --judge openai:gpt-5.1 --run run.db --max-cost 2
        pairscale rank texts.jsonl --selector information --reliability 0.8
        pairscale rank essays.csv --goal top:10 --run run.db
        pairscale rank essays/ --judge human --labellers ann,bob --run run.db
    """
    run = arguments["run"]
    read_texts(arguments)
    arguments |= _configured(set_)
    judge = make_judge(arguments)
    opening(judge.condition.judge_id, run=run)
    started = datetime.now(UTC)
    with _page_of_people(arguments, labellers, instructions, host, port, url):
        result = ps.rank(**arguments)
    items = result.items
    table = items if columns == "all" else short(items)

    def show() -> None:
        if items.height:
            show_table(items if columns == "all" else on_screen(table), digits=2)
        _show(result.state, run)

    document = {"summary": result.summary, "run": run, "items": items, "refits": result.refits}
    emit(document, table, show)
    if emit.out is not None and not emit.as_json:
        emit({}, None, show)
    say_judged(judge.condition.judge_id, judge=judge)
    return _require_answers(result, started)


@contextmanager
def _page_of_people(
    arguments: Arguments, labellers: str | None, instructions: FilePath | None, *address: Any
) -> Iterator[None]:
    """Serve the page when people are the judge."""
    from pairscale.judges.human import HumanJudge
    from pairscale.judges.orders import unwrapped

    person = unwrapped(arguments["judge"])
    if not isinstance(person, HumanJudge):
        if labellers is not None or instructions is not None:
            raise InputError("--labellers and --instructions belong to --judge human")
        yield
        return
    from pairscale.people import Address, serve_questions
    from pairscale.people.verbs import labeller_names, read_instructions, show_links

    names = labeller_names(labellers) or ["labeller-1"]
    # A question for each of them, and as long as they need for it.
    arguments["concurrency"] = max(arguments["concurrency"], len(names))
    arguments["timeout"] = None
    guide = read_instructions(instructions)
    where = Address(*address)
    run = arguments["run"]
    with serve_questions(person.queue, names, trait=person.trait, address=where, instructions=guide, run=run) as site:
        links = dict(site.links)
        again = "the same command continues, with new links"
        if run is not None:
            links = {"owner": site.owner, **links}
            again = "the same command continues, with the same links"
        say(f"the run asks people; send each their link (Ctrl-C stops; {again}):")
        show_links(links)
        yield


def _require_answers(result: AdaptiveResult, started: datetime) -> int:
    """End with exit code 1 where the judge fails, or gave no valid answer in this call."""
    import polars as pl

    asked = result.logs["step_log"].filter(pl.col("timestamp") >= started, pl.col("status") != "starved")
    if asked.height and "committed" not in asked["status"]:
        reason = asked["invalid_reason"][-1]
        raise JudgeError(f"no question got a valid answer ({asked.height:,} asked); the last reason: {reason}")
    return 1 if result.state.stop_reason in ("judge_failing", "judge_flips") else 0


def _configured(settings: list[str] | None) -> dict[str, dict[str, Any]]:
    """``--set`` fields, each to the configuration that has it."""
    from pairscale.adaptive.config import BTLConfig

    values = dict(read_setting(text, "--set") for text in settings or [])
    of_model = popped(values, [entry["name"] for entry in BTLConfig.describe()])
    return {"adaptive_config": values, "btl_config": of_model}


def short(items: pl.DataFrame) -> pl.DataFrame:
    """The columns that most people want: rank, ID, name, score with its interval, and those of their own table."""
    import polars as pl

    from pairscale.models.bayes.logs import ITEM_LOG
    from pairscale.models.scores import SCORES

    top = []
    if items["top_prob"].null_count() < items.height:
        top.append(pl.col("top_prob").fill_null(0.0).alias("in the top"))
    own = [name for name in items.columns if name not in {*ITEM_LOG, *SCORES, "rank", "withdrawn", "in the top"}]
    names = [name for name in ("name", "class") if name in own]
    return items.select("rank", "ID", *names, *SCORES, *top, *(name for name in own if name not in names))


def on_screen(table: pl.DataFrame) -> pl.DataFrame:
    """The same with whole scores and the interval in one column."""
    import polars as pl

    table = table.with_columns(pl.col("score", "score_lower", "score_upper").round().cast(pl.Int64))
    interval = pl.format("{}-{}", "score_lower", "score_upper")
    return table.with_columns(score_lower=interval).rename({"score_lower": "95 %"}).drop("score_upper")


def _show(state: AdaptiveState, run: str | None) -> None:
    from pairscale.adaptive.messages import STOPS, provisional, stop_in_words, why_stopped

    echo(f"\n{state.engine.committed:,} comparisons of {len(state.ids):,} texts; preset {state.preset}")
    if state.rounds:
        echo(f"  {stop_in_words(state.rounds[-1])}{provisional(state.rounds[-1])}")
    if state.withdrawn:
        echo(f"withdrawn: {', '.join(state.withdrawn)}")
    reason = state.stop_reason or ""
    ending = ENDINGS.get(reason, PAUSED)
    if reason == "btl_converged" and state.engine.config.top is not None:
        ending = TOP_KNOWN
    if reason in STOPS:
        ending = f"stopped: {why_stopped(state)}; {ending}"
    echo(ending)
    if run is not None:
        name = as_argument(run)
        echo(f"run file  {name}  (next: pairscale report {name}; to check it: pairscale audit {name})")
