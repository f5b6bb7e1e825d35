"""Our sampler against nutpie (NUTS in Rust): the same posterior from two programs that share no line of code.

``make validate`` runs it, in an environment of its own (``benchmarks/nutpie.txt``), and fails when the two differ by
more than Monte-Carlo error.

Twelve cases of the document's model: the variants btl, btl_e, btl_b and btl_e_b on three designs (who meets whom) of 40
items and 600 comparisons; and the same twelve (``+learned``) with our own: the spread is learned, ``tau ~
half-normal(2.5)``, and a pair asked n times counts as ``1 + (n - 1) / 2`` answers. The designs: ``random``, ``near``
(neighbours in true ability) and ``adaptive``, a run of the engine with its default selector and a judge of the same
truth, kept in the golden file. nutpie gets the model as it is written down, ``theta_raw ~ N(0, 1)``, ``logit(eps)`` and
``log(tau)`` with their Jacobians, and ``b``, in a Numba function of this file; nothing of ``pairscale`` is in it. An
adaptive design chooses by the results so far, which are in the likelihood; ``near`` chooses neighbours by the truth,
which is not, so eps must explain why nobody is far apart: its posterior is near 0.43, and the truth 0.08. Here, where
two samplers have to find the same posterior, that does not matter.
Printed per case:

- z of every parameter's posterior mean, (ours - nutpie) / combined Monte-Carlo standard error: mean, sd, largest |z|;
  the parameters are correlated, so the spread of z is held against ``dof`` degrees of freedom, not their number;
- the ratio of the posterior standard deviations, ours / nutpie, and the sd of its z;
- largest R-hat, divergences, smallest bulk ESS, smallest ESS of the squares (what a standard deviation is worth), and
  smallest bulk ESS a CPU second, of both. CPU time is that of the sampling call, all threads, warm-up included, after
  compilation; ours includes its search for the mode and its diagnostics, nutpie's the conversion of its draws and a
  call through Python for each gradient, which counts at 40 items and hardly at 1,000.

Monte-Carlo errors, R-hat and ESS of both come from arviz-stats. ``--record`` writes nutpie's figures, and the adaptive
design, to ``tests/golden/nutpie_posteriors.json``, which ``tests/models/test_bayes_parity.py`` reads. ``--large``
compares speed at 1,000 items and 10,000 comparisons instead.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "nutpie_posteriors.json"
VARIANTS = ("btl", "btl_e", "btl_b", "btl_e_b")
SEEDS = {"random": 20261, "near": 20262, "adaptive": 20263}
LEARNED = "+learned"
CASES = [(variant + kind, design) for kind in ("", LEARNED) for design in SEEDS for variant in VARIANTS]
RHO = 0.5  # the excess agreement of repeats where the spread is learned
CHANCE = 1e-4 / len(CASES)  # that a right sampler fails any one of the bounds, somewhere among the cases
N_ITEMS, N_COMPARISONS = 40, 600
TRUTH = {"sd": 1.0, "eps": 0.08, "b": 0.25}
RECIPE = (
    "rng = default_rng(seed); theta = sd * rng.normal(size=n); first = rng.integers(0, n, m); "
    "random: second = (first + rng.integers(1, n, m)) % n; "
    "near: with the items in the order of theta, first at place p, second at place p + s, s = rng.integers(1, 4, m) "
    "times -1 where rng.random(m) < 0.5, times -1 again where p + s is no place; "
    "first wins where rng.random(m) < (1 - eps) / (1 + exp(theta[second] - theta[first] - b)) + eps / 2"
)


# The data: NumPy only


def make_data(
    design: str, n_items: int = N_ITEMS, n_comparisons: int = N_COMPARISONS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Who stood first, who second, and whether the first won; see ``RECIPE``."""
    if design == "adaptive":
        kept = json.loads(GOLDEN.read_text())["data"]["adaptive"]
        return np.array(kept["first"]), np.array(kept["second"]), np.array(kept["first_won"], dtype=bool)
    rng = np.random.default_rng(SEEDS[design])
    theta = TRUTH["sd"] * rng.normal(size=n_items)
    first = rng.integers(0, n_items, n_comparisons)
    if design == "random":
        second = (first + rng.integers(1, n_items, n_comparisons)) % n_items
    else:
        step = rng.integers(1, 4, n_comparisons) * np.where(rng.random(n_comparisons) < 0.5, -1, 1)
        there = (first + step >= 0) & (first + step < n_items)
        order = np.argsort(theta)
        first, second = order[first], order[first + np.where(there, step, -step)]
    chance = (1 - TRUTH["eps"]) / (1 + np.exp(theta[second] - theta[first] - TRUTH["b"])) + TRUTH["eps"] / 2
    return first, second, rng.random(n_comparisons) < chance


