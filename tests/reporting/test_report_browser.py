"""Reports in a real browser, from the disk: wide and narrow, light and dark, searched, sorted and read."""

from __future__ import annotations

import pytest
from tests.reporting.chart_places import PLACES, charts_within
from tests.reporting.runs import (
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

import pairscale as ps
from pairscale.people import Case, LabelStore
from pairscale.reporting.verbs import write_report

pytestmark = pytest.mark.slow

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
KINDS = ("ranking", "bias", "ab")
N_MANY = 320  # more than have a row each
LIVELY = tuple(f"lively {kind}" for kind in (*KINDS, "adaptive"))


N = len(samples())
WIDTHS = (320, 390, 700, 768, 1280)
LONG = [
    *(f"essay_from_the_second_school_of_the_north_class_7b_number_{at:02}" for at in range(6)),
    *(f"مقال رقم {at} عن فوائد القراءة في الصباح والمساء كل يوم من أيام السنة" for at in range(3)),
    *(f"第{at}号作文" + "关于城市公共交通与环境保护之间关系的思考" * 3 for at in range(3)),
    "two words",
    "x" * 300,
]


def fit_of(ids: list[str]) -> ps.BTFit:
    n = len(ids)
    rows = [{"winner": ids[i], "loser": ids[j]} for i in range(n) for j in (i + 1, i + 2, i + 5) if j < n]
    return ps.fit_bt_model([*rows, *({"winner": row["loser"], "loser": row["winner"]} for row in rows[::3])])


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    ranking_run(folder / "ranking.db")
    bias_study(folder / "bias.db")
    ab_run(folder / "ab.db")
    texts = ps.example_writing_samples
    ps.adaptive_rank(texts, judge="lexical", run=folder / "adaptive.db", seed=1, n_steps=80, progress="none")
    written = {kind: ps.report(folder / f"{kind}.db", title=HOSTILE[2]) for kind in KINDS}
    for name in LIVELY:
        run = folder / f"{name.split()[-1]}.db"
        written[name] = ps.report(run, out=folder / f"{name}.html", title=HOSTILE[2], interactive=True)
    chain = [{"winner": f"{HOSTILE[2]} {at}", "loser": f"{HOSTILE[2]} {at + 1}"} for at in range(1, N_MANY)]
    fit = ps.fit_bt_model([*chain, *({"winner": one["loser"], "loser": one["winner"]} for one in chain[::3])])
    many = [{"ID": name, "text": "A text."} for name in fit.theta["ID"]]
    written["lively many"] = write_report(fit, folder / "many.html", many, interactive=True)
    written["adaptive"] = ps.report(folder / "adaptive.db")
    ranking_run(folder / "labels.db")
    cases = [Case(f"c{at}", f"t{at}", "clearer", "a task", "one", "two") for at in range(3)]
    with LabelStore(folder / "labels.db", cases, labellers=["ann" * 20, "bob"], labels_per_case=2) as store:
        for person in store.labellers():
            store.answer(person, store.next(person).question_id, "1")
    written["labels"] = ps.report(folder / "labels.db")
    for n in (200, 900):
        written[f"{n} texts"] = write_report(fit_of([f"T{at:03}" for at in range(n)]), folder / f"{n}.html")
    written["long"] = write_report(fit_of(LONG), folder / "long.html")
    written["published"] = write_report(ps.published_template_study(), folder / "published.html")
    return {name: path.as_uri() for name, path in written.items()}


@pytest.fixture
def visit(browser, reports):
    """Opens a report, and watches for anything that goes wrong or goes out."""
    opened = []

    def start(kind: str, **options):
        context = browser.new_context(**(options or DESKTOP))
        context.set_default_timeout(600_000)
        page = context.new_page()
        page.trouble = []
        page.on("console", lambda message: page.trouble.append(message.text))
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("dialog", lambda dialog: (page.trouble.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: page.trouble.append(request.url))
        page.goto(reports[kind])
        page.locator("#between p").first.wait_for(state="attached")
        page.locator(".chart:not(.drawn)").first.wait_for(state="detached")
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


OUT_OF_SIGHT = """width => [...document.querySelectorAll(".live svg :is(path, text, rect, line)")]
  .filter(node => !node.closest("[class*=background]") && node.getClientRects().length)
  .map(node => [node.outerHTML, node.getBoundingClientRect()])
  .filter(([, box]) => box.width && (box.left < 0 || box.right > width + 1)).map(([html]) => html)"""
"""Marks and names of altair's charts that the screen does not show."""


@pytest.mark.parametrize("kind", [*KINDS, *LIVELY])
def test_wide_and_narrow_light_and_dark(visit, kind):
    for size in (DESKTOP, PHONE):
        for scheme in ("light", "dark"):
            page = visit(kind, **size, color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["viewport"]["width"]
            ink, paper = map(brightness, colours(page))
            assert (ink < paper) == (scheme == "light")
            assert page.locator("h1").inner_text() == HOSTILE[2]
            assert page.locator("img, iframe, object, embed, body b:not(.tile b)").count() == 0
            pictures = page.locator("svg:not(.key):visible")
            assert pictures.count() > 0
            for picture in pictures.all():
                assert picture.evaluate("node => node.getBBox().width") > 100
            out = page.evaluate(OUT_OF_SIGHT, size["viewport"]["width"])
            assert out == []


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


@pytest.mark.parametrize(
    ("kind", "column"), [("ranking", "score"), ("bias", "effect"), ("ab", f"characters, {B_NAME}")]
)
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


# Charts by altair


@pytest.mark.parametrize("kind", LIVELY)
def test_every_chart_is_drawn_in_the_place_of_its_picture(visit, kind):
    page = visit(kind)
    charts = page.locator(".chart")
    assert charts.count() == {"bias": 2, "ab": 4, "ranking": 1, "adaptive": 3}[kind.split()[-1]]
    for chart in charts.all():
        still, live = chart.locator(".picture"), chart.locator(".live svg")
        assert (still.is_visible(), live.is_visible()) == (False, True)
        assert live.get_attribute("role") == "img"
        assert live.get_attribute("aria-label") == still.get_attribute("aria-label")
        assert live.get_attribute("aria-description") == still.get_attribute("aria-description")
    page.emulate_media(media="print")
    for chart in charts.all():
        assert (chart.locator(".picture").is_visible(), chart.locator(".live").is_visible()) == (True, False)


def test_saved_charts_need_no_eval_either(browser, tmp_path):
    fit = ps.fit_bt_model([{"winner": a, "loser": b} for a, b in ("ab", "bc", "ca", "ad", "da")])
    for kind in ("scores", "ranks"):
        path = tmp_path / "chart.html"
        fit.plot(path, kind=kind)
        assert "unsafe-eval" not in path.read_text("utf-8")
        page, trouble = browser.new_page(), []
        page.on("console", lambda message, trouble=trouble: trouble.append(message.text))
        page.on("pageerror", lambda error, trouble=trouble: trouble.append(str(error)))
        page.goto(path.as_uri())
        page.locator("#chart svg.marks").wait_for()
        assert page.locator("#chart svg.marks path").count() > 4
        assert trouble == []
        page.close()


CUT = """[...document.querySelectorAll("body *")].filter(one => one.getClientRects().length
  && getComputedStyle(one).overflow !== "visible"
  && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)).map(one => one.outerHTML)"""
A4 = {"width": 680, "height": 1009}  # what 15 mm of margin leave, in pixels


@pytest.mark.parametrize("kind", [*KINDS, "lively ranking", "lively adaptive"])
def test_on_paper_nothing_is_dark_cut_or_hidden(visit, kind, tmp_path):
    page = visit(kind, viewport=A4, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    colours = "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
    assert page.locator("body").evaluate(colours) == ["rgb(255, 255, 255)", "rgb(28, 36, 48)"]
    assert page.evaluate("document.documentElement.scrollWidth") <= A4["width"]
    assert page.evaluate(CUT) == []
    charts = page.evaluate(
        """[...document.querySelectorAll("svg")].map(one => one.getBoundingClientRect()).filter(one => one.height)
        .map(one => [one.left, one.right, one.height])"""
    )
    assert charts
    assert all(left >= 0 and right <= A4["width"] and height <= A4["height"] for left, right, height in charts)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[data-shut]").count() == 0
    assert not page.locator("nav, #search, #two").filter(visible=True).count()
    written = page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    assert written.startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_board_of_variants_and_a_judge_card_never_scroll_sideways(browser, tmp_path, scheme):
    names = ("a rather long name of a variant", "retrieval", "<b>bold</b>", "short")
    variants = {name: lambda task, n=at: task.input * (1 + n) for at, name in enumerate(names)}
    judge = ps.FunctionJudge(lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}, name="longer")
    compared = [ps.pairwise_judge(judge, criterion="says more", key="says more")]
    board = ps.run_variants(suite(), variants, comparators=compared, progress=False).report(tmp_path / "v.html")
    said = [{"ID1": "S01", "ID2": "S02", "better_id": "S02"}, {"ID1": "S03", "ID2": "S04", "better_id": "S03"}]
    card = ps.check_judge(ps.example_writing_samples, "lexical", labels=said, progress=False).card
    for path in (board, card.report(tmp_path / "card.html")):
        for width in (390, 1280):
            context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
            context.set_default_timeout(600_000)
            page = context.new_page()
            page.goto(path.as_uri())
            wider = "one => one.scrollWidth - one.clientWidth"
            over = [page.evaluate(f"({wider})(document.documentElement)")]
            over += [one.evaluate(wider) for one in page.query_selector_all(".picture")]
            assert max(over) <= 0, (path.name, width, over)
            context.close()


# Charts fill the width that they get, with every dot and name in sight


@pytest.fixture
def opened(browser, reports):
    contexts = []

    def start(name: str, width: int, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 844}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(600_000)
        page.goto(reports[name])
        return page

    yield start
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", ["ranking", "adaptive"])
def test_no_table_of_a_ranking_is_wider_than_a_phone(opened, name):
    page = opened(name, 390)
    over = (
        "all => all.filter(one => one.offsetParent && one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
    )
    assert page.eval_on_selector_all(".wide", over) == []
    assert page.is_visible("text=Left out on a narrow screen")
    assert opened(name, 1280).is_hidden("text=Left out on a narrow screen")


DOTS = {
    "ranking": [N],
    "labels": [N],
    "adaptive": [20, None, None],
    "long": [len(LONG)],
    "200 texts": [200],
    "900 texts": [900],
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "name", ["ranking", "bias", "ab", "labels", "adaptive", "long", "200 texts", "900 texts", "published"]
)
def test_every_mark_and_name_is_in_sight(opened, name, width):
    phone = {"has_touch": True, "is_mobile": True} if width < 500 else {}
    charts = charts_within(opened(name, width, **phone), width)
    assert charts
    for chart, dots in zip(charts, DOTS.get(name, [None] * len(charts)), strict=True):
        assert dots is None or chart["dots"] == dots
        wide = 0.8 * min(width, 400 if chart["label"].startswith("Stated") else 992)  # a diagram is about square
        assert max(mark["right"] for mark in chart["marks"]) > wide  # and it fills the width


@pytest.mark.parametrize("width", WIDTHS)
def test_a_notebook_shows_it_in_the_width_of_the_cell(browser, width):
    fit = fit_of([f"T{at:02}" for at in range(12)])
    cell = f"<body style='margin: 0'><div style='width: {width}px'>{fit._repr_html_()}</div></body>"
    context = browser.new_context(viewport={"width": max(width, 800), "height": 844})
    page = context.new_page()
    page.set_content(cell)
    (chart,) = page.evaluate(PLACES)
    assert chart["astray"] == 0
    assert chart["dots"] == len(chart["rows"]) == 12
    assert all(0 <= mark["left"] and mark["right"] <= width for mark in chart["marks"])
    context.close()
