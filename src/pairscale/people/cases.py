"""What is labelled: two texts under one criterion, from a manifest, a table of pairs or a run file."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pairscale.core.errors import InputError, TableError, UnknownNameError
from pairscale.core.files import TABLE_SUFFIXES, read_rows, read_table
from pairscale.core.notices import notice
from pairscale.core.options import FilePath
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import PAIRS, Row, listed
from pairscale.core.traits import trait_description
from pairscale.evaluate.manifest import MANIFEST
from pairscale.pairing.reading import read_given_pairs
from pairscale.store.database import scrub_surrogates

if TYPE_CHECKING:
    import polars as pl

DEFAULT_CRITERION = "Overall Quality"
_Named: TypeAlias = tuple[str | None, str, str, str, str]
"""A pair with its name: ``uid ID1 text1 ID2 text2``."""


@dataclass(frozen=True, slots=True)
class Case:
    """Two texts to compare, in the order of the manifest or the pair.

    Attributes:
        case_id: its name in the manifest and in the labels.
        task_id: the task that both texts answer.
        criterion: what one text may be better in.
        task_input: the task itself; may be empty.
        response_1: the first text.
        response_2: the second.
        ID1: the first sample, where the texts are samples; None for a case of a manifest.
        ID2: the second.
        columns_1: what else is known of the first sample: a name, a class. Labellers do not see it.
        columns_2: likewise.
    """

    case_id: str
    task_id: str
    criterion: str
    task_input: str
    response_1: str
    response_2: str
    ID1: str | None = None
    ID2: str | None = None
    columns_1: Row = field(default_factory=dict, compare=False, kw_only=True)
    columns_2: Row = field(default_factory=dict, compare=False, kw_only=True)

    @property
    def digest(self) -> str:
        """Of all that is read: a label belongs to these texts."""
        return fingerprint([getattr(self, name) for name in MANIFEST])

    @property
    def length(self) -> int:
        """How much there is to read, in characters."""
        return len(self.task_input) + len(self.response_1) + len(self.response_2)


def read_cases(
    source: FilePath,
    *,
    criterion: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    encoding: str | None = None,
) -> list[Case]:
    """The cases of a manifest, a table of pairs or a run file.

    A manifest has ``case_id task_id criterion task_input response_1 response_2``, pairs have ``ID1 text1 ID2 text2``. A
    manifest's key, ``first_variant``, is never read. Of pairs, each two samples make one case, whichever of them
    is first. A run file gives the cases that are labelled in it, and those of its own pairs.

    Args:
        source: the file, or the database URL of a run.
        criterion: what one text may be better in, for pairs; a run file knows its trait, and a manifest its criteria.
        a_col: of pairs, the column of the first text, where it is not ``text1``.
        b_col: of pairs, the column of the second text, where it is not ``text2``.
        encoding: of a text file that is not UTF-8.

    Raises:
        InputError: that names the file, and the rows or ids that are wrong.
    """
    path = Path(source)
    if "://" in str(source) or path.suffix.lower() not in TABLE_SUFFIXES:
        return _checked(_from_run(source, criterion), source)
    if a_col is not None or b_col is not None:
        pairs = read_given_pairs(path, encoding=encoding, a_col=a_col, b_col=b_col)
        return _checked(_from_pairs(pairs, criterion or DEFAULT_CRITERION), path)
    rows = read_rows(path, text=MANIFEST, encoding=encoding)
    if rows and rows[0].keys() >= PAIRS.keys():
        return _checked(_from_pairs(read_table(path, encoding=encoding), criterion or DEFAULT_CRITERION), path)
    if rows and not {"case_id", "response_1", "response_2"} & rows[0].keys():
        raise InputError(to_rank(source))
    if criterion is not None:
        raise InputError(f"{path} names its own criteria; leave out criterion={criterion!r}")
    return _checked((_case(row, number, path) for number, row in enumerate(rows, start=1)), path)


def to_rank(source: FilePath) -> str:
    """What to do with texts, which are ranked and not labelled pair by pair."""
    file = shlex.quote(str(source))
    run = shlex.quote(str(Path(source).with_suffix(".db")))
    return (
        f"{source} holds texts, not pairs to label. To have people rank them: pairscale rank {file} --judge human "
        f"--run {run}. Or pair them first: pairscale pairs {file} --out pairs.csv, then pairscale label pairs.csv"
    )


def _case(row: Row, number: int, path: Path) -> Case:
    if missing := [name for name in MANIFEST if name not in row]:
        raise TableError(f"{path}: no {listed(missing)} in row {number}; a manifest has {' '.join(MANIFEST)}")
    case = Case(*(clean_text(row[name]) for name in MANIFEST))
    for name in ("case_id", "criterion"):
        if not getattr(case, name).strip():
            raise TableError(f"{path}: {name!r} is empty in row {number}; every case needs one")
    return case


def clean_text(value: Any) -> str:
    """A cell as text that any page can show and any database can hold, without halves of characters."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return str(scrub_surrogates(text)).replace("\0", "\ufffd")


