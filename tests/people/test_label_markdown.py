"""Texts as HTML that can do nothing, and that hides nothing."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pairscale.people._markdown import shown

TAGS = set("p br em strong s code pre h3 h4 h5 h6 ul ol li blockquote hr table thead tbody tr td th span div".split())


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def read(text: str, **options) -> Reader:
    reader = Reader()
    reader.feed(str(shown(text, **options)))
    reader.close()
    return reader


PIECES = [*"ab<>&\"'`*_[]()!#|-~\\/:=\n\t 1.", "script", "javascript:", "http://x", "onload="]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
@example("<svg/onload=alert(1)>")
@example("[a]: javascript:alert(1)\n\n[a]")
@example("<http://a.b/'onclick='x>")
def test_only_harmless_tags_and_attributes(text):
    for plain in (False, True):
        found = read(text, plain=plain)
        assert set(found.tags) <= TAGS
        assert {name for name, _ in found.attributes} <= {"class", "start"}


@pytest.mark.parametrize("depth", [3, 8, 9, 17, 18, 19, 20, 21, 40])
@pytest.mark.parametrize("mark", [">", "- ", "> - ", "1. "])
def test_nothing_is_hidden_however_deep_it_lies(mark, depth):
    assert "secret" in read(mark * depth + "secret").text
    steps = "".join("  " * at + "- a\n" for at in range(depth))
    assert "secret" in read(f"{steps}{'  ' * depth}- secret").text


def test_what_is_shown():
    assert shown("one\ntwo") == "<p>one<br>\ntwo</p>\n"
    assert shown("\tindented, no code") == "<p>indented, no code</p>\n"
    assert shown("```python\nif a < b:\n    pass\n```") == (
        '<pre><code class="language-python">if a &lt; b:\n    pass\n</code></pre>\n'
    )
    assert "(https://e.x/a)" in shown("[the docs](https://e.x/a)")
    assert shown("<https://e.x>") == "<p>&lt;https://e.x&gt;</p>\n"
    assert shown("![cat](c.png)") == "<p>![cat](c.png)</p>\n"  # as it is written: no address is hidden
    assert "<td>1</td>" in shown("|a|\n|:-:|\n|1|")
    assert "style" not in shown("|a|\n|:-:|\n|1|")
    assert shown(" \n") == '<p class="empty">(empty)</p>'
    assert shown("<b>*x*</b>", plain=True) == '<div class="plain">&lt;b&gt;*x*&lt;/b&gt;</div>'
    assert read("*" * 70_000).text == "*" * 70_000  # too long for Markdown
