"""Charts fill the width that they get, with every dot and name in sight: on phones, tablets, desktops, and on paper."""

from __future__ import annotations

import pytest
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
    written = {kind: ps.report(folder / f"{kind}.db") for kind in ("ranking", "bias", "ab", "labels", "adaptive")}
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
