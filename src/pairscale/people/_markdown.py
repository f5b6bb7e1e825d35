"""Texts under judgement as HTML that can do nothing: no raw HTML, no links that lead anywhere, no images."""

from __future__ import annotations

from functools import lru_cache

from markdown_it import MarkdownIt
from markupsafe import Markup

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
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))  # noqa: S704 - the renderer escapes all


_OPTIONS = {"html": False, "linkify": False, "breaks": True, "maxNesting": _DEEPEST, "xhtmlOut": False}
_AS_WRITTEN = ["code", "reference", "html_block", "html_inline", "link", "image", "autolink"]
_MARKDOWN = MarkdownIt("commonmark", _OPTIONS).enable(["table", "strikethrough"]).disable(_AS_WRITTEN)
"""Markdown without raw HTML; links and images stay as they are written, so that no address is hidden."""
