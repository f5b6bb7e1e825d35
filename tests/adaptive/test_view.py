"""What an adaptive run shows: one line on a terminal and in a notebook, plain lines elsewhere, hostile ids."""

from __future__ import annotations

import errno
import io
import re
from types import SimpleNamespace
from typing import Any

import pytest

from pairscale.adaptive.gates import stop_gates
from pairscale.adaptive.live import RunLimits, View
from pairscale.core.errors import InputError

FIGURES = {
    "divergences": 0, "divergences_max_allowed": 0, "max_rhat": 1.0, "max_rhat_allowed": 1.01, "min_ess_bulk": 900.0,
    "ess_bulk_required": 400.0, "eap_reliability_min": 0.9, "lag_eligible": True, "rho_theta": 0.99,
    "theta_corr_min": 0.95, "delta_sd_theta": 0.02, "theta_sd_rel_change_max": 0.1, "rho_rank": 0.971,
    "rank_spearman_min": 0.95, "global_identified": False, "is_closing": False, "top_wrong": None, "goal": "order",
}  # fmt: skip
"""A refit at which every gate passes but that of reliability."""

HOSTILE = "[bold red]x[/]\x1b[2J\x1b]0;owned\x07\r\nline\u202etwo\x9b31m :boom: [link=http://e.org]" + "y" * 10_000


