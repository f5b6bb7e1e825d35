"""What holds at every step of every run, whatever the settings, the selector, the judge and the order of answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairscale.adaptive.engine import Engine, Proposal, Starved
from pairscale.adaptive.logs import STEP_LOG, step_frame
from pairscale.adaptive.refits import Belief
from pairscale.models import trueskill
from tests.adaptive.cases import Case, cases
from tests.adaptive.driving import Run, apart, replay, state_of
from tests.adaptive.reference import PHI, connected

SLOW = settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
OUTSIDE = ("warm_start", "reverse")
SIZES = st.one_of(st.integers(2, 8), st.integers(2, 40))


# The recount: everything in a row from the rows before it


class Recount:
    """Goes through the rows of a run and says what there was when each step was chosen."""

    def __init__(self, case: Case, run: Run) -> None:
        self.case, self.run, self.rows = case, run, run.rows
        self.n, self.config = run.engine.ledger.n, run.engine.config
        self.place = {row["step_id"]: at for at, row in enumerate(run.rows)}

    def before(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return self.rows[: row["proposed_after"]]

    def committed(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return [other for other in self.before(row) if other["status"] == "committed"]

    def open(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Asked before this step, answered after it was chosen."""
        return [
            other
            for other in self.rows
            if other["status"] != "starved" and other["step_id"] < row["step_id"]
            and self.place[other["step_id"]] >= row["proposed_after"]
        ]  # fmt: skip

    def used(self, row: dict[str, Any], number: int) -> int:
        """Uses of an item in this round: committed or open ones."""
        there = [other for other in self.before(row) if other["status"] == "committed"] + self.open(row)
        mine = [other for other in there if other["round_id"] == row["round_id"]]
        return sum(number in (other["i"], other["j"]) for other in mine if other["round_stage"] not in OUTSIDE)

    def agreement(self, row: dict[str, Any]) -> float:
        """How far repeats agreed, by the refit that the step knew of."""
        known = [belief for _, belief, _ in self.run.refits if belief.refit_id == row["belief_refit_id"]]
        return known[0].repeat_agreement if known and self.config.discount_repeats else 0.0

    def identified(self, row: dict[str, Any]) -> bool:
        return any(
            belief.refit_id == row["belief_refit_id"] and belief.global_identified for _, belief, _ in self.run.refits
        )


def pairs_of(rows: list[dict[str, Any]]) -> Counter[frozenset[int]]:
    return Counter(frozenset((row["A"], row["B"])) for row in rows)


def involving(rows: list[dict[str, Any]], number: int) -> int:
    return sum(number in (row["A"], row["B"]) for row in rows)


def check_identity(log: Recount) -> None:
    """Step ids are contiguous; every row says what it is; pair ids count the committed ones (§10.1)."""
    rows = log.rows
    assert sorted(row["step_id"] for row in rows) == list(range(1, len(rows) + 1))
    ties = log.config.ties == "half"
    frame = step_frame(rows, ties=ties)
    assert dict(frame.schema) == STEP_LOG | ({"Y": pl.Float64()} if ties else {})
    assert all(set(row) <= set(STEP_LOG) for row in rows)
    committed = [row["pair_id"] for row in rows if row["status"] == "committed"]
    assert committed == list(range(1, log.run.engine.committed + 1))
    for row in rows:
        assert row["round_stage"] == row["pair_type"]
        assert row["candidate_starved"] is (row["status"] == "starved")
        if row["status"] == "starved":
            assert row["starvation_reason"] in ("no_candidates", "hard_filters", "duplicates", "star_caps")
            assert not {"i", "j", "A", "B", "Y", "pair_id", "deg_i", "p_ij", "star_override_used"} & set(row)
            continue
        assert row["A"] != row["B"]
        assert {row["A"], row["B"]} == {row["i"], row["j"]}
        assert isinstance(row["star_override_used"], bool)
        assert isinstance(row["is_explore_step"], bool)
        is_valid = row["status"] == "committed"
        assert (row["Y"] in ((0, 1, 0.5) if ties else (0, 1))) is is_valid
        for name in ("pair_id", "p_ij", "U0_ij"):
            assert (row.get(name) is not None) is is_valid
        assert (row.get("invalid_reason") is None) is is_valid
        if row["round_stage"] not in OUTSIDE:
            counts = [row[f"n_candidates_{name}"] for name in
                      ("generated", "after_hard_filters", "after_duplicates", "after_star_caps", "scored")]  # fmt: skip
            assert counts == sorted(counts, reverse=True)
            assert counts[-1] == counts[-2] > 0
            assert counts[2] - counts[3] == row["star_cap_rejects"]


