"""More than two variants, and what a variant is known by in a run file."""

import functools
import json
from itertools import combinations

import polars as pl
import pytest
from tests.evaluate.sides import longer

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate.ranking import saved_variants
from pairscale.evaluate.variants import make_variant, source_identity

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
    assert found.summary().splitlines()[0] == "longer: three is favoured: it is shown to be better than all others"
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


def test_what_cannot_be_ranked(message_snapshot):
    with pytest.raises(InputError) as refused:
        ps.run_variants(SUITE, {"a": times(1), "b": times(2)}, comparators=[judge()])
    message_snapshot(refused)


# Files of answers, and one baseline


def answered(tmp_path):
    for name, words in (("old", "Yes."), ("new", "Yes, it does."), ("newest", "Yes, it does, all day.")):
        rows = [{"task_id": f"t{n}", "input": f"Q{n}?", "output": words} for n in range(12)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return [tmp_path / f"{name}.jsonl" for name in ("old", "new", "newest")]


def test_three_files_of_answers_are_ranked(tmp_path):
    paths = answered(tmp_path)
    options = {"criterion": "says more", "judge": longer, "progress": False}
    found = ps.ab(*paths, **options, run=tmp_path / "v.db")
    assert found.variants == ("old", "new", "newest")
    assert found.ranking()["variant"].to_list() == ["newest", "new", "old"]
    assert found.ranking().select("wins", "losses").rows() == [(24, 0), (12, 12), (0, 24)]
    assert str(found) == found.verdict()
    with ps.open_run(tmp_path / "v.db") as store:
        assert saved_variants(store).ranking().equals(found.ranking())
    tables = [pl.read_ndjson(path) for path in paths]
    assert ps.ab(*tables, **options).variants == ("A", "B", "C")


def test_candidates_are_compared_with_one_baseline(tmp_path):
    options = {"criterion": "says more", "judge": longer, "progress": False, "baseline": "new"}
    found = ps.ab(*answered(tmp_path), **options)
    assert list(found.results) == [("new", "old"), ("new", "newest")]
    assert found.verdict() == "favoured over new: newest; worse than new: old"
    tasks = [f"Question {n}?" for n in range(8)]
    asked = ps.ab(tasks, variant={"old": times(1), "new": times(1), "newest": times(3)}, **options)
    assert asked.verdict() == "favoured over new: newest; not shown to differ from new: old"


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (3, {"control": "length"}, "`control=` does not go with a ranking"),
        (3, {"stop_when": "decided"}, "`stop_when=` does not go with a ranking"),
        (3, {"name_a": "x"}, "`name_a=` does not go with a ranking"),
        (3, {"baseline": "other"}, "`baseline=` names one of the variants"),
        (2, {"baseline": "old"}, "a ranking takes three variants or more"),
        (1, {"variant": ["x", "y=", "z=str"]}, "NAME=VARIANT"),
        (2, {"variant": ["x=str", "y=str", "z=str"]}, "`b=` does not go with a ranking"),
        (3, {"variant_timeout": 5.0}, "`variant_timeout=` does not go with a ranking"),
    ],
)
def test_what_is_of_two_is_refused(tmp_path, arguments, options, words):
    with pytest.raises(InputError, match=words):
        ps.ab(*answered(tmp_path)[:arguments], criterion="says more", judge=longer, progress=False, **options)


# What a variant is known by

PROMPT = "Be kind."


def reads_a_global(task):
    return PROMPT


class Holder:
    def __init__(self, prompt, client=None):
        self.prompt, self.client = prompt, client

    def __call__(self, task):
        return self.prompt


def with_default(task, prompt="x"):
    return prompt


@pytest.mark.parametrize("function", [reads_a_global, lambda task: PROMPT + "!"])
def test_a_prompt_outside_of_the_function_counts(function, monkeypatch):
    before = source_identity(function, "A")
    assert source_identity(function, "B") == before, "the name does not matter where all can be seen"
    monkeypatch.setitem(globals(), "PROMPT", "Be brief.")
    assert source_identity(function, "A") != before


def test_settings_count_wherever_they_are():
    def same(one, two):
        return source_identity(one, "A") == source_identity(two, "A")

    assert same(Holder("x"), Holder("x"))
    assert not same(Holder("x"), Holder("y"))
    assert same(functools.partial(with_default, prompt="x"), functools.partial(with_default, prompt="x"))
    assert not same(functools.partial(with_default, prompt="x"), functools.partial(with_default, prompt="y"))
    assert not same(lambda task, n=1: n, lambda task, n=2: n)
    assert not same(lambda task: 1, lambda task: 2)
    assert same(Holder("x").__call__, Holder("x").__call__)


def test_a_version_is_the_identity_and_objects_have_their_name_too():
    def answer(task):
        return "x"

    before = source_identity(answer, "A")
    answer.version = "2"
    second = source_identity(answer, "A")
    answer.version = "3"
    assert len({before, second, source_identity(answer, "A")}) == 3
    assert source_identity(Holder("x", object()), "A") == source_identity(Holder("x", object()), "A")
    assert source_identity(Holder("x", object()), "A") != source_identity(Holder("x", object()), "B")


def test_agents_are_known_by_their_type_and_name():
    class Agent:
        def __init__(self):
            self.number = id(self)

        async def ask(self, text):
            return text

    assert make_variant(Agent(), "A").identity == make_variant(Agent(), "A").identity
    assert make_variant(Agent(), "A").identity != make_variant(Agent(), "B").identity
