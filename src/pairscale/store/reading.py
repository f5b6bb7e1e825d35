"""One reader of results, for every function that takes some: tables, files, run files, and the labels of people."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from pairscale.core.counting import (
    MOST_IN_MEMORY,
    collected,
    columns_read,
    count_rows,
    is_many,
    is_pattern,
    scanned,
    scanned_columns,
    scanned_height,
)
from pairscale.core.encodings import encoding_of, read_bytes
from pairscale.core.errors import InputError, TableError
from pairscale.core.files import TABLE_SUFFIXES, read_rows, read_table
from pairscale.core.notices import notice
from pairscale.core.options import checked
from pairscale.core.results import ResultColumns, Results, read_form, text_columns
from pairscale.core.tables import Table, id_text, listed, to_frame, unnumbered
from pairscale.store.label_keys import key_path, known_key, read_key
from pairscale.store.several import joined_samples, named_runs, require_one_job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import narwhals as nw

    from pairscale.store.runfile import RunFile

__all__ = [
    "PEOPLE",
    "Comparisons",
    "condition_of",
    "is_run",
    "labels_variants",
    "read_comparisons",
    "read_criteria",
    "read_results",
]

_HEAD = 2**20  # bytes of a file, which hold the names of its columns

PEOPLE = "people"
"""The condition of people's labels in a run file that judges have answered in, too."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Results, and what is known about them.

    Attributes:
        table: ``ID1 ID2 better_id`` and the columns they came with.
        line: what was read, in one line.
        ids: all items there are, where a run file says it.
        chosen: how the pairs were chosen, where a run file says it.
        samples: the texts of a run file, with the other columns they came with.
    """

    table: pl.DataFrame
    line: str
    ids: list[str] | None = None
    chosen: Literal["beforehand", "adaptive"] | None = None
    samples: pl.DataFrame | None = None

    def as_comparisons(self) -> Comparisons:
        """Themselves: what was read may be given to whatever reads results."""
        return self


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a run file, by its name: a database URL, or no ending of a table."""
    return "://" in str(path) or Path(path).suffix.lower() not in TABLE_SUFFIXES


def labels_variants(
    path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None, encoding: str | None = None
) -> bool:
    """Whether a file holds labels of two variants, and not of texts with ids.

    Args:
        path: the file.
        key: of labels, see :func:`read_comparisons`.
        encoding: of a text file that is not UTF-8.
    """
    rows = read_rows(path, encoding=encoding) if not is_pattern(path) and _may_be_labels(Path(path)) else []
    if not rows or not {"case_id", "preferred"} <= rows[0].keys():
        return False
    if all(row.get("ID1") and row.get("ID2") for row in rows):
        return False
    return key is None or _names_variants(key, encoding)


def _may_be_labels(path: Path) -> bool:
    """Whether a file may have the columns of labels; it is read, with a notice on its encoding, only where it may."""
    if (lazy := scanned(path)) is not None:
        return {"case_id", "preferred"} <= set(scanned_columns(lazy, str(path)).columns)
    if path.suffix.lower() == ".xlsx":
        return True
    content = read_bytes(path, _HEAD).replace(b"\0", b"")  # UTF-16 and UTF-32, too
    return b"case_id" in content and b"preferred" in content


def _names_variants(key: str | os.PathLike[str], encoding: str | None) -> bool:
    return any("first_variant" in row for row in read_rows(key, encoding=encoding_of(key, encoding))[:1])


