"""The labelling page: what a labeller and the owner see, and what a click does."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Literal

from fastapi import FastAPI, Form, HTTPException, Query, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

from pairscale._version import __version__
from pairscale.core.errors import PairscaleError
from pairscale.core.notices import notice
from pairscale.people._guard import Guard, is_signed, signature
from pairscale.people._markdown import shown
from pairscale.people._owner import add_owner
from pairscale.people._pages import HTML, STATIC, Signature, Token, add_errors, page, problem, see
from pairscale.people.labels import Labeller
from pairscale.people.source import LabelQuestion, LabelSource, StoredLabelSource

SKIP_REASONS = (
    "I cannot tell which is better",
    "A text is missing or cannot be read",
    "I know who wrote one of them",
    "I do not know enough about the subject",
)
_HEADING = "Labelling"
_NOTICES = {
    "again": "That one was answered already, so nothing was changed.",
    "reason": "To skip, please choose or write a reason.",
    "undone": "Taken back. Please choose again.",
    "nothing": "There is nothing to take back.",
}
_WAIT_SECONDS = {True: 15, False: 2}  # for others' held cases; for the next pair of a run


def create_app(
    source: LabelSource, *, instructions: str = "", plain: bool = False, hosts: Iterable[str] = ()
) -> FastAPI:
    """The labelling page as an ASGI application.

    Args:
        source: where questions come from and answers go to; a :class:`StoredLabelSource` has an owner's page, too.
        instructions: for labellers, in Markdown.
        plain: show texts as they are written, not as Markdown.
        hosts: names that it is served under, besides ``localhost`` and addresses in numbers.
    """
    app = FastAPI(title="pairscale labelling", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, hosts=tuple(hosts))
    add_errors(app, _HEADING, _not_saved)
    _add_labelling(app, source, instructions, plain)
    if isinstance(source, StoredLabelSource):
        add_owner(app, source)
    return app


def _not_saved(error: PairscaleError) -> str:
    notice(f"an answer could not be saved: {error}")
    return "It could not be saved. Please tell the owner of this study, and try again later."


# Labelling


def _add_labelling(app: FastAPI, source: LabelSource, instructions: str, plain: bool) -> None:
    @app.get("/", response_class=HTMLResponse, responses={200: HTML[200]}, summary="For those without a link")
    def without_link() -> Response:
        return problem(_HEADING, "To label, open the link that you were given. It is yours alone.")

    text = partial(shown, plain=plain)
    guide = shown(instructions) if instructions.strip() else ""

    def who(token: str) -> Labeller:
        labeller = source.labeller_of(token)
        if labeller is None:
            raise HTTPException(404, "This link is not known here. Please ask for a new one.")
        return labeller

    def come_from_here(csrf: str, *parts: object) -> None:
        if not is_signed(csrf, source.secret, *parts):
            raise HTTPException(403, "This form is not one of this page. Please open your link again.")

    @app.get("/l/{token}", response_class=HTMLResponse, responses=HTML, summary="What comes next")
    def ask(token: Token, why: Annotated[str, Query(description="Why the page comes again.")] = "") -> Response:
        labeller = who(token)
        found = source.next(labeller)
        standing = source.standing(labeller)
        common = {
            "labeller": labeller, "standing": standing, "notice": _NOTICES.get(why, ""), "undoes": source.undoes,
            "undo_csrf": signature(source.secret, "undo", token), "guide": guide,
        }  # fmt: skip
        if isinstance(found, LabelQuestion):
            csrf = signature(source.secret, "answer", token, found.question_id)
            asked = {"question": found, "ties": source.ties, "reasons": SKIP_REASONS, "text": text, "csrf": csrf}
            return page("label.html", common | asked)
        if found == "waiting":
            return page("waiting.html", common, headers={"refresh": str(_WAIT_SECONDS[source.undoes])})
        return page("done.html", common)

    @app.post("/l/{token}/answer", response_class=RedirectResponse, status_code=303, responses=HTML, summary="Answer")
    def answer(
        token: Token,
        question: Annotated[int, Form(ge=1, le=2**53, description="The number of the question.")],
        choice: Annotated[Literal["1", "2", "tie", "skip"], Form(description="As it is shown: 1 stands first.")],
        csrf: Signature,
        comment: Annotated[str, Form(max_length=5000, description="In the labeller's words.")] = "",
        reason: Annotated[str, Form(max_length=200, description="Of a skip.")] = "",
        other_reason: Annotated[str, Form(max_length=1000, description="Of a skip, in the labeller's words.")] = "",
        elapsed: Annotated[str, Form(max_length=20, description="Milliseconds, as the page measured them.")] = "",
    ) -> Response:
        labeller = who(token)
        come_from_here(csrf, "answer", token, question)
        because = _clean(other_reason) or _clean(reason)
        if choice == "skip" and not because:
            return see(f"/l/{token}?why=reason")
        saved = source.answer(
            labeller,
            question,
            None if choice == "skip" else choice,
            skipped=because if choice == "skip" else None,
            comment=_clean(comment) or None,
            elapsed_ms=int(elapsed) if elapsed.isascii() and elapsed.isdecimal() else None,
        )
        return see(f"/l/{token}" if saved else f"/l/{token}?why=again")

    @app.post("/l/{token}/undo", response_class=RedirectResponse, status_code=303, responses=HTML, summary="Undo")
    def undo(token: Token, csrf: Signature) -> Response:
        labeller = who(token)
        come_from_here(csrf, "undo", token)
        return see(f"/l/{token}?why={'undone' if source.undo(labeller) else 'nothing'}")


def _clean(text: str) -> str:
    """What a person typed, without control characters and surrounding blanks."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t").strip()
