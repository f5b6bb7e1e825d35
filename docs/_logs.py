"""Writes the tables of the logs and of the configuration into the pages: ``python docs/_logs.py``.

Columns and fields, their types and meanings are those of the code. A test says when it must run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.logs import STEP_LOG, STEP_LOG_MEANING
from pairscale.models.bayes.logs import ITEM_LOG, ITEM_LOG_MEANING, ROUND_LOG, ROUND_LOG_MEANING

FOLDER = Path(__file__).parent

SIZES = (12, 30, 100, 200, 1_000, 2_000)
"""The numbers of texts for which defaults are shown."""

_SETTINGS = "mcmc"  # a mapping, whose defaults are the sampler's

_TYPES = {pl.Int64: "whole number", pl.Float64: "number", pl.String: "text", pl.Boolean: "true or false"}


def filled(page: str, name: str = "data.md") -> str:
    """The text of a page with its tables as the code has them."""
    for title, table in _tables(name).items():
        begin, end = f"<!-- {title}: written by docs/_logs.py -->", f"<!-- end of {title} -->"
        between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        whole = f"{begin}\n\n{table}\n\n{end}"
        page, times = between.subn(lambda _, whole=whole: whole, page)
        if times != 1:
            raise SystemExit(f"docs/{name} must have {begin} and {end} once")
    return page


def _tables(name: str) -> dict[str, str]:
    if name == "data.md":
        return {
            "item log": _columns(ITEM_LOG, ITEM_LOG_MEANING),
            "round log": _columns(ROUND_LOG, ROUND_LOG_MEANING),
            "step log": _columns(STEP_LOG, STEP_LOG_MEANING),
        }
    return {
        "adaptive_config": _fields(AdaptiveConfig.describe()),
        "btl_config": _fields(BTLConfig.describe()),
        "defaults by size": _by_size(),
    }


def _columns(types: Mapping[str, pl.DataType], meanings: Mapping[str, str]) -> str:
    head = ["| column | type | meaning |", "| --- | --- | --- |"]
    rows = [(name, _TYPES.get(type(kind), "time"), _sentence(meanings[name])) for name, kind in types.items()]
    return "\n".join(head + [f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in rows])


def _fields(described: list[dict[str, Any]]) -> str:
    head = ["| field | meaning | default | range | § |", "| --- | --- | --- | --- | --- |"]
    rows = [
        f"| `{field['name']}` | {_sentence(field['meaning'])} | {_default(field)} | {_range(field)} "
        f"| {field['section']} |"
        for field in described
    ]
    return "\n".join(head + rows)


def _default(field: Mapping[str, Any]) -> str:
    value = field["default"]
    if value is None:
        return "its own" if field["name"] == _SETTINGS else "by size"
    if isinstance(value, bool):
        return str(value).lower()
    return _number(value) if isinstance(value, int | float) else f"`{value}`"


def _range(field: Mapping[str, Any]) -> str:
    low, high = field["low"], field["high"]
    if isinstance(field["default"], bool):
        return "true, false"
    return "" if low == high else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,.4g}" if isinstance(value, float) and value < 1000 else f"{int(value):,}"


def _by_size() -> str:
    """What the fields without a fixed default are for some numbers of texts."""
    both = (AdaptiveConfig, BTLConfig)
    without = [(kind, field["name"]) for kind in both for field in kind.describe() if field["default"] is None]
    names = [(kind, name) for kind, name in without if name != _SETTINGS]
    made = {size: {kind: kind.for_items(size) for kind in both} for size in SIZES}
    head = [f"| field | {' | '.join(f'{size:,}' for size in SIZES)} |", "| --- |" + " --- |" * len(SIZES)]
    rows = [
        f"| `{name}` | {' | '.join(_number(getattr(made[size][kind], name)) for size in SIZES)} |"
        for kind, name in names
    ]
    return "\n".join(head + rows)


def _sentence(words: str) -> str:
    """The words as a cell, with a capital (unless they begin with a name) and a full stop."""
    first = words.split(maxsplit=1)[0]
    start = words if "_" in first or first.startswith("btl") else words[0].upper() + words[1:]
    return start.replace("|", "\\|") + "."


if __name__ == "__main__":
    for page in ("data.md", "adaptive.md"):
        path = FOLDER / page
        path.write_text(filled(path.read_text("utf-8"), page), "utf-8")
