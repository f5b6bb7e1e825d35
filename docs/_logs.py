"""Writes docs/reference/logs.md and docs/reference/settings.md: ``python docs/_logs.py``.

Columns and fields, their types and meanings are those of the code. A test says when it must run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.logs import STEP_LOG, STEP_LOG_MEANING
from pairscale.models.bayes.logs import ITEM_LOG, MEANINGS, ROUND_LOG

FOLDER = Path(__file__).parent

SIZES = (12, 30, 100, 200, 1_000, 2_000)
"""The numbers of texts for which defaults are shown."""

_SETTINGS = "mcmc"  # a mapping, whose defaults are the sampler's

_TYPES = {pl.Int64: "whole number", pl.Float64: "number", pl.String: "text", pl.Boolean: "true or false"}


_LOGS = """# Columns of the logs

<!-- Written by docs/_logs.py; run: python docs/_logs.py -->

`fit_bayes_btl_mcmc` gives an item log and a round log. [Adaptive runs](../adaptive.md) write the same two at
every refit, and a step log. Columns are named as in R's pairwiseLLM, but for `mcmc_engine_version`, which is
`mcmc_cmdstanr_version` there. What does not apply to a fit is empty. [Tables and
columns](../data.md#logs-of-bayesian-fits-and-adaptive-runs) says where they are.

## Item log

One row per text and fit: `item_log_list`, one table a fit, and `item_summary`, all of them. `summarize_items`
sorts it.

{item_log}

## Round log

One row per fit: `round_log`. `summarize_refits` shows it, with `include_optional=False` only the columns that
matter most.

{round_log}

## Step log

One row per step of an adaptive run, in the order in which the answers came: `adaptive_step_log`. Up to
`star_cap_reject_items` the columns are those that [the design](../adaptive.md) asks for; behind them is what a
reader and a replay need besides. Columns about strata, candidates and exploring are those of the selector
`pollitt`.

{step_log}
"""

_SETTINGS_PAGE = """# Settings of adaptive runs

<!-- Written by docs/_logs.py; run: python docs/_logs.py -->

`adaptive_config={{...}}` and `btl_config={{...}}` in Python, `--set NAME=VALUE` in the shell. Unknown names and
values out of range are refused. § is the section of the design; [Adaptive ranking](../adaptive.md) explains
what the settings do.

## How pairs are chosen: adaptive_config

{adaptive_config}

## When to refit, when to stop: btl_config

{btl_config}

`mcmc` takes `chains`, `iter_warmup`, `iter_sampling`, `target_accept` and `extend`, as in `fit_bayes_btl_mcmc`,
and no `seed`.

## Defaults by size

"By size" means that the default follows from the number of texts, by [these
formulas](../adaptive.md#defaults-by-size):

{by_size}
"""


def pages() -> dict[str, str]:
    """The pages by their file names."""
    logs = _LOGS.format(
        item_log=_columns(ITEM_LOG, MEANINGS),
        round_log=_columns(ROUND_LOG, MEANINGS),
        step_log=_columns(STEP_LOG, STEP_LOG_MEANING),
    )
    settings = _SETTINGS_PAGE.format(
        adaptive_config=_fields(AdaptiveConfig.describe()), btl_config=_fields(BTLConfig.describe()), by_size=_by_size()
    )
    return {"reference/logs.md": logs, "reference/settings.md": settings}


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
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8")
