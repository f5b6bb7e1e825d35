"""What an adaptive run shows while it runs: one line that is redrawn on a terminal or in a notebook, else plain lines.

Outside of notebooks all of it goes to standard error. Showing never breaks a run: when standard error goes away, the
view falls silent.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from statistics import linear_regression
from typing import TYPE_CHECKING, Any, Self

from pairscale.adaptive.messages import no_pair, provisional, shown_figure, shown_limit, verdict
from pairscale.core.notebooks import LiveOutput, in_notebook
from pairscale.core.options import ProgressMode, require_int, require_progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

__all__ = ["View", "comparisons_at_target"]

Row = Mapping[str, Any]

_PAUSE_S = 0.25  # between two drawings
_STEPS_PER_LINE = 10  # plain lines are this much rarer than drawings
_SHOWN_EVENTS = 5  # of a kind that get a line each; later ones are counted
_BAR_LENGTH = 20
_ID_LENGTH = 32
_NOTE_LENGTH = 500
_EVENTS = {"invalid": "invalid answers", "starved": "steps without a pair", "set_aside": "times items were set aside"}


class View:
    """The progress of one run: a context manager, used from one thread at a time.

    On a terminal and in a notebook every mode but ``none`` is one line, redrawn in place, with notes above or below it.
    Elsewhere ``refits`` writes a line per refit, ``steps`` one every so many steps, ``all`` both, and ``line`` notes
    alone.

    Args:
        progress: what is shown; see :data:`pairscale.core.options.ProgressMode`.
        n_items: items of the run.
        redraw_every: steps between two drawings, at least; between two plain lines, ten times as many.
        show_events: a line for steps without a pair and for items set aside.
        show_errors: a line for invalid answers. Of every kind the first five get a line; later ones are counted.
        reliability_target: the reliability that the run needs.
        goal: what the run is for, ``order`` or ``top:K``, which needs no reliability.
        n_steps: steps that this call may take.
        max_comparisons: committed comparisons, those of earlier calls included, at which the run ends.
        max_cost: money at which it does.
        console: where to draw; by default standard error.
        clock: seconds that never go back.

    Attributes:
        prices: the dates of the prices behind the costs.
    """

    def __init__(
        self,
        progress: ProgressMode,
        *,
        n_items: int,
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
        self._mode = require_progress(progress)
        self._redraw_every = require_int(redraw_every, "progress_redraw_every", least=1)
        self._n_items = n_items
        self._target = reliability_target
        self._goal = goal
        self._show_events = show_events
        self._show_errors = show_errors
        self._n_steps = n_steps
        self._max_comparisons = max_comparisons
        self._max_cost = max_cost
        self._console = console
        self._clock = clock
        self.prices = ""
        self._silent = self._mode == "none"
        self._live: Live | None = None
        self._output: LiveOutput | None = None
        if not self._silent:
            self._live = self._make_live()
            if self._live is None and console is None and in_notebook():
                self._output = LiveOutput(clock)
        self._notes: list[str] = []  # below the line of a notebook
        self._began = clock()
        self._first_committed: int | None = None
        self._next_drawing = -math.inf
        self._steps = 0
        self._committed = 0
        self._invalid = 0
        self._cost = 0.0
        self._refit: Row = {}
        self._is_fitting = False
        self._grown: deque[tuple[int, float]] = deque(maxlen=5)  # comparisons and reliability of the last refits
        self._told: Counter[str] = Counter()
        self._untold: Counter[str] = Counter()

    def _make_live(self) -> Live | None:
        is_terminal = sys.stderr.isatty() if self._console is None else self._console.is_terminal
        if not is_terminal:
            return None
        from rich.console import Console
        from rich.live import Live

        console = self._console or Console(stderr=True)
        if console.is_dumb_terminal:  # which cannot move its cursor
            return None
        # Standard output that goes into a file stays there.
        return Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty(), transient=True)

    def __enter__(self) -> Self:
        self._began = self._clock()
        if self._live is not None:
            self._guarded(self._live.start)
        self._draw()
        return self

    def __exit__(self, *_error: object) -> None:
        more = self._more()
        if more:
            self._say(more)
        self._next_drawing = -math.inf
        self._draw()
        if self._live is not None:
            self._guarded(self._live.stop)
        self._silent = True

    def step(self, row: Row, *, committed: int, invalid: int, cost: float) -> None:
        """A row of the step log was recorded, and the run is here now. Costs next to nothing when nothing is drawn."""
        if self._silent:
            return
        if self._first_committed is None:  # what a resumed run had done before is no part of the pace
            self._first_committed = committed - (row["status"] == "committed")
        self._committed = committed
        self._invalid = invalid
        self._cost = cost
        self._steps += 1
        if row["status"] != "committed":
            self._tell_of(row)
        if self._steps % self._redraw_every == 0:
            self._draw()
        is_line_due = self._steps % (self._redraw_every * _STEPS_PER_LINE) == 0
        if self._is_plain and self._mode in ("all", "steps") and is_line_due:
            self._say(self._step_line())

    def refit_started(self) -> None:
        """A refit has begun."""
        self._is_fitting = True
        self._draw()

    def refit(self, row: Row) -> None:
        """A refit is done: its row of the round log."""
        self._refit = row
        self._is_fitting = False
        self._n_items = row.get("n_items") or self._n_items
        reliability = row.get("reliability")
        # Draws that nothing may be decided on do not say either how fast reliability grows.
        if row.get("diagnostics_pass") and reliability is not None and 0 <= reliability < 1:
            self._grown.append((row["total_pairs_done"], reliability))
        if self._is_plain and self._mode in ("all", "refits"):
            self._say(self._refit_line(row))
        self._draw()

    def note(self, text: str) -> None:
        """Show one line of text."""
        self._say(_one_line(text, _NOTE_LENGTH))

    @property
    def _is_plain(self) -> bool:
        """Whether lines are written one below the other, rather than one redrawn."""
        return self._live is None and self._output is None

    def _tell_of(self, row: Row) -> None:
        """A line for a step that brought no comparison."""
        if row["status"] == "invalid" and self._show_errors and self._is_new("invalid"):
            kind = _one_line(row.get("invalid_kind"), _ID_LENGTH)
            first = _one_line(row.get("A_id"), _ID_LENGTH)
            second = _one_line(row.get("B_id"), _ID_LENGTH)
            reason = _one_line(row.get("invalid_reason"), _NOTE_LENGTH)
            self._say(f"step {row['step_id']}: no valid answer ({kind}) for {first} and {second}: {reason}")
        if not self._show_events:
            return
        # That no long link is open any more is expected once the order is known.
        is_starved = row["status"] == "starved" and row.get("long_gate_reason") != "posterior_extreme"
        if is_starved and self._is_new("starved"):
            self._say(f"step {row['step_id']}: {_one_line(no_pair(row['starvation_reason']), _NOTE_LENGTH)}")
        if row.get("set_aside") and self._is_new("set_aside"):
            self._say(f"step {row['step_id']}: no longer asked about: {_one_line(row['set_aside'], _NOTE_LENGTH)}")

    def _is_new(self, kind: str) -> bool:
        """Whether an event gets a line; if not, it is counted."""
        if self._told[kind] < _SHOWN_EVENTS:
            self._told[kind] += 1
            return True
        self._untold[kind] += 1
        return False

    def _more(self) -> str:
        """How many events had no line since this was last asked."""
        more = _joined(*(f"{count:,} more {_EVENTS[kind]}" for kind, count in self._untold.items()))
        self._untold.clear()
        return more

    def _say(self, line: str) -> None:
        if self._silent:
            return
        if self._live is not None:
            self._guarded(self._live.console.out, line)  # which knows no markup
        elif self._output is not None:
            self._notes.append(line)
            self._draw()
        else:
            stream = sys.stderr if self._console is None else self._console.file
            self._guarded(lambda: (stream.write(f"{line}\n"), stream.flush()))

    def _guarded(self, show: Callable[..., object], *args: Any) -> None:
        """Show something, or fall silent when there is nowhere to show it any more."""
        try:
            show(*args)
        except (OSError, ValueError):
            self._silent = True

    def _draw(self) -> None:
        now = self._clock()
        if self._is_plain or self._silent or now < self._next_drawing:
            return
        self._next_drawing = now + _PAUSE_S
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(self._line(now), no_wrap=True, overflow="ellipsis"))
            self._guarded(self._live.refresh)
        elif self._output is not None:
            self._output.show([self._line(now), *self._notes])

    def _line(self, now: float) -> str:
        """How far the run is."""
        facts = (
            f"{_of(self._committed, self._max_comparisons)} comparisons",
            self._aim(),
            self._way_to_target(now),
            "fitting" if self._is_fitting else "",
            f"{self._invalid:,} invalid" if self._invalid else "",
            self._spent(),
            _duration(now - self._began),
        )
        return "  ".join(fact for fact in facts if fact)

    def _aim(self) -> str:
        """How near the run is to what it is for."""
        if self._goal != "order":
            return self._wrong_members()
        reliability = self._refit.get("reliability")
        bar = _bar(reliability, self._target)
        known = reliability is not None and not math.isnan(reliability)
        limit = f" of {shown_limit(self._target)}" if known else ""
        return f"reliability {bar} {shown_figure(reliability, self._target)}{limit}{provisional(self._refit, '')}"

    def _wrong_members(self) -> str:
        wrong = self._refit.get("top_wrong")
        allowed = self._refit.get("top_wrong_allowed")
        limit = "" if allowed is None else f" (at most {shown_limit(allowed)})"
        return f"{self._goal}, wrong members expected {shown_figure(wrong, allowed, at_most=True)}{limit}"

    def _refit_line(self, row: Row) -> str:
        figures = self._wrong_members()
        if self._goal == "order":
            reliability = shown_figure(row.get("reliability"), self._target)
            stability = shown_figure(row.get("rho_rank"), row.get("rank_spearman_min"))
            figures = f"reliability {reliability}{provisional(row, '')}, rank stability {stability}"
        which = "closing refit" if row.get("is_closing") else "refit"
        decision = _one_line(verdict(row), _NOTE_LENGTH) if verdict(row) else ""
        facts = "; ".join(part for part in (figures, decision, self._more()) if part)
        return f"{which} {row['refit_id']}: {row['total_pairs_done']:,} comparisons, {facts}"

    def _step_line(self) -> str:
        done = f"step {_of(self._steps, self._n_steps)}: {_of(self._committed, self._max_comparisons)} comparisons"
        per_minute = 60 * self._pace(self._clock())
        rate = f"{per_minute:,.{0 if per_minute >= 10 else 1}f} a minute" if per_minute else ""
        invalid = f"{self._invalid:,} invalid" if self._invalid else ""
        more = self._more() if self._mode == "steps" else ""  # else the next refit says it
        return _joined(done, rate, invalid, self._spent(), more)

    def _spent(self) -> str:
        return _of(self._cost, self._max_cost, "${:,.4f}") + self.prices if self._cost else ""

    def _pace(self, now: float) -> float:
        """Comparisons per second of this call."""
        if self._first_committed is None or now <= self._began:
            return 0.0
        return (self._committed - self._first_committed) / (now - self._began)

    def _way_to_target(self, now: float) -> str:
        """About how much is missing to the reliability that the run needs; empty when that cannot be known."""
        if self._goal != "order":
            return ""
        needed = comparisons_at_target(self._grown, self._target)
        if needed is None or needed - self._committed < 1:
            return ""
        missing = needed - self._committed
        pace = self._pace(now)
        time_left = f"about {_duration(missing / pace)}" if pace else ""
        return _joined(f"about {float(f'{missing:.2g}'):,.0f} more", time_left)


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


def _bar(reliability: float | None, target: float) -> str:
    """Reliability from 0 to 1, with a mark at the target."""
    is_share = reliability is not None and 0 <= reliability <= 1  # NaN is not
    full = int(_BAR_LENGTH * reliability) if is_share else 0  # type: ignore[operator]
    bar = "█" * full + "░" * (_BAR_LENGTH - full)
    mark = min(int(_BAR_LENGTH * target), _BAR_LENGTH - 1)
    return f"{bar[:mark]}┃{bar[mark + 1 :]}"


def _of(done: float, limit: float | None, form: str = "{:,}") -> str:
    return form.format(done) if limit is None else f"{form.format(done)} of {form.format(limit)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _one_line(text: Any, most: int) -> str:
    """A text of others on one line, cut, and without the characters that would command the terminal."""
    words = " ".join(str("" if text is None else text)[: 10 * most].split())
    plain = "".join(letter if letter.isprintable() else "�" for letter in words)
    return (plain if len(plain) <= most else f"{plain[: most - 1]}…") or "�"