def check_counts(log: Recount) -> None:
    """Degrees, recent degrees, stage counts and TrueSkill beliefs are those of a recount (§2.1)."""
    window = log.config.W_cap
    history: list[tuple[Any, ...]] = []
    mu = np.full(log.n + 1, trueskill.MU)
    sigma = np.full(log.n + 1, trueskill.SIGMA)
    at_row = [(mu.copy(), sigma.copy())]
    for row in log.rows:
        if row["status"] == "committed":
            one, two = (row["A"], row["B"]) if row["Y"] else (row["B"], row["A"])
            moved = trueskill.update_tie if row["Y"] == 0.5 else trueskill.update
            after = moved(mu[one], sigma[one], mu[two], sigma[two])
            mu[one], sigma[one], mu[two], sigma[two] = (
                after.mu_winner, after.sigma_winner, after.mu_loser, after.sigma_loser
            )  # fmt: skip
            history.append((row["A"], row["B"], -1 if row["Y"] == 0.5 else row["Y"]))
        at_row.append((mu.copy(), sigma.copy()))
    for row in log.rows:
        committed = log.committed(row)
        if row["round_stage"] not in OUTSIDE:
            same = [o for o in committed if (o["round_id"], o["round_stage"]) == (row["round_id"], row["round_stage"])]
            assert row["stage_committed_so_far"] == len(same)
            assert row["stage_committed_so_far"] < row["stage_quota"]
        if row["status"] == "starved":
            continue
        assert row["in_flight"] == len(log.open(row)) < log.case.concurrency
        for side in "ij":
            number = row[side]
            assert row[f"deg_{side}"] == involving(committed, number)
            assert row[f"recent_deg_{side}"] == involving(committed[-window:], number)
            assert row[f"mu_{side}"] == at_row[row["proposed_after"]][0][number]
            assert row[f"sigma_{side}"] == at_row[row["proposed_after"]][1][number]
        if row["status"] == "committed":
            t = (row["mu_i"] - row["mu_j"]) / np.sqrt(row["sigma_i"] ** 2 + row["sigma_j"] ** 2 + 2 * trueskill.BETA**2)
            assert row["p_ij"] == pytest.approx(PHI(t), abs=1e-12)
            assert row["U0_ij"] == pytest.approx(row["p_ij"] * (1 - row["p_ij"]), abs=1e-15)
    ledger = log.run.engine.ledger
    for item in range(log.n):
        assert ledger.first[item] == sum(a == item + 1 for a, _, _ in history)
        assert ledger.second[item] == sum(b == item + 1 for _, b, _ in history)
    assert (ledger.degree == ledger.first + ledger.second).all()
    assert ledger.n_unique_pairs == len({frozenset(pair[:2]) for pair in history})
    assert [(a + 1, b + 1, y) for a, b, y in ledger.history.tolist()] == history
    assert ledger.mu.tolist() == mu[1:].tolist()


def check_order(log: Recount) -> None:
    """A repeat reverses the last committed order of its pair; else the order balances positions (§7.6)."""
    for row in log.rows:
        if row["status"] == "starved":
            continue
        met = [(o["A"], o["B"]) for o in log.committed(row) if {o["A"], o["B"]} == {row["A"], row["B"]}]
        if met:
            assert (row["A"], row["B"]) == met[-1][::-1]
            continue
        there = log.committed(row) + log.open(row)
        lead = {x: sum((o["A"] == x) - (o["B"] == x) for o in there) for x in (row["A"], row["B"])}
        assert lead[row["A"]] <= lead[row["B"]]
        if lead[row["A"]] == lead[row["B"]]:
            assert row["A"] < row["B"]


