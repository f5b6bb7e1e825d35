"""Results: figures by hand, agreement, differences between runs, files, and the verdict in words."""

import json
import math

import pytest

import pairscale as ps
from pairscale.checks.effect import wilson
from pairscale.core.errors import FileFormatError, InputError
from pairscale.evaluate.wording import deciding_rate

KINDS = {
    "a": ("a", "win"), "b": ("b", "win"), "t": ("tie", "tie"), "f": (None, "flip"), "x": (None, "abstention"),
    "e": (None, "error"),
}  # fmt: skip


def result(**letters):
    """A run from letters: of each key, one letter a task."""
    cases = [
        ps.PairwiseCase(f"t{n}", key, KINDS[letter][0], "", {}, ps.Outcome(KINDS[letter][1]))
        for key, said in letters.items()
        for n, letter in enumerate(said)
    ]
    return ps.PairwiseRunResult("run", tuple(cases), tuple(letters))


def test_figures_by_hand():
    found = result(k="bbbaattffxe")
    assert found.tally("k") == (2, 3, 2)
    assert found.flips("k") == 2
    assert found.counts("k") == {"win": 5, "tie": 2, "flip": 2, "abstention": 1, "error": 1}
    half = found.win_rate("k")
    # (3 + 2 · ½ + 2 · ½) / 9; abstentions and errors are left out
    assert (half.variant, half.rate, half.n) == ("B", 5 / 9, 9)
    alone = found.win_rate("k", ties="excluded")
    assert (alone.rate, alone.n) == (3 / 5, 5)
    # Wilson's interval of 3 in 5
    assert alone.ci == pytest.approx((0.2307, 0.8824), abs=1e-4)


def test_the_directions_of_flips():
    cases = [
        ps.PairwiseCase(f"t{n}", "k", None, "", {"direction": place}, ps.Outcome.FLIP)
        for n, place in enumerate(["first", "first", "second", None])
    ]
    found = ps.PairwiseRunResult("run", tuple(cases), ("k",))
    assert found.flip_directions("k") == {"first": 2, "second": 1}


def test_the_verdict_in_words(message_snapshot):
    won = "b" * 122 + "a" * 78 + "t" * 14 + "f" * 9 + "e" * 2
    lost = "a" * 122 + "b" * 78
    for letters in (won, lost, "ab" * 50 + "t", "b", "bbbb", "tt", "ff", "bbba" + "f" * 9, "eeexx", ""):
        message_snapshot(result(k=letters).verdict("k"))
    assert result(k="eeexx").win_rate("k").rate is None


def test_agreement_by_hand(caplog):
    found = result(model="aabbttfxea", human="abbbtataaf")
    both = found.agreement("model", "human")
    assert not caplog.records, "nothing is said of a table that nobody gave"
    # a a b b t t against a b b b t a; the other four have a flip, an abstention or an error on one side
    assert (both.n, both.left_out, both.rate) == (6, 4, 4 / 6)
    assert both.disagreements == (("t1", "a", "b"), ("t5", "tie", "a"))
    # chance: a 2/6 · 2/6 + b 2/6 · 3/6 + t 2/6 · 1/6 = 12/36
    assert both.cohen_kappa == pytest.approx((4 / 6 - 12 / 36) / (1 - 12 / 36))
    assert both.ci is None
    assert both.notices == ("no interval of kappa: 6 cases are too few, it takes 20",)
    assert both.rate_ci == pytest.approx(wilson(4, 6, 0.95))
    many = result(model="aabbtt" * 8, human="abbbta" * 8).agreement("model", "human")
    assert many.ci[0] <= many.cohen_kappa <= many.ci[1]
    none = result(model="ff", human="aa").agreement("model", "human")
    assert (none.rate, none.cohen_kappa, none.n, none.left_out) == (None, None, 0, 2)


def test_a_saved_run_is_the_same_again(message_snapshot, tmp_path):
    suite = ps.Suite.from_list([{"input": f"q{n}", "tags": ["x"]} for n in range(3)])
    judge = ps.pairwise_judge("lexical", criterion="c", key="k")
    found = ps.run_pairwise(
        suite, variant_a=lambda task: "no", variant_b=lambda task: 1 / 0 if "1" in task.input else "yes, it is",
        comparators=[judge], store_dir=tmp_path / "runs", label="nightly", variant_b_name="new", progress=False,
    )  # fmt: skip
    path = tmp_path / "runs" / f"{found.run_id}.json"
    document = json.loads(path.read_text())
    assert document["schema_version"] == "0.1"
    assert (document["label"], document["variant_b"], document["n_pairs"]) == ("nightly", "new", 3)
    again = ps.PairwiseRunResult.load(path)
    assert again.to_dict() == found.to_dict()
    assert again.cases == found.cases
    document["cases"][0]["task_digest"] = "of an earlier version"
    assert ps.PairwiseRunResult.from_dict(document).cases == found.cases
    assert again.verdict("k") == found.verdict("k")
    assert found.save(tmp_path / "own.json") == tmp_path / "own.json"
    with pytest.raises(InputError) as refused:
        again.save()
    message_snapshot(refused)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema_version": "9"}', '{"schema_version": "0.1"}'])
def test_a_file_that_is_no_run(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(FileFormatError, match=r"x\.json"):
        ps.PairwiseRunResult.load(tmp_path / "x.json")


@pytest.mark.parametrize("sizes", [range(1, 13), pytest.param(range(13, 41), marks=pytest.mark.slow)])
def test_a_few_wins_are_not_called_better(sizes):
    """Wilson's interval alone would call equal variants different in 12 % of comparisons of four cases."""
    for n in sizes:
        called = 0
        for wins in range(n + 1):
            run = result(k="b" * wins + "a" * (n - wins))
            lower, upper = deciding_rate(run, "k").ci
            is_better = "is better" in run.verdict("k")
            assert is_better == (not lower <= 0.5 <= upper), "the verdict and the chart go by one interval"
            called += math.comb(n, wins) * is_better
        assert called / 2**n <= 0.05, n
    assert result(k="bbbbbb").verdict("k").startswith("B is better: it won 6 of 6")
