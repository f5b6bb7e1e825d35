"""Runs: variants, resuming, re-grading, limits, stopping; nothing lost, nothing asked twice, nothing called a tie."""

import asyncio
import math
import random

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, JudgeError
from pairscale.evaluate.inference import RunningSequence, win_rate
from pairscale.evaluate.inference.cases import task_means
from pairscale.testing import Behaviour, Faults, ProviderSimulator

SUITE = ps.Suite.from_list([{"input": f"Question {n}?", "tags": ["even" if n % 2 == 0 else "odd"]} for n in range(12)])


class Counter:
    """Counts, out of sight of whoever looks into a function: what an object holds is not looked into."""

    def __init__(self):
        self.n = 0


Calls = Counter()


@pytest.fixture(autouse=True)
def nothing_asked():
    Calls.n = 0


def short(task):
    Calls.n += 1
    return "Yes."


def long(task):
    Calls.n += 1
    return f"Yes, {task.input} Because it rains."


async def awaited(task):
    await asyncio.sleep(0)
    return ps.Trace(f"{task.input} Awaited.", cost=0.5, tokens=7)


def longer(A, B):
    Calls.n += 1
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


def judge(function=longer, key="longer", **options):
    return ps.pairwise_judge(function, criterion="says more", key=key, **options)