def check_duplicates(log: Recount) -> None:
    """No pair is asked while it is open, resting or given up, nor too often (§5.3.2, decisions 8 and 13)."""
    config = log.config
    invalid: Counter[frozenset[int]] = Counter()
    chosen = [row for row in log.rows if row["status"] != "starved"]
    for row in sorted(chosen, key=lambda row: row["step_id"]):
        pair = frozenset((row["A"], row["B"]))
        assert pair not in pairs_of(log.open(row))
        before = log.before(row)
        aside = {name for o in before for name in (o.get("set_aside") or "").split(", ") if name}
        assert not {row["A_id"], row["B_id"]} & aside
        refused = [o for o in before if o["status"] == "invalid" and {o["A"], o["B"]} == set(pair)]
        invalid[pair] = sum(o["invalid_kind"] == "abstention" for o in refused)
        assert invalid[pair] < config.max_invalid_per_pair
        answered = [o["step_id"] for o in log.committed(row) if {o["A"], o["B"]} == set(pair)]
        if row["round_stage"] != "warm_start":  # it rests for the round, or until the warm start gets an answer
            assert all(o["round_id"] < row["round_id"] or o["step_id"] < max(answered, default=0) for o in refused)
        seen = len(answered)
        if row["round_stage"] in OUTSIDE:
            assert seen == (row["round_stage"] == "reverse")  # links are new, and reversed pairs have one answer
            continue
        if log.agreement(row) >= 0.95:
            assert seen == 0
        relaxed = row["fallback_used"] == "dup_relax"
        assert seen < (config.dup_max_obs_relaxed if relaxed else config.dup_max_obs)
        if seen >= 2 and log.case.selector == "pollitt":
            t = (row["mu_i"] - row["mu_j"]) / np.sqrt(row["sigma_i"] ** 2 + row["sigma_j"] ** 2 + 2 * trueskill.BETA**2)
            assert abs(PHI(t) - 0.5) <= config.dup_p_margin + 1e-12


def check_rounds(log: Recount) -> None:
    """Exposure, stage order, quotas and star caps with their overrides (§5.1.6, §6.1.1, §7.2)."""
    config, cap = log.config, log.config.cap_count(log.n)
    overrides: Counter[int] = Counter()
    repeats: Counter[int] = Counter()
    at: dict[int, int] = defaultdict(int)
    starved: set[tuple[int, str]] = set()
    stages = ("anchor_link", "long_link", "mid_link", "local_link")
    last = 0
    for row in sorted(log.rows, key=lambda row: row["step_id"]):
        if row["round_stage"] in OUTSIDE:
            assert row["round_id"] == last  # of no round's plan; the warm start is round 0
            continue
        assert last <= row["round_id"] <= last + 1  # no round is skipped
        last = row["round_id"]
        place = stages.index(row["round_stage"])
        assert place >= at[row["round_id"]]  # stages are not revisited
        at[row["round_id"]] = place
        assert (row["round_id"], row["round_stage"]) not in starved
        if row["status"] == "starved":
            starved.add((row["round_id"], row["round_stage"]))
            continue
        again = 0
        for side in "ij":
            used = log.used(row, row[side])
            assert row[f"used_in_round_{side}"] == used <= 1
            again += used
        assert not again or row["repeats_allowed"]
        if row["status"] == "committed":
            repeats[row["round_id"]] += again
        busy = {x: involving(log.committed(row)[-config.W_cap :], x) + involving(log.open(row), x) for x in
                (row["i"], row["j"])}  # fmt: skip
        if row["star_override_used"]:
            overrides[row["round_id"]] += row["status"] == "committed"
            assert max(busy.values()) > cap
            assert row["round_stage"] in ("mid_link", "local_link")
            if row["star_override_reason"] == "only_pairs_left":
                assert log.agreement(row) >= 0.95
                overrides[row["round_id"]] = 0
            else:
                assert log.identified(row)
                assert row["star_override_reason"] == "near_tie_override"
        else:
            assert max(busy.values()) <= cap
        types = (row["is_anchor_i"], row["is_anchor_j"])
        if row["round_stage"] == "anchor_link":
            assert types[0] != types[1]
        elif row["round_stage"] != "local_link" or not config.local_anchors:
            assert not any(types)
        assert row["dist_stratum"] == abs(row["stratum_i"] - row["stratum_j"])
    assert max(repeats.values(), default=0) <= config.repeat_in_round_budget
    assert max(overrides.values(), default=0) <= config.star_override_budget_per_round


def check_connected(log: Recount) -> None:
    """After the warm start all is connected, but for parts between which the judge answers on no pair (§2.2)."""
    first = next((row for row in log.rows if row["round_stage"] != "warm_start"), None)
    if first is None:
        return
    before = log.before(first)
    aside = {name for row in before for name in (row.get("set_aside") or "").split(", ") if name}
    parts = connected([(r["A"] - 1, r["B"] - 1) for r in before if r["status"] == "committed"], log.n)
    refused = Counter(frozenset((r["A"] - 1, r["B"] - 1)) for r in before if r.get("invalid_kind") == "abstention")
    ids = log.run.engine.ids
    for one, two in combinations(parts, 2):
        for a in one:
            for b in two:
                if not {ids[a], ids[b]} & aside:
                    assert refused[frozenset((a, b))] >= log.config.max_invalid_per_pair
    if log.case.judge in ("consistent", "random", "biased", "errors"):
        assert len(parts) == 1
        assert apart(log.run.engine) == []


