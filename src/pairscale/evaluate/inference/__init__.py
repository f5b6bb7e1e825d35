"""Is B better than A? Statistics on cases: win rates, intervals, tests, sequences. No files, no judges."""

from pairscale.evaluate.inference.cases import score_of
from pairscale.evaluate.inference.control import ControlledRate, StyleEffect, controlled_rate
from pairscale.evaluate.inference.corrected import CorrectedWinRate, corrected_win_rate
from pairscale.evaluate.inference.sequence import RunningSequence
from pairscale.evaluate.inference.win_rate import WinRate, slices, win_rate

__all__ = [
    "ControlledRate",
    "CorrectedWinRate",
    "RunningSequence",
    "StyleEffect",
    "WinRate",
    "controlled_rate",
    "corrected_win_rate",
    "score_of",
    "slices",
    "win_rate",
]
