"""``export``: a run out again, as a table of its comparisons or as preference pairs for training.

Preference pairs have the columns that TRL's trainers take, ``prompt chosen rejected``, plain or as messages. Behind
them are ``probability`` (that the chosen text is better, as the judge stated
it), ``margin`` (how far its score is above that of the rejected one, in logits), ``both_orders`` (true where both
orders were asked and agree; null where one was), ``chosen_id`` and ``rejected_id``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import polars as pl
from sqlalchemy import select

from pairscale.core.comparisons import Outcome
from pairscale.core.counting import is_pattern
from pairscale.core.errors import FitError, InputError
from pairscale.core.files import TABLE_SUFFIXES, replacing, write_table
from pairscale.core.notices import notice, plural
from pairscale.core.options import FilePath, checked, require_choice, require_suffix
from pairscale.core.tables import Table, listed
from pairscale.evaluate.store import saved_result
from pairscale.judges.orders import merge_orders
from pairscale.reporting.page import texts_of
from pairscale.reporting.verbs import comparisons_of, named, require_none
from pairscale.store.marks import RESULTS
from pairscale.store.reading import is_run, named_runs, read_comparisons
from pairscale.store.runfile import open_run
from pairscale.store.schema import conditions
from pairscale.store.transfer import export_results

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.evaluate.store import Compared
    from pairscale.reporting.picture import Content, Row
    from pairscale.store.runfile import RunFile

_SCHEMA: Content = {
    "prompt": pl.String(), "chosen": pl.String(), "rejected": pl.String(), "probability": pl.Float64(),
    "margin": pl.Float64(), "both_orders": pl.Boolean(), "chosen_id": pl.String(), "rejected_id": pl.String(),
}  # fmt: skip
_REASONS = {
    Outcome.TIE: "ties",
    Outcome.FLIP: "flips (another answer in another order, or when asked again)",
    Outcome.ABSTENTION: "without an answer",
    Outcome.ERROR: "without an answer",
}
_MARGIN_DIGITS = 9  # equal scores differ by less, and that is no preference

ExportKind: TypeAlias = Literal["results", "preferences"]
"""What a run may be exported as."""


@checked
def export(
    run: Table | FilePath,
    path: FilePath,
    *,
    kind: ExportKind = "results",
    condition: str | None = None,
    prompt: str | None = None,
    input_col: str | None = None,
    conversational: bool = False,
    samples: Table | FilePath | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
    key: FilePath | None = None,
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
    of_preferences = {
        "condition": condition, "prompt": prompt, "input_col": input_col, "conversational": conversational or None,
        "samples": samples,
    }  # fmt: skip
    reading = named(samples=samples, a_col=a_col, b_col=b_col, winner_col=winner_col, encoding=encoding, key=key)
    if copy:
        require_none(reading | of_preferences, "a copy holds everything")
        return _copied(run, Path(path))
    require_suffix(path, "path", TABLE_SUFFIXES)
    run, files = named_runs(run)
    run_file = None
    if files is None and isinstance(run, str | os.PathLike) and is_run(run) and not is_pattern(run):
        run_file = run
        require_none(reading, "a run file knows its columns and its texts")
    if kind == "results":
        chosen = {} if run_file is not None else {"condition": None}
        require_none(of_preferences | chosen, "it belongs to `kind=preferences`")
        if run_file is not None:
            return export_results(run_file, path)
        return write_table(comparisons_of(run, condition, every_judge=True, **reading).table, path)
    if run_file is not None:
        with open_run(run_file) as store, store.snapshot():
            pairs, left_out = _preferences_of_run(store, condition, prompt, input_col)
    else:
        known = comparisons_of(run, condition, **reading)
        if known.samples is None:
            raise InputError(
                "preferences are pairs of texts, and results in a table have none; give them with `samples=`"
            )
        pairs, left_out = _preferences_of_texts(known.table, known.samples, (), prompt, input_col)
    table = pl.DataFrame(pairs, schema=_SCHEMA)
    told = [plural(table.height, "preference pair")]
    if left_out:
        told.append("left out: " + ", ".join(f"{times:,} {why}" for why, times in left_out.items()))
    against = int((table["margin"] < 0).sum())
    if against:
        told.append(f"{against:,} with a margin below 0, where the scores say the opposite")
    notice("; ".join(told))
    if not table.height:
        raise InputError("there is no preference to export: no pair has a winner")
    if table["prompt"].null_count():
        notice(
            "without a prompt: TRL takes such pairs as having theirs inside (name it with `prompt=` or `input_col=`)"
        )
    return write_table(_as_trl(table, conversational=conversational), path)


def _copied(run: Table | FilePath, path: Path) -> Path:
    """A copy of a run file, whole or not at all."""
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


# Preference pairs

_Pairs: TypeAlias = "tuple[Sequence[Row], Mapping[str, int]]"


def _preferences_of_run(store: RunFile, condition: str | None, prompt: str | None, input_col: str | None) -> _Pairs:
    if store.log_length(RESULTS):
        require_none({"prompt": prompt, "input_col": input_col}, "the tasks of an A/B run are the prompts")
        kept = saved_result(store)
        if kept is None:
            raise InputError("the run file keeps no result of a comparison of two variants")
        return _preferences_of_ab(*kept, condition)
    known = read_comparisons(store, condition)
    with store.transaction() as connection:
        rows = connection.execute(select(conditions.c.condition_id, conditions.c.settings)).all()
    twice = [name for name, settings in rows if (settings or {}).get("both_orders")]
    return _preferences_of_texts(known.table, store.items(), twice, prompt, input_col)


def _preferences_of_texts(
    results: pl.DataFrame, items: pl.DataFrame, asked_twice: Sequence[str], prompt: str | None, input_col: str | None
) -> _Pairs:
    """Preference pairs of texts that were compared, and by reason how many were left out.

    The answers of one judge to one pair are merged as two orders are: only a pair that the same text won each time is a
    win. Several judges vote.

    Args:
        results: the comparisons.
        items: the texts, ``ID text`` and their other columns.
        asked_twice: the conditions whose every answer is of both orders.
        prompt: the prompt of all texts.
        input_col: the column of the texts that holds the prompt of each.
    """
    if prompt is not None and input_col is not None:
        raise InputError("give `prompt=` or `input_col=`, not both")
    if input_col is not None and input_col not in items.columns:
        raise InputError(f"the texts have no column {input_col!r}; they have {listed(items.columns, 20)}")
    texts = texts_of(items)
    prompts = dict.fromkeys(texts, prompt)
    if input_col is not None:
        prompts = dict(items.select("ID", pl.col(input_col).cast(pl.String)).iter_rows())
    scores = _scores(results)
    groups: dict[tuple[str, str], dict[str, list[Content]]] = {}
    for row in results.iter_rows(named=True):
        one, two = sorted((row["ID1"], row["ID2"]))
        groups.setdefault((one, two), {}).setdefault(str(row.get("judge_id", row.get("judge"))), []).append(row)
    left_out: Counter[str] = Counter()
    pairs = []
    for (one, two), judges in groups.items():
        outcome, winner = _voted([_merged(answers) for answers in judges.values()])
        if one not in texts or two not in texts or one == two:
            left_out["without two texts"] += 1
        elif prompts[one] != prompts[two]:
            left_out["of texts with different prompts"] += 1
        elif winner is None:
            left_out[_REASONS[outcome]] += 1
        else:
            loser = two if winner == one else one
            stated = [
                row["probability"] if row["ID1"] == winner else 1 - row["probability"]
                for row in chain.from_iterable(judges.values())
                if row.get("probability") is not None
            ]
            both = all(
                len({row["ID1"] for row in answers if row["better_id"] is not None}) > 1
                or all(row.get("condition_id") in asked_twice for row in answers)
                for answers in judges.values()
            )
            pairs.append({
                "prompt": prompts[one], "chosen": texts[winner], "rejected": texts[loser],
                "probability": sum(stated) / len(stated) if stated else None,
                "margin": round(scores[winner] - scores[loser], _MARGIN_DIGITS) + 0.0, "both_orders": both or None,
                "chosen_id": winner, "rejected_id": loser,
            })  # fmt: skip
    return pairs, left_out


def _scores(results: pl.DataFrame) -> dict[str, float]:
    """The score of every text, by the model that always has an answer."""
    from pairscale.models.bradley_terry import fit_bt_model

    try:
        found = fit_bt_model(results, engine="map", ties="half", repeats="learned", unconnected="separate")
    except FitError:  # no pair has a winner
        return {}
    return dict(found.theta.select("ID", "theta").iter_rows())


def _merged(answers: Iterable[Row]) -> tuple[Outcome, str | None]:
    """What one judge said of a pair, however often it was asked."""
    outcomes: list[tuple[Outcome, str | None]] = []
    for row in answers:
        if row["better_id"] in (row["ID1"], row["ID2"]):
            outcomes.append((Outcome.WIN, row["better_id"]))
        else:
            known = row.get("outcome")
            outcomes.append((Outcome(known) if known in _REASONS else Outcome.ABSTENTION, None))
    return merge_orders(outcomes)


def _voted(votes: list[tuple[Outcome, str | None]]) -> tuple[Outcome, str | None]:
    """The majority of the judges."""
    counts = Counter(winner for _, winner in votes if winner is not None).most_common()
    if not counts:
        return votes[0]
    if len(counts) == 1 or counts[0][1] > counts[1][1]:
        return Outcome.WIN, counts[0][0]
    return Outcome.TIE, None


def _preferences_of_ab(result: PairwiseRunResult, shown: Mapping[tuple[str, int], Compared], key: str | None) -> _Pairs:
    """Preference pairs of two variants: the task is the prompt, and the better answer is chosen."""
    if key is None and len(result.keys) > 1:
        raise InputError(f"the run has several comparators; choose one by `condition=`: {listed(result.keys)}")
    left_out: Counter[str] = Counter()
    pairs = []
    for case in result.of(key or result.keys[0]):
        texts = shown.get((case.task_id, case.repeat))
        if case.winner not in {"a", "b"}:
            left_out[_REASONS.get(case.outcome, "without an answer")] += 1
        elif texts is None or texts.a is None or texts.b is None:
            left_out["without two texts"] += 1
        else:
            sides = [(texts.a, result.variant_a, case.probability), (texts.b, result.variant_b, case.preference)]
            if case.winner == "b":
                sides.reverse()
            (chosen, name, probability), (rejected, other, _) = sides
            pairs.append({
                "prompt": texts.task_input, "chosen": chosen, "rejected": rejected, "probability": probability,
                "both_orders": len(case.detail.get("orders", ())) > 1 or None, "chosen_id": name, "rejected_id": other,
            })  # fmt: skip
    return pairs, left_out


def _as_trl(table: pl.DataFrame, *, conversational: bool) -> pl.DataFrame:
    """Preference pairs in TRL's form, plain or as messages; without a prompt unless all have one."""
    if table["prompt"].null_count():
        table = table.drop("prompt")
    if conversational:
        roles = {"prompt": "user", "chosen": "assistant", "rejected": "assistant"}
        table = table.with_columns(
            pl.concat_list(pl.struct(role=pl.lit(role), content=name)).alias(name)
            for name, role in roles.items()
            if name in table.columns
        )
    return table
