"""Study files: the options of a command in a TOML file that can be kept, commented and shared."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.core.errors import InputError
from pairscale.core.options import require_flag

if TYPE_CHECKING:
    from pairscale.cli._common import Arguments
    from pairscale.cli.from_verb import Command

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


def with_study(args: list[str], command: Command) -> tuple[list[str], str | None]:
    """A command line with a study file's options before those that were given, which hold; and the file's name.

    Args:
        args: The command line; where it names no study file, it stays as it is.
        command: Other options than its own are left out.
    """
    options = {option.key: option for option in command.options}
    paths = [text for text in args if text.endswith(".toml")]
    if not paths or not {"data", "text_col"} <= set(options):
        return args, None
    path = paths[0]
    study = read_study(Path(path))
    data = study.pop("data")
    words: list[str] = []
    for name, value in study.items():
        if name not in options:
            continue
        flag = options[name].flag
        if options[name].kind == "flag":
            if require_flag(value, f"{path}: {name}"):
                words.append(flag)
            elif options[name].default is not False:
                words.append(flag.replace("--", "--no-"))
        else:
            for part in value if isinstance(value, list) else [value]:
                words += [flag, str(part)]
    return [*words, *(data if text == path else text for text in args)], path


def read_study(path: Path) -> Arguments:
    """The options of a study file, by the names that the shell gives them, with underscores.

    Tables only group options, except ``judge_arg`` and ``set``, whose entries become ``NAME=VALUE``.

    Raises:
        InputError: when the file cannot be read, or names an option that ``pairscale rank`` does not have.
    """
    from pairscale.cli import load

    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    options = dict(_flat(content))
    known = {option.key for option in load("rank").options}
    for name in options:
        if name not in known:
            raise InputError(f"{path}: there is no option {name!r}; `pairscale rank --help` lists them")
    if not isinstance(options.get("data"), str):
        raise InputError(f'{path} does not say where the texts are; add a line such as data = "essays"')
    for name in _PATHS:
        value = options.get(name)
        is_name = name == "template" and not str(value).endswith(".txt")
        if isinstance(value, str) and "://" not in value and not is_name:
            options[name] = str(path.parent / value)
    return options


def _flat(content: Arguments) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        name = key.replace("-", "_")
        if not isinstance(value, dict):
            yield name, value
        elif name in _PAIRS:
            yield name, [f"{entry}={setting}" for entry, setting in value.items()]
        else:
            yield from _flat(value)
