"""Do raters agree? Percent agreement, Cohen's kappa, Krippendorff's alpha and Gwet's AC1, each with an interval."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs

from pairscale.checks.coefficients import LEAST_UNITS, estimate_of, pair_coefficients, statistic_rows
from pairscale.checks.people import answers_of_people, people_table
from pairscale.core.columns import TASK_COLUMNS, judge_column
from pairscale.core.comparisons import OF_ITS_PAIR, key_expressions
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, TableError
from pairscale.core.files import read_table
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, checked, require_int, require_level, require_seed
from pairscale.core.provenance import Provenance, fingerprint
from pairscale.core.results import ResultColumns, read_form, text_columns
from pairscale.core.tables import Table, as_text, id_text, listed, require_columns, require_ids, to_frame
from pairscale.store.label_keys import known_key, read_key
from pairscale.store.reading import is_run, named_runs, read_comparisons
from pairscale.store.runfile import open_run

if TYPE_CHECKING:
    from pairscale.core.arrays import Floats, Ints

__all__ = ["LEAST_UNITS", "Agreement", "agreement"]

_TABLE = {
    "statistic": pl.String(),
    "weights": pl.String(),
    "estimate": pl.Float64(),
    "lower": pl.Float64(),
    "upper": pl.Float64(),
    "interval": pl.String(),
    "n_units": pl.Int64(),
}
_ROLES = ("unit", "rater", "label")
_CASES = ("case_id", "labeller", "preferred")
"""What labels of cases call their units, raters and labels."""
_SIDES = {"1": "1", "2": "2", "tie": "tie", "t": "tie", "1.0": "1", "2.0": "2"}


@dataclass(frozen=True, slots=True, repr=False)
class Agreement(ReprMixin, table="table"):
    """How far raters agree.

    Attributes:
        table: one row per statistic: ``statistic weights estimate lower upper interval n_units``. ``interval`` says how
            it was made: ``wilson``, ``dirichlet`` (of two raters: tables of labels that the observed one may have come
            from), ``bootstrap`` (percentiles, units drawn with replacement), or null where there is none: fewer than 20
            units were labelled, or all labels of more than two raters agree. ``n_units`` are the units it rests on.
        pairs: one row for every two raters: ``rater1 rater2 n_units percent_agreement cohen_kappa``, and the weighted
            kappas where the labels have an order.
        categories: the labels, in their order.
        ordered: whether that order means anything.
        n_units: units with a label.
        n_raters: raters.
        level: Level of the intervals.
        notices: what was left out, and what to be careful with.
        provenance: how to get the same again.
        people: of a run file, one row per person: ``person comparisons ties skipped seconds last agreement infit misfit
            reason``, where ``agreement`` is with the scale of all answers; None of other labels.
        by: of labels of cases, what was compared: ``variant`` (who preferred which variant) or ``position`` (which side
            was chosen); None of other labels.
    """

    table: pl.DataFrame
    pairs: pl.DataFrame
    categories: tuple[Any, ...]
    ordered: bool
    n_units: int
    n_raters: int
    level: float
    notices: tuple[str, ...]
    provenance: Provenance
    by: str | None = None
    people: pl.DataFrame | None = None

    def __str__(self) -> str:
        return f"{self.n_raters} raters on {self.n_units:,} units"


@checked
def agreement(
    labels: Table | FilePath,
    *,
    unit: str | None = None,
    rater: str | None = None,
    label: str | None = None,
    categories: Sequence[Any] | None = None,
    key: FilePath | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    level: float = 0.95,
    n_boot: int = 1000,
    seed: int | None = 1,
    encoding: str | None = None,
) -> Agreement:
    """Measure how far raters agree in their labels.

    Labels of blinded cases (``case_id``, ``preferred``) are compared by variant wherever the key is known: two agree
    when they prefer the same variant. Without a key they are compared by the side that was chosen, and a notice
    says so.

    - ``percent_agreement``: of the pairs of raters of a unit, the share who agree, averaged over units with two labels
      or more.
    - ``cohen_kappa`` (two raters): chance is the product of the two raters' own shares. With ``linear`` and
      ``quadratic`` weights too when the labels have an order; numbers are as far apart as they are, other labels one
      step.
    - ``light_kappa`` (more raters): the mean of Cohen's kappa over all pairs of raters.
    - ``krippendorff_alpha``: 1 - observed / expected disagreement, ``nominal``; ``ordinal`` too with an order, and
      ``interval`` with numbers. Any number of raters, and labels may be missing.
    - ``gwet_ac1``: chance is Σ π (1 - π) / (q - 1); it stays steady where nearly all labels are the same.

    Args:
        labels: A run file with labels or with several judges, several run files, or a table or a file: a long one with
            a unit, a rater and a label per row, a wide one with a column per rater (and, if there is one, the column of
            units), or results with a column ``judge_id`` or ``judge``, where each pair is a unit. A missing label is
            null.
        unit: The column of units; by default ``case_id`` where the table is one of :func:`label`, else ``unit``.
        rater: The column of raters in a long table; by default ``labeller`` or ``rater``.
        label: The column of labels in a long table; by default ``preferred`` or ``label``.
        categories: All labels that are possible, in their order. Without it, those that occur: numbers in their order,
            texts without any.
        key: Of labels of cases: the key that says which variant stands first. By default the labels' own column
            ``first_variant``, or the key beside the file.
        a_col: Of results under other names: the column of the first text of a pair.
        b_col: The column of the second text.
        winner_col: The column that says who won.
        level: Level of the intervals.
        n_boot: How many bootstrap resamples of the units; 0 for no intervals but Wilson's. It takes 20 units.
        seed: Seed of the resampling; None for different random numbers each time.
        encoding: Encoding of a text file that is not UTF-8.

    Returns:
        An :class:`Agreement` with ``table`` and ``pairs``.

    Raises:
        TableError: If a rater labels a unit twice, or a label is not one of the categories.
        InputError: If there are fewer than two raters, or no unit that two of them labelled.

    Example:
        >>> wide = {"ann": ["a", "a", "b", "b", "a"], "bob": ["a", "b", "b", "b", "a"]}
        >>> agreement(wide, seed=1).table["estimate"].round(3).to_list()
        [0.8, 0.615, 0.64, 0.6]
    """
    level = require_level(level)
    n_boot = require_int(n_boot, "n_boot", least=0)
    seed = require_seed(seed)
    path = labels if isinstance(labels, str | os.PathLike) else None
    named = (unit, rater, label)
    columns = ResultColumns(a_col, b_col, winner_col, encoding)
    table = _read(labels, encoding)
    if not any(named):
        table = _of_results(table, columns)
    elif columns:
        raise InputError("a_col, b_col and winner_col belong to results; unit, rater and label to labels")
    usual = _CASES if set(_CASES) <= set(table.columns) else _ROLES
    roles = [name or default for name, default in zip(named, usual, strict=True)]
    notices: list[str] = []
    by = None
    if {roles[0], roles[2]} == {"case_id", "preferred"} <= set(table.columns):
        by, preferred = _preferred(table, key, path, encoding)
        table = table.with_columns(preferred=preferred)
        if by == "position" and ("ID1" not in table.columns or table["ID1"].null_count() == table.height):
            notices.append(
                "no key says which variant stands first, so labels are compared by position (which side was chosen); "
                "name the key of the manifest with `key=` to compare them by variant"
            )
    elif key is not None:
        raise InputError("key belongs to labels of cases, with case_id and preferred")
    if path is not None and categories is not None and roles[2] in table.columns:
        table = table.with_columns(table[roles[2]].cast(str))  # as the categories are written
    long = _long(table, roles)
    names = _categories(long["label"], categories)
    numeric = long["label"].dtype.is_numeric()
    places = {name: place for place, name in enumerate(names)}
    long = long.with_columns(label=pl.Series([places[name] for name in long["label"]]))
    wide = long.pivot("rater", index="unit", values="label").drop("unit")
    codes = wide.fill_null(-1).to_numpy()
    if (codes >= 0).sum(axis=1).max() < 2:
        raise InputError(
            "no unit was labelled by two raters; there is nothing to compare (the report of a run says how far each "
            "person agrees with the common scale)"
        )
    ordered = numeric or categories is not None
    metrics = ("nominal", "ordinal", "interval")[: 1 + ordered + numeric]
    numbers = np.array(names if numeric else range(len(names)), dtype=np.float64)
    rows, cautions = statistic_rows(codes, numbers, metrics, n_boot, level, seed)
    notices += cautions
    for message in notices:
        notice(message)
    people = None
    if path is not None and is_run(path):
        with open_run(path) as store:
            table = people_table(answers_of_people(store))
            people = table if table.height else None
    settings = {"level": level, "n_boot": n_boot, "categories": [str(name) for name in names], "by": by}
    return Agreement(
        pl.DataFrame(rows, schema=_TABLE, orient="row"),
        _pair_table(codes, wide.columns, numbers, metrics),
        tuple(names),
        ordered,
        len(codes),
        wide.width,
        level,
        tuple(notices),
        Provenance("agreement", settings, seed),
        by,
        people,
    )


def _pair_table(codes: Ints, raters: Sequence[str], numbers: Floats, metrics: Sequence[str]) -> pl.DataFrame:
    """One row for every two raters: how often they agree, and their kappas."""
    rows = []
    for first, second in combinations(range(len(raters)), 2):
        both = codes[:, [first, second]]
        both = both[(both >= 0).all(axis=1)]
        row = {"rater1": raters[first], "rater2": raters[second], "n_units": len(both)}
        for (name, weights), coefficient in pair_coefficients(both, numbers, metrics).items():
            row[f"{name}_{weights}"] = estimate_of(coefficient, len(both))
        rows.append(row)
    table = pl.DataFrame(rows, infer_schema_length=None).cast({cs.by_dtype(pl.Null): pl.Float64()})
    return table.rename(lambda name: name.removesuffix("_None").removesuffix("_unweighted"))


# Labels in.


def _read(labels: Table | FilePath, encoding: str | None) -> pl.DataFrame:
    """The table that holds the labels, as it is written."""
    labels, files = named_runs(labels)
    if files is not None:
        return read_comparisons(files, every_judge=True).table
    if not isinstance(labels, str | os.PathLike):
        return to_frame(labels, "labels")
    if is_run(labels):
        missing = f"`pairscale label MANIFEST --run {labels}` collects them"
        with open_run(labels) as store:
            table = store.labels()
            if table.height == 0:
                table = answers_of_people(store)
            if table.height == 0 and store.conditions().height > 1:
                table = store.results()
    else:
        table = read_table(labels, text=_text_columns, encoding=encoding)
        missing = "it has a header and no rows"
    if table.height == 0:
        raise InputError(f"{labels} holds no labels; {missing}")
    return table


def _text_columns(frame: pl.DataFrame) -> set[str]:
    return {*_CASES, *_ROLES} & set(frame.columns) | text_columns(frame)


def _preferred(
    table: pl.DataFrame, key: FilePath | None, path: FilePath | None, encoding: str | None
) -> tuple[str, pl.Series]:
    """``variant`` and the variant that each label prefers, or ``position`` and its side where no key is known."""
    written = table["preferred"].cast(pl.String).str.strip_chars().str.to_lowercase()
    sides = written.replace_strict(_SIDES, default=None, return_dtype=pl.String())
    unknown = written.filter(sides.is_null() & written.is_not_null()).unique(maintain_order=True)
    if len(unknown):
        raise TableError(f"labels: preferred is {listed(unknown.to_list())}; it must be 1, 2 or tie")
    keys = None
    if key is not None:
        keys = read_key(key, encoding)
    elif path is not None or "first_variant" in table.columns:
        keys = known_key(Path(path or "labels"), table.to_dicts())
    if keys is None:
        return "position", sides
    variants = {name: row["first_variant"] for name, row in keys.items()}
    cases = id_text(table["case_id"], "labels")
    first = cases.replace_strict(variants, default=None, return_dtype=pl.String())
    missing = cases.filter(first.is_null() & sides.is_not_null()).unique(maintain_order=True)
    if len(missing):
        raise TableError(f"labels: the key does not have {listed(missing.to_list())}; name the right key with `key=`")
    second = first.replace({"a": "b", "b": "a"})
    return "variant", sides.zip_with(sides != "1", first).zip_with(sides != "2", second)


def _of_results(table: pl.DataFrame, columns: ResultColumns) -> pl.DataFrame:
    """Results of several judges as labels: each pair is a unit, each judge a rater, the label which of them won."""
    names = set(table.columns)
    if not columns:
        if set(_CASES) <= names or {"rater", "label"} <= names:
            return table
        try:
            read_form(table.clear())  # by the names of the columns alone: figures of raters could look like anything
        except TableError:
            raters = [name for name in table.columns if name != "unit"]
            notice(f"read as one row per unit and one column per rater: {listed(raters, 12)}")
            return table
    results = read_form(table, "labels", columns)
    judge = judge_column(results.table)
    if judge is None:
        raise InputError(
            f"labels: read as comparisons ({', '.join(results.columns)}), but no column judge_id or judge says who "
            "judged"
        )
    tie = pl.col("outcome") == "tie" if "outcome" in results.table.columns else pl.lit(value=False)
    label = pl.when(OF_ITS_PAIR).then(_winner(results.table)).when(tie).then(pl.lit("tie"))
    tasks = [name for name in (*TASK_COLUMNS, "turn") if name in results.table.columns]
    parts = [key_expressions("ID1", "ID2")[1], *(pl.col(name).cast(pl.String).fill_null("") for name in tasks)]
    labels = results.table.select(unit=pl.concat_str(parts, separator="\n"), label=label, rater=judge)
    labels = labels.drop_nulls("label")
    unit = " and ".join(["pair", *tasks])
    once = labels.unique(["unit", "rater"], keep="first", maintain_order=True)
    repeats = labels.height - once.height
    if repeats > once.height:  # these are no repeats, but questions on tasks that no column names
        raise TableError(
            f"labels: judges answer the same {unit} more than once; call the column that tells these questions apart "
            "question_id"
        )
    if repeats:
        notice(f"answers left out because the judge had answered the same {unit} before: {repeats:,}")
    notice(f"{results.line}; each {unit} is a unit, each {judge} a rater, and the label says which of the two won")
    return once


def _winner(table: pl.DataFrame) -> pl.Expr:
    """Who won, by name if there are only two; else which side of the pair, 1 or 2, as chance draws sides for each pair.

    By name, each of many texts would be a label of its own. No label would then seem to agree by chance.
    """
    pairs = table.select(low=pl.min_horizontal("ID1", "ID2"), high=pl.max_horizontal("ID1", "ID2"))
    if pl.concat([pairs["low"], pairs["high"]]).n_unique() <= 2:
        return pl.col("better_id")
    drawn = [int(fingerprint(list(pair))[:8], 16) % 2 == 1 for pair in pairs.iter_rows()]
    is_low = pl.col("better_id") == pairs["low"]
    return pl.when(is_low == pl.Series(drawn)).then(pl.lit("1")).otherwise(pl.lit("2"))


def _long(frame: pl.DataFrame, roles: Sequence[str]) -> pl.DataFrame:
    """``unit rater label`` without missing labels."""
    unit = roles[0]
    if {*roles[1:]} <= {*frame.columns}:
        require_columns(frame, roles, "labels")
        frame = require_ids(frame, roles[:2], "labels").select(roles).rename(dict(zip(roles, _ROLES, strict=True)))
    else:
        columns = [name for name in frame.columns if name != unit]
        if len(columns) < 2:
            raise InputError(
                f"labels: give columns {', '.join(map(repr, roles[:2]))} and {roles[2]!r}, or a column for each of two "
                f"raters or more; there are {listed(frame.columns, 12) or 'none'}"
            )
        if unit not in frame.columns:
            frame = frame.with_row_index(unit, 1)
        if not all(frame[name].dtype.is_numeric() for name in columns):
            frame = frame.with_columns(as_text(frame[name], "labels") for name in columns)
        frame = frame.with_columns(id_text(frame[unit], "labels").alias("unit"))
        frame = frame.unpivot(columns, index="unit", variable_name="rater", value_name="label")
    if frame["label"].dtype.is_float():
        frame = frame.with_columns(pl.col("label").fill_nan(None))
    frame = frame.drop_nulls("label")
    twice = frame.filter(pl.struct("unit", "rater").is_duplicated())
    if twice.height:
        raise TableError(f"labels: {twice['rater'][0]!r} labels {twice['unit'][0]!r} more than once; keep one of them")
    if frame["rater"].n_unique() < 2:
        raise InputError(f"agreement needs two raters or more; there are {frame['rater'].n_unique()}")
    return frame


def _categories(labels: pl.Series, chosen: Sequence[Any] | None) -> list[Any]:
    """The labels there may be."""
    used = labels.unique().sort().to_list()
    if chosen is None:
        return used
    if len(set(chosen)) < len(chosen):
        raise InputError("categories: every label may be named once")
    unknown = [name for name in used if name not in chosen]
    if unknown:
        raise TableError(f"labels: {listed(unknown)} is not one of the categories {listed(chosen)}")
    return list(chosen)
