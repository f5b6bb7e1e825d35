"""A judge checked against people: labels of texts and of cases, repeats, nonsense, costs, resuming."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.evaluate.judge_check import nonsense


def rows_of(path):
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


WORDS = "rain snow wind sun fog hail storm cloud sky sea".split()


def answers(seed):
    rng = random.Random(seed)
    return {f"t{n:02d}": " ".join(rng.choices(WORDS, k=rng.randint(3, 15))) + f" {seed}" for n in range(40)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Cases, their key and the labels of a person, who mostly prefers the longer answer."""
    monkeypatch.chdir(tmp_path)
    sides = [ps.InMemoryTraceSource(answers(seed)) for seed in (1, 2)]
    ps.export_pairwise_cases(*sides, criteria=["more helpful", "kinder"], out="cases.jsonl", seed=3)
    rows = rows_of("cases.jsonl")
    rng = random.Random(5)
    labels = []
    for row in (row for row in rows if row["criterion"] == "more helpful"):
        first = "1" if len(row["response_1"]) > len(row["response_2"]) else "2"
        said = rng.choices([first, {"1": "2", "2": "1"}[first], "tie"], [7, 2, 1])[0]
        labels.append(json.dumps({"case_id": row["case_id"], "preferred": said, "labeller": "ann"}))
    Path("people.jsonl").write_text("\n".join(labels), "utf-8")
    return tmp_path


def longer(A, B):
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"])), "cost": 0.001}


def check(judge=longer, **options):
    given = {
        "labels": "people.jsonl",
        "criterion": "more helpful",
        "progress": False,
    }
    return ps.check_judge("cases.jsonl", judge, **(given | options))


def test_the_figures_are_those_counted_by_hand(folder):
    found = check()
    cases = {row["case_id"]: row for row in rows_of("cases.jsonl")}
    labels = {row["case_id"]: row["preferred"] for row in rows_of("people.jsonl")}
    counts = Counter()
    for name, said in labels.items():
        one, two = (len(cases[name][f"response_{at}"]) for at in (1, 2))
        # Equally long: the judge names whoever stands second, in both orders, which is a flip.
        judge = "flip" if one == two else "1" if one > two else "2"
        counts[
            "tied" if said == "tie" else "undecided" if judge == "flip" else "same" if judge == said else "other"
        ] += 1
    measured = found.card.measures
    assert measured["agreement"].n == counts["same"] + counts["other"]
    assert measured["agreement"].value == pytest.approx(counts["same"] / measured["agreement"].n)
    net = measured["net_agreement"]
    decided = counts["same"] + counts["other"] + counts["undecided"]
    assert (net.n, net.value) == (decided, pytest.approx((counts["same"] - counts["other"]) / decided))
    assert measured["longer"].value == 1.0
    assert measured["longer_excess"].value == pytest.approx(counts["other"] / measured["longer_excess"].n)
    assert (measured["repeatability"].n, measured["repeatability"].value) == (20, 1.0)
    assert (measured["distractor"].n, measured["distractor"].value) == (20, 1.0)
    assert (measured["validity"].n, measured["validity"].value) == (2 * 40 + 20 + 2 * 20, 1.0)
    assert measured["cost"].value == pytest.approx(0.001)
    assert (found.card.data["n_labelled"], found.card.data["labellers"], found.n_pairs) == (40, 1, 40)
    assert found.card.judge.trait == "more helpful"


def test_kappa_is_by_variant(folder, caplog):
    """A judge that always names the second variant: by place it would seem to vary."""
    key = {row["case_id"]: row["first_variant"] for row in rows_of("cases.key.jsonl")}
    assert set(key.values()) == {"a", "b"}
    found = check(lambda A, B: {"is_valid": True, "Y": int(A["text"].endswith(" 2"))})
    assert found.card.measures["kappa"].value == pytest.approx(0, abs=1e-9)
    assert "read as" not in caplog.text, "nothing is said of a table that nobody gave"


def test_the_same_call_asks_nothing_again_and_a_budget_stops_it(folder):
    asked = []

    def counted(A, B):
        asked.append(1)
        return longer(A, B)

    judge = ps.FunctionJudge(counted, name="counted")
    first = check(judge, run="check.db")
    assert len(asked) == 140
    again = check(judge, run="check.db")
    assert len(asked) == 140
    assert again.card.measures == first.card.measures
    short = check(judge, max_cost=0.05, concurrency=1)
    assert short.card.data["n_unasked"] > 0
    assert short.card.measures["validity"].value == 1.0, "what was not asked is not invalid"
    assert short.card.measures["repeatability"].why


