"""The page of a run in a real browser: every dot and name is in sight on phones and desktops."""

from __future__ import annotations

import pytest
from tests.reporting.chart_places import charts_within

import pairscale as ps
from pairscale.people import Address, serve_run

pytestmark = pytest.mark.slow

LONG = "an-essay-with-a-name-of-more-than-sixty-letters-of-the-class-7b"


@pytest.mark.parametrize(("long", "n"), [(False, 20), (True, 12)])
def test_every_mark_is_in_sight(browser, tmp_path, long, n):
    texts = [{"ID": f"{LONG}-{at}" if long else f"T{at}", "text": "word " * (at + 1)} for at in range(n)]
    run = str(tmp_path / "run.db")
    ps.rank(texts, judge="lexical", run=run, fit="laplace", seed=1, steps=80, progress="none")
    with serve_run(run, address=Address(port=0)) as url:
        for width in (390, 768, 1280):
            context = browser.new_context(viewport={"width": width, "height": 844})
            page = context.new_page()
            page.set_default_timeout(600_000)
            page.goto(url)
            lines, scores = charts_within(page, width)
            assert scores["dots"] == len(scores["rows"]) == n
            assert lines["dots"] >= 2
            dot = page.locator(".picture circle").first
            assert dot.evaluate("node => getComputedStyle(node).fill") != "rgb(0, 0, 0)"  # the style sheet came
            table = page.locator(".wide table").first
            assert table.evaluate("e => e.scrollWidth <= e.parentElement.clientWidth")
            names = "e => [...e.querySelectorAll('tbody td:nth-child(2)')].map(e => e.getBoundingClientRect().height)"
            assert long or max(table.evaluate(names)) < 45  # T11 is one line
            context.close()
