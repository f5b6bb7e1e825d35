"""The tables of ``make validate-claims``: one per demand, from the rows that are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from scipy.stats import t as student

__all__ = ["MISSPECIFIED", "Cell", "Figures", "Mean", "figures", "tables"]

MISSPECIFIED = ("pair_effects", "noisy_texts")
"""Judges for which the model is wrong by construction."""

OFF, COVERED, COVERED_WRONG, TOO_WIDE, RATIO, RATIO_WIDE = 0.03, 0.93, 0.90, 0.985, 1.05, 0.60
_FEWEST = 3  # runs of a cell that is shown
_WIDTH = 126  # of a line of the page

_OF_RELIABILITY = "**Claimed less true reliability** (demand: within .03; in brackets the mean true reliability)."
_OF_COVERAGE = (
    "**Coverage of 95 % intervals** (demand: scores .93 to .985, ranks at least .93; at least .90 for pair effects and "
    "noisy texts; in brackets the mean width of the intervals of ranks)."
)
_OF_COMPARISONS = (
    "**Comparisons at the stop**, and as a share of those of the document's preset (demand: at most 1.05; .6 for a "
    "clean judge at SD 2.5). Marked \\*: the document's preset is itself off by more than .03, by as much as the last "
    "columns say, and the comparisons are those that our run needed to reach the document's true reliability."
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One cell of the demands."""

    judge: str
    n: int
    sd: float
    selector: str
    runs: int

    @property
    def name(self) -> str:
        return f"{self.judge}-n{self.n}-sd{self.sd:g}-{self.selector}"

    @property
    def label(self) -> str:
        return f"{self.judge.replace('_', ' ')}, N = {self.n}, SD {self.sd:g}, `{self.selector}`"


@dataclass(frozen=True)
class Mean:
    """A mean, and half of its 99 % interval (Student's t)."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        found = np.array(list(values), dtype=np.float64)
        if len(found) < 2:
            return cls(float(found.mean()) if len(found) else math.nan, math.inf)
        half = float(student.ppf(0.995, len(found) - 1)) * float(found.std(ddof=1)) / math.sqrt(len(found))
        return cls(float(found.mean()), half)

    def told(self, form: str) -> str:
        return f"{self.mean:{form}} ± {self.half:{form.lstrip('+')}}"


@dataclass(frozen=True)
class Figures:
    """What the runs of a cell show.

    Attributes:
        cell: of which cell.
        runs: of our preset.
        off: claimed less true reliability.
        theta: share of the scores inside their 95 % intervals.
        rank: the same of ranks.
        rank_width: mean width of the intervals of ranks.
        true: mean true reliability.
        comparisons: mean number at the stop.
        document: claimed less true of the document's preset.
        ratio: our comparisons, as a share of the document's.
        missed: one sentence per demand whose bound lies outside the 99 % interval.
        doubtful: one per demand whose bound the mean is beyond, and the interval holds.
    """

    cell: Cell
    runs: int
    off: Mean
    theta: Mean
    rank: Mean
    rank_width: float
    true: float
    comparisons: float
    document: Mean
    ratio: Mean
    missed: tuple[str, ...]
    doubtful: tuple[str, ...]

    @property
    def is_honest(self) -> bool:
        """Whether the document's preset is itself within .03, so that stops are compared as they are."""
        return not abs(self.document.mean) > OFF


def _needed(row: Row, true: float) -> float:
    """How many comparisons a run had made when its true reliability first was this high; if never, all of them."""
    before = [0.0, 0.0]
    for step in ([float(part) for part in point.split(":")] for point in row["path"].split()):
        if step[1] >= true:
            share = (true - before[1]) / (step[1] - before[1])
            return before[0] + share * (step[0] - before[0])
        before = step
    return float(row["comparisons"])


def figures(cell: Cell, rows: Sequence[Row]) -> Figures:
    """The figures of a cell, and which demands it misses."""
    ours = [row for row in rows if row["preset"] == "pairscale"]
    theirs = {row["seed"]: row for row in rows if row["preset"] == "pairwiseLLM"}
    both = [(row, theirs[row["seed"]]) for row in ours if row["seed"] in theirs]
    document = Mean.of(row["claimed"] - row["true"] for row in theirs.values())
    at_stop = not abs(document.mean) > OFF
    ratio = Mean.of(
        (row["comparisons"] if at_stop else _needed(row, other["true"])) / other["comparisons"] for row, other in both
    )
    off = Mean.of(row["claimed"] - row["true"] for row in ours)
    theta, rank = Mean.of(row["theta"] for row in ours), Mean.of(row["rank"] for row in ours)
    least = COVERED_WRONG if cell.judge in MISSPECIFIED else COVERED
    most = RATIO_WIDE if cell.judge == "clean" and cell.sd == 2.5 else RATIO
    # Per demand: how far the mean is beyond its bound, half of the interval, and what to say.
    beyond = [(abs(off.mean) - OFF, off.half, f"claims {off.told('+.3f')} (bound {OFF})")]
    for what, share in (("scores", theta), ("ranks", rank)):
        beyond.append((least - share.mean, share.half, f"covers {share.told('.3f')} of the {what} (at least {least})"))
    if cell.judge not in MISSPECIFIED:
        said = f"covers {theta.told('.3f')} of the scores (at most {TOO_WIDE})"
        beyond.append((theta.mean - TOO_WIDE, theta.half, said))
    said = f"needs {ratio.told('.2f')} of the document's comparisons (at most {most})"
    beyond.append((ratio.mean - most, ratio.half, said))
    missed = tuple(said for far, half, said in beyond if far > half)
    doubtful = tuple(said for far, half, said in beyond if 0 < far <= half)
    return Figures(
        cell, len(ours), off, theta, rank, _average(ours, "rank_width"), _average(ours, "true"),
        _average(ours, "comparisons"), document, ratio, missed, doubtful,
    )  # fmt: skip


