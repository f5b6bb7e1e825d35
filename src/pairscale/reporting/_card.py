"""The page of a judge card: what was measured of a judge, and what was not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pairscale._version import __version__
from pairscale.checks.card import MEASURES, JudgeCard, Measure
from pairscale.core.errors import InputError
from pairscale.providers.catalog import price_note
from pairscale.reporting._calibration import calibration_parts
from pairscale.reporting._origin import moment
from pairscale.reporting._shell import Page, Part
from pairscale.reporting.picture import Intervals, number, percent

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

_IN_CHART = ("agreement", "consistency", "first_place", "longer", "repeatability", "distractor", "validity")
_SCALED = ("kappa", "position_effect")
_TARGETS = {"first_place": "50 % is even", "longer": "compare with people, below", "distractor": "0 % is best"}


@dataclass(frozen=True, slots=True)
class CardFacts:
    """A judge card as a report shows it.

    Attributes:
        card: the card.
    """

    card: JudgeCard

    def rows(self, *, texts: bool) -> pl.DataFrame:  # noqa: ARG002 - a card holds no texts
        """One row per measure."""
        return self.card.table

    def page(self, *, texts: bool) -> Page:  # noqa: ARG002 - likewise
        """The report."""
        return _page(self.card)

    def disguised(self) -> CardFacts:
        """The same: a card names no text."""
        return self

    def write_again(self, path: Path) -> int:  # noqa: ARG002 - nothing is written
        """A card has no cases.

        Raises:
            InputError: always.
        """
        raise InputError("`again=` is for the cases of a run; a judge card has none")


def _page(card: JudgeCard) -> Page:
    judge = card.judge
    about = f" on “{judge.trait}”" if judge.trait else ""
    what = "cases of two answers" if judge.kind == "cases" else "pairs of texts"
    content: Part = {"chart": _chart(card), "rows": [_row(name, card) for name in MEASURES]}
    content["calibration"] = calibration_parts([("", one) for one in card.calibrations])
    return Page(
        "card.html",
        f"Judge card of {judge.judge_id}",
        _headline(card),
        _tiles(card),
        (
            ("figures", "Figures", True),
            ("probabilities", "Probabilities", content["calibration"]),
            ("meaning", "What they mean", True),
        ),
        content | {"meaning": [(label, meaning) for label, meaning in MEASURES.values()]},
        [_method(card, f"{what}{about}")],
        _provenance(card),
        notices=_careful(card),
        judges=[judge.judge_id],
    )


def _method(card: JudgeCard, what: str) -> str:
    people = f"{card.data['labellers']:,} labeller{'s' * (card.data['labellers'] != 1)}, the majority counts"
    return (
        f"{card.judge.judge_id} was asked about {card.data['n_pairs']:,} {what}, each in both orders; a pair is won "
        "only where both orders name the same text, and another winner in the other order is a flip. "
        f"{card.data['n_labelled']:,} of them have a label of people ({people}). Shares have Wilson's interval, "
        "differences of shares on the same pairs the score interval of Tango, kappa one by a Dirichlet distribution, "
        f"the position effect an exact or score interval and the cost Student's; all at {100 * card.level:g} %. "
        f"Computed with pairscale {__version__}."
    )


def _headline(card: JudgeCard) -> str:
    one, net = card.measures["agreement"], card.measures["net_agreement"]
    if one.value is None:
        return f"How far {card.judge.judge_id} agrees with people was not measured: {one.why}. Label some pairs first."
    text = f"{card.judge.judge_id} chooses as people do in {percent(one.value)} of {one.n:,} pairs that both decide"
    text += f" ({100 * card.level:g} % interval {percent(one.lower)} to {percent(one.upper)})."
    if net.lower is not None and net.lower <= 0:
        little = "That is too little, or too few labels, to correct win rates by"
        return f"{text} {little}: label more pairs, or name a better judge."
    use = "Give this card to `pairscale ab` or `pairscale gate` to see win rates as people would."
    return f"{text} {next(iter(_careful(card)), use)}"


def _tiles(card: JudgeCard) -> list[tuple[str, str]]:
    tiles = []
    for name in ("agreement", "kappa", "consistency", "repeatability", "distractor", "cost"):
        one = card.measures[name]
        if one.value is not None:
            tiles.append((_figure(name, one.value), MEASURES[name][0].lower()))
    return tiles


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "cost":
        return f"${value:,.5f}"
    return number(value) if name in _SCALED else percent(value)


def _row(name: str, card: JudgeCard) -> Part:
    one = card.measures[name]
    ends = [_figure(name, end) for end in (one.lower, one.upper)]
    if one.measured or one.lower is not None or one.upper is not None:
        ends = [end or "no limit" * (one.interval is not None) for end in ends]
    dated = price_note([card.data.get("prices_as_of")]) if name == "cost" and one.measured else ""
    return {
        "label": f"{MEASURES[name][0]}{dated}",
        "value": _figure(name, one.value) if one.measured else "not measured",
        "lower": ends[0],
        "upper": ends[1],
        "n": f"{one.n:,}" if one.n else "",
        "why": one.why or _TARGETS.get(name, ""),
    }


def _chart(card: JudgeCard) -> Intervals | None:
    shown: list[tuple[str, Measure]] = [(name, card.measures[name]) for name in _IN_CHART]
    rows = [
        {"ID": MEASURES[name][0], "score": one.value, "lower": one.lower, "upper": one.upper}
        for name, one in shown
        if one.measured
    ]
    if not rows:
        return None
    label = "Shares with intervals; the table holds the same figures"
    return Intervals(rows, label, "share", in_percent=True, span=(0, 1), middle=0.5)


def _careful(card: JudgeCard) -> list[str]:
    """What stands out on a card."""
    found = []
    excess, nonsense, first = (card.measures[name] for name in ("longer_excess", "distractor", "first_place"))
    if nonsense.value is not None and nonsense.lower is not None and nonsense.lower > 0.05:
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


def _provenance(card: JudgeCard) -> dict[str, str]:
    judge, data = card.judge, card.data
    known = {
        "judge": judge.judge_id,
        "model": judge.model,
        "condition": judge.condition_id,
        "criterion" if judge.kind == "cases" else "trait": judge.trait,
        "template": judge.template_id,
        "digest of the template": judge.template_hash,
        "measured": moment(card.made_at),
        "pairscale": card.version,
        "seed": str(data.get("seed")),
        "digest of texts and labels": data.get("digest"),
        "digest of the card": card.digest[:16],
    }
    settings = {f"setting {name}": str(value) for name, value in judge.settings.items()}
    return {name: str(value) for name, value in (known | settings).items() if value is not None}
