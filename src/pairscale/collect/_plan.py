"""The plan of one call: its pairs, what the run file knows about them, and their results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import polars as pl

from pairscale.core.comparisons import OF_ITS_PAIR, Condition, key_expressions, pair_names
from pairscale.core.errors import TableError
from pairscale.core.notices import notice
from pairscale.core.tables import FAILED, RESULTS, Row, Table, Values, listed, result_columns
from pairscale.judges.base import Judge
from pairscale.pairing.table import as_pairs, paired_columns
from pairscale.runtime import Question
from pairscale.store.queries import ANSWERED
from pairscale.store.runfile import RunFile
from pairscale.store.transfer import asked_of
from pairscale.store.writer import Entry

_IS_ANSWER = (
    pl.when(OF_ITS_PAIR)
    .then(pl.col("outcome").fill_null("win") == "win")
    .otherwise(pl.col("outcome").is_in(["tie", "flip"]))
)
"""Whether a saved row holds an answer: a winner of the pair, or a tie or flip without one."""


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
    return frame.with_columns(custom_id=pair_names())


def make_plan(store: RunFile, frame: pl.DataFrame, condition: Condition) -> Plan:
    """Enter named pairs, samples and condition into the run file, and find out what is missing."""
    columns = paired_columns(frame)
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
        self._progress = store.progress(self.condition_id)

    def n_answered(self) -> int:
        """How many pairs have an answer already."""
        return sum(number in self._progress.answered for number in self._frame["pair_id"])

    def questions(
        self, judge: Judge, repeats: Mapping[int, int] = {}, besides: Collection[int] = ()
    ) -> Iterator[Question]:
        """The pairs without an answer, made one by one: those never asked first, then those asked without success.

        Args:
            judge: who will be asked.
            repeats: those of the run file, for a judge that has to know them; see :meth:`RunFile.repeats`.
            besides: numbers of pairs to leave out.
        """
        progress = self._progress
        for asked_before in (False, True):
            for row in self._frame.iter_rows(named=True):
                number = row["pair_id"]
                asked = progress.attempts.get(number, 0)
                if number in progress.answered or number in besides or (asked > 0) is not asked_before:
                    continue
                yield Question(
                    judge,
                    self.condition_id,
                    row["custom_id"],
                    self._item(row, "1"),
                    self._item(row, "2"),
                    pair_id=number,
                    attempt=asked + 1,
                    replaces=number in progress.failed,
                    occurrence=repeats.get(number, 1),
                )

    def _item(self, row: Row, side: str) -> Values:
        return {"item_id": row[f"ID{side}"]} | {name: row[f"{name}{side}"] for name in self._columns}

    def answers(self, store: RunFile, pair_ids: Sequence[int] | None = None) -> pl.DataFrame:
        """The answers in the run file under this condition, of all pairs or of some."""
        return store.results(self.condition_id, pair_ids=pair_ids).filter(ANSWERED)

    def take_up(self, store: RunFile, saved: pl.DataFrame) -> pl.DataFrame:
        """Bring a CSV and the run file to the same state.

        Answers of the CSV that belong to these pairs and this condition go into the run file; those that only the run
        file has (the process was killed between the two) are returned, to be added to the CSV. Rows without a
        condition, as R writes them, count too, with a notice.
        """
        # Without a condition only the model can tell; a callable has none, so the file that was named is trusted.
        has_my_model = pl.lit(value=True)
        if self._condition.model is not None:
            has_my_model = pl.col("model").is_null() | (pl.col("model") == self._condition.model)
        mine = saved.filter((pl.col("condition_id") == self.condition_id).fill_null(has_my_model))
        if mine.height < saved.height:
            count = saved.height - mine.height
            notice(f"the saved results hold {count:,} rows of another judge or model; they count for nothing here")
        mine = mine.filter(_IS_ANSWER)
        if "pair_uid" not in self._frame.columns:  # a name that R gave says nothing: the order has to tell
            ordered, _ = key_expressions("ID1", "ID2")
            is_ours = pl.col("custom_id").str.starts_with(ordered + "#")
            mine = mine.with_columns(custom_id=pl.when(is_ours).then("custom_id").otherwise(pair_names()))
        numbers = self._frame.select("custom_id", "ID1", "ID2", "pair_id")
        mine = mine.join(numbers, on=["custom_id", "ID1", "ID2"], maintain_order="left")
        mine = mine.unique("pair_id", keep="first", maintain_order=True)
        new = mine.filter(~pl.col("pair_id").is_in(list(self._progress.answered)))
        n_unsure = new["condition_id"].null_count()
        if n_unsure:
            notice(
                f"{n_unsure:,} of the saved results have no condition_id, as R's pairwiseLLM writes them: they "
                "count as answers, but which prompt they were made with is not known; name another `save_path=` to ask "
                "all pairs with this one"
            )
        answers = []
        for row in new.iter_rows(named=True):
            number = row["pair_id"]
            attempt = self._progress.attempts.get(number, 0) + 1
            replaces = number in self._progress.failed
            answers.append(Entry(asked_of(row, number, self.condition_id, attempt=attempt, replaces=replaces)))
        if answers:
            store.writer.commit(answers)
            self._progress = store.progress(self.condition_id)
        unsaved = self._frame.join(mine, on="pair_id", how="anti")
        return self.answers(store).join(unsaved, on="pair_id", how="semi").select(*RESULTS)

    def outcome(self, store: RunFile, *, raw: bool) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Results, failed pairs and failed attempts of these pairs, from the run file."""
        settled = store.results(self.condition_id, raw=raw).filter(ANSWERED)
        results = self._frame.select("pair_id").join(settled, on="pair_id", maintain_order="left")
        attempts = store.failed_attempts(self.condition_id).select("pair_id", *FAILED)
        own = {name: f"{name}_of_pair" for name in self._frame.columns if name in FAILED}
        attempts = self._frame.rename(own).join(attempts, on="pair_id", maintain_order="left_right")
        last = attempts.unique("pair_id", keep="last", maintain_order=True)
        failed = last.join(results, on="pair_id", how="anti", maintain_order="left")
        return results.select(*result_columns(raw=raw)), failed.drop("pair_id"), attempts.drop("pair_id")


def say_unnamed(judge: Judge, kept: object) -> None:
    """Log that the answers of a judge without a name are kept, but not found again."""
    if "instance" in judge.condition.settings and kept:
        notice("this judge has no name, so its answers will not be found again; give it one: FunctionJudge(f, name=…)")


def _items(frame: pl.DataFrame, columns: Sequence[str]) -> Iterator[Values]:
    """Every sample once; the same id must have the same text in every pair."""
    halves = [frame.select(pl.col(f"{name}{side}").alias(name) for name in columns) for side in "12"]
    items = pl.concat(halves, how="vertical_relaxed", rechunk=True).unique(["ID", "text"], maintain_order=True)
    differing = items.filter(pl.col("ID").is_duplicated())["ID"].unique(maintain_order=True).to_list()
    if differing:
        raise TableError(f"pairs: {listed(differing)} has two different texts")
    return items.select("ID", "text", pl.exclude("ID", "text")).iter_rows(named=True)
