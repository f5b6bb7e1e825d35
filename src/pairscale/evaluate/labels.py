"""Labels that people gave to blinded cases: read, checked, and mapped back to the variants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl

from pairscale.core.display import ReprMixin
from pairscale.core.errors import FileFormatError, InputError
from pairscale.core.files import TABLE_SUFFIXES, read_rows
from pairscale.core.notices import plural
from pairscale.core.options import FilePath, checked
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import Values, listed
from pairscale.evaluate.comparators import Winner
from pairscale.evaluate.tasks import Row
from pairscale.store.label_keys import key_path, known_key, read_key
from pairscale.store.runfile import open_run

_TEXT = pl.String
_INT = pl.Int64
LABELS: Values = {
    "case_id": _TEXT,
    "task_id": _TEXT,
    "criterion": _TEXT,
    "repeat": _INT,
    "labeller": _TEXT,
    "preferred": _TEXT,
    "winner": _TEXT,
    "comment": _TEXT,
    "row": _INT,
    "first_variant": _TEXT,
    "answers": _TEXT,
}
"""The columns of the labels: ``preferred`` is as the labeller wrote it, ``winner`` the variant (a, b) or tie, and
``answers`` a digest of what was labelled, where it is known."""

PROBLEMS: Values = {
    "row": _INT,
    "case_id": _TEXT,
    "labeller": _TEXT,
    "preferred": _TEXT,
    "problem": _TEXT,
}
"""The columns of the labels that cannot be used."""

CHOICES: dict[str, Literal["1", "2", "tie"]] = {"1": "1", "2": "2", "tie": "tie", "t": "tie"}
"""What a labeller may write, and what it means."""


def case_name(task_id: str, criterion: str, repeat: int = 1) -> str:
    """The name of a case in manifests and labels.

    Example:
        >>> case_name("task-1", "more helpful")
        'task-1::more helpful'
    """
    return f"{task_id}::{criterion}" if repeat == 1 else f"{task_id}::{criterion}::{repeat}"


@dataclass(frozen=True, slots=True, repr=False)
class Labels(ReprMixin, table="table"):
    """Labels that were read.

    Attributes:
        table: one row per label that can be used, with the columns of :data:`LABELS`.
        problems: one row per line that cannot, with the columns of :data:`PROBLEMS`.
        missing: cases of the key without a label.
    """

    table: pl.DataFrame
    problems: pl.DataFrame
    missing: tuple[str, ...]

    def __str__(self) -> str:
        unusable = f"{self.problems.height:,} that cannot be used"
        return f"{plural(self.table.height, 'label')}, {unusable}, {plural(len(self.missing), 'case')} without one"

    def of(self, criterion: str) -> Labels:
        """Those of one criterion.

        Raises:
            InputError: when there are none.
        """
        criteria = self.table["criterion"].unique(maintain_order=True).to_list()
        if criterion not in criteria and self.table.height:
            raise InputError(f"no label is of the criterion {criterion!r}; there are {listed(criteria)}")
        return replace(self, table=self.table.filter(pl.col("criterion") == criterion))


@checked
def read_labels(path: FilePath, *, key_file: FilePath | None = None, encoding: str | None = None) -> Labels:
    """Labels from a file or a run file, with what is wrong in it.

    A label of a case that is not in the key, a choice that is none of 1, 2 and tie, and a case that one labeller
    labelled twice are problems. Two equal labels of a labeller count once; of two different ones neither counts.

    Args:
        path: a table with ``case_id`` (or ``task_id`` and ``criterion``) and ``preferred``, or the run file of
            ``pairscale label``; see :func:`human_labels`.
        key_file: the key.
        encoding: of text files that are not UTF-8.

    Raises:
        FileFormatError: when the labels or the key cannot be read.

    Example:
        >>> said = {"case_id": ["c1", "c2"], "task_id": ["t1", "t2"], "criterion": "clarity", "first_variant": "a"}
        >>> pl.DataFrame({**said, "preferred": ["1", "three"]}).write_csv("labels.csv")
        >>> read_labels("labels.csv").problems["problem"].to_list()
        ["preferred is 'three'; it must be 1, 2 or tie"]
    """
    if "://" in str(path) or Path(path).suffix.lower() not in TABLE_SUFFIXES:
        with open_run(path) as store:
            rows = store.labels().to_dicts()
        if not rows:
            raise InputError(f"{path} holds no labels yet; `pairscale label MANIFEST --run {path}` collects them")
    else:
        text = ("case_id", "task_id", "criterion", "preferred", "labeller", "comment", "skipped")
        rows = read_rows(path, text=text, encoding=encoding)
    for row in rows:
        if row.get("case_id") is None and row.get("task_id") is not None and row.get("criterion") is not None:
            row["case_id"] = case_name(str(row["task_id"]), str(row["criterion"]))
    if rows and not any({"case_id", "preferred"} <= row.keys() for row in rows):
        raise FileFormatError(
            f"{path} has no columns 'case_id' (or 'task_id' and 'criterion') and 'preferred', which is 1, 2 or tie "
            f"(of a table of results, `pairscale import {path} RUN --samples TEXTS` makes a run file)"
        )
    key = known_key(Path(path), rows) if key_file is None else read_key(key_file, encoding)
    if key is None:
        raise FileFormatError(
            f"{path} does not say which variant is Response 1, and there is no {key_path(path)}; name the key that was "
            "written with the manifest: key_file="
        )
    labels = [_label(number, row, key) for number, row in enumerate(rows, start=1)]
    first: dict[tuple[str, str], Values] = {}
    for label in labels:
        if "problem" in label:
            continue
        before = first.setdefault((label["case_id"], label["labeller"]), label)
        if before["preferred"] != label["preferred"]:
            before["problem"] = "another label of this labeller contradicts it"
            label["problem"] = before["problem"]
        elif before is not label:
            label["problem"] = "the same label a second time"
    usable = [label for label in labels if "problem" not in label]
    problems = [label for label in labels if "problem" in label]
    labelled = {label["case_id"] for label in usable}
    missing = tuple(name for name in key if name not in labelled)
    return Labels(pl.DataFrame(usable, schema=LABELS), pl.DataFrame(problems, schema=PROBLEMS), missing)


def _label(number: int, row: Row, key: Row) -> Values:
    """A label as its row says, with the variant that it means, or with what is wrong with it."""
    written = str(row.get("preferred") or "").strip().lower().removesuffix(".0")
    case_id = str(row.get("case_id") or "")
    label: Values = {
        "row": number,
        "case_id": case_id,
        "labeller": str(row.get("labeller") or "labeller"),
        "preferred": CHOICES.get(written, written),
        "comment": row.get("comment"),
    }
    if case_id not in key:
        return {**label, "problem": "no such case was exported"}
    if written in {"", "none", "null", "na"}:
        return {**label, "problem": f"skipped: {row['skipped']}" if row.get("skipped") else "there is no label"}
    if written not in CHOICES:
        return {**label, "problem": f"preferred is {written!r:.60}; it must be 1, 2 or tie"}
    entry = key[case_id]
    # Keys of other tools say less than ours; what a case is of is then in the label, or in its name.
    task, _, criterion = case_id.partition("::")
    about = {"task_id": task, "criterion": criterion}
    for said in (row, entry):
        about |= {name: str(said[name]) for name in about if said.get(name) is not None}
    return {
        **label,
        **about,
        "repeat": int(entry.get("repeat") or 1),
        "first_variant": entry["first_variant"],
        "answers": labelled_answers(row, entry),
        "winner": winner_of(label["preferred"], entry["first_variant"]),
    }


def answers_digest(response_1: str, response_2: str) -> str:
    """A digest of the two answers of a case, in the order in which they are shown."""
    return fingerprint([response_1, response_2])


def labelled_answers(row: Row, entry: Row) -> str | None:
    """Of which answers a label is, if the key or the label says so."""
    if isinstance(entry.get("answers"), str):
        return str(entry["answers"])
    shown = (row.get("response_1"), row.get("response_2"))
    return None if None in shown else answers_digest(str(shown[0]), str(shown[1]))


def winner_of(preferred: str, first: str) -> Winner:
    """The variant that a choice means: 1 is the one that stood first."""
    if preferred == "tie":
        return "tie"
    return "a" if (preferred == "1") == (first == "a") else "b"