def adaptive_data() -> dict[str, list[int]]:
    """A run of the engine, to be kept: what it chooses may change with every version."""
    import polars as pl

    import pairscale as ps

    names = [f"S{n:05d}" for n in range(N_ITEMS)]
    theta = TRUTH["sd"] * np.random.default_rng(SEEDS["adaptive"]).normal(size=N_ITEMS)
    judge = ps.SimulatedJudge(dict(zip(names, theta, strict=True)), bias=TRUTH["b"], lapse=TRUTH["eps"], seed=1)
    result = ps.adaptive_rank(
        pl.DataFrame({"ID": names, "text": names}), judge=judge, n_steps=N_COMPARISONS, seed=1, progress="none"
    )
    rows = result.logs["step_log"].filter(pl.col("Y").is_not_null()).sort("step_id")
    return {
        "first": (rows["A"] - 1).to_list(),
        "second": (rows["B"] - 1).to_list(),
        "first_won": rows["Y"].cast(pl.Int8).to_list(),
    }


def digest(first: np.ndarray, second: np.ndarray, won: np.ndarray) -> str:
    """So that recorded figures are never compared with those of other data."""
    return hashlib.sha256(np.stack([first, second, won]).astype("<i8").tobytes()).hexdigest()[:16]


def parameter_names(variant: str, n_items: int) -> list[str]:
    lapse, position, learned = parts_of(variant)
    others = [name for name, there in (("eps", lapse), ("b", position), ("tau", learned)) if there]
    return [f"theta{n}" for n in range(n_items)] + others


def parts_of(variant: str) -> tuple[bool, bool, bool]:
    """Whether there are lapses, a position effect, and a learned spread."""
    base = variant.removesuffix(LEARNED)
    return "_e" in base, base.endswith("_b"), base != variant


# The two samplers: draws of shape (chains, draws, parameters), and the CPU seconds they took


def ours(
    variant: str, data: tuple[np.ndarray, ...], n_items: int, *, draws: int, warmup: int = 200, seed: int = 1
) -> tuple[np.ndarray, int, float]:
    import polars as pl

    from pairscale.models.bayes.fit import fit_btl
    from pairscale.models.bayes.settings import MCMCSettings

    first, second, won = data
    names = pl.Series([f"S{n:05d}" for n in range(n_items)])
    columns = {"ID1": first, "ID2": second, "better_id": np.where(won, first, second)}
    rows = pl.DataFrame({name: names.gather(values) for name, values in columns.items()})
    settings = MCMCSettings(chains=4, iter_warmup=warmup, iter_sampling=draws, extend=1)
    cpu = time.process_time()
    own: dict[str, Any] = {"prior_sd": "learned", "repeats": RHO} if variant.endswith(LEARNED) else {}
    fit = fit_btl(rows, names.to_list(), variant.removesuffix(LEARNED), settings, seed, **own)  # type: ignore[arg-type]
    cpu = time.process_time() - cpu
    columns = (fit.posterior.epsilon, fit.posterior.b, fit.prior_sd if own else None)
    others = [column[:, None] for column in columns if column is not None]
    flat = np.hstack([fit.posterior.theta, *others])  # row r is draw r // chains of chain r % chains
    return flat.reshape(draws, 4, -1).transpose(1, 0, 2), fit.diagnostics.divergences, cpu


