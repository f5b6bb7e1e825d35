"""Results in notebooks, pandas and charts: all of them, with ids that want to be something else."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import pairscale as ps
from pairscale.core.display import PlotMixin, ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.provenance import Provenance
from pairscale.core.tables import RESULTS
from pairscale.models.bayes import logs
from pairscale.reporting.svg import picture_css

for _module in pkgutil.walk_packages(ps.__path__, "pairscale."):
    if not _module.name.endswith("__main__"):
        import_module(_module.name)

N = 14
IDS = [f'<img src=x onerror="alert({at})">\x1b[31m[red]{at:02d}' for at in range(N)]


# One of each, of hostile ids


def comparisons() -> pl.DataFrame:
    """Everybody meets everybody; the earlier wins, but for neighbours."""
    rows = [
        {"ID1": IDS[i], "ID2": IDS[j], "better_id": IDS[i] if j - i > 1 or (i + j) % 3 else IDS[j], "judge_id": who}
        for i in range(N)
        for j in range(i + 1, N)
        for who in ("ann <b>", "bob")
    ]
    return pl.DataFrame(rows)


def samples() -> pl.DataFrame:
    return pl.DataFrame({"ID": IDS, "text": [f"<script>{'word ' * (at + 1)}" for at in range(N)]})


def longer(A: dict[str, Any], B: dict[str, Any]) -> dict[str, Any]:
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


def cases(key: str = "k<i>", letters: str = "bbbaattbbbbbfxe") -> tuple[ps.PairwiseCase, ...]:
    kinds: dict[str, Any] = {"a": ("a", "win"), "b": ("b", "win"), "t": ("tie", "tie")}
    rest: dict[str, Any] = {"f": (None, "flip"), "x": (None, "abstention"), "e": (None, "error")}
    return tuple(
        ps.PairwiseCase(f"<u>{at}", key, winner, "<b>because</b>", {}, ps.Outcome(kind), tags=("<a>", "b"))
        for at, (winner, kind) in enumerate((kinds | rest)[letter] for letter in letters)
    )


def ab_run() -> ps.PairwiseRunResult:
    return ps.PairwiseRunResult("run", cases(), ("k<i>",), "<A>", "<B>")


def variants() -> ps.VariantsResult:
    judge = ps.pairwise_judge(longer, criterion="says more", key="longer")
    given = {f"<b>{n}": lambda task, n=n: task.input * n for n in (1, 2, 3)}
    return ps.run_variants(ps.Suite.from_list("abcdef"), given, comparators=[judge], progress=False)


def adaptive() -> ps.AdaptiveResult:
    return ps.adaptive_rank(samples(), judge=longer, n_steps=30, progress="none", fit_fn="laplace")


def status() -> ps.RunStatus:
    counts = dict.fromkeys(("items", "pairs", "attempts"), 3)
    spending, conditions = pl.DataFrame({"cost": [0.5]}), pl.DataFrame({"judge_id": IDS})
    none = pl.DataFrame()
    return ps.RunStatus("run.db", counts, {}, None, None, conditions, spending, None, none, 0, 0)


def bayes() -> ps.BayesFit:
    mcmc = {"chains": 2, "iter_warmup": 40, "iter_sampling": 40, "extend": 1}
    return ps.fit_bayes_btl_mcmc(comparisons(), model_variant="btl", mcmc=mcmc, seed=1)


def bt_fit() -> ps.BTFit:
    return ps.fit_bt_model(comparisons(), rank_intervals=True, covariance=True)


def orders() -> list[pl.DataFrame]:
    main = comparisons().filter(pl.col("judge_id") == "bob").drop("judge_id")
    return [main, main.select(ID1="ID2", ID2="ID1", better_id="ID2")]


def consistency() -> ps.ReverseConsistency:
    return ps.compute_reverse_consistency(*orders())


def bias() -> ps.PositionalBias:
    return ps.bias(*orders())


def answered() -> pl.DataFrame:
    rows = [{"ID1": a, "ID2": b, "better_id": a, "content": "<script>" * 900} for a, b in pairwise(IDS)]
    return pl.DataFrame(rows, schema={**RESULTS})


def labels() -> ps.Labels:
    rows = [{"case_id": name, "task_id": name, "preferred": "1"} for name in IDS]
    return ps.Labels(pl.DataFrame(rows), pl.DataFrame({"line": [1]}), tuple(IDS))


def study() -> ps.TemplateStudy:
    pairs = ps.make_pairs(samples().with_columns(theta_true=pl.int_range(N).cast(pl.Float64)))
    return ps.template_study(
        pairs, templates=["weigh", "concise"], judge={"<b>j": lambda _: ps.SimulatedJudge("theta_true")}, progress=False
    )


MADE: dict[type[ReprMixin], Callable[[], Any]] = {
    ps.AdaptiveResult: adaptive,
    ps.BTFit: bt_fit,
    ps.BatchResult: lambda: ps.BatchResult("openai", None, None, None, {}, answered(), pl.DataFrame(), Path("run.db")),
    ps.BayesFit: bayes,
    ps.EloFit: lambda: ps.fit_elo_model(comparisons(), seed=1),
    ps.JudgeCard: lambda: made(ps.JudgeCheck).card,
    ps.JudgeCheck: lambda: ps.check_judge(samples(), longer, n_pairs=10, progress=False),
    ps.Labels: labels,
    ps.MultiBatch: lambda: ps.MultiBatch([], pl.DataFrame({"provider": IDS}), Path("run.db"), Path()),
    ps.PairSummary: lambda: ps.summarize_pairs(comparisons()),
    ps.PairwiseRunResult: ab_run,
    ps.PositionalBias: bias,
    ps.RPositionalBias: lambda: ps.check_positional_bias(made(ps.ReverseConsistency), seed=1),
    ps.ReverseConsistency: consistency,
    ps.RunStatus: status,
    ps.SubmitResult: lambda: ps.submit_pairs(ps.make_pairs(samples()), longer, progress=False),
    ps.TemplateStudy: study,
    ps.VariantsResult: variants,
}

MAIN: dict[type[ReprMixin], Callable[[Any], pl.DataFrame]] = {
    ps.AdaptiveResult: lambda result: result.items,
    ps.BTFit: lambda result: result.theta,
    ps.BatchResult: lambda result: result.results,
    ps.BayesFit: logs.summarize_items,
    ps.EloFit: lambda result: result.elo,
    ps.JudgeCard: lambda result: result.table,
    ps.Labels: lambda result: result.table,
    ps.MultiBatch: lambda result: result.registry,
    ps.PairSummary: lambda result: result.degrees,
    ps.PairwiseRunResult: lambda result: result.frame(),
    ps.PositionalBias: lambda result: result.summary,
    ps.ReverseConsistency: lambda result: result.details,
    ps.RunStatus: lambda result: result.conditions,
    ps.SubmitResult: lambda result: result.results,
    ps.TemplateStudy: lambda result: result.table,
    ps.VariantsResult: lambda result: result.ranking(),
}
"""The main table of each; the others have single figures, or make one."""

KINDS = sorted(MADE, key=lambda kind: kind.__name__)
CHARTS = [(kind, chart) for kind in KINDS if issubclass(kind, PlotMixin) for chart in kind._charts]


@cache
def made(kind: type[ReprMixin]) -> Any:
    return MADE[kind]()


def named(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


# Every result is there

GIVEN_OR_DOING = """
AdaptiveConfig BTLConfig Condition Judge LLMJudge Trait JudgeComparator HumanComparator LabelComparator
InMemoryTraceSource RunFile AdaptiveBothOrders AdaptiveLLMJudge Provenance
""".split()
"""What public functions return that is no result: settings, judges, comparators, sources, the run file itself."""

RECORDS = """
Bounds Comparisons FileRead VariantFigures PairwiseCase PairwiseOutcome Unmatched Verdict Trace TraceRef JudgePair Task
""".split()
"""One case, one answer: rows of results."""


def returned(function: Any) -> list[type]:
    """The classes of pairscale that a function says it returns."""
    words = re.findall(r"\w+", str(inspect.signature(function).return_annotation))
    found = [vars(module).get(word) for word in words for module in ours()]
    return [kind for kind in dict.fromkeys(found) if inspect.isclass(kind) and kind.__module__.startswith("pairscale")]


def ours() -> list[Any]:
    return [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "pairscale"]


def methods(kind: type) -> list[Any]:
    members = [getattr(value, "fget", value) for name, value in vars(kind).items() if not name.startswith("_")]
    return [getattr(member, "__func__", member) for member in members if callable(getattr(member, "__func__", member))]


@pytest.mark.slow
def test_every_result_of_a_public_function_shows_itself() -> None:
    public = [getattr(ps, name) for name in sorted({*ps.__all__, *ps.r.__all__, *ps.ag2.__all__, *ps.results.__all__})]
    waiting = [kind for function in public if inspect.isfunction(function) for kind in returned(function)]
    waiting += [kind for kind in public if inspect.isclass(kind) and kind.__name__.endswith(("Result", "Fit", "Study"))]
    seen: set[type] = set()
    while waiting:
        kind = waiting.pop()
        if kind in seen or kind.__name__ in {*GIVEN_OR_DOING, *RECORDS}:
            continue
        seen.add(kind)
        assert issubclass(kind, ReprMixin), f"{kind.__name__} is a result; let it show itself (pairscale.core.display)"
        waiting += [other for method in methods(kind) if inspect.isfunction(method) for other in returned(method)]
    assert len(seen) > 25


# What is shown


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_the_repr_is_short(kind: type[ReprMixin]) -> None:
    said = repr(made(kind))
    assert len(said) < 1_000
    assert said.count("\n") < 10
    assert "shape:" not in said, "a whole table"
    assert "array(" not in said
    assert "object at 0x" not in said
    assert f"{kind.__name__}(" not in said, "every field of a dataclass"


CHARTED = [ps.BTFit, ps.EloFit, ps.BayesFit, ps.AdaptiveResult, ps.PairwiseRunResult, ps.VariantsResult]
OF_TABLES = {"div", "p", "strong", "br", "table", "thead", "tbody", "tr", "th", "td", "style", "small"}
OF_CHARTS = {"div", "p", "span", "svg", "g", "line", "circle", "text", "title", "rect"}
PLACED = "x y x1 x2 y1 y2 cx cy r dy height stroke-width".split()
SAFE = {
    "class": r"[a-z -]+",
    "border": "1",
    "text-anchor": "middle|end",
    "dir": "auto",
    **dict.fromkeys(("fill", "stroke"), r"var\(--[a-z-]+\)"),
    "role": "img",
    **dict.fromkeys(("title", "aria-label", "aria-description"), "[^\x00-\x1f]+"),
    **dict.fromkeys(PLACED, r"-?[\d.]+%?"),
}


class _Strict(HTMLParser):
    """Takes a handful of harmless elements, each of them closed, with harmless attributes.

    Attributes:
        text: what is read outside of the chart.
        chart: what is read in it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.chart: list[str] = []
        self.counts: dict[str, int] = {}
        self.chart_at: int | None = None  # how many elements are open around the chart that it is in

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("role", "img") in attrs:
            self.chart_at = len(self.open)
        assert tag in (OF_TABLES if self.chart_at is None else OF_CHARTS), tag
        assert all(re.fullmatch(SAFE[name], value or "") for name, value in attrs), attrs
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if len(self.open) == self.chart_at:
            self.chart_at = None

    def handle_data(self, data: str) -> None:
        if self.open[-1] == "style":
            assert picture_css(in_cell=True) in data or ".dataframe > " in data
            assert not re.search("https?:|@import|url[(]|script", data)
        elif data.strip():
            (self.text if self.chart_at is None else self.chart).append(data)


