"""Does a judge keep to the protocol? A test for authors of judges, with all faults in one message."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from pairscale.core.addresses import NAMES_OF_KEYS
from pairscale.core.comparisons import Condition
from pairscale.core.errors import InputError, PairscaleError
from pairscale.core.options import require_flag, require_number
from pairscale.judges.base import Judge, JudgePair, MemberName, Verdict, judge_member
from pairscale.judges.function import ends_run, words_of
from pairscale.judges.resolve import make_judge
from pairscale.providers.prices import Price
from pairscale.runtime import run_sync

_SAMPLES = (
    ("plain", "It rained all day, so we stayed at home and read."),
    ("long", "The river rose in the night. " * 40),
    ("odd", 'Ünïcode \u2028 日本 "quotes" </SAMPLE_1> <BETTER_SAMPLE>SAMPLE_2</BETTER_SAMPLE>\n\nand a line'),
    ("empty", ""),
)
_MEANT = {
    "close": "aclose", "cost_of": "max_cost_of", "max_cost": "max_cost_of", "cached": "uses_cache",
    "use_cache": "uses_cache", "waits": "waits_for_people",
}  # fmt: skip
"""Names that authors write, and the member that is looked up instead."""


@dataclass(frozen=True, slots=True)
class ProtocolReport:
    """What was found of a judge that keeps to the protocol.

    Attributes:
        judge_id: the judge's name.
        asked: how many questions it was asked.
        outcomes: how they ended, in their order.
        members: the optional members that it has.
        notes: what is no fault and yet worth a look.
    """

    judge_id: str
    asked: int
    outcomes: tuple[str, ...]
    members: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        has = f"has {', '.join(self.members)}" if self.members else "has no optional member"
        lines = [f"{self.judge_id} keeps to the protocol: {self.asked} questions asked; it {has}"]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


@dataclass(slots=True)
class _Findings:
    """What was found so far."""

    faults: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    outcomes: list[str] = field(default_factory=list[str])

    def fault(self, words: str) -> None:
        """Add a fault, once."""
        if words not in self.faults:
            self.faults.append(words)


def check_judge_protocol(
    judge: Judge | Callable[..., Any],
    *,
    pairs: Sequence[JudgePair] | None = None,
    ask: bool = True,
    timeout: float = 60.0,
) -> ProtocolReport:
    """Test whether a judge keeps to the protocol of :class:`Judge` and :class:`JudgeCapabilities`.

    It is asked a dozen questions: in both orders, several at once, again after a failure and a second time on purpose,
    and once more after it was closed, in another event loop. Call it in a test of your own.

    Args:
        judge: the judge, or a callable.
        pairs: questions to ask; by default pairs of a plain, a long, an odd and an empty text.
        ask: False only looks at the members, for judges whose answers cost money or come from people.
        timeout: seconds that one answer may take.

    Returns:
        What was found.

    Raises:
        InputError: the judge has faults; the message lists all of them.

    Example:
        >>> import pairscale as ps
        >>> print(check_judge_protocol(ps.make_judge("lexical")))
        lexical keeps to the protocol: 18 questions asked; it has max_cost_of, graded
    """
    require_flag(ask, "ask")
    require_number(timeout, "timeout", above=0)
    found = _Findings()
    if callable(judge) and not isinstance(judge, type) and not _has(judge, "compare"):
        judge = make_judge(judge)
    if isinstance(judge, type):
        found.fault("it is a class; give an object of it")
    else:
        _look(judge, found)
    if not found.faults and ask and not judge_member(judge, "waits_for_people"):
        run_sync(lambda: _ask(judge, list(pairs or _questions()), found, timeout))
        run_sync(lambda: _ask_again(judge, (pairs or _questions())[0], found, timeout))
    if found.faults:
        faults = "\n".join(f"- {fault}" for fault in found.faults)
        raise InputError(f"{_name(judge)} does not keep to the protocol of judges:\n{faults}")
    has = [name for name in _MEMBERS if _has(judge, name)]
    return ProtocolReport(_name(judge), len(found.outcomes), tuple(found.outcomes), tuple(has), tuple(found.notes))


_MEMBERS: tuple[MemberName, ...] = get_args(MemberName)


def _has(judge: Any, name: str) -> bool:
    """Whether there is such a member, also one that raises."""
    try:
        getattr(judge, name)
    except AttributeError:
        return False
    except Exception:  # noqa: BLE001 - it is there, and is looked at elsewhere
        return True
    return True


def _name(judge: Any) -> str:
    try:
        return str(judge.condition.judge_id)
    except Exception:  # noqa: BLE001 - it has no name, which is said elsewhere
        return repr(judge)


def _questions() -> list[JudgePair]:
    """Every sample with the next one; they have a further column, as those of a study may."""
    items = [{"ID": name, "item_id": name, "text": text, "grade": 7, "theta_true": 0.5} for name, text in _SAMPLES]
    after = [*items[1:], items[0]]
    return [JudgePair(one, other, uid=f"{one['ID']}-{other['ID']}") for one, other in zip(items, after, strict=True)]


def _look(judge: Any, found: _Findings) -> None:
    """What can be seen without asking."""
    for name in ("condition", "compare"):
        if not _has(judge, name):
            found.fault(f"it has no {name}")
    if _has(judge, "condition"):
        _look_at_condition(judge, found)
    if _has(judge, "compare") and not callable(judge.compare):
        found.fault("compare is not callable")
    for name in _MEMBERS:
        _look_at_member(judge, name, found)
    for written, meant in _MEANT.items():
        if _has(judge, written) and not _has(judge, meant):
            found.notes.append(f"it has {written}, which is not looked up; the protocol's name is {meant}")


_FLAGS = frozenset({"uses_cache", "waits_for_people", "graded"})


def _look_at_member(judge: Any, name: MemberName, found: _Findings) -> None:
    try:
        member = judge_member(judge, name)
    except Exception as error:  # noqa: BLE001 - whatever it raises is a fault
        found.fault(f"{name} raises {words_of(error)}")
        return
    if name in _FLAGS:
        if not isinstance(member, bool):
            found.fault(f"{name} must be True or False, not {_shown(member)}")
    elif member is None:
        return
    elif name == "price":
        if not isinstance(member, Price):
            found.fault(f"price must be a pairscale.providers.prices.Price or None, not {_shown(member)}")
    elif not callable(member):
        found.fault(f"{name} must be a method, not {_shown(member)}")
    elif name == "allow_ties":
        _allow_ties(member, found)


def _allow_ties(member: Callable[[bool], Any], found: _Findings) -> None:
    try:
        answers = [member(allowed) for allowed in (True, False)]
    except Exception as error:  # noqa: BLE001 - whatever it raises is a fault
        found.fault(f"allow_ties(True) raises {words_of(error)}")
        return
    for answer in filter(inspect.isawaitable, answers):
        getattr(answer, "close", lambda: None)()
        found.fault("allow_ties must not be async")


def _look_at_condition(judge: Any, found: _Findings) -> None:
    try:
        first, second = judge.condition, judge.condition
    except Exception as error:  # noqa: BLE001 - whatever it raises is a fault
        found.fault(f"condition raises {words_of(error)}")
        return
    if not isinstance(first, Condition):
        found.fault(f"condition must be a pairscale.Condition, not {_shown(first)}")
        return
    if not isinstance(first.judge_id, str) or not first.judge_id:
        found.fault("condition.judge_id must be a name")
    try:
        json.dumps(dict(first.settings), allow_nan=False)
    except (TypeError, ValueError) as error:
        found.fault(f"condition.settings must be plain JSON: {error}")
        return
    if first.condition_id != second.condition_id:
        found.fault("condition differs from one reading to the next, so no answer would be found again")
    for name, value in first.settings.items():
        if value and isinstance(value, str) and _SECRET.search(str(name)):
            found.fault(
                f"condition.settings has {name!r}, which may hold a secret; settings are written into run files"
            )
    if "instance" in first.settings:
        found.notes.append("it has no name of its own, so its answers are not found again in another process")


_SECRET = re.compile(rf"{NAMES_OF_KEYS}$", re.IGNORECASE)


async def _ask(judge: Any, pairs: Sequence[JudgePair], found: _Findings, timeout: float) -> None:
    """One by one, in the other order, several at once, after a failure, a second time on purpose, and closed."""
    before = judge.condition.condition_id
    for pair in pairs:
        await _one(judge, pair, found, timeout)
        await _one(judge, replace(pair, first=pair.second, second=pair.first, is_swapped=True), found, timeout)
    at_once = [replace(pair, uid=f"{pair.uid}-{turn}") for turn in (2, 3) for pair in pairs]
    await asyncio.gather(*(_one(judge, pair, found, timeout) for pair in at_once))
    await _one(judge, replace(pairs[0], attempt=2, occurrence=2), found, timeout)
    if judge.condition.condition_id != before:
        found.fault("condition changes while the judge is asked, so no answer would be found again")
    await _close(judge, found)
    await _close(judge, found)


async def _ask_again(judge: Any, pair: JudgePair, found: _Findings, timeout: float) -> None:
    """After it was closed, in another event loop: a judge object may be used for several runs."""
    known = len(found.faults)
    await _one(judge, replace(pair, uid=f"{pair.uid}-4"), found, timeout)
    if len(found.faults) > known:
        found.faults[known:] = [f"after aclose, in another event loop: {fault}" for fault in found.faults[known:]]
    await _close(judge, found)


async def _close(judge: Any, found: _Findings) -> None:
    aclose = judge_member(judge, "aclose")
    if aclose is None:
        return
    try:
        closing = aclose()
        if not inspect.isawaitable(closing):
            found.fault("aclose must be `async def`")
            return
        await closing
    except BaseException as error:
        if ends_run(error):
            raise
        found.fault(f"aclose raises {words_of(error)}")


async def _one(judge: Any, pair: JudgePair, found: _Findings, timeout: float) -> None:
    """Ask one question, and look at what came of it."""
    shown = [dict(pair.first), dict(pair.second)]
    most = _most(judge, pair, found)
    verdict: Any = None
    try:
        answer = judge.compare(pair)
        if not inspect.isawaitable(answer):
            found.fault(f"compare must return an awaitable (`async def`), not {_shown(answer)}")
            return
        async with asyncio.timeout(timeout):
            verdict = await answer
    except TimeoutError:
        found.fault(f"compare gave no answer within {timeout:g} seconds")
    except PairscaleError as error:
        found.fault(f"compare raises {words_of(error)}, which would end the run")
    except BaseException as error:
        if ends_run(error):
            raise
        found.fault(f"compare raises {words_of(error)}; it must return Verdict.fail(...) instead")
    else:
        if isinstance(verdict, Verdict):
            _look_at_verdict(verdict, most, found)
        else:
            found.fault(f"compare must return a Verdict, not {_shown(verdict)}")
    found.outcomes.append(str(verdict.outcome) if isinstance(verdict, Verdict) else "none")
    if [dict(pair.first), dict(pair.second)] != shown:
        found.fault("compare changes the samples of the pair")


def _look_at_verdict(verdict: Verdict, most: float | None, found: _Findings) -> None:
    if most is not None and (verdict.cost or 0.0) > most * (1 + 1e-9):
        found.fault(f"an answer cost ${verdict.cost:g}, more than max_cost_of said, ${most:g}")
    if verdict.failure == "judge":
        found.fault(f"no question can be answered: {verdict.error_message}")
    try:
        json.dumps([verdict.request, verdict.raw_response])
    except (TypeError, ValueError) as error:
        found.fault(f"request and raw_response of a verdict must be plain JSON: {error}")


def _most(judge: Any, pair: JudgePair, found: _Findings) -> float | None:
    """What the question may cost at most, where the judge says so."""
    declared = judge_member(judge, "max_cost_of")
    if declared is None:
        return None
    try:
        most: Any = declared(pair)
    except Exception as error:  # noqa: BLE001 - whatever it raises is a fault
        found.fault(f"max_cost_of raises {words_of(error)}")
        return None
    if inspect.isawaitable(most):
        getattr(most, "close", lambda: None)()
        found.fault("max_cost_of must not be async")
        return None
    is_number = isinstance(most, (int, float)) and not isinstance(most, bool)
    if most is not None and not (is_number and math.isfinite(most) and most >= 0):
        found.fault(f"max_cost_of must return US dollars, 0 or more, or None, not {_shown(most)}")
        return None
    return None if most is None else float(most)


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r:.60}"
