"""Every exception that pairscale raises on purpose.

::

    PairscaleError
    ├── InputError              what came in cannot be used (also a ValueError)
    │   ├── TableError          a table lacks a column, or rows of it are wrong
    │   │   └── UnsureColumnError   several columns may be meant, and none was named
    │   ├── FileFormatError     a file cannot be read as what it claims to be
    │   ├── TemplateError       a prompt template is unknown or incomplete
    │   └── UnknownNameError    no trait, judge or engine has that name
    ├── StoreError              the run file cannot be used
    │   ├── StoreBusyError      another process is writing to it
    │   ├── StoreConnectionError    its database does not answer
    │   ├── StoreDamagedError   it is not a run file, or it is broken
    │   ├── StoreFullError      the disk (or its quota) is full
    │   ├── StoreGoneError      it was deleted or replaced while a run was writing to it
    │   ├── StoreMismatchError  it holds another text, judge or setting than is given now
    │   └── StoreReadOnlyError  it may be read, but not written
    ├── FitError                a model has no answer for these comparisons
    │   └── SamplerError        the Bayesian sampler's step size collapsed
    ├── JudgeError              a judge can judge nothing at all: a wrong key, an unknown model
    └── MissingExtraError       an optional package is not installed (also an ImportError)

A judgement that fails is data, not an exception: see :class:`pairscale.Verdict`.
Every message says what is wrong, where, and what to do next.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = [
    "NAMES_OF_KEYS",
    "FileFormatError",
    "FitError",
    "InputError",
    "JudgeError",
    "MissingExtraError",
    "PairscaleError",
    "SamplerError",
    "StoreBusyError",
    "StoreConnectionError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreGoneError",
    "StoreMismatchError",
    "StoreReadOnlyError",
    "TableError",
    "TemplateError",
    "UnknownNameError",
    "UnsureColumnError",
    "without_login",
    "without_logins",
]


class PairscaleError(Exception):
    """The base class: catch this to catch every error that pairscale raises on purpose.

    No message of theirs holds the user or password of an address.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_logins(part) if isinstance(part, str) else part for part in args))


class InputError(PairscaleError, ValueError):
    """What came in (an argument, a table, a file) cannot be used as it is.

    A message names other arguments as ```name=``` or ``name='value'``, which each surface spells its own way.

    Attributes:
        argument: the argument that is wrong, which the message begins with; None where it is about something else.
    """

    def __init__(self, message: str = "", argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class TableError(InputError):
    """A table lacks a column, or some of its rows are wrong; the message names them."""


class UnsureColumnError(TableError):
    """It is not certain which column is meant: the message names the columns, and the option that chooses.

    Attributes:
        argument: the name of the argument: ``id_col`` or ``text_col``.
        columns: the columns that it may be.
    """

    argument: str

    def __init__(self, message: str, argument: str, columns: Sequence[str]) -> None:
        super().__init__(message, argument)
        self.columns = tuple(columns)


class FileFormatError(InputError):
    """A file cannot be read as what it claims to be; the message names the file."""


class TemplateError(InputError):
    """A prompt template is unknown, or lacks a placeholder."""


class UnknownNameError(InputError):
    """There is no trait, judge or engine of that name; the message lists those there are."""


class StoreError(PairscaleError):
    """The run file cannot be opened, read or written."""


class StoreBusyError(StoreError):
    """Another process is writing to this run file."""


class StoreConnectionError(StoreError):
    """The database of the run does not answer; what was written before is kept."""


class StoreDamagedError(StoreError):
    """The file is not a run file, or it is broken."""


class StoreFullError(StoreError):
    """There is no room left on the disk; what was answered before is kept."""


class StoreGoneError(StoreError):
    """The run file was deleted or replaced while a run was writing to it; the message names the copy that was saved."""


class StoreMismatchError(StoreError):
    """The run file holds something else: another text under the same id, another judge, another setting."""


class StoreReadOnlyError(StoreError):
    """The run may be read, but not written: permissions are missing, or the database is a copy of another one."""


class FitError(PairscaleError):
    """A model has no answer for these comparisons."""


class SamplerError(FitError):
    """The Bayesian sampler cannot move: its step size collapsed, also in the coordinates around the mode."""


class JudgeError(PairscaleError):
    """A judge cannot be asked: its key is not accepted, its model does not exist, or it fails on every question.

    Attributes:
        result: what the call would have returned with the answers that came before; None where there is nothing.
    """

    result: Any = None


class MissingExtraError(PairscaleError, ImportError):
    """An optional package is needed; the message is the command that installs it."""

    def __init__(self, need: str, extra: str, otherwise: str = "") -> None:
        package = "pandas pyarrow" if extra == "pandas" else f'"pairscale[{extra}]"'
        super().__init__(f"{need} needs an optional package: pip install {package}{otherwise}")


_SCHEMES = r"(?:postgres(?:ql)?|mysql|mariadb|mssql|oracle|sqlite|https?|ftps?|socks\w*)(?:\+\w+)?"
_PAIR = r"[^\s'\"/:@]+:(?!\d+/)[^\s'\"?]*@"  # user and password, also with a / or @ that should have been encoded
_USER = rf"(?:{_PAIR}|(?:[^\s'\"/?#]*@)+)"
_LOGIN = re.compile(
    rf"((?:\w://)|\b{_SCHEMES}:/{{0,2}}){_USER}|(\b{_SCHEMES}/{{1,2}}){_PAIR}",  # the last one without its colon
    re.IGNORECASE,
)
NAMES_OF_KEYS = r"(?:keys?|token|secrets?|passwd|password|headers?|auth|authorization|bearer|credentials?)"
"""How a setting or parameter is called whose value is a secret: a pattern for the end of its name."""
_IN_QUERY = re.compile(rf"(?<=[?&])([^=&#\s]*{NAMES_OF_KEYS}=)[^&#\s'\"]*", re.IGNORECASE)


def without_logins(text: str) -> str:
    """The same without the users, passwords and keys of the addresses in it, also of those that are misspelt."""
    return _IN_QUERY.sub(r"\1[key]", _LOGIN.sub(r"\1\2", text)) if "@" in text or "=" in text else text


_PLAIN_HOST = re.compile(r"[\w+.-]{2,}:/{0,2}(?!/)(?:\[[\w:.%-]*\]|[^/?#@:\[\]\s'\"]*)(?::\d*)?(?:[/?#].*)?", re.DOTALL)
_UP_TO_HOST = re.compile(r"^([\w+.-]{2,}:/{0,2}).*@", re.DOTALL)  # one letter is a drive of Windows


def without_login(address: str) -> str:
    """One address without its user and password, whatever letters they have, and without keys behind ``?``.

    Use this for a text that is an address and nothing else: in running text, :func:`without_logins` cannot know that a
    password has a blank or a quotation mark.

    Example:
        >>> without_login("postgresql://ann:it's a secret?@host:54x/db")
        'postgresql://host:54x/db'
        >>> without_login("https://host:8000/v1?mail=a@b.org")
        'https://host:8000/v1?mail=a@b.org'
    """
    if "@" in address and not _PLAIN_HOST.fullmatch(address):
        address = _UP_TO_HOST.sub(r"\1", address)
    return _IN_QUERY.sub(r"\1[key]", address)
