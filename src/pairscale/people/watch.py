"""The page of a run: read from its run file, which another process may be writing, and never changed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
from fastapi import FastAPI, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy import func, select

from pairscale._version import __version__
from pairscale.adaptive.messages import (
    STOPS,
    adaptive_status,
    how_it_stands,
    named_reliability,
    provisional,
    top_sought,
)
from pairscale.core.notices import is_told
from pairscale.core.tables import Row, Values
from pairscale.judges.base import no_grading
from pairscale.people._guard import Guard
from pairscale.people._pages import STATIC, add_errors, page
from pairscale.reporting.picture import number, run_lines, score_picture
from pairscale.reporting.ranking import items_so_far
from pairscale.reporting.svg import picture_css, svg
from pairscale.runtime import recorded_prices
from pairscale.store.labels import label_counts
from pairscale.store.runfile import open_run
from pairscale.store.schema import attempts, comparisons

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pairscale.store.runfile import RunFile

Tiles: TypeAlias = list[tuple[str, str]]
"""Figures and what they are."""
Charts: TypeAlias = list[tuple[str, Any]]
"""Headings and pictures."""

_RECENT = timedelta(minutes=2)
_LATELY = 1000  # attempts, for what went wrong
_TOP = 20
_SHORTEST_WAIT_S = 2.0
_RETRY_INTERVAL_S = 5
_WAIT_FACTOR = 10  # a refresh that takes a second is repeated after ten


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at one moment, ready to be shown.

    Attributes:
        title: what it is, in a few words.
        banner: that this is no grading, where the embedded baseline or a simulated judge has judged.
        state: whether it is running, and why not.
        is_running: whether answers may still come.
        tiles: figures and what they are.
        charts: headings and pictures.
        top: the best items so far, as rows of ``rank ID score se rank_lower rank_upper``.
        problems: what went wrong lately, most frequent first.
        seen_at: when, UTC.
    """

    title: str
    banner: str
    state: str
    is_running: bool
    tiles: Tiles
    charts: Charts
    top: list[Row]
    problems: list[tuple[str, int]]
    seen_at: str


def create_watch_app(run: str, hosts: Iterable[str] = ()) -> FastAPI:
    """The page of a run as an ASGI application; it only reads.

    Args:
        run: the run file.
        hosts: names that it is served under, besides ``localhost`` and addresses in numbers.
    """
    app = FastAPI(title="pairscale run", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/static/picture.css")
    def style() -> Response:
        return Response(picture_css(), media_type="text/css")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, hosts=tuple(hosts))
    add_errors(app, "Run", lambda error: f"The run cannot be read now: {error}", again_s=_RETRY_INTERVAL_S)

    def look() -> Values:
        began = time.monotonic()
        with open_run(run) as store:
            moment = look_at(store)
        wait_s = max(_SHORTEST_WAIT_S, _WAIT_FACTOR * (time.monotonic() - began))
        return {"moment": moment, "run": run, "wait_ms": round(1000 * wait_s)}

    @app.get("/")
    def whole() -> Response:
        return page("watch.html", look())

    @app.get("/now")
    def part() -> Response:
        return page("_watch.html", look())

    return app


