"""A chart before it is drawn: marks on two axes. Pages and notebooks draw it as SVG, files by altair."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pairscale.core.display import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_ROWS = 300
"""Up to this many items, each has a row of its own with its name on a page."""

_LONGEST_NAME = 200
_SPOKEN = 6
_ALIKE = "not told apart from the first"
_NARROW_PLOT = 190  # pixels: what the number in a bar must fit into

Row: TypeAlias = "Mapping[str, Any]"
"""Figures of one thing, by their names."""
Content: TypeAlias = "dict[str, Any]"
"""Parts of a page or a chart, by their names, as they are put together."""
Kind: TypeAlias = Literal["dots", "line", "bars", "rule"]


def number(value: float | None, digits: int = 2) -> str:
    """A number as it is shown: a real minus sign, never -0."""
    return "" if value is None else f"{value:z.{digits}f}".replace("-", "−")


def percent(value: float | None, digits: int = 0) -> str:
    """A share as it is shown."""
    return "" if value is None else f"{number(100 * value, digits)} %"


def names(ids: Sequence[str]) -> list[str]:
    """Ids as a chart can show them: on one line, of printable characters, not endless, and still all different."""
    shown = []
    for name in ids:
        plain = printable(name) or "�"
        shown.append(plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…")
    often = Counter(shown)
    return [name if often[name] == 1 else f"{name} ({at})" for at, name in enumerate(shown, start=1)]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of numbers, or of names.

    Attributes:
        title: what it shows; an axis of numbers without one is not drawn.
        low: where it begins.
        high: where it ends.
        names: of the rows; a mark then has the place of its row, from 0.
        ticks: where numbers stand; round ones by default.
        in_percent: whether its numbers are shares.
    """

    title: str = ""
    low: float = 0.0
    high: float = 1.0
    names: Sequence[str] = ()
    ticks: Sequence[float] = ()
    in_percent: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks of one kind and colour.

    Attributes:
        kind: ``dots``, with bars where a row has ends; a ``line``; ``bars``; or a ``rule`` through the whole picture.
        rows: where each is: ``x`` and ``y``, the ends ``x_low x_high`` or ``y_low y_high``, the radius ``r`` of a dot,
            the ``text`` on it with its colour ``ink``, and the ``tip`` for a pointer on it.
        colour: a colour of the style sheet, or a colour.
        name: in the legend; none when empty.
        dashed: whether a line is.
    """

    kind: Kind
    rows: Sequence[Row]
    colour: str = "mark"
    name: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart.

    Attributes:
        label: what it shows, for those who do not see it.
        x: the axis from left to right.
        y: the axis from top to bottom if it has names, else from bottom to top.
        marks: in the order in which they are drawn.
        heading: above it, where there are several.
        height: in pixels; that of its rows where it has names.
        width: in pixels, in a file.
    """

    label: str
    x: Axis
    y: Axis
    marks: Sequence[Marks]
    heading: str = ""
    height: int = 260
    width: int = 560

    @property
    def spoken(self) -> str:
        """The picture as text: what its marks say, or the first and the last of many."""
        tips = [row["tip"] for marks in self.marks for row in marks.rows if "tip" in row]
        if len(tips) <= _SPOKEN:
            return "; ".join(tips)
        return f"{len(tips):,} in all; the first is {tips[0]}, the last {tips[-1]}"


