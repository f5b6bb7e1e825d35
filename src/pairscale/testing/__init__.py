"""For rehearsals and tests: a server that plays the providers."""

from pairscale.testing._batches import Batches
from pairscale.testing._judging import Behaviour
from pairscale.testing.simulator import Faults, JournalEntry, ProviderSimulator

__all__ = [
    "Batches",
    "Behaviour",
    "Faults",
    "JournalEntry",
    "ProviderSimulator",
]