def check_starvation(log: Recount) -> None:
    """A run stops for want of pairs only when none is left (§7.7, decision 5)."""
    engine, config = log.run.engine, log.config
    if engine.stop_reason != "candidate_starvation":
        return
    assert not engine.open
    aside = {name for row in log.rows for name in (row.get("set_aside") or "").split(", ") if name}
    done = [row for row in log.rows if row["status"] == "committed"]
    seen = pairs_of(done)
    refused = Counter(frozenset((r["A"], r["B"])) for r in log.rows if r.get("invalid_kind") == "abstention")
    busy = {x: involving(done[-config.W_cap :], x) for x in range(1, log.n + 1)}
    limit = min(2, config.dup_max_obs) if log.case.selector == "pollitt" else config.dup_max_obs_relaxed
    limit = 1 if engine.ledger.repeats_are_worthless else limit
    for pair in combinations(range(1, log.n + 1), 2):
        key = frozenset(pair)
        if {engine.ids[x - 1] for x in pair} & aside or refused[key] >= config.max_invalid_per_pair:
            continue
        if seen[key] >= limit:
            continue
        if log.case.selector == "pollitt":
            if max(busy[x] for x in pair) > config.cap_count(log.n):
                continue
            if not config.local_anchors and any(engine._anchors[x - 1] for x in pair):
                continue
        raise AssertionError(f"{pair} is left")


def check_repeats(log: Recount) -> None:
    """Reversed pairs have their share, what is counted of repeats is a recount, and a run ends when all was asked."""
    engine, config = log.run.engine, log.config
    answered: dict[tuple[int, int], float] = {}
    counts: Counter[str] = Counter()
    for row in (row for row in log.rows if row["status"] == "committed"):
        a, b, y = row["A"], row["B"], row["Y"]
        if (b, a) in answered:
            now = 1 - answered[b, a]
            counts["reversed"] += 1
            counts["flips"] += {now, y} == {0, 1}
            counts["agreeing"] += now == y
        if (a, b) in answered:
            counts["same order"] += 1
            counts["agreeing"] += answered[a, b] == y
        answered[a, b] = y
    found = engine.ledger.repeats
    assert [found.n_reversed, found.n_flips, found.n_same_order, found.n_agreeing] == [
        counts[name] for name in ("reversed", "flips", "same order", "agreeing")
    ]
    once = {pair for pair, times in pairs_of([r for r in log.rows if r["status"] == "committed"]).items() if times == 1}
    assert {frozenset((i + 1, j + 1)) for i, j in found.once} == once
    done = [row for row in log.rows if row["status"] == "committed"]
    reversals = sum(row["round_stage"] == "reverse" for row in done)
    if not config.reverse_rate and not config.discount_repeats:
        assert reversals == 0
    if not config.discount_repeats:
        asked = sum(row["status"] != "starved" for row in log.rows)  # of these, others may have had no answer
        assert reversals <= config.reverse_rate * asked + 1e-9
    if engine.stop_reason == "pairs_exhausted":
        assert config.discount_repeats
        assert not engine.open
        aside = {name for row in log.rows for name in (row.get("set_aside") or "").split(", ") if name}
        refused = Counter(frozenset((r["A"], r["B"])) for r in log.rows if r.get("invalid_kind") == "abstention")
        for pair in combinations(range(1, log.n + 1), 2):
            if not {engine.ids[x - 1] for x in pair} & aside:
                assert pairs_of(done)[frozenset(pair)] or refused[frozenset(pair)] >= config.max_invalid_per_pair
        assert found.n_repeats >= 30 or not engine.ledger.reversible()


def check_all(case: Case, run: Run) -> None:
    log = Recount(case, run)
    check_identity(log)
    check_counts(log)
    check_order(log)
    check_duplicates(log)
    if case.selector == "pollitt":
        check_rounds(log)
    check_connected(log)
    check_starvation(log)
    check_repeats(log)


@SLOW
@given(cases(SIZES, 90))
def test_invariants_at_every_step(case: Case) -> None:
    check_all(case, case.run())


@pytest.mark.slow
@settings(SLOW, max_examples=15)
@given(cases(st.integers(2, 7), 250))
def test_invariants_to_the_bitter_end(case: Case) -> None:
    """Few items, so that pairs run out."""
    check_all(case, case.run())


@pytest.mark.slow
@settings(SLOW, max_examples=2)
@given(cases(st.integers(41, 300), 420))
def test_invariants_of_many_items(case: Case) -> None:
    check_all(case, case.run())


