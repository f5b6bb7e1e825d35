"""``trust``: how far does a judge's ranking of these texts agree with people's?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
from scipy.stats import rankdata

from pairscale.core.columns import judge_column
from pairscale.core.display import ReportMixin, ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath, checked, require_int
from pairscale.core.results import ORDER_KNOWN
from pairscale.core.tables import listed
from pairscale.models.data import outcome_figures
from pairscale.models.reliability import expected_rank_correlation
from pairscale.models.rows import CLOSE
from pairscale.pairing.table import numbered
from pairscale.store.reading import PEOPLE, Comparisons, is_run, read_comparisons
from pairscale.validity.judged import Judged, judge_names, judged, judged_by
from pairscale.validity.pairs import next_pairs
from pairscale.validity.scale import LEVEL, JudgeScale, PeopleAnswers, PeopleScale, people_scale

if TYPE_CHECKING:
    from pairscale.core.tables import Table

FEWEST_LABELS = 20
"""With fewer answers of people there is no figure, only the pairs to ask them about."""

_AT_RANDOM = 1 / 3  # a person's slope below this, most probably, is no judging
_SURELY = 0.8
_FEWEST_OF_PERSON = 10
_HALF_WIDTHS = (0.10, 0.05)
_USUAL_HALF_WIDTH = 0.20  # of 100 answers, where the validity is about .8
_MOVED_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Validity:
    """The correlation of the judge's scores with people's, over the texts of the run.

    Attributes:
        estimate: the median of the posterior; None with fewer than 20 answers.
        lower: of the shortest 95 % interval.
        upper: of the same.
        n_labels: how many answers of people it rests on.
        n_people: of how many people.
    """

    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    n_labels: int = 0
    n_people: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trust(ReportMixin, ReprMixin, table="items"):
    """How far a judge's ranking can be trusted, and the ranking corrected by people's answers.

    Attributes:
        validity: the correlation of the judge's scale with people's, with its interval.
        items: one row per text, the judge's best first: ``ID theta_judge rank_judge theta_people theta_people_sd
            rank_people rank_people_lower rank_people_upper moved``; people's columns are null with fewer than 20
            answers. ``moved`` is how many places up the text moves.
        next: pairs to ask people about next, the most telling first: ``ID1 text1 ID2 text2``.
        needed: labels in all for an interval of ± .10 and of ± .05, roughly, by half-width.
        agreement_judge: the expected rank correlation of the judge's ranking with people's.
        agreement_corrected: the same of the corrected ranking.
        people: one row per person: ``person labels slope lower upper at_random``, where several people answered.
        judge: who judged.
        notices: what to be careful with.
    """

    validity: Validity
    items: pl.DataFrame
    next: pl.DataFrame
    needed: dict[float, int]
    agreement_judge: float | None
    agreement_corrected: float | None
    people: pl.DataFrame | None
    judge: str | None
    notices: tuple[str, ...]

    def __str__(self) -> str:
        validity = self.validity
        if validity.estimate is None:
            return (
                f"{plural(validity.n_labels, 'answer')} of people: too few to say how far the judge can be trusted; "
                f"have people look at the pairs in `next` (about {self.needed[0.10]:,} answers for ± .10)"
            )
        interval = f"{_share(validity.lower)} to {_share(validity.upper)}"
        answers = f"{plural(validity.n_labels, 'answer')} of {plural(validity.n_people, 'person', 'people')}"
        agreement = f"{_share(self.agreement_corrected)} (estimated; the judge alone: {_share(self.agreement_judge)})"
        judged = f"On these {self.items.height:,} texts, the judge's scale correlates {_share(validity.estimate)}"
        lines = [f"{judged} with people's (95 % interval {interval}), from {answers}."]
        lines.append(f"Corrected by the answers, the ranking agrees with people's by {agreement}.")
        most = self.items.filter(pl.col("moved") != 0).sort(pl.col("moved").abs(), descending=True).head(_MOVED_SHOWN)
        moved = [f"{row['ID']} {'up' if row['moved'] > 0 else 'down'} {abs(row['moved'])}" for row in most.to_dicts()]
        if moved:
            lines.append(f"Moved most: {', '.join(moved)}.")
        for width, needed in self.needed.items():
            if needed > validity.n_labels:
                count = max(10, round(needed - validity.n_labels, -1))
                lines.append(f"About {count:,} more answers would make it ± {_share(width)}.")
                break
        return "\n".join(lines)


@checked
def trust(
    run: Table | FilePath,
    labels: Table | FilePath | None = None,
    *,
    next: int = 20,  # noqa: A002 (the name of the option)
    condition: str | None = None,
    criterion: str | None = None,
    key: FilePath | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
    seed: int = 1,
) -> Trust:
    """How far can this ranking be trusted? People's scale of the texts, from the judge and a few answers of people.

    The judge's scale is held against people's answers to some pairs of the same texts. That gives the correlation of
    the two scales with its interval, a ranking corrected by the answers, and the pairs that people should look at next.
    Without labels, or with fewer than 20, there are only the pairs.

    Args:
        run: The judge's ranking: a run file, what ``rank`` returns, results of any form that :func:`pairscale.fit`
            takes, or a Bayesian fit of them.
        labels: People's answers to pairs of the same texts, in any form that :func:`pairscale.fit` takes; by default
            the labels in the run file. A column ``judge_id`` says who answered.
        next: How many pairs to propose.
        condition: Of a run file with several judges: which one.
        criterion: Of labels under several criteria: which one.
        key: Of labels that do not say what they compare: the key of their manifest, or their table of pairs.
        a_col: Of a table of labels: the column of the first text.
        b_col: Of a table of labels: the column of the second text.
        winner_col: Of a table of labels: the column that says who won.
        encoding: Of a table of labels: the encoding of a text file that is not UTF-8.
        seed: Of the draws.

    Returns:
        A :class:`Trust` with ``validity``, ``items``, ``next`` and ``needed``.

    Raises:
        InputError: If the labels are of other texts, are all ties, or are answers of the judge itself; or if the run
            has scores without their uncertainty.

    Example:
        >>> import pairscale as ps
        >>> texts = ps.example_writing_samples
        >>> run = ps.rank(texts, judge="lexical", max_comparisons=100, seed=1, progress="none")
        >>> pairs = ps.sample_pairs(ps.make_pairs(texts), n_pairs=60, seed=2)
        >>> by_score = ps.SimulatedJudge("quality_score", seed=3)  # in place of people
        >>> people = ps.judge(pairs, judge=by_score, progress=False)
        >>> ps.trust(run, people).validity.n_labels
        60
    """
    size = require_int(next, "next", least=1)
    scale = judged(run, condition)
    reading = {"a_col": a_col, "b_col": b_col, "winner_col": winner_col, "key": key, "encoding": encoding}
    return _held_against(scale, _labels(run, labels, criterion, reading), size, seed)


def trust_of_run(answers: Comparisons, labels: Comparisons) -> Trust:
    """The same as :func:`trust`, for answers and labels that are read already."""
    return _held_against(judged_by(answers), labels, size=20, seed=1)


def _held_against(run: Judged, labels: Comparisons | None, size: int, seed: int) -> Trust:
    judge = run.scale
    notices: list[str] = []
    table = _usable(labels, judge, run.names, notices)
    persons = table["judge_id"].unique(maintain_order=True).to_list()
    answers = _numbered(table, judge, persons)
    enough = len(answers) >= FEWEST_LABELS
    if not enough and len(answers):
        notices.append(
            notice(f"fewer than {FEWEST_LABELS} answers of people give no figure; they choose the next pairs")
        )
    scale = people_scale(judge, answers, seed)
    asked = {tuple(sorted(pair)) for pair in zip(answers.first.tolist(), answers.second.tolist(), strict=True)}
    proposed = next_pairs(scale, cast("set[tuple[int, int]]", asked), size, seed)
    people = _people(scale, answers, persons) if enough and answers.n_people > 1 else None
    if people is not None and people["at_random"].any():
        names = listed(people.filter("at_random")["person"].to_list(), 10)
        notices.append(notice(f"answers that could as well be random: {names}; their weight is small"))
    validity = Validity(n_labels=len(answers), n_people=len(persons))
    if enough:
        lower, upper = scale.interval()
        estimate = float(np.median(scale.validity))
        validity = replace(validity, estimate=estimate, lower=lower, upper=upper)
    return Trust(
        validity=validity,
        items=_items(judge, scale if enough else None),
        next=_with_texts(proposed, judge.ids, run.samples),
        needed=_needed(scale, len(answers), enough),
        agreement_judge=expected_rank_correlation(scale.people, judge.mean) if enough else None,
        agreement_corrected=expected_rank_correlation(scale.people, scale.people.mean(axis=0)) if enough else None,
        people=people,
        judge=", ".join(run.names) or None,
        notices=tuple(notices),
    )


def _labels(run: Any, labels: Any, criterion: str | None, reading: dict[str, Any]) -> Comparisons | None:
    """People's answers: those that were given, else those in the run file, else none."""
    if labels is not None:
        return read_comparisons(labels, criterion, aloud=False, **reading)
    if any(value is not None for value in reading.values()):
        raise InputError("the column options, `key=` and `encoding=` belong to `labels=`")
    if not (isinstance(run, str | os.PathLike) and is_run(run)):
        return None
    from pairscale.store.runfile import open_run

    with open_run(run) as store:
        if not store.labels().height:
            return None
    return read_comparisons(run, PEOPLE, aloud=False)


