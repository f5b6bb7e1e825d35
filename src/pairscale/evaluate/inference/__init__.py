"""Is B better than A? Statistics on cases: win rates, intervals, tests, sequences. No files, no judges."""

from pairscale.evaluate.inference.cases import Tally, score_of
from pairscale.evaluate.inference.control import ControlledRate, StyleEffect, controlled_rate, length_controlled
from pairscale.evaluate.inference.corrected import CorrectedWinRate, corrected_win_rate
from pairscale.evaluate.inference.sequence import ConfidenceSequence, RunningSequence, confidence_sequence
from pairscale.evaluate.inference.slices import RunDifference, Slices, compare_runs, slices
from pairscale.evaluate.inference.win_rate import (
    CasesNeeded,
    ProbabilityBetter,
    SignTest,
    WinRate,
    cases_needed,
    probability_better,
    sign_test,
    win_rate,
)

__all__ = [
    "CasesNeeded",
    "ConfidenceSequence",
    "ControlledRate",
    "CorrectedWinRate",
    "ProbabilityBetter",
    "RunDifference",
    "RunningSequence",
    "SignTest",
    "Slices",
    "StyleEffect",
    "Tally",
    "WinRate",
    "cases_needed",
    "compare_runs",
    "confidence_sequence",
    "controlled_rate",
    "corrected_win_rate",
    "length_controlled",
    "probability_better",
    "score_of",
    "sign_test",
    "slices",
    "win_rate",
]
