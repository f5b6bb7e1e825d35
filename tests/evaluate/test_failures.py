"""A variant that fails has not won: the ways to count failures, the bounds, and that every figure uses one rule."""

import asyncio
import sys
import threading

import polars as pl
import pytest

import pairscale as ps
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.evaluate.inference.failures import FAILURES, count_failure
from pairscale.evaluate.result import PairwiseRunResult
from pairscale.evaluate.run import NO_ANSWER


class Longer:
    """A comparator that remembers what it was shown."""

    key = "longer"

    def __init__(self):
        self.seen = {}

    async def compare(self, *, task, trace_a, trace_b, reference_outputs):
        self.seen[task.task_id] = (trace_a.output, trace_b.output)
        a, b = len(trace_a.output), len(trace_b.output)
        return ps.PairwiseOutcome("tie" if a == b else "a" if a > b else "b")


def suite_of(n):
    return ps.Suite.from_list([f"Question {at}?" for at in range(n)])


def place(task):
    return int(task.task_id[-4:])


def answering(text, fails=()):
    def variant(task):
        if place(task) in fails:
            raise TimeoutError("the model did not answer")
        return text

    return variant


def compare(n=100, a=(), b=(), texts=("x" * 20, "y" * 30), **options):
    who = options.pop("comparators", None) or [Longer()]
    return ps.run_pairwise(
        suite_of(n),
        variant_a=answering(texts[0], a),
        variant_b=answering(texts[1], b),
        comparators=who,
        progress=False,
        **options,
    )


def test_a_variant_that_dies_on_ninety_of_a_hundred_tasks_has_not_won():
    found = compare(b=range(90))
    assert found.failures == "loss"
    assert found.tally("longer") == (90, 10, 0)
    assert found.win_rate("longer").rate == pytest.approx(0.1)
    assert found.bounds("longer") == (pytest.approx(0.1), 1.0)
    words = found.verdict("longer")
    assert "better" not in words
    assert words == (
        "no verdict, as it depends on how failures count: A is ahead if a failure is a loss, but B is ahead if cases "
        "with a failure are left out; B failed in 90 of 100 cases (counted as lost); however that is counted, B wins "
        "10 to 100 %; find out why B failed, and run those tasks again"
    )
    assert "no verdict" in str(found)
    assert "B: failed 90 of 100 (90 %), median latency" in found.summary()


class Ended(BaseException):
    """What some libraries raise so that no ``except Exception`` takes it."""


def raises_all_kinds(kind):
    if kind == "exit":
        sys.exit(0)
    raise {"cancelled": asyncio.CancelledError, "base": Ended, "stop": StopIteration}[kind]


@pytest.mark.parametrize("kind", ["exit", "cancelled", "base", "stop"])
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_variant_raises_it_has_failed_and_no_case_is_left_out(kind, is_async):
    def variant(task):
        if place(task) < 9:
            raises_all_kinds(kind)
        return "y" * 30

    async def asynchronous(task):
        return variant(task)

    found = ps.run_pairwise(
        suite_of(10),
        variant_a=answering("x" * 20),
        variant_b=asynchronous if is_async else variant,
        comparators=[Longer()],
        progress=False,
    )
    assert found.tally("longer") == (9, 1, 0)
    assert found.variants[1].failures == 9
    assert found.bounds("longer") == (pytest.approx(0.1), 1.0)


@pytest.mark.parametrize("kind", ["exit", "cancelled", "base"])
def test_whatever_a_comparator_or_a_judge_raises_is_no_outcome_of_that_case(kind):
    class Raising(Longer):
        async def compare(self, *, task, **given):
            if place(task) == 1:
                raises_all_kinds(kind)
            return await super().compare(task=task, **given)

    def judge(A, B):
        if A["input"].startswith("Question 1?"):
            raises_all_kinds(kind)
        return {"Y": int(len(A["text"]) > len(B["text"]))}

    async def asynchronous(A, B):
        return judge(A, B)

    for comparator in (
        Raising(),
        ps.pairwise_judge(judge, criterion="longer", key="longer"),
        ps.pairwise_judge(asynchronous, criterion="longer", key="longer"),
    ):
        found = compare(n=3, comparators=[comparator])
        assert found.counts("longer") == {"win": 2, "tie": 0, "flip": 0, "abstention": 0, "error": 1}


