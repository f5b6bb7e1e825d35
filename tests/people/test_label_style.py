"""Contrast of all colours that are used together: at least 4.5, in light and dark (WCAG AA)."""

import re
from itertools import product
from pathlib import Path

import pytest

import pairscale.people

CSS = (Path(pairscale.people.__file__).parent / "static" / "page.css").read_text("utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#\w+)", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
)
TEXT = [*product(("ink", "soft", "mark"), ("page", "pane")), ("mark", "tint"), ("ink", "tint"), ("warn", "warn-tint"),
        ("warn", "pane"), ("ink", "warn-tint"), ("on-mark", "mark")]  # fmt: skip


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(colours):
    assert len(colours) >= 10
    found = {pair: contrast(*(colours[name] for name in pair)) for pair in TEXT}
    assert {pair: figure for pair, figure in found.items() if figure < 4.5} == {}
    for field in product(("field",), ("page", "pane")):  # of borders, WCAG asks for 3
        assert contrast(*(colours[name] for name in field)) >= 3


def test_nothing_is_loaded_from_elsewhere():
    folder = Path(pairscale.people.__file__).parent
    for path in [*(folder / "static").iterdir(), *(folder / "templates").iterdir()]:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|url\(|@import|//\w+\.\w+/", text), path
        assert not re.search(r"\son\w+=|style=|<script>|<style", text), path