class Screen(io.StringIO):
    """A standard error that may be a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Run:
    """A run that continues by steps, and what it has shown."""

    def __init__(self, mode: Any = "all", *, terminal: bool = False, file: Any = None, **options: Any) -> None:
        self.now = 1000.0
        self.file = file or Screen(terminal=terminal)
        self.patch = pytest.MonkeyPatch()
        self.state: Any = SimpleNamespace(engine=SimpleNamespace(committed=0), rounds=[], invalid=0, cost=0.0)
        limits = RunLimits(None, options.pop("max_comparisons", None), options.pop("max_cost", None))
        options = {"clock": lambda: self.now} | options
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stderr", self.file)
            self.view = View(mode, self.state, limits, **options)
        self.steps = 0

    def __enter__(self) -> Run:
        self.patch.setattr("sys.stderr", self.file)
        self.patch.setenv("COLUMNS", "900")
        self.view.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.view.__exit__(*error)
        self.patch.undo()

    def go(self, n: int = 1, *, seconds: float = 0.0, cost: float = 0.0, **row: Any) -> None:
        for _ in range(n):
            self.now += seconds
            self.steps += 1
            self.state.cost = cost
            row = {"status": "committed", **row, "step_id": self.steps}
            self.state.engine.committed += row["status"] == "committed"
            self.state.invalid += row["status"] == "invalid"
            self.view.step(row)

    def fail(self, n: int = 1, **row: Any) -> None:
        fields = {"A_id": "ann", "B_id": "bob", "invalid_kind": "error", "invalid_reason": "too slow"}
        self.go(n, status="invalid", **{**fields, **row})

    def refit(self, n: int, reliability: float | None, **row: Any) -> None:
        number = len(self.state.rounds) + 1
        figures = FIGURES | {"refit_id": number, "total_pairs_done": n, "reliability": reliability} | row
        self.state.rounds.append({**figures, **stop_gates(figures), **row})
        self.view.refit(self.state.rounds[-1])

    @property
    def drawn(self) -> list[str]:
        """The lines as they were drawn, one after the other."""
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.file.getvalue())
        return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


@pytest.mark.parametrize("mode", ["all", "line", True])
def test_plain_lines(mode: Any) -> None:
    run = Run(mode, redraw_every=2, max_comparisons=2000, max_cost=2.0)
    with run:
        run.go(20, seconds=1.5)
        run.refit(20, 0.5)
        run.fail()
        run.go(19, seconds=1.5, cost=0.25)
        run.refit(39, 0.8999, max_rhat=1.02, rho_rank=0.9496)
        run.refit(50, 0.92, stop_decision=True, stop_reason="btl_converged")
        run.refit(60, 0.93, stop_decision=True, stop_reason="max_comparisons", is_closing=True)
        run.view.note("the judge asks for patience")
    late = "waiting for: diagnostics, reliability, rank stability"
    limit = "limit reached (max_comparisons): raise it to continue"
    spent = "1 invalid, $0.2500 of $2.0000, 0:00:58"
    assert run.drawn == [
        "20 of 2,000 comparisons, 0:00:30",
        "refit 1: 20 comparisons, reliability 0.50 of 0.90; waiting for: reliability",
        "step 21: no valid answer (error) for ann and bob: too slow",
        f"39 of 2,000 comparisons, reliability 0.50 of 0.90, {spent}",
        f"refit 2: 39 comparisons, reliability 0.8999 of 0.90 (provisional); {late}",
        "refit 3: 50 comparisons, reliability 0.92 of 0.90; the run stops: the scores are reliable and stable",
        f"closing refit 4: 60 comparisons, reliability 0.93 of 0.90; {limit}",
        "the judge asks for patience",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_none_is_silent(terminal: bool) -> None:
    run = Run("none", terminal=terminal, redraw_every=1)
    with run:
        run.go(100, seconds=1)
        run.fail(10)
        run.view.refit_started()
        run.refit(100, 0.5)
        run.view.note("a note")
    assert run.file.getvalue() == ""


class Broken(Screen):
    """A standard error that goes away."""

    gone = False

    def write(self, text: str) -> int:
        if self.gone:
            raise OSError(errno.EIO, "the terminal is gone")
        return super().write(text)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_broken_standard_error_breaks_no_run(terminal: bool) -> None:
    file = Broken(terminal=terminal)
    with Run(terminal=terminal, file=file, redraw_every=1) as run:
        run.view.note("there")
        file.gone = True
        run.go(30, seconds=1)
        run.view.note("gone")
    assert "there" in file.getvalue()
    assert "gone" not in file.getvalue()


def test_impossible_options(message_snapshot) -> None:
    with pytest.raises(InputError) as refused:
        Run("bar")
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        Run("all", redraw_every=0)
    message_snapshot(refused)


class Output:
    """What a notebook shows: the lines of one output."""

    def __init__(self, _clock: object) -> None:
        self.shown: list[list[str]] = []

    def show(self, lines: list[str]) -> None:
        self.shown.append(list(lines))


def test_a_notebook_has_one_output_with_its_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[Output] = []
    monkeypatch.setattr("pairscale.adaptive.live.in_notebook", lambda: True)
    monkeypatch.setattr(
        "pairscale.adaptive.live.LiveOutput", lambda clock: outputs.append(Output(clock)) or outputs[-1]
    )
    with Run() as run:
        run.fail(7)
        run.go(200, seconds=0.05, cost=0.5)
        run.refit(200, 0.5)
        run.view.note("a <note>")
    assert run.file.getvalue() == ""
    (output,) = outputs
    last = output.shown[-1]
    assert last[0] == "200 comparisons, reliability 0.50 of 0.90, 7 invalid, $0.5000, 0:00:10"
    assert sum("no valid answer" in line for line in last) == 5
    assert "a <note>" in last
    assert len(output.shown) < 60  # 10 seconds of updates


def test_one_line_that_is_redrawn_and_disappears() -> None:
    with Run(terminal=True, max_cost=2.0) as run:
        run.go(10, seconds=1, cost=0.5)
        run.view.refit_started()
        run.refit(10, 0.5)
        run.fail()
        run.go(9, seconds=1, cost=0.75)
    assert run.drawn[-1] == "19 comparisons, reliability 0.50 of 0.90, 1 invalid, $0.7500 of $2.0000, 0:00:19"
    assert run.file.getvalue().endswith("\x1b[2K")
    assert sum("no valid answer" in line for line in run.drawn) == 1


def test_at_most_four_drawings_a_second() -> None:
    with Run(terminal=True, redraw_every=1) as run:
        run.go(1000, seconds=0.01)
    assert 35 <= len(run.drawn) <= 45


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_is_one_inert_line(terminal: bool) -> None:
    with Run(terminal=terminal) as run:
        run.fail(A_id=HOSTILE, B_id="", invalid_reason=HOSTILE)
        run.view.note(HOSTILE)
    for piece in ("\x1b[2J", "\x1b]", "\x07", "\u202e", "\x9b", "\nline", "y" * 501, "💥"):
        assert piece not in run.file.getvalue()
