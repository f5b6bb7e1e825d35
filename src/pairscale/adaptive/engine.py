"""The engine of adaptive ranking: which pair next, and what follows from its answer. Pure: no clock, no file, no judge.

Everything that is known follows from a sequence of events: a pair is *proposed*, its answer is *recorded*, a refit is
*applied*; and, from outside, items *join* or are *withdrawn*, and settings change. A run is resumed by letting them
happen again from the log, and audited by choosing again in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pairscale.adaptive.config import STOP_SETTINGS, AdaptiveConfig, BTLConfig
from pairscale.adaptive.gates import stop_decision
from pairscale.adaptive.logs import health_columns
from pairscale.adaptive.refits import Belief, LagPoint, RefitRequest
from pairscale.adaptive.selection.ledger import ENOUGH_REPEATS, FIRST_ANSWERS, Ledger, WarmStart
from pairscale.adaptive.selection.pollitt import (
    STAGES,
    BoundarySlots,
    Round,
    Scene,
    anchor_items,
    best_first,
    choose_in_stage,
    strata_by_rank,
)
from pairscale.adaptive.selectors import (
    POLLITT,
    Attempt,
    OwnSelector,
    choose_by,
    make_selector,
    named_selector,
    selector_name,
)
from pairscale.core.errors import InputError
from pairscale.core.options import require_int, require_probability
from pairscale.models.trueskill import win_probability

if TYPE_CHECKING:
    from pairscale.adaptive.config import Settings
    from pairscale.adaptive.logs import Columns, Row
    from pairscale.adaptive.selection.ledger import Flags, Pair
    from pairscale.core.arrays import Floats, Ints

WARM_START = "warm_start"
REVERSE = "reverse"
"""The stage of a step that asks an earlier pair again in the other order."""

EXHAUSTED = "pairs_exhausted"
"""The reason of a stop because every pair was asked, and the judge repeats itself."""

FEWEST = 3
"""Comparisons that a fit needs: one for each parameter that all items share (spread, lapse, position)."""

_REVERSAL = 1000  # seeds the draw of a pair to reverse
_LONG_APART = 1_000  # comparisons between two refits, from which on a refit may take longer than the open answers


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pair to ask about.

    Attributes:
        step_id: which step.
        first: the number (from 0) of the item to show first.
        second: of the other.
        fields: the columns of the step log that are known already.
    """

    step_id: int
    first: int
    second: int
    fields: Row


@dataclass(frozen=True, slots=True)
class Starved:
    """A step that found nothing to ask; ask for the next one.

    Attributes:
        row: its row of the step log.
    """

    row: Row


def uid_of(step_id: int) -> str:
    """The name of a step's question in the run file."""
    return f"step-{step_id:06d}"