def costless(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"])), "cost": 0.0}


def run(suite=SUITE, a=short, b=long, comparators=None, **options):
    comparators = [judge()] if comparators is None else comparators
    return ps.run_pairwise(suite, variant_a=a, variant_b=b, comparators=comparators, progress=False, **options)


# The ordinary way


def test_variants_of_every_kind():
    class Agent:
        async def ask(self, text):
            return type("Reply", (), {"body": f"You asked: {text}"})()

    for variant, length in (
        (awaited, len("Question 0? Awaited.")), (Agent(), len("You asked: Question 0?")),
        (lambda task: {"output": "ab"}, 2),
    ):  # fmt: skip
        found = run(b=variant)
        assert found.cases[0].length_b == length
    assert run(b=awaited).cost == 6.0


def test_a_comparator_that_raises_is_an_error():
    class Broken:
        key = "broken"

        async def compare(self, *, task, trace_a, trace_b, reference_outputs):
            if task.task_id == "task-0003":
                return "a"
            if task.task_id == "task-0004":  # as AG2 writes it
                return ps.PairwiseOutcome("tie", detail={"error": True})
            raise RuntimeError("no")

    found = run(comparators=[Broken(), judge()])
    assert found.counts("broken")["error"] == 12
    assert found.cases[0].reasoning.startswith("RuntimeError: no (test_pairwise_run.py:")
    assert "must return a PairwiseOutcome" in found.cases[6].reasoning
    assert found.tally("longer") == (0, 12, 0)
    assert found.win_rate("broken").n == 0


@pytest.mark.parametrize("cost", [math.nan, math.inf, -1.0, 10**400])
def test_a_cost_that_cannot_be_is_an_error_of_that_case(cost, tmp_path):
    class Odd:
        key = "odd"

        async def compare(self, *, task, trace_a, trace_b, reference_outputs):
            return ps.PairwiseOutcome("b", cost=cost if task.task_id == "task-0003" else 0.5)

    def dear(task):
        return ps.Trace("Yes, dear.", cost=cost if task.task_id == "task-0004" else 0.5)

    def verdict(A, B):
        return ps.Verdict.win(1, cost=cost if A["task_id"] == "task-0005" else 0.5)

    comparators = [Odd(), judge(verdict, "verdict", swap=False)]
    found = run(b=dear, comparators=comparators, max_cost=100.0, run=tmp_path / "ab.db")
    failed = {
        (case.task_id, case.key): case.reasoning
        for case in found.cases
        if str(case.outcome) == "error" or case.failed == "b"
    }
    assert failed.keys() == {
        ("task-0003", "odd"), ("task-0004", "odd"), ("task-0004", "verdict"), ("task-0005", "verdict"),
    }  # fmt: skip
    for (task_id, key), what in {
        ("task-0003", "odd"): "an outcome", ("task-0004", "odd"): "a trace", ("task-0005", "verdict"): "a verdict",
    }.items():  # fmt: skip
        assert f"InputError: the cost of {what} must be a number from 0 to" in failed[task_id, key]
    assert found.cost == pytest.approx(0.5 * (11 + 10 + 10))  # answers of B, verdicts, outcomes of the comparator


@pytest.mark.parametrize("limit", [None, 5.0])
def test_a_variant_object_that_raises_has_lost_that_case(limit):
    class Own:
        identity = "own"

        def max_cost_of(self, task):
            raise LookupError(task.task_id)

        async def answer(self, task, repeat):
            if "7" in task.input:
                raise InputError("seven")
            return 8 if "8" in task.input else ps.Trace("A long answer.")

    found = run(b=Own(), comparators=[judge(costless)], max_cost=limit)
    assert found.tally("longer") == (2, 10, 0)
    assert found.cases[7].reasoning == "B failed: InputError: seven"
    assert found.cases[8].reasoning == "B failed: InputError: a variant's answer: give a text or a Trace, not int"


def test_what_is_remembered_belongs_to_all_that_was_shown(tmp_path):
    """Of a comparator that is no judge: another reference, other events or inputs, and it is asked again."""
    asked = []

    class Own:
        key = "own"

        async def compare(self, *, task, trace_a, trace_b, reference_outputs):
            asked.append((reference_outputs, len(trace_b.events)))
            return ps.PairwiseOutcome("b")

    def graded(task, events=()):
        suite = ps.Suite.from_list([{"task_id": "t", **task}])
        a, b = ps.InMemoryTraceSource({"t": "x"}), ps.InMemoryTraceSource({"t": ps.Trace("y", events=events)})
        before = len(asked)
        ps.evaluate_pairwise(a, b, suite=suite, comparators=[Own()], run=tmp_path / "ab.db", progress=False)
        return len(asked) - before

    plain, called = {"input": "q"}, ({"type": "tool_call", "name": "search"},)
    assert [graded(plain), graded(plain)] == [1, 0]
    assert [graded({**plain, "reference": "r"}), graded({**plain, "reference": "r"})] == [1, 0]
    assert [graded({**plain, "reference": "s"}), graded({**plain, "reference": "r"})] == [1, 0]
    assert [graded(plain, called), graded(plain, called), graded(plain, called * 2)] == [1, 0, 1]
    assert [graded({"inputs": {"input": "q", "client": object()}}) for _ in range(2)] == [1, 1], (
        "it has no lasting name"
    )
    with_context = {"inputs": {"input": "q", "context": "c"}}
    assert [graded(with_context), graded(with_context), graded(plain)] == [1, 0, 0]


def test_what_cannot_be_used(message_snapshot):
    for given in ({"comparators": []}, {"comparators": [judge(), judge()]}, {"comparators": ["lexical"]}, {"suite": 3}):
        with pytest.raises(InputError) as refused:
            run(**given)
        message_snapshot(refused)
    for given, words in (
        ({"variant_a_name": "X", "variant_b_name": "X"}, "two different names"),
        ({"stop_when": "bored"}, "stop_when"),
        ({"concurrency": 0}, "concurrency"),
        ({"repeats": 0}, "repeats"),
        ({"a": "nonsense"}, "no variant is called"),
        ({"a": 3}, "give a callable"),
    ):
        with pytest.raises(InputError, match=words):
            run(**given)


def test_async_twins_do_the_same():
    async def both():
        one = await ps.run_pairwise_async(SUITE, variant_a=short, variant_b=long, comparators=[judge()])
        sources = [ps.InMemoryTraceSource({t.task_id: f(t) for t in SUITE}) for f in (short, long)]
        return one, await ps.evaluate_pairwise_async(*sources, comparators=[judge()], suite=SUITE)

    one, two = asyncio.run(both())
    assert one.cases == two.cases == run().cases


# Recorded answers


def test_unmatched_tasks_are_listed(message_snapshot):
    a = ps.InMemoryTraceSource([("t1", "x"), ("t1", "xx"), ("t2", "y"), ("t9", "z")])
    b = ps.InMemoryTraceSource([("t1", "xxx"), ("t3", "y"), ("t9", "zz")])
    suite = ps.Suite.from_list([{"task_id": name, "input": "q"} for name in ("t1", "t2", "t3", "t4")])
    found = ps.evaluate_pairwise(a, b, comparators=[judge()], suite=suite)
    assert [(case.task_id, case.repeat) for case in found.cases] == [("t1", 1)]
    assert [(one.task_id, one.repeat, one.missing) for one in found.unmatched] == [
        ("t1", 2, "b"), ("t2", 1, "b"), ("t3", 1, "a"), ("t4", 1, "both"), ("t9", 1, "suite"),
    ]  # fmt: skip
    broken = ps.InMemoryTraceSource({"t1": ps.Trace(exception="too slow")})
    failed = ps.evaluate_pairwise(a, broken, comparators=[judge()], variant_b="new")
    assert failed.cases[0].reasoning == "new failed: too slow"
    alone = ps.evaluate_pairwise(a, b, comparators=[judge()])
    assert {case.task_id for case in alone.cases} == {"t1", "t9"}
    with pytest.raises(InputError) as refused:
        ps.evaluate_pairwise(a, ps.InMemoryTraceSource({"other": "x"}), comparators=[judge()])
    message_snapshot(refused)


def test_tasks_are_what_answers_say_of_them(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"task_id": "t", "output": "x", "input": "Why?", "reference": "So.", "tags": ["k"]}'
    )
    (tmp_path / "b.jsonl").write_text('{"task_id": "t", "output": "y"}')
    seen = []

    def watch(A, B):
        seen.append(A)
        return {"is_valid": True, "Y": 1}

    found = ps.evaluate_pairwise(tmp_path / "a.jsonl", tmp_path / "b.jsonl", comparators=[judge(watch)])
    assert (seen[0]["input"], seen[0]["reference"]) == ("Why?", "So.")
    assert found.cases[0].tags == ("k",)


