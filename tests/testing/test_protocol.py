"""The test for authors of judges: our own judges pass it, and every fault is named, all of them at once."""

import asyncio

import pytest

import pairscale as ps
from pairscale.core.comparisons import Condition
from pairscale.core.errors import InputError
from pairscale.evaluate._model_judge import TaskJudge
from pairscale.judges.base import JudgeCapabilities, JudgePair, Verdict, judge_member
from pairscale.judges.orders import BothOrders
from pairscale.providers.prices import Price
from pairscale.testing import ProviderSimulator, check_judge_protocol

ITEMS = [{"ID": name, "item_id": name, "text": f"A text of {name}."} for name in "ab"]
PAIRS = [JudgePair(*ITEMS, uid="a-b")]


@pytest.fixture(scope="module")
def server():
    with ProviderSimulator() as made:
        yield made


def model(server, name="openai:gpt-4.1", **settings):
    return ps.make_judge(name, judge_args={"base_url": f"{server.url}/v1", "api_key": "k-1234567"} | settings)


def replay():
    answers = [{"ID1": one, "ID2": other, "better_id": "a"} for one, other in ("ab", "ba")]
    return ps.ReplayJudge(answers)


async def waiting(A, B):
    await asyncio.sleep(0)
    return {"is_valid": True, "Y": 0.5}


JUDGES = {
    "lexical": lambda server: ps.make_judge("lexical"),
    "simulated": lambda server: ps.make_judge("simulated:theta_true"),
    "function": lambda server: ps.make_judge(lambda A, B: {"is_valid": False, "invalid_reason": "no"}),
    "async": lambda server: ps.make_judge(waiting),
    "raises": lambda server: ps.make_judge(lambda A, B: 1 / 0),
    "both orders": lambda server: BothOrders(ps.make_judge("lexical")),
    "openai": model,
    "openai, both orders": lambda server: BothOrders(model(server)),
    "openai, cache": lambda server: model(server, cache=True),
    "groq": lambda server: model(server, "groq:llama-3.3-70b"),
    "token": lambda server: model(server, "vertex:google/gemini-3.8-flash", api_key=lambda: "a-token"),
    "anthropic": lambda server: model(server, "anthropic:claude-opus-4-5", base_url=server.url),
    "human": lambda server: ps.make_judge("human"),
}


@pytest.mark.parametrize("name", JUDGES)
def test_our_own_judges_keep_to_it(server, name):
    report = check_judge_protocol(JUDGES[name](server), timeout=600)
    assert report.asked == (0 if name == "human" else 18)
    assert len(report.outcomes) == report.asked
    expected = {"raises": {"error"}, "function": {"abstention"}, "async": {"tie"}}.get(name)
    if expected is not None:
        assert set(report.outcomes) == expected
    elif report.asked:
        assert set(report.outcomes) <= {"win", "flip", "tie"}
    assert report.judge_id in str(report)


def test_judges_with_questions_of_their_own(server):
    assert check_judge_protocol(replay(), pairs=PAIRS).outcomes[0] == "win"
    judge = TaskJudge("openai:gpt-4.1", "better", {"base_url": f"{server.url}/v1", "api_key": "k-1234567"})
    items = [{"ID": name, "text": f"Answer {name}", "input": "Why?", "reference": None} for name in "ab"]
    report = check_judge_protocol(judge, pairs=[JudgePair(*items, uid="t")], timeout=600)
    assert "price" in report.members


def test_optional_members_and_their_defaults(server):
    bare = ps.make_judge(waiting)
    assert [judge_member(bare, name) for name in ("max_cost_of", "price", "uses_cache", "waits_for_people")] == [
        None, None, False, False,
    ]  # fmt: skip
    known = {name for name in vars(JudgeCapabilities) if not name.startswith("_")}
    assert known == {
        "max_cost_of",
        "price",
        "uses_cache",
        "waits_for_people",
        "graded",
        "allow_ties",
        "aclose",
    }
    own = known - {"waits_for_people", "graded", "allow_ties"}
    assert set(check_judge_protocol(model(server), ask=False).members) == own
    assert judge_member(bare, "graded") is True
    assert [judge_member(ps.make_judge(name), "graded") for name in ("lexical",)] == [False]
    assert judge_member(ps.make_judge("human"), "waits_for_people") is True
    assert judge_member(BothOrders(model(server)), "price") == model(server).price


class Good:
    """A judge of somebody's own, to be spoiled."""

    condition = Condition("mine", "function", None)

    async def compare(self, pair):
        return Verdict.win(1, cost=0.001)

    def max_cost_of(self, pair):
        return 0.001

    async def aclose(self):
        pass


def test_a_judge_of_ones_own():
    report = check_judge_protocol(Good())
    assert report.members == ("max_cost_of", "aclose")
    assert report.notes == ()


def spoiled(**members):
    return type("Spoiled", (Good,), members)()


async def raises(self, pair):
    raise KeyError("grade")


async def cancels(self):
    raise asyncio.CancelledError


async def quits(self, pair):
    raise InputError("cannot")


async def changes(self, pair):
    pair.first["text"] = "mine"
    return Verdict.win(1)


async def gives_up(self, pair):
    return Verdict.fail("http_error", "the key is wrong", failure="judge")


async def never(self, pair):
    await asyncio.sleep(3600)


async def odd_raw(self, pair):
    return Verdict.win(2, raw_response={"at": object()})


