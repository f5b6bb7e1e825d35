"""What is compared: a variant is anything that answers a task."""

from __future__ import annotations

import inspect
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pairscale.core.errors import InputError, JudgeError
from pairscale.core.options import checked, optional, require_int, require_number
from pairscale.core.provenance import fingerprint
from pairscale.core.tables import Values
from pairscale.core.timelimit import TimeLimitError, within
from pairscale.evaluate.comparators import together
from pairscale.evaluate.store import COST_IS_ESTIMATE, TIMED_OUT, EvaluationStore
from pairscale.evaluate.tasks import (
    Task,
    Trace,
    as_trace,
    as_words,
)
from pairscale.judges.build import imported
from pairscale.judges.function import ends_run, in_thread, words_of
from pairscale.judges.llm import Model
from pairscale.providers.base import Reply
from pairscale.providers.catalog import PROVIDERS, Price, split_model
from pairscale.providers.client import ProviderError, retrying
from pairscale.runtime import Budget, close
from pairscale.runtime.sync import interrupt_of_call


@runtime_checkable
class Variant(Protocol):
    """Anything that answers tasks. :func:`make_variant` makes one of whatever a run is given."""

    @property
    def identity(self) -> str:
        """What its answers are found again by in a run file."""
        ...

    async def answer(self, task: Task, repeat: int) -> Trace:
        """The answer to a task; what goes wrong is in the trace, too."""
        ...


VariantLike: TypeAlias = "str | Variant | Callable[..., Any] | Any"
"""A callable, ``provider:model``, ``module:function``, an agent with ``ask``, or a :class:`Variant`."""


def make_variant(variant: VariantLike, name: str) -> Variant:
    """A variant of whatever a run is given.

    Args:
        variant: a callable from a :class:`Task` to a text or a :class:`Trace`, plain or ``async``; an object with an
            ``ask`` method (an agent), which is given the task's input; ``provider:model``, which is given it as its
            prompt; ``module:function``; or a :class:`Variant`.
        name: what it is called. In a run file, a callable is known by its source; see :func:`source_identity`. An
            agent is known by its type and this name: give it another name when it changes.

    Raises:
        InputError: when it is none of these.
    """
    if isinstance(variant, Variant):
        return variant
    if isinstance(variant, str):
        kind, _, rest = variant.partition(":")
        if kind in PROVIDERS:
            return ModelVariant(variant)
        variant = imported(kind, rest, variant, "variant")
    ask = getattr(variant, "ask", None)
    if callable(ask):
        return _Called(ask, f"agent:{type(variant).__qualname__}:{name}", of_text=True)
    if callable(variant):
        return _Called(variant, source_identity(variant, name))
    raise InputError(
        f"variant {name!r} is a {type(variant).__name__}; give a callable, an agent or provider:model (recorded "
        "answers are compared as A and B, with `suite=`)"
    )


def source_identity(function: Any, name: str) -> str:
    """A hash of the source that produces a variant's answers, by which a run file knows them again.

    It covers the source of the callable (of an object, that of its class) and of the functions that it calls by name,
    its defaults, and the plain values of the variables that it reads or that the object holds. Changes further away are
    not seen: give it an attribute ``version``, by which and by its name it is known then.

    Example:
        >>> def answer(prompt):
        ...     return lambda task: prompt
        >>> source_identity(answer("Be brief."), "A") == source_identity(answer("Be kind."), "A")
        False
    """
    version = getattr(function, "version", None)
    if version is not None:
        return f"callable:{fingerprint([name, str(version)])}"
    held: list[Any] = []
    if isinstance(function, partial):
        held = [function.args, function.keywords]
        function = function.func
    function = inspect.unwrap(function)
    if inspect.isfunction(function):
        around = inspect.getclosurevars(function)
        held += [function.__defaults__, function.__kwdefaults__, around.nonlocals, around.globals]
    else:
        owner = getattr(function, "__self__", function)  # of a method
        held += [getattr(owner, "__dict__", None), name]
    return f"callable:{fingerprint([_source(function), _described(held)])}"


def _described(value: Any) -> Any:
    """A value as far as it is plain; others by their type."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _described(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [_described(inner) for inner in value]
    return _source(value)


def _source(code: Any) -> str:
    """The source of a function or of an object's class; of a lambda its code, as a line may hold several."""
    if not (inspect.isroutine(code) or isinstance(code, type)):
        code = type(code)
    if code.__name__ == "<lambda>":
        inner = code.__code__
        constants = [value for value in inner.co_consts if isinstance(value, str | int | float)]
        return f"{inner.co_code.hex()}{constants}{inner.co_names}"
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return f"{code.__module__}:{code.__qualname__}"


