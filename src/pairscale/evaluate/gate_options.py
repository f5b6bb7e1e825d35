"""The options of a gate, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pairscale.checks.card import JudgeCard
from pairscale.core.errors import InputError
from pairscale.core.options import require_choice, require_flag, require_probability, require_text
from pairscale.core.tables import listed
from pairscale.evaluate.calibration import cards_by_criterion, lowest_net
from pairscale.evaluate.gate_files import require_file, step_summary_file
from pairscale.evaluate.inference.failures import Failures, require_failures
from pairscale.evaluate.inference.gate import FAIL_IF, FailIf, GateRule, require_margin, two_sided
from pairscale.evaluate.run import require_two_names

__all__ = ["GateOptions", "Missing"]

Missing: TypeAlias = Literal["refuse", "excluded"]
"""What to do if B has no answer to a task of A."""


@dataclass(frozen=True, slots=True)
class GateOptions:
    """The options of a gate besides those of :func:`pairscale.ab`, checked; see :func:`gate`."""

    criteria: tuple[str, ...]
    fail_if: tuple[FailIf, ...]
    margin: float
    level: float
    fixed: bool
    failures: Failures
    missing: Missing
    max_errors: float
    baseline: Path | None
    update_baseline: bool
    summary: Path | None
    step_summary: bool
    junit: Path | None
    names: tuple[str, str]
    cards: Mapping[str, JudgeCard]

    @classmethod
    def of(cls, criterion: Any, *, fail_if: Any, level: Any, **given: Any) -> GateOptions:
        """Check the options.

        Raises:
            InputError: one of them is wrong.
        """
        criteria = [criterion] if isinstance(criterion, str) else list(criterion or [])
        if not criteria:
            raise InputError('say what "better" means, as in `criterion="more helpful"`')
        named = [fail_if] if isinstance(fail_if, str) else list(fail_if)
        parts = [part.strip() for one in named for part in (one.split(",") if isinstance(one, str) else [one])]
        if not parts:
            raise InputError(f"`fail_if=` must name what the gate fails on: {', '.join(FAIL_IF)}")
        two_sided(level)
        judges = given["judge"] if isinstance(given["judge"], list | tuple) else [given["judge"]]
        if any(isinstance(one, str) and one == "human" for one in judges):
            raise InputError(
                "`judge=human` answers in ab, not in a gate, which runs without people; name another judge"
            )
        baseline, update = given["baseline"], require_flag(given["update_baseline"], "update_baseline")
        if update and baseline is None:
            raise InputError("`update_baseline=` needs a file for it: give `baseline=`")
        files = {name: given[name] for name in ("summary", "junit")}
        written = {name: None if path is None else require_file(path, name) for name, path in files.items()}
        if require_flag(given["step_summary"], "step_summary"):
            step_summary_file()
        return cls(
            tuple(dict.fromkeys(require_text(one, "criterion") for one in criteria)),
            tuple(dict.fromkeys(require_choice(one, "fail_if", FAIL_IF) for one in parts)),
            require_margin(given["margin"]),
            float(level),
            require_flag(given["fixed"], "fixed"),
            require_failures(given["failures"]),
            require_choice(given["missing"], "missing", ("refuse", "excluded")),
            require_probability(given["max_errors"], "max_errors"),
            None if baseline is None else Path(baseline),
            update,
            written["summary"],
            given["step_summary"],
            written["junit"],
            require_two_names(*given["names"]),
            _cards(given["judge_card"], criteria),
        )

    @property
    def rule(self) -> GateRule:
        """The rule of each criterion; with several, each has a higher level, so that all hold together.

        With judge cards, the judge's scores are closer to one half than those of people by the net agreement, and so is
        its margin: by the lower bound of the net agreement. Half of the chance of an error goes to that bound.
        """
        error = (1 - self.level) / len(self.criteria)
        if not self.cards:
            return GateRule(self.margin, 1 - error, self.fail_if)
        bounds = [lowest_net(card, error / 2) for card in self.cards.values()]
        return GateRule(self.margin * min(bounds), 1 - error / 2, self.fail_if, people_margin=self.margin)


def _cards(given: Any, criteria: Sequence[str]) -> dict[str, JudgeCard]:
    """By criterion, the judge cards; all criteria of a gate have one, or none has."""
    cards = cards_by_criterion(given, criteria, ["one"])
    without = [one for one in criteria if one not in cards]
    if cards and without:
        raise InputError(f"a gate needs a judge card for every criterion, or none; there is none for {listed(without)}")
    return cards
