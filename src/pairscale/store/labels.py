"""Labels of people in the run file: their tables, the queries of labelling, and how labels are read.

One row of ``labels`` is one answer of one labeller; :meth:`RunFile.labels` reads those that were not taken back, and
:func:`label_results` reads them as comparisons. :class:`pairscale.people.LabelStore` writes them.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import Integer, Select, bindparam, case, func, select

from pairscale.core.comparisons import Condition
from pairscale.core.notices import notice
from pairscale.core.options import FilePath
from pairscale.core.tables import RESULTS, Row, Schema, Values
from pairscale.store.database import make_private
from pairscale.store.schema import label_cases, label_questions, labellers, labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.store.runfile import RunFile

LABELLING = "labelling"
"""The fact of the run file with the settings of labelling: ``labels_per_case ties seed``."""

LINKS = "labelling_links"
"""The fact with the secrets of the page: ``owner_token secret``, and ``people``, the links of those whom a run asks.

It is never exported.
"""

PAUSED = "labelling_paused"
"""The fact with the names of labellers who are not asked at present."""

_TEXT = pl.String()
LABELS: Schema = {
    "case_id": _TEXT,
    "task_id": _TEXT,
    "criterion": _TEXT,
    "ID1": _TEXT,
    "ID2": _TEXT,
    "labeller": _TEXT,
    "preferred": _TEXT,
    "comment": _TEXT,
    "skipped": _TEXT,
    "decision_ms": pl.Int64(),
    "labelled_at": _TEXT,
    "swapped": pl.Boolean(),
}
"""The columns of :meth:`RunFile.labels`.

