"""Prompt templates of R's package pairwiseLLM, read from where the user has it installed.

Their texts are the package's own and are not part of pairscale. ``pairwiseLLM/NAME`` names one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pairscale.core.errors import TemplateError

PREFIX = "pairwiseLLM/"
"""What the name of such a template begins with."""
VARIABLE = "PAIRSCALE_R_LIBRARY"
"""The environment variable that names the R library, the package's folder in it, or the folder of its templates."""

_PACKAGE = "pairwiseLLM"
_USUAL = (
    "/usr/local/lib/R/site-library", "/usr/lib/R/site-library", "/usr/local/lib/R/library", "/usr/lib/R/library",
    "/usr/lib64/R/library", "/opt/R/*/lib/R/library", "/opt/R/*/lib/R/site-library",
    "/Library/Frameworks/R.framework/Resources/library", "/Library/Frameworks/R.framework/Versions/*/Resources/library",
)  # fmt: skip
_OF_THE_USER = ("R/*/*", "R/*-library/*", "Library/R/*/library", "Library/R/*/*/library", "Documents/R/win-library/*")


def is_r_template(name: object) -> bool:
    """Whether a name is one of a template of the R package: ``pairwiseLLM/default``, but not a file's."""
    return isinstance(name, str) and name.startswith(PREFIX) and "/" not in name[len(PREFIX) :] and name[-4:] != ".txt"


def r_template_file(name: str) -> Path:
    """The file of a template of the R package.

    Args:
        name: Such as ``pairwiseLLM/default`` or ``pairwiseLLM/test1``.

    Raises:
        TemplateError: If the package is not found, or has no such template; the message says what to do.
    """
    wanted = name.removeprefix(PREFIX)
    if given := os.environ.get(VARIABLE):
        places = _templates_in(Path(given).expanduser())
        where = f"{VARIABLE}={given}"
    else:
        places = (folder / _PACKAGE / "templates" for folder in _libraries())
        where = "the R libraries of this machine"
    folder = next((place for place in places if _is_folder(place)), None)
    how = (
        f"set {VARIABLE} to the folder in which R has installed it (in R: "
        f'dirname(find.package("{_PACKAGE}"))), or give the path of a template file'
    )
    if folder is None:
        raise TemplateError(
            f"no prompt template {name!r}: R's package {_PACKAGE} was not found in {where}. Its templates are not part "
            f'of pairscale. Install it (in R: install.packages("{_PACKAGE}")), {how}'
        )
    file = folder / f"{wanted}.txt"
    if not file.is_file():
        there = ", ".join(sorted(path.stem for path in folder.glob("*.txt"))) or "none"
        raise TemplateError(f"no prompt template {name!r}: {folder} has {there}. For another installation, {how}")
    return file


def _templates_in(given: Path) -> Iterator[Path]:
    """The folders that a path to a library, to the package or to its templates may mean."""
    yield given / _PACKAGE / "templates"
    yield given / _PACKAGE / "inst" / "templates"
    if given.name == _PACKAGE or (given / "DESCRIPTION").is_file():
        yield given / "templates"
        yield given / "inst" / "templates"
    elif given.name == "templates":
        yield given


def _libraries() -> Iterator[Path]:
    """The R libraries that are named in the environment, then those at the usual places."""
    for variable in ("R_LIBS", "R_LIBS_USER", "R_LIBS_SITE"):
        for entry in os.environ.get(variable, "").split(os.pathsep):
            if entry and "%" not in entry:
                yield Path(entry).expanduser()
    if home := os.environ.get("R_HOME"):
        yield Path(home) / "library"
    yield from _at(Path.home(), _OF_THE_USER)
    if sys.platform == "win32":
        yield from _at(Path(os.environ.get("LOCALAPPDATA", Path.home())), ("R/win-library/*",))
        yield from _at(Path(os.environ.get("PROGRAMFILES", "C:/Program Files")), ("R/R-*/library",))
    for pattern in _USUAL:
        yield from _at(Path("/"), (pattern.lstrip("/"),))


def _at(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    """The folders that patterns match, those of newer versions first."""
    for pattern in patterns:
        try:
            yield from sorted(folder.glob(pattern), reverse=True)
        except OSError:  # a folder that we may not enter holds no library that we could read
            continue


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
