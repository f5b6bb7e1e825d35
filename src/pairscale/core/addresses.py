"""Addresses with secrets in them: what must not be shown of them."""

from __future__ import annotations

import re

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

    Where an address stands alone, use this: in running text, :func:`without_logins` cannot know that a password has a
    blank or a quotation mark.

    Example:
        >>> without_login("postgresql://ann:it's a secret?@host:54x/db")
        'postgresql://host:54x/db'
        >>> without_login("https://host:8000/v1?mail=a@b.org")
        'https://host:8000/v1?mail=a@b.org'
    """
    if "@" in address and not _PLAIN_HOST.fullmatch(address):
        address = _UP_TO_HOST.sub(r"\1", address)
    return _IN_QUERY.sub(r"\1[key]", address)