class _Called:
    """A callable, or an agent's ``ask``."""

    def __init__(self, function: Callable[..., Any], identity: str, *, of_text: bool = False) -> None:
        self._function = function
        self._of_text = of_text
        self.identity = identity

    async def answer(self, task: Task, repeat: int) -> Trace:  # noqa: ARG002 - every repeat is a call of its own
        given = task.input if self._of_text else task
        if inspect.iscoroutinefunction(self._function):
            answer = await self._function(given)
        else:
            answer = await in_thread(partial(self._function, given))
            if inspect.isawaitable(answer):
                answer = await answer
        return as_trace(getattr(answer, "body", answer), "the variant's answer")  # the body of an agent's reply


class ModelVariant:
    """A language model with a prompt of its own.

    Args:
        model: ``provider:model``.
        prompt: the prompt's template; ``{input}``, and whatever else the tasks' ``inputs`` hold, is filled in. What an
            input contains changes nothing around it.
        retries: how often to ask again when an error may pass.
        settings: of the model: ``system temperature max_tokens reasoning base_url price`` and the others of
            :class:`LLMJudge`.

    Raises:
        InputError: when the model or a setting is unknown, or its key is missing.

    Example:
        >>> ModelVariant("ollama:qwen3:8b", "Answer in one word: {input}").prompt_for(Task({"input": "Capital?"}))
        'Answer in one word: Capital?'
    """

    @checked
    def __init__(self, model: str, prompt: str = "{input}", *, retries: int = 3, **settings: Any) -> None:
        if not _PLACE.search(prompt):
            raise InputError("prompt must hold a place for the task, such as {input}")
        provider, name = split_model(model)
        self._model = Model(provider, name, **settings)
        self._prompt = prompt
        self._retries = require_int(retries, "retries", least=0)
        self._jitter = random.Random(0)  # noqa: S311 - spreads retries, keeps no secret

    @property
    def identity(self) -> str:
        """Model, prompt and every setting that may change an answer."""
        return f"model:{fingerprint([self._model.provider, self._model.model, self._prompt, self._model.identity])}"

    @property
    def price(self) -> Price | None:
        """What the model costs; None when it is not known."""
        return self._model.price

    def prompt_for(self, task: Task) -> str:
        """The prompt that a task gets."""
        missing = sorted({name for name in _PLACE.findall(self._prompt) if name not in task.inputs})
        if missing:
            raise InputError(f"task {task.task_id!r} has no {', '.join(missing)}, which the prompt has a place for")
        return _PLACE.sub(lambda place: as_words(task.inputs[place[1]]), self._prompt)

    def max_cost_of(self, task: Task) -> float | None:
        """What an answer may cost, on the safe side; None when the price is not known."""
        return self._model.request_cost(self._model.question(self.prompt_for(task)))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.aclose()

    async def answer(self, task: Task, repeat: int) -> Trace:
        """Ask the model.

        Raises:
            JudgeError: when every other question would fail, too: a wrong key, an unknown model.
        """
        request = self._model.question(self.prompt_for(task))
        key = self._model.cache_key(request, str(repeat))
        reply = self._model.remembered(request, key)
        lost = 0.0  # what calls without a reply may have cost

        async def ask() -> Reply:
            nonlocal lost
            try:
                return await self._model.ask(request)
            except ProviderError as error:
                lost += error.cost or 0.0
                raise

        if reply is None:
            try:
                reply = await retrying(ask, self._retries, self._jitter)
            except ProviderError as error:
                if error.failure == "judge":
                    raise JudgeError(error.message) from None
                marked = {COST_IS_ESTIMATE: True} if lost else {}
                return Trace(exception=f"{error.code}: {error.message}", cost=lost or None, metadata=marked)
        facts = self._model.facts_of(reply, request)
        cost = lost + (facts["cost"] or 0.0) if lost else facts["cost"]
        figures = {
            "tokens": facts["total_tokens"],
            "cost": cost,
            "duration_ms": round((reply.seconds or 0.0) * 1000, 3),
        }
        about: Values = {"model": facts["model"], "stop_reason": reply.stop_reason}
        if lost or facts["cost_is_estimate"]:
            about[COST_IS_ESTIMATE] = True
        if reply.stop_reason in {"refusal", "content_filter"} or reply.refusal:
            return Trace(exception=f"{reply.stop_reason}: {reply.refusal or reply.text}", metadata=about, **figures)
        self._model.accept(reply, key)
        return Trace(reply.text, metadata=about, **figures)


_PLACE = re.compile(r"\{(\w+)\}")


