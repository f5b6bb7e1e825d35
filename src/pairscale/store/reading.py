"""One reader of results, for every function that takes some: tables, files, run files, and the labels of people."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from pairscale.core.counting import collected, count_rows, is_many, is_pattern, scanned
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES, read_table
from pairscale.core.notices import notice, plural, without_notices
from pairscale.core.options import FilePath, checked
from pairscale.core.results import ResultColumns, Results, form_columns, read_form, text_columns, usual_names
from pairscale.core.tables import PAIRS_CHOSEN, Table, id_text, listed, to_frame, unnumbered
from pairscale.store.label_keys import key_path, known_key, read_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    import narwhals as nw

    from pairscale.store.runfile import RunFile


PEOPLE = "people"
"""The condition of people's labels in a run file that judges have answered in, too."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Results, and what is known about them.

    Attributes:
        table: ``ID1 ID2 better_id`` and the columns they came with.
        line: what was read, in one line.
        ids: all items there are, where a run file says it.
        chosen: how the pairs were chosen, where a run file or its export says it.
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


def is_run(path: FilePath) -> bool:
    """Whether a path is that of a run file, by its name: a database URL, or no ending of a table."""
    return "://" in str(path) or Path(path).suffix.lower() not in TABLE_SUFFIXES


def labels_variants(path: FilePath, key: FilePath | None = None, encoding: str | None = None) -> bool:
    """Whether a file holds labels of two variants, and not of texts with ids.

    Args:
        path: the file.
        key: of labels, see :func:`read_comparisons`.
        encoding: of a text file that is not UTF-8.
    """
    if is_pattern(path):
        return False
    with without_notices():
        labels = read_table(path, encoding=encoding)
    if not {"case_id", "preferred"} <= set(labels.columns) or _has_ids(labels):
        return False
    return key is None or "first_variant" in read_table(key, encoding=encoding).columns


