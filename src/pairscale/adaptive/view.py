"""What an adaptive run shows while it goes: a panel on a terminal, one updated output in a notebook, else plain lines.

Outside of notebooks all of it goes to standard error. Showing never breaks a run: when standard error goes away, the
view falls silent.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from statistics import linear_regression
from typing import TYPE_CHECKING, Any, Self

from pairscale.adaptive.messages import (
    diagnostics,
    gate_in_words,
    gates_left,
    judge_health,
    no_pair,
    provisional,
    shown_figure,
    shown_limit,
    stop_in_words,
    verdict,
)
from pairscale.core.notebooks import PAUSE, LiveOutput, in_notebook
from pairscale.core.options import ProgressMode, require_int, require_progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

__all__ = ["View", "comparisons_at_target"]

Row = Mapping[str, Any]
Item = tuple[str, float, float]  # id, theta_mean, theta_sd
Mark = tuple[float, float, float]  # seconds, steps, comparisons

_PAUSE = 0.1  # seconds between two drawings
_RARER = 10  # so much rarer than drawings are plain lines
_IN_FULL = 5  # events of a kind that get a line each; later ones are counted
_WIDTH, _BAR = 80, 20  # characters of the panel, and of its bar of reliability
_ID, _REASON, _NOTE = 32, 160, 500  # characters shown of each
_MORE = {"invalid": "invalid answers", "starved": "steps without a pair", "set_aside": "times items were set aside"}


class View:
    """The panel or the lines of one run: a context manager, used from one thread at a time.

    On a terminal, ``all`` shows everything, ``steps`` leaves out what the model says, and ``refits`` leaves out the
    single steps and is drawn at refits only. The last panel stays on the screen. ``line`` is one line that is redrawn
    and disappears at the end; elsewhere it shows notes alone. ``none`` is silent, also for notes. In a notebook every
    mode but ``none`` is one output of the cell that is updated in place: a line on how far the run is, and its notes.

    Args:
        progress: what is shown; see :data:`pairscale.core.options.ProgressMode`.
        n_items: items of the run.
        preset: The preset of the run.
        redraw_every: steps between two drawings, at least; between two plain lines, ten times as many.
        show_events: a line for steps without a pair, for items set aside, and when the order becomes known.
        show_errors: a line for invalid answers. Of every kind the first five get a line; later ones are counted.
        reliability_target: the EAP reliability that the run needs.
        goal: what the run is for, ``order`` or ``top:K``, which needs no reliability.
        n_steps: steps that this call may take.
        max_comparisons: committed comparisons, those of earlier calls included, at which the run ends.
        max_cost: money at which it does.
        console: where to draw; by default standard error.
        clock: seconds that never go back.

    Attributes:
        prices: of which dates the prices behind the costs are, in words.
    """

    def __init__(
        self,
        progress: ProgressMode,
        *,
        n_items: int,
        preset: str,
        redraw_every: int = 10,
        show_events: bool = True,
        show_errors: bool = True,
        reliability_target: float,
        goal: str = "order",
        n_steps: int | None,
        max_comparisons: int | None,
        max_cost: float | None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        mode = require_progress(progress)
        redraw_every = require_int(redraw_every, "progress_redraw_every", least=1)
        self._mode, self._n_items, self._target = mode, n_items, reliability_target
        self._goal = goal
        self._preset = preset
        self.prices = ""
        self._show_events, self._show_errors = show_events and mode != "line", show_errors
        self._n_steps, self._max_comparisons, self._max_cost = n_steps, max_comparisons, max_cost
        self._console, self._clock, self._silent = console, clock, mode == "none"
        self._live = None if self._silent else self._make_live()
        notebook = not self._silent and self._live is None and console is None and in_notebook()
        self._output = LiveOutput(clock) if notebook else None
        self._notes: list[str] = []  # those of the notebook's output
        plain = not self._is_drawn
        rare = mode == "refits" or (mode == "line" and plain)
        self._every = math.inf if rare else redraw_every * (_RARER if plain else 1)
        self._began, self._next_drawing, self._since, self._cost, self._stage = clock(), -math.inf, 0.0, 0.0, ""
        self._steps = self._committed = self._invalid = self._in_flight = self._round = 0
        self._marks: deque[Mark] = deque(maxlen=61)  # a second apart or more
        self._refit: Row = {}
        self._judge: Row = {}
        self._decided: Row | None = None  # the last refit that was no closing one
        self._only_gate: str | None = None
        self._fitting: int | None = None
        self._top: Sequence[Item] = ()
        self._grown: deque[tuple[int, float]] = deque(maxlen=5)  # comparisons and reliability of the last refits
        self._told, self._untold = Counter[str](), Counter[str]()

    def _make_live(self) -> Live | None:
        if not (sys.stderr.isatty() if self._console is None else self._console.is_terminal):
            return None
        from rich.console import Console
        from rich.live import Live

        console = self._console or Console(stderr=True)
        # A dumb terminal cannot move its cursor. And standard output that goes into a file stays there.
        gone = self._mode == "line"  # when the run ends
        live = Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty(), transient=gone)
        return None if console.is_dumb_terminal else live

    @property
    def _is_drawn(self) -> bool:
        """Whether something is redrawn, rather than a line written below the other."""
        return self._live is not None or self._output is not None

    def __enter__(self) -> Self:
        self._began = self._clock()
        if self._live is not None:
            self._guarded(self._live.start)
        self._draw()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is None and (more := self._more()):
            self._say(more)
        self._next_drawing = -math.inf
        self._draw()
        if self._live is not None:
            self._guarded(self._live.stop)
        self._silent = True

    def step(
        self,
        row: Row,
        *,
        committed: int,
        invalid: int,
        in_flight: int,
        cost: float,
        stage: str,
        round_id: int,
        judge: Row | None = None,
    ) -> None:
        """A row of the step log was recorded, and the run is here now. Costs next to nothing when nothing is drawn."""
        if self._silent:
            return
        if not self._marks:  # what a resumed run had done before is no part of the pace
            self._marks.append((self._began, 0, committed - (row["status"] == "committed")))
        self._committed, self._invalid, self._in_flight, self._cost = committed, invalid, in_flight, cost
        self._stage, self._round, self._judge = stage, round_id, judge or {}
        self._steps += 1
        self._since += 1
        if row["status"] != "committed":
            self._tell_of(row)
        if self._since >= self._every:
            if self._is_drawn:
                self._draw()
            else:
                self._since = 0
                self._say(self._step_line())

    def refit_started(self, n_comparisons: int) -> None:
        """A refit of so many comparisons has begun."""
        self._fitting = n_comparisons
        self._draw_soon()

    def refit(self, row: Row, top: Sequence[Item]) -> None:
        """A refit is done: its row of the round log, and the best items (id, theta_mean, theta_sd), best first."""
        newly_known = row.get("global_identified") and not self._refit.get("global_identified")
        self._refit, self._fitting, self._top = row, None, top[:5]
        self._n_items = row.get("n_items") or self._n_items
        reliability, done = row.get("reliability"), row["total_pairs_done"]
        # Draws that nothing may be decided on do not say either how fast reliability grows.
        if row.get("diagnostics_pass") and reliability is not None and 0 <= reliability < 1:
            self._grown.append((done, reliability))
        if not self._is_drawn and self._mode not in ("steps", "line"):
            figures = self._shown_wrong() or _joined(
                f"reliability {shown_figure(reliability, self._target)}{provisional(row, '')}",
                f"rank stability {_stability(row)}",
            )
            line = "; ".join(part for part in (figures, _verdict(row), self._more()) if part)
            which = f"{'closing ' * bool(row.get('is_closing'))}refit {row['refit_id']}"
            self._say(f"{which}: {done:,} comparisons, {line}")
        if newly_known and self._show_events:
            self._say(f"the global order counts as known from refit {row['refit_id']} on")
        if self._show_events and self._mode != "steps" and not row.get("is_closing"):
            self._tell_gates(row)
        self._draw_soon()

    def _tell_gates(self, row: Row) -> None:
        """A line when a single gate of the stop rule is left, once per change; and one on what a stop rests on."""
        before, self._decided = self._decided, row
        left = gates_left(row)
        only = left[0] if left is not None and len(left) == 1 else None
        if only is not None and only != self._only_gate:
            self._say(f"one gate of the stop rule is left: {gate_in_words(row, only)}")
        self._only_gate = only
        if row.get("stop_decision") and left == []:
            self._say(f"the stop rule holds: {stop_in_words(row, before)}")

    def note(self, text: str) -> None:
        """Show one line, above the panel when there is one."""
        self._say(_shown(text, _NOTE))

    def _tell_of(self, row: Row) -> None:
        """A line for a step that brought no comparison."""
        if row["status"] == "invalid" and self._show_errors and self._is_new("invalid"):
            kind, first, second = (_shown(row.get(name), _ID) for name in ("invalid_kind", "A_id", "B_id"))
            reason = _shown(row.get("invalid_reason"), _REASON)
            self._say(f"step {row['step_id']}: no valid answer ({kind}) for {first} and {second}: {reason}")
        # That no long link is open any more is expected once the order is known.
        is_starved = row["status"] == "starved" and row.get("long_gate_reason") != "posterior_extreme"
        if is_starved and self._show_events and self._is_new("starved"):
            self._say(f"step {row['step_id']}: {_shown(no_pair(row['starvation_reason']), _REASON)}")
        if row.get("set_aside") and self._show_events and self._is_new("set_aside"):
            self._say(f"step {row['step_id']}: no longer asked about: {_shown(row['set_aside'], _REASON)}")

    def _is_new(self, kind: str) -> bool:
        """Whether an event gets a line; if not, it is counted."""
        counted = self._told if self._told[kind] < _IN_FULL else self._untold
        counted[kind] += 1
        return counted is self._told

    def _more(self) -> str:
        """How many events had no line since this was last said."""
        more = _joined(*(f"{count:,} more {_MORE[kind]}" for kind, count in self._untold.items()))
        self._untold.clear()
        return more

    def _say(self, line: str) -> None:
        if self._live is not None and not self._silent:
            self._guarded(self._live.console.out, line)  # which knows no markup
        elif self._output is not None and not self._silent:
            self._notes.append(line)
            self._draw_soon()
        elif not self._silent:
            stream = sys.stderr if self._console is None else self._console.file
            self._guarded(lambda: (stream.write(f"{line}\n"), stream.flush()))

    def _guarded(self, show: Callable[..., object], *args: Any) -> None:
        """Show something, or fall silent when there is nowhere to show it any more."""
        try:
            show(*args)
        except (OSError, ValueError):
            self._silent = True
            with suppress(OSError, ValueError):
                if self._live is not None:
                    self._live.stop()

    def _draw_soon(self) -> None:
        """Draw now if the last drawing is long enough ago, else at the first step for which it is."""
        self._since = math.inf if self._is_drawn else self._since
        self._draw()

    def _draw(self) -> None:
        if not self._is_drawn or self._silent or (now := self._clock()) < self._next_drawing:
            return
        self._since, self._next_drawing = 0, now + (_PAUSE if self._output is None else PAUSE)
        if self._live is not None:
            self._live.update(self._line() if self._mode == "line" else self._panel(now))
            self._guarded(self._live.refresh)
        elif self._output is not None:
            self._output.show([self._notebook_line(now), *self._notes])

    def _panel(self, now: float) -> RenderableType:
        top = self._top if self._mode != "steps" else ()
        return _panel(f"adaptive ranking of {self._n_items:,} items, preset {self._preset}", self._facts(now), top)

    def _line(self) -> RenderableType:
        from rich.text import Text

        cost = f"  {_of(self._cost, self._max_cost, '${:,.4f}')}" if self._cost else ""
        return Text(f"{self._done():<18}{self._shown_reliability()}{cost}", no_wrap=True, overflow="ellipsis")

    def _notebook_line(self, now: float) -> str:
        """How far the run is, in one line of plain text."""
        facts = (
            f"ranking {self._n_items:,} items: {self._done()}",
            self._shown_reliability(),
            f"{self._invalid:,} invalid" if self._invalid else "",
            self._spent() if self._cost else "",
            _duration(now - self._began),
        )
        return "  ".join(fact for fact in facts if fact)

    def _done(self) -> str:
        return f"{_of(self._committed, self._max_comparisons)} comparisons"

    def _shown_wrong(self) -> str:
        """How many members of the top K are expected to be wrong; empty when the goal is the whole order."""
        if self._goal == "order":
            return ""
        found, most = self._refit.get("top_wrong"), self._refit.get("top_wrong_allowed")
        limit = "" if most is None else f" (at most {shown_limit(most)})"
        return f"{self._goal}, wrong members expected {shown_figure(found, most, at_most=True)}{limit}"

    def _shown_reliability(self) -> str:
        if wrong := self._shown_wrong():
            return wrong
        return f"reliability {self._reliability_bar()}"

    def _reliability_bar(self) -> str:
        reliability = self._refit.get("reliability")
        figure = _of_target(reliability, self._target)
        return f"{_bar(reliability, self._target)} {figure}{provisional(self._refit, '')}"

    def _pace(self, now: float) -> Mark:
        """What was done lately, and in how many seconds."""
        here = (now, self._steps, self._committed)
        first = self._marks[0] if self._marks else here
        if self._marks and now - self._marks[-1][0] >= 1:
            self._marks.append(here)
        return here[0] - first[0], here[1] - first[1], here[2] - first[2]

    def _step_line(self) -> str:
        done = f"step {_of(self._steps, self._n_steps)}: {_of(self._committed, self._max_comparisons)} comparisons"
        invalid = f"{self._invalid:,} invalid" if self._invalid else ""
        cost = self._spent() if self._cost else ""
        more = self._more() if self._mode == "steps" else ""  # else the next refit says it
        return _joined(done, _rate(self._pace(self._clock())), invalid, cost, _where(self._stage, self._round), more)

    def _spent(self) -> str:
        return _of(self._cost, self._max_cost, "${:,.4f}") + self.prices

    def _time_to_limit(self, pace: Mark) -> str:
        """About how long it is to the first of the limits at this pace; empty when that cannot be said."""
        limits = (self._n_steps, self._steps, pace[1]), (self._max_comparisons, self._committed, pace[2])
        times = [max(limit - now, 0) * pace[0] / done for limit, now, done in limits if limit is not None and done > 0]
        return f"about {_duration(min(times))}" if times and min(times) > 0 else ""

    def _way_to_target(self, pace: Mark) -> str:
        """About how much is missing to the reliability that the run needs; empty when that cannot be said."""
        needed = comparisons_at_target(self._grown, self._target)
        if needed is None:
            return ""
        missing = needed - self._committed
        time_left = f"about {_duration(missing * pace[0] / pace[2])}" if pace[2] > 0 else ""
        more = f"about {float(f'{missing:.2g}'):,.0f} more comparisons"
        return _joined(more, time_left) if missing >= 1 else "about at the next refit"

    def _facts(self, now: float) -> dict[str, str]:
        """The lines of the panel by their names; those without a text are left out."""
        steps, model, is_order = self._mode != "refits", self._mode != "steps", self._goal == "order"
        row, pace = self._refit, self._pace(now)
        running = f"refit of {self._fitting:,} comparisons is running" if self._fitting is not None else ""
        facts = {
            "stage": steps and (_where(self._stage, self._round) if self._steps else "starting"),
            "steps": steps and self._n_steps is not None and _of(self._steps, self._n_steps),
            "comparisons": _joined(_of(self._committed, self._max_comparisons), _rate(pace)),
            "in flight": steps and f"{self._in_flight:,}",
            "invalid": f"{self._invalid:,}",
            "judge": ", ".join(judge_health({**row, **self._judge})) if self._judge or row else "",
            "goal": model and self._shown_wrong(),
            "reliability": model and is_order and self._reliability_bar(),
            "to the target": model and is_order and self._way_to_target(pace),
            "rank stability": model and is_order and _stability(row),
            "global order": model and ("known" if row.get("global_identified") else "not known yet"),
            "model": model and (running or (diagnostics(row) if row else "no refit yet")),
            "stop rule": model and _verdict(row),
            "cost": self._spent(),
            "elapsed": _duration(now - self._began),
            "to the limit": self._time_to_limit(pace),
        }
        return {name: fact for name, fact in facts.items() if fact}


def comparisons_at_target(grown: Sequence[tuple[int, float]], target: float) -> float | None:
    """About how many comparisons in all the target takes, by the comparisons and reliability of refits so far.

    Reliability over one less reliability is a ratio of variances and grows about linearly with the comparisons. The
    line has the least-squares slope and goes through the last refit. None when the target is reached, when fewer than
    two refits are below it, or when reliability does not grow.
    """
    if len({n for n, reliability in grown if reliability < target}) < 2 or not grown[-1][1] < target < 1:
        return None
    odds = [reliability / (1 - reliability) for _, reliability in grown]
    slope = linear_regression([n for n, _ in grown], odds).slope
    needed = grown[-1][0] + (target / (1 - target) - odds[-1]) / slope if slope > 0 else math.inf
    return needed if needed < 1e9 else None


def _panel(title: str, facts: Mapping[str, str], top: Sequence[Item]) -> RenderableType:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim", min_width=14)
    best = [f"{mean:+.2f} ± {sd:.2f}  {_shown(name, _ID)}" for name, mean, sd in top]
    for name, fact in [*facts.items(), *zip(["best (± 1 sd)", *[""] * len(best)], best, strict=False)]:
        # A Text knows no markup. Only the judge, and what the stop rule misses, may take a second line.
        grid.add_row(name, Text(fact, no_wrap=name not in {"stop rule", "judge"}, overflow="ellipsis"))
    return Panel(grid, title=Text(title), title_align="left", width=_WIDTH)  # or that of a narrower terminal


def _bar(reliability: float | None, target: float) -> str:
    """Reliability from 0 to 1, with a mark at the target."""
    full = int(_BAR * reliability) if reliability is not None and 0 <= reliability <= 1 else 0  # NaN is not
    bar = "█" * full + "░" * (_BAR - full)
    mark = min(int(_BAR * target), _BAR - 1)
    return f"{bar[:mark]}┃{bar[mark + 1 :]}"


def _verdict(row: Row) -> str:
    return _shown(said, _NOTE) if (said := verdict(row)) else ""


def _of_target(reliability: float | None, target: float) -> str:
    known = reliability is not None and not math.isnan(reliability)
    return shown_figure(reliability, target) + (f" of {shown_limit(target)}" if known else "")


def _stability(row: Row) -> str:
    return shown_figure(row.get("rho_rank"), row.get("rank_spearman_min"))


def _where(stage: str, round_id: int) -> str:
    return _joined(_shown(stage, _ID).replace("_", " "), f"round {round_id}" if round_id else "")


def _rate(pace: Mark) -> str:
    a_minute = 60 * pace[2] / pace[0] if pace[0] > 0 else 0.0
    return f"{a_minute:,.{0 if a_minute >= 10 else 1}f} a minute" if a_minute else ""


def _of(done: float, limit: float | None, form: str = "{:,}") -> str:
    return form.format(done) if limit is None else f"{form.format(done)} of {form.format(limit)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _shown(text: Any, most: int) -> str:
    """A text of others on one line, cut, and without the characters that would command the terminal."""
    words = " ".join(str("" if text is None else text)[: 10 * most].split())
    plain = "".join(letter if letter.isprintable() else "�" for letter in words)
    return (plain if len(plain) <= most else f"{plain[: most - 1]}…") or "�"
