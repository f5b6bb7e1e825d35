"""Every usage line of the R manual: the same names, in the same positions, with the same defaults."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from tests.strategies import GOLDEN

import pairscale as ps

ROOT = Path(__file__).parents[2]
LINES = (GOLDEN / "manual-usage.txt").read_text("utf-8").splitlines()
INDEX = (GOLDEN / "manual-index.txt").read_text("utf-8").split()
REQUIRED = object()
WORDS = {
    "NULL": None, "TRUE": True, "FALSE": False, "Inf": float("inf"), "list()": None, "tempfile()": None,
    "set_prompt_template()": None,
}  # fmt: skip

# By argument, where ours differs from R's default, and why; docs/from-r.md says each of them.
DEFAULTS: dict[str, tuple[Any, str]] = {
    "id_col": (None, "the column ID, else the first"),
    "text_col": (None, "the column text, else the second"),
    "endpoint": (None, "chosen by the model"),
    "status_every": (None, "about twenty lines in all"),
    "thinking_level": (None, "the model's own: low for Gemini 3"),
    "keep_jsonl": (None, "as given when the batches were submitted"),
    "batch_discount": (None, "from the dated table of prices"),
    "cmdstan": (None, "the settings of our sampler"),
    "pattern": (r"(?i)\.txt$", "TXT is read, too"),
    "received_at_start": (None, "1970-01-01"),
}
SAME_FUNCTION = {("build_openai_batch_requests", "endpoint"), ("llm_submit_pairs_multi_batch", "keep_jsonl")}
"""Where the rule above does not apply: these have R's default."""
OTHERS: dict[tuple[str, str], Any] = {
    ("fit_bt_model", "verbose"): False,
    ("make_adaptive_judge_llm", "text_col"): "text",
    ("estimate_llm_pairs_cost", "seed"): 1,
}
NOT_REQUIRED = {"trait_name", "trait_description", "model", "ids", "requests_tbl", "cost_per_million_input",
                "cost_per_million_output", "session_dir"}  # fmt: skip
"""Arguments that R requires and that have a default here."""


RESERVED = {"adaptive_rank_resume", "adaptive_rank_start", "llm_download_batch_results"}
"""Functions whose dots R reserves for later: an argument that does not exist is an error here."""


def parsed(line: str) -> tuple[str, list[tuple[str, Any]]]:
    name, _, rest = line.partition("(")
    found = []
    for part in re.split(r",\s*(?![^()]*\))", rest.removesuffix(")")):
        argument, has_default, value = part.partition(" = ")
        found.append((argument.strip(), read(value) if has_default else REQUIRED))
    return name, found


def read(value: str) -> Any:
    if value in WORDS:
        return WORDS[value]
    if value[0] == '"':
        return value[1:-1].replace("\\\\", "\\")
    return value if value.startswith("list(") else float(value.removesuffix("L"))


USAGE = dict(map(parsed, LINES))


def test_every_function_of_the_manual_has_its_line() -> None:
    data = {name for name in INDEX if name.startswith("example_")}
    assert set(USAGE) == set(INDEX) - data - {"print.adaptive_state", "print.pairwiseLLM_cost_estimate"}
    assert len(USAGE) == 81


@pytest.mark.parametrize("name", USAGE)
def test_names_and_positions_are_those_of_the_manual(name: str) -> None:
    ours = [
        parameter.name
        for parameter in inspect.signature(getattr(ps, name)).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    arguments = [argument for argument, _ in USAGE[name]]
    at = arguments.index("...") if "..." in arguments else len(arguments)
    assert ours[:at] == arguments[:at]  # what stands behind the dots has to be named in R, too
    every = inspect.signature(getattr(ps, name)).parameters
    assert set(arguments[at + 1 :]) <= set(every)
    if "..." in arguments and name not in RESERVED:
        assert any(one.kind is one.VAR_KEYWORD for one in every.values())


@pytest.mark.parametrize("name", USAGE)
def test_defaults_are_those_of_the_manual(name: str) -> None:
    parameters = inspect.signature(getattr(ps, name)).parameters
    for argument, default in USAGE[name]:
        if argument == "...":
            continue
        ours = parameters[argument].default
        if default is REQUIRED:
            assert ours is inspect.Parameter.empty or (argument in NOT_REQUIRED and ours is None), argument
        elif (name, argument) in OTHERS:
            assert ours == OTHERS[name, argument], argument
        elif argument in DEFAULTS and (name, argument) not in SAME_FUNCTION:
            assert ours == DEFAULTS[argument][0], argument
        elif argument == "include_thoughts" and default is False:
            assert not ours, argument
        else:
            assert ours == default, argument
            assert type(ours) is bool or not isinstance(default, bool), argument


def test_every_entry_is_in_the_module() -> None:
    assert set(ps.r.__all__) == set(INDEX) - {"print.adaptive_state", "print.pairwiseLLM_cost_estimate"}


def test_the_stubs_are_written_from_the_tables() -> None:
    for path, text in runpy.run_path(str(ROOT / "tools/r_stub.py"))["stubs"]().items():
        assert path.read_text("utf-8") == text, "run: python tools/r_stub.py"
