"""What is to be asked: the pairs of one call, what the run file knows of them, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from pairscale.collect.taken_over import mark_taken_over
from pairscale.core.comparisons import Condition, key_expressions, occurrence, ordered_key
from pairscale.core.errors import TableError
from pairscale.core.notices import notice
from pairscale.core.tables import FAILED, RESULTS, Table, listed, result_columns
from pairscale.judges.base import Judge
from pairscale.pairing.table import as_pairs
from pairscale.runtime import Question
from pairscale.store.runfile import PairProgress, RunFile
from pairscale.store.transfer import asked_of
from pairscale.store.writer import Asked, Entry


def named_pairs(pairs: Table) -> pl.DataFrame:
    """The pairs with a name each, in ``custom_id``."""
    frame = as_pairs(pairs)
    if "pair_uid" in frame.columns:
        frame = frame.with_columns(custom_id=pl.col("pair_uid").cast(pl.String))
        wrong = frame.filter(pl.col("custom_id").is_duplicated() | pl.col("custom_id").is_null())
        if wrong.height:
            names = wrong["custom_id"].unique(maintain_order=True).to_list()
            raise TableError(f"pairs: pair_uid must be there and unique; {listed(names)} is not")
        return frame
    ordered, _ = key_expressions("ID1", "ID2")
    keyed = frame.with_columns(_key=ordered)
    return keyed.with_columns(custom_id=pl.format("{}#{}", "_key", occurrence("_key"))).drop("_key")


def make_plan(store: RunFile, frame: pl.DataFrame, condition: Condition) -> Plan:
    """Enter named pairs, samples and condition into the run file, and find out what is missing."""
    columns = [name[:-1] for name in frame.columns if name[-1:] == "1" and f"{name[:-1]}2" in frame.columns]
    store.add_items(_items(frame, columns))
    sides = {f"{name}{side}" for name in columns for side in "12"}
    more = [name for name in frame.columns if name not in sides and name != "custom_id"]
    numbers = store.add_pairs(
        {"custom_id": row["custom_id"], "ID1": row["ID1"], "ID2": row["ID2"], "columns": {k: row[k] for k in more}}
        for row in frame.select("custom_id", "ID1", "ID2", *more).iter_rows(named=True)
    )
    return Plan(store, frame.with_columns(pair_id=pl.Series(numbers, dtype=pl.Int64)), columns, condition)


class Plan:
    """The pairs of one call under one condition."""

    def __init__(self, store: RunFile, frame: pl.DataFrame, columns: list[str], condition: Condition) -> None:
        self.condition_id = store.add_condition(condition)
        self.total = frame.height
        self._condition = condition
        self._frame = frame
        self._columns = columns
        self._known: PairProgress = store.progress(self.condition_id)

    def missing(self, besides: Collection[int] = ()) -> int:
        """How many pairs have no answer yet, besides those whose numbers are given."""
        return sum(number not in self._known.answered and number not in besides for number in self._frame["pair_id"])

    def questions(
        self, judge: Judge, repeats: Mapping[int, int] | None = None, besides: Collection[int] = ()
    ) -> Iterator[Question]:
        """The pairs without an answer, made one by one: those never asked first, then those asked without success.

        Args:
            judge: who will be asked.
            repeats: the run file's, for a judge that has to know of them; see :meth:`RunFile.repeats`.
            besides: numbers of pairs to leave out.
        """
        repeats = repeats or {}
        known = self._known
        sides = [(name, f"{name}1", f"{name}2") for name in self._columns]
        for asked_before in (False, True) if known.attempts else (False,):
            for row in self._frame.iter_rows(named=True):
                number = row["pair_id"]
                asked = known.attempts.get(number, 0)
                if number in known.answered or number in besides or (asked > 0) is not asked_before:
                    continue
                yield self._question(judge, row, asked, number in known.failed, repeats.get(number, 1), sides)

    def _question(
        self,
        judge: Judge,
        row: Mapping[str, Any],
        asked: int,
        is_settled: bool,
        occurrence: int,
        sides: Sequence[tuple[str, str, str]],
    ) -> Question:
        first = {name: row[one] for name, one, _ in sides}
        second = {name: row[two] for name, _, two in sides}
        first["item_id"], second["item_id"] = first["ID"], second["ID"]
        return Question(
            judge,
            self.condition_id,
            row["custom_id"],
            first,
            second,
            pair_id=row["pair_id"],
            attempt=asked + 1,
            replaces=is_settled,
            occurrence=occurrence,
        )

    def result_row(self, asked: Asked) -> dict[str, Any]:
        """The outcome of a question as a row of the results table."""
        values = asked.attempts[-1]
        comparison = asked.comparison or {}
        condition = self._condition
        position = comparison["winner_pos"]
        known = {name: values[name] for name in RESULTS if name in values}
        return known | {
            "custom_id": asked.uid,
            "ID1": asked.ID1,
            "ID2": asked.ID2,
            "model": values["model"] or condition.model,
            "better_sample": None if position is None else f"SAMPLE_{position}",
            "better_id": comparison["better_id"],
            "judge_id": condition.judge_id,
            "trait": condition.trait,
            "template_id": condition.template_id,
            "condition_id": self.condition_id,
            "probability": comparison["probability"],
        }

    def take_up(self, store: RunFile, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Bring a CSV and the run file to the same state.

        Answers of the CSV that belong to these pairs and this condition go into the run file; those that only the run
        file has (the process was killed between the two) are returned, to be added to the CSV. Rows without a
        condition, as R writes them, count too; that they do is said, and the run file says which they are.
        """
        columns = self._frame.select("custom_id", "ID1", "ID2", "pair_id").iter_rows()
        numbers = {(name, first, second): number for name, first, second, number in columns}
        is_named = "pair_uid" in self._frame.columns
        occurrences: Counter[str] = Counter()
        saved: dict[int, Mapping[str, Any]] = {}
        n_foreign = 0
        for row in rows:
            if not self._mine(row):
                n_foreign += 1
            elif _is_answer(row):
                name = str(row.get("custom_id"))
                key = ordered_key(row["ID1"], row["ID2"])
                occurrences[key] += 1
                if not is_named and not name.startswith(f"{key}#"):  # a name that R gave: the order has to tell
                    name = f"{key}#{occurrences[key]}"
                number = numbers.get((name, row["ID1"], row["ID2"]))
                if number is not None:
                    saved.setdefault(number, row)
        new = {number: row for number, row in saved.items() if number not in self._known.answered}
        unsure = [number for number, row in new.items() if not row.get("condition_id")]
        if unsure:
            notice(
                f"{len(unsure):,} of the saved results have no condition_id, as R's pairwiseLLM writes them: they "
                "count as answers, but which prompt they were made with is not known; name another `save_path=` to ask "
                "all pairs with this one"
            )
            mark_taken_over(store, self.condition_id, unsure)
        if n_foreign:
            notice(f"the saved results hold {n_foreign:,} rows of another judge or model; they count for nothing here")
        answers = []
        for number, row in new.items():
            attempt = self._known.attempts.get(number, 0) + 1
            replaces = number in self._known.failed
            answers.append(Entry(asked_of(row, number, self.condition_id, attempt=attempt, replaces=replaces)))
        if answers:
            store.writer.commit(answers)
            self._known = store.progress(self.condition_id)
        unsaved = set(self._frame["pair_id"]) & self._known.answered - saved.keys()
        if not unsaved:
            return []
        results = store.results(self.condition_id)
        return results.filter(pl.col("pair_id").is_in(unsaved)).select(*RESULTS).to_dicts()

    def _mine(self, row: Mapping[str, Any]) -> bool:
        if row.get("condition_id"):
            return bool(row["condition_id"] == self.condition_id)
        # Without a condition only the model can tell; a callable has none, so the file that was named is trusted.
        return self._condition.model is None or row.get("model") in {None, self._condition.model}

    def outcome(self, store: RunFile, *, raw: bool) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Results, failed pairs and failed attempts of these pairs, from the run file."""
        return pair_outcomes(store, self._frame, self.condition_id, raw=raw)


def pair_outcomes(
    store: RunFile, pairs: pl.DataFrame, condition_id: str, *, raw: bool
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Results, failed pairs and failed attempts of pairs that have their ``pair_id``, from the run file."""
    mine = pairs.select("pair_id").with_row_index("_row")
    settled = store.results(condition_id, raw=raw).filter(pl.col("outcome").is_in(["win", "tie", "flip"]))
    results = mine.join(settled, on="pair_id").sort("_row")
    attempts = store.failed_attempts(condition_id).select("pair_id", *FAILED)
    own = {name: f"{name}_of_pair" for name in pairs.columns if name in FAILED}
    attempts = pairs.rename(own).join(attempts, on="pair_id", maintain_order="left_right")
    last = attempts.unique("pair_id", keep="last", maintain_order=True)
    failed = last.join(results, on="pair_id", how="anti", maintain_order="left")
    return results.select(*result_columns(raw=raw)), failed.drop("pair_id"), attempts.drop("pair_id")


def say_unnamed(judge: Judge, kept: object) -> None:
    """Say of a judge without a name that what it answers is kept, but not found again."""
    if "instance" in judge.condition.settings and kept:
        notice("this judge has no name, so its answers will not be found again; give it one: FunctionJudge(f, name=…)")


def _items(frame: pl.DataFrame, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Every sample once; the same id must have the same text wherever it stands."""
    halves = [frame.select(pl.col(f"{name}{side}").alias(name) for name in columns) for side in "12"]
    items = pl.concat(halves, how="vertical_relaxed", rechunk=True).unique(["ID", "text"], maintain_order=True)
    differing = items.filter(pl.col("ID").is_duplicated())["ID"].unique(maintain_order=True).to_list()
    if differing:
        raise TableError(f"pairs: {listed(differing)} stands there with two different texts")
    return items.select("ID", "text", pl.exclude("ID", "text")).iter_rows(named=True)


def _is_answer(row: Mapping[str, Any]) -> bool:
    """Whether a saved row holds an answer: a winner of the pair, or a tie or flip without one."""
    has_winner = row.get("better_id") in (row["ID1"], row["ID2"])
    return (row.get("outcome") or "win") == "win" if has_winner else row.get("outcome") in {"tie", "flip"}