def _checked(cases: Iterable[Case], path: FilePath) -> list[Case]:
    checked = list(cases)
    if not checked:
        raise InputError(f"{path} holds no case to label")
    names = [case.case_id for case in checked]
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"{path}: case_id {listed(twice)} appears more than once; every case needs its own")
    return checked


def _from_pairs(table: pl.DataFrame, criterion: str) -> list[Case]:
    from pairscale.pairing.table import as_pairs, paired_columns

    checked = as_pairs(table)
    more = [name for name in paired_columns(checked) if f"{name}1" not in PAIRS]
    pairs: list[_Named] = []
    columns: dict[str, Row] = {}
    for row in checked.iter_rows(named=True):
        pairs.append((row.get("pair_uid") or row.get("custom_id"), *(row[name] for name in PAIRS)))
        for side in "12":
            columns[row[f"ID{side}"]] = {name: row[f"{name}{side}"] for name in more}
    return _each_once(pairs, criterion, columns)


def _from_run(run: FilePath, criterion: str | None) -> list[Case]:
    """The cases that are labelled in a run file, and its own pairs under the trait that its judges were asked about."""
    from sqlalchemy import select

    from pairscale.store.runfile import open_run
    from pairscale.store.schema import conditions, label_cases, pairs

    with open_run(run) as store, store.snapshot(), store.transaction() as connection:
        texts = dict(store.items().select("ID", "text").iter_rows())
        kept = connection.execute(select(label_cases).order_by(label_cases.c.case_number)).all()
        query = select(pairs.c.custom_id, pairs.c.ID1, pairs.c.ID2).order_by(pairs.c.pair_id)
        own_pairs = [(uid, first, second) for uid, first, second in connection.execute(query)]
        traits = {trait for (trait,) in connection.execute(select(conditions.c.trait)) if trait}
    if any(row.ID1 is None for row in kept):
        return _of_manifest(kept, run, criterion)
    if criterion is None and not kept and len(traits) > 1:
        raise InputError(f"{run} was judged on {listed(sorted(traits))}; name one (criterion=)")
    about = criterion or (kept[0].criterion if kept else _named(next(iter(traits), None)))
    begun = {frozenset((row.ID1, row.ID2)) for row in kept}
    names = [(row.case_id, row.ID1, row.ID2) for row in kept]
    names += [(uid, first, second) for uid, first, second in own_pairs if frozenset((first, second)) not in begun]
    return _each_once([(uid, first, texts[first], second, texts[second]) for uid, first, second in names], about, {})


def _of_manifest(rows: Sequence[Any], run: FilePath, criterion: str | None) -> list[Case]:
    """The cases of a manifest that is labelled in a run file."""
    if criterion is not None:
        raise InputError(f"{run} holds the labels of a manifest, with its own criteria; leave out {criterion!r}")
    if any(row.response_1 is None for row in rows):
        raise InputError(f"{run} was imported without the texts of its cases; name the manifest, and --run {run}")
    return [Case(*(getattr(row, name) for name in MANIFEST)) for row in rows]


def _named(trait: str | None) -> str:
    try:
        return DEFAULT_CRITERION if trait is None else trait_description(trait).name
    except UnknownNameError:  # a trait of the user's own: the run file has its name
        return str(trait)


def _each_once(pairs: Sequence[_Named], criterion: str, columns: Mapping[str, Row]) -> list[Case]:
    """One case for every two samples, so that no labeller is asked the same question in the other order."""
    cases: dict[frozenset[str], Case] = {}
    for uid, first, text_1, second, text_2 in pairs:
        both = frozenset((first, second))
        if both not in cases:
            name = clean_text(uid or f"{first}:{second}")
            cases[both] = Case(
                name, name, criterion, "", clean_text(text_1), clean_text(text_2), first, second,
                columns_1=columns.get(first, {}), columns_2=columns.get(second, {}),
            )  # fmt: skip
    again = len(pairs) - len(cases)
    if again:
        notice(f"{again:,} pairs are repeated, some in the other order; each is labelled once")
    return list(cases.values())
