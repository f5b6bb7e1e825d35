"""``grade``: from a judge's scale to marks and levels, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.stats import rankdata

from pairscale.core.display import ReportMixin, ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath, checked
from pairscale.core.samples import with_kept
from pairscale.core.tables import listed
from pairscale.grading.levels import Levels, Placed, cut_at_marks, cut_at_quotas, cut_at_texts, placed
from pairscale.grading.marks import MarkScale, drift_threshold, mark_scale
from pairscale.grading.reading import read_boundary, read_known, read_levels, read_quota
from pairscale.judges.base import no_grading
from pairscale.models.scores import win_scores
from pairscale.validity.judged import Judged, judged
from pairscale.validity.scale import LEVEL

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats
    from pairscale.core.tables import Table

_SURE = 0.9  # a level with this probability is called sure
_MORE_LIKELY_THAN_NOT = 0.5
_WORTH_A_LOOK = 0.05  # of being wrong
_ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grades(ReportMixin, ReprMixin, table="items"):
    """Marks and levels of the texts of a run, with what they rest on.

    Attributes:
        items: one row per text, best first: ``ID``, ``name`` and ``class`` where the texts came with them, ``rank score
            theta theta_sd mark mark_lower mark_upper level``, ``p_`` and the name of each level, and ``misgrade``, the
            probability that the level is wrong. Marks are null without known texts, levels where none were asked for.
        levels: one row per level, best first: ``level from_mark from_theta from_theta_sd n expected_n``; ``n`` texts
            have it, and ``expected_n`` is the sum of its probabilities.
        summary: one row: ``accuracy`` (the expected share of texts with their true level), ``consistency`` (the share
            to which another run would give the same level) and ``rmse`` (of the known marks as the others predict
            them).
        known: one row per known text: ``ID known predicted residual z drifted``; ``predicted`` by all the others.
        again: texts to look at again, those first where it is worth most: ``ID level misgrade other p_other
            expected_distance``, the number of levels the text is off on average.
        judge: who judged.
        notices: what to be careful with.
    """

    items: pl.DataFrame
    levels: pl.DataFrame
    summary: pl.DataFrame
    known: pl.DataFrame
    again: pl.DataFrame
    judge: str | None
    notices: tuple[str, ...]

    def __str__(self) -> str:
        summary = self.summary.row(0, named=True)
        texts = plural(self.items.height, "text")
        lines = []
        if summary["accuracy"] is not None:
            sure = int((self.items["misgrade"] <= 1 - _SURE).sum())
            lines.append(
                f"{sure:,} of {texts} have their level with a probability of at least 90 %; in all, "
                f"{_percent(summary['accuracy'])} of the levels are expected to be right, and another run would give "
                f"{_percent(summary['consistency'])} of the texts the same."
            )
        if self.known.height:
            half = (self.items["mark_upper"] - self.items["mark_lower"]).median()
            predicted = ""
            if summary["rmse"] is not None:
                predicted = f"; each is predicted by the others to within {summary['rmse']:.1f} (root mean square)"
            lines.append(
                f"Marks of {texts} from {self.known.height:,} known ones, ± {float(half or 0) / 2:.1f} "  # type: ignore[arg-type]
                f"at the median (95 % intervals){predicted}."
            )
        drifted = [
            f"{row['ID']} (known as {row['known']:g}, the others say {row['predicted']:.1f})"
            for row in self.known.filter("drifted").iter_rows(named=True)
        ]
        if drifted:
            lines.append(f"Drifted: {', '.join(drifted)}. Leave out what was marked by another standard.")
        first = [
            f"{row['ID']} ({row['level']}, or {row['other']} with {_percent(row['p_other'])})"
            for row in self.again.head(_SHOWN).iter_rows(named=True)
        ]
        if first:
            lines.append(f"Look again at {', '.join(first)} first.")
        return "\n".join(lines)


@checked
def grade(
    run: Table | FilePath,
    known: Table | FilePath | None = None,
    levels: Table | FilePath | None = None,
    quota: Mapping[str, float] | None = None,
    boundary: Mapping[str, str] | None = None,
    *,
    condition: str | None = None,
    seed: int = 1,
) -> Grades:
    """Marks and levels of ranked texts, by known texts, cut marks, quotas or boundary texts.

    Known texts, whose marks you trust, carry their scale to all others. Levels begin at marks, hold a share of the
    texts each, or have a lowest text. The uncertainty of the known marks, of the judge's scale and of the map between
    them reaches every mark and the probability of every level. Nothing is asked of the judge.

    Args:
        run: The ranking: a run file, what ``rank`` returns, results of any form that :func:`pairscale.fit` takes, or a
            Bayesian fit of them.
        known: Texts of the run whose marks are known: a table or file ``ID mark``, with ``sd`` where the marks have a
            known standard error; or last year's run file, whose scores are then the marks.
        levels: Where levels begin on the scale of the marks: a table or file ``level from_mark``, from the best to the
            lowest. The lowest level takes all that is below the others.
        quota: The share of the texts in each level, best first, such as ``{"A": 0.15, "B": 0.35, "C": 0.5}``.
        boundary: The lowest text of each level, best first, such as ``{"A": "S017", "B": "S033"}``.
        condition: Of a run file with several judges: which one.
        seed: Of the draws.

    Returns:
        A :class:`Grades` with ``items``, ``levels``, ``summary``, ``known`` and ``again``.

    Raises:
        InputError: If the embedded baseline judged; if known texts are not in the run, or their marks do not rise with
            the scores; if levels are out of order or quotas do not add up.

    Example:
        >>> import pairscale as ps
        >>> judge = ps.SimulatedJudge("quality_score", seed=3)  # in place of a judge that reads
        >>> run = ps.rank(ps.example_writing_samples, judge=judge, max_comparisons=100, seed=1, progress="none")
        >>> grades = ps.grade(run, quota={"A": 0.25, "B": 0.5, "C": 0.25})
        >>> grades.levels["n"].to_list()
        [5, 10, 5]
    """
    ways = [way for way in (levels, quota, boundary) if way is not None]
    if len(ways) > 1:
        raise InputError("give one of `levels=`, `quota=` and `boundary=`, not several")
    if known is None and not ways:
        raise InputError("give texts with `known=` marks, or `quota=` or `boundary=` for levels alone")
    if levels is not None and known is None:
        raise InputError(
            "levels begin at marks, and no marks are known: give `known=`, or `quota=` or `boundary=` instead"
        )
    judge = judged(run, condition)
    if "lexical" in no_grading(judge.names):
        raise InputError(
            "lexical judged this run, the embedded baseline, which does not understand texts: it gives no marks. Have "
            "a language model or people judge",
            argument="run",
        )
    notices: list[str] = []
    estimates = judge.scale.mean
    marks: MarkScale | None = None
    if known is not None:
        marks = mark_scale(judge.scale, read_known(run, known, judge.scale.ids, estimates, notices), seed)
    theta = judge.scale.draws if marks is None else marks.theta
    cut: Levels | None = None
    if levels is not None and marks is not None:
        names, begins = read_levels(levels)
        cut = cut_at_marks(names, begins[: len(names) - 1], marks.marks)
        notices += _below_all(names, begins, marks.marks)
    elif quota is not None:
        cut = cut_at_quotas(*read_quota(quota), theta)
    elif boundary is not None:
        cut = cut_at_texts(*read_boundary(boundary, judge.scale.ids, theta.mean(axis=0)), theta)
    return _graded(judge, marks, None if cut is None else placed(cut), notices)


def _below_all(names: list[str], begins: list[float], marks: Floats) -> list[str]:
    """A notice that texts lie below the mark from which the lowest level is given."""
    below = int((marks.mean(axis=0) < begins[-1]).sum()) if len(begins) == len(names) else 0
    if not below:
        return []
    return [
        notice(
            f"{plural(below, 'text')} below {begins[-1]:g}, the mark from which {names[-1]!r} is given; "
            f"{names[-1]!r} is the lowest level and takes them too"
        )
    ]


def _graded(judge: Judged, marks: MarkScale | None, grades: Placed | None, notices: list[str]) -> Grades:
    items = _items(judge, marks, grades)
    levels = _levels(grades, marks)
    notices += [
        notice(f"level {row['level']!r} was given to no text ({row['expected_n']:.1f} expected)")
        for row in levels.filter(pl.col("n") == 0).iter_rows(named=True)
    ]
    known_texts = _known(judge, marks)
    if marks is not None:
        notices += _careful(judge, marks)
    summary: dict[str, float | None] = {"accuracy": None, "consistency": None, "rmse": None}
    if grades is not None:
        summary["accuracy"] = float(1 - grades.misgrade.mean())
        summary["consistency"] = grades.consistency
    if known_texts["residual"].count():
        summary["rmse"] = float(np.sqrt(np.mean(np.square(known_texts["residual"].to_numpy()))))
    return Grades(
        items=items,
        levels=levels,
        summary=pl.DataFrame([summary], schema=dict.fromkeys(summary, pl.Float64)),
        known=known_texts,
        again=_again(judge.scale.ids, grades),
        judge=", ".join(judge.names) or None,
        notices=tuple(notices),
    )


def _items(judge: Judged, marks: MarkScale | None, grades: Placed | None) -> pl.DataFrame:
    draws = judge.scale.draws
    mean = judge.scale.mean
    sd = draws.std(axis=0, ddof=1)
    columns: dict[str, Any] = {
        "ID": list(judge.scale.ids),
        "rank": rankdata(-mean, method="min").astype(np.int64),
        "score": win_scores(mean, sd, *np.quantile(draws, _ENDS, axis=0))[0],
        "theta": mean,
        "theta_sd": sd,
        "mark": None,
        "mark_lower": None,
        "mark_upper": None,
        "level": None,
        "misgrade": None,
    }
    if marks is not None:
        columns["mark"] = marks.marks.mean(axis=0)
        columns["mark_lower"], columns["mark_upper"] = np.quantile(marks.marks, _ENDS, axis=0)
    if grades is not None:
        columns["level"] = [grades.levels.names[number] for number in grades.level]
        for number, name in enumerate(grades.levels.names):
            columns[f"p_{name}"] = grades.probability[:, number]
        columns["misgrade"] = grades.misgrade
    empty = dict.fromkeys(("mark", "mark_lower", "mark_upper", "misgrade"), pl.Float64()) | {"level": pl.String()}
    items = pl.DataFrame(columns).with_columns(pl.col(name).cast(kind) for name, kind in empty.items())
    items = items.select(pl.exclude("misgrade"), "misgrade").sort("theta", descending=True, maintain_order=True)
    if judge.samples is None:
        return items
    named = [name for name in ("name", "class") if name in judge.samples.columns]
    items, kept = with_kept(items, judge.samples.select("ID", *named))
    return items.select("ID", *kept, pl.exclude("ID", *kept))


def _levels(grades: Placed | None, marks: MarkScale | None) -> pl.DataFrame:
    figures = ("from_mark", "from_theta", "from_theta_sd")
    schema = {"level": pl.String(), **dict.fromkeys(figures, pl.Float64()), "n": pl.Int64(), "expected_n": pl.Float64()}
    if grades is None:
        return pl.DataFrame(schema=schema)
    cut = grades.levels
    rows = []
    for number, name in enumerate(cut.names):
        row: dict[str, Any] = {
            "level": name,
            "n": int((grades.level == number).sum()),
            "expected_n": grades.probability[:, number].sum(),
        }
        if number < len(cut.points) and cut.values.min() < cut.points[number] < cut.values.max():
            if marks is not None and cut.values is marks.marks:
                begins = marks.theta_at(cut.points[number])
                row["from_mark"] = cut.points[number]
            else:
                begins = cut.cuts[:, number]
                row["from_mark"] = None if marks is None else marks.marks_at(begins).mean()
            row["from_theta"] = begins.mean()
            row["from_theta_sd"] = begins.std(ddof=1)
        rows.append(row)
    return pl.DataFrame(rows, schema=schema)


def _known(judge: Judged, marks: MarkScale | None) -> pl.DataFrame:
    figures = dict.fromkeys(("known", "predicted", "residual", "z"), pl.Float64())
    schema = {"ID": pl.String(), **figures, "drifted": pl.Boolean()}
    if marks is None:
        return pl.DataFrame(schema=schema)
    known_marks = marks.known
    table = pl.DataFrame(
        {
            "ID": [judge.scale.ids[place] for place in known_marks.texts],
            "known": known_marks.marks,
            "predicted": marks.predicted,
            "residual": known_marks.marks - marks.predicted,
            "z": marks.z,
            "drifted": np.abs(marks.z) > drift_threshold(len(known_marks.texts)),
        }
    )
    return table.with_columns(pl.col(*figures).fill_nan(None)).sort("known", descending=True, maintain_order=True)


def _careful(judge: Judged, marks: MarkScale) -> list[str]:
    """Notices that marks were extrapolated beyond the known texts, or that the judge sees something else."""
    estimates = judge.scale.mean
    spread = judge.scale.draws.std(axis=0)
    texts = marks.known.texts
    top = texts[np.argmax(estimates[texts])]
    bottom = texts[np.argmin(estimates[texts])]
    beyond = (estimates > estimates[top] + spread[top]) | (estimates < estimates[bottom] - spread[bottom])
    notices = []
    if beyond.any():
        names = [judge.scale.ids[place] for place in np.flatnonzero(beyond)]
        notices.append(
            notice(
                f"{plural(len(names), 'text')} beyond the known texts, where marks are extrapolated: {listed(names)}"
            )
        )
    if marks.p_scatter > _MORE_LIKELY_THAN_NOT:
        notices.append(
            notice(
                "the known marks lie farther from the judge's scale than their errors explain: the judge sees "
                "something else than those who marked. The intervals allow for it; `pairscale trust` says more"
            )
        )
    return notices


def _again(ids: tuple[str, ...], grades: Placed | None) -> pl.DataFrame:
    if grades is None:
        figures = dict.fromkeys(("p_other", "expected_distance"), pl.Float64)
        return pl.DataFrame(
            schema={"ID": pl.String, "level": pl.String, "misgrade": pl.Float64, "other": pl.String, **figures}
        )
    names = pl.Series(grades.levels.names, dtype=pl.String)
    others = grades.probability.copy()
    others[np.arange(len(ids)), grades.level] = -1.0
    table = pl.DataFrame(
        {
            "ID": ids,
            "level": names.gather(grades.level),
            "misgrade": grades.misgrade,
            "other": names.gather(others.argmax(axis=1)),
            "p_other": others.max(axis=1),
            "expected_distance": grades.expected_distance,
        }
    )
    worth_a_look = table.filter(pl.col("misgrade") > _WORTH_A_LOOK)
    return worth_a_look.sort("expected_distance", descending=True, maintain_order=True)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
