"""Writes docs/cli.md from the command itself: ``python docs/_cli.py``. A test says when it is out of date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pairscale.cli import BATCH, COMMANDS, GROUPS, load

if TYPE_CHECKING:
    from pairscale.cli.from_verb import Option

PAGE = Path(__file__).with_name("cli.md")

_HEAD = """# The command

<!-- Written by docs/_cli.py from the command itself; change the help there, then: python docs/_cli.py -->

`pairscale COMMAND --help` shows the same in the terminal.

{groups}
What holds for all of them:

- Options are the arguments of the Python function of the same name, with its defaults; `--judge-arg NAME=VALUE` is an
  entry of `judge_args`, and `--set NAME=VALUE` a field of `adaptive_config` or `btl_config`.
- Tables go to standard output; progress, notes and errors go to standard error. Progress is a live bar in a terminal;
  elsewhere it is a line after five seconds, and then every half minute.
- `--json` gives one JSON document on standard output and nothing else there. `--out FILE` writes the whole table to a
  file, whole or not at all. Where the terminal is narrow, texts are cut and columns left out; never in a file.
- Exit codes: 0 done, 1 the work could not be done (one line on standard error says why), 2 wrong usage (also a value
  that an option does not take), 130 interrupted (what was answered is kept in the run file).
- `PAIRSCALE_DEBUG=1` shows where an unexpected error comes from.
- Where DATA is taken, [a study file](guides/first-ranking.md#keep-the-settings-in-a-file) may stand.
"""


def reference() -> str:
    """The page."""
    groups = []
    for title, commands in GROUPS.items():
        rows = [f"| [`{name}`](#{name}) | {summary} |" for name, summary in commands.items()]
        groups += [f"| {title} | |", "| --- | --- |", *rows, ""]
    each = [_section(name) for name in COMMANDS if name != "batch"]
    return "\n".join([_HEAD.format(groups="\n".join(groups)), *each, _batch()])


def _batch() -> str:
    """The group of commands about batches, each a section under it."""
    rows = [f"| [`batch {name}`](#batch-{name}) | {summary} |" for name, summary in BATCH.items()]
    head = ["## batch", "", COMMANDS["batch"], "", "| command | does |", "| --- | --- |", *rows, ""]
    each = [_section(f"batch {name}").replace("## ", "### ", 1) for name in BATCH]
    return "\n".join(["\n".join(head), *each])


def _section(name: str) -> str:
    command = load(name)
    arguments = [f"| `{option.flag}` | {_cell(option.help)} |" for option in command.options if option.is_argument]
    options = [_option(option) for option in command.options if not option.is_argument]
    usage = f"pairscale {name} [OPTIONS] {command.usage}".rstrip()
    lines = [f"## {name}", "", command.own.help.strip(), "", "```text", usage, "```", ""]
    if arguments:
        lines += ["| argument | |", "| --- | --- |", *arguments, ""]
    lines += ["| option | | default |", "| --- | --- | --- |", *options, ""]
    return "\n".join([*lines, "Examples:", "", "```text", *command.own.examples, "```", ""])


def _option(option: Option) -> str:
    name = option.flag if option.kind == "flag" else f"{option.flag} {option.metavar}"
    several = option.default if isinstance(option.default, tuple) else (option.default,)
    has_default = option.kind != "flag" and option.default not in (None, ())
    shown = f"`{','.join(map(str, several))}`" if has_default else ""
    return f"| `{_cell(name)}` | {_cell(option.help)} | {shown} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")
