"""Pages from templates, and what all addresses have in common."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import Form, Path
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["HTML", "STATIC", "Signature", "Token", "page", "see"]

STATIC = FilePath(__file__).parent / "static"

Token = Annotated[str, Path(min_length=1, max_length=200, description="The secret part of a link.")]
Signature = Annotated[str, Form(max_length=200, description="Shows that the form comes from a page of ours.")]


_PAGES = Environment(
    loader=PackageLoader("pairscale.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
_PAGES.globals["version"] = sha256(b"".join(path.read_bytes() for path in sorted(STATIC.iterdir()))).hexdigest()[:12]


def page(
    name: str, values: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """A page from its template."""
    return HTMLResponse(_PAGES.get_template(name).render(values), status, headers)


def see(address: str) -> RedirectResponse:
    """Go there now: after a form, so that a reload sends nothing twice."""
    return RedirectResponse(address, HTTPStatus.SEE_OTHER)


HTML: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}},
    303: {"description": "Saved; the next page is there."},
    403: {"description": "The form is not one of this page."},
    404: {"description": "No such link."},
    422: {"description": "What was sent cannot be used.", "content": {"text/html": {"schema": {"type": "string"}}}},
}
