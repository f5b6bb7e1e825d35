"""A judge of known truth and known faults."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pairscale.core.comparisons import Condition
from pairscale.core.errors import InputError
from pairscale.core.options import optional, require_int, require_number, require_probability
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import Values
from pairscale.judges.base import FreeJudge, Item, JudgePair, Verdict

_OF_ERROR = ("error", "error_df", "limit")


@dataclass(frozen=True, slots=True)
class SimulatedJudge(FreeJudge):
    """A judge that knows the true abilities and makes the errors that you set.

    P(first wins) = (1 - lapse) · logistic(θ₁ - θ₂ + bias) + lapse / 2. The answer to a question depends on the seed
    and the question alone, so a run gives the same answers in any order, with any concurrency, and when resumed.

    With ``error``, it is like a language model at temperature 0 that gives log-probabilities: its logit is
    θ₁ - θ₂ + bias with an error that belongs to the pair, the same in both orders and at every repeat. The winner is
    the sign of that logit, and the probability follows from it.

    Attributes:
        abilities: the truth by id, or the name of the samples' column that holds it.
        bias: logits in favour of the first position.
        lapse: the share of answers that are a coin toss.
        invalid_rate: the share of questions it declines.
        tie_rate: the share of questions it calls a tie.
        error_rate: the share of attempts that fail with a transient error, and succeed when asked again.
        latency_s: how long it takes, on average (exponentially distributed).
        seed: of its random numbers.
        error: the standard deviation of the errors of its logits; None for answers drawn by their true probability.
        error_df: the degrees of freedom of the errors, above 2, for Student's t; None for normal ones.
        limit: logits are cut at this one, either way.

    Example:
        >>> judge = SimulatedJudge({"a": 2.0, "b": -2.0}, seed=1)
        >>> judge.probability({"ID": "a"}, {"ID": "b"}) > 0.98
        True
    """

    abilities: Mapping[str, float] | str
    bias: float = 0.0
    lapse: float = 0.0
    invalid_rate: float = 0.0
    tie_rate: float = 0.0
    error_rate: float = 0.0
    latency_s: float = 0.0
    seed: int = 0
    error: float | None = None
    error_df: float | None = None
    limit: float | None = None

    def __post_init__(self) -> None:
        checked: Values = {
            "bias": require_number(self.bias, "bias"),
            "latency_s": require_number(self.latency_s, "latency_s", least=0),
            "seed": require_int(self.seed, "seed", least=0),
            "error": optional(require_number, self.error, "error", least=0),
            "error_df": optional(require_number, self.error_df, "error_df", above=2),
            "limit": optional(require_number, self.limit, "limit", above=0),
        }
        for name in ("lapse", "invalid_rate", "tie_rate", "error_rate"):
            checked[name] = require_probability(getattr(self, name), name)
        if not isinstance(self.abilities, str):
            checked["abilities"] = {
                str(item): require_number(value, f"abilities: {item}") for item, value in self.abilities.items()
            }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def condition(self) -> Condition:
        """All of its settings."""
        settings = asdict(self)
        if self.error is None:
            settings = {name: value for name, value in settings.items() if name not in _OF_ERROR}
        if not isinstance(self.abilities, str):
            settings["abilities"] = fingerprint(dict(self.abilities))
        return Condition("simulated", "offline", "simulated-1", settings=settings)

    def probability(self, first: Item, second: Item) -> float:
        """That the first wins, given that the question is answered with a winner.

        Raises:
            InputError: when an ability is missing.
        """
        logit = self._ability(first) - self._ability(second) + self.bias
        return (1 - self.lapse) * _logistic(logit) + self.lapse / 2

    async def compare(self, pair: JudgePair) -> Verdict:
        """Draw an answer."""
        uid = pair.uid or f"{pair.first['ID']}:{pair.second['ID']}"
        draw = random.Random(f"{self.seed}|{uid}|{pair.attempt}").random  # noqa: S311 - a simulation, not a secret
        if self.latency_s:
            await asyncio.sleep(-self.latency_s * math.log(1 - draw()))
        if draw() < self.error_rate:
            return Verdict.fail("http_error", "simulated outage", failure="transient", model="simulated-1")
        if draw() < self.invalid_rate:
            return Verdict.abstain("simulated refusal", model="simulated-1")
        if draw() < self.tie_rate:
            return Verdict.tie(model="simulated-1")
        if self.error is not None:
            chance = _logistic(self._logit(pair))
            return Verdict.win(1 if chance > 0.5 else 2, probability=chance, model="simulated-1")
        chance = self.probability(pair.first, pair.second)
        return Verdict.win(1 if draw() < chance else 2, probability=chance, model="simulated-1")

    def _logit(self, pair: JudgePair) -> float:
        """The logit of a judge that errs by the pair."""
        first = str(pair.first["ID"])
        second = str(pair.second["ID"])
        draw = random.Random(f"{self.seed}|{min(first, second)}|{max(first, second)}")  # noqa: S311 - a simulation
        error = draw.gauss(0, 1) * (self.error or 0.0)
        if self.error_df is not None:  # Student's t, with a standard deviation of 1
            error *= math.sqrt((self.error_df - 2) / draw.gammavariate(self.error_df / 2, 2))
        if first > second:
            error = -error
        logit = self._ability(pair.first) - self._ability(pair.second) + self.bias + error
        most = math.inf if self.limit is None else self.limit
        return min(max(logit, -most), most)

    def _ability(self, item: Item) -> float:
        if isinstance(self.abilities, str):
            ability = item.get(self.abilities)
            return require_number(ability, f"the ability of {item['ID']!r} in column {self.abilities!r}")
        if item["ID"] not in self.abilities:
            raise InputError(f"the simulated judge knows no ability of {item['ID']!r}")
        return self.abilities[item["ID"]]


def _logistic(logit: float) -> float:
    return 0.5 * (1 + math.tanh(logit / 2))
