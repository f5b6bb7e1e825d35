"""The report of a judge card: what was measured of a judge, and what was not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pairscale.checks.card import MEASURES, JudgeCard
from pairscale.reporting.page import Report, calibration_parts, moment
from pairscale.reporting.picture import intervals, number, percent

if TYPE_CHECKING:
    from pairscale.checks.card import Measure

_IN_CHART = ("agreement", "consistency", "first_place", "longer", "repeatability", "distractor", "validity")
_IN_TILES = ("agreement", "kappa", "consistency", "repeatability", "distractor", "cost")
_SCALED = ("kappa", "position_effect")
_TARGETS = {"first_place": "50 % is even", "longer": "compare with people, below", "distractor": "0 % is best"}


def card_report(card: JudgeCard) -> Report:
    """Put a judge card into figures and pictures."""
    judge = card.judge
    measures = card.measures
    charted = [
        {
            "ID": MEASURES[name][0],
            "score": measures[name].value,
            "lower": measures[name].lower,
            "upper": measures[name].upper,
        }
        for name in _IN_CHART
        if measures[name].measured
    ]
    chart = None
    if charted:
        chart = intervals(charted, "Shares with intervals", "share", middle=0.5, span=(0, 1), in_percent=True)
    shown = [(MEASURES[name][0], _figure(name, measures[name].value)) for name in _IN_TILES]
    careful = _careful(card)
    content: dict[str, Any] = {
        "card": card,
        "measures": measures,
        "chart": chart,
        "tiles": [(figure, label.lower()) for label, figure in shown if figure],
        "rows": [_row(name, measures[name]) for name in MEASURES],
        "meaning": list(MEASURES.values()),
        "calibrations": calibration_parts([("", one) for one in card.calibrations]),
        "careful": careful,
    }
    known = {
        "judge": judge.judge_id, "model": judge.model, "condition": judge.condition_id,
        "criterion" if judge.kind == "cases" else "trait": judge.trait, "template": judge.template_id,
        "digest of the template": judge.template_hash, "measured": moment(card.made_at), "pairscale": card.version,
        "seed": card.data.get("seed"), "digest of texts and labels": card.data.get("digest"),
        "digest of the card": card.digest[:16], "prices of": card.data.get("prices_as_of"),
    }  # fmt: skip
    known |= {f"setting {name}": value for name, value in judge.settings.items()}
    provenance = {name: str(value) for name, value in known.items() if value is not None}
    title = f"Judge card of {judge.judge_id}"
    return Report("card.html", title, card.table, content, provenance, [judge.judge_id], careful)


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "cost":
        return f"${value:,.5f}"
    return number(value) if name in _SCALED else percent(value)


def _row(name: str, one: Measure) -> dict[str, Any]:
    open_end = "no limit" if one.interval is not None and one.measured else ""
    return {
        "label": MEASURES[name][0],
        "value": _figure(name, one.value) if one.measured else "not measured",
        "lower": _figure(name, one.lower) or open_end,
        "upper": _figure(name, one.upper) or open_end,
        "n": one.n or None,
        "why": one.why or _TARGETS.get(name, ""),
    }


def _careful(card: JudgeCard) -> list[str]:
    """What stands out on a card."""
    found = []
    excess = card.measures["longer_excess"]
    nonsense = card.measures["distractor"]
    first = card.measures["first_place"]
    if nonsense.lower is not None and nonsense.lower > 0.05:
        found.append(
            "Appended nonsense wins the judge over, so padded answers can win: name a better judge, or another prompt."
        )
    if excess.lower is not None and excess.upper is not None and not excess.lower <= 0 <= excess.upper:
        taste = "longer" if excess.lower > 0 else "shorter"
        found.append(
            f"The judge chooses the {taste} text more often than people do; control for length where it matters."
        )
    if first.lower is not None and first.upper is not None and not first.lower <= 0.5 <= first.upper:
        found.append("The judge favours a place; ask it in both orders.")
    if card.data.get("n_unasked"):
        found.append(f"{card.data['n_unasked']:,} questions were not asked, as the check ended early; run it again.")
    return found