# Durability


def test_the_same_call_again_asks_nothing(tmp_path):
    first = run(run=tmp_path / "ab.db")
    asked = Calls.n
    assert asked == 24 + 24
    again = run(run=tmp_path / "ab.db")
    assert Calls.n == asked
    assert again.cases == first.cases
    assert (first.asked, again.asked, again.cost) == (48, 0, 0)


def test_other_comparators_grade_the_same_answers(tmp_path):
    run(run=tmp_path / "ab.db")
    Calls.n = 0
    found = run(run=tmp_path / "ab.db", comparators=[judge("lexical", "words")])
    assert Calls.n == 0
    assert len(found.cases) == 12
    # Also without the variants: the run file is a source.
    a, b = (ps.RunTraceSource(tmp_path / "ab.db", name) for name in "AB")
    suite = ps.read_suite(tmp_path / "ab.db")
    assert suite.tasks == SUITE.tasks
    regraded = ps.evaluate_pairwise(a, b, suite=suite, comparators=[judge("lexical", "words")])
    assert [case.winner for case in regraded.cases] == [case.winner for case in found.cases]


def test_failures_are_asked_again(tmp_path):
    def weak(A, B):
        Calls.n += 1
        if Calls.n % 3 == 0:
            raise RuntimeError("tired")
        return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}

    named = ps.FunctionJudge(weak, name="weak")
    found = run(run=tmp_path / "ab.db", comparators=[judge(named)], concurrency=1)
    failed = found.counts("longer")["error"]
    assert failed > 0
    for _ in range(8):
        found = run(run=tmp_path / "ab.db", comparators=[judge(named)], concurrency=1)
    assert found.counts("longer") == {"win": 12, "tie": 0, "flip": 0, "abstention": 0, "error": 0}


def test_every_verdict_is_in_the_run_file_with_its_cost(tmp_path):
    dear = ps.FunctionJudge(
        lambda A, B: ps.Verdict.win(1 if len(A["text"]) > len(B["text"]) else 2, cost=0.01), name="d"
    )
    run(run=tmp_path / "ab.db", comparators=[judge(dear)])
    with ps.open_run(tmp_path / "ab.db") as store:
        assert store.counts() == {"items": 24, "pairs": 24, "attempts": 24, "comparisons": 24}
        assert store.spent() == pytest.approx(0.24)
        assert store.log_length("ab_answers") == 24
        assert store.log_length("ab_tasks") == 12


