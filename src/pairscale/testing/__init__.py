"""For rehearsals and tests: a server that plays the providers, and a test for authors of judges."""

from pairscale.testing._batches import Batches
from pairscale.testing._judging import Behaviour
from pairscale.testing.protocol import ProtocolReport, check_judge_protocol
from pairscale.testing.simulator import Faults, JournalEntry, ProviderSimulator

__all__ = [
    "Batches",
    "Behaviour",
    "Faults",
    "JournalEntry",
    "ProtocolReport",
    "ProviderSimulator",
    "check_judge_protocol",
]