@pytest.mark.parametrize("failures", FAILURES)
def test_both_variants_fail(failures):
    who = Longer()
    found = compare(n=4, a=[0, 1], b=[1, 2], failures=failures, comparators=[who])
    assert [case.failed for case in found.cases] == ["a", "both", "b", None]
    expected = {
        "loss": ["b", "tie", "a", "b"],
        "shown": ["b", "tie", "a", "b"],
        "excluded": [None, None, None, "b"],
    }
    assert [case.winner for case in found.cases] == expected[failures]
    assert set(who.seen) == ({f"task-{n:04d}" for n in range(4)} if failures == "shown" else {"task-0003"})
    if failures == "shown":
        assert who.seen["task-0000"] == (NO_ANSWER, "y" * 30)
        assert who.seen["task-0001"] == (NO_ANSWER, NO_ANSWER)
    assert found.bounds("longer") == (0.625, 1.0)


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (ps.Trace("", exception="boom"), "boom"),
        (ps.Trace("half an answer", exception="boom"), "boom"),
        (ps.Trace(""), "the output is empty"),
        (ps.Trace(" \n\t\u200b\ufeff"), "the output is empty"),
        (ps.Trace("text", metadata={"error": "rate limit"}), "error: rate limit"),
        (ps.Trace("text", metadata={"error": {"code": 500}}), 'error: {"code": 500}'),
        (ps.Trace("text", metadata={"error": True}), "error: true"),
        (ps.Trace("text", metadata={"error": False}), None),
        (ps.Trace("text", metadata={"error": ""}), None),
        (ps.Trace("text", metadata={"error": 0.1}), None),
        (ps.Trace("text", exception=""), None),
        (ps.Trace("0"), None),
        (ps.Trace("NaN"), None),
    ],
)
def test_what_a_failure_is(trace, why):
    assert trace.failure == why
    source = ps.InMemoryTraceSource({"t": trace})
    found = ps.evaluate_pairwise(ps.InMemoryTraceSource({"t": "x"}), source, comparators=[Longer()], progress=False)
    assert found.cases[0].failed == (None if why is None else "b")
    assert (found.cases[0].length_b is None) == (why is not None)


def test_the_looks_stop_only_where_every_way_agrees():
    """B fails on most tasks and wins the rest: the two ways contradict each other, so all tasks are asked."""
    found = compare(n=60, b=[n for n in range(60) if n % 2], stop_when="decided", concurrency=1)
    assert found.stopped is None
    assert len(found.cases) == 60
    rest = compare(n=60, b=[n for n in range(60) if n % 10 == 0], stop_when="decided", concurrency=1)
    assert rest.stopped == "decided"
    assert rest.verdict("longer").startswith("B is better: ")
    dead = compare(n=60, b=range(60), stop_when="decided", concurrency=1)
    assert dead.stopped == "decided"
    assert dead.verdict("longer").startswith("A is better: it won 100 % of")


def test_the_same_rule_in_every_figure(message_snapshot, tmp_path):
    found = compare(n=30, b=range(6), run=tmp_path / "ab.db", comparators=[Longer(), Other()])
    table = found.frame("longer")
    assert table.filter(pl.col("failed") == "b")["winner"].to_list() == ["a"] * 6
    assert table.filter(pl.col("failed") == "b")["length_b"].null_count() == 6
    agreed = found.agreement("longer", "other")
    assert (agreed.n, agreed.left_out) == (24, 6)  # no comparator was asked about the failures
    shown = compare(n=30, b=range(6), failures="shown", comparators=[Longer(), Other()])
    assert (shown.agreement("longer", "other").n, shown.agreement("longer", "other").left_out) == (30, 0)
    with pytest.raises(InputError) as refused:
        found.win_rate("longer", failures="shown")
    message_snapshot(refused)
    with pytest.raises(InputError, match="failures must be"):
        found.win_rate("longer", failures="none")
    for loaded in (PairwiseRunResult.load(found.save(tmp_path)), PairwiseRunResult.from_dict(found.to_dict())):
        assert loaded == found
        assert loaded.bounds("longer") == found.bounds("longer") == (0.8, 1.0)


class Other(Longer):
    key = "other"


def test_figures_of_variants_are_unknown_where_no_trace_says_them():
    a = ps.InMemoryTraceSource(
        {"t1": ps.Trace("x", tokens=10, cost=0.02, duration_ms=40), "t2": ps.Trace("x", tokens=20)}
    )
    b = ps.InMemoryTraceSource({"t1": "y", "t2": ""})
    found = ps.evaluate_pairwise(a, b, comparators=[Longer()], progress=False)
    one, two = found.variants
    assert (one.failure_rate, one.latency_ms, one.tokens, one.cost) == (0.0, 40.0, 15.0, 0.02)
    assert one.words() == {
        "failed": "0 of 2 (0 %)",
        "median latency": "40 ms",
        "mean tokens": "15",
        "mean cost": "$0.0200",
    }
    assert two.words() == {
        "failed": "1 of 2 (50 %)", "median latency": "unknown", "mean tokens": "unknown", "mean cost": "unknown",
    }  # fmt: skip
    document = found.to_dict()
    assert document["variants"][1]["failure_rate"] == 0.5
    assert document["bounds"] == {"longer": {"lower": 0.25, "upper": 0.5}}


