"""``export``: a run out again, as a table of its comparisons or as preference pairs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pairscale.core.counting import is_pattern
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES, replacing, write_table
from pairscale.core.notices import notice
from pairscale.core.options import checked, require_choice, require_suffix
from pairscale.core.tables import Table
from pairscale.evaluate.store import saved_result
from pairscale.reporting.preferences import (
    PreferencePairs,
    as_trl,
    asked_in_both_orders,
    preferences_of_ab,
    preferences_of_texts,
)
from pairscale.reporting.results import ResultsReading
from pairscale.store.marks import RESULTS
from pairscale.store.reading import is_run, read_comparisons
from pairscale.store.runfile import open_run
from pairscale.store.several import named_runs
from pairscale.store.transfer import export_results

ExportKind: TypeAlias = Literal["results", "preferences"]
"""What a run may be exported as."""


@checked
def export(
    run: Table | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    kind: ExportKind = "results",
    condition: str | None = None,
    prompt: str | None = None,
    input_col: str | None = None,
    conversational: bool = False,
    implicit_prompt: bool = False,
    samples: Table | str | os.PathLike[str] | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
    key: str | os.PathLike[str] | None = None,
    copy: bool = False,
) -> Path:
    """Write a run to a table: csv, tsv, jsonl, json, parquet or xlsx, by its ending; or copy its run file.

    ``results`` are all comparisons, failed ones with their outcome; a run that is still being written is exported as it
    is at one moment. Attempts, logs, the labels of people and the hash chain go to a second file beside it, with
    ``.logs.jsonl`` after its name, where :func:`import_run` finds it. Texts, requests, raw replies and the links of
    labellers are not exported.

    ``preferences`` are pairs for training in TRL's form, ``prompt chosen rejected``, with ``probability margin
    both_orders chosen_id rejected_id`` behind them. Ties and flips are left out, and counted in a notice. Of an A/B run
    the task is the prompt.

    ``copy`` makes a run file that holds everything, as it is at one moment, also while the run is being written: texts,
    requests, raw replies and the links of labellers, too.

    Args:
        run: The run file; several of them, or results of any other form that :func:`pairscale.fit` takes, which are
            written as ``ID1 ID2 better_id`` and the columns they came with.
        path: The table to write, or the run file.
        kind: ``results`` or ``preferences``.
        condition: Of preferences: the judge or the condition, ``people`` or ``all``; of an A/B run the comparator; of
            labels the criterion.
        prompt: Of preferences: the prompt that all texts answer.
        input_col: Of preferences: the column of the texts that holds the prompt of each.
        conversational: Of preferences: write messages with roles instead of plain text.
        implicit_prompt: Of preferences: put the prompt into both texts instead of a column of its own.
        samples: Of preferences from results in a table: the texts.
        a_col: Of results in a table: the column of the first text of a pair, or its path where values are nested.
        b_col: Of results in a table: the column of the second text.
        winner_col: Of results in a table: the column that says who won.
        encoding: Of results in a table: the encoding of text files that are not UTF-8.
        key: Of labels that do not say what they compare: the key of their manifest, or their table of pairs.
        copy: Copy the run file, whole, to a new file.

    Returns:
        The file that was written.

    Raises:
        InputError: If an option does not fit, or there is no preference to export.
        StoreError: If the run file cannot be read.
        FileFormatError: If the ending of ``path`` is not that of a table.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.synthetic_essays(3, seed=1))
        >>> _ = ps.judge(pairs, run="exported.db", progress=False)
        >>> ps.export("exported.db", "comparisons.csv").name
        'comparisons.csv'
        >>> ps.export("exported.db", "pairs.jsonl", kind="preferences", prompt="Should phones be banned?").name
        'pairs.jsonl'
    """
    require_choice(kind, "kind", get_args(ExportKind))
    if copy:
        tables_only = {
            "kind": kind != "results", "condition": condition, "prompt": prompt, "input_col": input_col,
            "conversational": conversational, "implicit_prompt": implicit_prompt, "samples": samples, "a_col": a_col,
            "b_col": b_col, "winner_col": winner_col, "encoding": encoding, "key": key,
        }  # fmt: skip
        return _copied(run, Path(path), [name for name, value in tables_only.items() if value not in (None, False)])
    require_suffix(path, "path", TABLE_SUFFIXES)
    reading = ResultsReading(samples, a_col, b_col, winner_col, encoding, key)
    run, files = named_runs(run)
    named = None
    if files is None and isinstance(run, str | os.PathLike) and is_run(run) and not is_pattern(run):
        named = run
    if named is not None:
        reading.require_none("a run file knows its columns and its texts")
    if kind == "results":
        given = {
            "condition": condition if named is not None else None, "samples": samples, "prompt": prompt,
            "input_col": input_col, "conversational": conversational or None,
            "implicit_prompt": implicit_prompt or None,
        }  # fmt: skip
        if wrong := next((name for name, value in given.items() if value is not None), None):
            raise InputError(f"`{wrong}=` belongs to `kind=preferences`, not to `kind=results`; leave it out")
        if named is not None:
            return export_results(named, path)
        return write_table(reading.comparisons(run, condition, every_judge=True).table, path)
    if named is not None:
        found = _preferences(named, condition, prompt, input_col)
    elif samples is None and files is None:
        raise InputError("preferences are pairs of texts, and results in a table have none; give them with `samples=`")
    else:
        known = reading.comparisons(run, condition)
        assert known.samples is not None  # noqa: S101 - they were given
        found = preferences_of_texts(known.table, known.samples, (), prompt, input_col)
    notice(found.line)
    if not found.table.height:
        raise InputError("there is no preference to export: no pair has a winner")
    if found.table["prompt"].null_count():
        notice(
            "without a prompt: TRL takes such pairs as having theirs inside (name it with `prompt=` or `input_col=`)"
        )
    return write_table(as_trl(found.table, conversational=conversational, implicit_prompt=implicit_prompt), path)


def _copied(run: Table | str | os.PathLike[str], path: Path, extra: Sequence[str]) -> Path:
    """A copy of a run file, whole or not at all."""
    if extra:
        raise InputError(f"`{extra[0]}=` does not belong to a copy, which holds everything; leave it out")
    if not isinstance(run, str | os.PathLike):
        raise InputError("a table in memory has no run file to copy; name the run file")
    if path.suffix.lower() in TABLE_SUFFIXES:
        raise InputError(f"a copy of a run file is a run file, not a table; name it {path.with_suffix('.db').name}")
    if path.exists():
        raise InputError(f"{path} already exists; name another file")
    with open_run(run) as store, replacing(path) as temporary:
        temporary.unlink()
        store.save_copy(temporary)
    return path


def _preferences(
    run: str | os.PathLike[str], condition: str | None, prompt: str | None, input_col: str | None
) -> PreferencePairs:
    with open_run(run) as store, store.snapshot():
        if store.log_length(RESULTS):
            if prompt is not None or input_col is not None:
                raise InputError("`prompt=` and `input_col=` belong to texts; the tasks of an A/B run are the prompts")
            kept = saved_result(store)
            if kept is None:
                raise InputError("the run file keeps no result of a comparison of two variants")
            return preferences_of_ab(*kept, condition)
        known = read_comparisons(store, condition)
        return preferences_of_texts(known.table, store.items(), asked_in_both_orders(store), prompt, input_col)