def _kernel() -> Any:
    """The log density of (theta_raw, logit eps, b, log tau) and its gradient, one ordered pair after the other."""
    import math

    from numba import njit

    @njit(nogil=True, error_model="numpy")  # far out the value is not finite, which nutpie takes as a divergence
    def density(x, first, second, won, lost, n, lapse, position, learned):  # type: ignore[no-untyped-def] # pragma: no cover
        gradient = np.zeros(x.size)
        total = 0.0
        for i in range(n):
            total -= 0.5 * x[i] * x[i]
            gradient[i] = -x[i]
        eps = 1.0 / (1.0 + math.exp(-x[n])) if lapse else 0.0
        at_b = n + 1 if lapse else n
        b = x[at_b] if position else 0.0
        at_tau = at_b + 1 if position else at_b
        tau = math.exp(x[at_tau]) if learned else 1.0
        in_eps, in_b, in_tau = 0.0, 0.0, 0.0
        for k in range(first.size):
            apart = x[first[k]] - x[second[k]]
            d = tau * apart + b
            small = math.exp(-abs(d))
            s, r = (1.0, small) if d >= 0 else (small, 1.0)
            s, r = s / (1.0 + small), r / (1.0 + small)
            if lapse:
                p = (1.0 - eps) * s + 0.5 * eps
                q = (1.0 - eps) * r + 0.5 * eps
                total += won[k] * math.log(p) + lost[k] * math.log(q)
                in_p = won[k] / p - lost[k] / q
                slope = in_p * (1.0 - eps) * s * r
                in_eps += in_p * (0.5 - s)
            else:
                log_s = min(d, 0.0) - math.log1p(small)
                total += won[k] * log_s + lost[k] * (log_s - d)
                slope = won[k] - (won[k] + lost[k]) * s
            gradient[first[k]] += slope * tau
            gradient[second[k]] -= slope * tau
            in_b += slope
            in_tau += slope * apart
        if lapse:  # eps ~ Beta(2, 20): eps (1 - eps)^19, and the Jacobian eps (1 - eps) of its logit
            total += 2.0 * math.log(eps) + 20.0 * math.log(1.0 - eps)
            gradient[n] = in_eps * eps * (1.0 - eps) + 2.0 * (1.0 - eps) - 20.0 * eps
        if position:
            total -= 0.5 * (b / 0.3) ** 2
            gradient[at_b] = in_b - b / 0.09
        if learned:  # tau ~ half-normal(2.5), and the Jacobian tau of its logarithm
            total += x[at_tau] - 0.5 * (tau / 2.5) ** 2
            gradient[at_tau] = in_tau * tau + 1.0 - (tau / 2.5) ** 2
        return total, gradient

    return density


_compiled: list[Any] = []


def answers_counted(one: np.ndarray, two: np.ndarray, times: np.ndarray, n_items: int) -> np.ndarray:
    """What each answer about an ordered pair counts, when repeats of a pair, in either order, count by ``RHO``."""
    either = np.minimum(one, two) * n_items + np.maximum(one, two)
    asked = {pair: times[either == pair].sum() for pair in np.unique(either)}
    return np.array([(1 + (asked[pair] - 1) * (1 - RHO)) / asked[pair] for pair in either])


def nutpie_model(variant: str, data: tuple[np.ndarray, ...], n_items: int) -> tuple[Any, Any]:
    """nutpie's model, and its log density as a function of one position; compiled when this returns."""
    from nutpie.compiled_pyfunc import from_pyfunc

    if not _compiled:
        _compiled.append(_kernel())
    kernel = _compiled[0]
    lapse, position, learned = parts_of(variant)
    first, second, outcome = data
    pairs, at = np.unique(first * n_items + second, return_inverse=True)
    one, two = pairs // n_items, pairs % n_items
    won = np.bincount(at, outcome, len(pairs))
    lost = np.bincount(at, ~outcome, len(pairs))
    if learned:
        weight = answers_counted(one, two, won + lost, n_items)
        won, lost = won * weight, lost * weight
    size = n_items + lapse + position + learned

    def density(x: np.ndarray) -> tuple[float, np.ndarray]:
        return kernel(x, one, two, won, lost, n_items, lapse, position, learned)

    def expand(x: np.ndarray) -> dict[str, np.ndarray]:
        drawn = x.copy()
        if learned:
            drawn[-1] = np.exp(x[-1])
            drawn[:n_items] *= drawn[-1]
        drawn[:n_items] -= drawn[:n_items].mean()
        if lapse:
            drawn[n_items] = 1 / (1 + np.exp(-x[n_items]))
        return {"x": drawn}

    density(np.zeros(size))
    model = from_pyfunc(size, lambda: density, lambda *_seeds: expand, [np.dtype("float64")], [(size,)], ["x"])
    return model, density


def theirs(
    variant: str, data: tuple[np.ndarray, ...], n_items: int, *, draws: int, tune: int, seed: int = 1, **options: Any
) -> tuple[np.ndarray, int, float]:
    import nutpie

    model, _ = nutpie_model(variant, data, n_items)
    settings = {"chains": 4, "cores": 2, "progress_bar": False, "save_warmup": False, **options}
    cpu = time.process_time()
    trace = nutpie.sample(model, draws=draws, tune=tune, seed=seed, **settings)
    cpu = time.process_time() - cpu
    return np.asarray(trace.posterior["x"]), int(trace.sample_stats["diverging"].sum()), cpu


# The figures