# Having variants answer tasks

Answers: TypeAlias = tuple[Task, Trace, Trace]


@dataclass(frozen=True, slots=True)
class CaseJob:
    """One pair of answers to be compared.

    Attributes:
        task_id: the task.
        repeat: which answer to it, from 1.
        names: of the two variants.
        load: gets the task and both answers.
    """

    task_id: str
    repeat: int
    names: tuple[str, str]
    load: Callable[[], Awaitable[Answers]]


@dataclass(slots=True)
class Bill:
    """What a piece of work has cost, and whether it gave an answer, which others of its kind may cost as well."""

    cost: float | None = None
    is_answered: bool = False


@asynccontextmanager
async def paying(budget: Budget, who: str, most: float | None) -> AsyncIterator[Bill]:
    """Reserve money for work that says afterwards what it cost; an interrupt waits until it has ended."""
    interrupt = interrupt_of_call()
    await interrupt.wait_if_stopping()
    reserved = await budget.reserve(who, most, is_variant=True)
    bill = Bill()
    with interrupt.waits():
        try:
            yield bill
        finally:
            budget.settle(reserved, bill.cost, is_typical=bill.cost is not None or bill.is_answered)


class VariantRunner:
    """Has variants answer tasks, each task once, and stores the answers.

    Args:
        store: what the run file knows.
        variants: by their names.
        budget: what may be spent.
        timeout: seconds that one answer may take, without waits for a rate limit; None for no limit.

    Attributes:
        identities: by name, what the answers of a variant are found again by.
        asked: answers that variants were asked for.
    """

    def __init__(
        self, store: EvaluationStore, variants: Mapping[str, Variant], budget: Budget, timeout: float | None
    ) -> None:
        self._store = store
        self._variants = variants
        self._budget = budget
        self._timeout = optional(require_number, timeout, "variant_timeout", above=0)
        self.asked = 0
        times = Counter(variant.identity for variant in variants.values())
        self.identities = {
            # The same function under two names answers for each of them.
            name: f"{variant.identity}|{name}" if times[variant.identity] > 1 else variant.identity
            for name, variant in variants.items()
        }
        store.add_names(self.identities)

    def job(self, task: Task, repeat: int, a: str, b: str) -> CaseJob:
        """A task to be answered by two of them."""

        async def load() -> Answers:
            first, second = await together(self._answer(a, task, repeat), self._answer(b, task, repeat))
            return task, first, second

        return CaseJob(task.task_id, repeat, (a, b), load)

    async def _answer(self, name: str, task: Task, repeat: int) -> Trace:
        variant = self._variants[name]
        identity = self.identities[name]
        async with self._store.turn(identity, f"{task.digest}#{repeat}"):
            remembered = self._store.answer(identity, task, repeat, self._timeout)
            if remembered is not None:
                return remembered
            most = None
            if self._budget.limit is not None and hasattr(variant, "max_cost_of"):
                with suppress(Exception):  # the answer will fail as well, and say why
                    most = variant.max_cost_of(task)
            async with paying(self._budget, identity, most) as bill:
                self.asked += 1
                trace = await self._answered(variant, task, repeat)
                was_asked = trace.exception is None or TIMED_OUT in trace.metadata
                if trace.cost is None and most and was_asked:  # it does not say what it cost: at most this
                    trace = replace(trace, cost=most, metadata={**trace.metadata, COST_IS_ESTIMATE: True})
                if COST_IS_ESTIMATE in trace.metadata:
                    self._budget.say_estimate(name, trace.cost)
                bill.cost = trace.cost
                bill.is_answered = trace.exception is None
                await self._store.add_answer(identity, name, task, repeat, trace)
            return trace

    async def _answered(self, variant: Variant, task: Task, repeat: int) -> Trace:
        """What a variant answers; that it raises, or takes too long, is its answer to this task."""
        start = time.perf_counter()
        try:
            answer = await within(self._timeout, variant.answer(task, repeat))
            trace = as_trace(answer, "a variant's answer")
        except JudgeError:
            raise  # it can answer nothing at all
        except TimeLimitError as error:
            trace = Trace(exception=f"timeout: {error}", metadata={TIMED_OUT: self._timeout})
        except BaseException as error:  # an object of the user's own may raise anything
            if ends_run(error):
                raise
            trace = Trace(exception=words_of(error))
        if trace.duration_ms is not None:
            return trace
        return replace(trace, duration_ms=round((time.perf_counter() - start) * 1000, 3))

    async def aclose(self) -> None:
        """Have the variants close their connections."""
        for variant in self._variants.values():
            await close(variant)
