"""What the owner sees: the progress, who agrees with whom, who clicks too fast, who prefers a side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import polars as pl

from pairscale.adaptive.messages import adaptive_status
from pairscale.checks.people import PEOPLE_COLUMNS, answers_of_people, people_table
from pairscale.core.tables import Row
from pairscale.reporting.labels import label_alpha, label_pairs
from pairscale.store.labels import label_results

if TYPE_CHECKING:
    from pairscale.people.cases import Case
    from pairscale.people.queue import Labeller, LabelStore, LiveQuestions
    from pairscale.store.runfile import RunFile

FAST_LETTERS = 100.0
"""Characters per second beyond which no one reads: three times as fast as a quick reader."""

_LEAN_P = 0.01
_FEWEST = 5  # labels before a labeller is called fast
_USUAL_TARGET = 0.9
_USUAL_PER_TEXT = 9  # comparisons that a reliability of .9 usually takes, for each text
_LEAST_RELIABILITY = 0.3  # below it, a projection from the reliability would swing
_ROUNDED_FROM = 50


@dataclass(frozen=True, slots=True)
class LabellerView:
    """One labeller's work.

    Attributes:
        labeller: who.
        labels: standing labels.
        skipped: skips.
        ties: of the labels.
        seconds: the median time of a decision; None without any.
        letters: the median number of characters per second.
        is_fast: whether that is too fast to have read the texts.
        left: of the labels that prefer a side, those for the left one.
        sided: labels that prefer a side.
        left_range: the 95 % interval of the share of the left side; None without any.
        leans: whether chance does not explain it (exact test, p < 0.01).
        last: when the last label came, UTC.
        is_paused: whether they are not asked at present.
        agreement: the share of their winners that have the higher score on the scale of all labels; None without one.
        misfit: why their answers fit that scale unusually badly or well; empty where they do not.
    """

    labeller: Labeller
    labels: int
    skipped: int
    ties: int
    seconds: float | None
    letters: float | None
    is_fast: bool
    left: int
    sided: int
    left_range: tuple[float | None, float | None] | None
    leans: bool
    last: str | None
    is_paused: bool = False
    agreement: float | None = None
    misfit: str = ""


@dataclass(frozen=True, slots=True)
class CriterionView:
    """One criterion.

    Attributes:
        criterion: its name.
        cases: all of its cases.
        complete: those with all their labels.
        labels: standing labels.
        ties: of these.
        skipped: skips.
        alpha: Krippendorff's; None while nothing can be said.
        alpha_range: its 95 % interval; None where there is none.
        n_units: cases with two labels or more, on which it rests.
    """

    criterion: str
    cases: int
    complete: int
    labels: int
    ties: int
    skipped: int
    alpha: float | None
    alpha_range: tuple[float, float] | None
    n_units: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything on the owner's page.

    Attributes:
        labels: labels that count.
        wanted: labels when all is done.
        labellers: one per labeller.
        criteria: one per criterion.
        pairs: ``rater1 rater2 n_units percent_agreement cohen_kappa`` of every two labellers with a case in common.
        stuck: cases that cannot be completed, because all labellers have seen them.
    """

    labels: int
    wanted: int
    labellers: Sequence[LabellerView]
    criteria: Sequence[CriterionView]
    pairs: Sequence[Row]
    stuck: int

    @property
    def each(self) -> int | None:
        """About how many labels there will be for each labeller who is not paused."""
        asked = sum(not view.is_paused for view in self.labellers)
        return round(self.wanted / asked) if asked > 1 else None


def overview(store: LabelStore) -> Overview:
    """Compute what the owner's page shows."""
    cases = store.cases
    rows = store.run.labels().to_dicts()
    labels, wanted = store.totals()
    by_name = _grouped(rows, "labeller")
    by_criterion = _grouped(rows, "criterion")
    names = list(dict.fromkeys(case.criterion for case in cases.values()))
    paused = store.paused()
    fits = {row["person"]: row for row in people_table(label_results(store.run)).iter_rows(named=True)}
    views = []
    for labeller in store.labellers():
        name = labeller.name
        view = _labeller(labeller, by_name.get(name, []), cases, fits.get(name, {}), is_paused=name in paused)
        views.append(view)
    return Overview(
        labels,
        wanted,
        views,
        [_criterion(name, by_criterion.get(name, []), cases, store.labels_per_case) for name in names],
        label_pairs(rows),
        _stuck(rows, cases, len(views) - len(paused), store.labels_per_case),
    )


@dataclass(frozen=True, slots=True)
class RunOverview:
    """A run that asks people.

    Attributes:
        answered: comparisons so far.
        expected: about how many there will be in all; None for another goal than the whole order.
        people: one row per person who is asked, with the columns of :func:`pairscale.checks.people.people_table`,
            ``token`` and ``is_paused``.
    """

    answered: int
    expected: int | None
    people: Sequence[Row]

    @property
    def each(self) -> int | None:
        """About how many there will be for each person who is not paused."""
        asked = sum(not row["is_paused"] for row in self.people)
        if self.expected is None or not asked:
            return None
        return round(self.expected / asked)