def figures(draws: np.ndarray) -> dict[str, np.ndarray]:
    """Mean and sd of each parameter, and the Monte-Carlo standard errors of both.

    That of the sd rests on the squares' own ESS: these mix differently from the values, which a trajectory of a quarter
    turn or more makes alternate around their mean.
    """
    from arviz_stats.base import array_stats

    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1), ddof=1)
    squares = (draws - mean) ** 2
    ess, ess_squares = (
        np.asarray(array_stats.ess(values, chain_axis=0, draw_axis=1, method="mean")) for values in (draws, squares)
    )
    sd_mcse = squares.std(axis=(0, 1)) / (2 * sd * np.sqrt(ess_squares))
    return {"mean": mean, "sd": sd, "mcse": sd / np.sqrt(ess), "sd_mcse": sd_mcse, "ess_squares": ess_squares}


def compare(mine: dict[str, Any], other: dict[str, Any], correlation: np.ndarray) -> dict[str, Any]:
    """z of the means and of the (log) sds, and how many independent z those of the means are worth.

    The sum of squares of unit normals with correlation R has mean n and variance 2 |R|²; it is close to a chi-square of
    n² / |R|² degrees of freedom, stretched to the mean n (Satterthwaite).
    R here is the posterior's; the errors of a sampler gather in its slow directions and are correlated more. Over 40
    seeds of ours (btl_e, near) z² was 1.00 on average, so the standard errors are right, but it spread like 17 degrees
    of freedom where this says 34: ``dof`` can be twice too large, and ``p`` then too extreme.
    """
    from scipy.stats import chi2

    a, b = ({name: np.asarray(values) for name, values in one.items()} for one in (mine, other))
    z = (a["mean"] - b["mean"]) / np.hypot(a["mcse"], b["mcse"])
    ratio = a["sd"] / b["sd"]
    z_sd = np.log(ratio) / np.hypot(a["sd_mcse"] / a["sd"], b["sd_mcse"] / b["sd"])
    dof = len(z) ** 2 / float((correlation**2).sum())
    return {"z": z, "ratio": ratio, "z_sd": z_sd, "dof": dof, "p": float(chi2(dof).sf(dof * np.mean(z**2)))}


def failures(found: dict[str, Any]) -> list[str]:
    """What is more than Monte-Carlo error can do."""
    from scipy import stats

    dof = found["dof"] / 2  # halved: see compare
    largest = stats.norm.isf(CHANCE / (2 * len(found["z"])))
    squares = dof * np.mean(found["z"] ** 2)
    low, high = stats.chi2(dof).ppf([CHANCE, 1 - CHANCE])
    bounds = {
        "largest z of the means": np.abs(found["z"]).max() < largest,
        "spread of z of the means": low < squares < high,
        "largest z of the sds": np.abs(found["z_sd"]).max() < largest,
        "sds on the whole": abs(np.median(found["ratio"]) - 1) < 0.03,
    }
    return [name for name, holds in bounds.items() if not holds]


def correlations(draws: np.ndarray) -> np.ndarray:
    return np.corrcoef(draws.reshape(-1, draws.shape[2]), rowvar=False)


def quality(draws: np.ndarray, divergences: int, cpu: float) -> dict[str, float]:
    from arviz_stats.base import array_stats

    ess = float(np.min(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="bulk")))
    rhat = float(np.max(array_stats.rhat(draws, chain_axis=0, draw_axis=1, method="rank")))
    return {
        "max_rhat": round(rhat, 4),
        "divergences": divergences,
        "min_ess": round(ess),
        "min_ess_squares": round(float(figures(draws)["ess_squares"].min())),
        "cpu_s": round(cpu, 2),
        "ess_per_cpu_s": round(ess / cpu),
    }


def case_row(variant: str, design: str, found: dict[str, Any]) -> dict[str, Any]:
    z, ratio, z_sd = found["z"], found["ratio"], found["z_sd"]
    return {
        "variant": variant,
        "design": design,
        "z_mean": round(float(z.mean()), 2),
        "z_sd": round(float(z.std(ddof=1)), 2),
        "max|z|": round(float(np.abs(z).max()), 2),
        "dof": round(found["dof"], 1),
        "p": round(found["p"], 3),
        "sd_ratio": f"{ratio.min():.3f}..{np.median(ratio):.3f}..{ratio.max():.3f}",
        "sd_of_z(sd)": round(float(z_sd.std(ddof=1)), 2),
        "max|z(sd)|": round(float(np.abs(z_sd).max()), 2),
    }


# What it prints and writes


