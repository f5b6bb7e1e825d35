"""Is B better than A? Statistics on cases: win rates, intervals, tests, sequences. No files, no judges."""

from pairscale.evaluate.inference.cases import Tally, score_of
from pairscale.evaluate.inference.control import ControlledRate, StyleEffect, controlled_rate, length_controlled
from pairscale.evaluate.inference.corrected import CorrectedWinRate, corrected_win_rate
from pairscale.evaluate.inference.sequence import ConfidenceSequence, RunningSequence, confidence_sequence
from pairscale.evaluate.inference.slices import Slices, slices
from pairscale.evaluate.inference.win_rate import (
    CasesNeeded,
    SignTest,
    WinRate,
    cases_needed,
    sign_test,
    win_rate,
)

__all__ = [
    "CasesNeeded",
    "ConfidenceSequence",
    "ControlledRate",
    "CorrectedWinRate",
    "RunningSequence",
    "SignTest",
    "Slices",
    "StyleEffect",
    "Tally",
    "WinRate",
    "cases_needed",
    "confidence_sequence",
    "controlled_rate",
    "corrected_win_rate",
    "length_controlled",
    "score_of",
    "sign_test",
    "slices",
    "win_rate",
]
