"""When does a failure concern the judge rather than a question? When it repeats on questions of different texts."""

from __future__ import annotations

from dataclasses import dataclass, field

from pairscale.judges.base import Verdict

__all__ = ["MOST_ALIKE", "FailureStreak"]

MOST_ALIKE = 10
"""The same failure on so many different questions, without a success between, concerns the judge."""

_DISJOINT = 3
"""So many of these questions must share no text: one or two texts that always fail do not explain them all."""


@dataclass(slots=True)
class FailureStreak:
    """Counts alike failures in a row.

    Attributes:
        most: different questions that make a streak.
    """

    most: int = MOST_ALIKE
    _kind: str | None = None
    _questions: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])

    def count(self, verdict: Verdict, first: str, second: str) -> bool:
        """Count the final outcome of a question; True when the judge itself fails.

        Args:
            verdict: the outcome.
            first: ID of the sample shown first.
            second: ID of the other.
        """
        if verdict.outcome.is_answer:
            return self.count_kind(None, first, second)
        message = (verdict.error_message or "").partition(":")[0][:60]
        return self.count_kind(f"{verdict.error_code}|{verdict.status_code}|{message}", first, second)

    def count_kind(self, kind: str | None, first: str, second: str) -> bool:
        """The same, by a name for the kind of failure; None for a success."""
        if kind != self._kind or kind is None:
            self._kind = kind
            self._questions.clear()
        if kind is not None:
            self._questions[first, second] = None
        return len(self._questions) >= self.most and self.is_general

    @property
    def is_general(self) -> bool:
        """Whether the failures in a row concern different texts."""
        used: set[str] = set()
        disjoint = 0
        for first, second in self._questions:
            if first not in used and second not in used:
                used |= {first, second}
                disjoint += 1
        texts = len({text for question in self._questions for text in question})
        return disjoint >= min(_DISJOINT, texts // 2) and disjoint > 1
