"""The labelling page: what a labeller and the owner see, and what a click does."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Literal

from fastapi import FastAPI, Form, HTTPException, Response
from starlette.staticfiles import StaticFiles

from pairscale._version import __version__
from pairscale.core.errors import PairscaleError
from pairscale.core.formulas import guarded_frame
from pairscale.core.notices import notice
from pairscale.core.options import FilePath
from pairscale.people._guard import Guard, is_signed, signature
from pairscale.people._markdown import shown
from pairscale.people._pages import STATIC, Signature, Token, add_errors, page, problem, see
from pairscale.people.overview import FAST_LETTERS, Overview, label_table, overview, run_overview
from pairscale.people.queue import Labeller, LabelQuestion, LabelStore, LiveQuestions
from pairscale.store.runfile import open_run

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
    source: LabelStore, *, instructions: str = "", plain: bool = False, hosts: Iterable[str] = ()
) -> FastAPI:
    """The labelling page as an ASGI application.

    Args:
        source: where questions come from and answers go to; all but the questions of a run have an owner's page, too.
        instructions: for labellers, in Markdown.
        plain: show texts as they are written, not as Markdown.
        hosts: names that it is served under, besides ``localhost`` and addresses in numbers.
    """
    app = FastAPI(title="pairscale labelling", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, hosts=tuple(hosts))
    add_errors(app, _HEADING, _not_saved)
    _add_labelling(app, source, instructions, plain)
    if not isinstance(source, LiveQuestions):
        _add_owner(app, source)
        _add_people(app, source)
    elif source.asking is not None:
        _add_run_owner(app, source, source.asking)
        _add_people(app, source)
    return app


def _not_saved(error: PairscaleError) -> str:
    notice(f"an answer could not be saved: {error}")
    return "It could not be saved. Please tell the owner of this study, and try again later."


# Labelling


def _add_labelling(app: FastAPI, source: LabelStore, instructions: str, plain: bool) -> None:
    @app.get("/")
    def without_link() -> Response:
        return problem(_HEADING, "To label, open the link that you were given. It is yours alone.")

    text = partial(shown, plain=plain)
    guide = shown(instructions) if instructions.strip() else ""

    def who(token: str) -> Labeller:
        labeller = source.labeller_of(token)
        if labeller is None:
            raise HTTPException(404, "This link is not known here. Please ask for a new one.")
        return labeller

    @app.get("/l/{token}")
    def ask(token: Token, why: str = "") -> Response:
        labeller = who(token)
        turn = source.next(labeller)
        progress = source.progress(labeller)
        common = {
            "labeller": labeller, "progress": progress, "notice": _NOTICES.get(why, ""), "undoes": source.undoes,
            "undo_csrf": signature(source.secret, "undo", token), "guide": guide, "recent": source.recent(labeller),
        }  # fmt: skip
        if isinstance(turn, LabelQuestion):
            csrf = signature(source.secret, "answer", token, turn.question_id)
            asked = {"question": turn, "ties": source.ties, "reasons": SKIP_REASONS, "text": text, "csrf": csrf}
            return page("label.html", common | asked)
        if turn == "paused":
            return page("paused.html", common)
        if turn == "waiting":
            return page("waiting.html", common, headers={"refresh": str(_WAIT_SECONDS[source.undoes])})
        return page("done.html", common)

    @app.post("/l/{token}/answer")
    def answer(
        token: Token,
        question: Annotated[int, Form(ge=1, le=2**53)],
        choice: Annotated[Literal["1", "2", "tie", "skip"], Form()],
        csrf: Signature,
        comment: Annotated[str, Form(max_length=5000)] = "",
        reason: Annotated[str, Form(max_length=200)] = "",
        other_reason: Annotated[str, Form(max_length=1000)] = "",
        elapsed: Annotated[str, Form(max_length=20)] = "",
    ) -> Response:
        labeller = who(token)
        _require_signed(csrf, source.secret, "answer", token, question)
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

    @app.post("/l/{token}/undo")
    def undo(token: Token, csrf: Signature, question: Annotated[int | None, Form(ge=1, le=2**53)] = None) -> Response:
        labeller = who(token)
        _require_signed(csrf, source.secret, "undo", token)
        return see(f"/l/{token}?why={'undone' if source.undo(labeller, question) else 'nothing'}")


def _require_signed(csrf: str, secret: str, *parts: object) -> None:
    if not is_signed(csrf, secret, *parts):
        raise HTTPException(403, "This form is not one of this page. Please open your link again.")


def _clean(text: str) -> str:
    """What a person typed, without control characters and surrounding blanks."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t").strip()