def _usable(
    labels: Comparisons | None, judge: JudgeScale, own_names: Sequence[str], notices: list[str]
) -> pl.DataFrame:
    """The answers that count: ``ID1 ID2 result judge_id order_known``.

    Raises:
        InputError: If they are of other texts, all ties, or the judge's own.
    """
    if labels is None:
        texts = dict.fromkeys(("ID1", "ID2", "judge_id"), pl.String)
        return pl.DataFrame(schema={**texts, "result": pl.Float64, "order_known": pl.Boolean})
    table = labels.table
    own = sorted(set(judge_names(table)) & set(own_names))
    if own:
        raise InputError(
            f"the labels are answers of {listed(own, 3)}, who judged the run; a judge does not say how far it agrees "
            "with people",
            argument="labels",
        )
    strange = sorted((set(table["ID1"]) | set(table["ID2"])) - set(judge.ids))
    if strange:
        raise InputError(f"the labels compare texts that are not in the run: {listed(strange, 5)}", argument="labels")
    judge_name = judge_column(table)
    person = pl.lit("people") if judge_name is None else pl.col(judge_name).cast(pl.String).fill_null("people")
    order = pl.col(ORDER_KNOWN) if ORDER_KNOWN in table.columns else pl.lit(value=True)
    result = outcome_figures(table, *CLOSE)
    read = table.select("ID1", "ID2", result=result, judge_id=person, order_known=order)
    kept = read.filter(pl.col("result").is_not_null() & (pl.col("ID1") != pl.col("ID2")))
    if kept.height < read.height:
        notices.append(notice(f"{plural(read.height - kept.height, 'label')} without an answer left out"))
    if kept["order_known"].any() and not kept["order_known"].all():
        notices.append(notice("not all labels say which text was shown first, so no position effect is estimated"))
    if kept.height and (kept["result"] == 0.5).all():
        raise InputError("all labels are ties; they do not say which texts people prefer", argument="labels")
    return kept


