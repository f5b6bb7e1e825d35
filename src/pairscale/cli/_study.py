"""Study files: the options of a command in a TOML file that can be kept, commented and shared."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pairscale.core.errors import InputError
from pairscale.core.options import require_flag, require_int, require_number
from pairscale.core.tables import listed

_PATHS = ("data", "run", "out", "instructions", "template")
_PAIRS = ("judge_arg", "set")

TEMPLATE = """\
# A study for pairscale: `pairscale rank {name}` runs it, and the same command resumes it.
# Every option of `pairscale rank --help` can be set here, with _ or - in its name; the command line overrides it.
# Paths are relative to this file.

# The texts: a folder of them (txt, docx, pdf, …), or a table with ids and texts (csv, jsonl, xlsx, …).
data = "{data}"
# id_col = "ID"
# text_col = "text"

# Where every answer is kept. `pairscale status` and `pairscale report` read it.
run = "run.db"

# Who judges: lexical (built in, a baseline), human (people, in the browser), or a model, such as openai:gpt-5.1,
# anthropic:claude-sonnet-4-5, gemini:gemini-3-pro-preview, together:deepseek-ai/DeepSeek-R1, ollama:qwen3:32b.
# Keys are read from the environment (OPENAI_API_KEY and so on) and never written anywhere.
judge = "lexical"
# What to judge (`pairscale traits`), and how the question is put (`pairscale templates`).
trait = "overall_quality"
# template = "default"
# concurrency = 8      # questions open at once; 1 by default

# The settings to start from: pairscale, or pairwiseLLM, those of the design document (docs/adaptive.md).
preset = "pairscale"

# When to stop: by itself when the ranking is this reliable, or at a limit.
reliability = 0.9
[limits]
# max_comparisons = 2000
# max_cost = 5.0      # US dollars
# max_minutes = 60

# Settings of the judge, such as a temperature or a seed.
[judge_arg]
# temperature = 0

# Fields of the adaptive design (docs/adaptive.md), for those who know why.
[set]
# explore_rate = 0.2
"""
"""A commented study file; ``name`` and ``data`` are filled in."""


def read_study(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """The options of a study file, by the names that Python gives them.

    Tables only group options, except ``judge_arg`` and ``set``, whose entries become ``NAME=VALUE``.

    Args:
        path: the TOML file.
        known: the names of options that there are.

    Raises:
        InputError: when the file cannot be read, or names an option that does not exist.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    options: dict[str, Any] = {}
    for key, value in _flat(content):
        name = key.replace("-", "_")
        if name in options:
            raise InputError(f"{path} names {key} twice")
        options[name] = [f"{n}={_plain(v)}" for n, v in value.items()] if isinstance(value, dict) else value
    if "set" in options:
        options["set_"] = options.pop("set")
    strange = [name for name in options if name not in {"data", *known}]
    if strange:
        raise InputError(f"{path}: there is no option {listed(strange)}; `pairscale rank --help` lists them")
    if not isinstance(options.get("data"), str):
        raise InputError(f'{path} does not say where the texts are; add a line such as data = "essays"')
    for name in _PATHS:
        value = options.get(name)
        is_name = name == "template" and not str(value).endswith(".txt")
        if isinstance(value, str) and "://" not in value and not is_name:
            options[name] = str(path.parent / value)
    return options


def require_types(options: Mapping[str, Any], command: Callable[..., Any], path: Path) -> None:
    """Validate the numbers and flags of a study file by what the command's function says of them.

    Args:
        options: The options of the file.
        command: The function of the command.
        path: The file.

    Raises:
        InputError: If a number or a flag is of another type, or out of its range.
    """
    for name, annotation in get_type_hints(command, include_extras=True).items():
        value = options.get(name)
        if value is None or get_origin(annotation) is not Annotated:
            continue
        kind, info, *_ = get_args(annotation)
        where, kinds = f"{path}: {name}", {*get_args(kind)} or {kind}
        if int in kinds:
            require_int(value, where, least=info.min, most=info.max)
        elif float in kinds:
            require_number(value, where, least=info.min, most=info.max)
        elif bool in kinds:
            require_flag(value, where)


def _flat(content: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, dict) and key.replace("-", "_") not in _PAIRS:
            yield from value.items()
        elif not isinstance(value, dict) or value:
            yield key, value


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
