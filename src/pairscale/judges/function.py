"""Any callable as a judge."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import textwrap
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from pairscale.core.comparisons import ERROR_CODES, Condition
from pairscale.core.errors import InputError, PairscaleError
from pairscale.core.options import optional, require_probability
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import Values
from pairscale.judges.base import Judge, JudgePair, Verdict

_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True, slots=True)
class FunctionJudge:
    """A judge made of a function ``judge(A, B, state=None, **kwargs)``, plain or ``async``.

    ``A`` is shown first and ``B`` second; both are mappings with ``ID`` (also as ``item_id``), ``text`` and every
    other column of the samples. The function returns

    - ``1``, ``True``, ``"A"`` or the ID of A when A is better; ``2``, ``False``, ``"B"`` or the ID of B when B is;
      ``"tie"`` for a tie. A text that is both a word and an ID of the pair is refused;
    - a float strictly between 0 and 1, the probability that A is better: for A above 0.5, for B below, a tie at 0.5;
    - ``{"is_valid": bool, "Y": 1 | 0 | None, "invalid_reason": str | None}``: ``Y`` is 1 when A is better, 0 when B is,
      0.5 for a tie; ``is_valid`` false is an abstention, and true when it is left out. Instead of ``Y`` it may hold
      ``p``, the probability that A is better. It may also hold ``cost``, in US dollars, and ``probability`` beside
      ``Y``;
    - or a :class:`Verdict`.

    Anything else stops the run. What it raises is recorded as an error of that pair: a connection or time-out error is
    asked again, anything else is not. A plain function runs in a thread, so it may block.

    Attributes:
        function: the callable.
        name: who judges. With one, the name alone is the identity under which answers are found again in a run file.
            Without one, a function's name and a digest of its source are, so that an edited function does not inherit
            the answers of the old one. A callable that has no source of its own (a partial, a closure, an object) and
            no name is known only to itself: in another process its answers are not found again.
        trait: what it judges, for the record.
        template_id: the prompt template that it uses, for the record.
        call_args: further keyword arguments of every call.

    Example:
        >>> longer = FunctionJudge(lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))})
        >>> longer.condition.backend
        'function'
    """

    function: Callable[..., Any]
    name: str | None = None
    trait: str | None = None
    template_id: str | None = None
    call_args: Mapping[str, Any] = field(default_factory=dict)
    _token: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(
                "a judge is a name such as 'openai:gpt-5.1', a Judge, or a function judge(A, B), "
                f"not a {type(self.function).__name__}"
            )

    @property
    def condition(self) -> Condition:
        """The function's name and, unless it was given one, a digest of its source."""
        function = self.function
        while isinstance(function, partial):
            function = function.func
        module = getattr(function, "__module__", None) or type(function).__module__
        qualified = getattr(function, "__qualname__", None) or type(function).__qualname__
        settings: Values = {"call_args": fingerprint({key: repr(value) for key, value in self.call_args.items()})}
        if self.name is None:
            source = _source(self.function)
            settings |= {"instance": self._token} if source is None else {"source": fingerprint(source)}
        return Condition(self.name or f"{module}:{qualified}", "function", None, self.trait, self.template_id, settings)

    async def compare(self, pair: JudgePair) -> Verdict:
        """Ask the function."""
        arguments = dict(self.call_args)
        if takes(self.function, "state"):
            arguments.setdefault("state", pair.state)
        try:
            if inspect.iscoroutinefunction(self.function):
                answer = await self.function(pair.first, pair.second, **arguments)
            else:
                answer = await in_thread(partial(self.function, pair.first, pair.second, **arguments))
                if inspect.isawaitable(answer):
                    answer = await answer
            return _verdict(answer, pair)
        except (TimeoutError, ConnectionError) as error:
            code = "timeout" if isinstance(error, TimeoutError) else "http_error"
            return Verdict.fail(code, words_of(error), failure="transient")
        except BaseException as error:  # whatever a user's code raises is the outcome of this pair
            if ends_run(error):
                raise
            return Verdict.fail("judge_error", raised(error))


async def verdict_of(judge: Judge, pair: JudgePair) -> Verdict:
    """Ask a judge; an exception of its own is a verdict, too: a failed judgement is data.

    Raises:
        PairscaleError: the judge cannot judge these pairs at all, so that asking about others is pointless.
    """
    try:
        verdict = await judge.compare(pair)
        if not isinstance(verdict, Verdict):
            raise TypeError(f"the judge gave a {type(verdict).__name__}, not a Verdict")
    except PairscaleError:
        raise
    except BaseException as error:
        if ends_run(error):
            raise
        return Verdict.fail("judge_error", raised(error))
    return verdict


