"""What all charts share: the library, colours, titles, and names that are safe to show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from pairscale.core.errors import MissingExtraError

if TYPE_CHECKING:
    import altair as alt

INK, SOFT, LINE, MARK = "#1c2430", "#5b6472", "#e4e7ec", "#2f6fde"
COLOURS = ("#0b62a8", "#d2500a", "#0a7f5c", "#a8327e", "#b07a00", "#5a4fcf", "#3d8fb5", "#5c4813")
MOST_NAMES = 120
"""So many items are named; of more, the names could not be read."""

_LONGEST_NAME = 200
_LINE_LENGTH = 104
_FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"


def load_altair() -> Any:
    """The library that draws, imported only when something is drawn.

    Raises:
        MissingExtraError: when it is not installed.
    """
    try:
        import altair as alt
    except ModuleNotFoundError as error:
        raise MissingExtraError("a chart", "plots") from error
    return alt


def names(ids: Sequence[str]) -> list[str]:
    """Ids as a chart can show them: on one line, of printable characters, not endless, and still all different."""
    shown = []
    for name in ids:
        plain = "".join(letter if letter.isprintable() else "�" for letter in " ".join(name.split())) or "�"
        shown.append(plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…")
    if len(set(shown)) == len(shown):
        return shown
    often = Counter(shown)
    return [name if often[name] == 1 else f"{name} ({at})" for at, name in enumerate(shown, start=1)]


def finite(value: float | None) -> float | None:
    """The number, if a chart can show it."""
    return float(value) if value is not None and math.isfinite(value) else None


def percent(share: float) -> str:
    """A share, as people say it."""
    return f"{100 * share:g}%"


def dressed(chart: Any, title: str, notes: Sequence[str], description: str) -> alt.TopLevelMixin:
    """The chart with its title, the lines below it, and one look: dark on white."""
    library = load_altair()
    lines = [line for note in notes if note for line in wrap(note, _LINE_LENGTH)]
    heading = library.TitleParams(text=wrap(title, 70) or "", subtitle=lines, anchor="start", frame="group", offset=18)
    chart = chart.properties(title=heading, description=description, background="#ffffff", padding=16)
    chart = chart.configure(font=_FONT).configure_view(stroke=None)
    chart = chart.configure_title(
        fontSize=17, color=INK, subtitleColor=SOFT, subtitleFontSize=12, subtitleLineHeight=16, subtitlePadding=6
    )
    chart = chart.configure_axis(
        labelColor=INK, titleColor=SOFT, gridColor=LINE, domainColor=LINE, tickColor=LINE, labelFontSize=11,
        titleFontSize=11, titleFontWeight="normal",
    )  # fmt: skip
    complete: alt.TopLevelMixin = chart.configure_legend(
        labelColor=INK, titleColor=SOFT, titleFontWeight="normal", labelLimit=260, symbolOpacity=1
    )
    return complete
