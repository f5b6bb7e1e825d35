"""Reports in a real browser, from the disk: wide and narrow, light and dark, searched, sorted and read."""

from __future__ import annotations

import pytest
from tests.report.runs import (
    A_NAME,
    B_NAME,
    HOSTILE,
    ab_run,
    answer_a,
    answer_b,
    bias_study,
    ranking_run,
    samples,
    suite,
)

from pairscale.report import write_report

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
KINDS = ("ranking", "bias", "ab")


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    ranking_run(folder / "ranking.db")
    bias_study(folder / "bias.db")
    ab_run(folder / "ab.db")
    return {kind: write_report(folder / f"{kind}.db", title=HOSTILE[2]).as_uri() for kind in KINDS}


@pytest.fixture
def visit(browser, reports):
    """Opens a report, and watches for anything that goes wrong or goes out."""
    opened = []

    def start(kind: str, **options):
        context = browser.new_context(**(options or DESKTOP))
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.trouble = []
        page.on("console", lambda message: page.trouble.append(message.text))
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("dialog", lambda dialog: (page.trouble.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: page.trouble.append(request.url))
        page.goto(reports[kind])
        page.locator("#between p").first.wait_for(state="attached")
        opened.append((kind, context, page))
        return page

    yield start
    for kind, context, page in opened:
        assert page.trouble == [reports[kind]], "nothing but the page itself is asked for, and nothing goes wrong"
        context.close()


def colours(page) -> tuple[str, str]:
    return page.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")


def brightness(colour: str) -> int:
    return sum(int(part) for part in colour.strip("rgb()").split(","))


@pytest.mark.parametrize("kind", KINDS)
def test_wide_and_narrow_light_and_dark(visit, kind):
    for size in (DESKTOP, PHONE):
        for scheme in ("light", "dark"):
            page = visit(kind, **size, color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["viewport"]["width"]
            ink, paper = map(brightness, colours(page))
            assert (ink < paper) == (scheme == "light")
            assert page.locator("h1").inner_text() == HOSTILE[2]
            assert page.locator("img, iframe, object, embed, body b:not(.tile b)").count() == 0
            for picture in page.locator("svg").all():
                assert picture.evaluate("node => node.getBBox().width") > 100


@pytest.mark.parametrize(
    ("kind", "word", "found"), [("ranking", "calc", 1), ("bias", "favours the second", 2), ("ab", "odd", 5)]
)
def test_searching(visit, kind, word, found):
    page = visit(kind)
    rows = page.locator("#table tbody tr")
    everything = rows.count()
    page.fill("#search", word.upper())
    assert page.locator("#table tbody tr:visible").count() == found
    assert page.locator("#found").inner_text() == f"{found} found"
    page.fill("#search", "")
    assert page.locator("#table tbody tr:visible").count() == everything


@pytest.mark.parametrize(("kind", "column"), [("ranking", "score"), ("bias", "effect"), ("ab", f"letters, {B_NAME}")])
def test_sorting(visit, kind, column):
    page = visit(kind)
    button = page.get_by_role("button", name=column, exact=True)
    at = button.evaluate("node => node.parentElement.cellIndex")
    read = f"[...document.querySelector('#table tbody').rows].map(row => row.cells[{at}])"
    values = f"{read}.map(cell => cell.dataset.v ?? cell.textContent).map(text => text === '' ? null : Number(text))"
    before = page.evaluate(values)
    known = sorted(value for value in before if value is not None)
    unknown = [None] * before.count(None)  # stays last, whichever way
    button.click()
    assert page.evaluate(values) == known + unknown
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith(column)
    button.click()
    assert page.evaluate(values) == known[::-1] + unknown
    assert len(set(known)) > 2


@pytest.mark.parametrize("kind", ["ranking", "bias"])
def test_two_texts_and_what_was_said_of_them(visit, kind):
    page = visit(kind)
    first, last = samples()[0], samples()[-1]
    page.select_option("#left", label=first["ID"])
    page.select_option("#right", label=last["ID"])
    assert page.locator("#left-text").inner_text() == first["text"]
    assert page.locator("#right-text").inner_text() == last["text"]
    assert (
        page.locator("#between p").first.inner_text()
        == f"{1 if kind == 'ranking' else 8} judgement{'s' * (kind != 'ranking')} between them:"
    )
    assert page.locator("#between blockquote").first.inner_text() == f"It has more to say. {HOSTILE[0]}"
    link = page.locator("[data-two]").first
    named = link.inner_text()
    link.click()
    sides = [page.locator(f"{side} option:checked").inner_text() for side in ("#left", "#right")]
    assert all(name in named for name in sides)


def test_a_case_and_what_was_said_of_it(visit):
    page = visit("ab", **PHONE)
    task = suite().tasks[3]
    page.locator("#table").get_by_role("link", name=task.task_id, exact=True).click()
    assert page.locator("#case option:checked").inner_text() == task.task_id
    assert page.locator("#input-text").inner_text() == task.input
    assert page.locator("#left-text").inner_text() == answer_a(task)
    assert page.locator("#right-text").inner_text() == answer_b(task)
    said = page.locator("#between p").all_inner_texts()
    assert said[0] == f"clearer: {B_NAME} is better"
    assert said[1:3] == [f"{A_NAME} shown first: {B_NAME}", f"{B_NAME} shown first: {B_NAME}"]
    assert page.locator("#between blockquote").first.inner_text() == f"Because of {HOSTILE[2]}"
    assert page.locator("#two").evaluate("node => Math.abs(node.getBoundingClientRect().top) < innerHeight")


def test_by_keyboard_alone(visit):
    page = visit("ab")
    page.locator("#table th button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.locator("#case").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#case option:checked").inner_text() == suite().tasks[1].task_id
    assert page.locator("#left-text").inner_text() == answer_a(suite().tasks[1])


def test_without_scripts_everything_but_reading_is_there(browser, reports):
    for kind in KINDS:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(reports[kind])
        assert page.locator("#table tbody tr").count() > 3
        assert page.locator("noscript p").is_visible()
        assert not page.locator("#search").is_visible()
        context.close()


def test_on_paper_nothing_asks_to_be_clicked(visit):
    page = visit("ab")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("#search").is_visible()
    assert page.locator("#table").is_visible()
