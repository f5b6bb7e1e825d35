"""A judge that repeats recorded answers."""

from __future__ import annotations

from pairscale.core.comparisons import Condition, Outcome, ordered_key
from pairscale.core.provenance import fingerprint
from pairscale.core.results import as_comparisons
from pairscale.core.tables import Table, Values
from pairscale.judges.base import FreeJudge, JudgePair, Verdict

_KEPT = ("probability", "content", "thoughts", "model", "object_type", "prompt_tokens", "completion_tokens",
         "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "cost")  # fmt: skip


class ReplayJudge(FreeJudge):
    """A judge that gives the answers of a results table, exactly and only those.

    The order counts: an answer to *a, b* is not one to *b, a*. A pair that was recorded several times gives its answers
    in their order, by the occurrence in the question's ``uid`` (``a:b#2`` is the second of *a, b*); any other name
    gets the first. What was not recorded is an abstention.

    Args:
        results: results of any shape that :func:`pairscale.core.comparisons.as_comparisons` knows.
    """

    def __init__(self, results: Table) -> None:
        self._answers: dict[tuple[str, str], list[Values]] = {}
        rows = as_comparisons(results).fill_nan(None).to_dicts()
        for row in rows:
            self._answers.setdefault((row["ID1"], row["ID2"]), []).append(row)
        self._digest = fingerprint([[row.get(name) for name in ("ID1", "ID2", "better_id", "outcome")] for row in rows])

    @property
    def condition(self) -> Condition:
        """A digest of the recorded answers."""
        return Condition("replay", "offline", settings={"results": self._digest})

    async def compare(self, pair: JudgePair) -> Verdict:
        """Look the answer up."""
        first = pair.first["ID"]
        second = pair.second["ID"]
        recorded = self._answers.get((first, second), [])
        name, _, number = pair.uid.rpartition("#")
        is_counted = name == ordered_key(first, second) and number.isdecimal()
        index = max(0, int(number) - 1) if is_counted else 0
        if index >= len(recorded):
            return Verdict.abstain(f"no answer was recorded for {first!r}, {second!r} (occurrence {index + 1})")
        row = recorded[index]
        facts = {name: row[name] for name in _KEPT if row.get(name) is not None}
        if row["better_id"] in (first, second):
            return Verdict.win(1 if row["better_id"] == first else 2, **facts)
        outcome = Outcome(row.get("outcome") or Outcome.ABSTENTION)
        if not outcome.is_answer:
            facts |= {"error_code": "judge_error", "error_message": row.get("error_message") or "recorded so"}
        return Verdict(outcome, **facts)
