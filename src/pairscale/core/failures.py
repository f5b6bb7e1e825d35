"""Why a question has no answer, in three kinds, decided in one place.

``transient``
    Asking again makes sense: the provider is busy, the connection broke, an answer took too long.
``question``
    This question cannot be answered, others can: its text is too long, its content was refused, the reply cannot be
    read, a judge function raised.
``judge``
    No question can be answered: the key is not accepted, the model is unknown, the address is wrong, the account is
    empty.

Status codes alone do not tell the kinds apart: providers send 403 for a text that their moderation flagged and for a
key without permission, and 400 or 429 for an empty account. So the provider's code and message count, too. A 402 or
403 that says nothing more is ``question``: a run stops by itself when the same failure repeats on many questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

Failure: TypeAlias = Literal["transient", "question", "judge"]
"""A kind of failure."""

FAILURES: tuple[Failure, ...] = get_args(Failure)
"""All kinds of failure."""

_TRANSIENT = frozenset({408, 409, 425, 429, 498, 499})
_NEVER = frozenset({501, 505})  # the server cannot do it, now or later; others may be answered

_STATUS_OF = {
    # Anthropic
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "forbidden": 403, "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
    "timeout_error": 504, "overloaded_error": 529,
    # Google
    "invalid_argument": 400, "failed_precondition": 400, "out_of_range": 400, "unauthenticated": 401,
    "permission_denied": 403, "not_found": 404, "aborted": 409, "resource_exhausted": 429, "cancelled": 499,
    "internal": 500, "unknown": 500, "unavailable": 503, "deadline_exceeded": 504,
    # OpenAI, and servers that follow it
    "server_error": 500, "rate_limit_exceeded": 429,
}  # fmt: skip
"""The status that a provider's own code means, for replies without one, such as the lines of a batch."""

_JUDGE_CODES = frozenset({
    "insufficient_quota", "billing_not_active", "billing_hard_limit_reached", "billing_error", "credits_exhausted",
    "invalid_api_key", "account_deactivated", "authentication_error", "unauthenticated", "model_not_found",
    "model_not_available", "deploymentnotfound", "unsupported_country_region_territory", "ip_not_authorized",
    "model_decommissioned", "model_not_supported", "invalid_model", "budget_exceeded", "organization_restricted",
    "exceeded_current_quota_error", "invalid_authentication_error", "insufficient_balance", "arrearage",
})  # fmt: skip
_CONTENT_CODES = frozenset({
    "content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked",
    "data_inspection_failed", "datainspectionfailed",
})  # fmt: skip
_QUESTION_CODES = frozenset({
    "context_length_exceeded", "string_above_max_length", "request_too_large", "invalid_prompt",
    "exceed_context_size_error",
})  # fmt: skip
_PERMISSION_CODES = frozenset({"permission_error", "permission_denied", "access_denied", "authorizationerror"})


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL)