def parsed(result: Any) -> _Strict:
    page = _Strict()
    page.feed(result._repr_html_())
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_a_notebook_shows_text_and_nothing_else(kind: type[ReprMixin]) -> None:
    page = parsed(made(kind))
    words = "".join(page.text)
    assert words.isprintable()
    assert len(words) < 12_000
    assert page.counts.get("tr", 0) <= 21  # ten rows or twenty figures, and a head
    assert "".join(page.chart).isprintable()
    assert bool(page.chart) == (page.counts.get("circle", 0) > 0) == (kind in CHARTED)
    assert words.startswith(repr(made(kind)).split("\n")[0].removeprefix("<")[:20])


SHOWS_IDS = [ps.BTFit, ps.EloFit, ps.BayesFit, ps.AdaptiveResult, ps.SubmitResult, ps.PairSummary, ps.MultiBatch]


@pytest.mark.parametrize("kind", SHOWS_IDS, ids=named)
def test_a_hostile_id_is_read_as_it_is(kind: type[ReprMixin]) -> None:
    escaped = IDS[0].replace("\x1b", "�")
    best = IDS[N - 1].replace("\x1b", "�") if kind is ps.AdaptiveResult else escaped
    assert best in "".join(parsed(made(kind)).text)  # [red] and all


@pytest.mark.parametrize("rows", [1, 3])
def test_a_hostile_column_is_read_as_it_is(rows: int) -> None:
    columns = {f"<b>{at}\x1b[31m[red]": ["x"] * rows for at in range(14)}
    found = replace(labels(), table=pl.DataFrame(columns))
    assert "<b>13�[31m[red]" in "".join(parsed(found).text)


