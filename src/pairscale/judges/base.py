"""The seam between judging and everything else: a pair goes in, a verdict comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from pairscale.core.comparisons import ERROR_CODES, Condition, Outcome
from pairscale.core.errors import InputError
from pairscale.core.failures import FAILURES, Failure
from pairscale.core.options import require_int, require_number
from pairscale.core.tables import Values

Item: TypeAlias = Mapping[str, Any]
"""A sample as a judge sees it: ``ID`` (also as ``item_id``), ``text``, and every other column of the samples."""


LARGEST = 2**56
"""Larger figures of a judge are dropped; sums of figures up to this one fit into a run file."""


@dataclass(frozen=True, slots=True)
class JudgePair:
    """One question: which of these two?

    Attributes:
        first: the sample shown first, SAMPLE_1.
        second: the sample shown second, SAMPLE_2.
        uid: the pair's stable name; a judge that draws random numbers draws them from it.
        attempt: 1 for the first time that this question is asked, 2 after one transient failure, and so on.
        state: the adaptive run that asks, when one does; a callable that takes ``state`` is given it.
        occurrence: 1 when a run asks about these two texts in this order for the first time, 2 when it does so on
            purpose for the second time, and so on; the same after the run is resumed.
        is_swapped: whether this is the other order of a question that is asked in both.
    """

    first: Item
    second: Item
    uid: str = ""
    attempt: int = 1
    state: Any = field(default=None, repr=False, compare=False)
    occurrence: int = 1
    is_swapped: bool = False


_UNPAID = frozenset({"http_error", "rate_limited", "judge_error"})
"""Error codes of a question that no model was asked, or that it refused, so that nothing is paid for it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said, or why it said nothing.

    Build one with :meth:`win`, :meth:`tie`, :meth:`abstain` or :meth:`fail`.

    Attributes:
        outcome: one of the five kinds.
        winner_pos: 1 or 2 for a win, else None.
        probability: that the first sample is better, where the judge gives one.
        content: the visible answer.
        thoughts: the reasoning, where it is given.
        model: the model that answered, as the provider names it.
        object_type: the kind of reply, as the provider names it.
        status_code: of HTTP, where there was HTTP.
        error_code: one of :data:`pairscale.core.comparisons.ERROR_CODES`, for an abstention or an error.
        error_message: the reason.
        failure: for an abstention or an error, ``transient`` (asking again makes sense), ``question`` (this question
            cannot be answered) or ``judge`` (no question can be answered); None for an answer.
        retry_after: seconds that the judge asks to wait before that.
        prompt_tokens: tokens of the question.
        completion_tokens: tokens of the answer.
        total_tokens: both.
        prompt_cached_tokens: of the question, those that were cached.
        reasoning_tokens: of the answer, those that were thoughts.
        latency_s: seconds that it took; measured by the collector when the judge does not say.
        cost: in US dollars, where it is known.
        cost_is_estimate: whether ``cost`` is the most that the question may have cost, as the reply states none.
        cached: whether the answer comes from the answer cache; it costs nothing.
        saved: US dollars that asking would have cost, for an answer from the cache whose price is known.
        prompt_hash: SHA-256 of the prompt.
        request: what was sent, for the run file.
        raw_response: what came back, for the run file.
    """

    outcome: Outcome
    winner_pos: Literal[1, 2] | None = None
    probability: float | None = None
    content: str | None = None
    thoughts: str | None = None
    model: str | None = None
    object_type: str | None = None
    status_code: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    failure: Failure | None = None
    retry_after: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_s: float | None = None
    cost: float | None = None
    cost_is_estimate: bool = False
    cached: bool = False
    saved: float | None = None
    prompt_hash: str | None = None
    request: Any = field(default=None, repr=False)
    raw_response: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.winner_pos not in ((1, 2) if self.outcome is Outcome.WIN else (None,)):
            raise InputError(f"a verdict is a win exactly when winner_pos is 1 or 2, not {self.winner_pos!r:.80}")
        if self.winner_pos is not None:
            object.__setattr__(self, "winner_pos", int(self.winner_pos))  # numpy's numbers are no values of a database
        for name, kind in _FIGURES:
            value = getattr(self, name)
            most = 1 if name == "probability" else LARGEST
            if value is not None and not (type(value) is kind and 0 <= value <= most):
                object.__setattr__(self, name, require_figure(value, f"the {name} of a verdict", kind, most))
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):  # some servers name their models by numbers
                object.__setattr__(self, name, str(value))
        if self.outcome in (Outcome.WIN, Outcome.TIE, Outcome.FLIP):
            is_sound = self.error_code is None and self.failure is None
        else:
            object.__setattr__(self, "failure", self.failure or "question")
            is_sound = self.error_code in ERROR_CODES and self.failure in FAILURES
        if not is_sound:
            raise InputError(
                "a verdict has an error_code and a failure exactly when it is an abstention or an error: one of "
                f"{', '.join(ERROR_CODES)}, and one of {', '.join(FAILURES)}"
            )

    @classmethod
    def win(cls, winner_pos: Literal[1, 2], **more: Any) -> Verdict:
        """The sample in position 1 or 2 is better."""
        return cls(Outcome.WIN, winner_pos, **more)

    @classmethod
    def tie(cls, **more: Any) -> Verdict:
        """Neither is better."""
        return cls(Outcome.TIE, **more)

    @classmethod
    def abstain(cls, reason: str, **more: Any) -> Verdict:
        """The judge declines to say."""
        return cls(Outcome.ABSTENTION, error_code=more.pop("error_code", "refusal"), error_message=reason, **more)

    @classmethod
    def fail(cls, error_code: str, message: str, *, failure: Failure = "question", **more: Any) -> Verdict:
        """There is no answer because something went wrong."""
        return cls(Outcome.ERROR, error_code=error_code, error_message=message, failure=failure, **more)

    def with_cost_at_most(self, most: float | None) -> Verdict:
        """The verdict with the highest possible cost, where it may have cost something and states no cost.

        A refusal (any status of HTTP but success) and a connection that was never made cost nothing.
        """
        if self.status_code is not None:
            may_cost = 200 <= self.status_code < 300
        else:
            may_cost = self.error_code not in _UNPAID
        if not most or not may_cost or self.cost is not None or self.cached:
            return self
        return replace(self, cost=most, cost_is_estimate=True)


_FIGURES = tuple(
    (attribute.name, int if str(attribute.type).startswith("int") else float)
    for attribute in fields(Verdict)
    if str(attribute.type).startswith(("int", "float"))
)
"""The numbers of a verdict, and what they are kept as."""
_TEXTS = ("content", "thoughts", "model", "object_type", "error_message", "prompt_hash")


def require_figure(value: Any, name: str, kind: type[int] | type[float], most: int = LARGEST) -> float:
    """A number of 0 or more of the given kind, small enough that a run file can hold the sum of many.

    Raises:
        InputError: If it is anything else.
    """
    if kind is int:
        return require_int(value, name, least=0, most=most)
    return require_number(value, name, least=0, most=most)


@runtime_checkable
class Judge(Protocol):
    """Anything that can say which of two samples is better: what every judge must have.

    What a judge may have besides is in :func:`judge_member`.
    """

    @property
    def condition(self) -> Condition:
        """The judge's identity: everything besides the pair that may change its answers.

        Answers in a run file are found again by it, so it must be the same whenever it is read, in every process, and
        another one after any change that may change an answer. Its settings must be plain JSON, without secrets.
        """
        ...

    async def compare(self, pair: JudgePair) -> Verdict:
        """Which of the two is better.

        It returns a failure as a :class:`Verdict` rather than raising it, must not change the pair, and may be called
        again before it has answered. A :class:`~pairscale.core.errors.PairscaleError` that it raises ends the run.
        """
        ...


AnyJudge: TypeAlias = str | Judge | Callable[..., Any]
"""A judge by its name, a judge, or a function ``judge(A, B)``; see :func:`pairscale.make_judge`."""

_DEFAULTS: Values = {
    "max_cost_of": None, "price": None, "uses_cache": False, "waits_for_people": False, "graded": True,
    "allow_ties": None, "aclose": None,
}  # fmt: skip


def judge_member(judge: object, name: str) -> Any:
    """An optional member of a judge, or its default.

    - ``max_cost_of(pair)``: what one question may cost at most, in US dollars; 0 when it is free, None when the price
      is unknown. With ``max_cost``, questions are asked side by side as long as their sum fits. A judge without this
      method is asked one question at a time until it has said what an answer costs; one that returns None is refused.
    - ``price``: what its tokens cost, with the date of the price, which is shown beside its costs; by default None.
    - ``uses_cache``: whether answers may come from a cache; by default False. When it is True, every question says by
      ``pair.occurrence`` which time it is asked on purpose, so that each repeat has an answer of its own.
    - ``waits_for_people``: whether people answer, so that ``timeout`` does not apply; by default False.
    - ``graded``: whether the probability that a verdict states is the judge's answer; by default True. A win rate is
      then the mean preference. False for a judge whose probability is only a by-product of a hard verdict.
    - ``allow_ties(allowed)``: is told whether a tie counts as an answer, before an adaptive run asks.
    - ``async aclose()``: closes connections and files at the end of every call; the judge may be asked again.
    """
    return getattr(judge, name, _DEFAULTS[name])


class FreeJudge:
    """What judges share that cost no money, and whose probability, where they state one, is a by-product."""

    __slots__ = ()

    graded: bool | None = False

    def max_cost_of(self, pair: JudgePair) -> float:  # noqa: ARG002 - every judge is asked alike
        """Nothing: this judge costs no money."""
        return 0.0


PANEL_OF = "panel of "
"""How the name of a panel begins; the names of its members follow, with commas."""

_WARNINGS = {
    "lexical": "lexical is the embedded baseline, which counts surface features and does not understand texts",
    "simulated": "simulated answers are drawn at random from a known truth, and no text is read",
}


def is_judge(name: str) -> bool:
    """Whether a name is that of a judge who is no person, such as ``lexical`` or ``openai:gpt-5.1``."""
    from pairscale.providers.catalog import PROVIDERS

    return name in _WARNINGS or (":" in name and name.partition(":")[0] in PROVIDERS)


def judged_by(names: Iterable[str | None]) -> str:
    """The names of judges, joined for a sentence.

    Example:
        >>> judged_by(["lexical", "openai:gpt-5.1", "lexical"])
        'lexical and openai:gpt-5.1'
    """
    different = list(dict.fromkeys(name for name in names if name))
    return " and ".join(filter(None, [", ".join(different[:-1]), *different[-1:]]))


def no_grading(names: Iterable[str | None]) -> str:
    """What to say where the embedded baseline or a simulated judge has judged; nothing for other judges.

    Args:
        names: the judges, as a run calls them (``lexical``) or as the user does (``simulated:theta_true``); of a panel,
            every member counts.

    Example:
        >>> no_grading(["openai:gpt-5.1"])
        ''
    """
    members = [member.strip() for name in names if name for member in name.removeprefix(PANEL_OF).split(",")]
    kinds = {member.partition(":")[0].partition(" (")[0] for member in members}
    warnings = [warning for kind, warning in _WARNINGS.items() if kind in kinds]
    return f"Not for grading: {'; '.join(warnings)}." if warnings else ""
