"""The manual's families of five: one function per provider, made from a table of their arguments.

Each takes the arguments of the manual in their order, also by position, and further settings by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, Protocol

import polars as pl

from pairscale.collect.live import SubmitResult
from pairscale.compat.live import llm_compare_pair, submit_llm_pairs
from pairscale.core.errors import InputError
from pairscale.core.tables import Table

_SERVICES = {
    "openai": ("OpenAI", "gpt-4.1"),
    "anthropic": ("Anthropic", "claude-sonnet-4-5"),
    "gemini": ("Google Gemini", "gemini-2.5-flash"),
    "together": ("Together.ai", "deepseek-ai/DeepSeek-V3"),
    "ollama": ("Ollama", "llama3.2"),
}
"""By provider, what people call it, and a model for the examples."""

_QUESTION = "trait_name trait_description prompt_template"
_TAGS = "tag_prefix tag_suffix"
_SAMPLING = "temperature top_p top_k max_output_tokens"
_SHOWN = "verbose status_every progress"
_SAVED = "save_path parallel workers"
_COMPARE = {
    "openai": f"endpoint {_TAGS} api_key include_raw",
    "anthropic": f"{_TAGS} api_key anthropic_version reasoning include_raw include_thoughts",
    "gemini": f"api_key thinking_level {_SAMPLING} api_version include_raw include_thoughts pair_uid",
    "together": f"{_TAGS} api_key include_raw",
    "ollama": f"host {_TAGS} think num_ctx include_raw",
}
"""The arguments of ``PROVIDER_compare_pair_live`` behind ``prompt_template``, in the manual's order."""
_SUBMIT = {
    "openai": f"endpoint api_key {_SHOWN} include_raw {_SAVED}",
    "anthropic": f"api_key anthropic_version reasoning {_SHOWN} include_raw include_thoughts {_SAVED}",
    "gemini": f"api_key thinking_level {_SAMPLING} api_version {_SHOWN} include_raw include_thoughts {_SAVED}",
    "together": f"api_key {_SHOWN} include_raw {_SAVED}",
    "ollama": f"host {_SHOWN} think num_ctx include_raw {_SAVED}",
}
"""The arguments of ``submit_PROVIDER_pairs_live`` behind ``prompt_template``, in the manual's order."""

_DEFAULTS: Mapping[str, Any] = {
    "tag_prefix": "<BETTER_SAMPLE>", "tag_suffix": "</BETTER_SAMPLE>", "anthropic_version": "2023-06-01",
    "api_version": "v1beta", "reasoning": "none", "think": False, "num_ctx": 8192, "include_raw": False,
    "verbose": True, "progress": True, "parallel": False, "workers": 1,
}  # fmt: skip
"""The defaults that are not None."""

_COMPARE_DOC = """Have one pair judged by a model of {service}; see :func:`llm_compare_pair`.

    Example:
        >>> row = {name}("a", "Rain.", "b", "It is raining, as it has for weeks.", "{model}")
        >>> row["better_id"].to_list()
        ['b']
    """
_SUBMIT_DOC = """Have pairs judged by a model of {service}; see :func:`submit_llm_pairs`.

    Example:
        >>> pair = [{{"ID1": "a", "text1": "Rain.", "ID2": "b", "text2": "It is raining, as it has for weeks."}}]
        >>> {name}(pair, "{model}", progress=False).results["better_id"].to_list()
        ['b']
    """


class _Compare(Protocol):
    """A function that has one pair judged by a model of one provider."""

    def __call__(
        self,
        ID1: str,
        text1: str,
        ID2: str,
        text2: str,
        model: str,
        trait_name: str | None = None,
        trait_description: str | None = None,
        prompt_template: str | None = None,
        *more: Any,
        **settings: Any,
    ) -> pl.DataFrame: ...


class _Submit(Protocol):
    """A function that has pairs judged by a model of one provider."""

    def __call__(
        self,
        pairs: Table,
        model: str,
        trait_name: str | None = None,
        trait_description: str | None = None,
        prompt_template: str | None = None,
        *more: Any,
        **settings: Any,
    ) -> SubmitResult: ...


def _made(name: str, backend: str, first: str, arguments: str, target: Callable[..., Any], doc: str) -> Any:
    """A function of a family, with the manual's signature."""
    service, model = _SERVICES[backend]
    usual = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter(one, usual, annotation=Any if one == "pairs" else str) for one in first.split()]
    for one in f"{_QUESTION} {arguments}".split():
        default = _DEFAULTS.get(one)
        parameters.append(Parameter(one, usual, default=default, annotation=Any if default is None else type(default)))
    parameters.append(Parameter("settings", Parameter.VAR_KEYWORD, annotation=Any))
    returns = pl.DataFrame if target is llm_compare_pair else SubmitResult
    signature = Signature(parameters, return_annotation=returns)

    def function(*args: Any, **settings: Any) -> Any:
        try:
            given = signature.bind(*args, **settings).arguments
        except TypeError as error:
            raise InputError(f"{name}: {error}") from None
        more = given.pop("settings", {})
        return target(**given, **more, backend=backend)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc.format(service=service, model=model, name=name)
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": returns}
    return function


def _compare_with(backend: str) -> _Compare:
    name, first = f"{backend}_compare_pair_live", "ID1 text1 ID2 text2 model"
    made: _Compare = _made(name, backend, first, _COMPARE[backend], llm_compare_pair, _COMPARE_DOC)
    return made


def _submit_with(backend: str) -> _Submit:
    name = f"submit_{backend}_pairs_live"
    made: _Submit = _made(name, backend, "pairs model", _SUBMIT[backend], submit_llm_pairs, _SUBMIT_DOC)
    return made


openai_compare_pair_live = _compare_with("openai")
anthropic_compare_pair_live = _compare_with("anthropic")
gemini_compare_pair_live = _compare_with("gemini")
together_compare_pair_live = _compare_with("together")
ollama_compare_pair_live = _compare_with("ollama")
submit_openai_pairs_live = _submit_with("openai")
submit_anthropic_pairs_live = _submit_with("anthropic")
submit_gemini_pairs_live = _submit_with("gemini")
submit_together_pairs_live = _submit_with("together")
submit_ollama_pairs_live = _submit_with("ollama")
