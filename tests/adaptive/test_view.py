"""What an adaptive run shows: one line on a terminal and in a notebook, plain lines elsewhere, hostile ids."""

from __future__ import annotations

import errno
import io
import math
import re
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from pairscale.adaptive.gates import stop_gates
from pairscale.adaptive.view import View, comparisons_at_target
from pairscale.core.errors import InputError
from pairscale.models.logs import ROUND_LOG

FIGURES = {
    "divergences": 0, "divergences_max_allowed": 0, "max_rhat": 1.0, "max_rhat_allowed": 1.01, "min_ess_bulk": 900.0,
    "ess_bulk_required": 400.0, "eap_reliability_min": 0.9, "lag_eligible": True, "rho_theta": 0.99,
    "theta_corr_min": 0.95, "delta_sd_theta": 0.02, "theta_sd_rel_change_max": 0.1, "rho_rank": 0.971,
    "rank_spearman_min": 0.95, "global_identified": False,
}  # fmt: skip
"""A refit at which every gate passes but that of reliability."""


REFIT_OF_TEN = "refit 1: 10 comparisons, reliability 0.50, rank stability 0.97; not yet: reliability below 0.90"


class Clock:
    """Continues only when told to, and counts how often it was read."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now


OPTIONS = {
    "reliability_target": 0.9, "n_steps": None, "max_comparisons": None, "max_cost": None,
}  # fmt: skip


class Run:
    """A run that continues by steps, and what it has shown."""

    def __init__(self, mode: str = "all", *, terminal: bool = False, width: int = 90, **options: object) -> None:
        self.clock = Clock()
        self.file = io.StringIO()
        console = Console(file=self.file, force_terminal=terminal, width=width, height=50, legacy_windows=False)
        given: dict[str, object] = {"n_items": 30, **OPTIONS}
        self.view = View(mode, **(given | options), console=console, clock=self.clock)
        self.committed = self.invalid = self.steps = 0

    def __enter__(self) -> Run:
        self.view.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.view.__exit__(*error)

    def go(self, n: int = 1, *, seconds: float = 0.0, cost: float = 0.0, **row: object) -> None:
        for _ in range(n):
            self.clock.now += seconds
            self.steps += 1
            row = {"status": "committed", **row, "step_id": self.steps}
            self.committed += row["status"] == "committed"
            self.invalid += row["status"] == "invalid"
            self.view.step(row, committed=self.committed, invalid=self.invalid, cost=cost)

    def fail(self, n: int = 1, reason: str = "too slow", **row: object) -> None:
        fields = {"A_id": "ann", "B_id": "bob", "invalid_kind": "error", "invalid_reason": reason}
        self.go(n, status="invalid", **{**fields, **row})

    def refit(self, n: int, reliability: float | None, **row: object) -> None:
        self.refits = getattr(self, "refits", 0) + 1
        figures = FIGURES | {"refit_id": self.refits, "total_pairs_done": n, "reliability": reliability} | row
        self.view.refit({**figures, **stop_gates(figures), **row})

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.file.getvalue())

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def drawn(self) -> list[str]:
        """The lines as they were drawn, one after the other."""
        return [line for line in re.split(r"[\r\n]+", self.text) if line.strip()]


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    out, err = sys.stdout, sys.stderr
    yield
    assert (sys.stdout, sys.stderr) == (out, err)


def test_the_rows_of_these_tests_are_of_the_round_log() -> None:
    assert {*FIGURES, "refit_id", "total_pairs_done", "reliability", "n_items"} <= set(ROUND_LOG)


def test_plain_refits() -> None:
    run = Run("refits", max_comparisons=900, show_events=False)
    with run:
        run.go(300, seconds=1)
        run.view.refit_started()
        run.refit(300, 0.84)
        run.refit(400, None, lag_eligible=False, rho_rank=math.nan)
        run.refit(1500, 0.8999, max_rhat=1.02, delta_sd_theta=0.1004, rho_rank=0.9496)
        run.refit(1600, 0.92, stop_decision=True, stop_reason="btl_converged")
        run.refit(1700, 0.93, stop_decision=True, stop_reason="max_comparisons", is_closing=True)
    long = "diagnostics fail (R-hat), reliability below 0.90, rank stability below 0.95, spread still changes by 0.1004"
    assert [tuple(line.split("; ")) for line in run.lines] == [
        ("refit 1: 300 comparisons, reliability 0.84, rank stability 0.97", "not yet: reliability below 0.90"),
        (
            "refit 2: 400 comparisons, reliability not known yet, rank stability not known yet",
            "not yet: reliability below 0.90, too few refits to compare with",
        ),
        (
            "refit 3: 1,500 comparisons, reliability 0.8999 (provisional), rank stability 0.9496",
            f"not yet: {long} (at most 0.10)",
        ),
        (
            "refit 4: 1,600 comparisons, reliability 0.92, rank stability 0.97",
            "the run stops: the scores are reliable and stable",
        ),
        (
            "closing refit 5: 1,700 comparisons, reliability 0.93, rank stability 0.97",
            "limit reached (max_comparisons): raise it to continue",
        ),
    ]


def test_plain_steps() -> None:
    run = Run("steps", redraw_every=2, n_steps=50, max_comparisons=2000, max_cost=2.0, show_errors=False)
    with run:
        run.go(20, seconds=1.5)
        run.refit(20, 0.5)
        run.fail()
        run.go(19, seconds=1.5, cost=0.25)
    assert run.lines == [
        "step 20 of 50: 20 of 2,000 comparisons, 40 a minute",
        "step 40 of 50: 39 of 2,000 comparisons, 40 a minute, 1 invalid, $0.2500 of $2.0000",
    ]


def test_plain_lines_of_both() -> None:
    run = Run("all", redraw_every=1)
    with run:
        run.go(25, seconds=6)
        run.refit(25, 0.5, global_identified=True)
        run.refit(35, 0.6, global_identified=True)
        run.view.note("the judge asks for patience")
    assert [line.split(":")[0] for line in run.lines] == [
        "step 10", "step 20", "refit 1", "refit 2", "the judge asks for patience",
    ]  # fmt: skip


@pytest.mark.parametrize("terminal", [False, True])
def test_none_is_silent(terminal: bool) -> None:
    run = Run("none", terminal=terminal, redraw_every=1)
    with run:
        run.go(100, seconds=1)
        run.fail(10)
        run.view.refit_started()
        run.refit(100, 0.5, global_identified=True)
        run.view.note("a note")
    assert run.file.getvalue() == ""


def test_five_invalid_answers_in_full_and_then_counts() -> None:
    run = Run("refits")
    with run:
        run.fail(4)
        for n, reliability in ((10, 0.5), (20, 0.6), (30, 0.7)):
            if n == 20:
                run.fail(3)
                run.go(5, status="starved", starvation_reason="star_caps")
            run.refit(n, reliability, lag_eligible=False)
        run.fail(1000)
        run.go(2, status="starved", starvation_reason="star_caps")
    assert run.lines[3] == "step 4: no valid answer (error) for ann and bob: too slow"
    late = "reliability below 0.90, too few refits to compare with"
    assert run.lines[4].endswith(late)
    assert run.lines[5].startswith("step 5: no valid")
    assert run.lines[6] == (
        "step 8: no pair to ask about in this stage: all that fit have a text that was asked about too often lately"
    )
    assert run.lines[11].endswith(f"{late}; 2 more invalid answers")
    assert run.lines[12].endswith(late)
    assert run.lines[13:] == ["1,000 more invalid answers, 2 more steps without a pair"]  # at the end


def test_a_long_stage_that_the_posterior_has_decided_needs_no_line() -> None:
    run = Run("refits")
    with run:
        run.go(9, status="starved", starvation_reason="no_candidates", long_gate_reason="posterior_extreme")
        run.go(1, status="starved", starvation_reason="no_candidates")
    assert run.lines == ["step 10: no pair to ask about in this stage: none fits"]


def test_without_refit_lines_the_step_lines_count() -> None:
    run = Run("steps", redraw_every=1)
    with run:
        run.fail(7)
        run.refit(7, 0.5)
        run.go(3)
    assert run.lines[5:] == ["step 10: 3 comparisons, 7 invalid, 2 more invalid answers"]


def test_events_and_errors_can_be_left_out() -> None:
    run = Run("refits", show_events=False, show_errors=False)
    with run:
        run.fail(9, set_aside="ann")
        run.go(9, status="starved", starvation_reason="routing")
        run.refit(10, 0.5, global_identified=True)
    assert run.lines == [REFIT_OF_TEN]
    run = Run("refits", show_errors=False)
    with run:
        run.fail(set_aside="ann, bob")
    assert run.lines == ["step 1: no longer asked about: ann, bob"]


def test_extrapolation_by_hand() -> None:
    # 0.5 is 1 and 0.75 is 3: 2 in 100 comparisons. 0.9 is 9, which is 6 more: 300 comparisons more.
    assert comparisons_at_target([(100, 0.5), (200, 0.75)], 0.9) == pytest.approx(500)
    # 1, 3, 4 at 100, 200, 300: the slope is (4 - 1) / 200, and from 4 on 5 are missing.
    assert comparisons_at_target([(100, 0.5), (200, 0.75), (300, 0.8)], 0.9) == pytest.approx(300 + 5 / 0.015)


@pytest.mark.parametrize(
    "grown",
    [
        [],
        [(100, 0.5)],
        [(100, 0.5), (100, 0.6)],  # the same comparisons again
        [(100, 0.5), (200, 0.5)],
        [(100, 0.6), (200, 0.5)],
        [(100, 0.5), (200, 0.6), (300, 0.9)],  # reached
        [(100, 0.95), (200, 0.8)],
        [(100, 0.5), (200, 0.5 + 1e-12)],  # for ever
    ],
)
def test_no_extrapolation(grown: list[tuple[int, float]]) -> None:
    assert comparisons_at_target(grown, 0.9) is None
    assert comparisons_at_target([(100, 0.5), (200, 0.75)], 1.0) is None


class Broken(io.StringIO):
    """A standard error that goes away."""

    gone = False

    def write(self, text: str) -> int:
        if self.gone:
            raise OSError(errno.EIO, "the terminal is gone")
        return super().write(text)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_broken_standard_error_breaks_no_run(terminal: bool) -> None:
    file = Broken()
    view = View(
        "all", n_items=3, **OPTIONS, redraw_every=1, console=Console(file=file, force_terminal=terminal), clock=Clock()
    )
    with view:
        view.note("there")
        file.gone = True
        for n in range(30):
            view.step({"status": "committed"}, committed=n, invalid=0, cost=0.0)
        view.note("gone")
    assert "there" in file.getvalue()
    assert "gone" not in file.getvalue()


def test_by_default_it_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with View("all", n_items=3, **OPTIONS, clock=Clock()) as view:
        view.note("a note")
    assert capsys.readouterr() == ("", "a note\n")


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    run = Run("refits", terminal=True, show_events=False)
    with run:
        run.refit(10, 0.5)
    assert run.lines == [REFIT_OF_TEN]


def test_impossible_options(message_snapshot) -> None:
    with pytest.raises(InputError) as refused:
        Run("bar")
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        Run("all", redraw_every=0)
    message_snapshot(refused)


def test_where_there_is_no_terminal_one_line_is_none() -> None:
    with Run("line") as run:
        run.go(200)
        run.refit(200, 0.5)
    assert run.lines == []


# In a notebook


class Output:
    """What a notebook shows: the lines of one output."""

    def __init__(self, _clock: object) -> None:
        self.shown: list[list[str]] = []

    def show(self, lines: list[str]) -> None:
        self.shown.append(list(lines))


@pytest.mark.parametrize("mode", ["all", "refits", "steps", "line", "none"])
def test_a_notebook_has_one_output_with_its_notes(
    mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs: list[Output] = []
    monkeypatch.setattr("pairscale.adaptive.view.in_notebook", lambda: True)
    monkeypatch.setattr(
        "pairscale.adaptive.view.LiveOutput", lambda clock: outputs.append(Output(clock)) or outputs[-1]
    )
    run = Run(mode)
    run.view = View(mode, n_items=30, **OPTIONS, clock=run.clock)
    with run:
        run.fail(7)
        run.go(200, seconds=0.05, cost=0.5)
        run.refit(200, 0.5)
        run.view.note("a <note>")
    assert capsys.readouterr() == ("", "")
    if mode == "none":
        assert outputs == []
        return
    (output,) = outputs
    last, before = output.shown[-1], output.shown[-2]
    assert last[0].startswith("200 comparisons  reliability ██████████░")
    assert "0.50 of 0.90  7 invalid  $0.5000  0:00:10" in last[0]
    assert sum("no valid answer" in line for line in last) == 5  # as many as a log has
    assert "2 more invalid answers" in last[-1]
    assert "a <note>" in last
    assert len(before) >= 5
    assert len(output.shown) < 60  # 10 seconds of updates


def test_in_a_notebook_a_console_of_ones_own_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairscale.adaptive.view.in_notebook", lambda: True)
    run = Run("refits", show_events=False)
    with run:
        run.refit(10, 0.5)
    assert run.lines == [REFIT_OF_TEN]


# On a terminal


@pytest.mark.parametrize("mode", ["all", "refits", "steps", "line"])
def test_one_line_that_is_redrawn_and_disappears(mode: str) -> None:
    with Run(mode, terminal=True, max_cost=2.0, width=120) as run:
        run.go(10, seconds=1, cost=0.5)
        run.view.refit_started()
        run.refit(10, 0.5)
        run.fail()
        run.go(9, seconds=1, cost=0.75)
    last = "19 comparisons  reliability ██████████░░░░░░░░┃░ 0.50 of 0.90  1 invalid  $0.7500 of $2.0000  0:00:19"
    assert run.drawn[-1] == last
    assert run.file.getvalue().endswith("\x1b[2K")
    assert sum("no valid answer" in line for line in run.drawn) == 1


def test_at_most_four_drawings_a_second() -> None:
    with Run(terminal=True, redraw_every=1) as run:
        run.go(1000, seconds=0.01)
    assert 35 <= len(run.drawn) <= 45


def test_the_way_to_the_target() -> None:
    run = Run(terminal=True, redraw_every=1, width=120)
    with run:
        run.refit(50, 0.88)  # will be the sixth from the end
        for n in (100, 200, 300, 400):
            run.refit(n, 1 - 1 / (1 + n / 100))
        run.refit(450, 0.1, diagnostics_pass=False)
        run.refit(460, math.nan)
        run.refit(500, 1 - 1 / 6)
        run.go(11, seconds=1)  # 900 less 11, at one a second
        assert "about 890 more, about 0:14:49" in run.drawn[-1]
        run.refit(890, 0.9)
        run.go(1, seconds=1)
    assert "more" not in run.drawn[-1]
    assert "██████████████████┃░ 0.90 of 0.90" in run.drawn[-1]


def test_a_resumed_run_is_not_faster_for_what_it_had_done() -> None:
    run = Run("steps", redraw_every=1)
    run.committed = 5_000
    with run:
        run.go(10, seconds=6)
    assert run.lines == ["step 10: 5,010 comparisons, 10 a minute"]


HOSTILE = "[bold red]x[/]\x1b[2J\x1b]0;owned\x07\r\nline\u202etwo\x9b31m :boom: [link=http://e.org]" + "y" * 10_000


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_is_one_inert_line(terminal: bool) -> None:
    run = Run(terminal=terminal, width=900)
    with run:
        run.fail(A_id=HOSTILE, B_id="", invalid_reason=HOSTILE, invalid_kind=HOSTILE, set_aside=HOSTILE)
        run.go(status="starved", starvation_reason=HOSTILE)
        run.view.note(HOSTILE)
        run.refit(10, 0.5, stop_decision=True, stop_reason=HOSTILE)
        run.clock.now += 1
    for piece in ("\x1b[2J", "\x1b]", "\x07", "\u202e", "\x9b", "\nline", "y" * 501, "💥"):
        assert piece not in run.file.getvalue()
    line = next(line for line in run.drawn if "no valid answer" in line)
    cut = "[bold red]x[/]�[2J�]0;owned� li…"  # 32 characters
    assert f"no valid answer ({cut}) for {cut} and �: [bold red]x" in line