def _average(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows])) if rows else math.nan


# In Markdown


def tables(cells: Sequence[Cell], rows: dict[str, list[Row]]) -> str:
    """One table per demand, a row for each judge, number of texts and spread; and which cells miss a demand."""
    found = [figures(cell, rows[cell.name]) for cell in cells]
    shown = [one for one in found if one.runs >= _FEWEST]
    if not shown:
        return f"no cell has {_FEWEST} runs yet"
    misses = [f"- {one.cell.label}: {'; '.join(one.missed)}." for one in shown if one.missed]
    doubts = [f"- {one.cell.label}: {'; '.join(one.doubtful)}." for one in shown if one.doubtful]
    least, most = min(one.runs for one in shown), max(one.runs for one in shown)
    asked = sum(min(one.runs, one.cell.runs) for one in found), sum(cell.runs for cell in cells)
    parts = [
        f"{asked[0]:,} of {asked[1]:,} runs of our preset, {least} to {most} per cell. "
        + " ".join(_together(shown, rows, wrong=wrong) for wrong in (False, True)),
        _OF_RELIABILITY,
        _table(shown, {"": lambda one: f"{one.off.told('+.3f')} ({one.true:.3f})"}),
        _OF_COVERAGE,
        _table(
            shown,
            {
                "scores": lambda one: one.theta.told(".3f"),
                "ranks": lambda one: f"{one.rank.told('.3f')} ({one.rank_width:.1f})",
            },
        ),
        _OF_COMPARISONS,
        _table(
            shown,
            {
                "": lambda one: f"{one.comparisons:.0f}",
                "share": lambda one: one.ratio.told(".2f") + ("" if one.is_honest else " \\*"),
                "document: claimed less true": lambda one: f"{one.document.mean:+.3f}",
            },
        ),
        f"**Cells that miss a demand by the rule**: {'none.' if not misses else f'{len(misses)} of {len(shown)}.'}",
    ]
    if misses:
        parts.append("\n".join(misses))
    if doubts:
        parts += [
            f"**Near the bound** in {len(doubts)}: the mean is beyond it, and the interval of the mean holds it.",
            "\n".join(doubts),
        ]
    return "\n\n".join(part if "|" in part or "\n" in part else fill(part, _WIDTH) for part in parts)


def _together(shown: Sequence[Figures], rows: dict[str, list[Row]], *, wrong: bool) -> str:
    """All runs of judges that the model fits, or does not, as one sentence."""
    cells = [one.cell for one in shown if (one.cell.judge in MISSPECIFIED) == wrong]
    ours = [row for cell in cells for row in rows[cell.name] if row["preset"] == "pairscale"]
    if not ours:
        return ""
    off = Mean.of(row["claimed"] - row["true"] for row in ours)
    theta, rank = (Mean.of(row[name] for row in ours).told(".3f") for name in ("theta", "rank"))
    who = "Pair effects and noisy texts" if wrong else "Judges that the model can fit"
    return f"{who} together: claimed less true {off.told('+.3f')}, scores covered {theta}, ranks {rank}."


def _table(found: Sequence[Figures], columns: dict[str, Callable[[Figures], str]]) -> str:
    """Selectors side by side."""
    selectors = sorted({one.cell.selector for one in found}, reverse=True)
    by_line: dict[tuple[str, int, float], dict[str, Figures]] = {}
    for one in found:
        by_line.setdefault((one.cell.judge, one.cell.n, one.cell.sd), {})[one.cell.selector] = one
    heads = [f"`{selector}`{f': {name}' if name else ''}" for name in columns for selector in selectors]
    lines = [f"| judge | N | SD | {' | '.join(heads)} |", "|" + " --- |" * (3 + len(heads))]
    for (judge, n, sd), cell in by_line.items():
        values = [told(cell[name]) if name in cell else "" for told in columns.values() for name in selectors]
        lines.append(f"| {judge.replace('_', ' ')} | {n} | {sd:g} | {' | '.join(values)} |")
    return "\n".join(lines)
