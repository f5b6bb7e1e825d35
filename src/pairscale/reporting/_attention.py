"""What in a ranking deserves a second look: surprising answers, circular triads, items that fit badly or stay vague."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pairscale.core.arrays import WITHOUT_SCIPY
from pairscale.models.fit_statistics import ITEM_WORDS, JUDGE_WORDS, flagged, mean_squares

_MOST = 10
_SURPRISING = 0.1  # an answer that the scores give less than this


@dataclass(frozen=True, slots=True)
class Attention:
    """What to look at again.

    Attributes:
        surprises: answers that the scores hardly expected, the least expected first: ``winner loser p``.
        misfits: items that are judged against the scores: ``ID infit comparisons``; see ``fit_statistics``.
        vague: items with the widest rank interval: ``ID rank_lower rank_upper``.
        n_circular: triads of items of which each beats the next (by majority of their answers).
        n_triads: triads in which all three pairs were decided.
        judges: judges that decide against the scores, where there are several: ``judge_id infit comparisons``.
        judge_fit: how each judge fits the scores: ``judge_id comparisons infit outfit misfit reason``.
    """

    surprises: pl.DataFrame
    misfits: pl.DataFrame
    vague: pl.DataFrame
    n_circular: int
    n_triads: int
    judges: pl.DataFrame
    judge_fit: pl.DataFrame

    def pairs(self) -> pl.DataFrame:
        """The surprising pairs as ``ID1 ID2``, to be asked again."""
        return self.surprises.select(ID1="winner", ID2="loser").unique(maintain_order=True)


def look_again(items: pl.DataFrame, decided: pl.DataFrame) -> Attention:
    """Find what deserves a second look.

    Args:
        items: ``ID score rank_lower rank_upper``.
        decided: ``ID1 ID2 better_id judge_id``, one row per decided comparison.
    """
    score = items.select("ID", "score")
    rows = (
        decided.select(
            winner="better_id",
            loser=pl.when(pl.col("better_id") == pl.col("ID1")).then("ID2").otherwise("ID1"),
            judge_id="judge_id",
        )
        .join(score.rename({"ID": "winner", "score": "high"}), on="winner", maintain_order="left")
        .join(score.rename({"ID": "loser", "score": "low"}), on="loser", maintain_order="left")
        .filter(pl.col("winner") != pl.col("loser"))
        .with_columns(
            p=1 / (1 + (pl.col("low") - pl.col("high")).exp()), q=1 / (1 + (pl.col("high") - pl.col("low")).exp())
        )
    )
    surprises = rows.filter(pl.col("p") < _SURPRISING).sort("p", "winner", "loser").head(_MOST)
    n_circular, n_triads = circular_triads(rows.select("winner", "loser"))
    width = pl.col("rank_upper") - pl.col("rank_lower")
    vague = items.filter(width > 0).sort(width, descending=True, maintain_order=True).head(_MOST // 2)
    both = pl.concat([rows.select("p", "q", ID="winner"), rows.select("p", "q", ID="loser")])
    judge_fit = _fit(rows, "judge_id", JUDGE_WORDS)
    return Attention(
        surprises=surprises.select("winner", "loser", "p", "judge_id"),
        misfits=_misfits(_fit(both, "ID", ITEM_WORDS), ITEM_WORDS).head(_MOST),
        vague=vague.select("ID", "rank_lower", "rank_upper"),
        n_circular=n_circular,
        n_triads=n_triads,
        judges=_misfits(judge_fit, JUDGE_WORDS),
        judge_fit=judge_fit,
    )


def _misfits(fit: pl.DataFrame, words: tuple[str, str]) -> pl.DataFrame:
    """Those that go against the scores."""
    return fit.filter(pl.col("reason") == words[0]).select(fit.columns[0], "infit", "comparisons")


def _fit(rows: pl.DataFrame, name: str, words: tuple[str, str]) -> pl.DataFrame:
    """How each fits the scores: the winner was expected to win with p, the residual is 1 - p, or q."""
    known = rows[name].unique(maintain_order=True)
    number = rows[name].replace_strict(known, np.arange(len(known)), return_dtype=pl.Int64()).to_numpy()
    p, q = rows["p"].to_numpy(), rows["q"].to_numpy()
    table = mean_squares(number, q**2, p * q, len(known), np.ones(len(p))).insert_column(0, known)
    return flagged(table, name, words)


def circular_triads(rows: pl.DataFrame) -> tuple[int, int]:
    """How many triads go round (a beats b beats c beats a), and how many were decided in all three pairs.

    Args:
        rows: ``winner loser``, one row per comparison; the majority of a pair's comparisons decides it.
    """
    ids = pl.concat([rows["winner"], rows["loser"]]).unique(maintain_order=True)
    place = pl.DataFrame({"ID": ids, "at": np.arange(len(ids))})
    numbered = rows.join(place.rename({"ID": "winner", "at": "i"}), on="winner").join(
        place.rename({"ID": "loser", "at": "j"}), on="loser"
    )
    i, j = numbered["i"].to_numpy(), numbered["j"].to_numpy()
    n = len(ids)
    won: Any
    if n > WITHOUT_SCIPY:
        from scipy.sparse import csr_array

        won = csr_array((np.ones(len(i)), (i, j)), shape=(n, n))
    else:
        won = np.bincount(i * n + j, minlength=n * n).reshape(n, n)
    beats = (won - won.T > 0).astype(np.int64)
    met = beats + beats.T
    circular = int(((beats @ beats) * beats.T).sum()) // 3
    decided = int(((met @ met) * met).sum()) // 6
    return circular, decided
