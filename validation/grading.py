"""Do marks and levels hold what they say? Simulated judges, known texts and levels.

``python -m validation.grading`` prints a row per cell. Figures go to docs/validation.md by hand.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl
from joblib import Parallel, delayed

from pairscale.core.notices import without_notices
from pairscale.grading.levels import cut_at_marks, cut_at_quotas, placed
from pairscale.grading.marks import KnownMarks, drift_threshold, mark_scale
from pairscale.models.bayes.fit import fit_btl
from pairscale.validity.scale import JudgeScale

FIRST_SEED = 1000  # seeds below this one were used while the model was made
SPREAD = 1.5
PER_TEXT = {False: 15, True: 19}  # comparisons of a text are twice as many; the reliability is about .9
LEVELS = [75.0, 60.0, 45.0]
QUOTA = [0.15, 0.35, 0.35, 0.15]
KNOWN = (5, 10, 20)
SDS = (0.0, 3.0)
COLUMNS = ("covers", "claimed", "true", "again", "other run", "alarm", "moved found")


def world(n: int, repeats_itself: bool, seed: int, run: int = 0) -> tuple[np.ndarray, JudgeScale]:
    """True scores, and the posterior of a run of random pairs."""
    theta = np.random.default_rng((seed, n)).normal(0, SPREAD, n)
    rng = np.random.default_rng((seed, n, run, 1))
    first = rng.integers(0, n, PER_TEXT[repeats_itself] * n)
    second = (first + rng.integers(1, n, len(first))) % n
    low, high = np.minimum(first, second), np.maximum(first, second)
    draws = rng.random(len(first))
    if repeats_itself:  # the same pair has always the same answer
        draws = rng.random((n, n))[low, high]
    winner = np.where(draws < 1 / (1 + np.exp(theta[high] - theta[low])), low, high)
    ids = [f"t{number}" for number in range(n)]
    columns = (("ID1", first), ("ID2", second), ("better_id", winner))
    rows = pl.DataFrame({name: [ids[i] for i in of] for name, of in columns})
    with without_notices():
        fit = fit_btl(rows, ids, "btl_e", seed=1, prior_sd="learned", repeats="learned", approximate=True)
    return theta, JudgeScale(tuple(ids), fit.posterior.theta)


def set_rows(
    n: int, repeats_itself: bool, seed: int, numbers: list[int], new_line: bool
) -> list[tuple[tuple, list[float], np.ndarray]]:
    """One simulated set: per number of known texts and their error, what was claimed beside what is true."""
    theta, judge = world(n, repeats_itself, seed)
    _, second = world(n, repeats_itself, seed, run=1)
    intercept = 55.0
    slope = 10.0
    if new_line:
        rng = np.random.default_rng((seed, n, 2))
        intercept = rng.normal(55, 20)
        slope = 10 * np.exp(rng.normal(0, 0.5))
    true = intercept + slope * theta
    rows = []
    for n_known in numbers:
        for sd in SDS:
            rng = np.random.default_rng((seed, n_known, int(sd)))
            texts = rng.choice(n, n_known, replace=False)
            others = np.setdiff1d(np.arange(n), texts)
            errors = sd**2 * np.eye(n_known)
            marks = true[texts] + rng.normal(0, sd, n_known)
            scale = mark_scale(judge, KnownMarks(texts, marks, errors), seed)
            lower, upper = np.quantile(scale.marks, [0.025, 0.975], axis=0)
            covers = ((lower <= true) & (true <= upper))[others].mean()
            limit = drift_threshold(n_known)
            names = list("ABCD")
            grades = placed(cut_at_marks(names, LEVELS, scale.marks))
            true_level = sum((true < cut).astype(int) for cut in LEVELS)
            again = mark_scale(second, KnownMarks(texts, marks, errors), seed)
            other_run = placed(cut_at_marks(names, LEVELS, again.marks)).level
            moved = marks.copy()
            at = rng.integers(n_known)
            moved[at] += slope * SPREAD * SPREAD * rng.choice([-1, 1])
            found = abs(mark_scale(judge, KnownMarks(texts, moved, errors), seed).z[at]) > limit
            row = [covers, 1 - grades.misgrade[others].mean(), (grades.level == true_level)[others].mean()]
            row += [grades.consistency, (grades.level == other_run).mean(), (np.abs(scale.z) > limit).any(), found]
            hits = np.arange(4) == true_level[others, None]
            cases = np.stack([grades.probability[others].ravel(), hits.ravel()])
            rows.append(((n, repeats_itself, n_known, sd), row, cases))
    grades = placed(cut_at_quotas(list("ABCD"), QUOTA, judge.draws))
    true_level = placed(cut_at_quotas(list("ABCD"), QUOTA, theta[None, :])).level
    cases = np.stack([grades.probability.ravel(), (np.arange(4) == true_level[:, None]).ravel()])
    row = [np.nan, 1 - grades.misgrade.mean(), (grades.level == true_level).mean(), *[np.nan] * 4]
    rows.append(((n, repeats_itself, "quota", 0.0), row, cases))
    return rows


def tenths(cases: np.ndarray) -> list[tuple[int, float]]:
    """Per tenth of the stated probability with 1,000 cases: how many, and how far off they are."""
    stated, hit = cases
    groups = np.minimum((stated * 10).astype(int), 9)
    found = []
    for group in range(10):
        of = groups == group
        if of.sum() >= 1000:
            found.append((int(of.sum()), float(hit[of].mean() - stated[of].mean())))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200, help="simulated sets a cell")
    parser.add_argument("--texts", type=int, nargs="+", default=[60, 100], help="numbers of texts")
    parser.add_argument("--jobs", type=int, default=-1, help="processes")
    parser.add_argument("--known", type=int, nargs="+", default=list(KNOWN), help="numbers of known texts")
    parser.add_argument("--new-lines", action="store_true", help="draw how marks follow scores anew in every set")
    given = parser.parse_args()
    all_cases = []
    for n in given.texts:
        for repeats_itself in (False, True):
            seeds = [FIRST_SEED + number for number in range(given.sets)]
            sets = Parallel(n_jobs=given.jobs)(
                delayed(set_rows)(n, repeats_itself, seed, given.known, given.new_lines) for seed in seeds
            )
            for cell in zip(*sets, strict=True):
                figures = np.mean([row for _, row, _ in cell], axis=0)
                shown = " ".join(f"{name} {value:.3f}" for name, value in zip(COLUMNS, figures, strict=True))
                cases = np.concatenate([cases for _, _, cases in cell], axis=1)
                all_cases.append(cases)
                worst = max((abs(off) for _, off in tenths(cases)), default=float("nan"))
                print(*cell[0][0], shown, f"worst tenth {worst:.3f}", flush=True)
    print("tenths of all:", [f"{off:+.3f}" for _, off in tenths(np.concatenate(all_cases, axis=1))])
    n = 2000
    rng = np.random.default_rng(1)
    theta = rng.normal(0, SPREAD, n)
    judge = JudgeScale(tuple(map(str, range(n))), theta + rng.normal(0, 0.5, (2000, n)))
    texts = rng.choice(n, 20, replace=False)
    started = time.process_time()
    scale = mark_scale(judge, KnownMarks(texts, 55 + 10 * theta[texts], np.zeros((20, 20))))
    placed(cut_at_marks(list("ABCD"), LEVELS, scale.marks))
    print(f"2,000 texts: {time.process_time() - started:.1f} s of CPU")


if __name__ == "__main__":
    main()
