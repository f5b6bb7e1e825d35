"""Is B better than A? Statistics on cases: win rates, intervals, tests, sequences. No files, no judges."""

from pairscale.evaluate.inference.cases import score_of
from pairscale.evaluate.inference.control import ControlledRate, length_controlled
from pairscale.evaluate.inference.corrected import CorrectedWinRate, corrected_win_rate
from pairscale.evaluate.inference.sequence import RunningSequence
from pairscale.evaluate.inference.win_rate import WinRate, slices, win_rate

__all__ = [
    "ControlledRate",
    "CorrectedWinRate",
    "RunningSequence",
    "WinRate",
    "corrected_win_rate",
    "length_controlled",
    "score_of",
    "slices",
    "win_rate",
]
