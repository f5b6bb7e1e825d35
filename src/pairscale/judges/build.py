"""Judges by name, by callable, or as they are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.files import read_table
from pairscale.core.notices import notice
from pairscale.core.options import checked, optional, read_setting, require_choice, require_flag, require_mapping
from pairscale.core.prompts import template_from
from pairscale.core.tables import Values
from pairscale.core.traits import AnyTrait, Trait, as_trait, trait_description
from pairscale.judges.base import AnyJudge, Judge
from pairscale.judges.function import FunctionJudge, takes
from pairscale.judges.human import HumanJudge
from pairscale.judges.lexical import LexicalJudge
from pairscale.judges.orders import BothOrders
from pairscale.judges.panel import PanelJudge, split_panel
from pairscale.judges.replay import ReplayJudge
from pairscale.judges.simulated import SimulatedJudge
from pairscale.providers.catalog import EMBEDDED, PROVIDERS, split_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from pairscale.judges.batched import BatchJudge
    from pairscale.judges.llm import LLMJudge
    from pairscale.providers.catalog import Price

_ALTERNATIVES = 20
_KNOWN = "provider:model (such as openai:gpt-5.1), lexical, simulated:COLUMN, replay:FILE, human, or module:function"


@checked
def make_judge(
    judge: AnyJudge,
    *,
    trait: AnyTrait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    judge_call_args: Mapping[str, Any] | None = None,
) -> Judge:
    """A judge from its name, a callable, or a judge.

    Args:
        judge: ``provider:model`` (``openai:gpt-5.1``, ``anthropic:…``, ``gemini:…``, ``together:…``, ``ollama:…``, or
            ``compatible:…`` with ``base_url``); ``lexical``; ``simulated:COLUMN`` (the truth is in that column of the
            samples); ``replay:FILE``; ``human`` (people on a page, see :class:`HumanJudge`); ``module:function``
            (imported, also from the current folder); a callable; or a :class:`Judge`. Settings may follow a name:
            ``openai:gpt-5.1,reasoning=low,temperature=1``.
        trait: what to judge: a built-in trait's key, or a :class:`Trait`. A callable that takes them is given
            ``trait_name`` and ``trait_description``.
        template: a prompt template's name or file. A callable that takes it is given its text as
            ``prompt_template``; the embedded judges read no prompt, and say so.
        judge_args: settings of the judge, such as ``{"bias": 0.3, "seed": 1}`` for ``simulated``, or
            ``{"reasoning": "low"}`` for a model; see :class:`LLMJudge`. ``both_orders=True`` asks any judge in both
            orders: a win only when both name the same text. Of a callable, ``name``; everything else is a keyword
            argument of every call.
        judge_call_args: further keyword arguments of every call of a callable.

    Raises:
        UnknownNameError: when no judge or trait has that name.
        InputError: when the judge, the trait or a setting is of the wrong kind.

    Example:
        >>> make_judge("lexical").condition.judge_id
        'lexical'
    """
    trait = None if trait is None else as_trait(trait)
    settings = dict(optional(require_mapping, judge_args, "judge_args") or {})
    call_args = optional(require_mapping, judge_call_args, "judge_call_args") or {}
    if isinstance(judge, str):
        judge, own = own_settings(judge)
        settings |= own
        if _is_model(judge):
            return make_llm_judge(*split_model(judge), trait or trait_description(), template, settings | call_args)
    prompt = None if template is None else template_from(template)
    both_orders = require_flag(settings.pop("both_orders", False), "both_orders")
    built = None
    if isinstance(judge, str):
        built = _embedded(judge, trait, prompt, settings | call_args)
    if built is None:
        if isinstance(judge, str):
            module, _, name = judge.partition(":")
            judge = imported(module, name, judge)
        if isinstance(judge, type):
            raise InputError(f"judge: {judge.__name__} is a class; give an object of it, such as {judge.__name__}()")
        if isinstance(judge, Judge):
            if trait or template or settings or call_args or both_orders:
                raise InputError("this judge already has its settings; set its trait and template when you create it")
            return judge
        built = _called(judge, trait, prompt, settings | call_args)
    return BothOrders(built) if both_orders else built


def _embedded(judge: str, trait: Trait | None, prompt: tuple[str, str] | None, settings: Values) -> Judge | None:
    """A judge that comes with pairscale; None for the name of something else."""
    kind, _, argument = judge.partition(":")
    make: Callable[..., Judge]
    trait = trait or trait_description()
    if judge == "lexical":
        make = partial(LexicalJudge, trait.key or trait.name)
    elif judge == "human":
        make = partial(HumanJudge, trait)
    elif kind == "simulated":
        make = partial(SimulatedJudge, argument or "theta_true")
    elif kind == "replay" and argument:
        make = partial(ReplayJudge, read_table(argument))
    else:
        return None
    if prompt is not None:
        notice(f"the judge {judge!r} reads no prompt; the template {prompt[0]!r} has no effect")
    try:
        return make(**settings)
    except TypeError as error:
        raise InputError(f"judge {judge!r} does not take these settings: {error}") from None


def own_settings(judge: str) -> tuple[str, Values]:
    """A judge's name, and the settings that follow it, as in ``openai:gpt-5.1,reasoning=low``."""
    name, *settings = judge.split(",")
    if not settings or judge.startswith("replay:"):
        return judge, {}
    return name, dict(read_setting(text.strip(), "judge") for text in settings)


