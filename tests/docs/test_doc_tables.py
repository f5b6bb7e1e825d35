"""The tables of the pages are complete: every R name, every column, every error, every dependency; figures are R's."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from collections.abc import Mapping

import polars as pl
import pytest
from doc_pages import ROOT

import pairscale as ps
from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.checks.templates import STUDY
from pairscale.core import errors, tables
from pairscale.core.comparisons import ERROR_CODES
from pairscale.core.files import read_table
from pairscale.judges.lexical import WEIGHTS
from pairscale.store import schema

R_NAMES = (ROOT / "tests/golden/manual-index.txt").read_text().split()


def rows(page: str) -> list[list[str]]:
    """The cells of every table row of a page, without heads and rules."""
    found = []
    lines = (ROOT / page).read_text("utf-8").splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("|") and not line.startswith("| ---") and not following.startswith("| ---"):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def sections(page: str) -> dict[str, list[str]]:
    """By heading, the names in the first column of its tables."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in (ROOT / page).read_text("utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").replace("`", "")
        elif match := re.match(r"\| `([^`]+)` \|", line):
            found.setdefault(heading, []).append(match[1])
    return found


# docs/from-r.md


def test_every_r_name_has_its_row() -> None:
    named = [cells[0].strip("`") for cells in rows("docs/from-r.md")]
    assert sorted(named) == sorted(R_NAMES)
    assert len(R_NAMES) == 88


@pytest.mark.parametrize("cells", rows("docs/from-r.md"), ids=lambda cells: cells[0].strip("`"))
def test_counterparts_exist(cells: list[str]) -> None:
    r_name, counterpart, remark = cells
    if counterpart == "not yet":
        assert not hasattr(ps, r_name.strip("`")), f"{r_name} exists now; say so"
        assert remark, "say what to do meanwhile, or what is planned"
        return
    names = re.findall(r"`([^`]+)`", counterpart)
    assert names, f"{r_name}: name a counterpart, or write 'not yet'"
    for name in names:
        found: object = ps
        for part in name.removesuffix("()").split("."):
            found = getattr(found, part)


FROM_R, GOLDEN = ROOT / "docs/examples/from-r", ROOT / "tests/golden"


def test_the_scores_of_pairwisellm() -> None:
    recorded = json.loads((GOLDEN / "fit_bt_model_example_writing_pairs_30flips.json").read_text())
    assert pl.read_csv(FROM_R / "results.csv").to_dicts() == recorded["input"]["results"]
    assert pl.read_csv(FROM_R / "scores.csv").to_dicts() == recorded["output"]["theta"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("session.csv", "Bramley2018_1b.csv"),
        ("session-sirt.csv", "published/Bramley2018_1b/sirt_btm.csv"),
        ("session-elochoice.csv", "published/Bramley2018_1b/elochoice.csv"),
    ],
)
def test_the_session_of_judges(name: str, source: str) -> None:
    assert (FROM_R / name).read_bytes() == (GOLDEN / "cj-sessions" / source).read_bytes()


# docs/data.md

SCHEMAS: Mapping[str, Mapping[str, object]] = {
    "Samples": tables.SAMPLES,
    "Pairs": tables.PAIRS,
    "Results": tables.RESULTS,
    "Failed pairs and failed attempts": tables.FAILED,
    "Canonical results": tables.CANONICAL,
    "Template study": STUDY,
}


@pytest.mark.parametrize("heading", SCHEMAS)
def test_every_column_is_explained(heading: str) -> None:
    explained = sections("docs/data.md")[heading]
    assert [name for name in explained if name in SCHEMAS[heading]] == list(SCHEMAS[heading])


def test_comparison_columns_are_explained() -> None:
    assert set(tables.COMPARISON_COLUMNS) <= set(sections("docs/data.md")["Results"])


@pytest.mark.parametrize("table", schema.tables.tables.values(), ids=lambda table: table.name)
def test_every_table_of_the_run_file_is_explained(table: schema.Table) -> None:
    assert sections("docs/data.md")[f"Table {table.name}"] == [column.name for column in table.columns]


def test_the_logs_and_settings_are_those_of_the_code() -> None:
    for name, page in runpy.run_path(str(ROOT / "docs/_logs.py"))["pages"]().items():
        assert (ROOT / "docs" / name).read_text("utf-8") == page, "run: python docs/_logs.py"


# docs/reference/settings.md


@pytest.mark.parametrize("kind", [AdaptiveConfig, BTLConfig])
def test_every_setting_is_explained(kind: type[AdaptiveConfig | BTLConfig]) -> None:
    known = [field["name"] for field in kind.describe()]
    assert known in sections("docs/reference/settings.md").values()


def test_every_column_of_the_scores_is_explained() -> None:
    apart = [{"ID1": "a", "ID2": "b", "better_id": "a"}, {"ID1": "c", "ID2": "d", "better_id": "c"}]
    parts = ps.fit_bt_model(apart, unconnected="separate").theta.columns
    panel = ps.example_writing_results.with_columns(judge_id=pl.int_range(pl.len()) % 20)
    everything = ps.fit_bt_model(panel, cluster="judge_id", bootstrap=2, rank_intervals=True)
    explained = sections("docs/data.md")
    assert explained["Scores"] == [*everything.theta.columns, parts[-1]]
    assert set(parts) <= set(explained["Scores"])
    assert explained["Elo ratings"] == ps.fit_elo_model(panel, seed=1).elo.columns
    fitted = ps.fit_statistics(everything)
    assert fitted.judges is not None
    assert [name for name in explained["Fit statistics"] if name != "agreement"] == fitted.items.columns
    assert ["judge_id", *explained["Fit statistics"][1:]] == fitted.judges.columns
    assert explained["Pair summary"] == ps.summarize_pairs(apart).degrees.columns


def test_every_error_code_and_outcome_is_explained() -> None:
    explained = sections("docs/data.md")
    assert explained["Error codes"] == list(ERROR_CODES)
    assert explained["Outcomes"] == [str(outcome) for outcome in ps.Outcome]


# Other pages


def test_every_exception_is_in_the_guide() -> None:
    guide = (ROOT / "docs/guides/first-ranking.md").read_text("utf-8")
    classes = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    leaves = [name for name in classes if not getattr(errors, name).__subclasses__()]
    assert [name for name in leaves if f"`{name}`" not in guide] == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.split(r"[^\w.-]", requirement)[0] for requirement in wanted} - {"pairscale"}
    explained = {name for section in sections("docs/dependencies.md").values() for name in section}
    assert names <= explained, f"not explained: {sorted(names - explained)}"
    assert explained <= names | {"hatchling"}, f"gone: {sorted(explained - names)}"