_CONTENT = _pattern(
    r"content[- ](?:filter|polic|management polic|moderat|violation|safety)",
    r"\b(?:requires|by|failed|fails|our) moderation\b",
    r"\b(?:input|prompt|text|content|message|output|response|completion|answer)s?\b.{0,40}"
    r"\b(?:flagged|blocked|filtered|moderated|violat\w+|prohibited|inappropriate|unsafe|harmful|disallowed)\b",
    r"\b(?:flagged|blocked|filtered|violat\w+|unsafe|harmful|inappropriate|prohibited)\b.{0,20}"
    r"\b(?:input|prompt|text|content|message|output|completion)s?\b",
    r"\brequest (?:was |has been )?(?:blocked|flagged|rejected)\b.{0,60}\b(?:prompt|safety|content|moderation)",
    r"\bsafety (?:system|filter|polic|guideline|reason|setting|check)",
    r"\b(?:usage|acceptable use) polic(?:y|ies)\b",
    r"\bguardrail",
    r"\bprompt injection\b",
    r"\bcontent exists risk\b",
    r"\bmoderation block",
)
_TOO_LONG = _pattern(
    r"\bcontext[ _](?:length|window|size|limit)\b",
    r"\b(?:prompt|input|request|messages?) (?:is|are) too (?:long|large)\b",
    r"\brequest too large\b",
    r"\binput token count\b.{0,40}\bexceeds\b",
    r"\bmax_new_tokens\b.{0,20}\bmust be\b",
)
_TOO_MANY_TOKENS = _pattern(r"\btoo many (?:input )?tokens\b(?! per)")
"""The same, unless it comes with 429: then it is about all requests of a minute."""
_UNKNOWN_MODEL = _pattern(
    r"\bmodels?\b(?:(?!\.\s).){0,100}\b(?:not found|(?:does |do )?not exist|doesn't exist|not available|"
    r"no longer (?:available|supported)|not a valid|is not valid|not supported for generatecontent|"
    r"has been (?:deprecated|decommissioned|retired|removed))",
    r"\b(?:unknown|invalid|no such|unable to access|not have access to|not a valid|not found:?|unsupported) model\b",
    r"^model: ",
    r"\bnot a valid model\b",
    r"\bmodel (?:is )?not found\b",
    r"\bdeployment\b.{0,60}\bdoes not exist\b",
    r"\bnot found for account\b",
    r"\bno endpoints found\b",
)
_NO_ACCESS = _pattern(
    r"\bapi[ _-]?key\b.{0,40}"
    r"\b(?:not valid|not found|invalid|expired|revoked|disabled|suspended|missing|leaked|blocked)\b",
    r"\b(?:invalid|incorrect|expired|revoked|missing|wrong|no) (?:api|access|authentication)[ _-]?(?:key|token)\b",
    r"\b(?:account|organi[sz]ation|project|workspace)\b (?:\S+ )?(?:has been|is|was) "
    r"(?:suspended|disabled|deactivated|restricted|terminated)\b",
    r"\baccount is in good standing\b",
    r"\b(?:location|country|region|territory)\b.{0,20}\bnot (?:supported|available)\b",
    r"\bnot available in your (?:country|region)\b",
    r"\bspecified api usage limits\b",
    r"\bbilling hard limit\b",
    r"\bunexpected endpoint or method\b",
    r"\bquota exceeded\b.{0,120}\blimit: 0\b(?!\.\d)",
)
"""Words that leave no doubt, with any status."""
_NO_MONEY = _pattern(
    r"\bcredit balance\b",
    r"\binsufficient (?:\w+ )?(?:credit|fund|balance|quota)s?\b",
    r"\b(?:credit|fund|balance)s?\b.{0,20}\b(?:depleted|exhausted|too low|insufficient|used up|negative)\b",
    r"\b(?:used all|used up all|run out of|(?:does not|doesn't) have any)\b.{0,20}\bcredits?\b",
    r"\b(?:reached|exceeded)\b.{0,30}\bspending limit\b",
    r"\b(?:budget has been exceeded|exceeded budget|over budget)\b",
    r"\boverdue balance\b",
    r"余额不足|欠费",
)
"""The same of an empty account; not merely a hint that money helps, as it is in many replies to fast requests."""
_ACCOUNT = _pattern(
    r"\b(?:account|organi[sz]ation|project|workspace|consumer|user|subscription)\b.{0,80}"
    r"\b(?:suspended|disabled|deactivated|flagged|banned|blocked|terminated|restricted|closed|not authorized|"
    r"not have (?:access|permission)|must be verified|not active|denied)\b",
    r"\bdoes not have (?:permission|access)\b",
    r"\b(?:missing|insufficient|lacks?|required|no) (?:\w+ )?(?:permission|scope)s?\b",
    r"\bkey (?:limit|is not allowed|may not|does not have|lacks)\b",
    r"\brequests to this api\b.{0,160}\bare blocked\b",
    r"\bhas not been used in project\b",
    r"\brequires a subscription\b",
    r"^request not allowed$",
)
"""What a 403 says about a key or an account."""
_MONEY = _pattern(r"\b(?:credits?|balance|billing|payments?|funds?|quota|spend(?:ing)?|subscription|plan)\b")
"""What a 402 says about an account."""
_NO_SUCH_PAGE = _pattern(
    r"^\s*$",
    r"^\s*(?:404\b)?[\s:.-]*(?:page |url |path |route |endpoint |resource )?not found\s*[.!]?\s*$",
    r"^http 404 without a message$",
    r"^\{['\"]detail['\"]: ['\"]not found['\"]\}$",
    r"<html|<!doctype",
    r"\binvalid url\b",
    r"\bunknown request url\b",
    r"\b(?:unknown|unexpected|no such|invalid) (?:endpoint|path|route|url|address)\b",
    r"\bcannot (?:post|get) /",
    r"\bno (?:route|handler|static resource|context-path)\b",
    r"\bthe requested (?:url|resource|path|entity) was not found\b",
    r"\bpage not found\b",
)


