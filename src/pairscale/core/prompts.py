"""Prompt templates: where they come from, what they must contain, and how two texts are put into one.

A template is a text with four placeholders, ``{TRAIT_NAME}``, ``{TRAIT_DESCRIPTION}``, ``{SAMPLE_1}`` and
``{SAMPLE_2}``. It is looked up by name among the templates registered in this session, then among the files
``NAME.txt`` in the user's folder (``templates`` in ``PAIRSCALE_HOME``, or else in the platform's folder for settings),
then among those that come with pairscale. ``pairwiseLLM/NAME`` is a template of R's package pairwiseLLM, whose texts
are not part of pairscale: it is read from the R library that the environment variable ``PAIRSCALE_R_LIBRARY`` names.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from pairscale.core.errors import FileFormatError, TemplateError
from pairscale.core.home import home_folder
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, checked
from pairscale.core.provenance import text_hash

PLACEHOLDERS = ("{TRAIT_NAME}", "{TRAIT_DESCRIPTION}", "{SAMPLE_1}", "{SAMPLE_2}")
"""What every template must contain, each at least once."""

_BUILT_IN = ("default", "advocate", "shuffle", "protocol", "concise", "deficits", "weigh")
_ALIASES = {"test1": "advocate", "test2": "shuffle", "test3": "protocol", "test4": "concise", "test5": "deficits"}

_REGISTERED: dict[str, str] = {}

# Anything written like a placeholder is taken for one, so that a typing error is found before a judge is paid to read
# it. The braces of JSON hold quotes, spaces or small letters, and those of a formula mostly a single letter.
_PLACEHOLDER = re.compile(r"\{[A-Z][A-Z0-9_]+\}")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")


@checked
def build_prompt(template: str, trait_name: str, trait_desc: str, text1: str, text2: str) -> str:
    r"""The prompt that asks which of two texts is better.

    Every placeholder is replaced in one pass over the template: what a text contains, be it ``{SAMPLE_2}``, a tag or
    a backslash, stays as it is and changes nothing around it.

    Args:
        template: a text with all of :data:`PLACEHOLDERS`.
        trait_name: the label of the trait.
        trait_desc: its definition.
        text1: the text in the place of SAMPLE_1.
        text2: the text in the place of SAMPLE_2.

    Raises:
        TemplateError: when the template lacks a placeholder, or has one that does not exist.
        InputError: when one of them is not a text.

    Example:
        >>> template = "{TRAIT_NAME} ({TRAIT_DESCRIPTION}): {SAMPLE_1} | {SAMPLE_2}"
        >>> build_prompt(template, "Warmth", "kindness", "Dear {SAMPLE_2}", r"C:\new")
        'Warmth (kindness): Dear {SAMPLE_2} | C:\\new'
    """
    return filled(template, trait_name, trait_desc, text1, text2)


def filled(template: str, *values: str) -> str:
    """A template with these values in the places of its placeholders, in their order."""
    filling = dict(zip(PLACEHOLDERS, values, strict=True))
    return _PLACEHOLDER.sub(lambda placeholder: filling[placeholder[0]], _checked(template, "the template"))


@checked
def set_prompt_template(template: str | None = None, file: FilePath | None = None) -> str:
    """A template that is fit for use: the one given, or else the default.

    Nothing is stored; pass on what is returned, or see :func:`register_prompt_template`.

    Args:
        template: the text of a template.
        file: a text file (UTF-8) with a template; it does not matter when there is a ``template``.

    Returns:
        The template's text; without either, that of the built-in ``default``.

    Raises:
        TemplateError: when a placeholder is missing or unknown, or the file cannot be read as text.

    Example:
        >>> set_prompt_template() == get_prompt_template("default")
        True
    """
    if template is not None:
        return _checked(template, "the template")
    if file is not None:
        return _read(Path(file))
    return _built_in("default")


@checked
def get_prompt_template(name: str = "default") -> str:
    """The template of that name: registered in this session, from the user's folder, or built in.

    Args:
        name: see :func:`list_prompt_templates`; ``test1`` to ``test5`` are other names of ``advocate``, ``shuffle``,
            ``protocol``, ``concise`` and ``deficits``. ``pairwiseLLM/default`` and ``pairwiseLLM/test1`` to ``test5``
            are those of the R package, which must be installed.

    Raises:
        TemplateError: when there is none of that name, or the user's file is not a template.

    Example:
        >>> get_prompt_template("test4") == get_prompt_template("concise")
        True
    """
    return _find(name)[1]


@checked
def list_prompt_templates(include_builtin: bool = True, include_registered: bool = True) -> list[str]:
    """The names of the templates, sorted, each once.

    Args:
        include_builtin: with those that come with pairscale, ``test1`` to ``test5`` included.
        include_registered: with those registered in this session and those in the user's folder.

    Example:
        >>> list_prompt_templates(include_registered=False)[:4]
        ['advocate', 'concise', 'default', 'deficits']
    """
    names = {*_BUILT_IN, *_ALIASES} if include_builtin else set[str]()
    if include_registered:
        saved = (path.stem for path in user_folder().glob("*.txt") if _is_there(path))
        names |= {*_REGISTERED, *filter(_is_name, saved)}
    return sorted(names)


@checked
def register_prompt_template(
    name: str,
    template: str | None = None,
    file: FilePath | None = None,
    overwrite: bool = False,
    save: bool = False,
) -> str:
    """Keep a template under a name, for this session or for good.

    Args:
        name: letters a to z, digits, ``_``, ``-`` and ``.`` (not at the start); that of a built-in template is
            allowed, and from then on means yours.
        template: the text of a template.
        file: a text file with a template; without either, the default is registered.
        overwrite: replace a template of that name, instead of refusing.
        save: also write it to the user's folder, where later sessions find it.

    Returns:
        The template's text.

    Raises:
        TemplateError: when the name is not allowed or taken, the template is not fit for use, or it cannot be saved.

    Example:
        >>> short = "{TRAIT_NAME}: {TRAIT_DESCRIPTION} Better: SAMPLE_1 or SAMPLE_2? 1: {SAMPLE_1} 2: {SAMPLE_2}"
        >>> register_prompt_template("short-example", short) == get_prompt_template("short-example")
        True
        >>> remove_prompt_template("short-example")
        True
    """
    from pairscale.core.files import replacing

    path = _user_file(name)
    if not overwrite and (name in _REGISTERED or _is_there(path)):
        raise TemplateError(f"there is a prompt template {name!r} already; replace it with overwrite=True")
    # As a file would give it back, so that the session and the saved copy are one template and not nearly one.
    text = set_prompt_template(template, file).replace("\r\n", "\n")
    if save:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as scratch:  # its name starts with a dot, so it is never listed
            scratch.write_text(f"{text}\n", "utf-8", newline="\n")  # reading takes the last line break away
    if name in _BUILT_IN and name not in _REGISTERED:
        notice(f"the prompt template {name!r} now means yours, not the built-in one")
    _REGISTERED[name] = text
    return text


@checked
def remove_prompt_template(name: str, quiet: bool = False) -> bool:
    """Forget a registered template, and delete its file in the user's folder if it has one.

    Args:
        name: of a template of your own. A built-in one is never removed; where yours hid it, it is back.
        quiet: return False, instead of raising, when there is nothing to remove.

    Returns:
        Whether a template was removed.

    Raises:
        TemplateError: when there is nothing to remove and not ``quiet``, or the file cannot be deleted.

    Example:
        >>> _ = register_prompt_template("short", get_prompt_template("default"))
        >>> remove_prompt_template("short"), remove_prompt_template("short", quiet=True)
        (True, False)
    """
    if _is_name(name) and (name in _REGISTERED or _is_there(_user_file(name))):
        _user_file(name).unlink(missing_ok=True)
        _REGISTERED.pop(name, None)
        return True
    if quiet:
        return False
    raise TemplateError(f"there is no prompt template of your own called {name!r}")


def template_from(name_or_file: str) -> tuple[str, str]:
    """The id and the text of a template that is given by name, as a file, or as its text.

    Args:
        name_or_file: a value with a placeholder in it is a template's text; ``pairwiseLLM/NAME`` is one of the R
            package; any other with a slash or backslash, or that ends in ``.txt``, is a file; anything else a name.

    Returns:
        The id, which results carry as ``template_id``, and the text. The id is the template's proper name (``advocate``
        for ``test1``), or the file's name with its ending, so that ``default.txt`` is never taken for ``default``.

    Raises:
        TemplateError: when there is no such template or file, or it is not fit for use.

    Example:
        >>> template_from("test1")[0]
        'advocate'
    """
    if PLACEHOLDERS[-1] in name_or_file:
        text = _checked(name_or_file, "the template")
        built_in = next((name for name in _BUILT_IN if _built_in(name) == text), None)
        return built_in or f"custom-{text_hash(text)[:8]}", text
    if _is_file_like(name_or_file) and not _is_r_template(name_or_file):
        path = Path(name_or_file)
        return path.name, _read(path)
    return _find(name_or_file)


# Looking up.


def _find(name: str) -> tuple[str, str]:
    """The proper name and the text of a template."""
    if _is_r_template(name):
        return name, _read(_r_template_file(name))
    path = _user_file(name)
    if name in _REGISTERED:
        return name, _REGISTERED[name]
    if _is_there(path):
        return name, _read(path)
    if name in _BUILT_IN:
        return name, _built_in(name)
    if name in _ALIASES:
        return _find(_ALIASES[name])
    raise TemplateError(f"no prompt template {name!r}; there are {', '.join(list_prompt_templates())}")


def _built_in(name: str) -> str:
    return files("pairscale.core").joinpath("templates", f"{name}.txt").read_text("utf-8").removesuffix("\n")


def _is_r_template(name: str) -> bool:
    """Whether a name is one of a template of the R package: ``pairwiseLLM/default``, but not a file's."""
    return re.fullmatch(r"pairwiseLLM/[^/]+(?<!\.txt)", name) is not None


