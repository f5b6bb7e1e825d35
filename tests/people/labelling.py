"""Cases to label, a labeller that talks HTTP, and what a page holds."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import httpx

from pairscale.evaluate.manifest import MANIFEST
from pairscale.people import Case

get = partial(httpx.get, timeout=600)  # nothing here depends on how fast the machine is


def make_cases(n: int, criterion: str = "clearer", text: str = "Words of text {}, version {}.") -> list[Case]:
    """Cases whose texts say where they stand in the manifest: one and two."""
    return [
        Case(
            f"task-{i}::{criterion}",
            f"task-{i}",
            criterion,
            f"Question {i}?",
            text.format(i, "one"),
            text.format(i, "two"),
        )
        for i in range(n)
    ]


def write_manifest(path: Path, cases: Sequence[Case], **more: object) -> Path:
    """The cases as a manifest in the single-file form, key and all."""
    rows = [{name: getattr(case, name) for name in MANIFEST} | {"first_variant": "b"} | more for case in cases]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


class _Form(HTMLParser):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.form, self.inside, self.action, self.fields = form, False, "", {}

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "form":
            self.inside = given.get("id") == self.form
            self.action = given["action"] if self.inside else self.action
        elif tag == "input" and self.inside and given.get("type") == "hidden":
            self.fields[given["name"]] = given["value"]

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "form"


def form_of(page: str, form: str) -> tuple[str, dict[str, str]]:
    """Where a form goes, and its hidden fields."""
    found = _Form(form)
    found.feed(page)
    return found.action, found.fields


def sides(page: str) -> list[str]:
    """Which version stands left and right, of the texts of :func:`make_cases`."""
    return re.findall(r"version (one|two)\.", page)


class Visitor:
    """A labeller without a browser: opens the link, sends the forms."""

    def __init__(self, link: str) -> None:
        self.link = link
        self.http = httpx.Client(base_url=link.partition("/l/")[0], follow_redirects=True, timeout=600)
        self.page = ""

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *_exc):
        self.http.close()

    def open(self) -> str:
        reply = self.http.get(self.link)
        assert reply.status_code == 200
        self.page = reply.text
        return self.page

    @property
    def has_question(self) -> bool:
        return 'id="answer"' in self.page

    def send(self, form: str = "answer", **fields: str) -> httpx.Response:
        action, hidden = form_of(self.page, form)
        reply = self.http.post(action, data=hidden | fields)
        if reply.status_code == 200:
            self.page = reply.text
        return reply

    def choose_version(self, version: str) -> None:
        """Choose by content, wherever it stands."""
        self.send(choice=str(1 + sides(self.page).index(version)))
