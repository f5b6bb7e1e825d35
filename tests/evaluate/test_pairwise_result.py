"""Results: figures by hand, agreement, differences between runs, files, and the verdict in words."""

import json
import math

import pytest

import pairscale as ps
from pairscale.checks.effect import wilson
from pairscale.core.errors import FileFormatError, InputError, RunsNotComparableError
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


def test_a_run_of_errors_has_no_rate():
    found = result(k="eeexx")
    assert found.win_rate("k").rate is None
    assert found.verdict("k") == (
        "nothing is decided, as no case has a winner; not counted: 2 abstentions (the judge did not choose), 3 errors "
        "(the judge failed); the judge gave no answer in 5 of 5 cases: look at why, and run it again"
    )


def test_the_directions_of_flips():
    cases = [
        ps.PairwiseCase(f"t{n}", "k", None, "", {"direction": place}, ps.Outcome.FLIP)
        for n, place in enumerate(["first", "first", "second", None])
    ]
    found = ps.PairwiseRunResult("run", tuple(cases), ("k",))
    assert found.flip_directions("k") == {"first": 2, "second": 1}


FEW = "compare more tasks (about 200 are enough if the better one wins 60 %), or decide by cost"
NONE = "nothing is decided, as no case has a winner"


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        (
            "b" * 122 + "a" * 78 + "t" * 14 + "f" * 9 + "e" * 2,
            (
                "B is better: it won 122 of 200 cases with a winner (61 %; 95 % confidence interval 54 to 67 %); "
                "not counted: 14 ties, 9 flips (the order of the answers decided), 2 errors (the judge failed); "
                "B is favoured"
            ),
        ),
        (
            "a" * 122 + "b" * 78,
            (
                "A is better: it won 122 of 200 cases with a winner (61 %; 95 % confidence interval 54 to 67 %); "
                "A is favoured"
            ),
        ),
        (
            "ab" * 50 + "t",
            (
                "no difference shown: B won 50 of 100 cases with a winner (50 %; 95 % confidence interval 40 to 60 %)"
                f"; not counted: 1 tie; {FEW}"
            ),
        ),
        (
            "b",
            (
                "no difference shown: B won 1 of 1 case with a winner (100 %; 95 % confidence interval 21 to 100 %); "
                f"{FEW}"
            ),
        ),
        (
            "tt",
            (
                f"{NONE}; not counted: 2 ties; the judge sees no difference: name a criterion that says more exactly "
                "what counts, or another judge"
            ),
        ),
        (
            "ff",
            (
                f"{NONE}; not counted: 2 flips (the order of the answers decided); the judge goes by the order of the "
                "answers: name a better judge"
            ),
        ),
        (
            "bbba" + "f" * 9,
            (
                "no difference shown: B won 3 of 4 cases with a winner (75 %; 95 % confidence interval 30 to 95 %); "
                "not counted: 9 flips (the order of the answers decided); the judge goes by the order of the answers: "
                "name a better judge"
            ),
        ),
        ("", f"{NONE}; there is nothing to compare: look at why no task has an answer of both"),
    ],
)
def test_the_verdict_in_words(letters, words):
    assert result(k=letters).verdict("k") == words


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


def test_what_has_changed_for_b():
    before, after = result(k="abttfxaab"), result(k="bbatbeaxb")
    diff = after.diff(before)
    assert [(change.task_id, change.before, change.after) for change in diff.regressions] == [("t2", 0.5, 0.0)]
    assert [(change.task_id, change.after) for change in diff.improvements] == [("t0", 1.0), ("t4", 1.0)]
    assert diff.unchanged == 4
    assert [name[0] for name in diff.unanswered] == ["t5", "t7"]
    assert str(diff) == "1 worse, 2 better, 4 as before, 2 without an answer"
    assert not after.diff(after).regressions


def test_runs_that_are_not_of_the_same_tasks(message_snapshot):
    long, short = result(k="abab"), result(k="bb")
    with pytest.raises(RunsNotComparableError) as refused:
        long.diff(short)
    message_snapshot(refused)
    with pytest.raises(RunsNotComparableError) as refused:
        short.diff(long)
    message_snapshot(refused)
    diff = long.diff(short, strict=False)
    assert (len(diff.regressions), diff.unchanged, len(diff.only_here)) == (1, 1, 2)
    with pytest.raises(RunsNotComparableError) as refused:
        long.diff(result(other="ab"), strict=False)
    message_snapshot(refused)


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


def test_a_few_wins_are_not_called_better():
    """Wilson's interval alone would call equal variants different in 12 % of comparisons of four cases."""
    for n in range(1, 41):
        called = 0
        for wins in range(n + 1):
            run = result(k="b" * wins + "a" * (n - wins))
            lower, upper = deciding_rate(run, "k").ci
            is_better = "is better" in run.verdict("k")
            assert is_better == (not lower <= 0.5 <= upper), "the verdict and the chart go by one interval"
            called += math.comb(n, wins) * is_better
        assert called / 2**n <= 0.05, n
    assert result(k="bbbb").verdict("k") == (
        f"no difference shown: B won 4 of 4 cases with a winner (100 %; 95 % confidence interval 40 to 100 %); {FEW}"
    )
    assert result(k="bbbbbb").verdict("k").startswith("B is better: it won 6 of 6")