def test_texts_that_no_database_takes(tmp_path):
    odd = "half a \ud83d character, a zero \x00, and \u2028 a line"
    suite = ps.Suite.from_list([{"task_id": f"{odd} {n}", "input": f"{odd} {n}"} for n in range(4)])

    def strange(task):
        return odd + task.input

    found = run(suite, b=strange, run=tmp_path / "ab.db")
    assert found.counts("longer")["win"] == 4
    again = run(suite, b=strange, run=tmp_path / "ab.db")
    assert again.cases == found.cases
    assert again.asked == 0
    found.save(tmp_path / "run.json")
    assert ps.PairwiseRunResult.load(tmp_path / "run.json").cases == found.cases


def test_an_interrupted_run_keeps_what_it_has(tmp_path):
    def stops(A, B):
        Calls.n += 1
        if Calls.n == 10:
            raise KeyboardInterrupt
        return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}

    named = ps.FunctionJudge(stops, name="stops")
    with pytest.raises(KeyboardInterrupt):
        run(a=lambda task: "x", b=lambda task: "xy", comparators=[judge(named)], run=tmp_path / "ab.db", concurrency=1)
    with ps.open_run(tmp_path / "ab.db") as store:
        kept = store.counts()["comparisons"]
    assert 7 <= kept <= 9
    Calls.n = 100
    run(a=lambda task: "x", b=lambda task: "xy", comparators=[judge(named)], run=tmp_path / "ab.db", concurrency=1)
    assert Calls.n == 100 + 24 - kept


@pytest.mark.usefixtures("impatient")
def test_a_full_disk_ends_the_run_and_nothing_is_lost(tmp_path, monkeypatch):
    from pairscale.core.errors import StoreFullError
    from pairscale.store.writer import Writer

    commit, calls = Writer.commit, []

    def full(self, entries):
        calls.extend(entry for entry in entries if entry.asked is not None)
        if len(calls) > 10:
            raise StoreFullError("no room")
        commit(self, entries)

    monkeypatch.setattr(Writer, "commit", full)
    with pytest.raises(StoreFullError, match="no room"):
        run(run=tmp_path / "ab.db")
    monkeypatch.undo()
    with ps.open_run(tmp_path / "ab.db") as store:
        kept = store.counts()["comparisons"]
    assert 0 < kept <= 10
    found = run(run=tmp_path / "ab.db")
    assert found.tally("longer") == (0, 12, 0)
    with ps.open_run(tmp_path / "ab.db") as store:
        assert store.counts()["comparisons"] == 24
        assert store.counts()["attempts"] == 24


# Repeats


def test_repeats_are_cases_of_their_own(tmp_path):
    found = run(b=lambda task: task.input * random.randint(2, 50), repeats=3, run=tmp_path / "ab.db")
    assert [case.repeat for case in found.cases[:4]] == [1, 2, 3, 1]
    rate = found.win_rate("longer")
    assert (rate.n, rate.tasks) == (36, 12)
    again = run(b=lambda task: task.input * random.randint(2, 50), repeats=3, run=tmp_path / "ab.db")
    assert again.cases == found.cases, "each repeat keeps its own answer"


def test_equal_questions_are_asked_once(tmp_path):
    found = run(repeats=3, run=tmp_path / "ab.db", concurrency=8)
    assert found.tally("longer") == (0, 36, 0)
    assert Calls.n == 2 * 36 + 24


# Money and stopping


class Till:
    """A judge and variants that say afterwards what they cost; it knows how many were open at once.

    Answers after the first are only given once ``until`` were open at once; ``waited`` says that they never were.
    """

    def __init__(self, cost, until=0):
        self.cost, self.until, self.now, self.most, self.answered, self.waited = cost, until, 0, [], 0, False

    async def work(self):
        self.now += 1
        self.most.append(self.now)
        for _ in range(5):  # whoever may begin meanwhile does
            await asyncio.sleep(0)
        if self.answered and not self.waited:
            try:
                async with asyncio.timeout(600):
                    while max(self.most) < self.until:
                        await asyncio.sleep(0.001)
            except TimeoutError:
                self.waited = True
        self.now -= 1
        self.answered += 1

    async def judge(self, A, B):
        await self.work()
        return ps.Verdict.win(1 if len(A["text"]) > len(B["text"]) else 2, cost=self.cost)

    async def variant(self, task):
        await self.work()
        return ps.Trace(f"{task.input} Yes, because it rains.", cost=self.cost)


