"""Do raters agree? Percent agreement, Cohen's kappa, Krippendorff's alpha and Gwet's AC1, each with an interval."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from pairscale.checks._agreement_intervals import LEAST_UNITS, IntervalMethod, cell_codes, statistic_rows
from pairscale.checks._coefficients import Alpha, Gwet, Kappa, Light, Percent, Statistic
from pairscale.checks._sides import preferred_variants
from pairscale.core.columns import TASK_COLUMNS, judge_column
from pairscale.core.comparisons import OF_ITS_PAIR, key_expressions
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, TableError
from pairscale.core.files import TABLE_SUFFIXES, read_table
from pairscale.core.notices import notice
from pairscale.core.options import checked, require_int, require_level, require_seed
from pairscale.core.provenance import Provenance, fingerprint
from pairscale.core.results import ResultColumns, read_form, text_columns
from pairscale.core.tables import Table, as_text, id_text, listed, require_columns, require_ids, to_frame
from pairscale.store.reading import read_comparisons
from pairscale.store.runfile import open_run
from pairscale.store.several import named_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["LEAST_UNITS", "Agreement", "agreement", "two_raters"]

_RARE = 10  # labels besides the most common one, below which resampled intervals are too narrow

_TABLE = {
    "statistic": pl.String(),
    "weights": pl.String(),
    "estimate": pl.Float64(),
    "lower": pl.Float64(),
    "upper": pl.Float64(),
    "interval": pl.String(),
    "n_units": pl.Int64(),
}


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

    def __str__(self) -> str:
        return f"{self.n_raters} raters on {self.n_units:,} units"


@checked
def agreement(
    labels: Table | str | os.PathLike[str],
    *,
    unit: str | None = None,
    rater: str | None = None,
    label: str | None = None,
    categories: Sequence[Any] | None = None,
    key: str | os.PathLike[str] | None = None,
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
    named = (("unit", unit), ("rater", rater), ("label", label))
    table = _read(labels, encoding)
    if not any(given for _, given in named):
        table = _of_results(table, ResultColumns(a_col, b_col, winner_col, encoding))
    elif a_col or b_col or winner_col:
        raise InputError("a_col, b_col and winner_col belong to results; unit, rater and label to labels")
    columns = {name: given or _column(table, name) for name, given in named}
    notices: list[str] = []
    by = None
    if {columns["unit"], columns["label"]} == {"case_id", "preferred"} <= set(table.columns):
        path = labels if isinstance(labels, str | os.PathLike) else None
        by, preferred = preferred_variants(table, key, path, encoding)
        table = table.with_columns(preferred.alias("preferred"))
        if by == "position" and _of_manifest(table):
            notices.append(_BY_POSITION)
    elif key is not None:
        raise InputError("key belongs to labels of cases, with case_id and preferred")
    if isinstance(labels, str | os.PathLike) and categories is not None and columns["label"] in table.columns:
        table = table.with_columns(table[columns["label"]].cast(str))  # as they are named
    long = _long(table, *(columns[role] for role in _LABELS))
    names, values, ordered = _categories(long["label"], categories)
    codes, raters = _coded(long, names)
    if not ((codes >= 0).sum(axis=1) >= 2).any():
        raise InputError("no unit was labelled by two raters; there is nothing to compare")
    kinds = ["unweighted", *(["linear", "quadratic"] if ordered else [])]
    metrics = ["nominal", *(["ordinal"] if ordered else []), *(["interval"] if values is not None else [])]
    places = np.arange(len(names), dtype=np.float64) if values is None else values
    statistics, by_pair = _statistics(codes, places, kinds, metrics)
    intervals = IntervalMethod(n_boot, level, seed)
    if len(raters) == 2:
        cells: list[Statistic | None] = [*_statistics(cell_codes(len(names)), places, kinds, metrics)[0]]
        if (codes < 0).any():
            cells[-1] = None  # AC1 rests on units with one label, too
        intervals = IntervalMethod(n_boot, level, seed, by_pair["unweighted"][0].cells.sum(axis=0), cells)
    rows = statistic_rows(statistics, len(codes), intervals, notices)
    notices += _rare(codes, names, rows)
    settings = {"level": level, "n_boot": n_boot, "categories": [str(name) for name in names], "by": by}
    for words in notices:
        notice(words)
    return Agreement(
        pl.DataFrame(rows, schema=_TABLE),
        _pair_table(raters, by_pair),
        tuple(names),
        ordered,
        len(codes),
        len(raters),
        level,
        tuple(notices),
        Provenance("agreement", settings, seed),
        by,
    )


_BY_POSITION = (
    "no key says which variant stands first, so labels are compared by position (which side was chosen); name the key "
    "of the manifest with `key=` to compare them by variant"
)


def _of_manifest(table: pl.DataFrame) -> bool:
    """Whether labels are of cases of two variants, rather than of two texts with ids of their own."""
    return "ID1" not in table.columns or table["ID1"].null_count() == table.height


def _statistics(
    codes: NDArray[np.int64], places: Floats, kinds: Sequence[str], metrics: Sequence[str]
) -> tuple[list[Statistic], dict[str, list[Kappa]]]:
    """All statistics of units, AC1 last; and kappa of every two raters, by the kind of its weights."""
    counts = np.stack([(codes == at).sum(axis=1) for at in range(len(places))], axis=1).astype(np.float64)
    by_pair = {
        kind: [Kappa(codes[:, [a, b]], places, kind) for a, b in combinations(range(codes.shape[1]), 2)]
        for kind in kinds
    }
    found: list[Statistic] = [Percent(counts), *(Light(tuple(each)) for each in by_pair.values())]
    return [*found, *(Alpha(counts, places, metric) for metric in metrics), Gwet(counts)], by_pair


def _rare(codes: NDArray[np.int64], names: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What to say of resampled intervals where a rater gave few labels besides the most common one."""
    if not any(row.get("interval") == "bootstrap" for row in rows):
        return []
    for rater in codes.T:
        counts = np.bincount(rater[rater >= 0])
        others = int(counts.sum() - counts.max())
        if others < _RARE:
            common = names[int(counts.argmax())]
            return [f"few labels of a rater ({others}) are not {common!r}: resampled intervals may be too narrow"]
    return []


