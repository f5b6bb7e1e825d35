"""The command: one file a command, each a thin face of the public functions."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pairscale._version import __version__
from pairscale.cli import (
    ab,
    agreement,
    audit,
    batch,
    bias,
    bias_study,
    check_judge,
    compare,
    cost,
    demo,
    doctor,
    fit,
    init,
    judge,
    label,
    pairs,
    plan,
    rank,
    report,
    simulate,
    simulate_providers,
    status,
    templates,
    traits,
    watch,
)
from pairscale.cli._common import complain, say
from pairscale.errors import PairscaleError

__all__ = ["COMMANDS", "app", "main", "name_of"]

COMMANDS = (
    demo, init, rank, pairs, judge, ab, label, agreement, compare, check_judge, cost, fit, bias, bias_study, simulate,
    plan, report, status, watch, audit, templates, traits, doctor, simulate_providers,
)  # fmt: skip
"""One module a command, in the order of the help: ``command``, ``SUMMARY`` and ``EXAMPLES``."""


def name_of(module: ModuleType) -> str:
    """The name of a module's command: that of the module, with dashes."""
    return module.__name__.rpartition(".")[2].replace("_", "-")


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


class _Group(TyperGroup):
    """Says that it was interrupted, which Typer does silently."""

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
            raise


class _Command(TyperCommand):
    """Takes a study file for DATA, keeps its settings in the run file, and writes DATA, not {DATA}, in the usage."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {parameter.name for parameter in self.params}
        takes_data = any(p.name == "data" and p.param_type_name == "argument" for p in self.params)
        if takes_data and not ctx.resilient_parsing and any(text.endswith(".toml") for text in args):
            from pairscale.cli._study import read_study

            at = next(at for at, text in enumerate(args) if text.endswith(".toml"))
            study = read_study(Path(args[at]), signature(rank.command).parameters)
            ctx.meta["pairscale.study"] = Path(args[at]).name
            args = [*args[:at], study.pop("data"), *args[at + 1 :]]
            ctx.default_map = {name: value for name, value in study.items() if name in own}
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        if not any(p.name == "run" and p.param_type_name == "option" for p in self.params):
            return super().invoke(ctx)
        from pairscale.cli._history import keeping_settings

        with keeping_settings(ctx.command_path.partition(" ")[2], ctx.params, ctx.meta.get("pairscale.study")):
            return super().invoke(ctx)


app = typer.Typer(
    name="pairscale",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: it is fast, it pipes, and it fits any terminal
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_START,
)
for _module in COMMANDS:
    app.command(
        name_of(_module),
        cls=_Command,
        short_help=_module.SUMMARY,
        epilog="\n".join(["\b", "Examples:", *(f"  {line}" for line in _module.EXAMPLES)]),
    )(_module.command)
app.add_typer(batch.group(_Command, rich_markup_mode=None), name="batch", short_help=batch.SUMMARY)


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
        complain("note", record.getMessage())


def main(args: Sequence[str] | None = None) -> None:
    """Run the command: exit code 0 done, 1 could not be done, 2 wrong usage, 130 interrupted, 143 terminated.

    Args:
        args: what stands behind ``pairscale``; by default, what the process was given.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a letter that this terminal lacks must not end the work
            stream.reconfigure(errors="replace")
    log, notes = logging.getLogger("pairscale"), _Notes()
    before = log.level, log.propagate
    log.addHandler(notes)
    log.setLevel(logging.WARNING)
    log.propagate = False
    try:
        app(args=args, prog_name="pairscale")
    except PairscaleError as error:
        complain("error", str(error))
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
        log.removeHandler(notes)
        log.setLevel(before[0])
        log.propagate = before[1]


def _forget_output() -> None:
    """Drop what standard output does not take, or Python would try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