def _has_ids(labels: pl.DataFrame) -> bool:
    """Whether labels name the two texts of every case."""
    return {"ID1", "ID2"} <= set(labels.columns) and not labels.select(pl.col("ID1", "ID2").has_nulls().any()).row(0)[0]


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
        ``order_known`` (false) where it is not known which text was shown first.

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
    key: FilePath | None = None,
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
        keep: of Parquet files and lazy tables of more than 200,000 comparisons, count the different ones instead of
            reading all: the two texts and who won, and these columns. None reads all of them.
        every_judge: of run files, take the answers of all conditions where none is chosen.

    Raises:
        InputError: If the results cannot be read, or a choice is missing or belongs to another kind of file.
    """
    columns = ResultColumns(a_col, b_col, winner_col, encoding)
    stores: list[str | RunFile] = []
    if _is_open(data):
        stores = [cast("RunFile", data)]
    else:
        data, files = named_runs(data)
        if files is None and isinstance(data, str | os.PathLike) and is_run(data) and not is_pattern(data):
            files = [os.fspath(data)]
        stores = list(files or ())
    is_adaptive = hasattr(data, "as_comparisons")  # a run that knows all items and how its pairs were chosen
    if (stores or is_adaptive) and (columns or key is not None or encoding is not None):
        raise InputError("the column options, `key=` and `encoding=` belong to tables; a run file knows its columns")
    if stores:
        from pairscale.store.runfile import RunFile, open_run

        with ExitStack() as stack:
            opened = [store if isinstance(store, RunFile) else stack.enter_context(open_run(store)) for store in stores]
            return _of_runs(opened, condition, every_judge=every_judge)
    if is_adaptive:
        return cast("Comparisons", data.as_comparisons())  # type: ignore[union-attr]
    results = read_criteria(data, columns, key, None if keep is None else [*keep, PAIRS_CHOSEN])
    if results.form == "labels of people" and "criterion" in results.table.columns:
        results = replace(results, table=_of_criterion(results.table, "criterion", condition))
    elif condition is not None:
        raise InputError("`condition=` belongs to run files; a table of results has no conditions to choose from")
    if aloud and (results.form is not None or results.unknown):
        notice(results.line)
    chosen: Literal["adaptive"] | None = None
    if PAIRS_CHOSEN in results.table.columns and (results.table[PAIRS_CHOSEN] == "adaptive").any():
        chosen = "adaptive"
    return Comparisons(results.table, results.line, chosen=chosen)


def read_criteria(
    data: Table | FilePath,
    columns: ResultColumns,
    key: FilePath | None = None,
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
    if is_file:
        data = read_table(data, text=partial(text_columns, columns=columns), encoding=columns.encoding)
    return _of_table(to_frame(data, what), what, columns, key)


def _of_lazy(
    lazy: nw.LazyFrame[Any],
    what: str,
    columns: ResultColumns,
    key: FilePath | None,
    keep: Sequence[str] | None,
) -> Results:
    """Results that are not in memory: few are read, and the different ones of many are counted."""
    import narwhals as nw

    if keep is None or not is_many(int(collected(lazy.select(nw.len()), what).item())):
        return _of_table(collected(lazy, what), what, columns, key)
    names = collected(lazy.head(0), what)
    usual = {} if columns else usual_names(names.columns)
    names = names.rename(usual)
    wanted = form_columns(names, what, columns)
    wanted += [name for name in keep if name in names.columns and name not in wanted]
    with unnumbered():
        return read_form(count_rows(lazy.rename(usual), wanted, what), what, columns)


def _of_table(frame: pl.DataFrame, what: str, columns: ResultColumns, key: FilePath | None) -> Results:
    names = set(frame.columns)
    has_answers = not names.isdisjoint({"better_id", "better_sample", "preferred", "probability"})
    if {"ID1", "ID2"} <= names and not has_answers and not columns:
        raise InputError(
            f"{what} holds pairs without answers; `pairscale judge {what} --run FILE` gets them (if it has answers, "
            "name their column with `winner_col=`)"
        )
    is_labels = {"case_id", "preferred"} <= names and not columns and not {"better_id", "better_sample"} & names
    if key is not None and not is_labels:
        raise InputError(f"`key=` belongs to labels of cases, with case_id and preferred; {what} holds none")
    return read_form(_named_cases(frame, what, key, columns.encoding) if is_labels else frame, what, columns)


# Labels of people.


def _named_cases(labels: pl.DataFrame, what: str, key: FilePath | None, encoding: str | None) -> pl.DataFrame:
    """Labels with the ids of the two texts of each case: their own, else those of the key or of the table of pairs."""
    if _has_ids(labels):
        return labels
    case = id_text(labels["case_id"], what)
    texts_of = _cases_of(labels, what, key, encoding)
    first = case.replace_strict({name: ids[0] for name, ids in texts_of.items()}, default=None, return_dtype=pl.String)
    second = case.replace_strict({name: ids[1] for name, ids in texts_of.items()}, default=None, return_dtype=pl.String)
    named = labels.with_columns(ID1=first, ID2=second).drop_nulls("ID1")
    if named.is_empty():
        raise InputError(f"{what}: none of its cases is in the key")
    if named.height < labels.height:
        notice(f"{what}: left out {plural(labels.height - named.height, 'label')} of cases that are not in the key")
    return named


def _cases_of(
    labels: pl.DataFrame, what: str, key: FilePath | None, encoding: str | None
) -> dict[str, tuple[str, str]]:
    """The two texts of each case: of a table of pairs, or the variants a and b of a manifest."""
    if key is not None:
        pairs = read_table(key, encoding=encoding)
        if {"ID1", "ID2"} <= set(pairs.columns):
            name = next((name for name in ("pair_uid", "custom_id") if name in pairs.columns), None)
            names = pairs.select(pl.format("{}:{}", "ID1", "ID2") if name is None else name).to_series()
            return dict(zip(names, pairs.select("ID1", "ID2").rows(), strict=True))
    key_rows = read_key(key, encoding) if key is not None else known_key(Path(what), labels.to_dicts())
    if key_rows is None:
        raise InputError(
            f"{what}: labels of cases without the ids of their texts, and there is no {key_path(what).name} beside "
            "them; name the key of the manifest, or the table of pairs, with `key=`"
        )
    return {name: ("a", "b") if row["first_variant"] == "a" else ("b", "a") for name, row in key_rows.items()}


def _of_criterion(table: pl.DataFrame, column: str, wanted: str | None) -> pl.DataFrame:
    """The labels of one criterion; one that no label has is refused, and none where labels are under several."""
    criteria = table[column].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    if wanted == "all" or (wanted is None and len(criteria) <= 1):
        return table
    if wanted not in criteria:
        raise InputError(f"these are labels of several criteria; `condition=` takes {listed(criteria, 20)} or 'all'")
    return table.filter(pl.col(column).cast(pl.String) == wanted)


# Run files.


def _is_open(data: object) -> bool:
    """Whether it is an open run file; there is none before its module was imported, which takes long."""
    module = sys.modules.get("pairscale.store.runfile")
    return module is not None and isinstance(data, module.RunFile)


def _of_runs(stores: Sequence[RunFile], condition: str | None, *, every_judge: bool) -> Comparisons:
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
    parts = [store.results(meant) for store in stores]
    line = f"{rows:,} comparisons of {_named(stores)}, judged by {', '.join(judges) or 'unknown'}"
    if any(store.labels().height for store in stores):
        line += "; labels of people are not among them (condition=people takes those)"
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
    kept = _of_criterion(read_form(table).table, "trait", criterion)
    people = plural(kept["judge_id"].n_unique(), "person", "people")
    line = f"{kept.height:,} labels of {people}, from {_named(stores)}"
    samples = joined_samples(stores)
    return Comparisons(kept, line, samples["ID"].to_list() or None, "beforehand", samples)


def _named(stores: Sequence[RunFile]) -> str:
    return "a run file" if len(stores) == 1 else f"{len(stores):,} run files"


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
    available = "; ".join(f"{judge} ({name[:8]})" for name, judge in names.items())
    problem = "there are several conditions" if matching else f"no condition is called {wanted!r}"
    raise InputError(f"{problem}; `condition=` takes one of them or 'all': {available}")


SHARD = "shard"
"""The fact that makes a run file a shard: its ``number``, of how many (``of``), and which ``job`` it belongs to."""

_SQLITE = b"SQLite format 3\0"


def named_runs(source: Any) -> tuple[Any, list[str] | None]:
    """The source, and the run files where it is a list, a folder or a pattern that names several of them.

    Returns:
        The one run file, table or whatever else is meant, and None; or the source and two or more run files.

    Raises:
        InputError: a folder holds no run file, or a list holds something else as well.
    """
    is_list = isinstance(source, list | tuple) and source and all(isinstance(x, str | os.PathLike) for x in source)
    if not is_list and not isinstance(source, str | os.PathLike):
        return source, None
    files = [file for name in (source if is_list else [source]) for file in _run_files(os.fspath(name))]
    if len(files) == 1:
        return files[0], None
    if not is_list and not any(map(is_run_file, files)):  # a pattern of tables
        return source, None
    tables = [name for name in files if Path(name).suffix.lower() in TABLE_SUFFIXES]
    if tables:
        raise InputError(f"{listed(tables)}: only run files are read together; name one kind of files")
    return source, files


def _run_files(path: str) -> list[str]:
    """The files that a path, a folder or a pattern means."""
    if is_pattern(path):
        files = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a pattern may be absolute
        return [name for name in files if is_run_file(name) or Path(name).suffix.lower() in TABLE_SUFFIXES]
    if "://" in path or not Path(path).is_dir():
        return [path]
    files = [str(file) for file in sorted(Path(path).iterdir()) if is_run_file(file)]
    if not files:
        raise InputError(f"{path}: there is no run file in this folder")
    return files


def is_run_file(path: FilePath) -> bool:
    """Whether a path is that of an SQLite file, as run files are."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def require_one_job(stores: Sequence[RunFile]) -> None:
    """Refuse copies of one run file and shards of different jobs; say which shards are missing.

    Raises:
        InputError: the run files do not belong together.
    """
    created: dict[str, str] = {}
    for store in stores:
        first = created.setdefault(str(store.get_meta("created_at")), store.name)
        if first != store.name:
            raise InputError(f"{first} and {store.name} are copies of one run file; name one of them")
    facts = {store.name: store.get_meta(SHARD) for store in stores}
    shards = {name: shard for name, shard in facts.items() if shard is not None}
    if not shards:
        return
    first, shard = next(iter(shards.items()))
    for name, other in shards.items():
        if (other["job"], other["of"]) != (shard["job"], shard["of"]):
            raise InputError(f"{first} and {name} are shards of different pairs; read each job by itself")
    missing = sorted(set(range(1, shard["of"] + 1)) - {other["number"] for other in shards.values()})
    if missing:
        notice(f"{len(shards)} of {shard['of']} shards are here; missing: {', '.join(map(str, missing))}")


def joined_samples(stores: Sequence[RunFile]) -> pl.DataFrame:
    """The texts of all run files, each once.

    Raises:
        InputError: one ID has different texts.
    """
    parts = [store.items() for store in stores]
    samples = pl.concat(parts, how="diagonal_relaxed")
    texts = samples.group_by("ID", maintain_order=True).agg(pl.col("text").n_unique())
    differing = texts.filter(pl.col("text") > 1)["ID"].to_list()
    if differing:
        raise InputError(f"{listed(differing)} is one text in one run file and another text in another one")
    return samples.unique("ID", keep="first", maintain_order=True)