@checked
def read_results(
    source: Table | str | Path | Sequence[str | Path] | RunFile,
    *,
    condition: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
    key: str | Path | None = None,
) -> pl.DataFrame:
    """Read results of every form that :func:`pairscale.fit` takes.

    Args:
        source: A run file or its database, several run files (a list, their folder or a pattern), a file of results or
            of people's labels, a table, Parquet files by a pattern (``results/*.parquet``), or what ``submit_pairs``,
            ``judge``, ``rank`` and others return.
        condition: Of a run file with several: a judge, a condition (its beginning is enough), ``people`` or ``all``. Of
            labels under several criteria: a criterion, or ``all``.
        a_col: Of a table: the column of the first text, or its path (``pair.0.id``) where values are nested.
        b_col: Of a table: the column of the second text.
        winner_col: Of a table: the column that says who won.
        encoding: Of a table: the encoding of a text file that is not UTF-8.
        key: Of labels that do not say what they compare: the key of their manifest, or their table of pairs.

    Returns:
        ``ID1 ID2 better_id`` and the columns they came with; ``outcome`` where a tie can be told from no answer, and
        ``order_known`` (false) where it is not known who stood first.

    Raises:
        InputError: If the results cannot be read, or a choice is missing or belongs to another kind of file.

    Example:
        >>> import pairscale as ps
        >>> games = [{"winner": "a", "loser": "b"}, {"winner": "c", "loser": "a"}]
        >>> ps.read_results(games).select("ID1", "ID2", "better_id").rows()
        [('a', 'b', 'a'), ('c', 'a', 'c')]
    """
    return read_comparisons(
        source, condition, a_col=a_col, b_col=b_col, winner_col=winner_col, encoding=encoding, key=key
    ).table


def read_comparisons(
    data: Table | str | Path | Sequence[str | Path] | RunFile,
    condition: str | None = None,
    *,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    key: str | os.PathLike[str] | None = None,
    encoding: str | None = None,
    aloud: bool = True,
    keep: Sequence[str] | None = None,
    every_judge: bool = False,
) -> Comparisons:
    """Results from a table, a file of results or of labels, or run files under one condition.

    Args:
        data: a table of any form that :func:`pairscale.core.results.read_form` knows, its file, a run file, or several
            run files: a list, their folder or a pattern.
        condition: of a run file with several: a judge, the beginning of a condition, ``people`` or ``all``; of labels
            under several criteria: a criterion, or ``all``.
        a_col: the column of the first text, or its path where values are nested.
        b_col: the column of the second text.
        winner_col: the column that says who won.
        key: of labels that do not say what they compare: the key of their manifest, or their table of pairs.
        encoding: of a text file that is not UTF-8.
        aloud: say by a notice what was read, if its form is one of another tool.
        keep: of Parquet files, LazyFrames and run files of more than 200,000 comparisons, count the different ones
            instead of reading all: the two texts and who won, and these columns. None reads all of them.
        every_judge: of run files, take the answers of all conditions where none is chosen.

    Raises:
        InputError: If the results cannot be read, or a choice is missing or belongs to another kind of file.
    """
    columns = ResultColumns(a_col, b_col, winner_col, encoding)
    is_open = _is_open(data)
    files: list[str] | None = None
    if not is_open:
        data, files = named_runs(data)
    is_adaptive = hasattr(data, "as_comparisons")  # a run that knows all items and how its pairs were chosen
    is_named = isinstance(data, str | os.PathLike) and is_run(data) and not is_pattern(data)
    if is_open or is_adaptive or files or is_named:
        if columns or key is not None or encoding is not None:
            raise InputError(
                "`a_col=`, `b_col=`, `winner_col=`, `key=` and `encoding=` belong to tables; a run file knows "
                "its columns"
            )
        if is_adaptive:
            if condition is not None:
                raise InputError("`condition=` belongs to run files; this is one run, with the answers of its judge")
            return cast("Comparisons", data.as_comparisons())  # type: ignore[union-attr]
        if is_open:
            return _of_runs([cast("RunFile", data)], condition, keep, every_judge=every_judge)
        from pairscale.store.runfile import open_run

        with ExitStack() as stack:
            stores = [stack.enter_context(open_run(file)) for file in files or [cast("str", data)]]
            return _of_runs(stores, condition, keep, every_judge=every_judge)
    found = read_criteria(data, columns, key, keep)
    chosen, criteria = _of_criterion(found, condition, str(data) if isinstance(data, str | os.PathLike) else "data")
    if aloud and (chosen.form is not None or chosen.unknown):
        notice(chosen.line)
    return Comparisons(chosen.table, f"{chosen.line}{criteria}")