_SCANNED = 500  # characters; what follows is often the question itself, and a text must not stop a run


def concerns_content(code: str | None, message: str = "") -> bool:
    """Whether an error says that the content of a question or of its answer was refused.

    Example:
        >>> concerns_content(None, "Output blocked by content filtering policy")
        True
        >>> concerns_content("insufficient_quota")
        False
    """
    name = (code or "").lower()
    words = message[:_SCANNED]
    if name in _CONTENT_CODES:
        return True
    return name not in _JUDGE_CODES and bool(_CONTENT.search(words)) and not _ACCOUNT.search(words)


def status_named(code: str | None) -> int | None:
    """The status of HTTP that a provider's own code means; None for any other code.

    Example:
        >>> status_named("overloaded_error"), status_named("RESOURCE_EXHAUSTED"), status_named("something")
        (529, 429, None)
    """
    return _STATUS_OF.get((code or "").lower())


def telling_code(names: Iterable[Any]) -> str | None:
    """The one of an error's codes and types that says most about its kind; None when none of them is a text.

    Example:
        >>> telling_code(["400", None, "budget_exceeded"]), telling_code(["unsupported_value", "invalid_request_error"])
        ('budget_exceeded', 'unsupported_value')
    """
    texts = [name for name in names if isinstance(name, str) and name]
    codes = _JUDGE_CODES | _CONTENT_CODES | _QUESTION_CODES
    telling = [name for name in texts if name.lower() in codes] or [name for name in texts if not name.isdigit()]
    return next(iter(telling or texts), None)


def failure_of(status: int | None, code: str | None, message: str = "") -> Failure:
    """The kind of a failure.

    Args:
        status: of HTTP; None when there was no reply, or a batch gives none.
        code: the provider's own code or type, such as ``insufficient_quota`` or ``RESOURCE_EXHAUSTED``.
        message: the provider's words.

    Example:
        >>> failure_of(503, None), failure_of(401, None), failure_of(400, "context_length_exceeded")
        ('transient', 'judge', 'question')
        >>> failure_of(403, None, "Your input was flagged"), failure_of(403, None, "API key suspended")
        ('question', 'judge')
    """
    name = (code or "").lower()
    words = message[:_SCANNED]
    status = status or status_named(name)
    if name in _JUDGE_CODES or status == 401:
        return "judge"
    too_long = _TOO_LONG.search(words) or (status != 429 and _TOO_MANY_TOKENS.search(words))
    if name in _QUESTION_CODES or name in _CONTENT_CODES or too_long:
        return "question"
    if status is not None and 400 <= status < 500 and status not in _TRANSIENT:
        return _of_refused(status, name, words)
    if _NO_ACCESS.search(words) or _NO_MONEY.search(words):
        return "judge"
    if status is None and _UNKNOWN_MODEL.search(words):
        return "judge"
    is_elsewhere = status is not None and 300 <= status < 400
    return "question" if is_elsewhere or status in _NEVER else "transient"


def _of_refused(status: int, name: str, message: str) -> Failure:
    """Of a status between 400 and 499 that asking again does not change."""
    if concerns_content(name, message):
        return "question"
    concerns_all = (
        status in {405, 407}  # the address is that of something else; the proxy asks for a key of its own
        or (status == 402 and _MONEY.search(message))
        or (status == 403 and (name in _PERMISSION_CODES or _ACCOUNT.search(message)))
        or (status == 404 and _NO_SUCH_PAGE.search(message))
        or any(pattern.search(message) for pattern in (_UNKNOWN_MODEL, _NO_ACCESS, _NO_MONEY))
    )
    return "judge" if concerns_all else "question"
