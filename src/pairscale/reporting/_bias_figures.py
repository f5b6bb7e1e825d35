"""What a report of position bias says: of a check, of a study of templates, or of the run file of either."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.checks.calibration import Calibration, calibrations_of
from pairscale.checks.effect import leaning
from pairscale.checks.orders import split_orders
from pairscale.checks.position import PositionalBias, check_positional_bias, compare_orders
from pairscale.checks.templates import (
    STUDY,
    StudyCell,
    TemplateStudy,
    rank_templates,
    row_of,
    template_study,
)
from pairscale.core.errors import InputError
from pairscale.core.results import read_form
from pairscale.reporting._cases import pair_case, write_cases
from pairscale.reporting._disguise import other_names, renamed, silent
from pairscale.reporting._origin import moment, origin_of, without_settings
from pairscale.store.labels import label_results
from pairscale.store.marks import STUDY_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pairscale.reporting._shell import Page
    from pairscale.store.runfile import RunFile

PAIRS: dict[str, pl.DataType] = {
    "template_id": pl.String(),
    "judge": pl.String(),
    "ID1": pl.String(),
    "ID2": pl.String(),
    "position": pl.String(),
}
"""Pairs that went to one position in both orders: under which template and judge, and to which position."""

_WORDS = ("ID1", "ID2", "better_id", "judge_id", "content", "thoughts")


@dataclass(frozen=True, slots=True)
class BiasFacts:
    """Everything that a report of position bias shows.

    Attributes:
        study: templates by judges; one of each where one judge was checked.
        pairs: where the order decided, with the columns of :data:`PAIRS`; None when only their number is known.
        trait: what was asked, where it is known.
        verdict: the finding of a single check, in its own words.
        provenance: names and values.
        texts: by ID.
        judgements: one row per answer.
        spending: by model, template and day.
        calibrations: who stated probabilities under which template, and how right they are.
    """

    study: TemplateStudy
    pairs: pl.DataFrame | None
    provenance: Mapping[str, str]
    verdict: str | None = None
    trait: str | None = None
    texts: Mapping[str, str] | None = None
    judgements: pl.DataFrame | None = None
    spending: pl.DataFrame | None = None
    calibrations: Sequence[tuple[str, Calibration]] = ()

    @property
    def table(self) -> pl.DataFrame:
        """One row a template and judge, and which position is favoured."""
        table, level = self.study.table, self.study.level
        leans = [
            None if first is None or second is None else leaning(first, second, level)
            for first, second in table.select("n_both_first", "n_both_second").iter_rows()
        ]
        told = {"none": "neither", "few": "too few pairs to tell"}
        return table.with_columns(favours=pl.Series([told.get(name or "", name) for name in leans], dtype=pl.String))

    def rows(self, *, texts: bool) -> pl.DataFrame:  # noqa: ARG002 - there are none in it
        """What goes into a spreadsheet: the table."""
        return self.table

    def page(self, *, texts: bool) -> Page:
        """The report."""
        from pairscale.reporting._bias import bias_page

        return bias_page(self, texts=texts)

    def disguised(self) -> BiasFacts:
        """The same facts with other names for the texts."""
        names = set(self.texts or {})
        if self.pairs is not None:
            names |= {*self.pairs["ID1"], *self.pairs["ID2"]}
        other = other_names(names)
        return replace(
            self,
            pairs=None if self.pairs is None else renamed(self.pairs, other, "ID1", "ID2"),
            texts=None if self.texts is None else {other[name]: text for name, text in self.texts.items()},
            judgements=None if self.judgements is None else renamed(self.judgements, other, "ID1", "ID2", "better_id"),
            study=replace(self.study, notices=tuple(silent(self.study.notices, names))),
            provenance=without_settings(self.provenance),
        )

    def write_again(self, path: Path) -> int:
        """Write the pairs whose winner the order decided as cases for people to label."""
        if self.texts is None or self.pairs is None:
            raise InputError("the texts of the pairs are not known; write the cases from the run file")
        pairs = dict.fromkeys((min(pair), max(pair)) for pair in self.pairs.select("ID1", "ID2").iter_rows())
        criterion = self.trait or "overall quality"
        return write_cases([pair_case(*pair, self.texts, criterion) for pair in pairs], path)


def bias_of_check(bias: PositionalBias, judge: str | None = None) -> BiasFacts:
    """What there is to say of one judge."""
    level = bias.effect.level
    row = row_of(bias) | {"template_id": "as it was asked", "judge": judge or "the judge"}
    table = pl.DataFrame([row], schema=STUDY)
    study = TemplateStudy(table, rank_templates(table, level), level, bias.notices)
    made = bias.provenance
    return BiasFacts(
        study,
        _swayed(bias, row["template_id"], row["judge"]),
        {"checked": moment(made.created_at), "bootstrap": f"{made.settings.get('n_boot')} resamples, seed {made.seed}"},
        verdict=bias.verdict,
    )


def bias_of_study(study: TemplateStudy) -> BiasFacts:
    """What there is to say of a study, which knows no single pair."""
    known = {"figures": study.source} if study.source else {"figures": "measured by this study"}
    return BiasFacts(study, None, known)


def bias_of_run(store: RunFile, condition_id: str | None = None) -> BiasFacts:
    """Read a run file as a study: every condition is a template with a judge.

    Args:
        store: the run file.
        condition_id: the only one that counts; all when None.

    Raises:
        InputError: when no pair was answered in both orders.
    """
    with store.snapshot():  # the run may be writing
        conditions, items = store.conditions(), store.items()
        if condition_id is not None:
            conditions = conditions.filter(pl.col("condition_id") == condition_id)
        combinations = _combinations(conditions, store.get_meta(STUDY_MARK) or ())
        judged = [(t, judge, row, store.results(row["condition_id"])) for t, judge, row in combinations]
        spending, origin = store.spending(condition_id), origin_of(store)
        labels = label_results(store)
    people = read_form(labels).table if labels.height else None
    cells, pairs, answers, notices = [], [pl.DataFrame(schema=PAIRS)], [], []
    calibrations: list[tuple[str, Calibration]] = []
    for template, judge, row, results in judged:
        orders = split_orders(results)
        consistency = compare_orders(*orders)
        if not consistency.details.height:
            notices.append(f"{template} with {judge} is left out: no pair has a winner in both orders")
            continue
        cells.append(StudyCell(template, *orders, model=row["model"], judge=judge))
        bias = check_positional_bias(consistency, n_boot=1, seed=0)
        pairs.append(_swayed(bias, template, judge))
        named = "" if len(judged) == 1 else f"{judge}, {template}"
        calibrations += [(named, one) for one in calibrations_of(results, people)]
        answers.append(results.with_columns(judge_id=pl.lit(f"{judge}, {template}")).select(_WORDS))
    if not cells:
        raise InputError(
            "no pair has a winner in both orders, so nothing can be said of position; reverse the pairs "
            "(`pairscale pairs PAIRS --reverse`) and judge those too"
        )
    study = template_study(cells)
    traits = conditions["trait"].drop_nulls().unique(maintain_order=True).to_list()
    return BiasFacts(
        replace(study, notices=(*notices, *study.notices)),
        pl.concat(pairs),
        origin | {"conditions": ", ".join(conditions["condition_id"].to_list())},
        verdict=bias.verdict if len(cells) == 1 else None,
        trait=traits[0] if len(traits) == 1 else None,
        texts=dict(items.select("ID", "text").iter_rows()) if "text" in items.columns else {},
        judgements=pl.concat(answers),
        spending=spending,
        calibrations=calibrations,
    )


def _combinations(
    conditions: pl.DataFrame, studied: Sequence[Mapping[str, str]]
) -> list[tuple[str, str, dict[str, Any]]]:
    """Templates, judges and their conditions: as the study calls them, or else as the conditions do."""
    by_id = {row["condition_id"]: row for row in conditions.iter_rows(named=True)}
    named = [(cell["template_id"], cell["judge"], cell["condition_id"]) for cell in studied]
    if not named:
        rows = [(row["template_id"] or "as it was asked", row["judge_id"], key) for key, row in by_id.items()]
        twice = Counter((template, judge) for template, judge, _ in rows)
        named = [(t, judge if twice[t, judge] == 1 else f"{judge} ({key[:8]})", key) for t, judge, key in rows]
    return [(template, judge, by_id[key]) for template, judge, key in named if key in by_id]


def _swayed(bias: PositionalBias, template: str, judge: str) -> pl.DataFrame:
    """The pairs that went to one position in both orders."""
    first, second = (pl.col(f"is_pos{n}_bias").fill_null(value=False) for n in (1, 2))
    return bias.details.filter(first | second).select(
        template_id=pl.lit(template),
        judge=pl.lit(judge),
        ID1="ID1_main",
        ID2="ID2_main",
        position=pl.when(first).then(pl.lit("first")).otherwise(pl.lit("second")),
    )
