"""Our densities of logits and of several judges against nutpie, as :mod:`benchmarks.nutpie_parity` has it for winners.

nutpie gets each model as it is written down in docs/models.md, in a Numba function of this file; nothing of
``pairscale`` is in it. Logits: 30 items, 300 answers, of which some are bounds (beyond 5), some are winners without a
probability, and repeats count half; with and without a position effect, with a fixed and with a learned spread. Several
judges: 30 items, 400 answers of judges with slopes 1.5, 1, 0.5 and 0, with and without position effects.

``make nutpie`` runs it, and fails when the two differ by more than Monte-Carlo error.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np

from benchmarks.nutpie_parity import case_row, compare, correlations, failures, figures, quality, show

N, M, RHO, CUT = 30, 300, 0.5, 5.0
SLOPES, M_JUDGES = (1.5, 1.0, 0.5, 0.0), 400
DRAWS, TUNE = 6_000, 1_000


def logit_data(seed: int = 20264) -> dict[str, np.ndarray]:
    """Who stood first, who second, the probability (missing in some rows) and the winner."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 2, N)
    first = rng.integers(0, N, M)
    second = (first + rng.integers(1, N, M)) % N
    again = rng.integers(0, M // 2, M // 10)
    first[-len(again) :], second[-len(again) :] = second[again], first[again]  # repeats, in the other order
    z = theta[first] - theta[second] + 0.3 + rng.standard_t(4, M)
    return {"first": first, "second": second, "z": z, "unknown": rng.random(M) < 0.15}


def judge_data(seed: int = 20265) -> dict[str, np.ndarray]:
    """Who stood first, who second, who judged, and whether the first won."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, 1, N), rng.normal(0, 0.3, len(SLOPES))
    first = rng.integers(0, N, M_JUDGES)
    second = (first + rng.integers(1, N, M_JUDGES)) % N
    judge = rng.integers(0, len(SLOPES), M_JUDGES)
    chance = 1 / (1 + np.exp(-np.array(SLOPES)[judge] * (theta[first] - theta[second]) - b[judge]))
    return {"first": first, "second": second, "judge": judge, "won": rng.random(M_JUDGES) < chance}


# Ours: draws of shape (chains, draws, parameters)


def our_logits(position: bool, learned: bool) -> tuple[np.ndarray, int, float]:
    import polars as pl

    from pairscale.models.bayes.fit import fit_btl
    from pairscale.models.bayes.settings import MCMCSettings

    data = logit_data()
    names = pl.Series([f"S{n:03d}" for n in range(N)])
    q = 1 / (1 + np.exp(-data["z"]))
    winner = np.where(data["z"] > 0, data["first"], data["second"])
    rows = pl.DataFrame(
        {"ID1": names.gather(data["first"]), "ID2": names.gather(data["second"]), "better_id": names.gather(winner)}
    ).with_columns(probability=pl.Series(np.where(data["unknown"], np.nan, q)).fill_nan(None))
    settings = MCMCSettings(chains=4, iter_warmup=500, iter_sampling=DRAWS, extend=1)
    cpu = time.process_time()
    variant, spread = "btl_b" if position else "btl", "learned" if learned else 2.0
    fit = fit_btl(rows, names.to_list(), variant, settings, 1, prior_sd=spread, repeats=RHO)  # type: ignore[arg-type]
    cpu = time.process_time() - cpu
    columns = (fit.posterior.b, fit.prior_sd, fit.error)
    return _by_chain([fit.posterior.theta, *(one[:, None] for one in columns if one is not None)], fit, cpu)


def our_judges(position: bool) -> tuple[np.ndarray, int, float]:
    import polars as pl

    from pairscale.models.bayes.fit import fit_btl
    from pairscale.models.bayes.settings import MCMCSettings

    data = judge_data()
    names = pl.Series([f"S{n:03d}" for n in range(N)])
    columns = {"ID1": data["first"], "ID2": data["second"]}
    columns["better_id"] = np.where(data["won"], data["first"], data["second"])
    rows = pl.DataFrame({name: names.gather(values) for name, values in columns.items()})
    rows = rows.with_columns(judge_id=pl.Series([f"j{one}" for one in data["judge"]]))
    settings = MCMCSettings(chains=4, iter_warmup=500, iter_sampling=DRAWS, extend=1)
    cpu = time.process_time()
    variant = "btl_b" if position else "btl"
    fit = fit_btl(rows, names.to_list(), variant, settings, 1, prior_sd="learned")
    cpu = time.process_time() - cpu
    return _by_chain([fit.posterior.theta, fit.prior_sd[:, None]], fit, cpu)


def _by_chain(parts: list[np.ndarray], fit: Any, cpu: float) -> tuple[np.ndarray, int, float]:
    flat = np.hstack(parts)  # row r is draw r // chains of chain r % chains
    return flat.reshape(-1, 4, flat.shape[1]).transpose(1, 0, 2), fit.diagnostics.divergences, cpu


# Theirs


def _logit_kernel() -> Any:
    from numba import njit

    @njit(nogil=True, error_model="numpy")
    def density(x, first, second, z, kind, times, n, position, learned):  # type: ignore[no-untyped-def] # pragma: no cover
        """Of (theta, b, log spread, log scale): Student's t with four degrees of freedom, or its tail."""
        gradient = np.zeros(x.size)
        at_b, at_t = n, n + (1 if position else 0)
        at_s = at_t + (1 if learned else 0)
        b = x[at_b] if position else 0.0
        t = x[at_t] if learned else math.log(2.0)
        s = x[at_s]
        scale, precision = math.exp(s), math.exp(-2.0 * t)
        total = -0.5 * s * s
        gradient[at_s] = -s
        for i in range(n):
            total -= 0.5 * precision * x[i] * x[i] + t
            gradient[i] = -precision * x[i]
            if learned:
                gradient[at_t] += precision * x[i] * x[i] - 1.0
        if learned:
            total -= 0.5 * (t - math.log(2.0)) ** 2
            gradient[at_t] -= t - math.log(2.0)
        if position:
            total -= 0.5 * b * b
            gradient[at_b] -= b
        for k in range(first.size):
            v = (z[k] - x[first[k]] + x[second[k]] - b) / scale
            if kind[k] == 0:  # the answer itself
                total += times[k] * (-2.5 * math.log1p(v * v / 4.0) - s)
                in_v = -5.0 * v / (4.0 + v * v)
                gradient[at_s] -= times[k]
            else:  # above z (kind 1) or below it (-1); the upper tail at w
                w = v if kind[k] > 0 else -v
                root = math.sqrt(4.0 + w * w)
                u = w / root
                upper = 0.5 - 0.75 * u + 0.25 * u * u * u
                if w > 0:  # without cancellation
                    small = 4.0 / (root * (root + w))
                    upper = small * small * (2.0 + u) / 4.0
                total += times[k] * math.log(upper)
                in_w = -0.375 * (1.0 + w * w / 4.0) ** -2.5 / upper
                in_v = in_w if kind[k] > 0 else -in_w
            pull = times[k] * in_v / scale
            gradient[first[k]] -= pull
            gradient[second[k]] += pull
            if position:
                gradient[at_b] -= pull
            gradient[at_s] -= times[k] * in_v * v
        return total, gradient

    return density


def _judge_kernel() -> Any:
    from numba import njit

    @njit(nogil=True, error_model="numpy")
    def density(x, first, second, judge, won, basis, n, position):  # type: ignore[no-untyped-def] # pragma: no cover
        """Of (eta, b of each judge, alpha, log m)."""
        judges = basis.shape[0]
        gradient = np.zeros(x.size)
        at_b = n
        at_alpha = n + (judges if position else 0)
        at_t = at_alpha + judges - 1
        m = math.exp(x[at_t])
        total = x[at_t] - 0.5 * (m / 2.5) ** 2
        gradient[at_t] = 1.0 - (m / 2.5) ** 2
        for i in range(n):
            total -= 0.5 * x[i] * x[i]
            gradient[i] = -x[i]
        for k in range(judges - 1):
            total -= 0.5 * (x[at_alpha + k] / 0.75) ** 2
            gradient[at_alpha + k] = -x[at_alpha + k] / 0.75**2
        slope = np.ones(judges)
        for j in range(judges):
            for k in range(judges - 1):
                slope[j] += basis[j, k] * x[at_alpha + k]
            if position:
                total -= 0.5 * (x[at_b + j] / 0.5) ** 2
                gradient[at_b + j] = -x[at_b + j] / 0.25
        for k in range(first.size):
            j = judge[k]
            apart = x[first[k]] - x[second[k]]
            logit = m * slope[j] * apart + (x[at_b + j] if position else 0.0)
            small = math.exp(-abs(logit))
            log_p = min(logit, 0.0) - math.log1p(small)
            total += log_p if won[k] else log_p - logit
            residual = won[k] - math.exp(log_p)
            gradient[first[k]] += residual * m * slope[j]
            gradient[second[k]] -= residual * m * slope[j]
            gradient[at_t] += residual * m * slope[j] * apart
            for a in range(judges - 1):
                gradient[at_alpha + a] += residual * m * apart * basis[j, a]
            if position:
                gradient[at_b + j] += residual
        return total, gradient

    return density


def _sampled(density: Any, expand: Any, size: int) -> tuple[np.ndarray, int, float]:
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    shape = expand(np.zeros(size))["x"].shape
    density(np.zeros(size))  # compiles
    model = from_pyfunc(size, lambda: density, lambda *_seeds: expand, [np.dtype("float64")], [shape], ["x"])
    cpu = time.process_time()
    settings = {"chains": 4, "cores": 2, "progress_bar": False, "save_warmup": False, "seed": 1}
    trace = nutpie.sample(model, draws=DRAWS, tune=TUNE, **settings)
    cpu = time.process_time() - cpu
    return np.asarray(trace.posterior["x"]), int(trace.sample_stats["diverging"].sum()), cpu


def their_logits(position: bool, learned: bool) -> tuple[np.ndarray, int, float]:
    data, kernel = logit_data(), _logit_kernel()
    z, side = data["z"], np.sign(data["z"])
    beyond = np.abs(z) >= CUT
    kind = np.where(data["unknown"] | beyond, side, 0).astype(np.int64)
    bound = np.where(data["unknown"], 0.0, np.clip(z, -CUT, CUT))
    low, high = np.minimum(data["first"], data["second"]), np.maximum(data["first"], data["second"])
    _, which, asked = np.unique(low * N + high, return_inverse=True, return_counts=True)
    times = ((1 + (asked - 1) * (1 - RHO)) / asked)[which]
    size = N + position + learned + 1

    def density(x: np.ndarray) -> tuple[float, np.ndarray]:
        return kernel(x, data["first"], data["second"], bound, kind, times, N, position, learned)

    def expand(x: np.ndarray) -> dict[str, np.ndarray]:
        drawn = x.copy()
        drawn[:N] -= drawn[:N].mean()
        drawn[N + position :] = np.exp(x[N + position :])
        return {"x": drawn}

    return _sampled(density, expand, size)


def their_judges(position: bool) -> tuple[np.ndarray, int, float]:
    data, kernel = judge_data(), _judge_kernel()
    judges = len(SLOPES)
    share = np.bincount(data["judge"], minlength=judges) / M_JUDGES
    _, _, rows = np.linalg.svd(share[None, :])
    basis = np.ascontiguousarray(rows[1:].T)  # another basis of the same plane: alpha's prior knows no direction
    size = N + judges * position + judges
    won = data["won"].astype(np.float64)

    def density(x: np.ndarray) -> tuple[float, np.ndarray]:
        return kernel(x, data["first"], data["second"], data["judge"], won, basis, N, position)

    def expand(x: np.ndarray) -> dict[str, np.ndarray]:
        m = np.exp(x[-1])
        theta = m * (x[:N] - x[:N].mean())
        return {"x": np.append(theta, m)}

    return _sampled(density, expand, size)


def main() -> None:
    cases: list[tuple[str, str, Any, Any, tuple[bool, ...]]] = []
    for position in (False, True):
        name = "btl_b" if position else "btl"
        for learned in (False, True):
            spread = f"{'learned' if learned else 'fixed'} spread"
            cases.append((f"logits {name}", spread, our_logits, their_logits, (position, learned)))
        cases.append((f"judges {name}", "slopes", our_judges, their_judges, (position,)))
    agreement, speed, wrong = [], [], []
    for name, kind, mine, theirs, given in cases:
        other, own = theirs(*given), mine(*given)
        found = compare(figures(own[0]), figures(other[0]), correlations(other[0]))
        agreement.append(case_row(name, kind, found))
        wrong += [f"{name} {kind}: {what}" for what in failures(found)]
        speed += [{"case": name, "engine": who, **quality(*run)} for who, run in (("nutpie", other), ("ours", own))]
        print(agreement[-1], flush=True)
    show(agreement)
    show(speed)
    if wrong:
        sys.exit("differ by more than Monte-Carlo error: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
