"""A judge that repeats recorded answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pairscale.core.comparisons import Condition, Outcome, as_comparisons, ordered_key
from pairscale.core.options import require_flag
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import Table
from pairscale.judges.base import JudgePair, Verdict

_KEPT = ("probability", "content", "thoughts", "model", "object_type", "prompt_tokens", "completion_tokens",
         "total_tokens", "prompt_cached_tokens", "reasoning_tokens", "cost")  # fmt: skip
_BY_PRODUCTS = ("lexical", "simulated")  # judges whose probability is not their answer


@dataclass(frozen=True, slots=True)
class ReplayJudge:
    """A judge that gives the answers of a results table, exactly and only those.

    The order counts: an answer to *a, b* is none to *b, a*. A pair that was recorded several times gives its answers
    in their order, by the occurrence in the question's ``uid`` (``a:b#2`` is the second of *a, b*); any other name
    says nothing of that, and gets the first. What was not recorded is an abstention.

    Attributes:
        results: results of any shape that :func:`pairscale.core.comparisons.as_comparisons` knows.
        graded: Whether recorded probabilities are the answers, so that win rates are mean preferences. By default they
            are, unless a recorded winner is the less probable one, or the judge was ``lexical`` or ``simulated``,
            whose probabilities are by-products.
    """

    results: Table = field(repr=False)
    graded: bool | None = None
    _answers: dict[tuple[str, str], list[dict[str, Any]]] = field(init=False, repr=False, default_factory=dict)
    _digest: str = field(init=False, repr=False, default="")

    def __post_init__(self) -> None:
        rows = as_comparisons(self.results).to_dicts()
        for row in rows:
            self._answers.setdefault((row["ID1"], row["ID2"]), []).append(row)
        graded = _is_graded(rows) if self.graded is None else require_flag(self.graded, "graded")
        object.__setattr__(self, "graded", graded)
        counted = ["ID1", "ID2", "better_id", "outcome"] + ["probability"] * graded
        answers = [tuple(row[name] for name in counted if name in row) for row in rows]
        object.__setattr__(self, "_digest", fingerprint(answers))

    @property
    def condition(self) -> Condition:
        """A digest of the recorded answers."""
        return Condition("replay", "offline", settings={"results": self._digest})

    def max_cost_of(self, pair: JudgePair) -> float:  # noqa: ARG002 - every judge is asked alike
        """Nothing: this judge costs no money."""
        return 0.0

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
        known = {name: row[name] for name in _KEPT if row.get(name) is not None and row[name] == row[name]}  # not NaN
        if row["better_id"] in (first, second):
            return Verdict.win(1 if row["better_id"] == first else 2, **known)
        outcome = row.get("outcome") or Outcome.ABSTENTION
        if outcome in (Outcome.TIE, Outcome.FLIP):
            return Verdict(Outcome(outcome), **known)
        if outcome == Outcome.ERROR:
            return Verdict.fail("judge_error", row.get("error_message") or "recorded as an error", **known)
        return Verdict.abstain(row.get("error_message") or "recorded without a winner", **known)


def _is_graded(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the probabilities of recorded answers can be what the judge said."""
    stated = False
    for row in rows:
        if row.get("judge_id") in _BY_PRODUCTS:
            return False
        probability = row.get("probability")
        if probability is None or math.isnan(probability):
            continue
        stated = True
        less_probable = row["ID1"] if probability < 0.5 else row["ID2"]
        if probability != 0.5 and row["better_id"] == less_probable:
            return False
    return stated
