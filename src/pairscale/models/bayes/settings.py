"""What to fit, and how: the variants of the Bayesian model, how to count repeats, and the settings of the sampler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.options import (
    optional,
    require_int,
    require_mapping,
    require_number,
    require_number_or,
    require_seed,
)
from pairscale.core.tables import listed

Answer = Literal["winner", "probability"]
"""What of an answer is evidence: who won, or how probable the judge says it is."""
Judges = Literal["pooled", "slopes"]
"""How to fit several judges: as if they were one, or with a slope and a position effect each."""
Variant = Literal["btl", "btl_e", "btl_b", "btl_e_b"]
"""Neither lapses nor a position effect, lapses, a position effect, or both."""
Repeats: TypeAlias = float | Literal["independent", "learned"]
"""How to count repeats: as ``independent`` evidence, by a given excess agreement, or by the ``learned`` one."""


@dataclass(frozen=True, slots=True)
class MCMCSettings:
    """How to sample.

    Attributes:
        chains: how many chains, which advance together.
        iter_warmup: transitions that find the step size and the coordinates, and are thrown away; a warm fit makes a
            quarter of them.
        iter_sampling: transitions of each chain that are kept, at least.
        target_accept: the acceptance that the step size aims at.
        extend: when R-hat or the effective sample size falls short, draw on until they pass, up to this many times
            ``iter_sampling``; with 1 there are exactly ``iter_sampling``.
        seed: of the sampler; the same seed gives the same draws, bit for bit.
    """

    chains: int = 8
    iter_warmup: int = 200
    iter_sampling: int = 300
    target_accept: float = 0.8
    extend: int = 8
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("chains", 1), ("iter_warmup", 20), ("iter_sampling", 4), ("extend", 1)):
            object.__setattr__(self, name, require_int(getattr(self, name), f"mcmc: {name}", least=least))
        accept = require_number(self.target_accept, "mcmc: target_accept", above=0, below=1)
        object.__setattr__(self, "target_accept", accept)
        object.__setattr__(self, "seed", require_seed(self.seed, "mcmc: seed"))

    @classmethod
    def given(cls, fields: Mapping[str, Any] | MCMCSettings | None) -> MCMCSettings:
        """From a mapping; an unknown field is refused by its name."""
        if isinstance(fields, cls):
            return fields
        chosen = optional(require_mapping, fields, "mcmc") or {}
        names = set(cls.__dataclass_fields__)
        unknown = sorted(set(chosen) - names)
        if unknown:
            raise InputError(f"mcmc: no field {listed(unknown)}; there are {listed(sorted(names), 10)}")
        return cls(**chosen)


def require_repeats(value: object, name: str = "repeats") -> Repeats:
    """``independent``, ``learned``, or an excess agreement from 0 to 1.

    Raises:
        InputError: If it is anything else.
    """
    words: tuple[Literal["independent", "learned"], ...] = ("independent", "learned")
    return require_number_or(value, name, words, least=0, most=1)
