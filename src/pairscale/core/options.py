"""Validate options: numbers, choices, flags, texts and files.

Every function, configuration, suite and study file checks what it is given with these functions, so that the same
mistake is refused by the same sentence everywhere::

    concurrency must be a whole number of 1 or more, not 'x'

A ``require_`` function returns the value as a plain Python object, whatever kind of number came in, and raises
:class:`~pairscale.core.errors.InputError` otherwise. ``name`` is what the message begins with: the name of the
parameter, with its place before it where that helps (``"adaptive_config: k_top"``). :func:`optional` lets ``None``
through.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, Unpack, get_args

from pairscale.core.errors import InputError

_LONGEST: Final = 80  # characters of a refused value in a message

_Shown: TypeAlias = Literal["all", "refits", "steps", "line", "none"]
ProgressMode: TypeAlias = bool | _Shown
"""What a function shows on standard error while it works: True is ``all`` and False is ``none``.

Only adaptive runs have steps and refits; everywhere else any value but False and ``none`` shows the progress.
"""

FilePath: TypeAlias = str | os.PathLike[str]
"""A file or a folder, as a text or a path; of a run, also the address of a database."""

T = TypeVar("T")
P = ParamSpec("P")


class _Limits(TypedDict, total=False):
    """The limits of a number."""

    least: float | None
    above: float | None
    most: float | None
    below: float | None


_HOLDS: Final = {"least": operator.ge, "above": operator.gt, "most": operator.le, "below": operator.lt}
_WORDS: Final = {"least": "of {} or more", "above": "above {}", "most": "of at most {}", "below": "below {}"}


def require_int(value: Any, name: str, **limits: Unpack[_Limits]) -> int:
    """A whole number: of any numeric type, but not a flag, a text, or a number with a fraction.

    Args:
        value: What was given.
        name: Name of the parameter.
        limits: As in :func:`require_number`.

    Raises:
        InputError: If it is anything else.

    Examples:
        >>> require_int(3.0, "retries", least=0)
        3
        >>> require_int("x", "concurrency", least=1)
        Traceback (most recent call last):
        ...
        pairscale.core.errors.InputError: concurrency must be a whole number of 1 or more, not 'x'
    """
    number = _real(value)
    if not number.is_integer() or int(value) != value or _is_outside(number, limits):
        raise _refused(name, "a whole number" + _range(limits), value)
    return int(value)


def require_number(value: Any, name: str, *, infinite: bool = False, **limits: Unpack[_Limits]) -> float:
    """A number: of any numeric type, but not a flag, a text or ``nan``, and not infinite.

    Args:
        value: What was given.
        name: Name of the parameter.
        infinite: Also allow infinite values.
        limits: What the value must be: of ``least`` or more, ``above``, at ``most``, ``below``.

    Raises:
        InputError: If it is anything else.

    Examples:
        >>> require_number(float("nan"), "max_cost", least=0)
        Traceback (most recent call last):
        ...
        pairscale.core.errors.InputError: max_cost must be a number of 0 or more, not nan
    """
    number = _real(value)
    if (math.isinf(number) and not infinite) or _is_outside(number, limits):
        raise _refused(name, "a number" + _range(limits), value)
    return number


def require_number_or(value: Any, name: str, choices: Iterable[T], **limits: Unpack[_Limits]) -> float | T:
    """A number, or one of a few texts instead.

    Examples:
        >>> require_number_or("learned", "prior_sd", ("learned",), above=0)
        'learned'
        >>> require_number_or("wide", "prior_sd", ("learned",), above=0)
        Traceback (most recent call last):
        ...
        pairscale.core.errors.InputError: prior_sd must be a number above 0, or 'learned', not 'wide'
    """
    allowed = tuple(choices)
    if isinstance(value, str) and value in allowed:
        return allowed[allowed.index(value)]
    number = _real(value)
    if math.isinf(number) or _is_outside(number, limits):
        raise _refused(name, f"a number{_range(limits)}, or {choices_in_words(allowed)}", value)
    return number


def require_probability(value: Any, name: str) -> float:
    """A number from 0 to 1."""
    return require_number(value, name, least=0, most=1)


def require_level(value: Any, name: str = "level") -> float:
    """The level of an interval, such as 0.95: a number above 0 and below 1."""
    return require_number(value, name, above=0, below=1)


def require_seed(value: Any, name: str = "seed") -> int | None:
    """A seed: a whole number of 0 or more, or None for different random numbers each time."""
    return optional(require_int, value, name, least=0)


def require_choice(value: Any, name: str, choices: Iterable[T]) -> T:
    """One of a few texts (``None`` may be among them).

    Raises:
        InputError: If it is anything else; the message lists the choices.

    Examples:
        >>> require_choice("oops", "goal", ("order", "top", "marks"))
        Traceback (most recent call last):
        ...
        pairscale.core.errors.InputError: goal must be 'order', 'top' or 'marks', not 'oops'
    """
    allowed = tuple(choices)
    for choice in allowed:
        if value is choice or (isinstance(value, str) and value == choice):
            return choice
    raise _refused(name, choices_in_words(allowed), value)


def require_progress(value: Any) -> _Shown:
    """What to show while working, see :data:`ProgressMode`.

    Examples:
        >>> require_progress(True), require_progress(False), require_progress("line")
        ('all', 'none', 'line')
    """
    if value is True or value is False:
        return "all" if value else "none"
    return require_choice(value, "progress", get_args(_Shown))


def require_flag(value: Any, name: str) -> bool:
    """``True`` or ``False``, numpy's too, and nothing that merely counts as one of them."""
    if type(value).__name__ in {"bool", "bool_"} and value in (True, False):
        return bool(value)
    raise _refused(name, "True or False", value)


