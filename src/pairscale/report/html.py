"""A ranking as one HTML file: it opens from the disk, needs no network, and prints well."""

from __future__ import annotations

import math
import os
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from pairscale._version import __version__
from pairscale.files import replacing
from pairscale.samples import read_samples_df

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pairscale.models import BTFit
    from pairscale.tables import Table

__all__ = ["write_ranking_report"]

_ROW, _TOP, _LEFT, _RIGHT, _WIDTH = 22, 26, 120, 24, 760


def write_ranking_report(
    path: str | os.PathLike[str],
    fit: BTFit,
    samples: Table | None = None,
    *,
    title: str = "Ranking",
    judge: str | None = None,
) -> Path:
    """Write a ranking as a self-contained HTML page: headline, chart with intervals, table, texts, method.

    Everything that comes from outside (ids, texts, the title) is escaped.

    Args:
        path: the file to write.
        fit: the fitted model.
        samples: the texts, to be read beside the ranking; left out when None.
        title: what was asked.
        judge: who judged.
    """
    rows = list(fit.theta.iter_rows(named=True))
    texts = {} if samples is None else dict(read_samples_df(samples, "ID", "text").select("ID", "text").iter_rows())
    page = _PAGE.substitute(
        title=escape(title),
        headline=escape(_headline(fit, rows, judge)),
        chart=_chart(rows),
        head="".join(
            f"<th scope='col'>{escape(name)}</th>" for name in (*_COLUMNS.values(), *(["text"] if texts else []))
        ),
        rows="\n".join(_table_row(row, texts) for row in rows),
        method=escape(_method(fit, rows)),
        notices="".join(f"<li>{escape(notice)}</li>" for notice in fit.notices),
        made=escape(f"pairscale {__version__}, {fit.provenance.created_at[:19]} UTC"),
    )
    target = Path(path)
    with replacing(target) as temporary:
        temporary.write_text(page, "utf-8")
    return target


_COLUMNS = {
    "rank": "rank", "ID": "ID", "theta": "score", "se_mean": "± se", "lower": "from", "upper": "to",
    "wins": "wins", "comparisons": "of",
}  # fmt: skip


def _headline(fit: BTFit, rows: list[dict[str, Any]], judge: str | None) -> str:
    comparisons = sum(row["comparisons"] for row in rows) // 2
    by = f" by the judge “{judge}”" if judge else ""
    text = f"{len(rows)} texts were ranked from {comparisons:,} comparisons{by}. "
    if len(fit.components) > 1:
        return text + f"They fall into {len(fit.components)} groups without a comparison between them."
    text += f"{rows[0]['ID']} comes first, {rows[-1]['ID']} last. "
    return text if fit.reliability is None else text + f"The reliability of the scale is {fit.reliability:.2f}."


def _method(fit: BTFit, rows: list[dict[str, Any]]) -> str:
    return (
        f"Scores are abilities of a Bradley–Terry model in logits, centred at 0 (engine {fit.engine}): a text that is "
        "one logit above another wins against it in 73 of 100 comparisons. The bars are intervals for the difference "
        f"to the mean of all {len(rows)} texts. Reliability is the share of the variance of the scores that is not "
        "measurement error; it says how repeatable the ranking is with this judge, not whether the judge is right."
    )


def _chart(rows: list[dict[str, Any]]) -> str:
    """The scores with their intervals, best on top, as SVG."""
    low: float = min(row["lower"] for row in rows)
    high: float = max(row["upper"] for row in rows)
    span = (high - low) or 1.0
    height = _TOP + _ROW * len(rows) + 8

    def x(value: float) -> float:
        return _LEFT + (value - low) / span * (_WIDTH - _LEFT - _RIGHT)

    label = "Scores with intervals, best first; the table below holds the same figures"
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">']
    for tick in _ticks(low, high):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP - 6}" y2="{height - 6}"/>')
        parts.append(f'<text class="tick" x="{x(tick):.1f}" y="{_TOP - 12}" text-anchor="middle">{tick:g}</text>')
    for index, row in enumerate(rows):
        y = _TOP + _ROW * index + _ROW / 2
        name = escape(row["ID"] if len(row["ID"]) <= 16 else row["ID"][:15] + "…")
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
        parts.append(f'<line class="bar" x1="{x(row["lower"]):.1f}" x2="{x(row["upper"]):.1f}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle cx="{x(row["theta"]):.1f}" cy="{y}" r="5"/>')
    return "\n".join([*parts, "</svg>"])


def _ticks(low: float, high: float) -> list[float]:
    step = 10 ** math.floor(math.log10((high - low) or 1.0))
    step = next(s for s in (step / 5, step / 2, step, 2 * step, 5 * step) if (high - low) / s <= 8)
    return [round(n * step, 10) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _table_row(row: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    cells = []
    for name in _COLUMNS:
        value = row[name]
        shown = "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
        cells.append(f"<td{'' if name == 'ID' else ' class=n'}>{escape(shown)}</td>")
    if texts:
        text = texts.get(row["ID"], "")
        cells.append(f"<td><details><summary>{escape(text[:90])}</summary><p>{escape(text)}</p></details></td>")
    return f"<tr>{''.join(cells)}</tr>"


_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1c2430; --soft: #667085; --line: #e4e7ec; --mark: #2f6fde; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #333b47; --mark: #7aa7ff; --page: #12161c; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 62rem;
       margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .4rem; }
h2 { font-size: 1.1rem; margin-top: 2.2rem; }
.lead { font-size: 1.1rem; color: var(--soft); margin-top: 0; }
svg { width: 100%; height: auto; font-size: 12px; fill: var(--ink); }
.grid { stroke: var(--line); } .tick { fill: var(--soft); }
.bar { stroke: var(--mark); stroke-width: 3; stroke-linecap: round; opacity: .45; } circle { fill: var(--mark); }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th { text-align: left; color: var(--soft); font-weight: 600; }
th, td { padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
summary { cursor: pointer; } details[open] summary { color: var(--soft); } details p { white-space: pre-wrap; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
</style>
</head>
<body>
<h1>$title</h1>
<p class="lead">$headline</p>
<h2>Scores</h2>
$chart
<h2>Table</h2>
<table><thead><tr>$head</tr></thead><tbody>
$rows
</tbody></table>
<h2>How to read it</h2>
<p>$method</p>
<ul>$notices</ul>
<footer>Made by $made.</footer>
</body>
</html>
""")