@pytest.mark.parametrize("concurrency", [1, 2, 8])
@pytest.mark.parametrize("limit", [0.05, 0.1, 0.35, 1.0])
def test_max_cost_holds_when_the_price_is_not_known_beforehand(limit, concurrency):
    till = Till(0.1)
    found = run(comparators=[judge(till.judge)], max_cost=limit, concurrency=concurrency)
    assert found.stopped == "max_cost"
    # The first answer is the price of learning it; nobody else is asked before it is known.
    assert found.cost == pytest.approx(max(0.1, 0.1 * int(limit / 0.1 + 1e-9)))
    assert till.most[0] == 1
    assert max(till.most[1:], default=1) <= 2 * concurrency


def test_one_is_asked_first_and_then_as_many_as_may_be():
    till = Till(0.1, until=4)
    found = run(comparators=[judge(till.judge)], max_cost=100, concurrency=4)
    assert (found.stopped, till.waited) == (None, False)
    assert till.most[:3] == [1, 1, 2]
    assert max(till.most) == 4, "never more than concurrency"


def test_a_judge_that_never_says_what_it_costs_is_stopped_after_its_first_answer(message_snapshot, tmp_path):
    free = Till(None)
    with pytest.raises(ps.errors.JudgeError) as refused:
        run(comparators=[judge(free.judge)], max_cost=100, concurrency=4, run=tmp_path / "ab.db")
    message_snapshot(refused)
    assert free.most == [1]
    with ps.open_run(tmp_path / "ab.db") as store:
        assert store.counts()["comparisons"] == 1, "the answer was given, and is stored"


def test_variants_are_asked_one_first_too():
    till = Till(1.0)
    found = run(b=till.variant, comparators=[judge(costless)], max_cost=1.5, concurrency=8)
    assert (found.stopped, found.cost) == ("max_cost", 1.0)
    assert till.most == [1]


def test_it_stops_when_it_is_decided():
    suite = ps.Suite.from_list([f"Question {n}?" for n in range(200)])
    found = run(suite, stop_when="decided", concurrency=1)
    look = RunningSequence()
    while not look.decided:
        look.update(1.0)
    assert len(found.cases) == look.n < 20
    assert (found.stopped, len(found.unasked)) == ("decided", 200 - look.n)
    assert found.verdict("longer").startswith("B is better: it won 100 %")
    assert [case.task_id for case in found.cases] != sorted(case.task_id for case in found.cases), "a random order"
    same = run(suite, stop_when="decided", concurrency=1)
    assert [case.task_id for case in same.cases] == [case.task_id for case in found.cases]


@pytest.mark.slow
def test_after_looks_every_interval_is_that_of_the_sequence(message_snapshot):
    """The judge gives B four of five, and every sixth case is a tie; each task is answered twice."""

    def mostly(A, B):
        number = int("".join(filter(str.isdigit, A["input"])))
        if number % 6 == 0:
            return {"is_valid": True, "Y": 0.5}
        return {"is_valid": True, "Y": int((len(A["text"]) > len(B["text"])) == (number % 5 > 0))}

    tasks = [{"input": f"Question {n}?", "tags": ["low" if n < 100 else "high"]} for n in range(200)]
    suite = ps.Suite.from_list(tasks)
    options = {"comparators": [judge(ps.FunctionJudge(mostly, name="mostly"))], "stop_when": "decided", "repeats": 2}
    found = run(suite, **options)
    assert (found.stopped, found.interval) == ("decided", "betting")
    frame = found.frame("longer")
    for ties, used in (("half", frame), ("excluded", frame.filter(outcome="win"))):
        rate, looks = found.win_rate("longer", ties=ties), RunningSequence()
        for score in task_means(used, "cases")["score"]:
            looks.update(score)
        assert rate.ci == pytest.approx((looks.lower, looks.upper))
        assert rate.rate == pytest.approx(looks.mean)
        assert (rate.interval, rate.tasks, rate.variant) == ("betting", looks.n, "B")
        fixed = win_rate(frame, ties=ties)
        assert rate.ci[0] < fixed.ci[0]
    assert found.to_dict()["win_rates"]["longer"]["interval"] == "betting"
    assert "95 % confidence sequence" in found.summary()
    assert found.win_rate("longer", level=0.5).ci[0] > found.win_rate("longer").ci[0]
    with pytest.raises(InputError) as refused:
        found.win_rate("longer", interval="wilson")
    message_snapshot(refused)
    plain = run(suite, comparators=options["comparators"])
    assert plain.win_rate("longer").interval == plain.interval == "wilson"
    assert "95 % confidence interval" in plain.summary()


