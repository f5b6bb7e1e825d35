"""What the shell offers behind an option when Tab is pressed: names of judges, traits, templates and selectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_JUDGES = {
    "lexical": "embedded, a baseline",
    "human": "people, on a page",
    "simulated:": "known truth, in a column",
    "replay:": "recorded answers, from a file",
}


def judges(incomplete: str) -> list[tuple[str, str]]:
    """Embedded judges and providers; the model behind a provider's name is the user's to know."""
    from pairscale.providers.catalog import PROVIDERS

    return _beginning(incomplete, {**_JUDGES, **{f"{name}:": "a model of this provider" for name in PROVIDERS}}.items())


def traits(incomplete: str) -> list[tuple[str, str]]:
    """The built-in traits."""
    from pairscale.core.traits import list_traits

    return _beginning(incomplete, ((trait.key or trait.name, trait.name) for trait in list_traits()))


def templates(incomplete: str) -> list[tuple[str, str]]:
    """Prompt templates, those of the user among them."""
    from pairscale.core.prompts import list_prompt_templates

    own = set(list_prompt_templates(include_registered=False))
    every = list_prompt_templates()
    return _beginning(incomplete, ((name, "built in" if name in own else "yours") for name in every))


def selectors(incomplete: str) -> list[tuple[str, str]]:
    """Those who choose pairs in an adaptive run."""
    return _beginning(incomplete, _SELECTORS.items())


_SELECTORS = {
    "pollitt": "neighbours on the scale, by stages",
    "random": "any pair, at random",
    "nearest": "the closest two",
    "information": "the pair that tells most",
}
"""As :mod:`pairscale.adaptive.selectors` has them, without the second that loading it takes; a test compares."""


def presets(incomplete: str) -> list[tuple[str, str]]:
    """Named sets of settings of an adaptive run."""
    return _beginning(incomplete, _PRESETS.items())


_PRESETS = {"pairscale": "the default", "pairwiseLLM": "the design document's"}
"""As :mod:`pairscale.adaptive.config` has them; a test compares."""


def _beginning(start: str, names: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, said) for name, said in names if name.startswith(start)]