# Labels in.

_TURN = "turn"  # of a conversation, in MT-bench
_LABELS = {"unit": "case_id", "rater": "labeller", "label": "preferred"}


def _read(labels: Table | str | os.PathLike[str], encoding: str | None) -> pl.DataFrame:
    labels, files = named_runs(labels)
    if files is not None:
        return read_comparisons(files, every_judge=True).table
    if not isinstance(labels, str | os.PathLike):
        return to_frame(labels, "labels")
    path = str(labels)
    if "://" in path or (Path(path).suffix.lower() not in TABLE_SUFFIXES and Path(path).exists()):
        with open_run(path) as store:
            table = store.labels()
            if table.height == 0 and store.conditions().height > 1:
                return store.results()
        if table.height == 0:
            raise InputError(f"{path} holds no labels; `pairscale label MANIFEST --run {path}` collects them")
        return table
    table = read_table(path, text=_text_columns, encoding=encoding)
    if table.height == 0:
        raise InputError(f"{path} holds no labels: it has a header and no rows")
    return table


def two_raters(first: Sequence[Any], second: Sequence[Any]) -> dict[str, list[Any]]:
    """The labels of two raters of the same units, in a form that is read without a notice."""
    raters = ["first"] * len(first) + ["second"] * len(second)
    return {"unit": [*range(len(first))] * 2, "rater": raters, "label": [*first, *second]}


def _text_columns(frame: pl.DataFrame) -> set[str]:
    named = {"case_id", "labeller", "preferred", "unit", "rater", "label"} & set(frame.columns)
    return named | text_columns(frame)


def _of_results(table: pl.DataFrame, columns: ResultColumns) -> pl.DataFrame:
    """Results of several judges as labels: each pair is a unit, each judge a rater, the label which of them won."""
    there = set(table.columns)
    if not columns and (set(_LABELS.values()) <= there or {"rater", "label"} <= there):
        return table
    try:
        if not columns:
            read_form(table.clear())  # by the names of the columns alone: figures of raters could look like anything
    except TableError:
        raters = [name for name in table.columns if name != "unit"]
        notice(f"read as one row per unit and one column per rater: {listed(raters, 12)}")
        return table
    found = read_form(table, "labels", columns)
    judge = judge_column(found.table)
    if judge is None:
        raise InputError(
            f"labels: read as comparisons ({', '.join(found.columns)}), but no column judge_id or judge says who judged"
        )
    tie = pl.when(pl.col("outcome") == "tie").then(pl.lit("tie")) if "outcome" in found.table.columns else None
    winner = pl.when(OF_ITS_PAIR).then(_winner(found.table))
    said = found.table.with_columns(label=winner if tie is None else winner.otherwise(tie)).drop_nulls("label")
    tasks = [name for name in (*TASK_COLUMNS, _TURN) if name in said.columns]
    parts = [key_expressions("ID1", "ID2")[1], *(pl.col(name).cast(pl.String).fill_null("") for name in tasks)]
    said = said.with_columns(unit=pl.concat_str(parts, separator="\n"))
    unit = " and ".join(["pair", *tasks])
    once = said.unique(["unit", judge], keep="first", maintain_order=True)
    if 2 * once.height < said.height:  # these are no repeats, but questions on tasks that no column names
        raise TableError(
            f"labels: judges answer the same {unit} more than once; call the column that tells these questions apart "
            "question_id"
        )
    if once.height < said.height:
        notice(f"answers left out because the judge had answered the same {unit} before: {said.height - once.height:,}")
    notice(f"{found.line}; each {unit} is a unit, each {judge} a rater, and the label says which of the two won")
    return once.select("unit", rater=judge, label="label")