def test_failures_and_ties_are_counted_for_what_they_are(folder):
    def odd(A, B):
        if sum(map(ord, A["text"] + B["text"])) % 7 == 0:
            return {"is_valid": False, "invalid_reason": "refusal"}
        return {"is_valid": True, "Y": 0.5}

    found = check(odd).card.measures
    assert 0 < found["validity"].value < 1
    assert found["agreement"].why == "no pair was decided by people and answered by the judge"
    assert found["net_agreement"].value == 0
    assert found["net_agreement"].n > 0


def test_labels_of_other_answers_do_not_count(folder, caplog):
    rows = rows_of("cases.jsonl")
    rows[0]["response_1"] += " changed"
    Path("cases.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    assert check().card.data["n_labelled"] == 39
    assert "labels: 1 cannot be used, or are of other cases" in caplog.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"criterion": None}, "choose one of the criteria"),
        ({"criterion": "loud"}, "choose one of the criteria"),
        ({"criterion": "kinder"}, "no label is of the criterion 'kinder'"),
        ({"trait": "overall_quality"}, "trait and template belong to texts"),
        ({"base_url": "http://x"}, "`base_url=` belongs to a provider's model"),
        ({"labels": [{"case_id": "x"}]}, "labels of cases are a file"),
        ({"labels": None, "key": "cases.key.jsonl"}, "`key=` belongs to `labels=`"),
    ],
)
def test_what_cannot_be_checked_is_refused(folder, options, words):
    with pytest.raises(InputError, match=words):
        check(**options)


def test_texts_with_labels_of_several_people(message_snapshot):
    texts = [{"ID": name, "text": name * (at + 1)} for at, name in enumerate(WORDS)]
    said = [("rain", "snow", "snow"), ("snow", "rain", "snow"), ("rain", "snow", "rain"), ("sun", "sea", "sun"),
            ("sun", "gone", "sun")]  # fmt: skip
    rows = [
        {"ID1": one, "ID2": two, "better_id": better, "labeller": f"p{n}"} for n, (one, two, better) in enumerate(said)
    ]
    found = ps.check_judge(texts, longer, labels=rows, progress=False)
    assert found.n_pairs == 2
    agreement = found.card.measures["agreement"]
    assert (agreement.n, agreement.value) == (2, 0.5), "two of three prefer the snow"
    assert found.card.judge.kind == "texts"
    with pytest.raises(InputError) as refused:
        ps.check_judge(texts, longer, labels=[{"ID1": "x", "ID2": "y", "better_id": "x"}], progress=False)
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        ps.check_judge(texts, longer, criterion="kind", progress=False)
    message_snapshot(refused)


def test_without_labels_the_check_is_the_short_one():
    found = ps.check_judge([{"ID": name, "text": name} for name in WORDS], longer, progress=False)
    assert (found.n_pairs, found.n_asked) == (30, 60)
    assert found.card.measures["agreement"].why == "no labels of people were given"
    assert found.card.measures["distractor"].why
    assert found.card.measures["longer"].n > 0


def test_nonsense_is_the_same_for_the_same_text_and_seed():
    assert nonsense("A text.", 1) == nonsense("A text.", 1)
    assert len({nonsense("A text.", 1), nonsense("A text.", 2), nonsense("Another.", 1)}) == 3
    assert len(nonsense("word " * 400, 1).split()) == 60


@pytest.mark.slow
def test_a_question_that_is_asked_twice_is_not_answered_from_the_cache(folder, clean_environment, monkeypatch):
    """At temperature 0 answers are remembered; the second asking has an answer of its own all the same."""
    from pairscale.testing import ProviderSimulator

    with ProviderSimulator() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        options = {"judge_args": {"temperature": 0}, "n_pairs": 3, "cache": True}
        found = check("openai:gpt-4.1", **options)
        asked = server.served
        assert asked == 2 * 3 + 3 + 2 * 3
        assert found.card.measures["repeatability"].n == 3
        assert found.card.judge.template_hash
        again = check("openai:gpt-4.1", **options)
        assert server.served == asked, "another run finds all of them"
        assert again.card.measures["repeatability"] == found.card.measures["repeatability"]


@pytest.mark.slow
def test_the_report_shows_the_card(message_snapshot, folder):
    check().save_card("card.json")
    page = ps.report("card.json").read_text("utf-8")
    assert "not measured" in page
    assert "Agreement with people" in page
    with pytest.raises(InputError) as refused:
        ps.report("card.json", kind="ab")
    message_snapshot(refused)
