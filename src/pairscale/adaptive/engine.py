"""The engine of adaptive ranking: which pair next, and what follows from its answer. Pure: no clock, no file, no judge.

Everything that is known follows from a sequence of events: a pair is *proposed*, its answer is *recorded*, a refit is
*applied*; and, from outside, items *join* or are *withdrawn*, and settings change. A run is resumed by letting them
happen again from the log, and audited by choosing again in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairscale.adaptive._health import Health
from pairscale.adaptive._pipeline import Scene
from pairscale.adaptive._proposal import Proposal, Starved
from pairscale.adaptive._refitting import Refitting
from pairscale.adaptive._repeats import EXHAUSTED, REVERSE, draw_reversed
from pairscale.adaptive._round import STAGES, BoundarySlots, Round
from pairscale.adaptive._strata import anchor_items, best_first, best_first_again, strata_by_rank
from pairscale.adaptive._warm_start import WarmStart
from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.ledger import FIRST_ANSWERS, Ledger
from pairscale.adaptive.pollitt import choose_in_stage
from pairscale.adaptive.selectors import (
    POLLITT,
    MissingSelector,
    OwnSelector,
    Selector,
    choose_by,
    look,
    make_selector,
    named_selector,
    selector_name,
)
from pairscale.core.errors import InputError
from pairscale.core.options import require_int, require_probability
from pairscale.models.trueskill import win_probability

if TYPE_CHECKING:
    from pairscale.adaptive.ledger import Flags
    from pairscale.adaptive.refits import Belief, LagPoint, RefitRequest
    from pairscale.core.arrays import Floats, Ints

__all__ = ["FEWEST", "Engine", "Proposal", "Starved"]

WARM_START = "warm_start"
FEWEST = 3
"""Comparisons that a fit needs: one for each parameter that all items share (spread, lapse, position)."""

_OUTSIDE = (WARM_START, REVERSE)
"""Stages that are in no round's plan."""

_REVERSAL = 1000  # seeds the draw of a pair to reverse


