"""The command: one file per command, each a thin layer over the public functions."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import signature, unwrap
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from pairscale._version import __version__
from pairscale.cli._common import complain, error_line, in_shell, printable, say
from pairscale.cli._values import validate_late
from pairscale.core.errors import PairscaleError

__all__ = ["COMMANDS", "app", "main", "module_of"]

COMMANDS: Final[Mapping[str, str]] = {
    "demo": "Rank the bundled texts with the embedded judge: no key, no network.",
    "init": "Write a commented study file that `pairscale rank` runs.",
    "rank": "Rank texts adaptively: asks where it matters, stops when the ranking is reliable.",
    "pairs": "Make pairs of texts: all of them or a part, in random order.",
    "judge": "Have pairs judged; stop and resume as you like.",
    "ab": "Is B better than A? Compare two prompts, models or agents task by task.",
    "gate": "May B take the place of A? A verdict for CI, by exit code, at the least cost.",
    "label": "Have people label pairs, blinded, in the browser or in the terminal.",
    "agreement": "Do labellers agree? Percent, kappa, alpha and AC1, with intervals.",
    "compare": "Ask a judge about one pair of texts.",
    "check-judge": "Try a judge on pairs in both orders, and against people: valid, consistent, biased, at what price?",
    "cost": "Estimate what judging pairs will cost, from a small pilot or offline.",
    "fit": "Turn comparisons into scores, ranks, intervals and a reliability.",
    "bias": "Tell whether a judge favours the first or the second position.",
    "bias-study": "Find the prompt template that lets the position sway judges least.",
    "simulate": "Try ways of choosing pairs on simulated judges whose truth is known.",
    "plan": "How many comparisons will I need, what will they cost, how long will they take?",
    "report": "Write a run as one HTML page: what was found, texts, judge, cost, method.",
    "export": "Write a run to a table: its comparisons, or preference pairs for training.",
    "import": "Enter a table of comparisons into a run file.",
    "status": "Show where a run stands: answers, failures, attempts, cost.",
    "watch": "Show a run live in the browser.",
    "audit": "Check that nothing in a run file was changed, and replay an adaptive run.",
    "templates": "List the prompt templates, show or check one.",
    "traits": "List what texts can be judged on.",
    "prices": "List the prices of models with their sources and dates, or add your own.",
    "providers": "List the providers and what their models take, or add your own.",
    "doctor": "Check versions, extras and keys.",
    "simulate-providers": "Play the providers on this machine: rehearse a study without paying.",
    "batch": "Judge through the providers' batch APIs, at a discount, for days.",
}
"""Each command and what it does, in the order of the help. Its module is imported when it is called."""


def module_of(name: str) -> ModuleType:
    """The module of a command, with ``command`` and ``EXAMPLES``: that of its name, with underscores.

    After a keyword of Python, such as ``import``, it has one more.
    """
    module = name.replace("-", "_")
    return import_module(f"pairscale.cli.{module}_" if iskeyword(module) else f"pairscale.cli.{module}")


_START = """\b
Start here:
  pairscale demo                            see what comes out, in seconds
  pairscale rank essays/ --run run.db       your own texts, ranked adaptively
or step by step:
  pairscale pairs essays/ --out pairs.csv   your own texts, paired
  pairscale judge pairs.csv --run run.db    compared; stop and resume at will
  pairscale fit run.db                      scores, ranks and intervals

`pairscale COMMAND --help` explains a command and shows examples."""


_TERMINATED = 143

_FEWER_COLLECTIONS = (50_000, 20, 20)
"""Importing makes objects that stay; looking through them for garbage takes a seventh of what a short command does."""


class _Commands(dict[str, Any]):
    """The commands by name; each is built when it is asked for, so that one does not pay for the imports of all."""

    def __getitem__(self, name: str) -> Any:
        if super().__getitem__(name) is None:
            self[name] = _built(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default


class _CommandGroup(TyperGroup):
    """Imports commands when they are needed, and says that it was interrupted, which Typer does silently."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(dict.fromkeys(COMMANDS))

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as Typer calls it
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    # Typer imports pydantic to validate an option that was not given, except where its default is True or False.
    # So that the help of a command does not wait for it:

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] in COMMANDS:
            self.params = [one for one in self.params if one.name not in {"install_completion", "show_completion"}]
        return super().parse_args(ctx, args)

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(130) from None
        except SystemExit as stop:
            if stop.code == _TERMINATED:
                say("terminated")
                raise typer.Exit(_TERMINATED) from None
            # Not ours: the user's code called sys.exit(). Its code 0 would say that the work is done.
            say(f"error: the work was ended by sys.exit({'' if stop.code is None else repr(stop.code)})")
            raise typer.Exit(1) from None


