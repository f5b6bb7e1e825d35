"""Steps, warm start, rounds, starvation and answers that are none (§2, §3, §4.6, §7; decisions 2, 5, 8, 9, 13)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from pairscale.adaptive.engine import Engine, Proposal, Starved
from pairscale.adaptive.logs import STEP_LOG
from pairscale.adaptive.selection.pollitt import Round
from pairscale.core.errors import InputError
from tests.adaptive.driving import (
    apart,
    ask,
    drive,
    finish_warm_start,
    judge,
    names,
    pair_of,
    state_of,
)  # fmt: skip
from tests.adaptive.reference import connected, is_chain

COUNTED = (
    "mu", "sigma", "degree", "first", "second", "recent", "open_degree", "seen", "_last_first", "_open_lead", "_window",
)  # fmt: skip


# Steps and what they change


def test_a_valid_answer_changes_the_counts() -> None:
    """§2.1: degree, positions, pair counts (ordered and not), last order, TrueSkill; all over committed comparisons."""
    engine = Engine(names(4), seed=2)
    found = ask(engine)
    a, b = found.first, found.second
    before = engine.ledger.mu.copy()
    row = engine.record(found.step_id, 0)
    ledger = engine.ledger
    assert ledger.degree.sum() == 2
    assert ledger.degree[a] == ledger.first[a] == ledger.second[b] == 1
    assert ledger.seen[a, b] == ledger.seen[b, a] == 1
    assert ledger.order(a, b) == (b, a)
    assert ledger.mu[b] > before[b]
    assert ledger.mu[a] < before[a]
    assert (row["pair_id"], row["Y"], row["status"]) == (1, 0, "committed")
    assert (row["p_ij"], row["U0_ij"]) == (0.5, 0.25)


@pytest.mark.parametrize("is_error", [True, False])
def test_an_invalid_answer_changes_no_count(is_error: bool) -> None:
    """§2.2.2: no pair id, no count, no belief; the reason is kept (decision 8)."""
    engine = Engine(names(6), seed=2)
    finish_warm_start(engine)
    before = {name: value for name, value in state_of(engine).items() if name.removeprefix("ledger.") in COUNTED}
    found = ask(engine)
    row = engine.record(found.step_id, None, invalid_reason="no tag", invalid_kind="error" if is_error else None)
    after = state_of(engine)
    assert {name: after[name] for name in before} == before
    assert engine.committed == 5
    assert row["status"] == "invalid"
    assert row["invalid_reason"] == "no tag"
    assert row["invalid_kind"] == ("error" if is_error else "abstention")
    assert row.get("pair_id") is row["Y"] is row.get("p_ij") is row.get("U0_ij") is None
    assert engine._round.done[row["round_stage"]] == 0


def test_answers_that_cannot_be() -> None:
    """§2.2.2: Y is 1, 0 or none, once for each step."""
    engine = Engine(names(3))
    found = ask(engine)
    with pytest.raises(InputError, match="Y must be"):
        engine.record(found.step_id, 2)
    engine.record(found.step_id, 1)
    with pytest.raises(InputError, match="not waiting"):
        engine.record(found.step_id, 1)


def test_recent_is_the_last_window() -> None:
    """§6.1.1: recent_deg is over the last W_cap committed comparisons."""
    engine = Engine(names(5), seed=3, adaptive_config={"W_cap": 3})
    run = drive(engine, judge(), steps=18)
    last = [row for row in run.rows if row["status"] == "committed"][-3:]
    for item in range(5):
        assert engine.ledger.recent[item] == sum(item in pair_of(row) for row in last)
    engine.configure({"W_cap": 7}, {})
    last = [row for row in run.rows if row["status"] == "committed"][-7:]
    for item in range(5):
        assert engine.ledger.recent[item] == sum(item in pair_of(row) for row in last)


# Warm start


@pytest.mark.parametrize("n", [2, 3, 10, 101])
def test_warm_start_is_a_shuffled_chain(n: int) -> None:
    """§3.1, decision 2: N - 1 comparisons through all items, round 0, before anything else; another for other seeds."""
    chains = []
    for seed in (1, 1, 2):
        run = drive(Engine(names(n), seed=seed), judge(), steps=n - 1)
        assert {(row["round_id"], row["round_stage"]) for row in run.rows} == {(0, "warm_start")}
        chain = [(row["i"] - 1, row["j"] - 1) for row in run.rows]
        assert is_chain(chain)
        assert len(connected(chain, n)) == 1
        assert run.engine.ledger.min_degree == 1
        assert all(row["candidate_starved"] is False and row["fallback_path"] == "base" for row in run.rows)
        chains.append(chain)
    assert chains[0] == chains[1]
    assert n < 10 or chains[0] != chains[2]
    assert n < 10 or [pair[0] for pair in chains[0]] != list(range(n - 1))


def test_nothing_is_chosen_before_the_chain_is_answered() -> None:
    """§2.2.1, decision 13: with many in flight too."""
    engine = Engine(names(4), seed=1)
    asked = [ask(engine) for _ in range(3)]
    assert engine.propose() is None
    for found in asked[:2]:
        engine.record(found.step_id, 1)
        assert engine.propose() is None
    engine.record(asked[2].step_id, 1)
    assert ask(engine).fields["round_id"] == 1


def test_an_unanswerable_link_is_replaced() -> None:
    """§2.2.1, decision 8: by another pair that connects the same two parts; the graph is connected in the end."""
    for refused in range(6):
        engine = Engine(names(7), seed=refused)
        bad = frozenset(engine._warm.queue[refused])

        def answer(engine: Engine, found: Proposal, bad: frozenset[int] = bad) -> Any:
            return (None if {found.first, found.second} == bad else 1), False

        run = drive(engine, answer, steps=7)
        assert Counter(row["status"] for row in run.rows) == {"committed": 6, "invalid": 1}
        assert all(row["round_stage"] == "warm_start" for row in run.rows)
        chain = [pair for pair in map(pair_of, run.rows) if pair != bad]
        assert len(connected([tuple(pair) for pair in chain], 7)) == 1  # type: ignore[misc]
        assert apart(engine) == []


def test_an_item_that_is_never_answered_on_is_set_aside() -> None:
    """Decision 8: pairs are given up after three, the item after ten in a row; the others are connected without it."""
    engine = Engine(names(8), seed=5)

    def answer(engine: Engine, found: Proposal) -> Any:
        return (None if 3 in (found.first, found.second) else 1), False

    run = drive(engine, answer, steps=60)
    asked = [row for row in run.rows if row["status"] == "invalid"]
    assert len(asked) == 10
    assert asked[-1]["set_aside"] == "i0003"
    assert engine.ledger.set_aside.tolist() == [item == 3 for item in range(8)]
    assert apart(engine) == ["i0003"]  # and not the items that it was to be tied to
    first = next(at for at, row in enumerate(run.rows) if row["round_stage"] != "warm_start")
    links = [tuple(pair_of(row)) for row in run.rows[:first] if row["status"] == "committed"]
    assert sorted(map(len, connected(links, 8))) == [1, 7]  # type: ignore[arg-type]


def test_links_to_an_item_that_is_set_aside_are_not_asked() -> None:
    """Decision 8: those still waiting are replaced as well."""
    engine = Engine(names(9), seed=1, adaptive_config={"max_invalid_per_item": 1})
    first = ask(engine)
    a, b = first.first, first.second
    engine.record(first.step_id, None)  # both ends are set aside
    run = drive(engine, judge(), steps=30)
    assert not any({a, b} & pair_of(row) for row in run.rows if row["status"] != "starved")
    links = [tuple(pair_of(row)) for row in run.rows if row["round_stage"] == "warm_start"]
    assert sorted(map(len, connected(links, 9))) == [1, 1, 7]  # type: ignore[arg-type]


def test_an_error_in_the_warm_start_loses_no_link() -> None:
    """§2.2.1: the graph is connected though every pair failed once, because the judge could not be reached."""
    engine = Engine(names(3), seed=1)
    failed: Counter[frozenset[int]] = Counter()

    def answer(engine: Engine, found: Proposal) -> Any:
        pair = frozenset((found.first, found.second))
        failed[pair] += 1
        return (None, True) if failed[pair] < 3 else (1, False)

    run = drive(engine, answer, steps=30)
    first = next(row for row in run.rows if row["round_stage"] != "warm_start")
    links = [tuple(pair_of(row)) for row in run.rows[: first["proposed_after"]] if row["status"] == "committed"]
    assert len(connected(links, 3)) == 1  # type: ignore[arg-type]
    assert apart(engine) == []


# Rounds


def test_stages_come_in_order_with_their_quotas() -> None:
    """§4.6.2, §7.2: anchor, long, mid, local, each until its quota is committed; then the next round."""
    n = 200  # with 20 anchors for 15 links
    run = drive(Engine(names(n), seed=1), judge(), steps=n - 1 + 3 * 50)
    rows = [row for row in run.rows if row["round_stage"] != "warm_start"]
    assert Counter(row["status"] for row in rows) == {"committed": 150}
    for at, round_id in enumerate((1, 2, 3)):
        part = rows[50 * at : 50 * at + 50]
        assert {row["round_id"] for row in part} == {round_id}
        stages = ["anchor_link"] * 15 + ["long_link"] * 5 + ["mid_link"] * 5 + ["local_link"] * 25
        assert [row["round_stage"] for row in part] == stages
        assert [row["stage_committed_so_far"] for row in part] == [*range(15), *range(5), *range(5), *range(25)]
        assert [row["stage_quota"] for row in part] == [15] * 15 + [5] * 10 + [25] * 25
        used = Counter(item for row in part for item in pair_of(row))
        assert max(used.values()) == 1
    for row in rows:
        anchors = row["is_anchor_i"] + row["is_anchor_j"]
        if row["round_stage"] == "anchor_link":
            assert anchors == 1
        elif row["round_stage"] in ("long_link", "mid_link"):
            assert anchors == 0


def test_invalid_answers_do_not_fill_a_quota() -> None:
    """§4.6.1, decision 8: the stage continues, its items are free again, and the pair rests for the round."""
    engine = Engine(names(12), seed=1)
    finish_warm_start(engine)
    found = ask(engine)
    engine.record(found.step_id, None)
    again = ask(engine)
    assert again.fields["stage_committed_so_far"] == 0
    assert again.fields["round_id"] == found.fields["round_id"]
    assert pair_of(again.fields) != pair_of(found.fields)
    assert engine._round.used.sum() == 2


def test_a_refused_second_use_gives_its_place_back() -> None:
    """§5.1.6, §6.1.1, decision 8: second uses and passed star caps count only when answered, or open."""
    round_ = Round(1, 4, {"local_link": 9}, None)
    round_.admit("local_link", 0, 1, override=False)
    round_.admit("local_link", 1, 2, override=True)
    assert (round_.repeats, round_.overrides, round_.used.tolist()) == (1, 1, [1, 2, 1, 0])
    round_.rejected("local_link", 1, 2, repeats=1, override=True)
    assert (round_.repeats, round_.overrides, round_.used.tolist()) == (0, 0, [1, 1, 0, 0])
    assert (round_.open["local_link"], round_.done["local_link"]) == (1, 0)


def test_a_pair_is_given_up_after_three_invalid_answers() -> None:
    """Decision 8: once a round, three times in a run."""
    engine = Engine(names(4), seed=1, adaptive_config={"max_invalid_per_item": 100})

    def answer(engine: Engine, found: Proposal) -> Any:
        in_rounds = engine._round.round_id > 0
        return (None if in_rounds and {found.first, found.second} == {0, 1} else 1), False

    run = drive(engine, answer, steps=80)
    refused = [row for row in run.rows if row["status"] == "invalid"]
    assert len(refused) == 3
    assert len({row["round_id"] for row in refused}) == 3
    assert engine.stop_reason == "candidate_starvation"


def test_errors_are_held_against_nobody_but_pause_the_run() -> None:
    """Decision 8: twenty answers in a row without a valid one are too many; a valid one starts the count anew."""
    engine = Engine(names(30), seed=1)
    for at in range(19):
        engine.record(ask(engine).step_id, None, invalid_kind="error")
        assert engine.failures_in_row == at + 1
    assert not engine.is_failing
    engine.record(ask(engine).step_id, 1)
    assert engine.failures_in_row == 0
    for _ in range(20):
        engine.record(ask(engine).step_id, None, invalid_kind="error")
    assert engine.is_failing
    assert not engine.ledger.set_aside.any()


def test_a_starved_stage_is_logged_and_left() -> None:
    """§7.2.2, §5.3, decision 9: its shortfall is not made up; the next stage continues."""
    engine = Engine(names(4), seed=1)  # no anchors below six, and no item three strata from another
    run = drive(engine, judge(), steps=40)
    starved = [row for row in run.rows if row["status"] == "starved"]
    for row in starved:
        later = [o for o in run.rows if o["step_id"] > row["step_id"] and o["round_id"] == row["round_id"]]
        assert row["round_stage"] not in {o["round_stage"] for o in later}
        assert row["stage_committed_so_far"] < row["stage_quota"]
        assert row["fallback_path"].startswith("base>expand_locality>uncertainty_pool>dup_relax>global_safe")
    stages = defaultdict(list)
    for row in run.rows:
        stages[row["round_id"]].append(row["round_stage"])
    assert all("local_link" in found for round_id, found in stages.items() if round_id)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_a_run_stops_when_a_whole_round_chose_nothing(n: int) -> None:
    """§7.7, decision 5: only then; called again it does nothing."""
    engine = Engine(names(n), seed=n)
    run = drive(engine, judge(n), steps=10**6)
    assert engine.stop_reason == "candidate_starvation"
    last = run.rows[-1]["round_id"]
    assert {row["status"] for row in run.rows if row["round_id"] == last} == {"starved"}
    assert {row["status"] for row in run.rows if row["round_id"] == last - 1} >= {"committed"}
    assert (engine.ledger.seen + 2 * np.eye(n) >= 2).all()  # every pair twice
    rows = engine.rows
    assert engine.propose() is None
    assert engine.rows == rows


def test_a_starved_round_waits_for_what_is_in_flight() -> None:
    """§7.7, decision 13: no stop while an answer may still free a pair; not with the last answer either."""
    engine = Engine(names(2), seed=1)
    engine.record(ask(engine).step_id, 1)
    second = ask_past_starved(engine)
    assert past_starved(engine) is None  # the only pair is in flight
    assert engine.stop_reason is None
    engine.record(second.step_id, None)  # and comes back without an answer: it may be asked once more
    third = ask_past_starved(engine)
    assert pair_of(third.fields) == {0, 1}
    engine.record(third.step_id, 1)
    while engine.stop_reason is None:
        found = past_starved(engine)
        if isinstance(found, Proposal):
            engine.record(found.step_id, 1)
    assert engine.ledger.seen[0, 1] >= 2


def past_starved(engine: Engine) -> Any:
    while isinstance(found := engine.propose(), Starved):
        pass
    return found


def ask_past_starved(engine: Engine) -> Proposal:
    found = past_starved(engine)
    assert isinstance(found, Proposal)
    return found


def test_a_judge_that_refuses_everything_comes_to_an_end() -> None:
    """Decision 8: every pair is given up, every item set aside, and the run stops without a crash."""
    for n in (2, 3, 6):
        engine = Engine(names(n), seed=1, adaptive_config={"max_failures_in_row": 10**6})
        run = drive(engine, lambda *_: (None, False), steps=10**4)
        assert engine.committed == 0
        assert engine.stop_reason == "candidate_starvation"
        assert max(Counter(map(pair_of, (row for row in run.rows if row["status"] == "invalid"))).values()) <= 3


# In flight


def test_pairs_in_flight_count_as_used() -> None:
    """Decision 13: for duplicates, exposure and the plan of the round."""
    engine = Engine(names(40), seed=1)
    finish_warm_start(engine)
    asked = [ask(engine) for _ in range(12)]
    assert len({pair_of(found.fields) for found in asked}) == 12
    assert max(Counter(item for found in asked for item in pair_of(found.fields)).values()) == 1
    stages = ["anchor_link"] * 7 + ["long_link"] * 3 + ["mid_link"] * 2
    assert [found.fields["round_stage"] for found in asked] == stages
    assert [found.fields["in_flight"] for found in asked] == list(range(12))
    assert engine.ledger.open_degree.sum() == 24
    rows = [engine.record(found.step_id, 1) for found in reversed(asked)]
    assert [row["pair_id"] for row in rows] == list(range(40, 52))  # in the order in which they came
    assert engine.ledger.open_degree.sum() == 0


def test_a_stage_is_not_entered_again() -> None:
    """§7.2.2, decision 13: not for a pair either that came back without an answer when the next stage had begun."""
    engine = Engine(names(40), seed=1)
    finish_warm_start(engine)
    asked = [ask(engine) for _ in range(8)]
    assert [found.fields["round_stage"] for found in asked] == ["anchor_link"] * 7 + ["long_link"]
    engine.record(asked[0].step_id, None)
    assert ask(engine).fields["round_stage"] == "long_link"


# The log


def test_every_column_of_the_document_is_there() -> None:
    """§10.1: the step log."""
    document = """
        step_id pair_id i j A B Y is_explore_step explore_mode explore_reason candidate_starved fallback_used
        fallback_path starvation_reason explore_rate_used local_priority_mode long_gate_pass long_gate_reason
        star_override_used star_override_reason n_candidates_generated n_candidates_after_hard_filters
        n_candidates_after_duplicates n_candidates_after_star_caps n_candidates_scored deg_i deg_j recent_deg_i
        recent_deg_j mu_i mu_j sigma_i sigma_j p_ij U0_ij round_id round_stage pair_type used_in_round_i used_in_round_j
        is_anchor_i is_anchor_j stratum_i stratum_j dist_stratum stage_committed_so_far stage_quota star_cap_rejects
        star_cap_reject_items
    """.split()
    assert set(document) <= set(STEP_LOG)
