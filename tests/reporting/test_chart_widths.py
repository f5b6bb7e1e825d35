"""Charts fill the width that they get, with every dot and name in sight: on phones, tablets, desktops, and on paper."""

from __future__ import annotations

import io
import re

import polars as pl
import pytest
from pypdf import PdfReader
from tests.reporting.chart_places import PLACES, charts_within
from tests.reporting.runs import ab_run, bias_study, ranking_run, samples

import pairscale as ps
from pairscale.people import Case, LabelStore
from pairscale.reporting.verbs import write_report

pytestmark = pytest.mark.slow

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
    ranking_run(folder / "labels.db")
    cases = [Case(f"c{at}", f"t{at}", "clearer", "a task", "one", "two") for at in range(3)]
    with LabelStore(folder / "labels.db", cases, labellers=["ann" * 20, "bob"], labels_per_case=2) as store:
        for person in store.labellers():
            store.answer(person, store.next(person).question_id, "1")
    texts = ps.example_writing_samples
    ps.rank(texts, judge="lexical", run=folder / "adaptive.db", seed=1, fit="laplace", progress="none")
    written = {kind: write_report(folder / f"{kind}.db") for kind in ("ranking", "bias", "ab", "labels", "adaptive")}
    for name, ids in (("long", LONG), ("200 texts", [f"T{at:03}" for at in range(200)])):
        written[name] = write_report(fit_of(ids), folder / f"{name}.html")
    written["900 texts"] = write_report(fit_of([f"T{at:03}" for at in range(900)]), folder / "900.html")
    written["published"] = write_report(ps.published_template_study(), folder / "published.html")
    return {name: path.as_uri() for name, path in written.items()}


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


@pytest.mark.parametrize("width", [390, 1280])
def test_names_are_whole_and_stand_above_where_there_is_no_room_beside(opened, width):
    (chart,) = charts_within(opened("long", width), width)
    shown = {one["shown"] for one in chart["rows"]}
    assert set(LONG[:-1]) <= shown
    assert "x" * 199 + "…" in shown
    for one in chart["rows"]:
        above = one["name"]["bottom"] <= one["dot"]["top"] + 1
        assert above == (width == 390)


def test_many_texts_have_a_row_each_and_the_page_grows(opened):
    for width in (390, 1280):
        (chart,) = charts_within(opened("200 texts", width), width)
        tops = [one["row"]["top"] for one in chart["rows"]]
        assert len(tops) == 200
        assert tops[-1] - tops[0] == pytest.approx(199 * 22, abs=60)


def test_on_paper_every_dot_is_on_the_sheet(opened):
    for name, dots in {"200 texts": 200, "long": len(LONG), "labels": N, "ab": 6, "bias": 3}.items():
        page = opened(name, 680, color_scheme="dark")
        page.emulate_media(media="print")
        charts = charts_within(page, 680)
        assert sum(chart["dots"] for chart in charts) == dots


def test_every_sheet_of_a_long_table_names_its_columns(opened):
    """As the browser prints it: a button in the header of a table would stand on the first sheet alone."""
    sheets = [sheet.extract_text() for sheet in PdfReader(io.BytesIO(opened("200 texts", 1280).pdf())).pages]
    with_rows = [text for text in sheets if len(re.findall(r"[−-]?\d\.\d\d", text)) > 40]
    assert len(with_rows) > 3
    assert all("score" in text and "wins" in text for text in with_rows)


def test_paper_leaves_out_the_beginning_of_texts_where_names_need_the_room(browser, tmp_path):
    texts = ps.example_writing_samples.head(4).select("ID", "text", name="ID", grade=pl.lit(7))
    ps.judge(ps.make_pairs(texts), judge="lexical", run=tmp_path / "r.db", progress=False)
    page = browser.new_page()
    page.goto(write_report(tmp_path / "r.db").as_uri())
    for media, seen in (("screen", True), ("print", False)):
        page.emulate_media(media=media)
        assert page.locator("td.preview").first.is_visible() is seen
        assert page.get_by_text("Left out on paper: text.").is_visible() is not seen
    page.close()


def test_a_command_is_whole_on_a_phone(opened):
    page = opened("bias", 390)
    for block in page.locator("pre").all():
        assert block.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_the_places_are_the_same_in_the_dark(opened):
    light, dark = (charts_within(opened("long", 390, color_scheme=scheme), 390) for scheme in ("light", "dark"))
    assert light == dark
