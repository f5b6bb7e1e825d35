"""The report of position bias: of a check, of a study of templates, or of the run file of either."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.checks.calibration import calibrations_of
from pairscale.checks.effect import SURELY_BETTER, leaning
from pairscale.checks.orders import split_orders
from pairscale.checks.position import PositionalBias, compare_orders, measure_bias
from pairscale.checks.templates import TemplateStudy, row_of, study_of
from pairscale.core.errors import InputError
from pairscale.reporting.page import (
    Report,
    calibration_parts,
    origin_of,
    other_names,
    pair_writer,
    pairs_to_read,
    people_in,
    renamed,
    texts_of,
)
from pairscale.reporting.picture import intervals
from pairscale.store.marks import STUDY_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pairscale.reporting.picture import Content, Picture, Row
    from pairscale.store.runfile import RunFile

_WORDS = ("ID1", "ID2", "better_id", "judge_id", "content", "thoughts")
_FAVOURS = {
    "first": "favours the first", "second": "favours the second", "none": "no sign of it",
    "few": "too few pairs to tell",
}  # fmt: skip
_COLUMNS = "template_id who verdict n_pairs decided from to prop_pos1 p_paired effect effect_lower effect_upper"
_UNNAMED = "as it was asked"


def bias_of_run(
    store: RunFile, condition_id: str | None = None, *, texts: bool = True, pseudonyms: bool = False
) -> Report:
    """Read a run file as a study: every condition is a template with a judge.

    Args:
        store: the run file.
        condition_id: the only one that counts; all when None.
        texts: whether the report holds the texts, and what was said of them.
        pseudonyms: whether the texts have other names.

    Raises:
        InputError: when no pair was answered in both orders.
    """
    conditions = store.conditions()
    items = store.items()
    if condition_id is not None:
        conditions = conditions.filter(pl.col("condition_id") == condition_id)
    combinations = _combinations(conditions, store.get_meta(STUDY_MARK) or ())
    judged = [(name, judge, row["model"], store.results(row["condition_id"])) for name, judge, row in combinations]
    spending = store.spending(condition_id)
    origin = origin_of(store, pseudonyms=pseudonyms)
    people = people_in(store)
    other = other_names(items["ID"]) if pseudonyms else {}
    items = renamed(items, other, "ID")
    people = renamed(people, other, "ID1", "ID2", "better_id")
    rows = []
    pairs = []
    answers = []
    notices = []
    calibrations: list[tuple[str, Any]] = []
    for template, judge, model, answered in judged:
        results = renamed(answered, other, "ID1", "ID2", "better_id")
        consistency = compare_orders(*split_orders(results))
        if not consistency.details.height:
            notices.append(f"{template} with {judge} is left out: no pair has a winner in both orders")
            continue
        bias = measure_bias(consistency, 0.95)
        rows.append(row_of(bias, {"template_id": template, "model": model, "judge": judge}))
        notices.extend(f"{template} {judge}: {message}" for message in consistency.notices)
        pairs.append(_swayed(bias))
        named = "" if len(judged) == 1 else f"{judge}, {template}"
        calibrations += [(named, one) for one in calibrations_of(results, people)]
        answers.append(results.with_columns(judge_id=pl.lit(f"{judge}, {template}")).select(_WORDS))
    if not rows:
        raise InputError(
            "no pair has a winner in both orders, so nothing can be said of position; reverse the pairs "
            "(`pairscale pairs PAIRS --reverse`) and judge those too"
        )
    study = study_of(rows, bias.level, notices)
    traits = conditions["trait"].drop_nulls().unique(maintain_order=True).to_list()
    trait = traits[0] if len(traits) == 1 else None
    own_texts = texts_of(items)
    swayed = pl.concat(pairs)
    shown = own_texts if texts else {}
    report = _report(
        study,
        swayed,
        origin | {"conditions": ", ".join(conditions["condition_id"].to_list())},
        verdict=bias.verdict if len(rows) == 1 else None,
        trait=trait,
        calibrations=calibrations,
        texts=shown,
    )
    return replace(
        report,
        spending=spending,
        packed=pairs_to_read(sorted(shown), shown, pl.concat(answers)) if shown else None,
        write_again=pair_writer(swayed.select("ID1", "ID2").rows(), own_texts, trait or "overall quality"),
    )


def bias_of_result(
    source: PositionalBias | TemplateStudy, judge: str | None = None, *, pseudonyms: bool = False
) -> Report:
    """One judge that was checked, or a study, which knows no single pair."""
    if isinstance(source, TemplateStudy):
        return _report(source, None, {"figures": source.source or "measured by this study"})
    row = row_of(source, {"template_id": _UNNAMED, "judge": judge or "the judge"})
    study = study_of([row], source.level, () if pseudonyms else source.notices)
    pairs = _swayed(source)
    if pseudonyms:
        pairs = renamed(pairs, other_names([*pairs["ID1"], *pairs["ID2"]]), "ID1", "ID2")
    return _report(study, pairs, {}, verdict=source.verdict)


def _combinations(conditions: pl.DataFrame, studied: Sequence[Mapping[str, str]]) -> list[tuple[str, str, Content]]:
    """Templates, judges and their conditions: as the study calls them, or else as the conditions do."""
    by_id = {row["condition_id"]: row for row in conditions.iter_rows(named=True)}
    named = [(cell["template_id"], cell["judge"], cell["condition_id"]) for cell in studied]
    if not named:
        rows = [(row["template_id"] or _UNNAMED, row["judge_id"], key) for key, row in by_id.items()]
        twice = Counter((template, judge) for template, judge, _ in rows)
        named = [(t, judge if twice[t, judge] == 1 else f"{judge} ({key[:8]})", key) for t, judge, key in rows]
    return [(template, judge, by_id[key]) for template, judge, key in named if key in by_id]


def _swayed(bias: PositionalBias) -> pl.DataFrame:
    """The pairs that went to one position in both orders: ``ID1 ID2 position``."""
    return bias.details.drop_nulls("position").select("position", ID1="ID1_main", ID2="ID2_main")


def _report(
    study: TemplateStudy,
    pairs: pl.DataFrame | None,
    provenance: Mapping[str, str],
    *,
    verdict: str | None = None,
    trait: str | None = None,
    calibrations: Sequence[tuple[str, Any]] = (),
    texts: Mapping[str, str] | None = None,
) -> Report:
    """Put a study into figures and pictures."""
    model = pl.concat_str("model", "thinking", separator=" ", ignore_nulls=True)
    who = pl.coalesce("judge", pl.when(model != "").then(model), "backend", pl.lit("the judge"))
    leans = [
        None if first is None or second is None else leaning(first, second, study.level)
        for first, second in study.table.select("n_both_first", "n_both_second").iter_rows()
    ]
    decided = {"decided": 1 - pl.col("prop_consistent")}
    decided |= {"from": 1 - pl.col("consistent_upper"), "to": 1 - pl.col("consistent_lower")}
    table = study.table.with_columns(who=who, favours=pl.Series(leans, dtype=pl.String), **decided)
    table = table.with_columns(verdict=pl.col("favours").replace_strict(_FAVOURS, default="not known"))
    alike = _alike(study)
    # What consistency does not tell apart, the position does.
    choice = min(alike, key=lambda row: (row["n_significant_paired"] or 0, row["worst_pos1"] or 0.0, row["rank"]))
    place = {name: at for at, name in enumerate(sorted(texts or {}))}
    rows = table.to_dicts()
    content = {
        "study": study,
        "verdict": verdict,
        "trait": trait,
        "single": table.height == 1,
        "n_judges": table["who"].n_unique(),
        "n_pairs": max(table["n_pairs"].to_list()),
        "best": study.ranking.row(0, named=True),
        "alike": alike,
        "choice": choice,
        "biased": [row for row in rows if row["favours"] in {"first", "second"}],
        "known": table["favours"].count(),
        "ranking": study.ranking.to_dicts(),
        "charts": _charts(table),
        "counted": table.drop_nulls("n_both_first").to_dicts(),
        "calibrations": calibration_parts(calibrations),
        "again": None if pairs is None else _again(pairs, place),
        "rows": table.select(_COLUMNS.split()[2 if table.height == 1 else 0 :]).rows(),
    }
    shown = table.with_columns(pl.col("favours").replace({"none": "neither", "few": _FAVOURS["few"]})).drop(
        "who", "verdict", *decided
    )
    return Report(
        "bias.html",
        "Position bias" if table.height == 1 else "Templates and position bias",
        shown,
        content,
        provenance,
        table["who"].to_list(),
        study.notices,
        n_results=int(table["n_pairs"].sum()),
    )


def _alike(study: TemplateStudy) -> list[Row]:
    """The most consistent template, and those that are not told apart from it, over all judges together.

    Told apart is one that is less consistent with a probability of 95 % or more, by the normal approximation with one
    consistent and one inconsistent pair more for each.
    """
    counted = study.table.drop_nulls("prop_consistent").group_by("template_id").agg(
        pl.col("n_pairs").sum() + 2, same=(pl.col("prop_consistent") * pl.col("n_pairs")).sum().round() + 1
    )  # fmt: skip
    share = pl.col("same") / pl.col("n_pairs")
    measured = counted.select("template_id", share=share, variance=share * (1 - share) / pl.col("n_pairs"))
    ranking = study.ranking.join(measured, on="template_id", how="left", maintain_order="left")
    best = ranking.row(0, named=True)
    behind = best["share"] - pl.col("share")
    is_alike = behind < SURELY_BETTER * (pl.col("variance") + best["variance"]).sqrt()
    return [*ranking.head(1).to_dicts(), *ranking[1:].filter(is_alike).to_dicts()]


def _charts(table: pl.DataFrame) -> list[Picture]:
    """The share that position decided: a row per template or, where there are several judges, a chart per template."""
    known = table.drop_nulls("decided")
    single = known["who"].n_unique() == 1
    heading = pl.lit("") if single else pl.col("template_id")
    most = min(1.0, 1.1 * max([0.1, *known["to"].to_list()]))
    return [
        intervals(
            part.select("lower", "upper", ID="template_id" if single else "who", score="decided").to_dicts(),
            "Pairs whose winner changed with the order, with intervals", "pairs whose winner changed with the order",
            middle=None, span=(0.0, most), in_percent=True, heading=name,
        )
        for (name,), part in known.rename({"from": "lower", "to": "upper"}).group_by(
            heading.alias("heading"), maintain_order=True
        )
    ]  # fmt: skip


def _again(pairs: pl.DataFrame, place: Mapping[str, int]) -> dict[str, list[Content]]:
    """By position, the pairs that went to it in both orders, and how often."""
    pair = pairs.select("position", a=pl.min_horizontal("ID1", "ID2"), b=pl.max_horizontal("ID1", "ID2"))
    counted = pair.group_by("position", "a", "b").agg(n=pl.len()).sort("n", "a", "b", descending=[True, False, False])
    rows = counted.to_dicts()
    for row in rows:
        row["two"] = f"{place[row['a']]} {place[row['b']]}" if row["a"] in place else ""
    return {position: [row for row in rows if row["position"] == position] for position in ("first", "second")}