class Engine(Refitting):
    """The state of a run, and its two verbs, :meth:`propose` and :meth:`record`; see :class:`Refitting` for the others.

    Attributes:
        ids: the items, in the order in which they came in.
        seed: of every choice.
        selector: who chooses, by name: ``pollitt``, ``random``, ``nearest``, ``information``, or one of your own.
        config: how pairs are chosen.
        btl: when the model is fitted again, and when the run stops.
        ledger: what was asked and answered.
        open: the proposals without an answer, by step.
        rows: how many rows the step log has.
        steps: the last step's number.
        pending: a refit that is due, or running; None when there is none.
        refit_lag: comparisons that a refit may take to come into effect.
        n_refits: refits that were applied.
        belief: the last posterior that passed its diagnostics.
        identified: whether the global order counts as known.
        near_stop: whether phase 3 was entered.
        stop_reason: why the run is over; None while it is not.
        failures_in_row: answers without a valid one between.
    """

    def __init__(
        self,
        ids: Sequence[str],
        *,
        seed: int = 1,
        selector: str | OwnSelector = POLLITT,
        adaptive_config: Mapping[str, Any] | None = None,
        btl_config: Mapping[str, Any] | None = None,
        mu: Floats | None = None,
        sigma: Floats | None = None,
    ) -> None:
        if len(ids) < 2:
            raise InputError(f"ranking needs at least two texts, not {len(ids)}")
        chooser = named_selector(selector)
        self.seed, self.selector = require_int(seed, "seed", least=0), selector_name(chooser)
        self._given: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = adaptive_config, btl_config
        self._other: Selector | None = None if chooser == POLLITT else make_selector(chooser, self._known)
        self._missing = chooser if isinstance(chooser, MissingSelector) else None
        self.ids: list[str] = []
        self._settle_size(ids)
        self.ledger = Ledger(len(ids), self.config.W_cap, mu, sigma)
        self._settle_goal()
        self.open: dict[int, Proposal] = {}
        self.rows = self.steps = self.n_refits = self.refit_lag = self.failures_in_row = 0
        self.pending: RefitRequest | None = None
        self.belief: Belief | None = None
        self.identified = self.near_stop = False
        self.stop_reason: str | None = None
        self._effective_at = self._refitted_at = self._reversals = 0
        self._agreement = 0.0
        self._passed: list[LagPoint] = []
        self._health = Health()
        is_aimed = self.config.top is not None and self.selector == "information"
        self._warm = WarmStart(len(ids), np.random.default_rng((self.seed, 0)), is_chain=not is_aimed)
        self._round = Round(0, len(ids), {}, None)
        self._complete: Round | None = None
        self._boundary = BoundarySlots()
        self._anchors: Flags = np.zeros(len(ids), dtype=np.bool_)
        if self._other is not None:
            self._other.joined(self.ledger)

    def _known(self) -> tuple[Sequence[str], Floats | None]:
        """What a selector of the user's is shown besides the ledger."""
        return self.ids, None if self.belief is None else self.belief.theta_mean

    def _settle_size(self, more: Iterable[str]) -> None:
        self.ids += more
        n = len(self.ids)
        self.btl = BTLConfig.for_items(n, self._given[1])
        self.config = AdaptiveConfig.for_items(n, self._given[0], refit_pairs_target=self.btl.refit_pairs_target)
        if self.config.discount_repeats and self.btl.repeats == "independent":
            raise InputError(
                "adaptive_config: discount_repeats needs to know how far repeats agree; "
                "give repeats='learned' (or a number) in btl_config as well"
            )
        self._number_of = {name: number for number, name in enumerate(self.ids)}
        self._by_id: Ints = np.array(sorted(range(n), key=self.ids.__getitem__), dtype=np.int64)
        self._order = self._by_id  # the items by TrueSkill mean, when they were last looked at
        self._id_place: Ints = np.empty(n, dtype=np.int64)
        self._id_place[self._by_id] = np.arange(n)
        self._strata = strata_by_rank(n, self.config)

    # What it knows

    @property
    def committed(self) -> int:
        """How many comparisons are committed."""
        return self.ledger.committed

    @property
    def stage(self) -> str:
        """The stage that the next pair will come from, as far as that is known."""
        return WARM_START if not self._warm.done else (self._round.stage or "local_link")

    @property
    def round_id(self) -> int:
        """The current round."""
        return self._round.round_id

    @property
    def can_fit(self) -> bool:
        """Whether there are as many comparisons as the model needs: they tie all items together, or are three."""
        return self._warm.done or self.committed >= FEWEST

    @property
    def is_failing(self) -> bool:
        """Whether the judge has given no valid answer for too long."""
        return self.failures_in_row >= self.config.max_failures_in_row

    @property
    def counts_ties(self) -> bool:
        """Whether a tie is an answer."""
        return self.config.ties == "half"

    def points_of_first(self, outcome: str, winner_pos: int | None) -> float | None:
        """What a verdict comes to as Y, by its outcome and the place of its winner; None is no valid answer."""
        if outcome == "win":
            return int(winner_pos == 1)
        return 0.5 if self.counts_ties and outcome in ("tie", "flip") else None

    @property
    def is_flipping(self) -> bool:
        """Whether the judge changes its answer with the order too often."""
        return self.ledger.repeats.flips_more_than(self.config.flip_share_max)

    @property
    def lacks_probabilities(self) -> bool:
        """Whether probabilities are wanted, and the first answers have none."""
        wanted = self.btl.answer == "probability" and self.committed >= FIRST_ANSWERS
        return wanted and not self.ledger.has_probabilities

    def require_selector(self) -> None:
        """Refuse to continue when a selector of the user's was not given again."""
        if self._missing is not None:
            self._missing()

    @property
    def unlinked(self) -> list[str]:
        """Items that no comparison ties to the others, because the judge does not answer on them."""
        if not self._warm.unlinked or not self._warm.done:
            return []
        return [self.ids[item] for item in self.ledger.apart()]

    @property
    def withdrawn(self) -> list[str]:
        """Items that were withdrawn."""
        return [self.ids[item] for item in np.flatnonzero(self.ledger.withdrawn)]

    # The next pair

    def propose(self) -> Proposal | Starved | None:
        """The next pair; or a step that found none; or nothing, until an answer or a refit has come, or for good."""
        if self.stop_reason is not None or self.must_apply:
            return None
        if not self._warm.done:
            return self._link() if self._warm.queue else None
        if self._reverses_next:
            return self._reverse()
        stage = self._next_stage()
        if stage is None:
            return None
        pair, fields = self._choose(stage)
        if pair is None:
            return Starved(self._starved(fields))
        proposal = self._proposal(pair, fields)
        self._admit(proposal)
        return proposal

    def _link(self) -> Proposal:
        """A comparison of the warm start (§3.1)."""
        return self._unchosen(self._warm.queue[0], WARM_START)

    def _reverse(self) -> Proposal:
        """An earlier pair in the other order, outside of the round's quotas."""
        pair = draw_reversed(self.ledger, np.random.default_rng((self.seed, self.steps + 1, _REVERSAL)))
        assert pair is not None  # noqa: S101 - it was looked before
        return self._unchosen(pair, REVERSE)

    def _unchosen(self, pair: tuple[int, int], stage: str) -> Proposal:
        """A pair that no selector chose."""
        fields = {
            "is_explore_step": False, "candidate_starved": False, "fallback_used": "base", "fallback_path": "base",
            "star_override_used": False, "repeats_allowed": False,
        }  # fmt: skip
        proposal = self._proposal(pair, fields | self._scheduled(stage))
        self._admit(proposal)
        return proposal

    def _next_stage(self) -> str | None:
        """The stage to choose from; None until an answer or a refit has come, or for good."""
        if self.has_asked_all:
            if not self.open and self.pending is None:
                self.stop_reason = EXHAUSTED
            return None
        if self._round.stage is None and not self._next_round():
            return None
        return self._round.stage

    def _next_round(self) -> bool:
        """Begin a round; if one chose nothing and nothing happened since, wait for an open answer, or stop (§7.7)."""
        if self._round.round_id > 0 and self._round.selected == 0 and not self._round.is_stale:
            if not self.open:
                self.stop_reason = "candidate_starvation"
            return False
        self._begin_round(self._round.round_id + 1)
        return True

    def _begin_round(self, round_id: int) -> None:
        if self._round.round_id > 0:
            self._complete = self._round
        self.ledger.wake()
        plan = None
        if self._other is None:
            if self.belief is None:
                self._refresh_anchors(self.ledger.mu)
            there = bool(self._anchors.any())
            plan = self.config.quotas(round_id, self.ledger.n, global_identified=self.identified, anchors=there)
            quota = {stage: plan.of(stage) for stage in STAGES}
        else:
            quota = {self.selector: self.config.round_pairs_target}
        self._round = Round(round_id, self.ledger.n, quota, plan)

    def _refresh_anchors(self, score: Floats) -> None:
        self._anchors = np.zeros(self.ledger.n, dtype=np.bool_)
        self._anchors[anchor_items(best_first(score, self._by_id), self.config)] = True

    def _choose(self, stage: str) -> tuple[tuple[int, int] | None, dict[str, Any]]:
        step = self.steps + 1
        scheduled = self._scheduled(stage)
        if self._other is not None:
            pair, fields = choose_by(self._other, self.ledger, self.config, (self.seed, step))
            return pair, scheduled | fields
        scene = self._scene()
        pair, fields = choose_in_stage(scene, self._round, stage, (self.seed, step))
        if pair is not None:
            i, j = pair
            fields |= {
                "used_in_round_i": int(self._round.used[i]), "used_in_round_j": int(self._round.used[j]),
                "is_anchor_i": bool(scene.is_anchor[i]), "is_anchor_j": bool(scene.is_anchor[j]),
                "stratum_i": int(scene.stratum[i]), "stratum_j": int(scene.stratum[j]),
                "dist_stratum": int(abs(scene.stratum[i] - scene.stratum[j])),
            }  # fmt: skip
        return pair, scheduled | fields

    def _scheduled(self, stage: str) -> dict[str, Any]:
        round_, links = self._round, stage in _OUTSIDE
        return {
            "round_id": round_.round_id,
            "round_stage": stage,
            "pair_type": stage,
            "stage_committed_so_far": None if links else round_.done[stage],
            "stage_quota": None if links else round_.quota[stage],
        }

    def _scene(self) -> Scene:
        order = best_first_again(self.ledger.mu, self._order, self._id_place)
        if order is None:
            order = best_first(self.ledger.mu, self._by_id)
        self._order = order
        rank, stratum = np.empty_like(order), np.empty_like(order)
        rank[order] = np.arange(1, len(order) + 1)
        stratum[order] = self._strata
        left = self.config.star_override_budget_per_round - self._round.overrides
        return Scene(
            self.ledger, self.config, order, rank, stratum, self._anchors, self._id_place, self.belief,
            self.identified, left, self._boundary.is_due(self.config.boundary_frac),
        )  # fmt: skip

    def _proposal(self, pair: tuple[int, int], fields: Mapping[str, Any]) -> Proposal:
        i, j = pair
        ledger = self.ledger
        first, second = ledger.order(i, j)
        known = {
            "step_id": self.steps + 1, "i": i + 1, "j": j + 1, "A": first + 1, "B": second + 1,
            "A_id": self.ids[first], "B_id": self.ids[second],
            "deg_i": int(ledger.degree[i]), "deg_j": int(ledger.degree[j]),
            "recent_deg_i": int(ledger.recent[i]), "recent_deg_j": int(ledger.recent[j]),
            "mu_i": float(ledger.mu[i]), "mu_j": float(ledger.mu[j]),
            "sigma_i": float(ledger.sigma[i]), "sigma_j": float(ledger.sigma[j]),
        }  # fmt: skip
        return Proposal(self.steps + 1, first, second, known | self._moment() | dict(fields))

    def _moment(self) -> dict[str, Any]:
        known = None if self.belief is None else self.belief.refit_id
        return {
            "proposed_after": self.rows,
            "in_flight": len(self.open),
            "belief_refit_id": known,
            "selector": self.selector,
        }

    # What happens

    def admit(self, proposal: Proposal) -> None:
        """A proposal is being asked; :meth:`propose` has done this, a replay does it with what was logged."""
        self._look_again(proposal.fields)
        self._admit(proposal)

    def _look_again(self, fields: Mapping[str, Any]) -> None:
        """In a replay, let a selector that learns from looking look as it did when the step was chosen."""
        if self.selector != "information" or self._other is None or fields["round_stage"] in _OUTSIDE:
            return
        if fields["round_id"] > self._round.round_id:
            self._begin_round(fields["round_id"])
        for fallback in fields["fallback_path"].split(">"):
            look(self._other, self.ledger, self.config, (self.seed, fields["step_id"]), fallback)

    def _admit(self, proposal: Proposal) -> None:
        a, b, fields = proposal.first, proposal.second, proposal.fields
        self.steps = max(self.steps, proposal.step_id)
        if fields["round_stage"] == WARM_START:
            self._warm.admit(fields["i"] - 1, fields["j"] - 1)
        elif fields["round_stage"] != REVERSE:
            if fields["round_id"] > self._round.round_id:
                self._begin_round(fields["round_id"])
            self._round.admit(fields["round_stage"], a, b, override=bool(fields["star_override_used"]))
            self._boundary.count(fields, self.config.boundary_frac)
        self.open[proposal.step_id] = proposal
        self.ledger.open(a, b)
        if self._other is not None:
            self._other.opened(self.ledger, a, b)

    def _starved(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        row = {"step_id": self.steps + 1, "status": "starved", **self._moment(), **fields}
        for name in ("star_override_used", "star_override_reason", "is_explore_step"):
            row.pop(name, None)
        self._starve(row)
        return row

    def starve(self, row: Mapping[str, Any]) -> None:
        """A stage found nothing; :meth:`propose` has done this, a replay does it with what was logged."""
        self._look_again(row)
        self._starve(row)

    def _starve(self, row: Mapping[str, Any]) -> None:
        if row["round_id"] > self._round.round_id:
            self._begin_round(row["round_id"])
        self.steps = max(self.steps, row["step_id"])
        self._round.starve(row["round_stage"])
        self._count(row)

    def record(
        self,
        step_id: int,
        y: float | None,
        *,
        invalid_reason: str | None = None,
        invalid_kind: str | None = None,
        orders_agree: bool | None = None,
        probability: float | None = None,
        judge: str | None = None,
    ) -> dict[str, Any]:
        """An answer has come.

        Args:
            step_id: of the proposal.
            y: 1 when the first won, 0 when the second did, 0.5 for a tie where the setting ``ties`` is ``half``, None
                when there is no valid answer.
            invalid_reason: why there is none.
            invalid_kind: ``abstention`` (the default), ``failure`` (this pair cannot be judged) or ``error`` (the judge
                could not be reached, which counts against no pair and no text).
            orders_agree: of a judge that is asked in both orders at once, whether both gave the same answer.
            probability: that the first is better, where the judge says so; used if the setting ``answer`` asks for it.
            judge: who of a panel answered.

        Returns:
            The row of the step log, without its timestamp.
        """
        if step_id not in self.open:
            raise InputError(f"step {step_id!r} is not waiting for an answer")
        if y not in ((0, 1, None, 0.5) if self.counts_ties else (0, 1, None)):
            raise InputError(f"Y must be 1, 0{', 0.5' * self.counts_ties} or None, not {y!r}")
        proposal = self.open.pop(step_id)
        row = dict(proposal.fields) | {"status": "invalid" if y is None else "committed", "Y": _plain(y)}
        if y is None:
            self._reject(proposal, row, invalid_reason, invalid_kind or "abstention")
        else:
            if orders_agree is not None:
                row["orders_agree"] = orders_agree
            if judge is not None:
                row["judge"] = judge
            if probability is not None and self.btl.answer == "probability":
                row["probability"] = require_probability(probability, "probability")
            self._commit(proposal, row, row["Y"])
        self._count(row)
        self._round.is_stale = True
        self._ask_for_refit()
        return row

    def _commit(self, proposal: Proposal, row: dict[str, Any], y: float) -> None:
        a, b = proposal.first, proposal.second
        self.ledger.commit(a, b, y, **{name: row.get(name) for name in ("orders_agree", "probability", "judge")})
        row["pair_id"] = self.committed
        if row["round_stage"] == WARM_START:
            self._warm.committed()
        elif row["round_stage"] == REVERSE:
            self._reversals += 1
        elif row["round_id"] == self._round.round_id:
            self._round.committed(row["round_stage"])
        if self._other is not None:
            self._other.committed(self.ledger, a, b, y)
        p = win_probability(row["mu_i"], row["sigma_i"], row["mu_j"], row["sigma_j"])
        row |= {"p_ij": p, "U0_ij": p * (1 - p)}
        self.failures_in_row = 0

    def _reject(self, proposal: Proposal, row: dict[str, Any], reason: str | None, kind: str) -> None:
        a, b = proposal.first, proposal.second
        limits = self.config.max_invalid_per_pair, self.config.max_invalid_per_item
        fallen = self.ledger.reject(a, b, is_error=kind == "error", pair_limit=limits[0], item_limit=limits[1])
        row["invalid_reason"] = reason or "the judge gave no valid answer"
        row["invalid_kind"] = kind
        row["set_aside"] = ", ".join(self.ids[item] for item in fallen) or None
        self._release(proposal)
        if fallen:
            self._warm.mend(self.ledger)
        if self._other is not None:
            self._other.dropped(self.ledger, a, b)
        self.failures_in_row += 1

    def _release(self, proposal: Proposal) -> None:
        """A pair has no valid answer: it counts as not asked in its round, and another link takes its place."""
        fields = proposal.fields
        self._boundary.count(fields, self.config.boundary_frac, back=True)
        if fields["round_stage"] == WARM_START:
            self._warm.rejected(fields["i"] - 1, fields["j"] - 1, self.ledger)
        elif fields["round_stage"] != REVERSE and fields["round_id"] == self._round.round_id:
            again = int((fields.get("used_in_round_i") or 0) > 0) + int((fields.get("used_in_round_j") or 0) > 0)
            override = bool(fields["star_override_used"])
            stage = fields["round_stage"]
            self._round.rejected(stage, proposal.first, proposal.second, repeats=again, override=override)

    def _count(self, row: Mapping[str, Any]) -> None:
        self.rows += 1
        self._health.count(row)


def _plain(y: float | None) -> float | None:
    """Y as it is logged: a whole number, but for a tie."""
    return y if y is None or y == 0.5 else int(y)