def read_criteria(
    data: Table | str | os.PathLike[str],
    columns: ResultColumns,
    key: str | os.PathLike[str] | None = None,
    keep: Sequence[str] | None = None,
) -> Results:
    """Results from a table, or from a file of results or of labels, under whatever criteria.

    Args:
        data: a table, or its file.
        columns: the columns that a user has named.
        key: of labels, see :func:`read_comparisons`.
        keep: see :func:`read_comparisons`.

    Raises:
        InputError: If they cannot be read.
    """
    is_file = isinstance(data, str | os.PathLike)
    what = str(data) if is_file else "data"
    lazy = scanned(data)
    if lazy is not None:
        return _of_lazy(lazy, what, columns, key, keep)
    table = _with_answers(_read_file(Path(data), columns), what, columns) if is_file else data
    return _of_table(table, what, columns, key)


def _read_file(path: Path, columns: ResultColumns) -> pl.DataFrame:
    return read_table(path, text=partial(text_columns, given=columns), encoding=columns.encoding)


def _with_answers(table: pl.DataFrame, what: str, columns: ResultColumns) -> pl.DataFrame:
    there = set(table.columns)
    if (
        {"ID1", "ID2"} <= there
        and not {"better_id", "better_sample", "preferred", "probability"} & there
        and not columns
    ):
        raise InputError(
            f"{what} holds pairs without answers; `pairscale judge {what} --run FILE` gets them (if it has answers, "
            "name their column with `winner_col=`)"
        )
    return table


def _of_lazy(
    lazy: nw.LazyFrame[Any],
    what: str,
    columns: ResultColumns,
    key: str | os.PathLike[str] | None,
    keep: Sequence[str] | None,
) -> Results:
    """Results that are not in memory: few are read, and the different ones of many are counted."""
    names = _with_answers(scanned_columns(lazy, what), what, columns)
    rows = scanned_height(lazy, what)
    if keep is None and rows > MOST_IN_MEMORY:
        raise InputError(
            f"{what} has {rows:,} rows, and this needs each of them in memory, not only how often each stands there; "
            "give a part of them, or a table that you have read yourself"
        )
    if keep is None or not is_many(rows) or "case_id" in names.columns:
        return _of_table(collected(lazy, what), what, columns, key)
    if key is not None:
        raise InputError(f"`key=` belongs to labels of cases, with case_id and preferred; {what} holds none")
    wanted = columns_read(names, what, columns)
    wanted += [name for name in keep if name in names.columns and name not in wanted]
    with unnumbered():
        return read_form(count_rows(lazy, wanted, what), what, columns)


def _of_table(table: Table, what: str, columns: ResultColumns, key: str | os.PathLike[str] | None) -> Results:
    frame = to_frame(table, what) if not hasattr(table, "iloc") else table
    there = set(frame.columns)
    if {"case_id", "preferred"} <= there and not columns and not {"better_id", "better_sample"} & there:
        return read_form(_named_cases(to_frame(frame, what), what, key, columns.encoding), what)
    if key is not None:
        raise InputError(f"`key=` belongs to labels of cases, with case_id and preferred; {what} holds none")
    return read_form(frame, what, columns)  # not the table: a stream can be read once


# Labels of people.


def _named_cases(
    labels: pl.DataFrame, what: str, key: str | os.PathLike[str] | None, encoding: str | None
) -> pl.DataFrame:
    """Labels with the ids of the two texts of each case: their own, else those of the key or of the table of pairs."""
    case = id_text(labels["case_id"], what)
    who = labels["labeller"].cast(pl.String) if "labeller" in labels.columns else pl.lit("labeller")
    twice = labels.select(case.alias("case"), who.alias("who"), preferred="preferred").drop_nulls("preferred")
    again = twice.filter(pl.struct("case", "who").is_duplicated())
    if again.height:
        raise TableError(f"{what}: {again['who'][0]!r} labels {again['case'][0]!r} more than once; keep one of them")
    own = {"ID1", "ID2"} <= set(labels.columns)
    if own and not labels["ID1"].has_nulls() and not labels["ID2"].has_nulls():
        return labels
    known = _cases_of(labels, what, key, encoding)
    missing = case.filter(~case.is_in(list(known))).unique(maintain_order=True).to_list()
    if len(missing) == case.n_unique():
        raise InputError(f"{what}: none of its cases is in the key; the first is {missing[0]!r}")
    if missing:
        notice(f"{what}: left out the labels of {len(missing):,} cases that are not in the key: {listed(missing)}")
    sides = [case.replace_strict({name: ids[at] for name, ids in known.items()}, default=None) for at in (0, 1)]
    named = labels.with_columns(sides[0].alias("ID1"), sides[1].alias("ID2"))
    return named.filter(pl.col("ID1").is_not_null())