``preferred`` is 1, 2 or tie in the order of the case, and null for a skip; ``ID1`` and ``ID2`` are null where the texts
are those of a manifest; ``swapped`` says whether the labeller saw the second text first.
"""

_CASES = label_cases.c
_QUESTIONS = label_questions.c
_LABELS = labels.c
_WHO = labellers.c
_ME = bindparam("me", type_=Integer)
_K = bindparam("k", type_=Integer)


LATEST_FIRST = (
    select(
        _LABELS.label_id,
        _LABELS.preferred,
        _QUESTIONS.question_id,
        _QUESTIONS.case_number,
        _QUESTIONS.swapped,
        _CASES.case_id,
    )
    .join_from(labels, label_questions)
    .join(label_cases)
    .where(_QUESTIONS.labeller_id == _ME, _LABELS.undone_at.is_(None))
    .order_by(_LABELS.label_id.desc())
)
"""The standing labels and skips of a labeller."""

TOTALS = select(
    func.coalesce(func.sum(case((_CASES.n_labels < _K, _CASES.n_labels), else_=_K)), 0), func.count()
).select_from(label_cases)
"""Labels that count, at most ``k`` per case, and the number of cases."""


def labels_query() -> Select[Any]:
    """Standing labels and skips, in the order in which they came, with the columns of :data:`LABELS`."""
    columns = [
        _CASES.case_id,
        _CASES.task_id,
        _CASES.criterion,
        _CASES.ID1,
        _CASES.ID2,
        _WHO.name.label("labeller"),
        _LABELS.preferred,
    ]
    columns += [_LABELS.comment, _LABELS.skipped, _LABELS.decision_ms, _LABELS.labelled_at, _QUESTIONS.swapped]
    joined = labels.join(label_questions).join(label_cases).join(labellers)
    return select(*columns).select_from(joined).where(_LABELS.undone_at.is_(None)).order_by(_LABELS.label_id)


def new_token() -> str:
    """A random secret for a link: 192 bits."""
    return secrets.token_urlsafe(24)


def open_private(where: FilePath | None) -> RunFile:
    """Open a run file for writing that only its owner may read, because it holds the links of labellers.

    Raises:
        StoreError: as :func:`open_run` does, or when the file cannot be made private.
    """
    from pairscale.store.runfile import open_run

    store = open_run(where, write=True)
    try:
        if make_private(store._engine):
            notice(f"{store.name} now holds the links of labellers, so that only you may read it")
    except BaseException:
        store.close()
        raise
    return store


def links_of_people(run: FilePath, names: Sequence[str]) -> Values:
    """The secrets of the page on which a run asks people: those in its run file, and new ones for who is new.

    Returns:
        ``owner_token secret``, and ``people``: each name and its token.
    """
    with open_private(run) as store:
        kept = store.get_meta(LINKS) or {}
        people = kept.get("people", {})
        new = {"owner_token": new_token(), "secret": new_token(), **kept}
        new["people"] = people | {name: new_token() for name in names if name not in people}
        if new != kept:
            store.set_meta(LINKS, new)
    return new | {"people": {name: new["people"][name] for name in names}}


def label_counts(store: RunFile) -> dict[str, int] | None:
    """How far the labelling in a run file is: ``cases labellers labels skipped complete wanted``; None without any.

    ``labels`` are standing labels, ``complete`` those that count towards ``wanted``, at most as many per case as each
    case needs.
    """
    settings = store.get_meta(LABELLING)
    if settings is None:
        return None
    k = settings["labels_per_case"]
    standing = select(func.count(_LABELS.preferred), func.count(_LABELS.skipped)).where(_LABELS.undone_at.is_(None))
    with store.transaction() as connection:
        answered, skipped = connection.execute(standing).one()
        complete, cases = connection.execute(TOTALS, {"k": k}).one()
        people = connection.execute(select(func.count()).select_from(labellers)).scalar_one()
    return {
        "cases": cases,
        "labellers": people,
        "labels": answered,
        "skipped": skipped,
        "complete": int(complete),
        "wanted": cases * k,
    }


def label_results(run: RunFile | FilePath) -> pl.DataFrame:
    """The labels of a run file as a results table, one row per labeller and case, as any model takes it.

    ``judge_id`` and ``model`` are the labeller, ``trait`` is the criterion, ``ID1`` is the text that this labeller saw
    first. A tie is a tie and a skip an abstention, with its reason in ``error_message``; ``content`` is the comment.
    Labels of a manifest are left out, because its texts have no ids: read those with :func:`pairscale.read_labels`.

    Args:
        run: the run file, open or by its path.

    Returns:
        The columns of a results table, and ``received_at``.

    Example:
        >>> import pairscale as ps
        >>> from pairscale.people import LabelStore, read_cases
        >>> pairs = ps.make_pairs(ps.synthetic_essays(3, seed=1))
        >>> pairs.write_csv("pairs.csv")
        >>> with LabelStore("people.db", read_cases("pairs.csv"), labellers=["ann"]) as store:
        ...     (ann,) = store.labellers()
        ...     _ = store.answer(ann, store.next(ann).question_id, "1")
        >>> label_results("people.db")["judge_id", "outcome"].rows()
        [('ann', 'win')]
    """
    if isinstance(run, str | os.PathLike):
        from pairscale.store.runfile import open_run

        with open_run(run) as store:
            return label_results(store)
    rows = [_result(row) for row in run.labels().iter_rows(named=True) if row["ID1"] is not None]
    return pl.DataFrame(rows, schema={**RESULTS, "received_at": _TEXT})


def _result(row: Row) -> Values:
    """A label as a row of results; what it does not say is null."""
    ids = {"1": row["ID1"], "2": row["ID2"]}
    better = ids.get(row["preferred"])
    shown = [row["ID1"], row["ID2"]]
    if row["swapped"]:
        shown.reverse()
    outcome = "tie" if row["preferred"] == "tie" else "abstention"
    if better is not None:
        outcome = "win"
    who = row["labeller"]
    about = row["criterion"]
    return dict.fromkeys(RESULTS) | {
        "custom_id": row["case_id"],
        "ID1": shown[0],
        "ID2": shown[1],
        "model": who,
        "error_message": row["skipped"],
        "content": row["comment"],
        "better_sample": None if better is None else f"SAMPLE_{1 + shown.index(better)}",
        "better_id": better,
        "latency_s": row["decision_ms"] / 1000,
        "outcome": outcome,
        "judge_id": who,
        "trait": about,
        "condition_id": Condition(who, "human", who, about).condition_id,
        "received_at": row["labelled_at"],
    }