class Engine:
    """The state of a run, and its verbs: :meth:`propose`, :meth:`record` and :meth:`apply`.

    Attributes:
        ids: the items, in the order in which they came in.
        seed: of every choice.
        chooser: who chooses.
        selector: the same by name: ``pollitt``, ``random``, ``nearest``, ``information``, or one of your own.
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
        adaptive_config: Settings | None = None,
        btl_config: Settings | None = None,
        mu: Floats | None = None,
        sigma: Floats | None = None,
    ) -> None:
        if len(ids) < 2:
            raise InputError(f"ranking needs at least two texts, not {len(ids)}")
        self.chooser = named_selector(selector)
        self.seed = require_int(seed, "seed", least=0)
        self.selector = selector_name(self.chooser)
        self._selector = make_selector(self.chooser, self)
        self.ids: list[str] = []
        self._settle_size(ids, adaptive_config, btl_config)
        self.ledger = Ledger(len(ids), self.config.W_cap, mu, sigma)
        self.open: dict[int, Proposal] = {}
        self.rows = self.steps = self.n_refits = self.refit_lag = self.failures_in_row = 0
        self.pending: RefitRequest | None = None
        self.belief: Belief | None = None
        self.identified = self.near_stop = False
        self.stop_reason: str | None = None
        self._effective_at = self._refitted_at = self._reversals = 0
        self._agreement = 0.0
        self._passed: list[LagPoint] = []
        self._new_rows: list[Row] = []  # since the last refit
        is_aimed = self.config.top is not None and self.selector == "information"
        self._warm = WarmStart(len(ids), np.random.default_rng((self.seed, 0)), is_chain=not is_aimed)
        self._round = Round(0, len(ids), {}, None)
        self._complete = self._round
        self._boundary = BoundarySlots()
        self._anchors: Flags = np.zeros(len(ids), dtype=np.bool_)
        self._settle_worth()
        self._selector.joined(self.ledger)

    def _settle_size(self, more: Iterable[str], adaptive_config: Settings | None, btl_config: Settings | None) -> None:
        """Take in items and settings: what is not given follows from the number of items."""
        self._given = (adaptive_config, btl_config)
        self.ids += more
        n = len(self.ids)
        self.btl = BTLConfig.for_items(n, btl_config)
        self.config = AdaptiveConfig.for_items(n, adaptive_config, refit_pairs_target=self.btl.round_basis)
        if self.config.discount_repeats and self.btl.repeats == "independent":
            raise InputError(
                "adaptive_config: discount_repeats needs to know how far repeats agree; "
                "give repeats='learned' (or a number) in btl_config as well"
            )
        self._by_id: Ints = np.array(sorted(range(n), key=self.ids.__getitem__), dtype=np.int64)
        self._id_place: Ints = np.argsort(self._by_id)
        self._strata = strata_by_rank(n, self.config)

    def _settle_worth(self) -> None:
        """Tell the selectors what counts, and how much less a repeat is worth."""
        self.ledger.top = self.config.top
        self.ledger.counts_ranks = self.config.criterion == "ranks"
        self.ledger.discount = self._agreement if self.config.discount_repeats else 0.0

    # What it knows

    @property
    def committed(self) -> int:
        """How many comparisons are committed."""
        return self.ledger.committed

    @property
    def stage(self) -> str:
        """The stage that the next pair will come from, as far as that is known."""
        return (self._round.stage or "local_link") if self._warm.done else WARM_START

    @property
    def can_fit(self) -> bool:
        """Whether there are as many comparisons as the model needs: they tie all items together, or are three."""
        return self._warm.done or self.committed >= FEWEST

    @property
    def is_failing(self) -> bool:
        """Whether the judge has given no valid answer for too long."""
        return self.failures_in_row >= self.config.max_failures_in_row

    @property
    def is_flipping(self) -> bool:
        """Whether the judge changes its answer with the order too often."""
        return self.ledger.repeats.flips_more_than(self.config.flip_share_max)

    @property
    def lacks_probabilities(self) -> bool:
        """Whether probabilities are wanted, and the first answers have none."""
        wanted = self.btl.answer == "probability" and self.committed >= FIRST_ANSWERS
        return wanted and all(probability is None for probability in self.ledger.probabilities)

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
    def withdrawn(self) -> list[str]:
        """Items that were withdrawn."""
        return [self.ids[item] for item in np.flatnonzero(self.ledger.withdrawn)]

    @property
    def has_asked_all(self) -> bool:
        """Whether every pair was asked, and the judge repeats itself: nothing new can be asked."""
        return self.ledger.repeats_are_worthless and self._warm.done and self.ledger.all_asked()

    # The next pair

    def propose(self) -> Proposal | Starved | None:
        """The next pair; or a step that found none; or nothing, until an answer or a refit has come, or for good."""
        if self.stop_reason is not None or self.must_apply:
            return None
        if not self._warm.done:  # §3.1
            return self._unchosen(self._warm.queue[0], WARM_START) if self._warm.queue else None
        reversible = self._to_reverse()
        if reversible:  # outside of the round's quotas
            rng = np.random.default_rng((self.seed, self.steps + 1, _REVERSAL))
            return self._unchosen(reversible[rng.integers(len(reversible))], REVERSE)
        stage = self._next_stage()
        if stage is None:
            return None
        pair, fields = self._choose(stage)
        if pair is not None:
            return self._proposed(pair, fields)
        row = {"step_id": self.steps + 1, "status": "starved", **self._moment(), **fields}
        for name in ("star_override_used", "star_override_reason", "is_explore_step"):
            row.pop(name, None)
        self.starve(row)
        return Starved(row)

    def _unchosen(self, pair: Pair, stage: str) -> Proposal:
        """A pair that no selector chose."""
        fields = {
            "is_explore_step": False, "candidate_starved": False, "fallback_used": "base", "fallback_path": "base",
            "star_override_used": False, "repeats_allowed": False,
        }  # fmt: skip
        return self._proposed(pair, fields | self._scheduled(stage))

    def _to_reverse(self) -> list[Pair]:
        """The pairs to draw from when the next step asks one again in the other order; none when it does not.

        It does when reversed pairs are behind their share, or too few have shown that the judge repeats itself. Where
        repeats are discounted, a judge that repeats itself is asked half as many.
        """
        ledger = self.ledger
        waiting = sum(proposal.fields["round_stage"] == REVERSE for proposal in self.open.values())
        share = self.config.reverse_rate * (1 - ledger.discount / 2) * (ledger.committed + len(self.open) + 1)
        is_due = int(share + 1e-9) > self._reversals + waiting
        if is_due or (ledger.repeats.n_repeats + waiting < ENOUGH_REPEATS and self.has_asked_all):
            return ledger.reversible()
        return []

    def _next_stage(self) -> str | None:
        """The stage to choose from; None until an answer or a refit has come, or for good (§7.7)."""
        if self.has_asked_all:
            if not self.open and self.pending is None:
                self.stop_reason = EXHAUSTED
            return None
        if self._round.stage is None and not self._next_round():
            return None
        return self._round.stage

    def _next_round(self) -> bool:
        """Begin a round; if one chose nothing and nothing happened since, wait for an open answer, or stop."""
        if self._round.round_id > 0 and self._round.selected == 0 and not self._round.is_stale:
            if not self.open:
                self.stop_reason = "candidate_starvation"
            return False
        self._begin_round(self._round.round_id + 1)
        return True

    def _begin_round(self, round_id: int) -> None:
        """Begin this round, unless it has begun."""
        if round_id <= self._round.round_id:
            return
        self._complete = self._round
        self.ledger.wake()
        plan = None
        quota = {self.selector: self.config.round_pairs_target}
        if self.chooser == POLLITT:
            if self.belief is None:
                self._refresh_anchors(self.ledger.mu)
            has_anchors = bool(self._anchors.any())
            plan = self.config.quotas(round_id, self.ledger.n, global_identified=self.identified, anchors=has_anchors)
            quota = {stage: plan[stage] for stage in STAGES}
        self._round = Round(round_id, self.ledger.n, quota, plan)

    def _refresh_anchors(self, score: Floats) -> None:
        self._anchors = np.zeros(self.ledger.n, dtype=np.bool_)
        self._anchors[anchor_items(best_first(score, self._by_id), self.config)] = True

    def _choose(self, stage: str) -> Attempt:
        seeds = (self.seed, self.steps + 1)
        scheduled = self._scheduled(stage)
        if self.chooser != POLLITT:
            pair, fields = choose_by(self._selector, self.ledger, self.config, seeds)
            return Attempt(pair, scheduled | fields)
        scene = self._scene()
        pair, fields = choose_in_stage(scene, self._round, stage, seeds)
        if pair is not None:
            for side, item in zip("ij", pair, strict=True):
                fields[f"used_in_round_{side}"] = int(self._round.used[item])
                fields[f"is_anchor_{side}"] = bool(scene.is_anchor[item])
                fields[f"stratum_{side}"] = int(scene.stratum[item])
            fields["dist_stratum"] = abs(fields["stratum_i"] - fields["stratum_j"])
        return Attempt(pair, scheduled | fields)

    def _scene(self) -> Scene:
        order = best_first(self.ledger.mu, self._by_id)
        rank = np.argsort(order) + 1
        overrides_left = self.config.star_override_budget_per_round - self._round.overrides
        return Scene(
            self.ledger, self.config, order, rank, self._strata[rank - 1], self._anchors, self._id_place, self.belief,
            self.identified, overrides_left, self._boundary.is_due(self.config.boundary_frac),
        )  # fmt: skip

    def _scheduled(self, stage: str) -> Columns:
        # The warm start and reversals are in no round's plan.
        return {
            "round_id": self._round.round_id,
            "round_stage": stage,
            "pair_type": stage,
            "stage_committed_so_far": self._round.done.get(stage),
            "stage_quota": self._round.quota.get(stage),
        }

    def _proposed(self, pair: Pair, fields: Row) -> Proposal:
        ledger = self.ledger
        first, second = ledger.order(*pair)
        columns: Columns = {
            "step_id": self.steps + 1, "A": first + 1, "B": second + 1, "A_id": self.ids[first],
            "B_id": self.ids[second],
        }  # fmt: skip
        for side, item in zip("ij", pair, strict=True):
            columns[side] = item + 1
            columns[f"deg_{side}"] = int(ledger.degree[item])
            columns[f"recent_deg_{side}"] = int(ledger.recent[item])
            columns[f"mu_{side}"] = float(ledger.mu[item])
            columns[f"sigma_{side}"] = float(ledger.sigma[item])
        proposal = Proposal(self.steps + 1, first, second, columns | self._moment() | dict(fields))
        self.admit(proposal)
        return proposal

    def _moment(self) -> Columns:
        return {
            "proposed_after": self.rows,
            "in_flight": len(self.open),
            "belief_refit_id": None if self.belief is None else self.belief.refit_id,
            "selector": self.selector,
        }

    # What happens

    def admit(self, proposal: Proposal) -> None:
        """A proposal is being asked; :meth:`propose` has done this, a replay does it with what was logged."""
        a = proposal.first
        b = proposal.second
        fields = proposal.fields
        self.steps = max(self.steps, proposal.step_id)
        if fields["round_stage"] == WARM_START:
            self._warm.admit(fields["i"] - 1, fields["j"] - 1)
        elif fields["round_stage"] != REVERSE:
            self._begin_round(fields["round_id"])
            self._round.admit(fields["round_stage"], a, b, override=bool(fields["star_override_used"]))
            self._boundary.count(fields, self.config.boundary_frac)
        self.open[proposal.step_id] = proposal
        self.ledger.open(a, b)
        self._selector.opened(self.ledger, a, b)

    def starve(self, row: Row) -> None:
        """A stage found nothing; :meth:`propose` has done this, a replay does it with what was logged."""
        self._begin_round(row["round_id"])
        self.steps = max(self.steps, row["step_id"])
        self._round.starve(row["round_stage"])
        self._count(row)

    def _count(self, row: Row) -> None:
        self.rows += 1
        self._new_rows.append(row)

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
    ) -> Columns:
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
        if y not in (0, 1, None) and not (y == 0.5 and self.counts_ties):
            raise InputError(f"Y must be 1, 0{', 0.5' * self.counts_ties} or None, not {y!r}")
        proposal = self.open.pop(step_id)
        row = dict(proposal.fields) | {"status": "invalid" if y is None else "committed", "Y": y}
        if y is None:
            self._reject(proposal, row, invalid_reason, invalid_kind or "abstention")
        else:
            row["Y"] = y if y == 0.5 else int(y)
            if self.btl.answer != "probability":
                probability = None
            elif probability is not None:
                require_probability(probability, "probability")
            more = {"orders_agree": orders_agree, "judge": judge, "probability": probability}
            self._commit(proposal, row, more)
        self._count(row)
        self._round.is_stale = True
        self._ask_for_refit()
        return row

    def _commit(self, proposal: Proposal, row: Columns, more: Columns) -> None:
        a = proposal.first
        b = proposal.second
        y = row["Y"]
        self.ledger.commit(a, b, y, **more)
        row |= {name: value for name, value in more.items() if value is not None}
        row["pair_id"] = self.committed
        if row["round_stage"] == WARM_START:
            self._warm.committed()
        elif row["round_stage"] == REVERSE:
            self._reversals += 1
        elif row["round_id"] == self._round.round_id:
            self._round.committed(row["round_stage"])
        self.ledger.is_linked = self._warm.done
        self._selector.committed(self.ledger, a, b, y)
        p = win_probability(row["mu_i"], row["sigma_i"], row["mu_j"], row["sigma_j"])
        row |= {"p_ij": p, "U0_ij": p * (1 - p)}
        self.failures_in_row = 0

    def _reject(self, proposal: Proposal, row: Columns, reason: str | None, kind: str) -> None:
        fallen = self.ledger.reject(proposal.first, proposal.second, self.config, is_error=kind == "error")
        row["invalid_reason"] = reason or "the judge gave no valid answer"
        row["invalid_kind"] = kind
        row["set_aside"] = ", ".join(self.ids[item] for item in fallen) or None
        self._release(proposal)
        if fallen:
            self._warm.mend(self.ledger)
        self.failures_in_row += 1

    def _release(self, proposal: Proposal) -> None:
        """A pair has no valid answer: it counts as not asked in its round, and another link takes its place."""
        fields = proposal.fields
        stage = proposal.fields["round_stage"]
        self._boundary.count(fields, self.config.boundary_frac, back=True)
        if stage == WARM_START:
            self._warm.rejected(fields["i"] - 1, fields["j"] - 1, self.ledger)
        elif stage != REVERSE and fields["round_id"] == self._round.round_id:
            again = sum((fields.get(name) or 0) > 0 for name in ("used_in_round_i", "used_in_round_j"))
            override = bool(fields["star_override_used"])
            self._round.rejected(stage, proposal.first, proposal.second, repeats=again, override=override)
        self._selector.dropped(self.ledger, proposal.first, proposal.second)

    # Refits

    def set_lag(self, concurrency: int) -> None:
        """Let a refit take effect later, so that questions continue while it runs; with one open at a time, at once.

        It has as many answers' time as there are questions open. Where refits are 1,000 comparisons or more apart, they
        take long, and have a tenth of that.
        """
        apart = self.btl.refit_pairs_target
        share = apart // 10 if apart >= _LONG_APART else 0
        self.refit_lag = 0 if concurrency == 1 else max(concurrency, share)

    @property
    def must_apply(self) -> bool:
        """Whether nothing may happen before the pending refit is applied."""
        return self.pending is not None and self.ledger.committed >= self._effective_at

    def _ask_for_refit(self, *, only_at_end: bool = False) -> None:
        """When enough comparisons are new (§4.3), and not during the warm start.

        Or when nothing new can be asked any more: the run ends on how the answers agree only if a refit of all of them
        says so.
        """
        if self.pending is not None or not self._warm.done:
            return
        new = self.ledger.committed - self._refitted_at
        apart = self.btl.refit_pairs_near_stop if self.near_stop else self.btl.refit_pairs_target
        is_due = new >= apart and not only_at_end
        if is_due or (new > 0 and not self.open and self.has_asked_all and not self._to_reverse()):
            self.pending = self.refit_request()
            self._refitted_at = self.ledger.committed
            self._effective_at = self._refitted_at + (self.refit_lag if is_due else 0)
            self._new_rows = []

    def refit_request(self) -> RefitRequest:
        """All that a refit of what is committed now needs to know."""
        ledger = self.ledger
        complete = self._round if self._round.stage is None else self._complete
        return RefitRequest(
            refit_id=self.n_refits + 1,
            ids=tuple(self.ids),
            history=ledger.history,
            **{name: getattr(ledger, name).copy() for name in ("mu", "sigma", "degree", "first", "second")},
            n_unique_pairs=ledger.n_unique_pairs,
            step_id_at_refit=self.steps,
            round_id_at_refit=complete.round_id,
            quotas=complete.plan,
            health={
                **health_columns(self._new_rows),
                "recent_deg_median_since_last_refit": float(np.median(ledger.recent)),
                "recent_deg_max_since_last_refit": int(ledger.recent.max()),
                **ledger.repeats.columns(ledger.committed),
            },
            new_pairs=ledger.committed - self._refitted_at,
            near_stop=self.near_stop,
            global_identified=self.identified,
            lag=self._lag_point(),
            seed=self.seed,
            selector=self.selector,
            adaptive=self.config,
            btl=self.btl,
            withdrawn=ledger.withdrawn.copy(),
            probability=tuple(ledger.probabilities) if self.btl.answer == "probability" else None,
            judged_by=tuple(ledger.judged_by) if self.btl.judges == "slopes" else None,
        )

    def _lag_point(self) -> LagPoint | None:
        """The refit that stability is measured against; where refits are unevenly spaced, by comparisons."""
        lag = self.btl.stability_lag
        if not self.btl.refit_often:
            return self._passed[-lag] if len(self._passed) >= lag else None
        latest = self.ledger.committed - lag * self.btl.refit_pairs_target
        return next((point for point in reversed(self._passed) if point.committed <= latest), None)

    def apply(self, belief: Belief, *, stop_reason: str | None) -> None:
        """A refit is ready: what it found guides the choices from here on, if its diagnostics pass.

        Args:
            belief: what it found.
            stop_reason: why the run stops here, if it does.
        """
        self.pending = None
        self.n_refits += 1
        self._round.is_stale = True
        self.near_stop = self.near_stop or belief.near_stop  # a refit may enter phase 3 and not pass its limits
        if not belief.passed:
            return
        self._passed.append(LagPoint(belief.refit_id, belief.theta_mean, self._refitted_at))
        self._agreement = belief.repeat_agreement  # of the judge, whatever items joined meanwhile
        self._settle_worth()
        if len(belief.theta_mean) < self.ledger.n:
            return  # items joined meanwhile: it says nothing of them, so nothing is decided on it
        self.belief = belief
        self.identified = belief.global_identified
        self._refresh_anchors(belief.theta_mean)
        self.stop_reason = stop_reason
        if stop_reason is None:
            self._ask_for_refit(only_at_end=True)

    # What changes a run from outside

    def configure(
        self,
        adaptive_config: Settings | None,
        btl_config: Settings,
        *,
        stop_reason: str | None = None,
    ) -> None:
        """Continue with other settings; a run that has stopped may continue with stricter ones.

        Args:
            adaptive_config: all that is given of the one; None leaves it, so that the pairs that are chosen from here
                on stay the same, as long as only the stop rule changes.
            btl_config: all that is given of the other.
            stop_reason: why the run stops here, if the last refit meets a new stop rule.
        """
        self._settle_size((), self._given[0] if adaptive_config is None else adaptive_config, btl_config)
        if adaptive_config is not None:
            self.ledger.resize_window(self.config.W_cap)
            self.ledger.forgive(self.config)
            self._settle_worth()
            self._round.is_stale = True
        if self.pending is not None:  # it is fitted, and decided on, by the settings that hold then
            self.pending = replace(self.pending, adaptive=self.config, btl=self.btl, lag=self._lag_point())
        self.stop_reason = stop_reason

    def stops_now(self, last: Row | None, new: BTLConfig) -> str | None:
        """Why a paused run stops at once under another rule; None when it continues until a refit meets the rule.

        It stops when its last refit would have stopped it: the refit passed with the effective sample size that a stop
        needs, it is of all items, and its figures meet the new limits. With another ``stability_lag``, those figures
        are not known before the next refit.

        Args:
            last: the row of the round log of its last refit that was no closing one.
            new: the configuration with the new rule.
        """
        if last is None or self.belief is None or self.pending is not None:
            return None
        if last["refit_id"] != self.belief.refit_id or new.stability_lag != self.btl.stability_lag:
            return None
        limits: Columns = {name: getattr(new, name) for name in STOP_SETTINGS}
        limits["ess_bulk_required"] = new.ess_bulk_min_near_stop
        limits["top_wrong_allowed"] = (self.config.top or 0) * new.top_wrong_max
        return stop_decision({**last, **limits})[1]

    def join(self, ids: Sequence[str], mu: Floats | None = None, sigma: Floats | None = None) -> None:
        """More items: they start from the prior, and are tied to others spread over the scale.

        The scale has to be found again with them, so what the last refit said guides no choice until the next one.
        """
        before = best_first(self.ledger.mu, self._by_id)
        before = before[~self.ledger.set_aside[before]]
        old = self.ledger.n
        self._settle_size(ids, *self._given)
        self.ledger.join(len(ids), self.config.W_cap, mu, sigma)
        self._warm.join(np.arange(old, self.ledger.n), before)
        self._round.used = np.pad(self._round.used, (0, len(ids)))
        self._anchors = np.pad(self._anchors, (0, len(ids)))
        self._round.is_stale = True
        self.belief = None
        self.identified = False
        self.stop_reason = None
        self._selector.joined(self.ledger)

    def withdraw(self, ids: Sequence[str], *, taken: int = 0) -> None:
        """Ask no more about some items: their comparisons stay, and a stop no longer depends on them.

        A question about one of them that has no answer yet is dropped; its step number is not used again.

        Args:
            ids: the items.
            taken: a step number up to which questions may have been asked; later steps have higher ones.

        Raises:
            InputError: when fewer than two would be left.
        """
        if len(self.ids) - len({*self.withdrawn, *ids}) < 2:
            raise InputError(f"{len(set(ids)):,} items cannot be withdrawn: a ranking needs at least two texts")
        self.ledger.withdraw([self.ids.index(name) for name in ids])
        for step_id, proposal in list(self.open.items()):
            if self.ledger.withdrawn[[proposal.first, proposal.second]].any():
                del self.open[step_id]
                self.ledger.drop(proposal.first, proposal.second)
                self._release(proposal)
        self._warm.mend(self.ledger)
        self.steps = max(self.steps, taken)
        if self.pending is not None:
            self.pending = replace(self.pending, withdrawn=self.ledger.withdrawn.copy())
        self._round.is_stale = True