def _numbered(table: pl.DataFrame, judge: JudgeScale, persons: Sequence[str]) -> PeopleAnswers:
    ids = pl.Series(judge.ids)
    return PeopleAnswers(
        first=numbered(table["ID1"], ids),
        second=numbered(table["ID2"], ids),
        result=table["result"].to_numpy(),
        person=numbered(table["judge_id"], pl.Series(persons, dtype=pl.String)),
        n_people=max(1, len(persons)),
        order_known=bool(table["order_known"].all()),
    )


def _items(judge: JudgeScale, scale: PeopleScale | None) -> pl.DataFrame:
    mean = judge.mean
    rank = rankdata(-mean, method="ordinal").astype(np.int64)
    columns: dict[str, Any] = {"ID": list(judge.ids), "theta_judge": mean, "rank_judge": rank}
    names = ["theta_people", "theta_people_sd", "rank_people", "rank_people_lower", "rank_people_upper", "moved"]
    if scale is None:
        columns |= dict.fromkeys(names)
    else:
        people = scale.people.mean(axis=0)
        ranks = rankdata(-scale.people, axis=1)
        place = rankdata(-people, method="ordinal").astype(np.int64)
        lower = np.quantile(ranks, (1 - LEVEL) / 2, axis=0, method="lower")
        upper = np.quantile(ranks, (1 + LEVEL) / 2, axis=0, method="higher")
        figures = [people, scale.people.std(axis=0, ddof=1), place, lower, upper, rank - place]
        columns |= dict(zip(names, figures, strict=True))
    types = dict.fromkeys(names[2:], pl.Int64) | dict.fromkeys(names[:2], pl.Float64)
    return pl.DataFrame(columns).cast(types).sort("rank_judge")  # type: ignore[arg-type]


def _with_texts(pairs: Sequence[tuple[int, int]], ids: Sequence[str], samples: pl.DataFrame | None) -> pl.DataFrame:
    texts: dict[str, str] = {}
    if samples is not None and "text" in samples.columns:
        texts = dict(zip(samples["ID"].to_list(), samples["text"].to_list(), strict=True))
    rows = [(ids[i], texts.get(ids[i]), ids[j], texts.get(ids[j])) for i, j in pairs]
    return pl.DataFrame(rows, schema=dict.fromkeys(("ID1", "text1", "ID2", "text2"), pl.String), orient="row")


def _needed(scale: PeopleScale, n_labels: int, enough: bool) -> dict[float, int]:
    """Labels in all for some half-widths of the interval, which falls with the root of their number."""
    if not enough:
        n_labels = 100
        half = _USUAL_HALF_WIDTH
    else:
        lower, upper = scale.interval()
        half = (upper - lower) / 2
    return {width: int(round(n_labels * (half / width) ** 2, -1)) for width in _HALF_WIDTHS}


def _people(scale: PeopleScale, answers: PeopleAnswers, persons: Sequence[str]) -> pl.DataFrame:
    """Every person's slope; who answers at random has one of about 0."""
    slopes = scale.slopes
    lower, upper = np.quantile(slopes, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    count = np.bincount(answers.person, minlength=len(persons))
    at_random = ((slopes < _AT_RANDOM).mean(axis=0) > _SURELY) & (count >= _FEWEST_OF_PERSON)
    columns = {
        "person": list(persons),
        "labels": count,
        "slope": slopes.mean(axis=0),
        "lower": lower,
        "upper": upper,
        "at_random": at_random,
    }
    return pl.DataFrame(columns)


def _share(value: float | None) -> str:
    """A correlation as the field writes it: .81, -.05."""
    if value is None:
        return ""
    return f"{value:.2f}".replace("0.", ".", 1)