def _cases_of(
    labels: pl.DataFrame, what: str, key: str | os.PathLike[str] | None, encoding: str | None
) -> Mapping[str, tuple[str, str]]:
    """The two texts of each case; of a manifest, the variants a and b."""
    if key is not None and not _names_variants(key, encoding):
        return _cases_of_pairs(read_table(key, encoding=encoding_of(key, encoding)), str(key))
    found = read_key(key, encoding) if key is not None else known_key(Path(what), labels.to_dicts())
    if found is None:
        raise InputError(
            f"{what}: labels of cases without the ids of their texts, and there is no {key_path(what).name} beside "
            "them; name the key of the manifest, or the table of pairs, with `key=`"
        )
    return {name: ("a", "b") if row["first_variant"] == "a" else ("b", "a") for name, row in found.items()}


def _cases_of_pairs(pairs: pl.DataFrame, what: str) -> dict[str, tuple[str, str]]:
    if not {"ID1", "ID2"} <= set(pairs.columns):
        raise InputError(f"{what} is neither a key (case_id, first_variant) nor a table of pairs (ID1, ID2)")
    cases: dict[str, tuple[str, str]] = {}
    for row in pairs.iter_rows(named=True):
        one = str(row["ID1"])
        two = str(row["ID2"])
        cases.setdefault(str(row.get("pair_uid") or row.get("custom_id") or f"{one}:{two}"), (one, two))
    return cases


def _of_criterion(found: Results, wanted: str | None, what: str) -> tuple[Results, str]:
    """Labels of one criterion, and what to say of it; other results have none to choose from."""
    if found.form != "labels of people" or "criterion" not in found.table.columns:
        if wanted is not None:
            raise InputError("`condition=` belongs to run files; a table of results has no conditions to choose from")
        return found, ""
    _check_criterion(found.table["criterion"].cast(pl.String), wanted, what)
    if wanted in (None, "all"):
        return found, ""
    kept = found.table.filter(pl.col("criterion").cast(pl.String) == wanted)
    return replace(found, table=kept), f"; criterion {wanted}"


def _check_criterion(column: pl.Series, wanted: str | None, what: str) -> None:
    """Refuse a criterion that no label has, and none where labels are under several."""
    criteria = column.drop_nulls().unique(maintain_order=True).to_list()
    if wanted is not None and wanted not in (*criteria, "all"):
        raise InputError(f"no label is of the criterion {wanted!r}; there are {listed(criteria)}")
    if len(criteria) > 1 and wanted is None:
        raise InputError(
            f"{what} holds labels under {len(criteria)} criteria; choose one by `condition={criteria[0]}`, or "
            f"`condition=all`: {listed(criteria)}"
        )


# Run files.


def _is_open(data: object) -> bool:
    """Whether it is an open run file; there is none before its module was imported, which takes long."""
    module = sys.modules.get("pairscale.store.runfile")
    return module is not None and isinstance(data, module.RunFile)


