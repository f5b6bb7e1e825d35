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