async def number(self, pair):
    return 1


class Once(Good):
    """Works in one event loop alone."""

    def __init__(self):
        self.lock = None

    async def compare(self, pair):
        self.lock = self.lock or asyncio.get_running_loop()
        if self.lock is not asyncio.get_running_loop():
            raise RuntimeError("another event loop")
        return Verdict.win(1)


class Drifting(Good):
    """Another condition at every reading."""

    n = 0

    @property
    def condition(self):
        Drifting.n += 1
        return Condition("drifting", "function", None, settings={"n": Drifting.n})


class Growing(Good):
    """Its condition changes with every answer."""

    n = 0

    @property
    def condition(self):
        return Condition("growing", "function", None, settings={"n": self.n})

    async def compare(self, pair):
        self.n += 1
        return Verdict.win(1)


FAULTS = {
    "it has no condition\n- it has no compare": object,
    "it is a class": lambda: Good,
    "compare is not callable": lambda: spoiled(compare=3),
    "must return an awaitable": lambda: spoiled(compare=lambda self, pair: Verdict.win(1)),
    "must return a Verdict, not int 1": lambda: spoiled(compare=number),
    "KeyError: 'grade'; it must return Verdict.fail": lambda: spoiled(compare=raises),
    "InputError: cannot, which would end the run": lambda: spoiled(compare=quits),
    "changes the samples": lambda: spoiled(compare=changes),
    "no question can be answered: the key is wrong": lambda: spoiled(compare=gives_up),
    "raw_response of a verdict must be plain JSON": lambda: spoiled(compare=odd_raw),
    "more than max_cost_of said, \\$0.0001": lambda: spoiled(max_cost_of=lambda self, pair: 0.0001),
    "0 or more, or None, not float nan": lambda: spoiled(max_cost_of=lambda self, pair: float("nan")),
    "0 or more, or None, not bool True": lambda: spoiled(max_cost_of=lambda self, pair: True),
    "max_cost_of raises ZeroDivisionError": lambda: spoiled(max_cost_of=lambda self, pair: 1 / 0),
    "max_cost_of must not be async": lambda: spoiled(max_cost_of=raises),
    "max_cost_of must be a method": lambda: spoiled(max_cost_of=0.1),
    "uses_cache must be True or False": lambda: spoiled(uses_cache="no"),
    "waits_for_people must be True or False": lambda: spoiled(waits_for_people=1),
    "price must be a": lambda: spoiled(price={"input": 1}),
    "aclose must be `async def`": lambda: spoiled(aclose=lambda self: None),
    "aclose raises KeyError": lambda: spoiled(aclose=lambda self: raises(self, None)),
    "aclose raises CancelledError": lambda: spoiled(aclose=cancels),
    "allow_ties must be a method, not int 3": lambda: spoiled(allow_ties=3),
    "allow_ties\\(True\\) raises TypeError": lambda: spoiled(allow_ties=lambda self: None),
    "allow_ties must not be async": lambda: spoiled(allow_ties=raises),
    "uses_cache raises KeyError: 'x'": lambda: spoiled(uses_cache=property(lambda self: {}["x"])),
    "condition must be a pairscale.Condition": lambda: spoiled(condition="mine"),
    "condition raises ZeroDivisionError": lambda: spoiled(condition=property(lambda self: 1 / 0)),
    "judge_id must be a name": lambda: spoiled(condition=Condition("", "function", None)),
    "settings has 'api_key', which may hold a secret": lambda: spoiled(
        condition=Condition("mine", "function", None, settings={"api_key": "abc-123", "max_tokens": 9})
    ),
    "differs from one reading to the next": Drifting,
    "changes while the judge is asked": Growing,
    "after aclose, in another event loop: .*another event loop": Once,
}


@pytest.mark.parametrize("words", FAULTS)
def test_every_fault_is_named(words):
    with pytest.raises(InputError, match=words):
        check_judge_protocol(FAULTS[words]())


def test_settings_must_be_json():
    with pytest.raises(InputError, match="plain JSON"):
        check_judge_protocol(spoiled(condition=Condition("m", "function", None, settings={"x": {1, 2}})))


def test_an_answer_that_never_comes():
    with pytest.raises(InputError, match=r"no answer within 0\.01 seconds"):
        check_judge_protocol(spoiled(compare=never), timeout=0.01)


def test_all_faults_stand_in_one_message():
    bad = spoiled(compare=changes, max_cost_of=lambda self, pair: -1, aclose=lambda self: None)
    with pytest.raises(InputError) as raised:
        check_judge_protocol(bad)
    assert str(raised.value).splitlines() == [
        "mine does not keep to the protocol of judges:",
        "- max_cost_of must return US dollars, 0 or more, or None, not int -1",
        "- compare changes the samples of the pair",
        "- aclose must be `async def`",
    ]


def test_names_that_are_nearly_right_are_noted():
    report = check_judge_protocol(spoiled(close=lambda self: None, aclose=None, price=Price(1, 2)))
    assert "price" in report.members
    near = type("Near", (), {"condition": Good.condition, "compare": Good.compare, "max_cost": 1, "close": 2})()
    notes = check_judge_protocol(near).notes
    assert notes == (
        "it has close, which is not looked up; the protocol's name is aclose",
        "it has max_cost, which is not looked up; the protocol's name is max_cost_of",
    )
