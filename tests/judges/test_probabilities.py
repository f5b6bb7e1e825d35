"""Judges that say how sure they are."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.judges.answers import CONFIDENCE_QUESTION, stated_confidence
from pairscale.judges.base import JudgePair, Verdict
from pairscale.judges.build import judge_with
from pairscale.judges.orders import BothOrders

ABILITIES = {f"t{at:03d}": float(value) for at, value in enumerate(np.random.default_rng(1).normal(0, 2, 60))}


def told(judge: ps.Judge, first: str, second: str) -> Verdict:
    return asyncio.run(judge.compare(JudgePair({"ID": first, "text": first}, {"ID": second, "text": second})))


def logits_of(judge: ps.SimulatedJudge) -> tuple[np.ndarray, np.ndarray]:
    """Logits of all neighbours, and true differences."""
    names = list(ABILITIES)
    pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 : at + 20]]
    p = np.array([told(judge, *pair).probability for pair in pairs], dtype=np.float64)
    return np.log(p / (1 - p)), np.array([ABILITIES[a] - ABILITIES[b] for a, b in pairs])


def test_errors_are_as_large_as_they_are_said_to_be() -> None:
    z, d = logits_of(ps.SimulatedJudge(ABILITIES, error=1.0, bias=0.5))
    assert np.std(z - d) == pytest.approx(1.0, abs=0.06)
    assert np.mean(z - d) == pytest.approx(0.5, abs=0.1)
    z, d = logits_of(ps.SimulatedJudge(ABILITIES, error=0.5, error_df=4, limit=5.0))
    assert np.abs(z).max() == pytest.approx(5.0)
    plain, erring = ps.SimulatedJudge(ABILITIES), ps.SimulatedJudge(ABILITIES, error=1.0)
    assert "error" not in plain.condition.settings  # answers of before are found again
    assert plain.condition.condition_id != erring.condition.condition_id


@pytest.mark.parametrize(
    ("text", "position", "probability"),
    [
        ("<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE> <CONFIDENCE>80</CONFIDENCE>", 1, 0.8),
        ("<CONFIDENCE>60%</CONFIDENCE> no: <confidence> 97.5 % </confidence>", 2, 0.025),
        ("I am quite sure.", 1, None),
        ("<CONFIDENCE>250</CONFIDENCE>", 1, None),
        ("<CONFIDENCE>-5</CONFIDENCE>", 1, None),
    ],
)
def test_stated_confidence(text: str, position: int, probability: float | None) -> None:
    found = stated_confidence(text, position)
    assert found is probability is None or found == pytest.approx(probability)


def test_a_model_is_asked_for_what_a_probability_is_made_of(message_snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "planted")
    pair = JudgePair({"ID": "a", "text": "one"}, {"ID": "b", "text": "two"})

    def sent(judge: str, **judge_args: Any) -> dict[str, Any]:
        made: Any = judge_with(judge, judge_args=judge_args, answer="probability")
        return dict(made.preview(pair)[1])

    chat = sent("openai:gpt-4.1")
    assert (chat["logprobs"], chat["top_logprobs"]) == (True, 20)
    asked = sent("anthropic:claude-sonnet-4-5", answer="confidence")["messages"][0]["content"][0]["text"]
    assert asked.endswith(CONFIDENCE_QUESTION)
    with pytest.raises(InputError) as refused:
        judge_with("anthropic:claude-sonnet-4-5", answer="probability")
    message_snapshot(refused)
    with pytest.raises(InputError, match=r"while it reasons.*answer='confidence'"):
        judge_with("openai:gpt-5.1", judge_args={"reasoning": "low"}, answer="probability")


def test_probabilities_of_both_orders_are_merged() -> None:
    judge = ps.make_judge(ps.SimulatedJudge(ABILITIES, error=1.0, bias=1.0))
    both = BothOrders(judge)
    found = told(both, "t001", "t002")
    one, two = told(judge, "t001", "t002").probability, told(judge, "t002", "t001").probability
    assert one is not None
    assert two is not None
    assert found.probability == pytest.approx((one + 1 - two) / 2)
    assert math.isfinite(found.probability or math.nan)