def show(rows: list[dict[str, Any]]) -> None:
    print("| " + " | ".join(rows[0]) + " |\n|" + " --- |" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")
    print(flush=True)


def draws_for(variant: str, draws: int) -> int:
    """How many to draw: a learned spread is common to all scores, so their sds err together and need more draws."""
    return draws * (4 if variant.endswith(LEARNED) else 1)


def parity() -> tuple[dict[str, Any], list[str]]:
    """nutpie's figures by case, and what differs."""
    agreement, speed, wrong = [], [], []
    cases: dict[str, Any] = {}
    for variant, design in CASES:
        data = make_data(design)
        draws = draws_for(variant, 2000)
        other = theirs(variant, data, N_ITEMS, draws=draws, tune=1000)
        mine = ours(variant, data, N_ITEMS, draws=draws)
        known = figures(other[0])
        found = compare(figures(mine[0]), known, correlations(other[0]))
        agreement.append(case_row(variant, design, found))
        wrong += [f"{variant} {design}: {name}" for name in failures(found)]
        for engine, run in (("nutpie", other), ("ours", mine)):
            speed.append({"variant": variant, "design": design, "engine": engine, **quality(*run)})
        cases[f"{variant} {design}"] = {
            name: [float(f"{value:.6g}") for value in known[name]] for name in ("mean", "sd", "mcse", "sd_mcse")
        }
    show(agreement)
    show(speed)
    return cases, wrong


def write(content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=1)
    text = re.sub(r"\[[^\[\]]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text)  # a list is a line
    GOLDEN.write_text(text + "\n")


def record() -> list[str]:
    """Keep nutpie's figures, and an adaptive design if there is none yet."""
    import nutpie

    kept = json.loads(GOLDEN.read_text())["data"]["adaptive"] if GOLDEN.exists() else adaptive_data()

    data: dict[str, Any] = {
        "n": N_ITEMS,
        "m": N_COMPARISONS,
        "seeds": SEEDS,
        **TRUTH,
        "recipe": RECIPE,
        "adaptive": kept,
    }
    write({"data": data})
    cases, wrong = parity()
    about = {
        "about": "posterior figures by nutpie, written by benchmarks/nutpie_parity.py; parameters: theta (centred) of "
        "items 0 to 39, then eps, b and tau, as the variant has them",
        "nutpie": nutpie.__version__,
        "date": datetime.now(UTC).date().isoformat(),
        "sampling": "4 chains x (1000 + 2000; 8000 with a learned spread), seed 1, default settings",
    }
    write(
        {**about, "data": data | {"sha256": {design: digest(*make_data(design)) for design in SEEDS}}, "cases": cases}
    )
    return wrong


def large(n_items: int = 1000, n_comparisons: int = 10_000) -> None:
    """Speed at a larger size, all in one run."""
    data = make_data("random", n_items, n_comparisons)
    rows = []
    reference = None
    runs = {
        "nutpie 4 x (1000 + 1000)": lambda: theirs("btl_e_b", data, n_items, draws=1000, tune=1000),
        "nutpie 4 x (1000 + 1000), low-rank mass": lambda: theirs(
            "btl_e_b", data, n_items, draws=1000, tune=1000, low_rank_modified_mass_matrix=True
        ),
        "nutpie 4 x (400 + 1000)": lambda: theirs("btl_e_b", data, n_items, draws=1000, tune=400),
        "ours 4 x (200 + 1000)": lambda: ours("btl_e_b", data, n_items, draws=1000),
    }
    for name, run in runs.items():
        draws, divergences, cpu = run()
        row = {"engine": name, **quality(draws, divergences, cpu)}
        if reference is None:
            reference = figures(draws)
        else:  # the sd of z, and the sd ratio, against the first
            found = compare(figures(draws), reference, correlations(draws))
            row |= {"z_sd": round(float(found["z"].std()), 2), "sd_ratio": round(float(np.median(found["ratio"])), 3)}
        print(row, flush=True)
        rows.append({**row, "z_sd": row.get("z_sd", ""), "sd_ratio": row.get("sd_ratio", "")})
    show(rows)


def main(arguments: list[str]) -> None:
    try:
        import arviz_stats  # noqa: F401
        import numba  # noqa: F401
        import nutpie
    except ImportError as missing:
        sys.exit(f"{missing.name} is missing; `make validate` makes an environment that has it")
    if "--large" in arguments:
        return large()
    wrong = record() if "--record" in arguments else parity()[1]
    if wrong:
        sys.exit("our sampler and nutpie differ: " + "; ".join(wrong))
    print(f"{len(CASES)} posteriors are those of nutpie {nutpie.__version__}, up to Monte-Carlo error")
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
