"""A file of labels as a comparison of two variants: a judge among the labellers, and people, or every labeller."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.core.provenance import Provenance
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import PairwiseOutcome, majority
from pairscale.evaluate.labels import read_labels
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult
from pairscale.judges.names import is_judge

PEOPLE = "people"
"""The key of people's labels, beside those of judges."""


def result_of_labels(
    path: str | os.PathLike[str],
    judge: str | None = None,
    key_file: str | os.PathLike[str] | None = None,
    encoding: str | None = None,
) -> PairwiseRunResult:
    """Labels as the result of a comparison.

    With a judge among the labellers there is a comparator for the judge and one for people, by majority; without one,
    every labeller is a comparator.

    Args:
        path: the labels; see :func:`pairscale.read_labels`.
        judge: the labeller that is a judge; by default those that are called like one, such as ``openai:gpt-5.1``.
        key_file: the key, where it does not lie beside the labels.
        encoding: of text files that are not UTF-8.

    Raises:
        InputError: If there are no labels, or no labeller has the name of the judge.
        FileFormatError: If the labels or their key cannot be read.
    """
    labels = read_labels(path, key_file=key_file, encoding=encoding)
    if labels.table.is_empty():
        raise InputError(f"{path} holds no label that can be used; `pairscale agreement {path}` says why")
    who = labels.table["labeller"].unique(maintain_order=True).to_list()
    if judge is not None and judge not in who:
        raise InputError(f"no labeller is called {judge!r}; there are {listed(who)}")
    judges = [judge] if judge is not None else [name for name in who if is_judge(name)]
    criteria = labels.table["criterion"].unique(maintain_order=True).to_list()
    cases: list[PairwiseCase] = []
    keys: dict[str, None] = {}
    for criterion in criteria:
        groups = [*judges, PEOPLE] if judges else who
        for group in groups:
            key = group if len(criteria) == 1 else f"{criterion}: {group}"
            keys[key] = None
            for rows in _by_case(labels.of(criterion).table.to_dicts()).values():
                chosen = [row for row in rows if (row["labeller"] in judges) == (group in judges)]
                said = chosen if group == PEOPLE and judges else [row for row in chosen if row["labeller"] == group]
                if said:
                    cases.append(_case(key, said, is_judge=group in judges))
    settings = {"labels": str(path), "unusable": labels.problems.height or None}
    return PairwiseRunResult("labels", tuple(cases), tuple(keys), provenance=Provenance("read_labels", settings))


def _by_case(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], list[Mapping[str, Any]]]:
    found: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["task_id"], row["repeat"]), []).append(row)
    return found


def _case(key: str, rows: list[Mapping[str, Any]], *, is_judge: bool) -> PairwiseCase:
    first = rows[0]
    if is_judge:
        order = {"first": first["first_variant"], "outcome": "tie" if first["winner"] == "tie" else "win"}
        order |= {"winner": first["winner"], "reasoning": first["comment"] or "", "preference": None}
        said = PairwiseOutcome(
            first["winner"], first["comment"] or "", {"judge_id": first["labeller"], "orders": [order]}
        )
    else:
        kept = [{name: row[name] for name in ("labeller", "winner", "comment", "first_variant")} for row in rows]
        comments = [f"{row['labeller']}: {row['comment']}" for row in rows if row["comment"]]
        said = majority([PairwiseOutcome(row["winner"]) for row in rows], {"labels": kept}, "\n".join(comments))
    winner: Any = said.winner
    outcome = said.outcome or Outcome.ERROR
    return PairwiseCase(
        first["task_id"],
        key,
        winner,
        said.reasoning,
        dict(said.detail),
        outcome,
        repeat=first["repeat"],
    )