class _Command(TyperCommand):
    """Takes a study file for DATA, keeps its settings in the run file, and writes DATA, not {DATA}, in the usage."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            validate_late(parameter)

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            validate_late(option)
        return option

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for before, text in zip(["--", *args], args, strict=False):
            if not text and (before == "--" or not before.startswith("-")):  # as a path, it would be this folder
                raise typer.BadParameter("an argument is empty; is a variable of your script not set?")
        own = {parameter.name for parameter in self.params}
        takes_data = any(p.name == "data" and p.param_type_name == "argument" for p in self.params)
        if takes_data and not ctx.resilient_parsing and any(text.endswith(".toml") for text in args):
            from pairscale.cli._study import read_study, require_types

            at = next(at for at, text in enumerate(args) if text.endswith(".toml"))
            path = Path(args[at])
            study = read_study(path, signature(module_of("rank").command).parameters)
            require_types(study, unwrap(self.callback), path)  # type: ignore[arg-type]
            ctx.meta["pairscale.study"] = path.name
            args = [*args[:at], study.pop("data"), *args[at + 1 :]]
            ctx.default_map = {name: value for name, value in study.items() if name in own}
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        from pairscale.cli._opening import READ

        READ.set(None)
        if not any(p.name == "run" and p.param_type_name == "option" for p in self.params):
            return super().invoke(ctx)
        from pairscale.cli._history import keeping_settings

        with keeping_settings(ctx.command_path.partition(" ")[2], ctx.params, ctx.meta.get("pairscale.study")):
            return super().invoke(ctx)


app = typer.Typer(
    name="pairscale",
    cls=_CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: it is fast, it pipes, and it fits any terminal
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_START,
)


def _built(name: str) -> Any:
    """A command, out of its module."""
    module = module_of(name)
    if name == "batch":
        return get_command(
            module.group(COMMANDS[name], _Command, name=name, rich_markup_mode=None, add_completion=False)
        )
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.command(
        name,
        cls=_Command,
        short_help=COMMANDS[name],
        epilog="\n".join(["\b", "Examples:", *(f"  {line}" for line in module.EXAMPLES)]),
    )(module.command)
    return get_command(alone)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"pairscale {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Which of two texts is better? Ask it often enough, and get a ranking that you can defend."""


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            complain("note", record.getMessage())
        else:
            say(printable(in_shell(record.getMessage())))


def main(args: Sequence[str] | None = None) -> None:
    """Run the command: exit code 0 done, 1 could not be done, 2 wrong usage, 130 interrupted, 143 terminated.

    Args:
        args: what stands behind ``pairscale``; by default, what the process was given.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*_FEWER_COLLECTIONS)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a letter that this terminal lacks or misspells must not end the work
            stream.reconfigure(errors="replace")
    log, notes = logging.getLogger("pairscale"), _Notes()
    before = log.level, log.propagate
    log.addHandler(notes)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        app(args=args, prog_name="pairscale")
    except PairscaleError as error:
        complain("error", error_line(error))
        sys.exit(1)
    except Exception as error:
        if os.environ.get("PAIRSCALE_DEBUG"):
            raise
        if isinstance(error, OSError) and error.strerror:
            _forget_output()
            complain("error", f"{error.filename or 'the output cannot be written'}: {error.strerror}")
        else:
            where = "PAIRSCALE_DEBUG=1 shows where; please report it"
            complain("error", f"{type(error).__name__}: {error} (unexpected: {where})")
        sys.exit(1)
    finally:
        gc.set_threshold(*thresholds)
        log.removeHandler(notes)
        log.setLevel(before[0])
        log.propagate = before[1]


def _forget_output() -> None:
    """Drop what standard output does not take, or Python would try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
