"""The Bradley–Terry engines by name, and what each says when it has no answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pairscale.core.errors import FitError, InputError
from pairscale.core.notices import notice
from pairscale.models._information import EXACT_LIMIT
from pairscale.models._learned_spread import averaged_information, learned_spread
from pairscale.models._sirt import solve_adjusted
from pairscale.models.data import named_parts
from pairscale.models.likelihood import maximise, maximise_penalised, start_at

if TYPE_CHECKING:
    from pairscale.models.data import Counts
    from pairscale.models.likelihood import Parameters, Root

__all__ = ["ENGINES", "FitEngine"]

ENGINES = ("sirt", "mle", "map", "firth")


@dataclass(frozen=True, slots=True)
class FitEngine:
    """An engine with its settings.

    Attributes:
        name: which.
        eps: the adjustment of the wins, for ``sirt``.
        prior_sd: of the scores, for ``map``; ``learned`` until :meth:`fixed` has learned it.
        position: whether the model has a position effect.
        averaged: whether standard errors are those of the posterior's average curvature, not of that at the mode.
    """

    name: str
    eps: float
    prior_sd: float | Literal["learned"]
    position: bool
    averaged: bool = False

    @property
    def settings(self) -> dict[str, float | str]:
        """The settings that matter for this engine only."""
        if self.name == "sirt":
            return {"eps": self.eps}
        return {"prior_sd": self.prior_sd} if self.name == "map" else {}

    def fixed(self, counts: Counts) -> FitEngine:
        """The same engine, with the standard deviation of its prior learned, where it is to be."""
        if self.prior_sd != "learned":
            return self
        return replace(self, prior_sd=learned_spread(counts), averaged=True)

    def solve(self, counts: Counts, start: Parameters | None = None) -> Root:
        """The solution that the engine found; look at ``converged``."""
        if self.name == "sirt":
            return solve_adjusted(counts, self.eps, position=self.position, start=start)
        start = start or start_at(counts, position=self.position)
        if self.name == "firth":
            return maximise_penalised(counts, start)
        if self.name == "mle" or self.prior_sd == "learned":
            return maximise(counts, start)
        return maximise(counts, start, self.prior_sd**-2)

    def answer(self, counts: Counts) -> tuple[Root, list[str]]:
        """The root, and what is to be said about it.

        Raises:
            FitError: when there is none. Only ``sirt`` without further parameters continues without a root, as R does.
        """
        self._require_usable(counts)
        root = self.solve(counts)
        if root.converged:
            return averaged_information(counts, root) if self.averaged else root, []
        groups = f" between {named_parts(counts.ids, root.groups)}" if root.groups else ""
        if self.name == "sirt" and not len(root.at.extra):
            said = (
                f"no finite scores solve sirt's equations for these comparisons: the distance{groups} is open. The "
                f"scores are those after {root.iterations} of sirt's own steps; more comparisons settle it"
            )
            return root, [notice(said)]
        if self.name == "mle" and not len(root.at.extra):
            raise FitError(
                f"the likelihood has no maximum: items won or lost every comparison with the others, and the distance"
                f"{groups} would be infinite. Add comparisons, or use engine 'sirt', 'map', 'firth'"
            )
        raise FitError(
            f"engine {self.name!r} found no finite estimate: the distance{groups} is open, or these comparisons cannot "
            "tell a position effect or ties from the scores. Add comparisons in both orders, or leave out position= "
            "and ties='davidson'"
        )

    def _require_usable(self, counts: Counts) -> None:
        if self.name == "firth" and (counts.n_items > EXACT_LIMIT or counts.tied is not None):
            raise InputError(
                f"engine='firth' is for up to {EXACT_LIMIT:,} items, and does not model ties; use engine='map', or "
                "ties='half'"
            )
        if self.name == "sirt" and (counts.comparisons <= 2 * self.eps).any():
            raise InputError(
                f"the comparisons of an item weigh less than sirt's adjustment, 2 eps = {2 * self.eps:g}: scale the "
                "weights up, lower eps, or use engine='map'"
            )
        if counts.tied is not None and counts.tied.sum() >= counts.times.sum():
            raise FitError("every comparison is a tie: Davidson's nu would be infinite, and the scores are all equal")