def test_the_weights_shown_are_the_weights_used() -> None:
    shown = {cells[0].strip("`"): cells[1:4] for cells in rows("docs/lexical.md") if cells[0].startswith("`")}
    assert list(shown) == list(WEIGHTS)
    for name, weight in WEIGHTS.items():
        assert [float(cell) for cell in shown[name]] == [pytest.approx(value, abs=5e-4) for value in weight], name


def test_the_agreement_with_sirt_is_the_one_shown() -> None:
    sessions = ROOT / "tests/golden/cj-sessions"
    reliabilities = read_table(sessions / "published/summary.csv")
    worst = {"theta": 0.0, "se": 0.0, "reliability": 0.0}
    for name, ssr in reliabilities.select("judging_session", "ssr").iter_rows():
        fit = ps.fit_bt_model(read_table(sessions / f"{name}.csv"))
        published = read_table(sessions / f"published/{name}/sirt_btm.csv").select(
            pl.col("individual").cast(pl.String).alias("ID"), theta_there="theta", se_there="se.theta"
        )
        both = fit.theta.join(published, on="ID", validate="1:1")
        assert both.height == published.height
        for column in ("theta", "se"):
            worst[column] = max(worst[column], (both[column] - both[f"{column}_there"]).abs().max())
        worst["reliability"] = max(worst["reliability"], abs(fit.reliability - ssr))
    shown = {cells[0].split("`")[1]: cells[1:] for cells in rows("docs/validation.md") if cells[0].startswith("`")}
    assert {name: float(shown[name][1]) for name in worst} == pytest.approx(worst, rel=0.05)
    assert {shown[name][0] for name in worst} == {str(reliabilities.height)}


def test_every_package_of_the_source_is_in_the_picture() -> None:
    source = ROOT / "src/pairscale"
    there = {path.stem for path in source.glob("*.py")} | {path.parent.name for path in source.glob("*/__init__.py")}
    picture = {cells[0].strip("`") for cells in rows("docs/architecture.md") if cells[0].startswith("`")}
    assert there - {"__init__", "__main__", "_version"} == picture
    assert "planned" not in (ROOT / "docs/architecture.md").read_text("utf-8").lower()  # it shows what is there now


def test_every_path_of_the_picture_is_there() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    paths = set(re.findall(r"`((?:\w+/)+\w+\.py)`", page))
    homes = (ROOT, ROOT / "src/pairscale", ROOT / "src/pairscale/evaluate")
    assert {path for path in paths if not any((home / path).is_file() for home in homes)} == set()
