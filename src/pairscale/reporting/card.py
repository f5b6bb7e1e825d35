"""The report of a judge card: what was measured of a judge, and what was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairscale.checks.card import MEASURES, JudgeCard
from pairscale.reporting.page import Report, calibration_parts, moment
from pairscale.reporting.picture import intervals, number, percent

if TYPE_CHECKING:
    from pairscale.checks.card import Measure
    from pairscale.reporting.picture import Content

_IN_CHART = ("agreement", "consistency", "first_place", "longer", "repeatability", "distractor", "validity")
_IN_TILES = ("agreement", "kappa", "correlation", "consistency", "repeatability", "distractor", "cost")
_SCALED = ("kappa", "correlation", "position_effect")
_TARGETS = {"first_place": "50 % is even", "longer": "compare with people, below", "distractor": "0 % is best"}


def card_report(card: JudgeCard) -> Report:
    """Put a judge card into figures and pictures."""
    judge = card.judge
    measures = card.measures
    charted = [(MEASURES[name][0], measures[name]) for name in _IN_CHART if measures[name].measured]
    bars = [{"ID": label, "score": one.value, "lower": one.lower, "upper": one.upper} for label, one in charted]
    chart = None
    if bars:
        chart = intervals(bars, "Shares with intervals", "share", middle=0.5, span=(0, 1), in_percent=True)
    shown = [(MEASURES[name][0], _figure(name, measures[name].value)) for name in _IN_TILES]
    content: Content = {
        "card": card,
        "measures": measures,
        "chart": chart,
        "tiles": [(figure, label.lower()) for label, figure in shown if figure],
        "rows": [_row(name, measures[name]) for name in MEASURES],
        "meaning": list(MEASURES.values()),
        "calibrations": calibration_parts([("", one) for one in card.calibrations]),
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
    return Report("card.html", title, card.table, content, provenance, [judge.judge_id])


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "cost":
        return f"${value:,.5f}"
    return number(value) if name in _SCALED else percent(value)


def _row(name: str, one: Measure) -> Content:
    open_end = "no limit" if one.interval is not None and one.measured else ""
    return {
        "label": MEASURES[name][0],
        "value": _figure(name, one.value) if one.measured else "not measured",
        "lower": _figure(name, one.lower) or open_end,
        "upper": _figure(name, one.upper) or open_end,
        "n": one.n or None,
        "why": one.why or _TARGETS.get(name, ""),
    }
