"""Pages from templates, and what all addresses have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import FastAPI, Form, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException

from pairscale.core.errors import InputError, PairscaleError
from pairscale.core.tables import Values
from pairscale.reporting.svg import picture_css

STATIC = FilePath(__file__).parent / "static"

Token = Annotated[str, Path(min_length=1, max_length=200)]
"""The secret part of a link."""
Signature = Annotated[str, Form(max_length=200)]
"""Shows that a form comes from a page of ours."""


_PAGES = Environment(
    loader=PackageLoader("pairscale.people"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
_STYLES = b"".join(path.read_bytes() for path in sorted(STATIC.iterdir())) + picture_css().encode()
_PAGES.globals["version"] = sha256(_STYLES).hexdigest()[:12]


def page(name: str, values: Values, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """A page from its template."""
    return HTMLResponse(_PAGES.get_template(name).render(values), status, headers)


def problem(heading: str, words: str, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """A page that says a sentence, and nothing else."""
    return page("problem.html", {"heading": heading, "words": words}, status, headers)


def add_errors(
    app: FastAPI, heading: str, failed: Callable[[PairscaleError], str], *, again_s: int | None = None
) -> None:
    """Pages for what goes wrong.

    Args:
        app: where.
        heading: what its pages are about.
        failed: the words for what is no fault of the reader, such as a file that is gone.
        again_s: after how many seconds the page then looks again; never when None.
    """
    again = {} if again_s is None else {"refresh": str(again_s)}

    @app.exception_handler(HTTPException)
    def refused(_request: Request, error: HTTPException) -> Response:
        return problem(heading, str(error.detail), error.status_code)

    @app.exception_handler(RequestValidationError)
    def unusable(_request: Request, _error: RequestValidationError) -> Response:
        words = "What was sent cannot be used. Please go back and try again."
        return problem(heading, words, HTTPStatus.UNPROCESSABLE_ENTITY)

    @app.exception_handler(PairscaleError)
    def broken(_request: Request, error: PairscaleError) -> Response:
        if isinstance(error, InputError):
            return problem(heading, str(error), HTTPStatus.UNPROCESSABLE_ENTITY)
        return problem(heading, failed(error), HTTPStatus.SERVICE_UNAVAILABLE, again)


def see(address: str) -> RedirectResponse:
    """Go there now: after a form, so that a reload sends nothing twice."""
    return RedirectResponse(address, HTTPStatus.SEE_OTHER)
