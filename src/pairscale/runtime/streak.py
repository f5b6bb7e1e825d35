"""When does a failure concern the judge rather than a question? When it repeats on ten questions in a row."""

from __future__ import annotations

from dataclasses import dataclass, field

from pairscale.judges.base import Verdict

MOST_ALIKE = 10
"""The same failure on so many different questions, without a success between, concerns the judge."""


@dataclass(slots=True)
class FailureStreak:
    """Counts alike failures in a row.

    Attributes:
        most: different questions that make a streak.
    """

    most: int = MOST_ALIKE
    _kind: str | None = None
    _questions: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

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
            self._questions.add((first, second))
        return len(self._questions) >= self.most and self.is_general

    @property
    def is_general(self) -> bool:
        """Whether no single text is in all of these questions, so that it is not the text that fails."""
        return bool(self._questions) and not set.intersection(*map(set, self._questions))
