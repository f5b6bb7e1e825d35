"""A saved result read again: our own, and those that AG2 writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import FileFormatError
from pairscale.core.notices import notice
from pairscale.core.provenance import Provenance
from pairscale.evaluate.comparators import PairwiseOutcome, foreign_outcome
from pairscale.evaluate.figures import VariantFigures

__all__ = ["SCHEMA_VERSION", "result_fields"]

SCHEMA_VERSION = "0.1"


def result_fields(
    found: Mapping[str, Any], known: set[str], case: type[Any], unmatched: type[Any], where: object
) -> dict[str, Any]:
    """The fields of a result from a document.

    Args:
        found: the document.
        known: the names of the fields.
        case: makes a case.
        unmatched: makes a task that was not compared.
        where: it comes from, for messages.

    Raises:
        FileFormatError: it is of another version.
        KeyError: something is missing.
        TypeError: something is of another kind.
        ValueError: something has another value.
    """
    version = found["schema_version"]
    if version != SCHEMA_VERSION:
        raise FileFormatError(f"{where} has schema_version {version!r}; this pairscale reads {SCHEMA_VERSION!r}")
    kept = {name: value for name, value in found.items() if name in known}
    if "provenance" not in found and not any("outcome" in one for one in found["cases"]):
        return kept | _of_ag2(found, case, where)
    kept["cases"] = tuple(
        case(**{**one, "outcome": Outcome(one["outcome"]), "tags": tuple(one["tags"])}) for one in found["cases"]
    )
    kept["unmatched"] = tuple(unmatched(**one) for one in found["unmatched"])
    kept |= {name: tuple(found[name]) for name in ("keys", "unasked", "control")}
    kept |= {name: tuple(found.get(name, ())) for name in ("unfinished", "prices_as_of")}
    own = {one.name for one in fields(VariantFigures)}
    kept["variants"] = tuple(
        VariantFigures(**{name: one[name] for name in one if name in own}) for one in found.get("variants", ())
    )
    kept["provenance"] = Provenance(**found["provenance"])
    return kept


def _of_ag2(found: Mapping[str, Any], case: type[Any], where: object) -> dict[str, Any]:
    """The fields of a run that AG2 saved: cases without an outcome, where failures were shown to the judge."""
    outcomes: list[PairwiseOutcome] = []
    for number, one in enumerate(found["cases"], start=1):
        outcome = foreign_outcome(one["winner"], one.get("reasoning"), one.get("detail"))
        if outcome is None:
            raise FileFormatError(f"{where}, case {number}: winner is {one['winner']!r}; it must be a, b or tie")
        outcomes.append(outcome)
    cases = tuple(
        case(str(one["task_id"]), str(one["key"]), said.winner, said.reasoning, dict(said.detail), said.outcome)
        for one, said in zip(found["cases"], outcomes, strict=True)
    )
    kinds = [said.outcome for said in outcomes]
    failed = sum(kind in {Outcome.ERROR, Outcome.ABSTENTION} for kind in kinds)
    changed = f"; {failed:,} of its ties are errors and missing labels here, and count in no rate" if failed else ""
    notice(f"{where} was saved by AG2{changed}")
    keys = tuple(found.get("keys") or dict.fromkeys(one.key for one in cases))
    return {"cases": cases, "keys": keys, "failures": "shown", "provenance": Provenance("AG2")}