def test_long_tables_are_cut_and_what_is_missing_is_said() -> None:
    fit = made(ps.BTFit)
    order = [IDS.index(name) for name in fit.theta["ID"]]
    shown = "".join(parsed(fit).text)
    assert f"shape: ({N}, " in shown
    assert [at for at in range(N) if f'"alert({order[at]})' in shown.partition("shape")[2]] == [*range(5), *range(9, N)]
    wide = ps.SubmitResult(answered(), answered(), answered(), "c", 1, Provenance("test"))
    assert "shape: (13, " in "".join(parsed(wide).text)
    assert "<script>" * 8 not in "".join(parsed(wide).text)
    assert "status_code" not in "".join(parsed(wide).text), "columns without anything in them are not shown"


def test_what_is_not_there_yet_has_no_table(message_snapshot) -> None:
    waiting = replace(made(ps.BatchResult), results=None)
    assert repr(waiting) == "<BatchResult: 0 batches of openai, not waited for, in run.db>"
    assert "<table" not in waiting._repr_html_()
    with pytest.raises(InputError) as refused:
        waiting.to_pandas()
    message_snapshot(refused)
    study = made(ps.TemplateStudy)
    assert study.to_pandas("ranking")["template_id"].tolist() == study.ranking["template_id"].to_list()
    with pytest.raises(InputError, match="no table level"):
        study.to_pandas("level")
    assert "<table" not in ps.adaptive_rank_start(["a", "b", "c"], seed=1)._repr_html_()


