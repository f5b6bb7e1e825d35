"""Writes docs/cli.md from the command itself: ``python docs/_cli.py``. A test says when it is out of date."""

from __future__ import annotations

import inspect
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from pairscale.cli import COMMANDS, app, batch, module_of

PAGE = Path(__file__).with_name("cli.md")

_HEAD = """# The command

<!-- Written by docs/_cli.py from the command itself; change the help there, then: python docs/_cli.py -->

`pairscale COMMAND --help` shows the same in the terminal.

| command | does |
| --- | --- |
{commands}

What holds for all of them:

- Tables go to standard output; progress, notes and errors go to standard error. Progress is a live bar in a terminal;
  elsewhere it is a line after five seconds, and then every half minute.
- `--json` gives one JSON document on standard output and nothing else there. `--out FILE` writes the whole table to a
  file, whole or not at all. Where the terminal is narrow, texts are cut and columns left out; never in a file.
- Exit codes: 0 done, 1 the work could not be done (one line on standard error says why), 2 wrong usage,
  130 interrupted (what was answered is kept in the run file).
- `PAIRSCALE_DEBUG=1` shows where an unexpected error comes from.
- `pairscale --install-completion` teaches your shell (bash, zsh, fish or PowerShell) to complete commands, options, and
  the names of judges, traits, templates and selectors with Tab; `--show-completion` prints the script instead.
- Where DATA is taken, [a study file](guides/first-ranking.md#keep-the-settings-in-a-file) may stand.
"""


def reference() -> str:
    """The page."""
    group: Any = typer.main.get_command(app)
    rows = [f"| [`{name}`](#{name}) | {summary} |" for name, summary in COMMANDS.items()]
    each = [_section(name, group.commands[name], module_of(name)) for name in COMMANDS if name != "batch"]
    return "\n".join([_HEAD.format(commands="\n".join(rows)), *each, _batch(group.commands["batch"])])


def _batch(group: Any) -> str:
    """The group of commands about batches, each a section under it."""
    rows = [f"| [`batch {name}`](#batch-{name}) | {part.SUMMARY} |" for name, part in batch.PARTS.items()]
    head = ["## batch", "", group.help, "", "| command | does |", "| --- | --- |", *rows, ""]
    each = [
        _section(f"batch {name}", group.commands[name], part).replace("## ", "### ", 1)
        for name, part in batch.PARTS.items()
    ]
    return "\n".join(["\n".join(head), *each])


def _section(name: str, command: Any, module: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option"]
    usage = " ".join(["pairscale", name, "[OPTIONS]", *(_argument(param) for param in arguments)])
    lines = [f"## {name}", "", inspect.cleandoc(module.command.__doc__), "", "```text", usage, "```", ""]
    if arguments:
        lines += [
            "| argument | |",
            "| --- | --- |",
            *(f"| `{_argument(p)}` | {_cell(p.help)} |" for p in arguments),
            "",
        ]
    lines += ["| option | | default |", "| --- | --- | --- |", *(_option(param) for param in options), ""]
    return "\n".join([*lines, "Examples:", "", "```text", *module.EXAMPLES, "```", ""])


def _argument(param: Any) -> str:
    return str(param.metavar) if param.required else f"[{param.metavar}]"


def _option(param: Any) -> str:
    name = param.opts[0] if param.is_flag else f"{param.opts[0]} {param.metavar}"
    default = param.default.value if isinstance(param.default, Enum) else param.default
    shown = "" if param.is_flag or default is None else f"`{default}`"
    return f"| `{name}` | {_cell(param.help)} | {shown} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")
