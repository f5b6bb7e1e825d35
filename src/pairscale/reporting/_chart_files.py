"""Charts in files: pictures, a page that needs no network, or the chart itself."""

from __future__ import annotations

import json
import os
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from pairscale.core.errors import FileFormatError, MissingExtraError
from pairscale.core.files import replacing
from pairscale.core.options import require_suffix

if TYPE_CHECKING:
    import altair as alt

CHART_SUFFIXES = (".svg", ".png", ".html", ".json")
"""The endings that :func:`save_chart` knows."""

_SCALE = 2.0  # pixels of a png for one of the chart, for screens and print of today
_NEEDED = ("altair", "vl_convert")


def save_chart(chart: alt.TopLevelMixin, path: str | os.PathLike[str]) -> Path:
    """Write a chart by the ending of the file's name, whole or not at all.

    ``svg`` and ``png`` are pictures. ``html`` is a page with tooltips that holds all it needs, forbids itself the
    network, and shows ids as text whatever they contain. ``json`` is the Vega-Lite specification, with its data.

    Args:
        chart: one of this package's charts, or any other of altair.
        path: the file to write.

    Raises:
        FileFormatError: when the ending is unknown, or the file cannot be written.
        MissingExtraError: when altair or what it draws with is not installed.
    """
    target = require_chart_file(path)
    suffix = target.suffix.lower()
    with replacing(target) as temporary:
        if suffix == ".json":
            temporary.write_text(json.dumps(chart.to_dict(), ensure_ascii=False, indent=1), "utf-8")
        elif suffix == ".html":
            temporary.write_text(_page(chart), "utf-8")
        elif suffix == ".svg":
            temporary.write_text(_picture(chart), "utf-8")
        else:
            chart.save(str(temporary), format="png", scale_factor=_SCALE)
    return target


def require_chart_file(path: str | os.PathLike[str], what: str = "") -> Path:
    """The file to write a chart to, refused before any work is done rather than after it.

    Args:
        path: the file.
        what: where its name comes from, such as an option; it stands before the name in a message.

    Raises:
        InputError: when the ending is unknown, it is a folder, or its folder is missing.
        MissingExtraError: when what draws charts is not installed.
    """
    target = require_suffix(path, what or "the chart", CHART_SUFFIXES)
    name = f"{what} {path}".strip()
    if target.is_dir():
        raise FileFormatError(f"{name} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise FileFormatError(f"{name} cannot be written: there is no folder {target.parent}; make it first")
    if not os.access(target.parent, os.W_OK):
        raise FileFormatError(f"{name} cannot be written: the folder may not be written to")
    require_drawing("a chart")
    return target


def require_drawing(what: str) -> None:
    """Refuse what needs altair where it is not installed.

    Args:
        what: what needs it, such as a chart.

    Raises:
        MissingExtraError: when altair or what it draws with is not installed.
    """
    if any(find_spec(module) is None for module in _NEEDED):
        raise MissingExtraError(what, "plots")


@cache
def libraries() -> str:
    """The script that draws a chart in a page: Vega, Vega-Lite and Vega-Embed, which it makes known as vegaEmbed."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script")


def in_script(specification: object) -> str:
    """JSON for a script element, which nothing in it can end, whatever an id contains."""
    text = json.dumps(specification, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _picture(chart: alt.TopLevelMixin) -> str:
    """The chart as SVG, with its description for those who do not see it."""
    from io import StringIO

    drawn = StringIO()
    chart.save(drawn, format="svg")
    said = escape(str(chart.to_dict().get("description", "")))
    return drawn.getvalue().replace("<svg ", f'<svg role="graphics-document" aria-label="{said}" ', 1)


def _page(chart: alt.TopLevelMixin) -> str:
    """A page that holds the libraries and the chart; it opens from the disk."""
    spec = chart.to_dict()
    spec.pop("$schema", None)  # an address, which nothing here would look up
    title = spec.get("title")
    text = title.get("text", "") if isinstance(title, dict) else title or ""
    return _PAGE.substitute(
        title=escape(" ".join(text) if isinstance(text, list) else str(text)),
        description=escape(str(spec.get("description", ""))),
        spec=in_script(spec),
        libraries=libraries(),
    )


_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'; img-src data: blob:">
<meta name="description" content="$description">
<title>$title</title>
<style>
body { margin: 1rem; background: #fff; color: #1c2430; font: 16px/1.5 system-ui, sans-serif; overflow-x: auto; }
</style>
</head>
<body>
<div id="chart"></div>
<noscript>This chart needs JavaScript, which is in this very file; nothing is loaded from elsewhere.</noscript>
<script type="application/json" id="spec">$spec</script>
<script>
$libraries
</script>
<script>
{
  const spec = JSON.parse(document.getElementById("spec").textContent);
  const actions = {export: true, source: false, compiled: false, editor: false};
  vegaEmbed("#chart", spec, {mode: "vega-lite", renderer: "svg", ast: true, actions});
}
</script>
</body>
</html>
""")
