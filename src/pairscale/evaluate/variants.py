"""What is compared: a variant is anything that answers a task."""

from __future__ import annotations

import inspect
import os
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pairscale.core.errors import InputError, JudgeError
from pairscale.core.options import checked, require_int
from pairscale.core.provenance import fingerprint
from pairscale.evaluate._identity import identity_of
from pairscale.evaluate.formats.reading import ANSWER_SUFFIXES, recorded, source_at, unfinished_of
from pairscale.evaluate.store import COST_IS_ESTIMATE
from pairscale.evaluate.suite import Task, as_words, id_key, input_key
from pairscale.evaluate.traces import Trace, TraceRef, TraceSource, as_trace
from pairscale.judges.build import imported
from pairscale.judges.function import ends_run, in_thread, words_of
from pairscale.judges.llm import Model
from pairscale.providers.base import LLMRequest, Reply
from pairscale.providers.catalog import PROVIDERS, Price, split_model
from pairscale.providers.client import ProviderError, retrying

__all__ = ["ModelVariant", "Variant", "VariantLike", "make_variant"]


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


VariantLike: TypeAlias = "str | os.PathLike[str] | Variant | TraceSource | Callable[..., Any] | Any"
"""A callable, ``provider:model``, ``module:function``, a file of recorded outputs, a source of traces, an agent with
``ask``, or a :class:`Variant`."""


def make_variant(variant: VariantLike, name: str) -> Variant:
    """A variant of whatever a run is given.

    Args:
        variant: a callable from a :class:`Task` to a text or a :class:`Trace`, plain or ``async``; an object with an
            ``ask`` method (an agent), which is given the task's input; ``provider:model``, which is given it as its
            prompt; ``module:function``; a file or folder of recorded outputs, a mapping from task to output or a
            :class:`TraceSource`; or a :class:`Variant`.
        name: what it is called. In a run file, a callable is known by all that can be seen of it: its code, and the
            prompts and settings that it reads. Where it holds something that cannot be looked into (a client), it is
            known by this name, too, and an agent by its type and this name: give it another name when that changes.

    Raises:
        InputError: when it is none of these.
    """
    if isinstance(variant, Variant):
        return variant
    if isinstance(variant, str | os.PathLike):
        return _named(variant, name)
    if (source := recorded(variant)) is not None:
        return _Recorded(source, name)
    ask = getattr(variant, "ask", None)
    if callable(ask):
        return _Called(ask, f"agent:{type(variant).__qualname__}:{name}", of_text=True)
    if callable(variant):
        return _Called(variant, identity_of(variant, name))
    raise InputError(f"variant {name!r} is a {type(variant).__name__}; give a callable, provider:model, or outputs")


def _named(variant: str | os.PathLike[str], name: str) -> Variant:
    text = os.fspath(variant)
    if Path(text).suffix.lower() in ANSWER_SUFFIXES or Path(text).is_dir():
        return _Recorded(source_at(text), name)
    kind, colon, rest = text.partition(":")
    if kind in PROVIDERS:
        return ModelVariant(text)
    if colon and kind and rest:
        return make_variant(imported(kind, rest, text, "variant"), name)
    raise InputError(
        f"variant {text!r} is no provider:model, no module:function and no table or folder of outputs "
        f"({', '.join(ANSWER_SUFFIXES)})"
    )


class _Called:
    """A callable, or an agent's ``ask``."""

    def __init__(self, function: Callable[..., Any], identity: str, *, of_text: bool = False) -> None:
        self._function, self._of_text, self.identity = function, of_text, identity

    async def answer(self, task: Task, repeat: int) -> Trace:  # noqa: ARG002 - every repeat is a call of its own
        given = task.input if self._of_text else task
        start = time.perf_counter()
        try:
            if inspect.iscoroutinefunction(self._function):
                said = await self._function(given)
            else:
                said = await in_thread(partial(self._function, given))
                if inspect.isawaitable(said):
                    said = await said
            trace = _trace(said)
        except BaseException as error:
            if ends_run(error):
                raise
            trace = Trace(exception=words_of(error))  # whatever a variant raises is what came of this task
        took = (time.perf_counter() - start) * 1000
        return trace if trace.duration_ms is not None else replace(trace, duration_ms=round(took, 3))


def _trace(said: Any) -> Trace:
    if isinstance(said, Trace):
        return said
    said = getattr(said, "body", said)  # an agent's reply
    is_answer = isinstance(said, str) or (isinstance(said, Mapping) and "output" in said)
    if is_answer or (hasattr(said, "events") and hasattr(said, "exception")):
        return as_trace(said, "the variant's answer")
    return Trace(exception=f"the variant must return a text or a Trace, not {said!r:.80}")


class _Recorded:
    """Traces that a source holds; each repeat is the next one of its task."""

    def __init__(self, source: TraceSource, name: str) -> None:
        self._source, self._name, self.identity = source, name, f"recorded:{name}"
        self.unfinished = unfinished_of(source)
        self._refs: tuple[dict[str, list[TraceRef]], dict[str, list[TraceRef]]] | None = None
        self.recorded = True  # read again each time: the recording may change, and no answer of it is ever out of date

    async def answer(self, task: Task, repeat: int) -> Trace:
        if self._refs is None:
            by_id: dict[str, list[TraceRef]] = {}
            by_input: dict[str, list[TraceRef]] = {}
            async for ref in self._source.list():
                if ref.task_id is not None:
                    by_id.setdefault(id_key(ref.task_id), []).append(ref)
                if isinstance(asked := ref.metadata.get("input"), str):
                    by_input.setdefault(input_key(asked), []).append(ref)
            self._refs = by_id, by_input
        found = self._refs[0].get(id_key(task.task_id)) or self._refs[1].get(input_key(task.input), [])
        if len(found) < repeat:
            return Trace(exception=f"no output of {self._name} is recorded for this task")
        return as_trace(await self._source.load(found[repeat - 1]), self._name)


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
        self._model, self._prompt = Model(provider, name, **settings), prompt
        self._retries = require_int(retries, "retries", least=0)
        self._jitter = random.Random(0)  # noqa: S311 - spreads retries, keeps no secret

    def __repr__(self) -> str:
        return f"<ModelVariant {self._model.provider}:{self._model.model}>"

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
        return self._trace(reply, request, key, lost)

    def _trace(self, reply: Reply, request: LLMRequest, key: str | None, lost: float) -> Trace:
        told = self._model.known_of(reply, request)
        cost = lost + (told["cost"] or 0.0) if lost else told["cost"]
        known = {"tokens": told["total_tokens"], "cost": cost, "duration_ms": round((reply.seconds or 0.0) * 1000, 3)}
        marked = {COST_IS_ESTIMATE: True} if lost or told["cost_is_estimate"] else {}
        if reply.stop_reason in {"refusal", "content_filter"} or reply.refusal:
            return Trace(exception=f"{reply.stop_reason}: {reply.refusal or reply.text}", metadata=marked, **known)
        self._model.accept(reply, key)
        about = {"model": told["model"], "stop_reason": reply.stop_reason, **marked}
        return Trace(reply.text, metadata=about, **known)


_PLACE = re.compile(r"\{(\w+)\}")
