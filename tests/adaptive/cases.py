"""Runs of every kind: settings, selectors, judges and orders of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pairscale.adaptive.config import AdaptiveConfig
from pairscale.adaptive.engine import Engine, Proposal
from pairscale.adaptive.refits import Belief
from tests.adaptive.driving import Answer, Run, drive, mu_belief, names

SELECTORS = ("pollitt", "random", "nearest", "information")
JUDGES = ("consistent", "random", "biased", "refuses one", "refuses all", "errors", "refuses at random", "ties")
BELOW = {
    "round_pairs_target": 40, "W_cap": 60, "K_base": 12, "long_min_dist": 8, "mid_max_dist": 8, "k_total": 12,
    "k_top": 6, "boundary_window": 12, "C_max": 300, "explore_resample_max": 12, "dup_max_obs": 4,
    "dup_max_obs_relaxed": 5, "repeat_in_round_budget": 6, "anchor_rounds_early": 5, "long_rounds_early": 5,
    "top_band_bins": 8, "mid_min_dist": 5, "local_max_dist": 4, "boundary_k": 30,
    "star_override_budget_per_round": 3, "max_invalid_per_pair": 4, "max_invalid_per_item": 12,
    "max_failures_in_row": 60,
}  # fmt: skip
"""Whole-numbered settings are drawn from their least value to this: above, they no longer make a difference here."""
CHOICES = {
    "ties": ["invalid", "half"],
    "goal": ["order", "top:1", "top:2"],
    "criterion": ["determinant", "ranks"],
}
OURS = ["ties", "reverse_rate", "discount_repeats"]
"""Settings that the document does not have: drawn more often, and together."""
ORDERED = (("p_long_low", "p_long_high"), ("mid_min_dist", "mid_max_dist"), ("dup_max_obs", "dup_max_obs_relaxed"))


@st.composite
def adaptive_configs(draw: st.DrawFn) -> dict[str, Any]:
    """Some settings, each anywhere in its range."""
    fields = {field["name"]: field for field in AdaptiveConfig.describe()}
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=10, unique=True))
    chosen += draw(st.sampled_from([[], ["reverse_rate"], ["discount_repeats"], OURS]))
    chosen += [name for pair in ORDERED if set(pair) & set(chosen) for name in pair]
    if {"k_top", "k_total"} & set(chosen):
        chosen += ["k_top", "k_total"]
    given: dict[str, Any] = {}
    for name in dict.fromkeys(chosen):
        field = fields[name]
        if isinstance(field["default"], bool):
            given[name] = draw(st.booleans())
        elif name in CHOICES:
            given[name] = draw(st.sampled_from(CHOICES[name]))
        elif name in BELOW:
            given[name] = draw(st.integers(int(field["low"]), BELOW[name]))
        else:
            given[name] = draw(st.floats(field["low"], field["high"]))
    for low, high in ORDERED:
        if low in given:
            given[low], given[high] = sorted((given[low], given[high]))
    if "mid_max_dist" in given:
        given["mid_max_dist"] = max(1, given["mid_max_dist"])
    if "k_top" in given:
        given["k_top"] = min(given["k_top"], given["k_total"] // 2)
    return given


@dataclass(frozen=True)
class Case:
    """A run, whole: the same case gives the same run."""

    n: int
    seed: int
    selector: str
    judge: str
    concurrency: int
    steps: int
    adaptive: dict[str, Any]
    btl: dict[str, Any]
    fits: tuple[bool, bool]

    def engine(self) -> Engine:
        return Engine(names(self.n, shuffled=self.seed), seed=self.seed, selector=self.selector,
                      adaptive_config=self.adaptive, btl_config={"repeats": "learned", **self.btl})  # fmt: skip

    def run(self, **how: Any) -> Run:
        rng = np.random.default_rng((self.seed, self.n))
        order = np.random.default_rng(self.seed + 1)
        how = {"fit": self.fit} | how
        return drive(
            self.engine(), self.answers(rng), steps=self.steps, concurrency=self.concurrency,
            next_answer=lambda open_: int(order.choice(open_)), **how,
        )  # fmt: skip

    def answers(self, rng: np.random.Generator) -> Answer:
        theta = rng.normal(0, 1.5, self.n + 20)  # some may join

        def answer(engine: Engine, proposal: Proposal) -> tuple[float | None, bool]:
            a, b = proposal.first, proposal.second
            luck = rng.random()
            if self.judge == "ties" and luck < 0.4:
                return engine.points_of_first("tie", None), False
            if self.judge == "refuses all" or (self.judge == "refuses one" and 0 in (a, b)):
                return None, False
            if self.judge in ("errors", "refuses at random") and luck < 0.3:
                return None, self.judge == "errors"
            if self.judge == "random":
                return int(luck < 0.5), False
            if self.judge == "biased":
                return int(luck < 0.8), False
            return int(theta[a] > theta[b]), False

        return answer

    def fit(self, engine: Engine) -> tuple[Belief, str | None]:
        """Some refits do not pass; the order counts as known from some refit on, or never; repeats agree, or not."""
        passed = not (self.fits[0] and engine.n_refits % 3 == 1)
        agreement = (0.0, 0.6, 0.97, 0.97, 1.0, 1.0)[(self.seed + engine.n_refits // 4) % 6]
        identified = self.fits[1] and engine.n_refits > 0
        return mu_belief(engine, identified=identified, passed=passed, agreement=agreement), None


def cases(sizes: st.SearchStrategy[int], steps: int) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        n=sizes,
        seed=st.integers(0, 2**40),
        selector=st.sampled_from(("pollitt", "pollitt", *SELECTORS)),
        judge=st.sampled_from(JUDGES),
        concurrency=st.integers(1, 8),
        steps=st.just(steps),
        adaptive=adaptive_configs(),
        btl=st.fixed_dictionaries({}, optional={"refit_pairs_target": st.integers(1, 60)}),
        fits=st.tuples(st.booleans(), st.booleans()),
    )
