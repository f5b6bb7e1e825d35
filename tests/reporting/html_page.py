"""Reads a report as strictly as HTML may be read, and the texts that are packed in it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "br", "input"}
OF_SVG = {"line", "circle", "rect", "polyline"}
"""Written with a slash, or with a title in them."""

CHILDREN = {
    "ul": {"li"},
    "dl": {"dt", "dd"},
    "table": {"thead", "tbody"},
    "thead": {"tr"},
    "tbody": {"tr"},
    "tr": {"th", "td"},
    "select": {"option"},
}
NOT_IN_P = {"p", "div", "ul", "dl", "table", "h1", "h2", "h3", "pre", "blockquote"}
NOT_NESTED = {"a", "button", "label", "form", "h1", "h2", "h3", "p"}


class Page(HTMLParser):
    """The elements and the text of a page; fails when a tag is not closed by its own, or stands where none may."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.widths: list[list[int]] = []
        assert source.startswith("<!doctype html>\n<html lang=")
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self._check(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag, attrs):
        assert tag in OF_SVG
        self._check(tag, attrs)

    def _check(self, tag, attrs):
        names = Counter(name for name, _ in attrs)
        assert max(names.values(), default=1) == 1, f"<{tag}> has an attribute twice"
        parent = self.open[-1] if self.open else None
        assert tag in CHILDREN.get(parent, {tag}), f"<{tag}> in <{parent}>"
        assert not (parent == "p" and tag in NOT_IN_P), f"<{tag}> in <p>"
        assert not (tag in NOT_NESTED and tag in self.open), f"<{tag}> in <{tag}>"
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.widths.append([])
        if tag == "tr":
            self.widths[-1].append(0)
        if tag in {"td", "th"}:
            self.widths[-1][-1] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            assert not (data.strip() and self.open[-1] in CHILDREN), f"text in <{self.open[-1]}>"
            self.texts[self.open[-1]][-1] += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data):
        raise AssertionError(f"an instruction: {data}")

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def pictures(self) -> list[dict[str, str | None]]:
        """The attributes of every chart."""
        return [attributes for _, attributes in self.tags if attributes.get("role") == "img"]

    def attributes(self, name: str) -> list[str | None]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]


def require_valid(source: str) -> Page:
    """A page whose names, links, tables and pictures are in order."""
    page = Page(source)
    ids = Counter(page.attributes("id"))
    assert max(ids.values()) == 1, ids
    for href in page.attributes("href"):
        assert href.startswith("#")
        assert href[1:] in ids, href
    assert [tag for tag, _ in page.tags if tag == "h1"] == ["h1"]
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for widths in page.widths:
        assert len(set(widths)) == 1, "a table has rows of different lengths"
        assert len(widths) > 1, "a table has no rows"
    assert all(attributes.get("scope") == "col" for tag, attributes in page.tags if tag == "th")
    assert all(one["aria-label"] and one["aria-description"] for one in page.pictures())
    assert page.pictures() or not page.count("svg")
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.tags for name in attributes)
    return page


def unpacked(source: str):
    """The texts and words that a page has packed."""
    packed = re.search(r'id="texts">([^<]+)<', source)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))