def require_text(value: Any, name: str, *, empty: bool = False) -> str:
    """A text; an empty one only if ``empty`` says so."""
    if isinstance(value, str) and (empty or value.strip()):
        return value
    raise _refused(name, "a text", value)


def require_mapping(value: Any, name: str) -> dict[str, Any]:
    """A mapping of settings by name, such as ``{"seed": 1}``; a message shows only the type: settings may hold keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{name} must be a mapping of settings by name, not {type(value).__name__}")
    return dict(value)


def require_path(value: Any, name: str) -> Path:
    """A file or a folder, as a text or a path; it need not exist."""
    if _is_place(value):
        return Path(value)
    raise _refused(name, "a file or a folder", value)


def require_run(value: Any, name: str = "run") -> str:
    """A run file, as a text or a path, or the address of a database."""
    if _is_place(value):
        return str(os.fspath(value))
    raise _refused(name, "a file or the address of a database", value)


def require_suffix(value: Any, name: str, suffixes: Iterable[str]) -> Path:
    """A file whose name ends as one of ``suffixes`` (``".csv"``) does.

    Examples:
        >>> require_suffix("out.docx", "out", (".csv", ".parquet"))
        Traceback (most recent call last):
        ...
        pairscale.core.errors.InputError: out must be a file that ends in '.csv' or '.parquet', not 'out.docx'
    """
    path = require_path(value, name)
    allowed = tuple(suffixes)
    if path.suffix.lower() in allowed:
        return path
    raise _refused(name, f"a file that ends in {choices_in_words(allowed)}", str(path))


def require_list(
    value: Any, name: str, require: Callable[Concatenate[Any, str, P], T], *args: P.args, **limits: P.kwargs
) -> list[T]:
    """A list (or another sequence) of which ``require`` accepts every entry.

    Examples:
        >>> require_list((1, 2.0), "pair_counts", require_int, least=1)
        [1, 2]
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise _refused(name, "a list", value)
    return [require(entry, f"each of {name}", *args, **limits) for entry in value]


