"""When a refit is due, what it is asked, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairscale.adaptive._changes import Changes
from pairscale.adaptive._health import Health
from pairscale.adaptive._repeats import ENOUGH_REPEATS, REVERSE, all_asked, has_reversible
from pairscale.adaptive.refits import Belief, LagPoint, RefitRequest

if TYPE_CHECKING:
    from pairscale.adaptive._round import Round
    from pairscale.core.arrays import Floats

__all__ = ["Refitting"]

LONG_APART = 1_000  # comparisons between two refits, from which on a refit may take longer than the open answers


class Refitting(Changes):
    """The part of the engine that refits; see :class:`pairscale.adaptive.engine.Engine` for its attributes."""

    seed: int
    selector: str
    rows: int
    n_refits: int
    refit_lag: int
    near_stop: bool
    _effective_at: int
    _refitted_at: int
    _reversals: int
    _passed: list[LagPoint]
    _health: Health
    _complete: Round | None

    def _refresh_anchors(self, score: Floats) -> None:
        raise NotImplementedError

    def set_lag(self, concurrency: int) -> None:
        """Let a refit take effect later, so that questions continue while it runs; with one open at a time, at once.

        It has as many answers' time as there are questions open. Where refits are 1,000 comparisons or more apart, they
        take long, and have a tenth of that.
        """
        apart = self.btl.refit_pairs_target
        share = apart // 10 if apart >= LONG_APART else 0
        self.refit_lag = 0 if concurrency == 1 else max(concurrency, share)

    @property
    def must_apply(self) -> bool:
        """Whether nothing may happen before the pending refit is applied."""
        return self.pending is not None and self.ledger.committed >= self._effective_at

    def _ask_for_refit(self) -> None:
        """When enough comparisons are new (§4.3), and not during the warm start.

        Or when nothing new can be asked any more: the run ends on how the answers agree only if a refit of all of them
        says so.
        """
        if self.pending is not None or not self._warm.done:
            return
        if self.ledger.committed - self._refitted_at >= self.btl.refit_pairs_target:
            self._request(self.refit_lag)
        else:
            self._ask_at_end()

    def _ask_at_end(self) -> None:
        if self.ledger.committed > self._refitted_at and not self.open and self.has_asked_all:
            if not self._reverses_next:
                self._request(0)

    def _request(self, lag: int) -> None:
        self.pending = self.refit_request()
        self._refitted_at = self.ledger.committed
        self._effective_at = self._refitted_at + lag
        self._health = Health()

    # What may be asked again

    @property
    def has_asked_all(self) -> bool:
        """Whether every pair was asked, and the judge repeats itself: nothing new can be asked."""
        return self.ledger.repeats_are_worthless and self._warm.done and all_asked(self.ledger)

    @property
    def _reverses_next(self) -> bool:
        """Whether the next step asks an earlier pair again in the other order."""
        return self._is_reversal_due and has_reversible(self.ledger)

    @property
    def _is_reversal_due(self) -> bool:
        """Whether reversed pairs are behind their share, or too few have shown that the judge repeats itself."""
        ledger = self.ledger
        waiting = sum(proposal.fields["round_stage"] == REVERSE for proposal in self.open.values())
        share = self.config.reverse_rate * (ledger.committed + len(self.open) + 1)
        if int(share + 1e-9) > self._reversals + waiting:
            return True
        return ledger.repeats.n_repeats + waiting < ENOUGH_REPEATS and self.has_asked_all

    def refit_request(self) -> RefitRequest:
        """All that a refit of what is committed now needs to know."""
        ledger = self.ledger
        over = self._round.round_id > 0 and self._round.stage is None
        complete = self._round if over else self._complete
        recent = ledger.recent
        return RefitRequest(
            refit_id=self.n_refits + 1,
            ids=tuple(self.ids),
            **{name: getattr(ledger, name) for name in ("history", "mu", "sigma", "degree", "first", "second")},
            n_unique_pairs=ledger.n_unique_pairs,
            step_id_at_refit=self.steps,
            round_id_at_refit=0 if complete is None else complete.round_id,
            quotas=None if complete is None else complete.plan,
            health=self._health.columns()
            | {
                "recent_deg_median_since_last_refit": float(np.median(recent)),
                "recent_deg_max_since_last_refit": int(recent.max()),
            }
            | ledger.repeats.columns(ledger.committed),
            new_pairs=ledger.committed - self._refitted_at,
            near_stop=self.near_stop,
            global_identified=self.identified,
            lag=self._lag_point(),
            seed=self.seed,
            selector=self.selector,
            adaptive=self.config,
            btl=self.btl,
            withdrawn=ledger.withdrawn,
            probability=ledger.probabilities if self.btl.answer == "probability" else None,
            judged_by=ledger.judged_by if self.btl.judges == "slopes" else None,
            judges=tuple(ledger.judges),
        )

    def _lag_point(self) -> LagPoint | None:
        lag = self.btl.stability_lag
        return self._passed[-lag] if len(self._passed) >= lag else None

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
        self._passed.append(LagPoint(belief.refit_id, belief.theta_mean))
        self._agreement = belief.repeat_agreement  # of the judge, whatever items joined meanwhile
        self._settle_discount()
        if len(belief.theta_mean) < self.ledger.n:
            return  # items joined meanwhile: it says nothing of them, so nothing is decided on it
        self.belief, self.identified = belief, belief.global_identified
        if self._other is None:
            self._refresh_anchors(belief.theta_mean)
        self.stop_reason = stop_reason
        if stop_reason is None:
            self._ask_at_end()