@settings(SLOW, max_examples=10)
@given(cases(SIZES, 90), st.data())
def test_replay(case: Case, data: st.DataObject) -> None:
    """Two runs of a case are the same; one taken up from any row of its log has the same state and continues alike."""
    states: dict[int, dict[str, Any]] = {}  # by the number of rows, when a pair was first asked for after them
    waiting: dict[int, tuple[Proposal, ...]] = {}
    following: dict[int, list[Any]] = {}

    def propose(engine: Engine) -> Any:
        at = engine.rows
        if at not in states:
            states[at], waiting[at], following[at] = state_of(engine), tuple(engine.open.values()), []
        found = engine.propose()
        following[at].append(found)
        return found

    def fit(engine: Engine) -> tuple[Belief, str | None]:
        states.pop(engine.rows, None)  # a refit comes before what is asked after the same row
        return case.fit(engine)

    run = case.run(propose=propose, fit=fit)
    assert run.rows == case.run().rows
    places = sorted(states)
    for at in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3), label="taken up after rows"):
        fresh = case.engine()
        fresh.set_lag(case.concurrency)
        replay(fresh, run, waiting=waiting[at], until=at)
        assert state_of(fresh) == states[at]
        for logged in following[at]:
            found = fresh.propose()
            assert type(found) is type(logged)
            if isinstance(found, Proposal):
                assert (found.step_id, found.first, found.second) == (logged.step_id, logged.first, logged.second)
                assert dict(found.fields) == dict(logged.fields)
            elif isinstance(found, Starved):
                assert dict(found.row) == dict(logged.row)


@pytest.mark.slow
@settings(SLOW, max_examples=12)
@given(cases(SIZES, 90), st.integers(0, 80), st.integers(1, 5))
def test_late_items_at_any_time(case: Case, step: int, more: int) -> None:
    """Whatever is open, resting, due or over when items join, what holds of every step holds on (decision 16)."""
    if "W_cap" not in case.adaptive:
        case.adaptive["W_cap"] = 50  # the same before and after
    joined: list[int] = []

    def propose(engine: Engine) -> Any:
        if not joined and engine.steps >= step:
            joined.append(engine.rows)
            engine.join([f"late{number}" for number in range(more)])
        return engine.propose()

    run = case.run(propose=propose)
    log = Recount(case, run)
    check_identity(log)
    check_counts(log)
    check_order(log)
    check_duplicates(log)
    check_starvation(log)
    check_repeats(log)
    first = next((row for row in run.rows if joined and row["proposed_after"] > joined[0]
                  and row["round_stage"] != "warm_start"), None)  # fmt: skip
    if first is not None and case.judge in ("consistent", "random", "biased", "errors"):
        links = [(row["A"] - 1, row["B"] - 1) for row in log.committed(first)]
        assert len(connected(links, log.n)) == 1


@pytest.mark.slow
def test_nothing_grows_with_the_history() -> None:
    """After 2,000 steps nothing but the log itself, and the counts since the last refit, is longer than N needs."""
    n = 20
    case = Case(n, 3, "pollitt", "refuses at random", 4, 2000, {"dup_max_obs": 50, "dup_max_obs_relaxed": 50,
                "max_invalid_per_pair": 10**4, "max_invalid_per_item": 10**4, "dup_p_margin": 0.5, "q": 0.0},
                {}, (False, True))  # fmt: skip
    engine = case.run().engine
    assert engine.rows == 2000
    sizes: dict[str, int] = {}

    def measure(thing: Any, name: str, depth: int = 0) -> None:
        if isinstance(thing, list | dict | set | tuple | str | bytes | Counter):
            sizes[name] = len(thing)
        elif isinstance(thing, np.ndarray):
            sizes[name] = thing.shape[0] if thing.ndim else 0
        elif hasattr(thing, "__dict__") and depth < 3:
            for part, value in vars(thing).items():
                measure(value, f"{name}.{part}", depth + 1)

    measure(engine, "engine")
    assert sizes["engine.ledger._log"] >= engine.committed > 1200
    allowed = {
        "engine.ledger._log": 2 * engine.committed,
        "engine.ledger.probabilities": 2 * engine.committed,
        "engine.ledger.judged_by": 2 * engine.committed,
        "engine._passed": engine.n_refits,  # one a refit, not one a step
        "engine.ledger._invalid": n * (n - 1) // 2,
        "engine.ledger._resting": n * (n - 1) // 2,
        "engine.ledger._window": engine.config.W_cap,
    }
    for name, size in sizes.items():
        assert size <= allowed.get(name, 2 * n), name
