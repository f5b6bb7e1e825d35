"""What a comparison is about: the traits that come with pairscale, and traits of your own.

A trait is a name and a definition. The definition is what a judge reads, so it says what to look at and what must not
count. The last three built-in traits are meant for answers of language models, the others for writing of any kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pairscale.core.errors import InputError, UnknownNameError
from pairscale.core.options import checked, shown


@dataclass(frozen=True, slots=True)
class Trait:
    """Something that one text can have more of than another.

    Attributes:
        name: the short label that a prompt shows, such as ``Overall Quality``.
        description: the definition that a judge applies.
        key: what :func:`trait_description` knows it by; None for a trait of your own.
    """

    name: str
    description: str
    key: str | None = None


AnyTrait: TypeAlias = str | Trait
"""The key of a built-in trait, or a trait."""

_DEFINITIONS = {
    "overall_quality": (
        "How well the text as a whole achieves what it sets out to do: what it has to say, the order in which it says "
        "it, and the wording. Weigh these together. No single feature, such as length, neatness or a handful of "
        "slips, decides by itself."
    ),
    "organization": (
        "How the parts of the text are ordered and joined: an opening that leads in, points in a sequence that makes "
        "sense, links that show how one follows from another, and an ending that closes. Headings and connecting "
        "words count only where there is a real order behind them; the merit of the ideas does not count."
    ),
    "ideas": (
        "What the text has to say: whether there is a main point, how far it is thought through, and whether reasons, "
        "details and examples bear it out. Length, elegant wording and agreement with your own opinion earn nothing, "
        "and slips in spelling or grammar cost nothing."
    ),
    "voice": (
        "Whether a distinct writer seems to be speaking to a reader: a tone that suits purpose and audience, an "
        "evident stake in the subject, a manner that could not be anybody's. Slang, the first person or emotional "
        "words are not voice in themselves, and a reserved tone can have it."
    ),
    "word_choice": (
        "How exact, fitting and fresh the words are: nouns and verbs that say just what is meant, natural "
        "combinations, no empty or worn phrases. Rare or long words earn nothing unless they are the right ones; "
        "spelling does not count."
    ),
    "sentence_fluency": (
        "How the sentences move when read aloud: varied in length and build, easy to follow, each leading into the "
        "next. Judge construction and rhythm, not content or vocabulary; punctuation matters only where it breaks the "
        "flow."
    ),
    "conventions": (
        "How correct spelling, grammar, punctuation, capital letters and paragraphs are, by the norms of the language "
        "variety that the text is written in. Consider how many slips there are for the amount written, and how much "
        "they disturb a reader. Content and style do not count, and a regional variant is not an error."
    ),
    "clarity": (
        "How readily the intended reader grasps, at the first reading, what is meant: direct statements, unmistakable "
        "references, terms explained where they need it, nothing that can be taken two ways. Having less to say is "
        "not clarity, a hard subject is not unclarity, and whether the statements are true does not count."
    ),
    "helpfulness": (
        "How far the answer brings the person who asked towards what they need: it takes up the actual request, as "
        "stated or as it can be inferred, and gives something that can be used. Length, politeness, formatting and "
        "offers of further help earn nothing; saying plainly what cannot be done, and why, can be the most helpful "
        "answer."
    ),
    "accuracy": (
        "How far what the answer states is true: facts, figures, quotations, code, and each step of the reasoning. An "
        "error in the main point weighs more than one in passing. A confident tone, wealth of detail and references "
        "are not proof, and uncertainty that is openly stated is not an error."
    ),
    "conciseness": (
        "How economically the answer says what has to be said: no repetition, preamble, padding, or detail that "
        "serves nobody. The shorter answer is not better for being shorter; where something necessary is missing, "
        "that is a fault and not economy."
    ),
}

_TRAITS = {key: Trait(key.replace("_", " ").title(), text, key) for key, text in _DEFINITIONS.items()}


def list_traits() -> tuple[Trait, ...]:
    """The built-in traits, the general ones first.

    Example:
        >>> [trait.key for trait in list_traits()][:3]
        ['overall_quality', 'organization', 'ideas']
    """
    return tuple(_TRAITS.values())


def as_trait(trait: AnyTrait) -> Trait:
    """A trait, which may be given by its key.

    Raises:
        UnknownNameError: when no built-in trait has that key.
        InputError: when it is neither a key nor a trait.
    """
    if isinstance(trait, Trait):
        return trait
    if isinstance(trait, str):
        return trait_description(trait)
    raise InputError(f"trait must be the key of a built-in trait or what trait_description gives, not {shown(trait)}")


@checked
def trait_description(
    name: str = "overall_quality",
    custom_name: str | None = None,
    custom_description: str | None = None,
) -> Trait:
    """The name and the definition of a trait, built in or your own.

    Args:
        name: the key of a built-in trait (see :func:`list_traits`); it does not matter when there is a
            ``custom_description``.
        custom_name: the label of a trait of your own; ``Custom trait`` when it is left out.
        custom_description: the definition of a trait of your own.

    Raises:
        UnknownNameError: when no built-in trait has that key.
        InputError: when a trait of your own lacks its definition, or has a blank name or definition.

    Example:
        >>> trait_description("organization").name
        'Organization'
        >>> trait_description(custom_name="Warmth", custom_description="How kindly the reader is addressed.")
        Trait(name='Warmth', description='How kindly the reader is addressed.', key=None)
    """
    if custom_description is not None or custom_name is not None:
        trait = Trait("Custom trait" if custom_name is None else custom_name, custom_description or "")
        if not trait.name.strip() or not trait.description.strip():
            raise InputError("a trait of your own needs a custom_description, and a name that is not blank")
        return trait
    if name not in _TRAITS:
        raise UnknownNameError(
            f"no trait {name!r}; there are {', '.join(_TRAITS)}; or define one with `custom_description=`"
        )
    return _TRAITS[name]


def choose_trait(trait: AnyTrait, name: str | None, description: str | None) -> Trait:
    """The custom trait where its name and definition are given, else ``trait``.

    Raises:
        InputError: If only one of name and definition is given.
    """
    if (name is None) != (description is None):
        raise InputError("a trait of your own needs both trait_name and trait_description")
    if name is not None and description is not None:
        return Trait(name, description)
    return as_trait(trait)
