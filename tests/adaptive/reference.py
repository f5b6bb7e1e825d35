"""The document's choice of a pair, written down slowly: every pair in a loop, one rule after the other (§5 to §7).

Only what the document leaves to chance is taken from the generator that decision 11 names: one for each run seed, step,
stage and fallback (and whether second uses in a round are allowed), drawn from in the order of the text.
"""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np

from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selection.pollitt import _drawn as drawn_numbers  # that it draws evenly is shown elsewhere

PHI = NormalDist().cdf
BETA = 25 / 6
STAGES = ["anchor_link", "long_link", "mid_link", "local_link"]
LADDER = ["base", "expand_locality", "uncertainty_pool", "dup_relax", "global_safe"]


def strata(n: int, config: Any) -> list[int]:
    """§5.0: the stratum of each rank, best first."""
    top = math.ceil(round(config.top_band_pct * n, 9))
    found, above = [], 0
    for size, bins in ((top, config.top_band_bins), (n - top, config.K_base)):
        used = min(size, bins)
        found += [above + 1 + place * used // size for place in range(size)]
        above += used
    return found


class Reference:
    """The next choice of an engine that chooses by rounds; the engine is left alone."""

    def __init__(self, engine: Engine, asked: list[dict[str, Any]] | None = None) -> None:
        self.asked = [] if asked is None else asked  # rows of valid answers, and of questions that are open
        self.gave_way = False
        if engine._round.stage is None:
            engine = copy.deepcopy(engine)
            engine.open = {1: None} if engine.open else {}  # type: ignore[dict-item]
            self.over = not engine._next_round()
            if self.over:
                return
        self.over = False
        self.e, self.c, self.l, self.r = engine, engine.config, engine.ledger, engine._round
        self.n = self.l.n
        self.mu, self.sigma = self.l.mu.tolist(), self.l.sigma.tolist()
        self.items = range(self.n)
        self.there = [not self.l.set_aside[x] for x in self.items]
        self.ranked = sorted(self.items, key=lambda x: (-self.mu[x], engine.ids[x]))
        self.rank = {item: place + 1 for place, item in enumerate(self.ranked)}
        self.stratum = dict(zip(self.ranked, strata(self.n, self.c), strict=True))
        self.busy = [int(self.l.recent[x] + self.l.open_degree[x]) for x in self.items]
        self.stage = self.r.stage

    # Quantities

    def t(self, i: int, j: int) -> float:
        s = [self.sigma[x] * self.sigma[x] + BETA * BETA for x in (i, j)]
        return (self.mu[i] - self.mu[j]) / math.sqrt(sum(s))

    def p(self, i: int, j: int) -> float:
        return PHI(self.t(i, j))

    def u0(self, i: int, j: int) -> float:
        p = self.p(i, j)
        return p * (1 - p)

    def utility(self, i: int, j: int) -> float:
        """§6 and §6.1.3; ``-|t|`` orders like U0 and does not run out of digits near 0.5."""
        deg = self.l.degree
        if not self.c.degree_alpha:
            return -abs(self.t(i, j))
        if deg[i] < 2 or deg[j] < 2:
            return self.u0(i, j)
        penalty = float((deg[i] + 1) * (deg[j] + 1)) ** self.c.degree_alpha
        return self.u0(i, j) / min(penalty, self.c.degree_penalty_max)

    # Generation (§5.1)

    def usable(self, x: int, *, repeats: bool) -> bool:
        if not self.there[x]:
            return False
        if self.r.used[x] == 0:
            return True
        if not repeats or self.r.used[x] > 1:
            return False
        present = [self.busy[y] for y in self.items if self.there[y]]
        return self.busy[x] <= np.quantile(present, self.c.exposure_underrep_q)

    def fits_type(self, i: int, j: int, fallback: str) -> bool:
        anchor = self.e._anchors
        apart = abs(self.stratum[i] - self.stratum[j])
        wider = 0 if fallback == "base" else 1
        if self.stage == "anchor_link":
            return anchor[i] != anchor[j]
        if self.stage == "local_link":
            if not self.c.local_anchors and (anchor[i] or anchor[j]):
                return False
            anywhere = fallback == "global_safe" and self.n < 30  # decided here: the document begins at 30
            return anywhere or apart <= self.c.local_max_dist + wider
        if anchor[i] or anchor[j]:
            return False
        low, high = max(1, self.c.mid_min_dist - wider), self.c.mid_max_dist + wider
        if self.stage == "long_link":
            low, high = max(1, self.c.long_min_dist - wider), self.n
        return low <= apart <= high  # §5.3.1: global_safe keeps the distance band of the stage

    def generate(
        self, fallback: str, repeats: bool, cap: int | None, rng: np.random.Generator
    ) -> list[tuple[int, int]]:
        pool = [x for x in self.ranked if self.usable(x, repeats=repeats)]
        if self.stage == "anchor_link":
            anchor = self.e._anchors
            found = [(i, j) for i in pool if anchor[i] for j in pool if not anchor[j]]
        else:
            found = [(i, j) for at, i in enumerate(pool) for j in pool[at + 1 :] if self.fits_type(i, j, fallback)]
        if cap is not None and len(found) > cap:
            found = [found[k] for k in drawn_numbers(len(found), cap, rng)]
        if repeats:
            left = self.c.repeat_in_round_budget - self.r.repeats
            found = [(i, j) for i, j in found if sum(self.r.used[x] > 0 for x in (i, j)) <= left]
        if self.stage == "long_link" and self.e.identified:
            draws = self.e.belief.draws.astype(float)  # type: ignore[union-attr]

            def above(i: int, j: int) -> float:
                return float((draws[:, i] > draws[:, j]).mean() + 0.5 * (draws[:, i] == draws[:, j]).mean())

            found = [(i, j) for i, j in found if self.c.p_long_low <= above(i, j) <= self.c.p_long_high]
        return found

    # The pipeline (§5.2.1)

    def attempt(
        self, fallback: str, repeats: bool, cap: int | None, rng: np.random.Generator
    ) -> tuple[tuple[int, int] | None, dict[str, Any]]:
        c, counts = self.c, {}
        found = self.generate(fallback, repeats, cap, rng)
        counts["n_candidates_generated"] = len(found)
        found = [(i, j) for i, j in found if not self.l.closed[i, j]]
        counts["n_candidates_after_hard_filters"] = len(found)
        limit = c.cap_count(self.n)
        capped = {x for x in self.items if self.busy[x] > limit}
        eligible = [self.u0(i, j) for i, j in found if i not in capped and j not in capped]
        most = c.dup_max_obs_relaxed if fallback == "dup_relax" else c.dup_max_obs
        kept = []
        for i, j in found:
            seen = int(self.l.seen[i, j])
            if seen >= most:
                continue
            if seen >= 2:
                near = abs(self.p(i, j) - 0.5) <= c.dup_p_margin
                if not (near and eligible and self.u0(i, j) >= np.quantile(eligible, c.q) - 1e-15):
                    continue
            kept.append((i, j))
        counts["n_candidates_after_duplicates"] = len(kept)
        passing = self.overridden(kept, capped)
        left = [pair for pair in kept if not (set(pair) & capped) or pair in passing]
        refused = [pair for pair in kept if pair not in left]
        counts["star_cap_rejects"] = len(refused)
        counts["star_cap_reject_items"] = len({x for pair in refused for x in pair if x in capped})
        counts["n_candidates_after_star_caps"] = counts["n_candidates_scored"] = len(left)
        pair = self.choose(left, fallback, rng, counts) if left else None
        if pair is not None:
            counts["star_override_used"] = bool(set(pair) & capped)
        return pair, counts

    def overridden(self, kept: list[tuple[int, int]], capped: set[int]) -> set[tuple[int, int]]:
        """§6.1.1, decision 6."""
        budget = self.c.star_override_budget_per_round - self.r.overrides
        if not self.e.identified or self.stage not in ("mid_link", "local_link") or budget <= 0:
            return set()
        extreme = np.quantile(self.l.degree, 0.9)
        return {
            (i, j)
            for i, j in kept
            if (i in capped or j in capped)
            and abs(self.p(i, j) - 0.5) <= self.c.p_star_override_margin
            and max(self.l.degree[i], self.l.degree[j]) <= extreme
        }

    # The choice (§7.5)

    def explore_rate(self, fallback: str) -> float:
        if fallback in ("base", "expand_locality"):
            return self.c.explore_rate * (self.c.explore_taper_mult if self.e.identified else 1)
        return min(0.50, 2 * self.c.explore_rate)

    def choose(
        self, left: list[tuple[int, int]], fallback: str, rng: np.random.Generator, said: dict[str, Any]
    ) -> tuple[int, int] | None:
        deg = self.l.degree
        least = min(deg[x] for x in self.items if self.there[x])
        if not self.gave_way:
            quota, explore, far = self.drawn
            if least < 2 and quota < self.c.quota_eps:
                rare = [pair for pair in left if deg[pair[0]] < 2 or deg[pair[1]] < 2]
                said.update(is_explore_step=True, explore_reason="coverage_quota_override")
                return max(rare, key=lambda pair: self.utility(*pair)) if rare else None
            if explore < self.explore_rate(fallback):
                mode = "nonlocal" if far < self.c.explore_nonlocal_rate else "local"
                said.update(is_explore_step=True, explore_reason="probabilistic", explore_mode=mode)
                return self.explore(left, mode, least, rng)
        said["is_explore_step"] = False
        if self.stage == "local_link" and self.e.identified:
            modes = [row.get("local_priority_mode") for row in self.asked]
            known = [mode for mode in modes if mode in ("near_tie", "boundary")]
            if math.floor((len(known) + 1) * self.c.boundary_frac + 1e-6) > known.count("boundary"):
                rank = self.e.belief.rank  # type: ignore[union-attr]
                edge = min(self.c.boundary_k, self.n - 1)
                near = [pair for pair in left if all(abs(rank[x] - edge) <= self.c.boundary_window for x in pair)]
                if near:
                    said["local_priority_mode"] = "boundary"
                    return max(near, key=lambda pair: self.utility(*pair))
        return max(left, key=lambda pair: self.utility(*pair))

    def explore(
        self, left: list[tuple[int, int]], mode: str, least: int, rng: np.random.Generator
    ) -> tuple[int, int] | None:
        few = [x for x in self.items if self.there[x] and self.l.degree[x] <= least + 1]
        for item in rng.choice(few, size=self.c.explore_resample_max + 1).tolist():
            mine = [pair for pair in left if item in pair]
            if not mine:
                continue

            def worth(pair: tuple[int, int], item: int = item) -> tuple[Any, ...]:
                other = pair[0] if pair[1] == item else pair[1]
                apart = abs(self.mu[item] - self.mu[other])
                if mode == "nonlocal":
                    apart = -abs(self.rank[item] - self.rank[other])
                return apart, abs(self.t(*pair)), self.busy[other], self.e.ids[other]

            return min(mine, key=worth)
        return None

    # The ladder (§5.3.1)

    def step(self) -> tuple[tuple[int, int] | None, dict[str, Any]]:
        """The routes are drawn once, and hold on every rung; where they find nothing at all, the best pair comes."""
        path, pair = [], None
        self.drawn = np.random.default_rng((self.e.seed, self.e.steps + 1, 4)).random(3).tolist()
        least = min(self.l.degree[x] for x in self.items if self.there[x])
        covers = least < 2 and self.drawn[0] < self.c.quota_eps
        routed = covers or self.drawn[1] < max(map(self.explore_rate, LADDER))
        turns = [(repeats, gave_way) for repeats in (False, True) for gave_way in (False, True)]
        for repeats, self.gave_way in turns:
            if pair is not None or (repeats and self.c.repeat_in_round_budget <= self.r.repeats):
                break
            if not routed and not self.gave_way:
                continue
            for fallback in LADDER:
                path.append(fallback)
                numbers = (self.e.seed, self.e.steps + 1, STAGES.index(self.stage), LADDER.index(fallback), repeats)
                rng = np.random.default_rng(tuple(map(int, numbers)))
                pair, said = self.attempt(fallback, repeats, self.c.C_max, rng)
                if pair is None and self.gave_way and self.stage == "local_link" and fallback in LADDER[-2:]:
                    pool = sum(self.usable(x, repeats=repeats) for x in self.items)
                    if pool * (pool - 1) // 2 > self.c.C_max:
                        pair, said = self.attempt(fallback, repeats, None, rng)
                said |= {"explore_rate_used": self.explore_rate(fallback), "repeats_allowed": repeats}
                if pair is not None:
                    break
        said |= {
            "round_stage": self.stage, "fallback_path": ">".join(path), "fallback_used": path[-1],
            "candidate_starved": pair is None,
        }  # fmt: skip
        return pair, said

    def order(self, i: int, j: int, rows: list[dict[str, Any]]) -> tuple[int, int]:
        """§7.6, from the log of a run with one judgement at a time."""
        committed = [(row["A"] - 1, row["B"] - 1) for row in rows if row["status"] == "committed"]
        met = [pair for pair in committed if set(pair) == {i, j}]
        if met:
            return met[-1][1], met[-1][0]
        lead = {x: sum((a == x) - (b == x) for a, b in committed) for x in (i, j)}
        if lead[i] == lead[j]:
            return min(i, j), max(i, j)
        return (i, j) if lead[i] < lead[j] else (j, i)


def connected(pairs: list[tuple[int, int]], n: int) -> list[set[int]]:
    """The parts of a graph."""
    parts = [{item} for item in range(n)]
    for a, b in pairs:
        one, two = (next(part for part in parts if item in part) for item in (a, b))
        if one is not two:
            one |= two
            parts.remove(two)
    return parts


def is_chain(pairs: list[tuple[Any, Any]]) -> bool:
    """Whether each pair continues where the one before it ended."""
    return all(one[1] == two[0] for one, two in pairwise(pairs))
