"""Labels of several run files in one: the same labeller, case and question have one number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pairscale.core.errors import StoreMismatchError
from pairscale.store import _sqlite
from pairscale.store._merging import MergedRun, Numbers
from pairscale.store.database import letter_rows
from pairscale.store.schema import label_cases, label_questions, labellers, labels

if TYPE_CHECKING:
    from pairscale.store.chain import Change

__all__ = ["MergedLabels"]

Row = dict[str, Any]


class MergedLabels:
    """The label tables of the merged file, until they are written."""

    def __init__(self) -> None:
        self._people: dict[str, Row] = {}
        self._cases: dict[str, Row] = {}
        self._questions: dict[tuple[int, int], Row] = {}
        self._labels: dict[tuple[Any, ...], Row] = {}
        self._standing: dict[int, tuple[tuple[Any, ...], str]] = {}  # by question: which label, and of which file

    def add(self, source: MergedRun) -> None:
        """Enter the labels of a run file.

        Raises:
            StoreMismatchError: a case is about other texts there, or a labeller has answered the same question twice.
        """
        numbers = {table.name: Numbers() for table in (labellers, label_cases, label_questions, labels)}
        source.numbers |= numbers
        for row in letter_rows(source.connection, labellers):
            known = self._people.setdefault(row["name"], row | {"labeller_id": len(self._people) + 1})
            numbers["labellers"][row["labeller_id"]] = known["labeller_id"]
            if known["joined_at"] != row["joined_at"]:
                source.keep("labellers", {name: row[name] for name in row if name != "token"})
        for row in letter_rows(source.connection, label_cases):
            known = self._cases.setdefault(row["case_id"], row | {"case_number": len(self._cases) + 1})
            numbers["label_cases"][row["case_number"]] = known["case_number"]
            if any(known[name] != row[name] for name in row if name not in {"case_number", "n_labels"}):
                raise StoreMismatchError(
                    f"{source.name}: the case {row['case_id']!r} that people label has other texts than in the files "
                    "before; these labels cannot be merged"
                )
        answered = {row["question_id"] for row in letter_rows(source.connection, labels)}
        for row in letter_rows(source.connection, label_questions):
            self._question(source, row, is_answered=row["question_id"] in answered)
        for row in letter_rows(source.connection, labels):
            self._label(source, row)

    def _question(self, source: MergedRun, row: Row, *, is_answered: bool) -> None:
        labeller = source.numbers["labellers"][row["labeller_id"]]
        case = source.numbers["label_cases"][row["case_number"]]
        new = row | {"question_id": len(self._questions) + 1, "labeller_id": labeller, "case_number": case}
        known = self._questions.setdefault((labeller, case), new)
        number = known["question_id"]
        source.numbers["label_questions"][row["question_id"]] = number
        if known is new:
            return
        if known["swapped"] != row["swapped"]:
            if is_answered:
                raise self._twice(source, number)
            source.keep("label_questions", row)
        known["done"] = known["done"] or row["done"]

    def _label(self, source: MergedRun, row: Row) -> None:
        question = source.numbers["label_questions"][row["question_id"]]
        new = row | {"label_id": len(self._labels) + 1, "question_id": question}
        key = (question, *(row[name] for name in row if name not in {"label_id", "question_id", "undone_at"}))
        known = self._labels.setdefault(key, new)
        known["undone_at"] = known["undone_at"] or row["undone_at"]
        source.numbers["labels"][row["label_id"]] = known["label_id"]
        if row["undone_at"] is not None:
            return
        standing = self._standing.setdefault(question, (key, source.name))
        if standing[0] != key and self._labels[standing[0]]["undone_at"] is None:
            raise self._twice(source, question)
        self._standing[question] = key, source.name

    def _twice(self, source: MergedRun, question: int) -> StoreMismatchError:
        (labeller, case) = next(key for key, row in self._questions.items() if row["question_id"] == question)
        person = next(name for name, row in self._people.items() if row["labeller_id"] == labeller)
        name = next(name for name, row in self._cases.items() if row["case_number"] == case)
        return StoreMismatchError(
            f"{person} has labelled the case {name!r} in {source.name} and in a file before it; one labeller has one "
            "label per case, so these labels cannot be merged"
        )

    def write(self, change: Change) -> None:
        """Write everything."""
        if self._people:
            _sqlite.make_private(change.connection.engine)
        counted = {row["question_id"]: row["case_number"] for row in self._questions.values()}
        n_labels: dict[int, int] = {}
        for row in self._labels.values():
            if row["undone_at"] is None and row["preferred"] is not None:
                case = counted[row["question_id"]]
                n_labels[case] = n_labels.get(case, 0) + 1
        tables: Mapping[Any, Any] = {
            labellers: self._people.values(),
            label_cases: (row | {"n_labels": n_labels.get(row["case_number"], 0)} for row in self._cases.values()),
            label_questions: self._questions.values(),
            labels: self._labels.values(),
        }
        for table, rows in tables.items():
            change.insert(table, rows)
