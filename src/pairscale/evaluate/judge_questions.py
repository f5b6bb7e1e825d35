"""The questions that a judge is checked with: pairs in both orders, some of them again, and texts with nonsense."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from pairscale.core.comparisons import ordered_key
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES, read_rows
from pairscale.core.notices import notice
from pairscale.core.provenance import fingerprint, text_hash
from pairscale.core.tables import PAIRS, Table, listed, to_frame
from pairscale.evaluate.comparators import item_name
from pairscale.evaluate.labels import answers_digest, read_labels
from pairscale.evaluate.manifest import MANIFEST
from pairscale.pairing.make import some_pairs
from pairscale.pairing.order import randomize_pair_order
from pairscale.pairing.table import generator, swapped
from pairscale.store.reading import read_comparisons

__all__ = ["CheckPairs", "Questions", "case_rows", "nonsense", "pairs_of_cases", "pairs_of_texts", "questions_of"]

Labels: TypeAlias = "Table | str | os.PathLike[str]"

_ONSETS = "b d f g k l m n p r s t v z br dr kl pl st tr sh".split()
_VOWELS = "a e i o u ai ou ee".split()
_ENDS = ["", "", "n", "r", "l", "s", "t", "nd", "x"]
_LEAST_WORDS, _MOST_WORDS, _WORDS_A_SENTENCE = 12, 60, 9


@dataclass(frozen=True, slots=True)
class CheckPairs:
    """Pairs to check a judge with, and what people said of them.

    Attributes:
        kind: ``texts`` or ``cases``.
        pairs: ``pair_uid ID1 text1 ID2 text2`` and what else the judge is shown of both sides.
        labels: by the pair's place, who people prefer: 1.0 the first, 0.0 the second, 0.5 neither; None without.
        variants: by the pair's place, which variant stands first, ``a`` or ``b``; None where there are no variants.
        labellers: how many people labelled.
        n_items: texts there are.
        criterion: what cases are judged by.
        unlabelled: pairs or cases without a usable label, which are not asked about.
    """

    kind: str
    pairs: pl.DataFrame
    labels: Sequence[float | None]
    variants: Sequence[str | None]
    labellers: int
    n_items: int
    criterion: str | None = None
    unlabelled: int = 0

    @property
    def digest(self) -> str:
        """Of the texts and the labels."""
        return fingerprint([self.pairs.select("text1", "text2").rows(), list(self.labels)])


@dataclass(frozen=True, slots=True)
class Questions:
    """Everything that is asked, as one table of pairs, and under which names.

    Attributes:
        table: the pairs to submit.
        forward: by the pair's place, the name of the question in the given order.
        backward: the same in the other order.
        again: by the pair's place, the name of the second asking.
        padded: the names of both orders of the questions about appended nonsense; the text as it was stands first in
            the first of them.
    """

    table: pl.DataFrame
    forward: Sequence[str]
    backward: Sequence[str]
    again: Mapping[int, str]
    padded: Sequence[tuple[str, str]]


# Pairs of texts


def pairs_of_texts(
    samples: pl.DataFrame, labels: Labels | None, key: str | os.PathLike[str] | None, n_pairs: int | None, seed: int
) -> CheckPairs:
    """Pairs of texts: some of all, or those that people have labelled.

    Args:
        samples: the texts.
        labels: people's comparisons of them, in any form that :func:`read_comparisons` takes.
        key: of labels that do not say what they compare.
        n_pairs: how many; by default 30, or all that are labelled.
        seed: of the choice and the order.

    Raises:
        InputError: no label is of these texts.
    """
    if labels is None:
        if key is not None:
            raise InputError("`key=` belongs to `labels=`")
        pairs = randomize_pair_order(some_pairs(samples, 30 if n_pairs is None else n_pairs, seed), seed=seed)
        nothing = [None] * pairs.height
        return CheckPairs("texts", _named(pairs), nothing, nothing, 0, samples.height)
    read = read_comparisons(labels, key=key).table
    votes, left_out, people = _votes(read, set(samples["ID"].cast(pl.String)))
    if not votes:
        raise InputError("labels: none of them is of two of these texts; check that both use the same ids")
    if left_out:
        notice(f"labels: {left_out:,} rows say nothing about two of these texts, and are left out")
    names = sorted(votes)
    chosen = generator(seed).permutation(len(names))[: len(names) if n_pairs is None else n_pairs]
    sides = pl.DataFrame([names[at] for at in chosen], schema=["ID1", "ID2"], orient="row")
    by_id = samples.with_columns(pl.col("ID").cast(pl.String))
    for side in "12":
        renamed = by_id.rename({name: f"{name}{side}" for name in by_id.columns})
        sides = sides.join(renamed, on=f"ID{side}", maintain_order="left")
    pairs = randomize_pair_order(sides.select(*PAIRS, pl.exclude(*PAIRS)), seed=seed)
    said = [_of_first(votes, one, two) for one, two in pairs.select("ID1", "ID2").iter_rows()]
    return CheckPairs("texts", _named(pairs), said, [None] * pairs.height, people, samples.height)


def _votes(read: pl.DataFrame, known: set[str]) -> tuple[dict[tuple[str, str], Counter[str]], int, int]:
    """By two ids in their order, how many people prefer which; how many rows are left out; how many people."""
    votes: dict[tuple[str, str], Counter[str]] = {}
    left_out, people = 0, set[str]()
    who = next((name for name in ("labeller", "judge_id", "judge", "rater") if name in read.columns), None)
    for row in read.iter_rows(named=True):
        one, two, better = str(row["ID1"]), str(row["ID2"]), row["better_id"]
        tie = better is None and row.get("outcome") == "tie"
        if one not in known or two not in known or one == two or (better is None and not tie):
            left_out += 1
            continue
        low, high = sorted((one, two))
        votes.setdefault((low, high), Counter())["tie" if tie else str(better)] += 1
        people.add("" if who is None else str(row[who]))
    return votes, left_out, len(people)


def _of_first(votes: Mapping[tuple[str, str], Counter[str]], one: str, two: str) -> float:
    low, high = sorted((one, two))
    found = votes[low, high]
    return _majority(found[one], found[two])


def _majority(first: int, second: int) -> float:
    """Who most people prefer; neither where as many prefer the one as the other."""
    return 0.5 if first == second else float(first > second)


def _named(pairs: pl.DataFrame) -> pl.DataFrame:
    """Pairs under the names that they would have anyway, so that what was asked before is found."""
    sides = pairs.select("ID1", "ID2").cast(pl.String).iter_rows()
    return pairs.with_columns(pl.Series("pair_uid", [f"{ordered_key(*ids)}#1" for ids in sides], dtype=pl.String))


# Cases of a manifest


def case_rows(data: Any) -> list[dict[str, Any]] | None:
    """The cases of a manifest; None where the data are something else."""
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if path.suffix.lower() not in TABLE_SUFFIXES or not path.is_file():
            return None
        rows = read_rows(path, text=(*MANIFEST, "preferred", "labeller", "comment"))
        there = set(rows[0]) if rows else set()
    else:
        columns = getattr(data, "columns", None)
        if columns is None and isinstance(data, Sequence) and data and isinstance(data[0], Mapping):
            columns = list(data[0])
        there = set(columns) if columns is not None else set()
        rows = to_frame(data, "cases").to_dicts() if {"response_1", "response_2"} <= there else []
    return rows if {"response_1", "response_2"} <= there else None


def pairs_of_cases(
    rows: Sequence[Mapping[str, Any]],
    labels: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    criterion: str | None,
    n_pairs: int | None,
    seed: int,
    encoding: str | None = None,
) -> CheckPairs:
    """The cases of a manifest under one criterion: some of all, or those that people have labelled.

    Args:
        rows: the cases.
        labels: the labels; see :func:`human_labels`.
        key: the key of the manifest.
        criterion: which one, where the manifest has several.
        n_pairs: how many; by default 30, or all that are labelled.
        seed: of the choice.
        encoding: of labels and of a key that are not UTF-8.

    Raises:
        InputError: the criterion is not there or not chosen, or no label is of these cases.
    """
    criteria = list(dict.fromkeys(str(row.get("criterion") or "") for row in rows))
    if criterion is None and len(criteria) > 1:
        raise InputError(f"the cases have {len(criteria)} criteria; choose one by criterion=: {listed(criteria)}")
    about = criteria[0] if criterion is None else criterion
    if about not in criteria or not about.strip():
        raise InputError(f"no case is of the criterion {about!r}; there are {listed(criteria)}")
    cases = {str(row["case_id"]): row for row in rows if str(row.get("criterion") or "") == about}
    votes, people = ({}, 0) if labels is None else _case_votes(cases, labels, key, about, encoding)
    if labels is None and key is not None:
        raise InputError("`key=` belongs to `labels=`")
    if labels is not None and not votes:
        raise InputError("labels: none of them is of these cases; check case_id, and that the answers are the same")
    usable, same, empty = [], 0, 0
    for name in sorted(cases if labels is None else votes):
        one, two = (str(cases[name].get(f"response_{at}") or "") for at in (1, 2))
        same, empty = same + (one == two), empty + (one != two and not (one.strip() and two.strip()))
        if one != two and one.strip() and two.strip():
            usable.append(name)
    if same or empty:
        notice(f"cases: {same:,} with two equal answers and {empty:,} with an empty one are not asked about")
    most = n_pairs if n_pairs is not None else 30 if labels is None else len(usable)
    chosen = [usable[at] for at in generator(seed).permutation(len(usable))[:most]]
    if not chosen:
        raise InputError("there is no case to ask about: every one has two equal answers, or an empty one")
    pairs = pl.DataFrame([_pair(name, cases[name], about) for name in chosen])
    said = [votes[name][0] if name in votes else None for name in chosen]
    sides = [votes[name][1] if name in votes else None for name in chosen]
    unlabelled = 0 if labels is None else len(cases) - len(votes)
    return CheckPairs("cases", pairs, said, sides, people, 2 * len(cases), about, unlabelled)


def _case_votes(
    cases: Mapping[str, Mapping[str, Any]],
    labels: str | os.PathLike[str],
    key: str | os.PathLike[str] | None,
    criterion: str,
    encoding: str | None,
) -> tuple[dict[str, tuple[float, str]], int]:
    """By case, who people prefer (1.0 the first response) and the variant that stands first; how many people."""
    read = read_labels(labels, key_file=key, encoding=encoding)
    if read.problems.height:
        first = read.problems.row(0, named=True)
        notice(
            f"labels: {read.problems.height:,} cannot be used; the first is in row {first['row']}: {first['problem']}"
        )
    table = read.of(criterion).table
    votes: dict[str, Counter[str]] = {}
    firsts: dict[str, str] = {}
    strange = changed = 0
    for row in table.iter_rows(named=True):
        case = cases.get(row["case_id"])
        if case is None:
            strange += 1
            continue
        shown = answers_digest(*(str(case.get(f"response_{at}") or "") for at in (1, 2)))
        if row["answers"] is not None and row["answers"] != shown:
            changed += 1
            continue
        votes.setdefault(row["case_id"], Counter())[row["preferred"]] += 1
        firsts[row["case_id"]] = row["first_variant"]
    if strange or changed:
        notice(f"labels: {strange:,} are of other cases and {changed:,} of other answers; they are left out")
    people = table["labeller"].n_unique()
    return {name: (_majority(found["1"], found["2"]), firsts[name]) for name, found in votes.items()}, people


def _pair(name: str, case: Mapping[str, Any], criterion: str) -> dict[str, Any]:
    task_id = str(case.get("task_id") or name)
    shared = {"task_id": task_id, "input": str(case.get("task_input") or ""), "criterion": criterion}
    row: dict[str, Any] = {"pair_uid": f"{name}#1"}
    for side in "12":
        text = str(case[f"response_{side}"])
        row |= {f"ID{side}": item_name(task_id, text), f"text{side}": text}
        row |= {f"{key}{side}": value for key, value in shared.items()}
    return row


# What is asked


def questions_of(found: CheckPairs, n_repeats: int, n_distractors: int, seed: int) -> Questions:
    """Every question of a check.

    Args:
        found: the pairs.
        n_repeats: how many of them are asked a second time.
        n_distractors: how many texts are compared with themselves and nonsense.
        seed: of the nonsense.
    """
    forward = found.pairs
    every = np.ones(forward.height, dtype=bool)
    backward = swapped(forward, every)
    ids = list(forward["pair_uid"])
    if found.kind == "texts":
        names = [f"{ordered_key(*sides)}#1" for sides in backward.select("ID1", "ID2").cast(pl.String).iter_rows()]
    else:
        names = [f"{name}~" for name in ids]
    backward = backward.with_columns(pl.Series("pair_uid", names, dtype=pl.String))
    again = {at: f"{ids[at].removesuffix('#1')}#2" for at in range(min(n_repeats, len(ids)))}
    second = forward.head(len(again)).with_columns(pl.Series("pair_uid", list(again.values()), dtype=pl.String))
    padded = _padded(forward, n_distractors, seed)
    turned = swapped(padded, np.ones(padded.height, dtype=bool))
    turned = turned.with_columns(pl.concat_str("pair_uid", pl.lit("~")))
    both = list(zip(padded["pair_uid"], turned["pair_uid"], strict=True))
    return Questions(pl.concat([forward, backward, second, padded, turned]), ids, names, again, both)


def _padded(pairs: pl.DataFrame, count: int, seed: int) -> pl.DataFrame:
    """The first texts of as many pairs, each against itself with nonsense behind it; no text twice."""
    chosen = pairs.unique("ID1", keep="first", maintain_order=True).head(count)
    known = {*pairs["ID1"].cast(pl.String), *pairs["ID2"].cast(pl.String)}
    own = [name.removesuffix("1") for name in pairs.columns if name.endswith("1") and f"{name[:-1]}2" in pairs.columns]
    texts = [f"{text}\n\n{nonsense(text, seed)}" for text in chosen["text1"]]
    ids = [f"{name} + nonsense" for name in chosen["ID1"].cast(pl.String)]
    if known & set(ids):
        raise InputError(f"the id {min(known & set(ids))!r} is needed for the check; give that text another one")
    same = chosen.with_columns(pl.col(f"{name}1").alias(f"{name}2") for name in own)
    return same.with_columns(
        pl.Series("ID2", ids, dtype=pl.String),
        pl.Series("text2", texts, dtype=pl.String),
        pl.Series("pair_uid", [f"{name}#{seed}" for name in ids], dtype=pl.String),
    )


def nonsense(text: str, seed: int) -> str:
    """Irrelevant sentences of invented words, about a quarter as long as the text; the same for the same text and seed.

    Example:
        >>> nonsense("It rains.", 1) == nonsense("It rains.", 1), len(nonsense("It rains.", 1).split())
        (True, 12)
    """
    rng = np.random.default_rng([seed, int(text_hash(text)[:12], 16)])
    count = int(np.clip(len(text.split()) // 4, _LEAST_WORDS, _MOST_WORDS))

    def word() -> str:
        syllables = range(int(rng.integers(1, 4)))
        parts = (rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_ENDS) for _ in syllables)
        return "".join(map(str, parts))

    words = [word() for _ in range(count)]
    sentences = [words[at : at + _WORDS_A_SENTENCE] for at in range(0, count, _WORDS_A_SENTENCE)]
    return " ".join(f"{' '.join(sentence).capitalize()}." for sentence in sentences)