def optional(
    require: Callable[Concatenate[Any, str, P], T], value: Any, name: str, *args: P.args, **limits: P.kwargs
) -> T | None:
    """``None``, or what ``require`` makes of the value.

    Examples:
        >>> optional(require_number, None, "max_cost", least=0) is None
        True
    """
    return None if value is None else require(value, name, *args, **limits)


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Validate the flags, texts and files that a public function is given, by its annotations, before it is called.

    ``bool`` takes True or False, ``str`` a text, ``str | Sequence[str]`` a text or several, and :data:`FilePath` a
    file, a folder or, as ``run``, also the address of a database; each with ``| None`` takes None as well.

    Examples:
        >>> @checked
        ... def show(*, verbose: bool = True) -> None:
        ...     pass
        >>> show(verbose="no")
        Traceback (most recent call last):
        ...
        pairscale.core.errors.InputError: verbose must be True or False, not 'no'
    """
    kinds = {name: {part.strip() for part in kind.split("|")} for name, kind in function.__annotations__.items()}
    checks = {name: _CHECKS.get(frozenset(kind - {"None"})) for name, kind in kinds.items()}
    names = inspect.signature(function).parameters

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            check = checks.get(name)
            if check is not None and not (value is None and "None" in kinds[name]):
                check(value, name)
        return function(*args, **kwargs)

    return called


def _require_file(value: Any, name: str) -> None:
    require_run(value) if name in ("run", "where") else require_path(value, name)


def _require_any_text(value: Any, name: str) -> None:
    """A text, which may be empty: what an empty one means is for the function to say. No message shows a key."""
    if not isinstance(value, str):
        actual = type(value).__name__ if name in ("api_key", "owner_token") else shown(value)
        raise InputError(f"{name} must be a text, not {actual}", name)


def _require_texts(value: Any, name: str) -> None:
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise _refused(name, "a text or a list of texts", value)
    if isinstance(value, Collection):  # anything else could be read only once
        for text in value:
            require_text(text, f"each of {name}", empty=True)


_CHECKS: Final[Mapping[frozenset[str], Callable[[Any, str], object]]] = {
    frozenset({"bool"}): require_flag,
    frozenset({"str"}): _require_any_text,
    frozenset({"str", "Sequence[str]"}): _require_texts,
    frozenset({"FilePath"}): _require_file,
}


def choices_in_words(choices: Iterable[Any]) -> str:
    """The choices of a sentence.

    Examples:
        >>> choices_in_words(["a", "b", None])
        "'a', 'b' or None"
    """
    *most, last = [repr(choice) for choice in choices]
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: Any) -> str:
    """A refused value as a message shows it: as Python writes it, and not too long."""
    text = repr(value.item() if type(value).__module__ == "numpy" and not value.shape else value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _is_place(value: Any) -> bool:
    """Whether it may be the name of a file, or an address."""
    return isinstance(value, str | os.PathLike) and bool(str(value).strip()) and "\0" not in str(value)


def _real(value: Any) -> float:
    """A number of any type as a float; nan if it is no number, or larger than any float."""
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _is_outside(number: float, limits: Mapping[str, Any]) -> bool:
    return math.isnan(number) or not all(_HOLDS[name](number, x) for name, x in limits.items() if x is not None)


def _range(limits: Mapping[str, Any]) -> str:
    """What follows "a number" in the sentence."""
    figures = {
        name: f"{int(x):,}" if float(x).is_integer() else f"{x:g}" for name, x in limits.items() if x is not None
    }
    if figures.keys() >= {"least", "most"}:
        return f" from {figures['least']} to {figures['most']}"
    parts = [words.format(figures[name]) for name, words in _WORDS.items() if name in figures]
    return f" {' and '.join(parts)}".replace("and of", "and").rstrip()


def _refused(name: str, wanted: str, value: Any) -> InputError:
    return InputError(f"{name} must be {wanted}, not {shown(value)}", name)


_SECRET = re.compile(
    r"(?:^|[_-])(?:(?:api|access)?[_-]?key|token|secret|password|authorization|credentials?)$", re.IGNORECASE
)


def read_setting(text: str, option: str = "--judge-arg") -> tuple[str, float | int | str]:
    """A setting, ``name=value``; the value is a number, or true or false, where it looks like one."""
    name, equals, value = text.partition("=")
    if _SECRET.search(name):
        raise InputError(
            f"{option} {name}: a key on the command line is seen by others and stays in the history of your shell; set "
            "the environment variable that `pairscale providers` names"
        )
    if not equals or not name.isidentifier():
        raise InputError(f"{option} {text!r} must look like name=value, such as bias=0.3")
    if value.lower() in {"true", "false"}:
        return name, value.lower() == "true"
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
