"""The owner's page: progress, links, agreement, warnings and downloads."""

from __future__ import annotations

import hmac
from typing import Annotated, Any

from fastapi import FastAPI, Form, HTTPException, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from pairscale.core.formulas import guarded_frame
from pairscale.people._guard import is_signed, signature
from pairscale.people._pages import HTML, Signature, Token, page, see
from pairscale.people.overview import FAST_LETTERS, Overview, label_table, overview
from pairscale.people.source import StoredLabelSource

_FILE: dict[int | str, dict[str, Any]] = {404: HTML[404], 422: HTML[422]}


def add_owner(app: FastAPI, source: StoredLabelSource) -> None:
    """Give an application the pages of the owner."""
    store = source.store
    seen: dict[tuple[int, ...], Overview] = {}  # the last one: with many labellers, agreement takes seconds

    def look() -> Overview:
        state = store.state()
        view = seen.get(state)
        if view is None:
            view = overview(store, source.cases)
            seen.clear()
            seen[state] = view
        return view

    def check(token: str) -> None:
        if not hmac.compare_digest(token.encode("utf-8", "replace"), store.owner_token.encode()):
            raise HTTPException(404, "This link is not known here.")

    def download(content: str, kind: str, ending: str) -> Response:
        named = {"content-disposition": f'attachment; filename="labels.{ending}"'}
        return Response(content, headers=named, media_type=kind)

    @app.get("/owner/{token}", response_class=HTMLResponse, responses=HTML, summary="How far it is")
    def show(token: Token) -> Response:
        check(token)
        values = {"view": look(), "store": store, "fast": FAST_LETTERS, "token": token}
        return page("owner.html", values | {"csrf": signature(store.secret, "labellers", token)})

    @app.post(
        "/owner/{token}/labellers", response_class=RedirectResponse, status_code=303, responses=HTML,
        summary="Another labeller",
    )  # fmt: skip
    def add(token: Token, name: Annotated[str, Form(max_length=200)], csrf: Signature) -> Response:
        check(token)
        if not is_signed(csrf, store.secret, "labellers", token):
            raise HTTPException(403, "This form is not one of this page. Please open your link again.")
        store.add_labeller(name)
        return see(f"/owner/{token}")

    @app.get("/owner/{token}/labels.jsonl", response_class=Response, responses=_FILE, summary="The labels")
    def jsonl(token: Token) -> Response:
        check(token)
        return download(label_table(store).write_ndjson(), "application/x-ndjson", "jsonl")

    @app.get("/owner/{token}/labels.csv", response_class=Response, responses=_FILE, summary="The labels")
    def csv(token: Token) -> Response:
        check(token)
        return download(guarded_frame(label_table(store)).write_csv(), "text/csv; charset=utf-8", "csv")

    @app.get("/owner/{token}/openapi.json", responses=_FILE, summary="This description")
    def description(token: Token) -> dict[str, Any]:
        check(token)
        return app.openapi()