def test_looks_follow_the_order_whatever_comes_first():
    """Fast cases that B loses come late in the order: the look waits for those before them."""
    from pairscale.evaluate.result import PairwiseCase
    from pairscale.evaluate.run import DecidedRule, Look

    def case(name, winner):
        return PairwiseCase(name, "k", winner, "", {}, ps.Outcome.WIN)

    def decided(look, place, one):
        look.take(place, one)
        return DecidedRule().stops([look], "loss")

    names = [f"t{n}" for n in range(20)]
    ahead, in_order = Look(names, "loss", DecidedRule()), Look(names, "loss", DecidedRule())
    for n in reversed(range(1, 20)):
        assert not decided(ahead, n, case(names[n], "b"))
    assert decided(ahead, 0, case(names[0], "b"))
    assert [decided(in_order, n, case(names[n], "b")) for n in range(20)].index(True) < 12
    together = Look(["t", "t", "u", "u"], "loss", DecidedRule())
    for n, winner in enumerate("abab"):
        together.take(n, case("tu"[n // 2], winner))
    assert [(one.mean, one.n) for one in together.sequences.values()] == [(0.5, 2), (0.5, 2)]


# Over HTTP: variants and judge are models


def served(server, prompt="{input}", **settings):
    settings = {"base_url": f"{server.url}/v1", "api_key": "k", "cache": False} | settings
    return ps.ModelVariant("openai:gpt-4.1", prompt, **settings)


@pytest.mark.slow
def test_models_as_variants_and_judge_resume(tmp_path):
    with ProviderSimulator(Behaviour(quality={}), faults=Faults(script=[500, "ok", 429])) as server:
        options = {
            "a": served(server, "Briefly: {input}"),
            "b": served(server, "At length: {input}", retries=3),
            "comparators": [
                ps.pairwise_judge(
                    "openai:gpt-4.1", criterion="better", key="k",
                    judge_args={"base_url": f"{server.url}/v1", "api_key": "k", "cache": False},
                )
            ],
            "run": tmp_path / "ab.db",
        }  # fmt: skip
        found = run(**options)
        asked = server.served
        prompts = [entry.body["messages"][-1]["content"] for entry in server.journal]
        again = run(**options)
        assert server.served == asked
    assert sum(prompt.startswith("Briefly: Question") for prompt in prompts) >= 12
    assert found.cost > 0
    assert [case.outcome for case in again.cases] == [case.outcome for case in found.cases]
    # The simulator says the same to all who show it no two texts.
    assert found.counts("k")["tie"] == 12


def test_a_model_that_refuses_is_an_error():
    with ProviderSimulator() as server:
        found = run(a=served(server, max_tokens=5), b=lambda task: "x")
        assert found.counts("longer")["win"] == 12
    with ProviderSimulator(keys=["right"]) as server, pytest.raises(JudgeError):
        run(a=served(server))


def test_a_prompt_needs_its_inputs(message_snapshot):
    with pytest.raises(InputError) as refused:
        ps.ModelVariant("ollama:m", "no place")
    message_snapshot(refused)
    variant = ps.ModelVariant("ollama:m", "{style}: {input}")
    with pytest.raises(InputError, match="has no style"):
        variant.prompt_for(ps.Task({"input": "x"}, "t"))
    assert variant.prompt_for(ps.Task({"input": "{style}", "style": "terse"}, "t")) == "terse: {style}"
