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
from pairscale.models.likelihood import maximise, maximise_penalised, one_sided_groups, start_at

if TYPE_CHECKING:
    from pairscale.models.data import Counts, Ties
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
        ties: what becomes of ties.
        averaged: whether standard errors are those of the posterior's average curvature, not of that at the mode.
    """

    name: str
    eps: float
    prior_sd: float | Literal["learned"]
    position: bool
    ties: Ties
    averaged: bool = False

    @property
    def settings(self) -> dict[str, float | str]:
        """The settings that matter for this engine only."""
        if self.name == "sirt":
            return {"eps": self.eps}
        return {"prior_sd": self.prior_sd} if self.name == "map" else {}

    @property
    def keeps_self_pairs(self) -> bool:
        """Whether a comparison of an item with itself counts (as a win and a loss, as in sirt)."""
        return self.name == "sirt" and not self.position and self.ties != "davidson"

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
        if self.name != "sirt" or len(root.at.extra):
            raise FitError(self._why_not(counts, root))
        between = f" between {named_parts(counts.ids, root.groups)}" if root.groups else ""
        said = (
            f"no finite scores solve sirt's equations for these comparisons: the distance{between} is open. The scores "
            f"are those after {root.iterations} of sirt's own steps; more comparisons settle it"
        )
        return root, [notice(said)]

    def _require_usable(self, counts: Counts) -> None:
        if self.name == "firth" and counts.n_items > EXACT_LIMIT:
            raise InputError(
                f"engine='firth' is for up to {EXACT_LIMIT:,} items, and these are {counts.n_items:,}; use engine='map'"
            )
        if self.name == "firth" and counts.tied is not None:
            raise InputError("engine='firth' does not model ties; use ties='half' with it, or engine='mle'")
        light = counts.comparisons <= 2 * self.eps
        if self.name == "sirt" and light.any():
            place = int(light.argmax())
            raise InputError(
                f"the comparisons of {counts.ids[place]!r} weigh {counts.comparisons[place]:g} together; sirt's "
                f"adjustment needs more than 2 eps = {2 * self.eps:g}: scale the weights up, lower eps, or use "
                "engine='map'"
            )
        if counts.tied is not None and counts.tied.sum() >= counts.times.sum():
            raise FitError("every comparison is a tie: Davidson's nu would be infinite, and the scores are all equal")

    def _why_not(self, counts: Counts, root: Root) -> str:
        if self.name == "mle":
            best, worst = one_sided_groups(counts)
            if best or worst:
                return (
                    f"the likelihood has no maximum: never lost to any other: {named_parts(counts.ids, best)}; never "
                    f"beat any other: {named_parts(counts.ids, worst)}. Their distance to the rest would be infinite: "
                    "add comparisons, or use engine 'sirt', 'map', 'firth'"
                )
        if self.position:
            return (
                "the position effect has no finite estimate of its own: these comparisons cannot tell it from the "
                "scores. Show pairs in both orders, or fit with position=False"
            )
        if counts.tied is not None:
            return (
                "Davidson's nu and the scores have no finite estimate for these comparisons: there are too few wins "
                "besides the ties; use ties='half' or 'drop'"
            )
        groups = f" between {named_parts(counts.ids, root.groups)}" if root.groups else ""
        return f"engine {self.name!r} did not converge after {root.iterations} steps; the distance{groups} is open"