def ends_run(error: BaseException) -> bool:
    """Whether an exception ends the run: Ctrl-C, or the cancellation of this task.

    Anything else that the user's code raises is the outcome of one question. That holds for ``sys.exit()``, too, whose
    code would become the exit code of the command, and for a ``CancelledError`` of its own, such as that of a client
    whose request was cancelled.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def raised(error: BaseException) -> str:
    """The message for an exception of the user's code, with the file and the line where it was raised."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((_PACKAGE, "<string>")):  # neither ours nor generated code
            return f"{words_of(error)} ({Path(frame.filename).name}:{frame.lineno})"
    return words_of(error)


_WORDS: Mapping[str, float] = {"A": 1, "B": 0, "tie": 0.5}
_NUMERALS = ("1", "2")  # as texts they may be meant as a place or as an ID


def _verdict(answer: Any, pair: JudgePair) -> Verdict:
    """The verdict that a function's answer means; an answer of any other form is a failure of the judge."""
    if isinstance(answer, Verdict):
        return answer
    if isinstance(answer, Mapping) and {"is_valid", "Y", "p"} & set(answer):
        return _of_mapping(answer)
    if isinstance(answer, str):
        ids = {str(pair.first.get("ID")): 1.0, str(pair.second.get("ID")): 0.0}
        meanings = [names[answer] for names in (_WORDS, ids) if answer in names]
        if len(meanings) == 1 and len(ids) == 2 and answer not in _NUMERALS:
            return _of_share(meanings[0])
    if hasattr(answer, "item"):  # numpy's numbers
        answer = answer.item()
    if isinstance(answer, bool):
        answer = 1 if answer else 2
    if isinstance(answer, int) and answer in (1, 2):
        return _of_share(2 - answer)
    if isinstance(answer, float) and 0 < answer < 1:
        return _of_share(answer, probability=answer)
    message = (
        f"the judge returned {answer!r:.80} ({type(answer).__name__}), which is not an answer, or is ambiguous; it may "
        'return 1 or 2, True (the first) or False, "A" or "B", "tie", the ID of the winner, a probability between 0 '
        "and 1 that the first is better, or a mapping with Y, or with p"
    )
    return Verdict.fail("invalid_winner", message, failure="judge")


def _of_share(share: float, **more: Any) -> Verdict:
    """A win of the first above a half, of the second below, and a tie at it."""
    if share == 0.5:
        return Verdict.tie(**more)
    return Verdict.win(1 if share > 0.5 else 2, **more)


def _of_mapping(answer: Mapping[str, Any]) -> Verdict:
    """The verdict of a mapping with ``is_valid`` and ``Y``, or with ``p``."""
    cost = answer.get("cost")
    if not answer.get("is_valid", True):
        reason = str(answer.get("invalid_reason") or "the judge gave no valid answer")
        return Verdict.abstain(reason, error_code=reason if reason in ERROR_CODES else "refusal", cost=cost)
    choice = answer.get("Y")
    try:
        p = optional(require_probability, answer.get("p"), "p (the probability that A is better)")
    except InputError as error:
        return Verdict.fail("invalid_winner", str(error), cost=cost)
    if p is not None and choice in (None, 0.5 if p == 0.5 else round(p)):
        return _of_share(p, probability=p, cost=cost)
    if p is None and choice in (0, 0.5, 1):
        return _of_share(float(choice), probability=answer.get("probability"), cost=cost)
    message = "Y must be 1 (A is better), 0 (B is better) or 0.5 (a tie); or give p, the probability that A is better"
    return Verdict.fail("invalid_winner", f"{message}, not Y={choice!r:.80} and p={p}", cost=cost)


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a callable can be given a keyword argument of that name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in callables have no signature
        return False
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)


async def in_thread(call: Callable[[], Any]) -> Any:
    """Run a call that may block in a thread that is not waited for: Ctrl-C ends a run at once, whatever is open."""
    outcome: Future[Any] = Future()
    outcome.set_running_or_notify_cancel()  # so that it takes a result even if nothing waits for it any more

    def target() -> None:
        try:
            outcome.set_result(call())
        except (StopIteration, GeneratorExit) as error:  # no coroutine takes one
            outcome.set_exception(RuntimeError(words_of(error)))
        except BaseException as error:  # noqa: BLE001 - it is raised again where the outcome is awaited
            outcome.set_exception(error)

    threading.Thread(target=contextvars.copy_context().run, args=(target,), daemon=True).start()
    return await asyncio.wrap_future(outcome)


def _source(function: Any) -> str | None:
    """What a function is made of, or None when its source does not say all that may change its answers."""
    code = getattr(function, "__code__", None)
    if code is None or not inspect.isfunction(function) or function.__closure__:
        return None
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):  # typed at a prompt
        source = ""
    if source and function.__name__ != "<lambda>":
        return source
    # Two lambdas may share their line of source; the compiled code tells them apart.
    return f"{source}{code.co_code.hex()}{code.co_consts}{code.co_names}"


def words_of(error: BaseException) -> str:
    """The message for an exception of the user's code: its kind, and what it says, without keys."""
    from pairscale.providers.keys import Redactor

    message = str(error)
    return f"{type(error).__name__}: {Redactor().text(message)}" if message else type(error).__name__