def test_tasks_without_an_answer_of_one_side_stand_in_the_verdict():
    a = ps.InMemoryTraceSource({f"t{n}": "x" for n in range(50)})
    b = ps.InMemoryTraceSource({f"t{n}": "yy" for n in range(10)})
    found = ps.evaluate_pairwise(a, b, comparators=[Longer()], progress=False)
    assert found.verdict("longer").endswith(
        "; B is favoured, but first: it has no answer to 40 tasks; if it failed on them, add them with an empty output"
    )
    more = ps.InMemoryTraceSource({f"t{n}": "yy" for n in range(48)})
    kept = ps.evaluate_pairwise(a, more, comparators=[Longer()], progress=False)
    assert kept.verdict("longer") == (
        "B is better: it won 48 of 48 cases with a winner (100 %; 95 % confidence interval 93 to 100 %); B is favoured"
    )


def test_the_table_counts_by_the_rule_for_cases():
    outcomes = ((Outcome.WIN, "a"), (Outcome.WIN, "b"), (Outcome.TIE, "tie"), (Outcome.ERROR, None))
    rows = [(failed, *one) for failed in (None, "a", "b", "both") for one in outcomes]
    cases = [
        ps.PairwiseCase(f"t{n}", "k", winner, "", {}, kind, failed=failed)
        for n, (failed, kind, winner) in enumerate(rows)
    ]
    run = PairwiseRunResult("r", tuple(cases), ("k",), failures="shown")
    for way in FAILURES:
        counted = run.frame("k", failures=way)
        expected = [count_failure(failed, kind, winner, way) for failed, kind, winner in rows]
        assert counted["outcome"].to_list() == [str(kind) for kind, _ in expected]
        assert counted["winner"].to_list() == [None if winner == "tie" else winner for _, winner in expected]


class Hanging:
    """An agent that does not answer until it is let go; counts its calls."""

    def __init__(self):
        self.let_go, self.calls, self.cancelled = threading.Event(), 0, 0

    def ask(self, text):
        self.calls += 1
        self.let_go.wait()
        return f"{text} At last."


class HangingAsync(Hanging):
    async def ask(self, text):
        self.calls += 1
        try:
            while not self.let_go.is_set():
                await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return f"{text} At last."


@pytest.mark.parametrize("kind", [Hanging, HangingAsync])
def test_a_variant_that_hangs_has_failed_and_is_not_asked_again_within_the_same_time(kind, tmp_path):
    hanging = kind()

    def run(limit, **how):
        tasks = [ps.Task({"input": "Why?"}, f"t{n}") for n in range(3)]
        given = {"comparators": [Longer()], "run": tmp_path / "ab.db", "progress": False, **how}
        return ps.run_pairwise(tasks, variant_a=lambda task: "Yes.", variant_b=hanging, variant_timeout=limit, **given)

    found = run(0.2)
    assert found.tally("longer") == (3, 0, 0)
    assert found.variants[1].failures == 3
    assert found.variants[1].latency_ms >= 200
    assert found.cases[0].failed == "b"
    assert found.cases[0].reasoning == "B failed: timeout: no answer within 0.2 seconds"
    assert hanging.cancelled == (3 if kind is HangingAsync else 0)
    again = [run(0.2), run(0.1, failures="excluded"), run(0.2, failures="shown")]
    assert hanging.calls == 3
    assert [one.tally("longer") for one in again] == [(3, 0, 0), (0, 0, 0), (0, 3, 0)]
    hanging.let_go.set()
    assert run(600).tally("longer") == (0, 3, 0)
    assert hanging.calls == 6


def test_a_time_limit_of_variants_is_for_variants_that_are_run(message_snapshot):
    with pytest.raises(InputError) as refused:
        ps.ab({"t": "A"}, {"t": "B"}, criterion="longer", variant_timeout=5)
    message_snapshot(refused)
    ways = {"variant_a": lambda task: "A", "variant_b": lambda task: "B", "progress": False}
    for wrong in (0, -1, float("nan"), True, "5"):
        with pytest.raises(InputError, match="variant_timeout must be"):
            ps.ab(["Why?"], criterion="x", variant_timeout=wrong, **ways)


def test_a_failed_answer_is_asked_for_once_per_call():
    calls = []

    def failing(task):
        calls.append(task.task_id)
        raise ValueError("down")

    variants = {"one": lambda task: task.input, "two": lambda task: task.input * 2, "failing": failing}
    found = ps.run_variants(["Why?", "How?"], variants, comparators=[Longer()], concurrency=1, progress=False)
    assert sorted(calls) == ["task-0000", "task-0001"], "not once for each other variant"
    assert found.figures["failing"].failures == 2
