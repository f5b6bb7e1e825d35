"""Does the validity hold what it says? Simulated judges and people, and halves of real sessions.

``python -m validation.trust`` prints a row per cell. ``--sessions FOLDER`` adds real sessions, a file each with columns
``judge candidate_chosen candidate_not_chosen``. Figures go to docs/validation.md by hand.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl
from joblib import Parallel, delayed
from scipy.stats import spearmanr
from tests.validity.test_scale import world

from pairscale.core.notices import without_notices
from pairscale.models.bayes.fit import fit_btl
from pairscale.models.bayes.posterior import Posterior
from pairscale.validity.pairs import next_pairs
from pairscale.validity.scale import JudgeScale, PeopleAnswers, people_scale

FIRST_SEED = 1000  # seeds below this one were used while the model was made
CELLS = (
    # texts, labels, true correlation, the judge's reliability, slopes of people
    (60, 50, 0.80, 0.90, (1.0,)),
    (60, 100, 0.80, 0.90, (1.0,)),
    (60, 200, 0.80, 0.90, (1.0,)),
    (60, 100, 0.50, 0.90, (1.0,)),
    (60, 100, 0.95, 0.90, (1.0,)),
    (60, 100, 0.80, 0.75, (1.0,)),
    (60, 150, 0.80, 0.90, (0.5, 1.0, 1.5)),
    (25, 100, 0.80, 0.90, (1.0,)),
    (200, 200, 0.80, 0.90, (1.0,)),
)
REPEATING = ((60, 100, 0.80), (60, 200, 0.50))
"""Texts, labels and true correlation, of a judge that gives the same pair always the same answer."""
_PER_TEXT = 8  # answers of that judge
CHECKED = ((60, 100, 0.80), (30, 60, 0.80))
"""The same of a judge that was asked about the labelled pairs alone."""
COLUMNS = ("covers", "width", "bias", "people", "gain", "cpu_s")
_LABELS = 100
_BATCH = 20


def cell_row(n: int, labels: int, r: float, reliability: float, slopes: tuple[float, ...], seed: int) -> list[float]:
    """One simulated set: what was claimed beside what is true."""
    return figures_of(*world(n, labels, r, reliability, seed, slopes), seed)


def repeating_row(n: int, labels: int, r: float, seed: int) -> list[float]:
    """The same of a judge whose scale comes from its answers to random pairs, some of them asked again."""
    z, h, judge, answers = world(n, labels, r, 0.9, seed)
    rng = np.random.default_rng((seed, 31))
    first = rng.integers(0, n, _PER_TEXT * n)
    second = (first + rng.integers(1, n, _PER_TEXT * n)) % n
    fixed = np.triu(rng.random((n, n)) < 1 / (1 + np.exp(z[None, :] - z[:, None])), 1)
    low, high = np.minimum(first, second), np.maximum(first, second)
    winner = np.where(fixed[low, high], low, high)
    ids = list(judge.ids)
    rows = pl.DataFrame(
        {name: [ids[i] for i in of] for name, of in (("ID1", first), ("ID2", second), ("better_id", winner))}
    )
    return figures_of(z, h, JudgeScale(judge.ids, _posterior(rows, ids).theta), answers, seed)


def checked_row(n: int, labels: int, r: float, seed: int) -> list[float]:
    """The same of a judge that was asked about the labelled pairs alone, in both orders (``check_judge``)."""
    z, h, judge, answers = world(n, labels, r, 0.9, seed)
    rng = np.random.default_rng((seed, 32))
    asked = np.unique(np.concatenate([answers.first, answers.second]))
    first = np.concatenate([answers.first, answers.second])
    second = np.concatenate([answers.second, answers.first])
    winner = np.where(rng.random(2 * labels) < 1 / (1 + np.exp(z[second] - z[first])), first, second)
    ids = [judge.ids[number] for number in asked]
    rows = pl.DataFrame(
        {name: [judge.ids[i] for i in of] for name, of in (("ID1", first), ("ID2", second), ("better_id", winner))}
    )
    of_asked = PeopleAnswers(
        np.searchsorted(asked, answers.first), np.searchsorted(asked, answers.second), answers.result, answers.person, 1
    )
    return figures_of(z[asked], h[asked], JudgeScale(tuple(ids), _posterior(rows, ids).theta), of_asked, seed)


def figures_of(z: np.ndarray, h: np.ndarray, judge: JudgeScale, answers: PeopleAnswers, seed: int) -> list[float]:
    """What is claimed of one set beside what is true, in the order of COLUMNS."""
    started = time.process_time()
    scale = people_scale(judge, answers, seed)
    seconds = time.process_time() - started
    true = float(np.corrcoef(z, h)[0, 1])
    lower, upper = scale.interval()
    ends = np.quantile(scale.people, [0.025, 0.975], axis=0)
    centred = h - h.mean()
    gain = spearmanr(scale.people.mean(axis=0), h)[0] - spearmanr(judge.mean, h)[0]
    covered = float(np.mean((ends[0] <= centred) & (centred <= ends[1])))
    return [lower <= true <= upper, upper - lower, float(np.median(scale.validity)) - true, covered, gain, seconds]


def chosen_width(n: int, labels: int, r: float, seed: int) -> float:
    """The width of the interval when the pairs are chosen in batches of 20."""
    _, h, judge, empty = world(n, 0, r, 0.9, seed)
    rng = np.random.default_rng((seed, 77))
    first: list[int] = []
    second: list[int] = []
    result: list[float] = []
    while len(first) < labels:
        answers = PeopleAnswers(
            np.array(first, dtype=np.int64),
            np.array(second, dtype=np.int64),
            np.array(result),
            np.zeros(len(first), int),
            1,
        )
        known = {(min(i, j), max(i, j)) for i, j in zip(first, second, strict=True)}
        for i, j in next_pairs(people_scale(judge, answers, seed), known, _BATCH, seed + len(first)):
            first.append(i)
            second.append(j)
            result.append(float(rng.random() < 1 / (1 + np.exp(h[j] - h[i]))))
    answers = PeopleAnswers(
        np.array(first), np.array(second), np.array(result), np.zeros(len(first), int), empty.n_people
    )
    lower, upper = people_scale(judge, answers, seed).interval()
    return upper - lower


def session_rows(path: Path, halvings: int) -> list[bool]:
    """Whether the interval holds the disattenuated correlation of two halves of the judges of a session."""
    data = pl.read_csv(path, infer_schema_length=0)
    chosen, left = "candidate_chosen", "candidate_not_chosen"
    ids = sorted(set(data[chosen]) | set(data[left]))
    judges = data["judge"].unique().sort().to_list()
    if len(judges) < 8 or len(ids) < 15 or data.height < 400:
        return []
    rows = []
    for halving in range(halvings):
        rng = np.random.default_rng((halving, len(ids), data.height))
        half = set(rng.permutation(judges)[: len(judges) // 2])
        ours = data.filter(pl.col("judge").is_in(half))
        theirs = data.filter(~pl.col("judge").is_in(half))
        fits = [_posterior(part.select(ID1=chosen, ID2=left, better_id=chosen), ids) for part in (ours, theirs)]
        together = np.corrcoef(*(fit.theta.mean(axis=0) for fit in fits))[0, 1]
        true = min(1.0, together / np.sqrt(np.prod([_reliability(fit) for fit in fits])))
        labels = theirs[rng.permutation(theirs.height)[:_LABELS]]
        place = {name: number for number, name in enumerate(ids)}
        size = labels.height
        answers = PeopleAnswers(
            np.array([place[name] for name in labels[chosen]]),
            np.array([place[name] for name in labels[left]]),
            np.ones(size),
            np.zeros(size, int),
            1,
            order_known=False,
        )
        lower, upper = people_scale(JudgeScale(tuple(ids), fits[0].theta), answers, halving).interval()
        rows.append(round(lower, 2) <= round(true, 2) <= round(upper, 2))
    return rows


def _posterior(rows: pl.DataFrame, ids: list[str]) -> Posterior:
    with without_notices():
        return fit_btl(rows, ids, "btl_e", seed=1, prior_sd="learned", repeats="learned", approximate=True).posterior


def _reliability(posterior: Posterior) -> float:
    error = float(posterior.theta.var(axis=0).mean())
    spread = float(posterior.theta.mean(axis=0).var())
    return spread / (spread + error)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200, help="simulated sets a cell")
    parser.add_argument("--chosen", type=int, default=100, help="sets for chosen pairs")
    parser.add_argument("--sessions", type=Path, help="folder of real sessions")
    parser.add_argument("--halvings", type=int, default=10, help="of each session")
    given = parser.parse_args()
    kinds = [("random errors", cell_row, cell) for cell in CELLS]
    kinds += [("repeats itself", repeating_row, cell) for cell in REPEATING]
    kinds += [("labelled pairs", checked_row, cell) for cell in CHECKED]
    for name, row_of, cell in kinds:
        rows = Parallel(n_jobs=-1)(delayed(row_of)(*cell, FIRST_SEED + number) for number in range(given.sets))
        figures = np.array(rows, dtype=float)
        means = figures.mean(axis=0)
        means[1] = np.median(figures[:, 1])
        shown = " ".join(f"{column} {value:.3f}" for column, value in zip(COLUMNS, means, strict=True))
        print(name, *cell, shown, flush=True)
    for labels in (80, 90, 100):
        seeds = [FIRST_SEED + number for number in range(given.chosen)]
        widths = Parallel(n_jobs=-1)(delayed(chosen_width)(60, labels, 0.8, seed) for seed in seeds)
        print(f"{labels} chosen labels at .80: median width {np.median(widths):.3f}", flush=True)
    if given.sessions is not None:
        held = []
        for path in sorted(given.sessions.glob("*.csv")):
            rows = session_rows(path, given.halvings)
            held += rows
            if rows:
                print(f"{path.stem}: {sum(rows)} of {len(rows)}", flush=True)
        print(f"all sessions: {sum(held)} of {len(held)}")


if __name__ == "__main__":
    main()
