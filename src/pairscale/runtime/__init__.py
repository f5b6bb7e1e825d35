"""Ask judges: retries, budget, recording, progress, interrupts and resuming, for every kind of run."""

from pairscale.runtime.asking import MOST_ALIKE, FailureStreak, ask_once, ask_unrecorded, close
from pairscale.runtime.budget import (
    Budget,
    BudgetExceeded,
    Reservation,
    max_cost_of,
    record_prices,
    recorded_prices,
    require_prices,
)
from pairscale.runtime.progress import Progress
from pairscale.runtime.run import CONCURRENCY, RETRIES, TIMEOUT, RunOptions, Runtime
from pairscale.runtime.source import LogRows, Question, Recorded, Source, Wait
from pairscale.runtime.sync import Terminated, awaitable, blocking, resumable, run_sync

__all__ = [
    "CONCURRENCY",
    "MOST_ALIKE",
    "RETRIES",
    "TIMEOUT",
    "Budget",
    "BudgetExceeded",
    "FailureStreak",
    "LogRows",
    "Progress",
    "Question",
    "Recorded",
    "Reservation",
    "RunOptions",
    "Runtime",
    "Source",
    "Terminated",
    "Wait",
    "ask_once",
    "ask_unrecorded",
    "awaitable",
    "blocking",
    "close",
    "max_cost_of",
    "record_prices",
    "recorded_prices",
    "require_prices",
    "resumable",
    "run_sync",
]
