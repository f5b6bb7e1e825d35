"""Preference pairs for training, from the comparisons of a run: a chosen text and a rejected one, and how sure that is.

The columns are those that TRL's trainers take: ``prompt chosen rejected``, plain or as messages, or with the prompt
inside of both texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.comparisons import Outcome
from pairscale.core.errors import FitError, InputError
from pairscale.core.tables import listed
from pairscale.judges.orders import merge_orders

if TYPE_CHECKING:
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.evaluate.store import Compared
    from pairscale.store.runfile import RunFile

PREFERENCES = ("prompt", "chosen", "rejected", "probability", "margin", "both_orders", "chosen_id", "rejected_id")
"""The columns of preference pairs.

``probability``: that the chosen text is better, as the judge stated it; null where it did not. ``margin``: how far the
score of the chosen text is above that of the rejected one, in logits. ``both_orders``: true where both orders were
asked and agree; null where one was.
"""

_DIGITS = 9  # of a margin: equal scores differ by less, and that is no preference
_SCHEMA: dict[str, Any] = dict.fromkeys(PREFERENCES, pl.String()) | {
    "probability": pl.Float64(),
    "margin": pl.Float64(),
    "both_orders": pl.Boolean(),
}


@dataclass(frozen=True, slots=True, eq=False)
class PreferencePairs:
    """Preference pairs, and what was left out.

    Attributes:
        table: one row per pair, with the columns of :data:`PREFERENCES`.
        left_out: how many pairs were left out, by the reason.
    """

    table: pl.DataFrame
    left_out: Mapping[str, int]

    @property
    def line(self) -> str:
        """What there is, in one line."""
        n, against = self.table.height, int((self.table["margin"] < 0).sum())
        parts = [f"{n:,} preference pair{'s' * (n != 1)}"]
        said = ", ".join(f"{times:,} {why}" for why, times in self.left_out.items())
        parts += [f"left out: {said}"] * bool(said)
        parts += [f"{against:,} with a margin below 0, where the scores say the opposite"] * bool(against)
        return "; ".join(parts)


def preferences_of_texts(
    results: pl.DataFrame, items: pl.DataFrame, asked_twice: Iterable[str], prompt: str | None, input_col: str | None
) -> PreferencePairs:
    """Preference pairs of texts that were compared.

    The answers of one judge to one pair are merged as two orders are: only a pair that the same text won each time is a
    win. Several judges vote.

    Args:
        results: the comparisons.
        items: the texts, ``ID text`` and their other columns.
        asked_twice: the conditions whose every answer is of both orders.
        prompt: the prompt of all texts.
        input_col: the column of the texts that holds the prompt of each.

    Raises:
        InputError: when there is no such column, or no text.
    """
    texts = dict(items.select("ID", "text").iter_rows()) if "text" in items.columns else {}
    prompts = _prompts(items, prompt, input_col)
    theta = _scores(results)
    both = set(asked_twice)
    groups: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for row in results.iter_rows(named=True):
        one, two = sorted((row["ID1"], row["ID2"]))
        groups.setdefault((one, two), {}).setdefault(str(row.get("judge_id", row.get("judge"))), []).append(row)
    left_out: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    for (one, two), judges in groups.items():
        outcome, winner = _voted([_merged(answers) for answers in judges.values()])
        if one == two or one not in texts or two not in texts:
            left_out["without a text" if one != two else "of a text with itself"] += 1
        elif prompts.get(one) != prompts.get(two):
            left_out["of texts with different prompts"] += 1
        elif winner is None:
            left_out[_REASONS[outcome]] += 1
        else:
            loser = two if winner == one else one
            answers = [row for judged in judges.values() for row in judged]
            known = winner in theta and loser in theta
            margin = round(theta[winner] - theta[loser], _DIGITS) + 0.0 if known else None
            values = (
                prompts.get(one), texts[winner], texts[loser], _probability(answers, winner), margin,
                _both_orders(judges.values(), both), winner, loser,
            )  # fmt: skip
            rows.append(dict(zip(PREFERENCES, values, strict=True)))
    return PreferencePairs(pl.DataFrame(rows, schema=_SCHEMA), dict(left_out))


_REASONS = {
    Outcome.TIE: "ties",
    Outcome.FLIP: "flips (another answer in another order, or when asked again)",
    Outcome.ABSTENTION: "without an answer",
    Outcome.ERROR: "without an answer",
}


def _prompts(items: pl.DataFrame, prompt: str | None, input_col: str | None) -> dict[str, str | None]:
    if input_col is None:
        return dict.fromkeys(items["ID"].to_list(), prompt)
    if prompt is not None:
        raise InputError("give `prompt=` or `input_col=`, not both")
    if input_col not in items.columns:
        raise InputError(f"the texts have no column {input_col!r}; they have {listed(items.columns, 20)}")
    return dict(items.select("ID", pl.col(input_col).cast(pl.String)).iter_rows())


def _scores(results: pl.DataFrame) -> dict[str, float]:
    """The score of every text, by the model that always has an answer."""
    from pairscale.models.bradley_terry import fit_bt_model

    try:
        found = fit_bt_model(results, engine="map", ties="half", repeats="learned", se=False, unconnected="separate")
    except FitError:  # no pair has a winner
        return {}
    return dict(found.theta.select("ID", "theta").iter_rows())


def _merged(answers: Iterable[Mapping[str, Any]]) -> tuple[Outcome, str | None]:
    """What one judge said of a pair, however often it was asked."""
    said: list[tuple[Outcome, str | None]] = []
    for row in answers:
        of_pair = row["better_id"] in (row["ID1"], row["ID2"])
        kind = Outcome.WIN if of_pair else Outcome(row.get("outcome") or Outcome.ABSTENTION)
        kind = Outcome.ABSTENTION if kind is Outcome.WIN and not of_pair else kind
        said.append((kind, row["better_id"] if of_pair else None))
    return merge_orders(said)


def _voted(votes: list[tuple[Outcome, str | None]]) -> tuple[Outcome, str | None]:
    """The majority of the judges."""
    if len(votes) == 1:
        return votes[0]
    counts = Counter(winner for _, winner in votes if winner is not None).most_common()
    if counts and (len(counts) == 1 or counts[0][1] > counts[1][1]):
        return Outcome.WIN, counts[0][0]
    return (Outcome.TIE if counts else votes[0][0]), None


def _probability(answers: Iterable[Mapping[str, Any]], winner: str) -> float | None:
    """The mean of the stated probabilities that the winner is better."""
    stated = [
        row["probability"] if row["ID1"] == winner else 1 - row["probability"]
        for row in answers
        if row.get("probability") is not None
    ]
    return sum(stated) / len(stated) if stated else None


def _both_orders(judges: Iterable[list[dict[str, Any]]], asked_twice: set[str]) -> bool | None:
    """True if every judge was asked in both orders, which then agree; None otherwise."""
    for answers in judges:
        orders = {row["ID1"] for row in answers if row["better_id"] is not None}
        if len(orders) < 2 and not all(row.get("condition_id") in asked_twice for row in answers):
            return None
    return True


def preferences_of_ab(
    result: PairwiseRunResult, shown: Mapping[tuple[str, int], Compared], key: str | None
) -> PreferencePairs:
    """Preference pairs of two variants: the task is the prompt, and the better answer is chosen.

    Args:
        result: the result of the run.
        shown: the task and the two answers of every case.
        key: the comparator whose verdicts count, where there are several.

    Raises:
        InputError: when there are several, and none was chosen.
    """
    if key is None and len(result.keys) > 1:
        raise InputError(f"the run has several comparators; choose one by `condition=`: {listed(result.keys)}")
    left_out: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    for case in result.of(key or result.keys[0]):
        texts = shown.get((case.task_id, case.repeat))
        if case.winner not in {"a", "b"}:
            left_out[_REASONS.get(case.outcome, "without an answer")] += 1
        elif texts is None or texts.a is None or texts.b is None:
            left_out["without a text"] += 1
        else:
            chosen, rejected = (texts.a, texts.b) if case.winner == "a" else (texts.b, texts.a)
            probability = case.preference if case.winner == "b" else case.probability
            names = (result.variant_a, result.variant_b)
            ids = names if case.winner == "a" else names[::-1]
            orders = True if len(case.detail.get("orders", ())) > 1 else None
            values = (texts.task_input, chosen, rejected, probability, None, orders, *ids)
            rows.append(dict(zip(PREFERENCES, values, strict=True)))
    return PreferencePairs(pl.DataFrame(rows, schema=_SCHEMA), dict(left_out))


def asked_in_both_orders(store: RunFile) -> list[str]:
    """The conditions whose judge was asked in both orders, so that each answer is of both."""
    from sqlalchemy import select

    from pairscale.store.schema import conditions

    with store.transaction() as connection:
        rows = connection.execute(select(conditions.c.condition_id, conditions.c.settings)).all()
    return [name for name, settings in rows if (settings or {}).get("both_orders")]


def as_trl(table: pl.DataFrame, *, conversational: bool, implicit_prompt: bool) -> pl.DataFrame:
    """Preference pairs in one of TRL's forms: plain or as messages, with a prompt of their own or inside the texts."""
    has_prompt = table["prompt"].null_count() == 0 and table.height > 0
    if not has_prompt or implicit_prompt:
        start = _opening() if implicit_prompt and not conversational else pl.lit("")
        texts = {name: pl.concat_str(start, pl.col(name)) for name in ("chosen", "rejected")}
    else:
        texts = {name: pl.col(name) for name in ("chosen", "rejected")}
    if conversational:
        before = ["prompt"] if implicit_prompt and has_prompt else []
        texts = {name: _messages([*before, name]) for name in texts}
    first = {"prompt": _messages(["prompt"]) if conversational else pl.col("prompt")}
    kept = {} if implicit_prompt or not has_prompt else first
    return table.select(**kept, **texts, **{name: pl.col(name) for name in PREFERENCES[3:]})


def _opening() -> pl.Expr:
    """The prompt as the beginning of a text; a blank line follows it unless it ends in a blank itself."""
    prompt = pl.col("prompt")
    return pl.when(prompt.str.contains(r"\S\z")).then(prompt + "\n\n").otherwise(prompt.fill_null(""))


def _messages(columns: list[str]) -> pl.Expr:
    parts = [
        pl.struct(role=pl.lit("user" if name == "prompt" else "assistant"), content=pl.col(name)) for name in columns
    ]
    return pl.concat_list(parts)
