"""Writes the tables of the Bayesian logs into docs/data.md: ``python docs/_logs.py``. A test says when it must run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from pairscale.models.logs import ITEM_LOG, ITEM_LOG_MEANING, ROUND_LOG, ROUND_LOG_MEANING

PAGE = Path(__file__).with_name("data.md")

_TYPES = {pl.Int64: "whole number", pl.Float64: "number", pl.String: "text", pl.Boolean: "true or false"}


def filled(page: str) -> str:
    """The page with its two tables as the code has them."""
    for name, types, meanings in (
        ("item log", ITEM_LOG, ITEM_LOG_MEANING),
        ("round log", ROUND_LOG, ROUND_LOG_MEANING),
    ):
        begin, end = f"<!-- {name}: written by docs/_logs.py -->", f"<!-- end of {name} -->"
        between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        table = f"{begin}\n\n{_table(types, meanings)}\n\n{end}"
        page, times = between.subn(lambda _, table=table: table, page)
        if times != 1:
            raise SystemExit(f"docs/data.md must have {begin} and {end} once")
    return page


def _table(types: Mapping[str, pl.DataType], meanings: Mapping[str, str]) -> str:
    head = ["| column | type | meaning |", "| --- | --- | --- |"]
    rows = [(name, _TYPES.get(type(kind), "time"), _sentence(meanings[name])) for name, kind in types.items()]
    return "\n".join(head + [f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in rows])


def _sentence(words: str) -> str:
    """The words as a cell, with a capital (unless they begin with a name) and a full stop."""
    start = words if words.startswith("btl") else words[0].upper() + words[1:]
    return start.replace("|", "\\|") + "."


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