# The owner's page


def _add_owner(app: FastAPI, store: LabelStore) -> None:
    """Progress, links, agreement, warnings and downloads."""
    seen: dict[tuple[int, ...], Overview] = {}  # the last overview: with many labellers, agreement takes seconds

    def look() -> Overview:
        state = store.state()
        if state not in seen:
            view = overview(store)
            seen.clear()
            seen[state] = view
        return seen[state]

    @app.get("/owner/{token}")
    def show(token: Token) -> Response:
        _check_owner(store, token)
        values = {"view": look(), "store": store, "fast": FAST_LETTERS, "token": token}
        return page("owner.html", values | {"csrf": signature(store.secret, "labellers", token)})

    @app.post("/owner/{token}/labellers")
    def add(token: Token, name: Annotated[str, Form(max_length=200)], csrf: Signature) -> Response:
        _check_owner(store, token)
        _require_signed(csrf, store.secret, "labellers", token)
        store.add_labeller(name)
        return see(f"/owner/{token}")

    @app.post("/owner/{token}/withdraw")
    def withdraw(token: Token, labeller: Annotated[int, Form()], csrf: Signature) -> Response:
        store.withdraw(_labeller_of_owner(store, token, csrf, labeller))
        return see(f"/owner/{token}")

    @app.get("/owner/{token}/labels.{ending}")
    def download(token: Token, ending: Literal["csv", "jsonl"]) -> Response:
        _check_owner(store, token)
        table = label_table(store)
        content = guarded_frame(table).write_csv() if ending == "csv" else table.write_ndjson()
        kind = "text/csv; charset=utf-8" if ending == "csv" else "application/x-ndjson"
        headers = {"content-disposition": f'attachment; filename="labels.{ending}"'}
        return Response(content, headers=headers, media_type=kind)


def _add_run_owner(app: FastAPI, questions: LiveQuestions, run: FilePath) -> None:
    """Who has judged how many for a run, how fast, and how well they agree with its scale."""

    @app.get("/owner/{token}")
    def show(token: Token) -> Response:
        _check_owner(questions, token)
        with open_run(run) as store:
            view = run_overview(questions, store)
        csrf = signature(questions.secret, "labellers", token)
        return page("run_owner.html", {"view": view, "token": token, "csrf": csrf})


def _add_people(app: FastAPI, store: LabelStore) -> None:
    """Pause people, on the page of the owner."""

    @app.post("/owner/{token}/pause")
    def pause(
        token: Token, labeller: Annotated[int, Form()], paused: Annotated[bool, Form()], csrf: Signature
    ) -> Response:
        store.pause(_labeller_of_owner(store, token, csrf, labeller), paused)
        return see(f"/owner/{token}")


def _check_owner(store: LabelStore, token: str) -> None:
    if not hmac.compare_digest(token.encode("utf-8", "replace"), store.owner_token.encode()):
        raise HTTPException(404, "This link is not known here.")


def _labeller_of_owner(store: LabelStore, token: str, csrf: str, number: int) -> Labeller:
    """The labeller of a number, where the form comes from the owner's page."""
    _check_owner(store, token)
    _require_signed(csrf, store.secret, "labellers", token)
    for labeller in store.labellers():
        if labeller.labeller_id == number:
            return labeller
    raise HTTPException(404, "There is no such labeller.")