def test_notices_are_shown_but_not_all() -> None:
    fit = replace(made(ps.BTFit), notices=("one <b>\x1b[31m", "two", "three", "four", "five"))
    page = fit._repr_html_()
    assert "note: one &lt;b&gt;�[31m" in page
    assert "note: three" in page
    assert "note: 2 more in .notices" in page
    assert "four" not in page


# Pandas


@pytest.mark.parametrize("kind", MAIN, ids=named)
def test_pandas_has_the_main_table(kind: type[ReprMixin]) -> None:
    result = made(kind)
    expected = MAIN[kind](result)
    table = result.to_pandas()
    assert list(table.columns) == expected.columns
    assert_frame_equal(pl.from_pandas(table).cast(expected.schema), expected)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["pandas", "pyarrow"])
def test_without_pandas_the_install_command_is_named(module: str) -> None:
    code = (
        f"import sys; sys.modules['{module}'] = None\n"
        "import pairscale as ps\n"
        "try: ps.summarize_pairs([{'ID1': 'a', 'ID2': 'b'}]).to_pandas()\n"
        "except ps.errors.MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "a pandas table needs an optional package: pip install pandas pyarrow\n"


# Charts and reports


@pytest.mark.slow_except("*-scores")
@pytest.mark.parametrize(("kind", "chart"), CHARTS, ids=named)
def test_a_chart_is_a_chart(kind: type[PlotMixin], chart: str) -> None:
    drawn = made(kind).plot(kind=chart).to_dict()
    assert drawn["$schema"].startswith("https://vega.github.io/schema/vega-lite")
    assert "\x1b" not in str(drawn)


REPORTED = {
    ps.BTFit, ps.AdaptiveResult, ps.JudgeCard, ps.PositionalBias, ps.TemplateStudy, ps.PairwiseRunResult,
    ps.VariantsResult,
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(REPORTED, key=named), ids=named)
def test_a_report_is_written(kind: type, tmp_path: Path) -> None:
    written = made(kind).report(tmp_path / "report.html", title="A <b>title</b>")
    assert written == tmp_path / "report.html"
    page = written.read_text("utf-8")
    assert "<h1" in page
    assert "A <b>title</b>" not in page
    assert "<img src=x" not in page
