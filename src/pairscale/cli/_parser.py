"""A command line read by the options of a command, and the help of a command."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pairscale.core.options import read_setting

if TYPE_CHECKING:
    from pairscale.cli._common import Arguments
    from pairscale.cli.from_verb import Command, Option

_PANELS = {
    "What to judge": "data pairs source a b trait template criterion goal without variant_a variant_b prompt_a "
    "prompt_b name_a name_b baseline update_baseline items n_pairs order reverse shard pilot published condition kind "
    "samples",
    "Judge": "judge judge_args base_url cache answer price swap repeats labels key dry_run batch",
    "Limits": "concurrency variant_timeout max_cost max_comparisons max_minutes steps reliability interval n_jobs seed "
    "fail_if margin max_errors",
    "People": "labellers labels_per_case instructions host port url plain terminal status next",
    "Columns": "id_col text_col input_col output_col a_col b_col winner_col encoding strict skip_unreadable unit rater",
    "Output": "run manifest out as_json columns chart chart_kind width font_size no_title progress summary again "
    "title interactive without_texts pseudonyms",
}
"""Options by what they are about; all others come first, and belong to one command."""


class UsageError(Exception):
    """The command line is not one of this command."""


class Parser(argparse.ArgumentParser):
    """Reads the options of a command."""

    def __init__(self, name: str, command: Command) -> None:
        width = help_width()
        paragraphs = re.split(r"\n\s*\n", command.own.help)
        super().__init__(
            usage=f"pairscale {name} [OPTIONS] {command.usage}".rstrip(),
            description="\n\n".join(textwrap.fill(" ".join(text.split()), width) for text in paragraphs),
            epilog="\n".join(["Examples:", *(f"    {line}" for line in command.own.examples)]),
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=width),
            add_help=False,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        groups = {title: self.add_argument_group(title) for title in ("Arguments", "Options", *_PANELS)}
        self._defaults_of = {option.name: option.default for option in command.options}
        titles = {name: title for title, names in _PANELS.items() for name in names.split()}
        for option in command.options:
            title = "Arguments" if option.is_argument else titles.get(option.name, "Options")
            _add(groups[title], option)
        groups["Output"].add_argument("-h", "--help", action="help", help="Show this message and exit.")

    def error(self, message: str) -> NoReturn:
        """Raise the error instead of leaving the process."""
        raise UsageError(message.removeprefix("argument "))

    def read(self, args: Sequence[str]) -> Arguments:
        """All options by their names in Python, as given or as by default."""
        if "" in args:  # as a path, it would be this folder
            self.error("an argument is empty; is a variable of your script not set?")
        return self._defaults_of | vars(self.parse_intermixed_args(args))


def help_width() -> int:
    """How wide a help text is."""
    return min(shutil.get_terminal_size().columns, 100) - 2


def converted(option: Option, value: Any) -> Any:
    """A value as the verb takes it."""
    if option.kind == "mapping":
        texts = value or []
        if option.name == "price":
            texts = [part.strip() for text in texts for part in text.split(",")]
        return dict(read_setting(text, option.flag) for text in texts) or None
    if option.is_argument and option.is_several and value is not None and len(value) < 2:
        return value[0] if value else None
    return value


def _add(group: Any, option: Option) -> None:
    """Enter an option into its panel."""
    text = option.help.replace("%", "%%")
    if option.kind == "flag":
        action: Any = "store_true" if option.default is False else argparse.BooleanOptionalAction
        group.add_argument(option.flag, dest=option.name, action=action, help=text)
        return
    if option.default not in (None, ()):
        several = option.default if isinstance(option.default, tuple) else (option.default,)
        text += f" [default: {','.join(map(str, several))}]"
    settings: Arguments = {"help": text, "type": _reader(option), "choices": option.choices or None}
    if option.is_argument:
        count: str | None = "?"
        if option.is_several:
            count = "+" if option.is_required else "*"
        elif option.is_required:
            count = None
        group.add_argument(option.name, metavar=option.flag, nargs=count, **settings)
        return
    if option.is_several:
        settings["action"] = "extend" if option.has_commas else "append"
    group.add_argument(option.flag, dest=option.name, metavar=option.metavar, required=option.is_required, **settings)


def _reader(option: Option) -> Callable[[str], Any]:
    """What makes a value of a text."""

    def read(text: str) -> Any:
        try:
            return {"int": int, "float": float}.get(option.kind, str)(text)
        except ValueError:
            wanted = "a whole number" if option.kind == "int" else "a number"
            raise argparse.ArgumentTypeError(f"must be {wanted}, not {text!r}") from None

    if option.has_commas:
        return lambda text: [read(part.strip()) for part in text.split(",")]
    return read