def look_at(store: RunFile, now: datetime | None = None) -> Moment:
    """Read the state of a run, but not all of its rows, so that a long run is refreshed as often as a short one.

    Args:
        store: the run file.
        now: the time; that of the clock without it.
    """
    now = now or datetime.now(UTC)
    with store.snapshot():
        status = adaptive_status(store)
        conditions = store.conditions()
        problems = _problems(store)
        labelled = label_counts(store)
        answered = _answered_since(store, now - _RECENT)
        refits = pl.DataFrame(store.read_log("round_log") if status is not None else [], infer_schema_length=None)
        items: Sequence[Row] = items_so_far(store).to_dicts() if refits.height else ()
        dates = recorded_prices(store)
    per_minute = answered / (_RECENT.total_seconds() / 60)
    spent = conditions["cost"].sum()
    tiles = [(f"{conditions['win'].sum():,}", "decided comparisons")]
    charts: Charts = []
    ended = False
    state = "answers may still come"
    if status is not None:
        if refits.height:
            last = refits.row(-1, named=True)
            tiles += [*_reliability(last, status["preset"]), *_judge(last)]
            charts = _pictures(items, refits)
        ended = bool(status["has_ended"])
        reason = status["stop_reason"]
        state = STOPS.get(reason, how_it_stands(reason)) if reason else f"stage: {status['stage'].replace('_', ' ')}"
        state += f" · preset {status['preset']}"
    tiles.append((f"{per_minute:,.1f}", "answers per minute, lately"))
    if spent:
        tiles.append((f"${spent:,.2f}", f"spent{dates}"))
    if labelled is not None:
        tiles.append((f"{labelled['complete']:,} of {labelled['wanted']:,}", "labels of people"))
    failed = int(conditions.select(pl.sum_horizontal("abstention", "error")).to_series().sum() or 0)
    if failed:
        tiles.append((f"{failed:,}", "without a valid answer"))
    return Moment(
        title=_title(status, conditions),
        banner=no_grading(conditions["judge_id"].unique(maintain_order=True).to_list()),
        state=state,
        is_running=not ended,
        tiles=tiles,
        charts=charts,
        top=list(items[:_TOP]),
        problems=problems,
        seen_at=f"{now:%Y-%m-%d %H:%M:%S} UTC",
    )


def _title(status: Row | None, conditions: pl.DataFrame) -> str:
    judges = conditions["judge_id"].unique(maintain_order=True).to_list()
    who = "no judge yet"
    if judges:
        who = judges[0] if len(judges) == 1 else f"{len(judges)} judges"
    return f"{status['n_items']:,} texts, ranked by {who}" if status is not None else f"Pairs judged by {who}"


def _reliability(last: Row, preset: str) -> Tiles:
    top = top_sought(last)
    if top is not None:
        shown = f"wrong members expected in the top {top:,}, of at most {last['top_wrong_allowed']:g}"
        return [(number(last["top_wrong"], 2), shown)]
    if last["reliability"] is None:
        return []
    name, certainty = named_reliability(last, preset)
    target = f"{name}, of {last['eap_reliability_min']:g}{provisional(last)}"
    if certainty:
        target += f"; {certainty}"
    return [(number(last["reliability"], 3), target)]


def _judge(last: Row) -> Tiles:
    """How the judge answers, by the last refit."""
    tiles: Tiles = []
    if last["first_win_rate"] is not None:
        effect = f" (position effect {last['b_mean']:+.2f})" if is_told(last, "b") else ""
        tiles.append((f"{last['first_win_rate']:.0%}", f"won by the text shown first{effect}"))
    if is_told(last, "epsilon"):
        tiles.append((f"{last['epsilon_mean']:.0%}", "answers by chance (lapses)"))
    if last["n_reversed"]:
        tiles.append((f"{last['n_flips']:,} of {last['n_reversed']:,}", "reversed pairs with the opposite answer"))
    return tiles


def _pictures(items: Sequence[Row], refits: pl.DataFrame) -> Charts:
    charts: Charts = [("Scores so far", svg(score_picture(items)))]
    if refits.height > 1:
        series = {"reliability": refits["reliability"].to_list(), "rank stability": refits["rho_rank"].to_list()}
        target = refits["eap_reliability_min"].to_list()[-1]
        label = "Reliability and rank stability along the run, refit by refit"
        progress = run_lines(refits["total_pairs_done"].to_list(), series, label, target)
        charts.insert(0, ("Progress", svg(progress)))
    return charts


def _answered_since(store: RunFile, when: datetime) -> int:
    query = select(func.count()).where(comparisons.c.received_at > when.isoformat())
    with store.transaction() as connection:
        return int(connection.execute(query).scalar_one())


def _problems(store: RunFile) -> list[tuple[str, int]]:
    """The most frequent reasons of the last attempts that failed."""
    a = attempts.c
    times = func.count()
    newest = select(func.max(a.attempt_id)).scalar_subquery()
    query = select(a.error_code, times).where(a.attempt_id > newest - _LATELY, a.error_code.is_not(None))
    query = query.group_by(a.error_code).order_by(times.desc(), a.error_code).limit(5)
    with store.transaction() as connection:
        return [(str(code), int(count)) for code, count in connection.execute(query)]