def _of_runs(
    stores: Sequence[RunFile], condition: str | None, keep: Sequence[str] | None, *, every_judge: bool
) -> Comparisons:
    """The comparisons of one run file, or of several that are read together."""
    if len(stores) > 1:
        require_one_job(stores)
    tables = [store.conditions() for store in stores]
    conditions = pl.concat(tables, how="vertical_relaxed")
    is_judge = condition in conditions["judge_id"].to_list() if conditions.height else False
    if (conditions.height == 0 or condition == PEOPLE) and not is_judge:
        labels = _of_people(stores, condition if condition != PEOPLE else None)
        if labels is not None:
            return labels
    meant = None if every_judge and condition is None else choose_condition(conditions, condition)
    if meant is not None:
        conditions = conditions.filter(pl.col("condition_id") == meant)
    rows = int(conditions.select(pl.sum_horizontal("win", "tie", "flip", "abstention", "error").sum()).item())
    judges = conditions["judge_id"].drop_nulls().unique(maintain_order=True).to_list()
    if keep is not None and is_many(rows):
        from pairscale.store.queries import count_results

        parts = [count_results(store, meant, keep) for store in stores]
    else:
        parts = [store.results(meant) for store in stores]
    line = f"{rows:,} comparisons of {_named(stores)}, judged by {', '.join(judges) or 'unknown'}"
    n_labels = sum(store.labels().height for store in stores)
    if n_labels:
        line += f"; its {n_labels:,} labels of people are not among them (condition=people takes those)"
    samples = joined_samples(stores)
    chosen: Literal["beforehand", "adaptive"] = "beforehand"
    for store in stores:
        adaptive = store.get_meta("adaptive_condition")
        if adaptive is not None and meant in (None, adaptive):
            chosen = "adaptive"
    table = pl.concat(parts, how="diagonal_relaxed")
    return Comparisons(table, line, samples["ID"].to_list(), chosen, samples)


def _of_people(stores: Sequence[RunFile], criterion: str | None) -> Comparisons | None:
    """The labels in run files; None when there are none of texts with ids."""
    from pairscale.store.labels import label_results

    table = pl.concat([label_results(store) for store in stores], how="diagonal_relaxed")
    if not table.height:
        if any(store.labels().height for store in stores):
            raise InputError(
                "the run file holds labels of a manifest, whose texts have no ids; write them to a file (`pairscale "
                "label RUN --status --out labels.jsonl`) beside the key of the manifest, and name that"
            )
        return None
    read = read_form(table)
    _check_criterion(table["trait"], criterion, "the run file")
    kept = read.table if criterion in (None, "all") else read.table.filter(pl.col("trait") == criterion)
    people = kept["judge_id"].n_unique()
    line = f"{kept.height:,} labels of {people:,} {'person' if people == 1 else 'people'}, from {_named(stores)}"
    samples = joined_samples(stores)
    return Comparisons(kept, line, samples["ID"].to_list() or None, "beforehand", samples)


def _named(stores: Sequence[RunFile]) -> str:
    return "a run file" if len(stores) == 1 else f"{len(stores):,} run files"


def condition_of(store: RunFile, wanted: str | None) -> str | None:
    """The condition of a run file that is meant; see :func:`choose_condition`."""
    return choose_condition(store.conditions(), wanted)


def choose_condition(conditions: pl.DataFrame, wanted: str | None) -> str | None:
    """The condition that is meant by a judge's name or the beginning of an id; None for all together.

    Args:
        conditions: the conditions of one or more run files.
        wanted: what was chosen; None where there is one condition only.

    Raises:
        InputError: If there are no comparisons, no such condition, or several and none was chosen.
    """
    if conditions.height == 0:
        raise InputError("the run file holds no comparisons yet; `pairscale judge` makes them")
    if wanted == "all":
        notice("the answers of all conditions are fitted together")
        return None
    names = {row["condition_id"]: row["judge_id"] for row in conditions.iter_rows(named=True)}
    matching = [name for name, judge in names.items() if wanted is None or judge == wanted or name.startswith(wanted)]
    if len(matching) == 1:
        return str(matching[0])
    there = "; ".join(f"{judge} ({name[:8]})" for name, judge in names.items())
    if not matching:
        raise InputError(f"no condition is called {wanted!r}; there are: {there}")
    raise InputError(
        f"there are several conditions; choose one by `condition={matching[0][:8]}`, or `condition=all`: {there}"
    )