def intervals(
    rows: Sequence[Row],
    label: str,
    axis: str,
    *,
    middle: float | None = 0.0,
    span: tuple[float, float] | None = None,
    in_percent: bool = False,
    digits: int = 2,
    most: int = MAX_ROWS,
    heading: str = "",
) -> Picture:
    """Figures with their intervals: a row each, or of many all in one picture from left to right.

    Args:
        rows: ``ID score lower upper``, ``rank rank_lower rank_upper`` where they are known, and ``alike`` where it is
            known which cannot be told apart from the first; an end may be infinite, or None where there is no interval.
        label: what the picture shows.
        axis: what the figures are.
        middle: the value that is marked, such as no difference.
        span: the ends of the axis; those of the figures when None.
        in_percent: whether they are shares of one.
        digits: decimals of the figures.
        most: how many have a row each.
        heading: above the picture.
    """
    ends = [tuple(row["score"] if row[end] is None else row[end] for end in ("lower", "upper")) for row in rows]
    known = [x for row, two in zip(rows, ends, strict=True) for x in (row["score"], *two) if math.isfinite(x)]
    low, high = span or room_around(min(known), max(known))
    many = len(rows) > most
    value, place = ("y", "x") if many else ("x", "y")
    shown = names([str(row["ID"]) for row in rows])
    dots = []
    for at, (row, two) in enumerate(zip(rows, ends, strict=True)):
        clipped = [min(high, max(low, end)) for end in two]
        tip = _interval_words({**row, "ID": shown[at]}, two, percent if in_percent else lambda x: number(x, digits))
        dot = {value: row["score"], place: at + many, f"{value}_low": clipped[0], f"{value}_high": clipped[1]}
        dots.append({**dot, "tip": tip, "r": max(1.0, min(5.0, 600 / len(rows)))})
    alike = [dot for dot, row in zip(dots, rows, strict=True) if row.get("alike")]
    apart = [dot for dot, row in zip(dots, rows, strict=True) if not row.get("alike")]
    marks = [Marks("dots", dots)]
    if alike and apart:
        marks = [Marks("dots", alike, "good", _ALIKE), Marks("dots", apart)]
    if middle is not None and low <= middle <= high:
        marks.insert(0, Marks("rule", [{value: middle}], "soft"))
    figures = Axis(axis, low, high, in_percent=in_percent)
    if many:
        places = Axis("place", 0.5, len(rows) + 0.5, ticks=(1, (len(rows) + 1) // 2, len(rows)))
        return Picture(label, places, figures, marks, heading, height=380)
    return Picture(label, figures, Axis(names=shown), marks, heading)


def _interval_words(row: Row, ends: Sequence[float], write: Any) -> str:
    shown = [write(end) if math.isfinite(end) else "no limit" for end in ends]
    text = f"{row['ID']}: {write(row['score'])} ({shown[0]} to {shown[1]})"
    if row.get("rank") is None:
        return text
    if row["rank_lower"] is None:
        return f"{text}, rank {row['rank']:,}"
    return text + ", rank {rank:,} ({rank_lower:,} to {rank_upper:,})".format_map(row)


def rate_picture(rows: Iterable[tuple[str, float | None, Sequence[float] | None]], axis: str) -> Picture | None:
    """Win rates with their intervals, where they have one; None without any."""
    known = [
        {"ID": name, "score": rate, "lower": interval and interval[0], "upper": interval and interval[1]}
        for name, rate, interval in rows
        if rate is not None
    ]
    return intervals(known, f"{axis} with intervals", axis, middle=0.5, span=(0, 1), in_percent=True) if known else None


def score_picture(rows: Sequence[Row], heading: str = "") -> Picture:
    """Scores with their intervals, best first."""
    return intervals(rows, "Scores with intervals, best first", "score, in logits", heading=heading)


def shares(rows: Mapping[str, Mapping[str, int]], words: Mapping[str, str], label: str) -> Picture:
    """Counts of several kinds as one bar each, of equal length.

    Args:
        rows: by name, the counts by kind; the style sheet has a colour for each kind.
        words: what the kinds are called.
        label: what the picture shows.
    """
    bars: dict[str, list[Row]] = {kind: [] for kind in words}
    for place, counts in enumerate(rows.values()):
        total = sum(counts.values())
        done = 0
        for kind, count in counts.items():
            if count:
                low, high = done / total, (done + count) / total
                tip = f"{words[kind]}: {count:,} of {total:,} ({percent(count / total)})"
                bar = {"x_low": low, "x_high": high, "x": (low + high) / 2, "y": place, "tip": tip}
                text = f"{count:,}"
                fits = (high - low) * _NARROW_PLOT > 8 * len(text) + 6
                bars[kind].append({**bar, "text": text if fits else "", "ink": f"var(--on-{kind}, var(--page))"})
            done += count
    marks = [Marks("bars", found, f"of-{kind}", words[kind]) for kind, found in bars.items() if found]
    return Picture(label, Axis(), Axis(names=names(list(rows))), marks)


def run_lines(
    x: Sequence[float], series: Mapping[str, Sequence[float | None]], label: str, target: float | None = None
) -> Picture:
    """Figures of at most 1 along the comparisons of a run, with the target they have to reach."""
    marks = []
    for (name, values), colour in zip(series.items(), ("mark", "other"), strict=False):
        points = [
            {"x": at, "y": value, "r": 3.0, "tip": f"{at:,} comparisons: {name} {number(value)}"}
            for at, value in zip(x, values, strict=True)
            if value is not None
        ]
        if points:
            marks += [Marks("line", points, colour, name), Marks("dots", points, colour)]
    low = min([0.0, *(row["y"] for one in marks for row in one.rows)])
    if target is not None:
        rule = {"y": target, "text": f"target {target:g}", "ink": "var(--soft)"}
        marks.append(Marks("rule", [rule], "good", dashed=True))
    last = max(x) or 1
    return Picture(label, Axis("comparisons", 0, last, ticks=(0, last // 2, last)), Axis("", low, 1), marks)


def calibration_picture(rows: Sequence[Row], label: str, across: str, up: str) -> Picture:
    """What was stated against what was observed, with the line where they are the same.

    Args:
        rows: ``stated observed lower upper n``, from the least that was stated on.
        label: what the picture shows.
        across: what is stated.
        up: what is observed.
    """
    most = max(row["n"] for row in rows)
    dots = [
        {"x": row["stated"], "y": row["observed"], "y_low": row["lower"], "y_high": row["upper"]}
        | {"r": 3 + 5 * math.sqrt(row["n"] / most)}
        | {
            "tip": f"stated {percent(row['stated'])}, observed {percent(row['observed'])} "
            f"({percent(row['lower'])} to {percent(row['upper'])}), {row['n']:,} answers"
        }
        for row in rows
    ]
    same = Marks("line", [{"x": 0, "y": 0}, {"x": 1, "y": 1}], "good", dashed=True)
    quarters = (0, 0.25, 0.5, 0.75, 1)
    x = Axis(across, ticks=quarters, in_percent=True)
    y = Axis(up, ticks=quarters, in_percent=True)
    return Picture(label, x, y, [same, Marks("dots", dots)], height=308)


def judge_fit_picture(rows: Sequence[Row]) -> Picture:
    """The judges' infit against how often they agree with the scale; misfits have another colour.

    Args:
        rows: ``judge_id comparisons infit agreement misfit`` of each judge.
    """
    most = max(row["comparisons"] for row in rows)

    def dot(row: Row) -> Row:
        """Larger for more comparisons."""
        words = f"agrees with the scale in {percent(row['agreement'])} of {row['comparisons']:,} comparisons"
        tip = f"{row['judge_id']}: infit {number(row['infit'])}, {words}"
        radius = 3 + 5 * math.sqrt(row["comparisons"] / most)
        return {"x": row["agreement"], "y": row["infit"], "r": radius, "tip": tip}

    misfits = [dot(row) for row in rows if row["misfit"]]
    others = [dot(row) for row in rows if not row["misfit"]]
    marks = [Marks("dots", others, "soft", "as expected" if misfits else "")] if others else []
    if misfits:
        marks.append(Marks("dots", misfits, "mark", "misfit"))
    expected = Marks("rule", [{"y": 1.0}], "soft")
    shares = [row["agreement"] for row in rows]
    infits = [1.0, *(row["infit"] for row in rows)]
    x = Axis("decisions for the text with the higher score", max(0.0, min(shares) - 0.05), 1.0, in_percent=True)
    y = Axis("infit", max(0.0, min(infits) - 0.1), max(infits) + 0.1)
    return Picture("How well each judge fits the scale", x, y, [expected, *marks], height=308)


def against_judge(label: str, title: str, marks: Sequence[Marks]) -> Picture:
    """Figures of texts against the judge's scores, with a little room around them.

    Args:
        label: what the picture shows.
        title: what the figures are.
        marks: dots, with intervals from bottom to top where these are known.
    """
    rows = [row for each in marks for row in each.rows]
    heights = [row[name] for row in rows for name in ("y", "y_low", "y_high") if name in row]
    x = _axis_around("the judge's score, in logits", [row["x"] for row in rows])
    return Picture(label, x, _axis_around(title, heights), marks, height=340)


def _axis_around(title: str, values: Sequence[float]) -> Axis:
    """An axis with a little room at the ends of its figures."""
    low, high = room_around(min(values), max(values))
    room = 0.05 * (high - low)
    return Axis(title, low - room, high + room)


def room_around(low: float, high: float) -> tuple[float, float]:
    """The ends of the axis: those of the data, or room around them where they are all but equal."""
    if high - low > 1e-6 * max(1.0, abs(low), abs(high)):
        return low, high
    room = max(1.0, abs(low) / 2)
    return low - room, high + room
