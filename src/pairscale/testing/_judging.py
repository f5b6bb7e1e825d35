"""What the simulator answers: it finds the two samples in a prompt, and judges them by a hidden quality."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pairscale.testing._layouts import locate_samples

Quality: TypeAlias = "Mapping[str, float] | Callable[[str], float] | None"
"""The hidden quality of a text: by the text itself, by a function of it, or, by default, by the lexical judge."""

_BLOCKS = re.compile(r"<(SAMPLE_[12])(| [0-9a-f]{12})>\s*(.*?)\s*</\1\2>", re.DOTALL)

_RULED = re.compile(
    r"^[<\[#-]+[^\n]*?(SAMPLE_[12])\b[^\n]*\n(.*?)\n(?:[^\n]*\1\b[^\n]*|</\w+>)$", re.DOTALL | re.MULTILINE
)
"""A sample between a line of signs that names it and one that closes it, as in our own templates."""

_FORM = re.compile(
    r"""(<(\w[\w-]*)>)[^<>\n]*SAMPLE_[^<>\n]*(</\2>)|(\{\s*"\w+":\s*"|\[+|\w+:[^\S\n]*)SAMPLE_[12]("\s*\}|\]+|)"""
)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the simulated model judges, and how it fails to.

    P(first) = (1 - lapse) · logistic(sharpness · (q₁ - q₂) + bias) + lapse / 2. What is drawn depends on the seed and
    the prompt alone, so that the same question gets the same answer.

    Attributes:
        quality: the hidden quality of the texts.
        sharpness: what a difference of quality is worth, in logits.
        bias: logits in favour of the first position.
        lapse: the share of answers that are a coin toss.
        error: the standard deviation of an error of its logit that belongs to the two texts, whatever their order.
        refusal_rate: the share of prompts that it refuses.
        malformed_rate: the share of answers without the tag that was asked for.
        empty_rate: the share of empty answers.
        truncated_rate: the share of answers that are cut off.
        filtered_rate: the share that a content filter stops.
        echo_rate: the share of answers that repeat the first text, and say nothing of their own.
        thoughts: what it says it thought.
        seed: of all that is drawn.
    """

    quality: Quality = None
    sharpness: float = 1.0
    bias: float = 0.0
    lapse: float = 0.0
    error: float = 0.0
    refusal_rate: float = 0.0
    malformed_rate: float = 0.0
    empty_rate: float = 0.0
    truncated_rate: float = 0.0
    filtered_rate: float = 0.0
    echo_rate: float = 0.0
    thoughts: str = "I weighed both texts against the definition."
    seed: int = 0

    def quality_of(self, text: str) -> float:
        """The hidden quality of a text."""
        if isinstance(self.quality, Mapping):
            return float(self.quality.get(text, 0.0))
        from pairscale.judges.lexical import lexical_score

        return float((self.quality or lexical_score)(text))


class SimulatedReply(NamedTuple):
    """An answer, in no provider's format.

    Attributes:
        text: the visible answer.
        kind: ``stop``, ``refusal``, ``length`` or ``content_filter``.
        thoughts: what was thought.
        p_first: the probability that SAMPLE_1 was to be chosen; None when there was nothing to choose.
        choice: 1 or 2, when one was chosen.
    """

    text: str
    kind: str = "stop"
    thoughts: str = ""
    p_first: float | None = None
    choice: int | None = None


def samples_of(prompt: str, *, is_choice: bool = False) -> tuple[str, str] | None:
    """The two samples in a prompt; None when there are none. Fences with a digest count alone, where there are any."""
    blocks = _BLOCKS.findall(prompt)
    if any(mark for _, mark, _ in blocks):
        blocks = [block for block in blocks if block[1]]
    texts = {side: text for side, _, text in reversed(blocks)}  # the first of each side
    if len(texts) < 2:
        texts = dict(reversed(_RULED.findall(prompt)))
    if len(texts) == 2:
        return texts["SAMPLE_1"], texts["SAMPLE_2"]
    return locate_samples(prompt, is_choice=is_choice)


def answer(prompt: str, behaviour: Behaviour, *, structured: str | None = None) -> SimulatedReply:
    """What the model says to a prompt.

    Args:
        prompt: the user's message.
        behaviour: how it judges.
        structured: the field of the JSON object that was asked for; None for the tag.
    """
    draw = random.Random(f"{behaviour.seed}|{prompt}").random  # noqa: S311 - a simulation, not a secret
    texts = samples_of(prompt, is_choice=structured is not None)
    if texts is None:
        return SimulatedReply("I see no two samples to compare.", thoughts=behaviour.thoughts)
    difference = behaviour.quality_of(texts[0]) - behaviour.quality_of(texts[1])
    logit = behaviour.sharpness * difference + behaviour.bias
    if behaviour.error:
        erring = random.Random(f"{behaviour.seed}|{'|'.join(sorted(texts))}").gauss(0, behaviour.error)  # noqa: S311
        logit += erring if texts[0] <= texts[1] else -erring
    p = (1 - behaviour.lapse) * 0.5 * (1 + math.tanh(logit / 2)) + behaviour.lapse / 2
    fate = draw()
    for rate, reply in (
        (behaviour.refusal_rate, SimulatedReply("", "refusal")),
        (behaviour.filtered_rate, SimulatedReply("", "content_filter")),
        (behaviour.empty_rate, SimulatedReply("")),
        (behaviour.truncated_rate, SimulatedReply("Let me see. The first text", "length")),
        (behaviour.malformed_rate, SimulatedReply("Both have their merits, but on balance the first.")),
        (behaviour.echo_rate, SimulatedReply(texts[0])),
    ):
        if fate < rate:
            return reply
        fate -= rate
    choice = 1 if draw() < p else 2
    text = f'{{"{structured}": "SAMPLE_{choice}"}}' if structured else _worded(prompt, texts, choice)
    sure = ""
    if not structured and "<CONFIDENCE>" in prompt:
        sure = f"\n<CONFIDENCE>{100 * (p if choice == 1 else 1 - p):.0f}</CONFIDENCE>"
    return SimulatedReply(f"{text}{sure}", "stop", behaviour.thoughts, p, choice)


def _worded(prompt: str, texts: tuple[str, str], choice: int) -> str:
    """The answer in the tags that the prompt shows; in any other form that it shows, and in the usual tags as well."""
    instructions = prompt.replace(texts[0], "").replace(texts[1], "")
    usual = f"<BETTER_SAMPLE>SAMPLE_{choice}</BETTER_SAMPLE>"
    form = _FORM.search(instructions)
    if form is None or "<BETTER_SAMPLE>" in instructions:
        return usual
    if form[1]:
        return f"{form[1]}SAMPLE_{choice}{form[3]}"
    return f"{form[4]}SAMPLE_{choice}{form[5]}\n{usual}"
