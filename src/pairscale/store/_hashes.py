"""The hash of a row: which columns of which tables are evidence, and how a row becomes a digest.

The hash of a row is the SHA-256, in UTF-8, of a JSON array without blanks: the name of the part, its key, and its other
columns in the order of the table. Bytes stand in it as their own SHA-256, and the text of a JSON column as its length
in characters; these texts follow after the array, to the letter. A table may have a second part, for columns that are
filled later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, Boolean, Float, Integer, LargeBinary

from pairscale.store import schema

if TYPE_CHECKING:
    from sqlalchemy import Table

__all__ = ["HASHED", "PARTS", "UNCOVERED", "UNHASHED_FACTS", "Key", "Part", "RowHasher", "sha256"]

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Columns of a table that have a hash of their own.

    Attributes:
        name: of the part: the table's name, and what the part is when it is not the main one.
        table: the table.
        columns: the columns besides the primary key.
        is_optional: whether a row has the part only when one of its columns holds anything.
    """

    name: str
    table: Table
    columns: tuple[str, ...]
    is_optional: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return tuple(column.name for column in self.table.primary_key)


def _all_but(table: Table, *without: str) -> tuple[str, ...]:
    return tuple(column.name for column in table.c if not column.primary_key and column.name not in without)


_TEXTS = ("task_input", "response_1", "response_2")

PARTS = (
    Part("items", schema.items, ("text_hash", "columns")),
    Part("pairs", schema.pairs, _all_but(schema.pairs)),
    Part("conditions", schema.conditions, _all_but(schema.conditions)),
    Part("attempts", schema.attempts, _all_but(schema.attempts)),
    Part("comparisons", schema.comparisons, _all_but(schema.comparisons)),
    Part("logs", schema.logs, ("data",)),
    Part("blobs", schema.blobs, ("data",)),
    Part("labellers", schema.labellers, ("name", "joined_at")),
    Part("label_cases", schema.label_cases, _all_but(schema.label_cases, "n_labels", *_TEXTS)),
    Part("label_cases.texts", schema.label_cases, _TEXTS, is_optional=True),
    Part("label_questions", schema.label_questions, ("labeller_id", "case_number", "swapped")),
    Part("labels", schema.labels, _all_but(schema.labels, "undone_at")),
    Part("labels.undone", schema.labels, ("undone_at",), is_optional=True),
    Part("metadata", schema.metadata, ("value",)),
)
"""Everything that is evidence. A text is covered by its ``text_hash``, which an audit compares with the text."""

UNCOVERED: Mapping[str, str] = {
    "labellers.token": "the secret part of a link; an export leaves it out, and an import makes another",
    "label_questions.shown_at": "when a question was shown, which changes while a labeller thinks",
    "label_questions.held_until": "how long a question is kept for a labeller, which changes too",
    "label_questions.done": "whether a labeller is done with a question; the labels say what the answer was",
    "metadata:schema_version": "of the file, not of the run; another version is refused",
    "metadata:created_by": "of the file, not of the run",
    "metadata:created_at": "of the file, not of the run; entries of the chain have times of their own",
    "metadata:writer": "who wrote last, which changes with every process",
    "metadata:holder": "which process has the file open for writing; null when none has",
    "metadata:labelling_links": "the secret of the owner's links",
    "metadata:closed": "the digest of the last closing, which is compared with the chain",
}
"""The columns (``table.column``) and facts (``metadata:key``) that no hash covers, and why: they are no evidence."""

UNHASHED_FACTS = frozenset(name.partition(":")[2] for name in UNCOVERED if ":" in name)
"""Those of them that are facts."""

HASHED: tuple[Table, ...] = tuple(dict.fromkeys(part.table for part in PARTS))


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, check_circular=False, separators=(",", ":"), default=repr)


def sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class RowHasher:
    """Hashes the rows of one table.

    Args:
        table: the table.
        order: the columns in the order in which rows give their values; those of the parts must be among them.
    """

    __slots__ = ("_blobs", "_floats", "_integers", "_json", "_key", "_parts")

    def __init__(self, table: Table, order: Sequence[str]) -> None:
        place = {name: at for at, name in enumerate(order)}
        self._key = [place[column.name] for column in table.primary_key]
        self._parts = [
            (
                part.name,
                itemgetter(*(place[name] for name in (*part.key, *part.columns))),
                [place[name] for name in part.columns if isinstance(table.c[name].type, JSON)],
                [place[name] for name in part.columns] if part.is_optional else [],
            )
            for part in PARTS
            if part.table is table
        ]
        known = [(place[column.name], column.type) for column in table.c if column.name in place]
        self._floats = [at for at, kind in known if isinstance(kind, Float)]
        self._integers = [at for at, kind in known if isinstance(kind, Integer | Boolean)]
        self._json = [at for at, kind in known if isinstance(kind, JSON)]
        self._blobs = [at for at, kind in known if isinstance(kind, LargeBinary)]

    def __call__(self, row: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
        """The parts of a row, each as its name and a list of key and hash."""
        values = self._plain(row)
        key = [values[at] for at in self._key]
        for name, chosen, written, optional in self._parts:
            if optional and all(row[at] is None for at in optional):
                continue
            body = _encode((name, *chosen(values)))
            for at in written:
                if type(values[at]) is int:  # the length of a text
                    body += row[at]
            yield name, [*key, sha256(body)]

    def _plain(self, row: Sequence[Any]) -> list[Any]:
        """The values as every database gives them back; for the text of a JSON column, its length."""
        values = list(row)
        for at in self._floats:
            value = values[at]
            if value is not None and not isinstance(value, str | bytes):
                values[at] = value + 0.0 if value == value else None  # noqa: PLR0124 - SQLite keeps no NaN, and no -0.0
        for at in self._integers:
            value = values[at]
            if value is not None and type(value) is not int:
                values[at] = _whole(value)
        for at in self._json:
            value = values[at]
            if isinstance(value, str):  # SQLite keeps a bare number as a number
                values[at] = _number(value) if value[:1] in "-0123456789" else len(value)
            elif value is not None:
                values[at] = _number(value)
        for at in self._blobs:
            values[at] = hashlib.sha256(values[at]).hexdigest() if _is_bytes(values[at]) else repr(values[at])
        return values


def _number(text: Any) -> Any:
    try:
        return float(text) + 0.0  # no -0.0
    except (TypeError, ValueError):
        return text


def _whole(value: Any) -> Any:
    """True and 5.0 as a column of whole numbers keeps them; what is none stays as it is."""
    return int(value) if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()) else value


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)