def judge_with(
    judge: AnyJudge | Sequence[AnyJudge],
    *,
    trait: AnyTrait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    cache: bool | None = None,
    price: Price | Mapping[str, Any] | None = None,
    answer: Literal["winner", "probability"] = "winner",
) -> Judge:
    """A judge from the options that every verb has.

    Args:
        judge: A name, a callable or a :class:`Judge`; see :func:`make_judge`. Several of them, as a list or as one text
            with commas, share the comparisons; the settings are those of each, and those after a name are its own.
        trait: What to judge.
        template: The prompt template.
        judge_args: Settings of the judge; of a callable, ``name`` and ``both_orders``, and keyword arguments of every
            call.
        base_url: Address of the provider.
        cache: Whether to use answers of earlier runs to the same request.
        price: Prices of the model.
        answer: What is wanted of an answer: with ``probability``, a model is asked for log-probabilities.

    Raises:
        InputError: If a setting does not belong to the judge, or it cannot give a probability that is wanted.
    """
    require_choice(answer, "answer", ("winner", "probability"))
    members: Any = split_panel(judge) if isinstance(judge, str) else judge
    if not isinstance(members, list | tuple):
        members = [judge]
    of_models = {"base_url": base_url, "cache": cache, "price": price}
    model_settings = {name: value for name, value in of_models.items() if value is not None}
    judges = []
    for member in members:
        settings = dict(optional(require_mapping, judge_args, "judge_args") or {})
        if isinstance(member, str):
            member, own = own_settings(member)  # noqa: PLW2901 - the settings are not part of its name
            settings |= own
        if answer == "probability":
            want_probability(member, settings)
        if model_settings and not _is_model(member):
            raise InputError(f"`{next(iter(model_settings))}=` belongs to a provider's model, such as compatible:MODEL")
        judges.append(make_judge(member, trait=trait, template=template, judge_args=settings | model_settings))
    return judges[0] if len(judges) == 1 else PanelJudge(judges)


def _is_model(judge: object) -> bool:
    kind = judge.partition(":")[0] if isinstance(judge, str) else ""
    return kind not in EMBEDDED and kind in PROVIDERS  # to ask for a provider reads what is installed


def want_probability(judge: object, settings: Values) -> None:
    """Ask a model for what a probability is made of; refuse people, who give none.

    Args:
        judge: A name, a callable or a :class:`Judge`.
        settings: Those of the judge; what is needed is added.

    Raises:
        InputError: If the judge cannot give a probability.
    """
    if judge == "human":
        raise InputError("people give no probabilities; use answer='winner'")
    if _is_model(judge) and settings.get("answer") != "confidence":
        settings.setdefault("logprobs", _ALTERNATIVES)


def make_llm_judge(
    backend: str,
    model: str | None,
    trait: Trait,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    kind: type[LLMJudge] | None = None,
) -> BatchJudge:
    """A judge that asks a language model.

    Args:
        backend: The provider.
        model: The model's name.
        trait: What to judge.
        template: A template's name, file or text; the default template if None.
        judge_args: Settings of :class:`LLMJudge`, and ``both_orders``.
        kind: A subclass of :class:`LLMJudge` to make.

    Raises:
        InputError: If the model or the key is missing, or a setting is unknown.
    """
    from pairscale.judges.llm import LLMJudge

    template_id, text = template_from(template or "default")
    settings = dict(judge_args or {})
    both_orders = require_flag(settings.pop("both_orders", False), "both_orders")
    judge = (kind or LLMJudge)(backend, model or "", trait, text, template_id, **settings)
    return BothOrders(judge) if both_orders else judge


def _called(
    function: Callable[..., Any],
    trait: Trait | None,
    prompt: tuple[str, str] | None,
    settings: Values,
) -> FunctionJudge:
    name = settings.pop("name", None)
    label = None
    template_id = None
    taken: dict[str, str] = {}
    if trait is not None:
        label = trait.key or trait.name
        words = {"trait_name": trait.name, "trait_description": trait.description}
        taken |= {key: value for key, value in words.items() if takes(function, key)}
    if prompt is not None and takes(function, "prompt_template"):
        template_id, taken["prompt_template"] = prompt
    return FunctionJudge(function, name, label, template_id, taken | settings)


def imported(module: str, name: str, text: str, what: str = "judge") -> Callable[..., Any]:
    """The function that ``module:function`` names, also from the current folder.

    Args:
        module: the module.
        name: the function.
        text: both, as the user wrote them.
        what: what it is to be, for messages.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    loaded = None
    if module and name:
        try:
            loaded = importlib.import_module(module.removesuffix(".py"))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's module raises, it cannot be used
            missing = getattr(error, "name", None)  # the module itself, or one that it needs
            if not (isinstance(error, ModuleNotFoundError) and missing and module.startswith(missing)):
                words = f"{type(error).__name__}: {error}"
                raise InputError(f"{what} {text!r}: {module} cannot be imported: {words}") from None
    function = getattr(loaded, name, None)
    if not callable(function) and not (what == "judge" and isinstance(function, Judge)):
        where = f": no module {module!r} here has a function {name!r}" if name else ""
        ways = f". A judge is {_KNOWN}" if what == "judge" else ""
        raise UnknownNameError(f"no {what} is called {text!r}{where}{ways}")
    return function  # type: ignore[no-any-return]