def _winner(table: pl.DataFrame) -> pl.Expr:
    """Who won, by name if there are only two; else which side of the pair, 1 or 2, as chance draws sides for each pair.

    By name, each of many texts would be a label of its own. No label would then seem to agree by chance.
    """
    sides = table.select(low=pl.min_horizontal("ID1", "ID2"), high=pl.max_horizontal("ID1", "ID2"))
    if pl.concat([sides["low"], sides["high"]]).n_unique() <= 2:
        return pl.col("better_id")
    drawn = {pair: int(fingerprint(list(pair))[:8], 16) % 2 for pair in sides.unique().iter_rows()}
    turned = pl.Series([drawn[pair] for pair in sides.iter_rows()], dtype=pl.Int8)
    is_low = pl.col("better_id") == pl.lit(sides["low"])
    return pl.when(is_low == pl.lit(turned == 1)).then(pl.lit("1")).otherwise(pl.lit("2"))


def _column(table: pl.DataFrame, role: str) -> str:
    """The column of a role: as labels of cases have it where all three are there, else called like the role."""
    return _LABELS[role] if set(_LABELS.values()) <= set(table.columns) else role


def _long(frame: pl.DataFrame, unit: str, rater: str, label: str) -> pl.DataFrame:
    """``unit rater label`` without missing labels."""
    if rater in frame.columns and label in frame.columns:
        require_columns(frame, [unit, rater, label], "labels")
        frame = require_ids(frame, [unit, rater], "labels").select(unit=unit, rater=rater, label=label)
    else:
        columns = [name for name in frame.columns if name != unit]
        if len(columns) < 2:
            raise InputError(
                f"labels: give columns {unit!r}, {rater!r} and {label!r}, or a column for each of two raters or more; "
                f"there are {listed(frame.columns, 12) or 'none'}"
            )
        if unit in frame.columns:
            units = id_text(frame[unit], "labels").alias("unit")
        else:
            units = pl.Series("unit", [str(number) for number in range(1, frame.height + 1)], dtype=pl.String)
        if not all(frame[name].dtype.is_numeric() for name in columns):
            frame = frame.with_columns(as_text(frame[name], "labels") for name in columns)
        frame = frame.with_columns(units).unpivot(columns, index="unit", variable_name="rater", value_name="label")
    frame = frame.with_columns(pl.col("label").fill_nan(None)) if frame["label"].dtype.is_float() else frame
    frame = frame.drop_nulls("label")
    twice = frame.filter(pl.struct("unit", "rater").is_duplicated())
    if twice.height:
        raise TableError(f"labels: {twice['rater'][0]!r} labels {twice['unit'][0]!r} more than once; keep one of them")
    if frame["rater"].n_unique() < 2:
        raise InputError(f"agreement needs two raters or more; there are {frame['rater'].n_unique()}")
    return frame


def _categories(labels: pl.Series, given: Sequence[Any] | None) -> tuple[list[Any], Floats | None, bool]:
    """The labels there may be, their numbers if they are numbers, and whether they have an order."""
    if labels.dtype.is_nested():
        raise TableError(f"labels: a label must be a text or a number, not {labels.dtype}")
    numeric = labels.dtype.is_numeric()
    if given is None:
        names = labels.unique().sort().to_list()
    else:
        names = list(given)
        if len(set(names)) < len(names):
            raise InputError("categories: every label may stand there once")
        unknown = [name for name in labels.unique().sort().to_list() if name not in names]
        if unknown:
            raise TableError(f"labels: {listed(unknown)} is not one of the categories {listed(names)}")
    values = np.array(names, dtype=np.float64) if numeric else None
    if values is not None and not np.isfinite(values).all():
        raise TableError("labels: a label is infinite; give finite numbers")
    return names, values, numeric or given is not None


def _coded(long: pl.DataFrame, names: list[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Units by raters, each cell the place of its label among the categories, or -1."""
    raters = long["rater"].unique(maintain_order=True).to_list()
    units = long["unit"].unique(maintain_order=True).to_list()
    at_unit, at_rater, at_name = ({name: at for at, name in enumerate(group)} for group in (units, raters, names))
    codes = np.full((len(units), len(raters)), -1, dtype=np.int64)
    for one, who, said in long.iter_rows():
        codes[at_unit[one], at_rater[who]] = at_name[said]
    return codes, raters


def _pair_table(raters: list[str], by_pair: dict[str, list[Kappa]]) -> pl.DataFrame:
    names = {kind: "cohen_kappa" if kind == "unweighted" else f"cohen_kappa_{kind}" for kind in by_pair}
    rows = []
    for number, (first, second) in enumerate(combinations(raters, 2)):
        kappas = {kind: each[number] for kind, each in by_pair.items()}
        plain = kappas["unweighted"]
        row: dict[str, Any] = {"rater1": first, "rater2": second, "n_units": plain.n_units}
        row["percent_agreement"] = plain.agreed / plain.n_units if plain.n_units else None
        for kind, kappa in kappas.items():
            value = float(kappa(np.ones((1, len(kappa.cells))))[0])
            row[names[kind]] = None if math.isnan(value) else value
        rows.append(row)
    schema = {"rater1": pl.String(), "rater2": pl.String(), "n_units": pl.Int64(), "percent_agreement": pl.Float64()}
    return pl.DataFrame(rows, schema={**schema, **dict.fromkeys(names.values(), pl.Float64())})