def _r_template_file(name: str) -> Path:
    """The file of a template of the R package, in the library that the environment names."""
    library = os.environ.get("PAIRSCALE_R_LIBRARY")
    file = Path(library or "").expanduser() / "pairwiseLLM" / "templates" / f"{name.removeprefix('pairwiseLLM/')}.txt"
    if library and file.is_file():
        return file
    raise TemplateError(
        f"no prompt template {name!r}: R's templates are not part of pairscale. Set PAIRSCALE_R_LIBRARY to the folder "
        'where R has installed its package (in R: dirname(find.package("pairwiseLLM"))), or name a template file'
    )


# Names and files. A name becomes a file name, so it can be nothing that leads out of the folder or hides in it.


def _is_file_like(value: str) -> bool:
    return "/" in value or "\\" in value or value.lower().endswith(".txt")


def _is_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None and not _is_file_like(value)


def user_folder() -> Path:
    """The folder of the user's own templates; it need not exist."""
    return home_folder("templates")


def _user_file(name: str) -> Path:
    if not _is_name(name):
        raise TemplateError(
            f"{name!r} cannot be the name of a prompt template: up to 100 letters a to z, digits, '_', '-' and '.', "
            "not starting with '.' and without '.txt' at the end"
        )
    return user_folder() / f"{name}.txt"


def _is_there(path: Path) -> bool:
    """Whether a file is there; False in a settings folder that we may not enter: the built-in ones must still work."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises


def _read(path: Path) -> str:
    """A template file, as R reads it."""
    from pairscale.core.encodings import decode, read_bytes

    try:
        text = decode(read_bytes(path), str(path), "utf-8")
    except FileFormatError as error:
        raise TemplateError(f"the template file cannot be read: {error}") from error
    return _checked(text.replace("\r\n", "\n").removesuffix("\n"), f"the template file {path}")


# Checking.


@lru_cache(maxsize=64)
def _checked(template: str, what: str) -> str:
    """The template itself, when it has every placeholder and no other."""
    placeholders = dict.fromkeys(_PLACEHOLDER.findall(template))
    missing = [name for name in PLACEHOLDERS if name not in placeholders]
    unknown = [name for name in placeholders if name not in PLACEHOLDERS]
    if missing or unknown:
        raise TemplateError(
            f"{what} must have the placeholders {', '.join(PLACEHOLDERS)} and no others; it lacks "
            f"{', '.join(missing) or 'none'}, and has {', '.join(unknown) or 'none'} besides"
        )
    return template
