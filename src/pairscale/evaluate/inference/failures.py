"""How a case counts in which a variant failed: the one rule for rates, verdicts, sequences and everything else.

``loss``: the variant that failed has lost; when both failed, that is a tie. ``shown``: the comparator was shown
"(no answer)" and has decided. ``excluded``: such a case is an error, and in no rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from pairscale.core.comparisons import Outcome
from pairscale.core.options import require_choice

Failures: TypeAlias = Literal["loss", "shown", "excluded"]
"""How a failure of a variant counts."""

Failed: TypeAlias = Literal["a", "b", "both"]
"""Which variant failed in a case."""

FAILURES: tuple[Failures, ...] = ("loss", "shown", "excluded")
WAY_WORDS: dict[Failures, str] = {
    "loss": "a failure is a loss",
    "shown": "the judge decides, who is shown “(no answer)”",
    "excluded": "cases with a failure are left out",
}
"""What each way to count does, behind "if"."""

_LOSS: dict[str, tuple[Outcome, str | None]] = {
    "a": (Outcome.WIN, "b"),
    "b": (Outcome.WIN, "a"),
    "both": (Outcome.TIE, "tie"),
}


class Bounds(NamedTuple):
    """The lowest and the highest win rate of B over all ways to count failures; None without a case.

    Attributes:
        lower: the lowest.
        upper: the highest; the same as the lowest when no variant failed.
    """

    lower: float | None
    upper: float | None


def require_failures(value: str) -> Failures:
    """Check a way to count failures.

    Raises:
        InputError: it is none of ``loss``, ``shown`` and ``excluded``.
    """
    return require_choice(value, "failures", FAILURES)


def ways_to_count(asked: Failures) -> tuple[Failures, ...]:
    """All ways that the cases of a run can be counted in, the one that was asked for first.

    What a comparator would have said of "(no answer)" is known only where it was shown that.
    """
    return (asked, *(way for way in ("loss", "excluded") if way != asked))


def failed_sides(a: object, b: object) -> Failed | None:
    """Which variant failed: each of ``a`` and ``b`` is why, or None for an answer.

    Example:
        >>> failed_sides("TimeoutError", None), failed_sides(None, None)
        ('a', None)
    """
    if a is not None and b is not None:
        return "both"
    return "a" if a is not None else "b" if b is not None else None


def count_failure(
    failed: str | None, outcome: Outcome, winner: str | None, failures: Failures
) -> tuple[Outcome, str | None]:
    """The outcome and the winner of a case when failures count in this way.

    Args:
        failed: the variant that failed; None leaves the case as it is.
        outcome: as it was counted.
        winner: as it was counted.
        failures: the way to count; ``shown`` leaves what the comparator said.

    Example:
        >>> count_failure("b", Outcome.ERROR, None, "loss")
        (<Outcome.WIN: 'win'>, 'a')
    """
    if failed is None or failures == "shown":
        return outcome, winner
    return _LOSS[failed] if failures == "loss" else (Outcome.ERROR, None)


def agreed_better(better: Mapping[Failures, str | None], asked: Failures) -> str | None:
    """The variant that is better in every way to count; None when one of them does not say so.

    Args:
        better: by the way to count, which variant is shown to be better, if any; ways without a case are not there.
        asked: the way that was asked for.
    """
    return better.get(asked) if len(set(better.values())) == 1 else None
