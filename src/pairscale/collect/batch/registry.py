"""What the run file knows about batches: a log of events, read back as one entry per batch.

Every event is on the disk before the next thing is done. A batch is *prepared* (its key and its pairs are fixed),
*uploaded*, *created* (the provider's id is known), *seen* in some state, *recorded* (these pairs' results are in the
run file, in the same transaction) and *collected*. A batch that failed to be created, or that was given up, is
*dropped*.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
from sqlalchemy import select

from pairscale.core.provenance import utc_now
from pairscale.core.tables import FAILED, Row, Schema, Values, result_columns
from pairscale.providers.batches import Draft
from pairscale.store.queries import ANSWERED
from pairscale.store.schema import pairs

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

Keys: TypeAlias = "Collection[str] | None"
"""The batches that are meant, by our own names; None for all."""

EVENTS = "batches"
JUDGES = "batch_judges"


@dataclass(slots=True)
class RegistryEntry:
    """One batch, as the run file knows it.

    Attributes:
        key: our own name of it, which the provider keeps, too.
        provider: who works it off.
        model: the model.
        condition_id: what is asked.
        segment: which part of its submission, from 1.
        pair_ids: the pairs in it, by their numbers in the run file.
        n_requests: how many requests; twice the pairs when both orders are asked.
        bytes: of the file of requests.
        input_path: the file of requests.
        output_path: the file of results.
        endpoint: where each request goes.
        prepared_at: when it was written down.
        file_id: the provider's name of the uploaded file.
        batch_id: the provider's name of the batch; None until it is known to be there.
        created_at: when that was.
        state: its state, as last seen.
        succeeded: requests that were answered, as the provider counts.
        failed: requests that were not.
        expires_at: when the provider gives up, in seconds since 1970.
        message: why it failed.
        recorded: the pairs whose results are in the run file.
        collected_at: when the last of them was.
        is_guess: whether its id was found by a search that may have found another's batch.
        foreign: ids of batches that were mistaken for this one.
        metadata: names and values that go to the provider.
        max_cost: US dollars that it may cost at most; None when the price is not known.
        keep_jsonl: whether its files are kept when its results are in the run file.
        include_raw: whether its results are wanted with the raw replies.
    """

    key: str
    provider: str
    model: str
    condition_id: str
    segment: int
    pair_ids: list[int]
    n_requests: int
    bytes: int
    input_path: str
    output_path: str
    endpoint: str
    prepared_at: str
    file_id: str | None = None
    batch_id: str | None = None
    created_at: str | None = None
    state: str = "prepared"
    succeeded: int | None = None
    failed: int | None = None
    expires_at: float | None = None
    message: str | None = None
    recorded: set[int] = field(default_factory=set)
    collected_at: str | None = None
    is_guess: bool = False
    foreign: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    max_cost: float | None = None
    keep_jsonl: bool = True
    include_raw: bool = False

    @property
    def open(self) -> bool:
        """Whether its pairs may still be answered, so that they should not be asked elsewhere."""
        return self.collected_at is None and self.state != "dropped"

    @property
    def draft(self) -> Draft:
        """What its provider is given to create it."""
        prepared_at = datetime.fromisoformat(self.prepared_at).timestamp()
        path = Path(self.input_path)
        return Draft(
            self.key, self.model, self.endpoint, path, self.n_requests, prepared_at, self.file_id, self.metadata
        )

    @property
    def csv_path(self) -> Path:
        """Where its results go when they are wanted as a table."""
        return Path(self.output_path).with_suffix(".csv")

    def happened(self, event: str, values: Row) -> None:
        """Take in one event."""
        if event == "recorded":
            self.recorded.update(values["pairs"])
        elif event == "foreign":
            self.foreign.append(values["batch_id"])
            self.batch_id = None
            self.state = "creating"
        else:
            for name in values.keys() & set(self.__slots__):  # versions 1.x may have written others
                setattr(self, name, values[name])


def event(kind: str, key: str, **values: Any) -> Values:
    """One event, as it is written down."""
    return {"event": kind, "key": key, "at": utc_now(), **values}


def note(store: RunFile, entry: RegistryEntry, kind: str, **values: Any) -> None:
    """Write down what happened to a batch, and take it in."""
    store.log(EVENTS, [event(kind, entry.key, **values)])
    entry.happened(kind, values)


def entries(store: RunFile, keys: Keys = None, folder: Path | None = None) -> list[RegistryEntry]:
    """Every batch of a run file, in the order in which they were prepared.

    Args:
        store: the run file.
        keys: which of them.
        folder: where the files are whose own folder is not on this machine.
    """
    batches: dict[str, RegistryEntry] = {}
    for row in store.read_log(EVENTS):
        kind = row.pop("event")
        when = row.pop("at")
        if kind == "prepared":
            batches[row["key"]] = RegistryEntry(**row, prepared_at=when)
        else:
            batches[row["key"]].happened(kind, row)
    chosen = [entry for entry in batches.values() if keys is None or entry.key in keys]
    for entry in chosen:
        if folder is not None and not Path(entry.input_path).parent.is_dir():  # written down on another machine
            entry.input_path = str(folder / f"{entry.key}.jsonl")
            entry.output_path = str(folder / f"{entry.key}.results.jsonl")
    return chosen


def judges_of(store: RunFile) -> dict[str, Values]:
    """By condition, what another process needs to be the same judge."""
    return {row["condition_id"]: row["judge"] for row in store.read_log(JUDGES)}


def pairs_named(store: RunFile) -> dict[int, tuple[str, str, str]]:
    """Name, first and second sample of all pairs, by their numbers."""
    query = select(pairs.c.pair_id, pairs.c.custom_id, pairs.c.ID1, pairs.c.ID2)
    with store.transaction() as connection:
        return {number: (name, first, second) for number, name, first, second in connection.execute(query)}


_TEXT = pl.String()
STATUS: Schema = {
    "key": _TEXT, "provider": _TEXT, "model": _TEXT, "batch_id": _TEXT, "state": _TEXT, "pairs": pl.Int64(),
    "requests": pl.Int64(), "succeeded": pl.Int64(), "failed": pl.Int64(), "recorded": pl.Int64(), "created_at": _TEXT,
    "age_s": pl.Float64(), "left_s": pl.Float64(), "collected_at": _TEXT, "condition_id": _TEXT, "message": _TEXT,
}  # fmt: skip
"""The columns of the table of batches."""


def status_table(chosen: Sequence[RegistryEntry], now: float) -> pl.DataFrame:
    """One row per batch: its state, how old it is, and how long it has left, in seconds."""
    rows = []
    for entry in chosen:
        row = {name: getattr(entry, name, None) for name in STATUS}
        row |= {"pairs": len(entry.pair_ids), "requests": entry.n_requests, "recorded": len(entry.recorded)}
        if entry.created_at is not None:
            row["age_s"] = max(0.0, now - datetime.fromisoformat(entry.created_at).timestamp())
        if entry.expires_at is not None and not entry.collected_at:
            row["left_s"] = max(0.0, entry.expires_at - now)
        rows.append(row)
    return pl.DataFrame(rows, schema=STATUS)


REST = ("key", "batch_id", "state", "custom_id", "ID1", "ID2", "error_code", "error_message", "condition_id")
"""The columns of the table of the rest, all of them text."""


_PAIR = ["pair_id", "condition_id"]


def _asked_in(chosen: Sequence[RegistryEntry]) -> pl.DataFrame:
    """The pairs of some batches, each with the last batch that it is in."""
    rows = [
        (number, entry.condition_id, entry.key, entry.batch_id, entry.state, entry.message)
        for entry in chosen
        for number in entry.pair_ids
    ]
    schema = {"pair_id": pl.Int64()} | dict.fromkeys(("condition_id", "key", "batch_id", "state", "message"), _TEXT)
    return pl.DataFrame(rows, schema=schema, orient="row").unique(_PAIR, keep="last", maintain_order=True)


def results_of(
    store: RunFile, chosen: Sequence[RegistryEntry], *, raw: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers to the pairs of some batches, and every attempt at them that gave none."""
    asked = _asked_in(chosen)
    answers = store.results(raw=raw).filter(ANSWERED).join(asked, on=_PAIR, how="semi", maintain_order="left")
    failed = store.failed_attempts().join(asked, on=_PAIR, how="semi", maintain_order="left")
    return answers.select(*result_columns(raw=raw)), failed.select("custom_id", "ID1", "ID2", *FAILED, "condition_id")


def rest_of(store: RunFile, chosen: Sequence[RegistryEntry]) -> pl.DataFrame:
    """One row per pair of these batches that has no answer, with its last batch and its last reason."""
    unanswered = _asked_in(chosen).join(store.results().filter(ANSWERED), on=_PAIR, how="anti", maintain_order="left")
    reasons = store.failed_attempts().unique(_PAIR, keep="last").select(*_PAIR, "error_code", "error_message")
    unanswered = unanswered.join(reasons, on=_PAIR, how="left", maintain_order="left")
    names = pairs_named(store)
    samples = pl.DataFrame([names[n] for n in unanswered["pair_id"]], schema=["custom_id", "ID1", "ID2"], orient="row")
    unanswered = pl.concat([unanswered, samples], how="horizontal").with_columns(
        error_message=pl.coalesce("error_message", "message")
    )
    return unanswered.select(pl.col(REST).cast(pl.String))
