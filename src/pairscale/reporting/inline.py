"""Charts of results in notebooks: HTML and SVG with their style, without a script or a library that draws."""

from __future__ import annotations

from html import escape
from typing import Any

from pairscale.core.errors import InputError
from pairscale.reporting.charts import pictures_of
from pairscale.reporting.svg import picture_css, svg

_MOST_PICTURES = 4
_DRAWN = {"scores", "win rates"}
# Colours that are readable on light and on dark; text has that of the notebook.
_COLOURS = """
.pairscale-result { --ink: currentColor; --soft: color-mix(in srgb, currentColor 70%, transparent);
  --line: color-mix(in srgb, currentColor 16%, transparent); --mark: #3f7fe8; --page: transparent; }
.pairscale-result .picture { max-width: 44rem; margin: .8em 0 .4em; }
"""


def chart_html(result: Any) -> str:
    """The first chart of a result for a notebook; empty where there is nothing to draw.

    Args:
        result: A result that has charts.
    """
    if result._charts[0] not in _DRAWN:
        return ""
    try:
        pictures, notes = pictures_of(result)
    except InputError:  # nothing was decided yet
        return ""
    more = len(pictures) - _MOST_PICTURES
    said = [*notes, *([f"{more:,} more groups are not drawn; .plot() draws them all."] if more > 0 else [])]
    drawn = "".join(svg(picture) for picture in pictures[:_MOST_PICTURES])
    return f"<style>{_COLOURS}{picture_css(in_cell=True)}</style>{drawn}<p><small>{escape(' '.join(said))}</small></p>"
