"""More than two variants, and what a variant is known by in a run file."""

import functools
import importlib
import json
import os
import subprocess
import sys
from itertools import combinations

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate._identity import identity_of
from pairscale.evaluate.ranking import _chosen

SUITE = ps.Suite.from_list([f"Question {n}?" for n in range(30)])


class Counter:
    def __init__(self):
        self.n = 0


Calls = Counter()


def times(n):
    def variant(task):
        Calls.n += 1
        return task.input * n

    return variant


def longer(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


def judge(function=longer, key="longer"):
    return ps.pairwise_judge(function, criterion="says more", key=key)


@pytest.mark.slow
def test_a_clear_order_is_found(message_snapshot, tmp_path):
    Calls.n = 0
    variants = {"one": times(1), "three": times(3), "two": times(2)}
    found = ps.run_variants(SUITE, variants, comparators=[judge()], run=tmp_path / "v.db", progress=False)
    assert Calls.n == 90, "each answers each task once"
    table = found.ranking()
    assert table["variant"].to_list() == ["three", "two", "one"]
    assert table["rank"].to_list() == [1, 2, 3]
    assert table.select("wins", "losses").rows() == [(60, 0), (30, 30), (0, 60)]
    assert found.best() == "three"
    assert (table["lower"] < table["theta"]).all()
    assert (table["theta"] < table["upper"]).all()
    assert found.results["one", "three"].tally("longer") == (0, 30, 0)
    assert found.summary().splitlines()[0] == "longer: three is the best; choose three"
    again = ps.run_variants(SUITE, variants, comparators=[judge()], run=tmp_path / "v.db", progress=False)
    assert Calls.n == 90
    assert again.ranking().equals(table)
    with pytest.raises(ps.errors.UnknownNameError) as refused:
        again.ranking("shorter")
    message_snapshot(refused)


@pytest.mark.slow
def test_equals_have_no_best():
    even = ps.FunctionJudge(lambda A, B: {"is_valid": True, "Y": 0.5}, name="even")
    found = ps.run_variants(
        SUITE, {name: lambda task, name=name: name for name in "abc"}, comparators=[judge(even)], progress=False
    )
    assert found.best() is None
    assert found.ranking()["ties"].to_list() == [60, 60, 60]
    assert found.ranking()["theta"].to_list() == pytest.approx([0, 0, 0], abs=1e-9)
    assert "no difference between them is shown; compare more tasks" in found.summary()


def test_scores_are_those_of_the_model():
    """Against a fit of the same comparisons, written down by hand."""

    def broken(task):
        if task.task_id.endswith("5"):
            raise ValueError("five")
        return "xx"

    variants = {"a": lambda task: "x", "b": broken, "c": lambda task: "xxx" if int(task.task_id[-2:]) % 3 else ""}
    found = ps.run_variants(SUITE, variants, comparators=[judge()], progress=False)
    rows = []
    for n in range(30):
        lengths = {"a": 1, "b": -1 if n % 10 == 5 else 2, "c": 3 if n % 3 else -1}  # whoever fails has lost
        rows += [
            {"object1": x, "object2": y, "result": (lengths[x] > lengths[y]) / 1 if lengths[x] != lengths[y] else 0.5}
            for x, y in combinations("abc", 2)
        ]
    fit = ps.fit_bt_model(rows, engine="firth", ties="half")
    expected = dict(fit.theta.select("ID", "theta").iter_rows())
    assert dict(found.ranking().select("variant", "theta").iter_rows()) == pytest.approx(expected, abs=1e-6)
    assert found.ranking()["errors"].sum() == 0
    left_out = ps.run_variants(SUITE, variants, comparators=[judge()], failures="excluded", progress=False)
    assert left_out.ranking().filter(variant="b")["errors"].item() == 6 + 9


@pytest.mark.parametrize("n_pairs", [6, 7, 45, 119, 120, 500])
def test_a_sample_is_spread_evenly(n_pairs):
    couples = list(combinations("abcd", 2))
    chosen = _chosen(20, couples, n_pairs, 1)
    assert len(chosen) == min(n_pairs, 120)
    assert len(set(chosen)) == len(chosen)
    counts = [sum(couple == one for _, one in chosen) for couple in couples]
    assert max(counts) - min(counts) <= 1
    assert chosen == _chosen(20, couples, n_pairs, 1)


def test_what_cannot_be_ranked(message_snapshot):
    with pytest.raises(InputError) as refused:
        ps.run_variants(SUITE, {"a": times(1), "b": times(2)}, comparators=[judge()])
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.run_variants(SUITE, {"a": times(1), "b": times(2), "c": times(3)}, comparators=[judge()], n_pairs=2)
    message_snapshot(refused)


# What a variant is known by

PROMPT = "Be kind."


def reads_a_global(task):
    return PROMPT


def calls_it(task):
    return reads_a_global(task)


class Client:
    __slots__ = ("address",)


class Holder:
    def __init__(self, prompt, client=None):
        self.prompt, self.client = prompt, client

    def __call__(self, task):
        return self.prompt


def with_default(task, prompt="x"):
    return prompt


@pytest.mark.parametrize("function", [reads_a_global, calls_it, lambda task: calls_it(task) + "!"])
def test_a_prompt_outside_of_the_function_counts(function, monkeypatch):
    before = identity_of(function, "A")
    assert identity_of(function, "B") == before, "the name does not matter where all can be seen"
    monkeypatch.setitem(globals(), "PROMPT", "Be brief.")
    assert identity_of(function, "A") != before


def test_settings_count_wherever_they_are():
    def same(one, two):
        return identity_of(one, "A") == identity_of(two, "A")

    assert same(Holder("x"), Holder("x"))
    assert not same(Holder("x"), Holder("y"))
    assert same(functools.partial(with_default, prompt="x"), functools.partial(with_default, prompt="x"))
    assert not same(functools.partial(with_default, prompt="x"), functools.partial(with_default, prompt="y"))
    assert not same(lambda task, n=1: n, lambda task, n=2: n)
    assert not same(lambda task: 1, lambda task: 2)
    assert same(Holder("x").__call__, Holder("x").__call__)


class Prompts:
    SYSTEM = "Be kind."


class Base:
    def words(self):
        return "base"


class Helper(Base):
    punctuation = "!"

    def __init__(self):
        self.mark = "."

    def finished(self, text):
        return text + self.mark + self.punctuation

    @staticmethod
    def still(text):
        return text

    @property
    def shown(self):
        return self.mark

    def __call__(self, task):
        return self.finished(self.words())

    def method(self, task):
        return self.words()


HELPER = Helper()


def reads_a_class(task):
    return Prompts.SYSTEM


def makes_an_object(task):
    return Helper().finished("x")


def uses_an_object(task):
    return HELPER.finished("x")


@pytest.mark.parametrize(
    ("function", "kind", "name", "changed"),
    [
        (reads_a_class, Prompts, "SYSTEM", "Be brief."),
        (makes_an_object, Helper, "finished", lambda self, text: text),
        (makes_an_object, Helper, "still", staticmethod(lambda text: text * 2)),
        (makes_an_object, Helper, "shown", property(lambda self: "?")),
        (makes_an_object, Helper, "punctuation", "?"),
        (makes_an_object, Base, "words", lambda self: "other"),
        (uses_an_object, Helper, "finished", lambda self, text: text),
        (HELPER, Helper, "finished", lambda self, text: text),
        (HELPER, Base, "words", lambda self: "other"),
        (HELPER.method, Base, "words", lambda self: "other"),
        (Helper, Base, "words", lambda self: "other"),
    ],
)
def test_what_a_class_does_counts(function, kind, name, changed, monkeypatch):
    before = identity_of(function, "A")
    assert identity_of(function, "A") == before
    monkeypatch.setattr(kind, name, changed)
    assert identity_of(function, "A") != before


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A package of one's own, with prompts in a module of it."""
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").write_text("")
    (tmp_path / "own_package" / "prompts.py").write_text(
        "SYSTEM, UNUSED = 'Be kind.', 'x'\ndef wrapped(text):\n    return SYSTEM + text\n"
    )
    (tmp_path / "own_variants.py").write_text(
        "import own_package.prompts\nfrom own_package import prompts\n"
        "def by_name(task):\n    return prompts.SYSTEM\n"
        "def by_path(task):\n    return own_package.prompts.SYSTEM\n"
        "def by_call(task):\n    return prompts.wrapped(task.input)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield importlib.import_module("own_variants")
    for name in ("own_package", "own_package.prompts", "own_variants"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["by_name", "by_path", "by_call"])
def test_what_is_read_from_a_module_of_ones_own_counts(modules, monkeypatch, name):
    function = getattr(modules, name)
    before = identity_of(function, "A")
    assert identity_of(function, "B") == before
    monkeypatch.setattr(modules.prompts, "UNUSED", "y")
    assert identity_of(function, "A") == before, "nobody reads it"
    monkeypatch.setattr(modules.prompts, "SYSTEM", "Be brief.")
    assert identity_of(function, "A") != before


IDENTITIES = """
import dataclasses, enum, abc
from pairscale.evaluate._identity import identity_of

class Kind(enum.Enum):
    ONE = 1

@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    mark: str = "."
    kinds: frozenset = frozenset({"a", "b", "c"})

class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

class Square(Shape):
    def area(self):
        return Kind.ONE

def answer(task):
    return Settings().mark + str(Square().area()) if task in {"x", "y", "z"} else ""

print(identity_of(answer, "A") == identity_of(answer, "B"), identity_of(answer, "A"))
"""


@pytest.mark.slow
def test_classes_are_known_again_in_another_process(tmp_path):
    """Whatever order sets have there, and at whatever place in memory things lie."""
    (tmp_path / "script.py").write_text(IDENTITIES)
    said = {
        subprocess.run(
            [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1
    assert said.pop().startswith("True callable:")


def test_what_cannot_be_seen_is_known_by_the_name():
    one, two = Holder("x", Client()), Holder("x", Client())
    assert identity_of(one, "A") == identity_of(two, "A")
    assert identity_of(one, "A") != identity_of(one, "B")


def test_agents_and_packages_are_not_looked_into():
    """What they hold differs from process to process: numbers of connections, names by chance."""
    from pairscale.evaluate.variants import make_variant

    class Agent:
        def __init__(self):
            self.number = id(self)

        async def ask(self, text):
            return text

    assert make_variant(Agent(), "A").identity == make_variant(Agent(), "A").identity
    assert make_variant(Agent(), "A").identity != make_variant(Agent(), "B").identity
    assert identity_of(json.dumps, "A") == identity_of(json.dumps, "B")


def own_module(folder, monkeypatch, name, code):
    (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    return importlib.import_module(name)


@pytest.mark.parametrize("name", ["SYSTEM", "SUFFIX"])
def test_every_function_counts_for_what_it_reads_of_a_module(tmp_path, monkeypatch, name):
    prompts = own_module(tmp_path, monkeypatch, "own_prompts", "SYSTEM, SUFFIX = 'Be kind.', '!'\n")
    code = (
        "import own_prompts\ndef answer(task):\n    return own_prompts.SYSTEM + ended()\n"
        "def ended():\n    return own_prompts.SUFFIX\n"
    )
    function = own_module(tmp_path, monkeypatch, "own_endings", code).answer
    before = identity_of(function, "A")
    monkeypatch.setattr(prompts, name, "?")
    assert identity_of(function, "A") != before


@pytest.mark.parametrize(("old", "new"), [("'kept'", "'other'"), ("(2)", "(3)"), ("'wrapped'", "'turned'"), ("7", "8")])
def test_what_stands_around_a_function_counts(tmp_path, monkeypatch, old, new):
    code = (
        "import functools\nlist = 7\n@functools.cache\ndef prompt(n):\n    return n, 'kept'\n"
        "def around(function):\n    @functools.wraps(function)\n    def inner(task):\n"
        "        return 'wrapped', function(task)\n    return inner\n"
        "@around\ndef answer(task):\n    return prompt(2), list\n"
    )
    before = identity_of(own_module(tmp_path, monkeypatch, "own_around", code).answer, "A")
    changed = own_module(tmp_path, monkeypatch, "own_changed", code.replace(old, new)).answer
    assert identity_of(own_module(tmp_path, monkeypatch, "own_again", code).answer, "A") == before
    assert identity_of(changed, "A") != before


def test_a_long_chain_of_functions_is_followed_to_its_end(tmp_path, monkeypatch):
    chain = "".join(f"def f{n}(task):\n    return f{n + 1}(task)\n" for n in range(600))
    module = own_module(tmp_path, monkeypatch, "own_chain", f"{chain}def f600(task):\n    return END\nEND = 'a'\n")
    before = identity_of(module.f0, "A")
    monkeypatch.setattr(module, "END", "b")
    assert identity_of(module.f0, "A") != before


def test_a_value_that_holds_itself_is_no_trap():
    registry = {"x": 1, "all": []}
    registry["all"].append(registry)

    def answer(task):
        return registry

    before = identity_of(answer, "A")
    registry["x"] = 2
    assert identity_of(answer, "A") != before


def test_functions_that_call_each_other_end():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    assert identity_of(even, "A") == identity_of(even, "A") != identity_of(odd, "A")
