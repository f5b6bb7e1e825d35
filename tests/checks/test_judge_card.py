"""The judge card: written, read again, and refused when it is not what was written."""

import json

import pytest

import pairscale as ps
from pairscale.checks.card import MEASURES, JudgeCard, JudgeIdentity, Measure, _digest
from pairscale.core.comparisons import Condition
from pairscale.core.errors import FileFormatError, InputError

CONDITION = Condition("openai:m", "openai", "m", "helpful", "pairwise", {"template": "ab12", "temperature": 0})


def card(**changed):
    measures = {name: Measure.missing("not tried") for name in MEASURES}
    counts = {"agreed": 40, "reversed": 8, "undecided": 2}
    measures["agreement"] = Measure(48, 40 / 48, 0.7, 0.91, "wilson", counts)
    measures["net_agreement"] = Measure(50, 0.64, 0.4, 0.8, "score", counts)
    data = {"kind": "cases", "n_pairs": 50, "n_labelled": 50, "labellers": 1, "seed": 1, "digest": "d"}
    return JudgeCard(JudgeIdentity.of(CONDITION, "cases", "helpful"), measures | changed, data)


def test_a_card_comes_back_as_it_was(tmp_path):
    path = card().save(tmp_path / "card.json")
    back = ps.read_judge_card(path)
    assert back == card() or back.to_dict() == {**card().to_dict(), "made_at": back.made_at, "digest": back.digest}
    assert back.table.filter(measure="agreement")["n"].item() == 48
    assert back.measures["kappa"].why == "not tried"
    assert str(back) == "openai:m agrees with people on 83% of 48 pairs (95 % confidence interval 70% to 91%)"
    with pytest.raises(InputError, match=r"path must end in \.json|\.json"):
        card().save(tmp_path / "card.csv")


def test_a_card_from_before_the_correlation_is_read():
    document = edited(lambda d: d["measures"].pop("correlation"), sign=True)
    assert JudgeCard.from_dict(document).measures["correlation"].why == "the card is of an earlier version"


def edited(change, *, sign=False):
    document = json.loads(json.dumps(card().to_dict()))
    change(document)
    if sign:
        document["digest"] = _digest({name: value for name, value in document.items() if name != "digest"})
    return document


EDITS = {
    "a figure": (lambda d: d["measures"]["agreement"].update(value=0.9), False, "not as it was written"),
    "the judge": (lambda d: d["judge"].update(judge_id="openai:other"), False, "not as it was written"),
    "the digest": (lambda d: d.update(digest="0" * 64), False, "not as it was written"),
    "no digest": (lambda d: d.pop("digest"), False, "not as it was written"),
    "old": (lambda d: d.update(schema_version="0"), True, "schema_version '0', and this pairscale reads '1'"),
    "another format": (lambda d: d.update(format="x"), True, "is not a judge card"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_wrong_old_or_edited_card_is_refused_in_one_line(name, tmp_path):
    change, sign, words = EDITS[name]
    path = tmp_path / "card.json"
    path.write_text(json.dumps(edited(change, sign=sign)), "utf-8")
    with pytest.raises(FileFormatError, match=words) as refused:
        ps.read_judge_card(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "pairscale check-judge" in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"card"', b"null", b"\xff\xfe\x00", b'{"format": 1}'])
def test_what_is_no_card_at_all(content, tmp_path):
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(FileFormatError, match="is not a judge card"):
        ps.read_judge_card(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Condition("openai:n", "openai", "n", "helpful", "pairwise", CONDITION.settings), "judge 'openai:m' on"),
        (Condition("openai:m", "openai", "m", "helpful", "pairwise", {"template": "cd", "temperature": 0}),
         "text of the prompt 'ab12' on the card, 'cd' here"),
        (Condition("openai:m", "openai", "m", "helpful", "pairwise", {"template": "ab12", "temperature": 1}),
         "setting temperature 0 on the card, 1 here"),
        (Condition("openai:m", "openai", "m", "helpful", "pairwise", {"template": "ab12"}),
         "setting temperature 0 on the card, not set here"),
    ],
)  # fmt: skip
def test_what_differs_in_another_judge_is_named(other, words):
    assert words in "; ".join(card().judge.differences(JudgeIdentity.of(other, "cases", "helpful")))


def test_the_same_judge_has_no_difference_and_no_login_is_kept():
    assert card().judge.differences(JudgeIdentity.of(CONDITION, "cases", "helpful")) == []
    secret = Condition("m", "compatible", "m", None, None, {"base_url": "https://me:hush@host/v1"})
    assert "hush" not in json.dumps(JudgeIdentity.of(secret, "cases", "x").settings)
