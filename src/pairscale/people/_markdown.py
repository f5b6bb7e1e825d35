"""Texts under judgement as HTML that can do nothing: no raw HTML, no links that lead anywhere, no images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it.token import Token

_LONGEST = 60_000  # letters; longer texts are shown as they are written
_DEEPEST = 20


@lru_cache(maxsize=128)
def shown(text: str, plain: bool = False) -> Markup:
    """A text as safe HTML.

    Args:
        text: plain or Markdown. Line ends stay line ends, and an indented line is a line, not code.
        plain: show it exactly as it is written.
    """
    if not text.strip():
        return Markup('<p class="empty">(empty)</p>')
    tokens = [] if plain or len(text) > _LONGEST else _MARKDOWN.parse(text)
    # Beyond the deepest nesting the parser drops what is there; nothing may be hidden from a judge.
    if not tokens or max(token.level for token in tokens) >= _DEEPEST - 1:
        return Markup('<div class="plain">{}</div>').format(text)
    for token in tokens:
        token.attrs.pop("style", None)  # the alignment of a column, which the page's policy would refuse
        if token.type in {"heading_open", "heading_close"}:  # below those of the page, whose first and second there are
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))  # noqa: S704 - the rules below escape all


def _opened(*_all: Any) -> str:
    return '<span class="link">'


def _closed(tokens: Sequence[Token], at: int, *_rest: Any) -> str:
    """The end of a link, with its address where the text does not say it."""
    depth = 0
    start = at
    while True:
        depth += (tokens[start].type == "link_close") - (tokens[start].type == "link_open")
        if depth == 0:
            break
        start -= 1
    address = str(tokens[start].attrGet("href") or "")
    inside = "".join(token.content for token in tokens[start:at])
    if address in {inside, f"mailto:{inside}"}:
        return "</span>"
    return f'</span><span class="url"> ({escape(address)})</span>'


def _image(tokens: Sequence[Token], at: int, *_rest: Any) -> str:
    return f'<span class="url">[image: {escape(tokens[at].content)} ({escape(tokens[at].attrGet("src") or "")})]</span>'


def _renderer() -> MarkdownIt:
    options = {"html": False, "linkify": False, "breaks": True, "maxNesting": _DEEPEST, "xhtmlOut": False}
    markdown = MarkdownIt("commonmark", options)
    markdown.enable(["table", "strikethrough"]).disable(["code", "reference", "html_block", "html_inline"])
    renderer: Any = markdown.renderer
    renderer.rules.update(link_open=_opened, link_close=_closed, image=_image)
    return markdown


_MARKDOWN = _renderer()