def run_overview(store: LiveQuestions, run: RunFile) -> RunOverview:
    """What the owner's page of a run shows.

    Args:
        store: the questions of the run.
        run: its run file.
    """
    with run.snapshot():
        answers = answers_of_people(run)
        status = adaptive_status(run)
        rounds = run.read_log("round_log")
    by_name = {row["person"]: row for row in people_table(answers).iter_rows(named=True)}
    paused = store.paused()
    people = []
    for labeller in store.labellers():
        nothing = dict.fromkeys(PEOPLE_COLUMNS) | {"person": labeller.name, "comparisons": 0, "ties": 0, "skipped": 0}
        row = by_name.get(labeller.name, nothing)
        person = {"labeller_id": labeller.labeller_id, "token": labeller.token}
        people.append(row | person | {"is_paused": labeller.name in paused})
    done = 0 if status is None else int(status["committed_pairs"])
    expected = None
    if status is not None and status["goal"] == "order":
        last = rounds[-1] if rounds else {}
        reliability = last.get("reliability")
        target = last.get("eap_reliability_min") or _USUAL_TARGET
        expected = expected_comparisons(int(status["n_items"]), done, reliability, target)
    return RunOverview(done, expected, people)


def expected_comparisons(n: int, done: int, reliability: float | None, target: float) -> int:
    """About how many comparisons a run will take: the odds of the reliability grow in proportion to them.

    Args:
        n: texts.
        done: comparisons so far.
        reliability: with them; None before the first refit.
        target: the reliability at which the run stops.
    """
    if reliability is None or not _LEAST_RELIABILITY < reliability < 1:
        expected = n * _USUAL_PER_TEXT * _odds(target) / _odds(_USUAL_TARGET)
    else:
        expected = done * _odds(target) / _odds(reliability)
    if expected >= _ROUNDED_FROM:
        expected = round(expected / 10) * 10
    return max(done, round(expected))


def _odds(share: float) -> float:
    share = min(share, 0.99)
    return share / (1 - share)


def _grouped(rows: Sequence[Row], column: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


def _labeller(
    labeller: Labeller, rows: Sequence[Row], cases: Mapping[str, Case], fit: Row, *, is_paused: bool
) -> LabellerView:
    from pairscale.checks.effect import sign_test, wilson

    labels = [row for row in rows if row["preferred"] is not None]
    ties = sum(row["preferred"] == "tie" for row in labels)
    sided = len(labels) - ties
    left = sum(row["preferred"] == ("2" if row["swapped"] else "1") for row in labels)
    speeds = [1000 * cases[row["case_id"]].length / max(1, row["decision_ms"]) for row in labels]
    letters = median(speeds) if speeds else None
    chance = sign_test(left, sided)
    return LabellerView(
        labeller,
        labels=len(labels),
        skipped=len(rows) - len(labels),
        ties=ties,
        seconds=median(row["decision_ms"] for row in labels) / 1000 if labels else None,
        letters=letters,
        is_fast=letters is not None and len(labels) >= _FEWEST and letters > FAST_LETTERS,
        left=left,
        sided=sided,
        left_range=wilson(left, sided, 0.95) if sided else None,
        leans=chance is not None and chance < _LEAN_P,
        last=max((row["labelled_at"] for row in rows), default=None),
        is_paused=is_paused,
        agreement=fit.get("agreement"),
        misfit=fit.get("reason") or "",
    )


def _criterion(name: str, rows: Sequence[Row], cases: Mapping[str, Case], k: int) -> CriterionView:
    labels = [row for row in rows if row["preferred"] is not None]
    counts = Counter(row["case_id"] for row in labels)
    alpha, interval, units = label_alpha(labels)
    return CriterionView(
        name,
        cases=sum(case.criterion == name for case in cases.values()),
        complete=sum(n >= k for n in counts.values()),
        labels=len(labels),
        ties=sum(row["preferred"] == "tie" for row in labels),
        skipped=len(rows) - len(labels),
        alpha=alpha,
        alpha_range=interval,
        n_units=units,
    )


def _stuck(rows: Sequence[Row], cases: Mapping[str, Case], people: int, k: int) -> int:
    """Cases that have too few labels, and no labeller left to give the others."""
    seen = Counter(row["case_id"] for row in rows)
    labelled = Counter(row["case_id"] for row in rows if row["preferred"] is not None)
    return sum(labelled[name] < k and labelled[name] + people - seen[name] < k for name in cases)


def label_table(store: LabelStore) -> pl.DataFrame:
    """The standing labels as a table; see :data:`pairscale.people.queue.LABEL_COLUMNS`.

    Where texts have ids, ``ID1 ID2 swapped`` follow: the two texts in the order of the case, and whether the labeller
    saw the second one first. With them the file can be ranked.
    """
    from pairscale.people.queue import LABEL_COLUMNS

    labels = store.run.labels()
    columns = list(LABEL_COLUMNS)
    if labels["ID1"].is_not_null().any():
        columns += ["ID1", "ID2", "swapped"]
    return labels.select(columns)
