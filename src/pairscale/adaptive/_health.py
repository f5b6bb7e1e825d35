"""How the choosing went since the last refit: what the round log says of the steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import Any

__all__ = ["Health"]


class Health:
    """Counts over the rows of the step log; nothing is read again."""

    def __init__(self) -> None:
        self._rows = self._starved = self._fallback = self._star_rejects = self._rejects = 0
        self._scored: list[int] = []
        self._used: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()

    def count(self, row: Mapping[str, Any]) -> None:
        """Take in one row."""
        self._rows += 1
        if row.get("fallback_used"):
            self._used[row["fallback_used"]] += 1
            self._fallback += row["fallback_used"] != "base"
        if row.get("candidate_starved"):
            self._starved += 1
            self._reasons[row["starvation_reason"]] += 1
        if row.get("n_candidates_scored") is not None:
            self._scored.append(row["n_candidates_scored"])
            self._star_rejects += row["star_cap_rejects"] or 0
            self._rejects += row["n_candidates_generated"] - row["n_candidates_scored"]

    def columns(self) -> dict[str, Any]:
        """The columns of the round log."""
        return {
            "proposed_pairs_mode": float(median(self._scored)) if self._scored else None,
            "starve_rate_since_last_refit": self._starved / self._rows if self._rows else None,
            "fallback_rate_since_last_refit": self._fallback / self._rows if self._rows else None,
            "fallback_used_mode": _most(self._used),
            "starvation_reason_mode": _most(self._reasons),
            "star_cap_rejects_since_last_refit": self._star_rejects,
            "star_cap_reject_rate_since_last_refit": self._star_rejects / self._rejects if self._rejects else None,
        }


def _most(counts: Counter[str]) -> str | None:
    """The most frequent; of equal ones the first by name, so that the order of rows does not matter."""
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None
