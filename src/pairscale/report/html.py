"""A ranking as one HTML file: it opens from the disk, needs no network, and prints well."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale._version import __version__
from pairscale.errors import InputError
from pairscale.files import replacing
from pairscale.samples import read_samples_df

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from pairscale.adaptive import AdaptiveResult
    from pairscale.models import BTFit
    from pairscale.tables import Table

__all__ = ["write_ranking_report"]

_Row: TypeAlias = "Mapping[str, Any]"

_ROW, _TOP, _RIGHT, _WIDTH = 22, 44, 24, 760
_LONGEST_LABEL = 26
_PREVIEW = 160
_TIED_NAMES = 3


def write_ranking_report(
    path: str | os.PathLike[str],
    fit: BTFit | AdaptiveResult,
    samples: Table | None = None,
    *,
    title: str = "Ranking",
    judge: str | None = None,
) -> Path:
    """Write a ranking as a self-contained HTML page: headline, chart with intervals, table, texts, method.

    Everything that comes from outside (ids, texts, the title) is escaped. Groups that were never compared with each
    other have a chart each, and no ranks.

    Args:
        path: the file to write.
        fit: a fitted Bradley–Terry model, or an adaptive run.
        samples: the texts, to be read beside the ranking; left out when None.
        title: what was asked.
        judge: who judged.
    """
    ranking = _ranking(fit)
    rows = list(ranking.theta.iter_rows(named=True))
    texts = {} if samples is None else dict(read_samples_df(samples, "ID", "text").select("ID", "text").iter_rows())
    several = ranking.n_groups > 1
    columns = {"component": "group"} | _COLUMNS if several else {"rank": "rank"} | _COLUMNS
    page = _PAGE.substitute(
        title=escape(title),
        headline=escape(_headline(ranking, rows, judge)),
        charts="\n".join(_charts(rows, several=several)),
        head="".join(_heading(*column) for column in columns.items()) + ("<th scope='col'>text</th>" if texts else ""),
        rows="\n".join(_table_row(row, list(columns), texts) for row in rows),
        method=escape(ranking.method),
        notices=_notices(ranking.notices),
        made=escape(f"pairscale {__version__}, {ranking.created_at[:16].replace('T', ' ')} UTC"),
    )
    target = Path(path)
    with replacing(target) as temporary:
        temporary.write_text(page, "utf-8")
    return target


@dataclass(frozen=True, slots=True)
class _Ranking:
    """What the page shows, whichever model it comes from."""

    theta: pl.DataFrame
    reliability: float | None
    method: str
    notices: Sequence[str]
    created_at: str
    n_groups: int = 1


def _ranking(fit: BTFit | AdaptiveResult) -> _Ranking:
    from pairscale.adaptive import AdaptiveResult

    if isinstance(fit, AdaptiveResult):
        return _adaptive(fit)
    groups = len(fit.components)
    method = _METHOD.format(engine=fit.engine, group=" of its group" if groups > 1 else "")
    return _Ranking(fit.theta, fit.reliability, method, fit.notices, fit.provenance.created_at, groups)


def _adaptive(result: AdaptiveResult) -> _Ranking:
    import polars as pl

    if not result.refits.height:
        raise InputError("this run has no comparison yet, so there is no ranking to report")
    log = result.logs["step_log"].filter(pl.col("pair_id").is_not_null())
    winners = log.select(ID=pl.when(pl.col("Y") == 1).then("A_id").otherwise("B_id"))
    wins = winners.group_by("ID").len("wins")
    theta = (
        result.items.join(wins, on="ID", how="left", maintain_order="left")
        .with_row_index("rank", offset=1)
        .select(
            "rank", "ID", pl.col("wins").fill_null(0), theta="theta_mean", se_mean="theta_sd", lower="theta_p2.5",
            upper="theta_p97.5", comparisons="degree",
        )
    )  # fmt: skip
    last = result.refits.row(-1, named=True)
    notices = [f"the judge gave no valid answer {result.state.invalid:,} times"] if result.state.invalid else []
    return _Ranking(theta, last["reliability_EAP"], _METHOD_BAYES, notices, last["timestamp"].isoformat())


_COLUMNS = {
    "ID": "ID", "theta": "score", "se_mean": "± se", "lower": "from", "upper": "to", "wins": "wins",
    "comparisons": "of",
}  # fmt: skip

_METHOD = (
    "Scores are abilities of a Bradley–Terry model in logits, with mean 0 (engine {engine}): a text that is one logit "
    "above another wins 73 of 100 comparisons with it. The bars are intervals for the difference to the mean{group}, "
    "and ± se is the standard error of that difference. Reliability is the share of the variance of the scores that "
    "is not measurement error; it says how repeatable the ranking is with this judge, not whether the judge is right."
)


_METHOD_BAYES = (
    "Each pair was chosen by what was known so far. Scores are posterior means of a Bayesian Bradley–Terry model in "
    "logits, with mean 0, that allows for lapses of the judge and a preference for the first position: a text that is "
    "one logit above another wins 73 of 100 careful comparisons with it. The bars are 95 % credible intervals, and ± "
    "se is the posterior standard deviation. Reliability is the share of the variance of the scores that is not "
    "uncertainty; it says how repeatable the ranking is with this judge, not whether the judge is right."
)


def _headline(ranking: _Ranking, rows: Sequence[_Row], judge: str | None) -> str:
    comparisons = sum(row["comparisons"] for row in rows) // 2
    by = f" by the judge “{judge}”" if judge else ""
    text = f"{len(rows):,} texts, {comparisons:,} comparisons{by}. "
    if ranking.n_groups > 1:
        return text + (
            f"They fall into {ranking.n_groups} groups without a comparison between them; a score can only be "
            "compared with the others of its group."
        )
    text += f"{_place(rows, rows[0]['rank'], 'first')}"
    if rows[-1]["rank"] != rows[0]["rank"]:
        text += f", {_place(rows, rows[-1]['rank'], 'last')}"
    known = ranking.reliability
    return f"{text}." if known is None else f"{text}. The reliability of the scale is {known:.2f}."


def _place(rows: Sequence[_Row], rank: int, word: str) -> str:
    names = [row["ID"] for row in rows if row["rank"] == rank]
    if len(names) == 1:
        return f"{names[0]} comes {word}"
    if len(names) > _TIED_NAMES:
        return f"{len(names):,} texts share the {word} place"
    return f"{', '.join(names[:-1])} and {names[-1]} share the {word} place"


def _notices(notices: Sequence[str]) -> str:
    if not notices:
        return ""
    return f"<h2>To be careful with</h2>\n<ul>{''.join(f'<li>{escape(notice)}</li>' for notice in notices)}</ul>"


# The chart


def _charts(rows: Sequence[_Row], *, several: bool) -> list[str]:
    """A chart for every group; their scales share nothing, so neither do their axes."""
    left = 30 + 7 * max(6, *(len(_label(row)) for row in rows))
    if not several:
        return [_chart(rows, left)]
    groups = groupby(rows, key=lambda row: row["component"])
    return [f"<h3>Group {number}</h3>\n{_chart(list(members), left)}" for number, members in groups]


def _label(row: _Row) -> str:
    name = str(row["ID"])
    return name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"


def _chart(rows: Sequence[_Row], left: int) -> str:
    """The scores with their intervals, best on top, as SVG."""
    ends = [(_or(row["lower"], row["theta"]), _or(row["upper"], row["theta"])) for row in rows]
    low, high = _range(min(low for low, _ in ends), max(high for _, high in ends))
    height = _TOP + _ROW * len(rows) + 8

    def x(value: float) -> str:
        return f"{left + (value - low) / (high - low) * (_WIDTH - left - _RIGHT):.1f}"

    label = "Scores with intervals, best first; the table below holds the same figures"
    parts = [
        f'<div class="wide"><svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">',
        f'<text class="tick" x="{_WIDTH - _RIGHT}" y="12" text-anchor="end">score, in logits</text>',
    ]
    for tick in _ticks(low, high):
        kind = "grid zero" if tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x(tick)}" x2="{x(tick)}" y1="{_TOP - 6}" y2="{height - 6}"/>')
        sign = "−" if tick < 0 else ""
        parts.append(
            f'<text class="tick" x="{x(tick)}" y="{_TOP - 12}" text-anchor="middle">{sign}{abs(tick):g}</text>'
        )
    for index, (row, (lower, upper)) in enumerate(zip(rows, ends, strict=True)):
        y = _TOP + _ROW * index + _ROW // 2
        figures = f"{_number(row['theta'])} ({_number(lower)} to {_number(upper)})"
        parts.append(f"<g><title>{escape(row['ID'])}: {figures}</title>")
        parts.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{escape(_label(row))}</text>')
        parts.append(f'<line class="bar" x1="{x(lower)}" x2="{x(upper)}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle cx="{x(row["theta"])}" cy="{y}" r="5"/></g>')
    return "\n".join([*parts, "</svg></div>"])


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _range(low: float, high: float) -> tuple[float, float]:
    """The ends of the axis: those of the data, or room around them where they are all but equal."""
    if high - low > 1e-6 * max(1.0, abs(low), abs(high)):
        return low, high
    room = max(1.0, abs(low) / 2)
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """Three to nine round numbers between the ends."""
    power = math.floor(math.log10(high - low))
    digits = max(0, 1 - power)
    step = next(s for s in (10.0**power * f for f in (0.2, 0.5, 1, 2)) if (high - low) / s <= 8)
    # Adding 0.0 turns the -0.0 of rounding into 0.0.
    return [round(n * step, digits) + 0.0 for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


# The table


def _heading(name: str, shown: str) -> str:
    return f"<th scope='col'{_kind(name)}>{escape(shown)}</th>"


def _kind(name: str) -> str:
    return "" if name == "ID" else " class='n'"


def _number(value: float) -> str:
    return f"{value:z.2f}".replace("-", "−")


def _table_row(row: _Row, columns: Sequence[str], texts: Mapping[str, str]) -> str:
    cells = []
    for name in columns:
        value = row[name]
        shown = "" if value is None else _number(value) if isinstance(value, float) else str(value)
        kind = " class='id'" if name == "ID" and len(shown) <= _LONGEST_LABEL else _kind(name)
        cells.append(f"<td{kind}>{escape(shown)}</td>")
    if texts:
        cells.append(f"<td class='text'>{_text(texts.get(row['ID'], ''))}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _text(text: str) -> str:
    if not text:
        return ""
    preview = " ".join(text[:_PREVIEW].split())
    return f"<details><summary>{escape(preview)}</summary><p>{escape(text)}</p></details>"


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
       margin: 2.5rem auto; padding: 0 1.2rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .4rem; }
h2 { font-size: 1.1rem; margin-top: 2.2rem; } h3 { font-size: 1rem; color: var(--soft); margin-bottom: 0; }
.lead { font-size: 1.1rem; color: var(--soft); margin-top: 0; }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 34rem; height: auto; font-size: 12px; fill: var(--ink); }
.grid { stroke: var(--line); } .zero { stroke: var(--soft); } .tick { fill: var(--soft); }
.bar { stroke: var(--mark); stroke-width: 3; stroke-linecap: round; opacity: .45; } circle { fill: var(--mark); }
g:hover .bar { opacity: 1; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th { text-align: left; color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:hover { background: color-mix(in srgb, var(--mark) 7%, transparent); }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td:not(.n, .id, .text) { min-width: 14rem; } .id { white-space: nowrap; }
.text { width: 60%; min-width: 14rem; max-width: 0; }
summary { cursor: pointer; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
details[open] summary { color: var(--soft); } details p { white-space: pre-wrap; margin: .5rem 0; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
@media print { body { margin: 0; max-width: none; } tr, g { break-inside: avoid; } }
</style>
</head>
<body>
<h1>$title</h1>
<p class="lead">$headline</p>
<h2>Scores</h2>
$charts
<h2>Table</h2>
<div class="wide"><table><thead><tr>$head</tr></thead><tbody>
$rows
</tbody></table></div>
$notices
<h2>How to read it</h2>
<p>$method</p>
<footer>Made by $made.</footer>
</body>
</html>
""")
