"""Is B better than A? Statistics on cases: win rates, intervals, tests, sequences. No files, no judges."""

from pairscale.evaluate.inference.cases import score_of as score_of
from pairscale.evaluate.inference.control import ControlledRate as ControlledRate
from pairscale.evaluate.inference.control import controlled_rate as controlled_rate
from pairscale.evaluate.inference.corrected import CorrectedWinRate as CorrectedWinRate
from pairscale.evaluate.inference.corrected import corrected_win_rate as corrected_win_rate
from pairscale.evaluate.inference.sequence import RunningSequence as RunningSequence
from pairscale.evaluate.inference.win_rate import WinRate as WinRate
from pairscale.evaluate.inference.win_rate import slices as slices
from pairscale.evaluate.inference.win_rate import win_rate as win_rate
