"""The command: one file per command, each made from a verb and holding what its result looks like on a screen."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING, Final

from pairscale._version import __version__
from pairscale.cli._common import Arguments, Output, complain, error_line, in_shell, say
from pairscale.core.errors import InputError, PairscaleError

if TYPE_CHECKING:
    from pairscale.cli.from_verb import Command

__all__ = ["BATCH", "COMMANDS", "GROUPS", "load", "main"]

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Rank and mark": {
        "demo": "Rank the bundled texts with the embedded judge: no key, no network.",
        "rank": "Rank texts adaptively: asks where it matters, stops when the ranking is reliable.",
        "trust": "How far can a ranking be trusted? The judge's scale against a few answers of people.",
        "grade": "Marks and levels from a ranking, by known texts, quotas or boundary texts.",
        "fit": "Turn comparisons into scores, ranks, intervals and a reliability.",
        "report": "Write a run as one HTML page: what was found, texts, judge, cost, method.",
        "init": "Write a commented study file that `pairscale rank` runs.",
        "pairs": "Make pairs of texts: all of them or a part, in random order.",
        "judge": "Have pairs judged; stop and resume as you like.",
    },
    "Compare and gate": {
        "ab": "Is B better than A? Compare two prompts, models or agents task by task.",
        "best": "Which of n candidates is the best? Within a number of comparisons that you name.",
        "gate": "May B take the place of A? A verdict for CI, by exit code, at the least cost.",
        "compare": "Ask a judge about one pair of texts.",
    },
    "People": {
        "label": "Have people label pairs, blinded, in the browser or in the terminal.",
        "agreement": "Do labellers agree? Percent, kappa, alpha and AC1, with intervals.",
    },
    "Judges and costs": {
        "check-judge": "Is a judge valid, consistent, unbiased, in line with people, and at what price?",
        "cost": "Estimate what judging pairs will cost, from a small pilot or offline.",
        "batch": "Judge through the providers' batch APIs, at a discount, for days.",
        "bias": "Tell whether a judge favours the first or the second position.",
        "templates": "List the prompt templates, show or check one.",
        "traits": "List what texts can be judged on.",
        "prices": "List the prices of models with their sources and dates, or add your own.",
        "providers": "List the providers and what their models take, or add your own.",
        "doctor": "Check versions, extras and keys.",
    },
    "Run files": {
        "status": "Show where a run stands: answers, failures, attempts, cost.",
        "audit": "Check that nothing in a run file was changed, and replay an adaptive run.",
        "watch": "Show a run live in the browser.",
        "export": "Write a run to a table: its comparisons, or preference pairs for training.",
        "import": "Enter a table of comparisons into a run file.",
    },
    "Laboratory": {
        "plan": "How many comparisons will I need, what will they cost, how long will they take?",
        "simulate": "Try ways of choosing pairs on simulated judges whose truth is known.",
        "bias-study": "Find the prompt template that lets the position sway judges least.",
        "simulate-providers": "Play the providers on this machine: rehearse a study without paying.",
    },
}
"""Each command and what it does, by the person who needs it. Its module is imported when it is called."""

COMMANDS: Final[Mapping[str, str]] = {name: words for group in GROUPS.values() for name, words in group.items()}
"""Each command and what it does."""

BATCH: Final[Mapping[str, str]] = {
    "submit": "Create the batches that pairs need.",
    "status": "Show the batches of a run.",
    "collect": "Take in the batches that have ended.",
    "resume": "Wait for all batches, and take them in.",
    "cancel": "Ask for the end of batches.",
}
"""The commands of ``pairscale batch``."""

_FIRST = "demo rank fit report ab gate label agreement check-judge cost status audit".split()
"""The commands that the first screen explains."""

_TERMINATED = 143

_START = """\
Start here:
    pairscale demo                            see the result, in seconds
    pairscale rank essays/ --run run.db       your own texts, ranked adaptively
or step by step:
    pairscale pairs essays/ --out pairs.csv   your own texts, paired
    pairscale judge pairs.csv --run run.db    compared; stop and resume at will
    pairscale fit run.db                      scores, ranks and intervals

`pairscale COMMAND --help` explains a command and shows examples."""


def load(name: str) -> Command:
    """A command by its name, such as ``rank`` or ``batch submit``; its module is imported."""
    first, _, part = name.partition(" ")
    module = first.replace("-", "_")
    if iskeyword(module):
        module += "_"
    return getattr(import_module(f"pairscale.cli.{module}"), part or "command")  # type: ignore[no-any-return]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command: exit code 0 done, 1 could not be done, 2 wrong usage, 130 interrupted, 143 terminated.

    Args:
        args: what stands behind ``pairscale``; by default, what the process was given.
    """
    gc.set_threshold(50_000, 20, 20)  # importing makes objects that stay; looking through them takes long
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a letter that this terminal lacks or misspells must not end the work
            stream.reconfigure(errors="replace")
    with _notes_on_screen():
        try:
            code = _run([*map(str, sys.argv[1:] if args is None else args)])
            sys.stdout.flush()
        except KeyboardInterrupt as stop:
            code = 130
            if not hasattr(stop, "is_told"):
                say("interrupted")
        except SystemExit as stop:
            code = _TERMINATED
            if stop.code != _TERMINATED:  # by the user's code; its code 0 would say that the work is done
                code = 1
                say(f"error: the work was ended by sys.exit({stop.code})")
        except PairscaleError as error:
            code = 1
            complain("error", error_line(error))
        except OSError as error:
            code = 1
            _forget_output()
            if not isinstance(error, BrokenPipeError):  # its reader has gone
                complain("error", f"{error.filename or 'the output cannot be written'}: {error.strerror or error}")
        except Exception as error:
            if os.environ.get("PAIRSCALE_DEBUG"):
                raise
            code = 1
            where = "PAIRSCALE_DEBUG=1 shows where; please report it"
            complain("error", f"{type(error).__name__}: {error} (unexpected: {where})")
    sys.exit(code)


def _run(args: list[str]) -> int:
    """Find the command and run it, or show help."""
    name, *rest = args or [""]
    if name in ("", "-h", "--help"):
        print(_overview(), file=sys.stdout if name else sys.stderr)
        return 0 if name else 2
    if name == "--version":
        print(f"pairscale {__version__}")
        return 0
    if name == "batch":
        part = rest.pop(0) if rest else "--help"
        if part in ("-h", "--help"):
            rows = [_row(part, words) for part, words in BATCH.items()]
            print("\n".join([f"usage: pairscale batch COMMAND\n\n{COMMANDS['batch']}\n", *rows]))
            return 0
        name = f"batch {part}"
    if name in COMMANDS or name in {f"batch {part}" for part in BATCH}:
        return _call(name, rest)
    say(f"usage: pairscale [OPTIONS] COMMAND\nerror: there is no command {name!r}; `pairscale --help` lists them")
    return 2


def _call(name: str, args: list[str]) -> int:
    """Read the options of a command, let it work, and keep its settings in the run file."""
    from pairscale.cli._history import keeping_settings
    from pairscale.cli._parser import Parser, UsageError, converted
    from pairscale.cli._study import with_study

    command = load(name)
    parser = Parser(name, command)
    if {"-h", "--help"} & {*args}:
        print(parser.format_help().rstrip())
        return 0
    flags = {option.name: option.flag for option in command.options}
    try:
        args, study = with_study(args, command)
        settings = parser.read(args)
        arguments = {option.name: converted(option, settings[option.name]) for option in command.options}
        run = None if "RUN" in command.usage else settings.get("run")
        kept = {option.key: settings[option.name] for option in command.options}
        with keeping_settings(name, run, kept, study):
            return _work(command, arguments)
    except UsageError as error:
        say(f"{parser.format_usage()}error: {error}")
        return 2
    except InputError as error:
        if type(error) is not InputError or error.argument not in flags:
            raise
        complain("error", error_line(error, flags[error.argument]))
        return 2


def _work(command: Command, arguments: Arguments) -> int:
    """Call the function of a command."""
    own = {name: arguments.pop(name) for name in command.own.parameters if name in arguments}
    if "emit" in command.own.parameters:
        own["emit"] = Output(arguments.pop("as_json"), arguments.pop("out", None))
    if not command.verb:
        return command.function(**own) or 0
    with contextlib.redirect_stdout(sys.stderr):  # what a function of the user's prints is no part of the result
        return command.function(**own, arguments=arguments) or 0


def _overview() -> str:
    """The first screen: the most used commands of each group, and the names of the others."""
    lines = [
        "usage: pairscale [OPTIONS] COMMAND [ARGS]...\n",
        "Which of two texts is better? Ask it often enough,\nand get a ranking that you can defend.",
    ]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(_row(name, words) for name, words in group.items() if name in _FIRST)]
        others = ", ".join(name for name in group if name not in _FIRST)
        if others:
            lines.append(_row("also", others))
    lines += ["", "Options:", _row("--version", "Show the version and exit."), _row("-h, --help", "Show this message.")]
    return "\n".join([*lines, "", _START])


def _row(name: str, words: str) -> str:
    """A name and what it means, below each other where they do not fit into a line."""
    from pairscale.cli._parser import help_width

    indent = " " * 16
    return textwrap.fill(words, help_width(), initial_indent=f"  {name:<14}", subsequent_indent=indent)


@contextlib.contextmanager
def _notes_on_screen() -> Iterator[None]:
    """Show what the package logs."""
    log = logging.getLogger("pairscale")
    notes = _Notes()
    before = log.level, log.propagate
    log.addHandler(notes)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(notes)
        log.setLevel(before[0])
        log.propagate = before[1]


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            complain("note", record.getMessage())
        else:
            say(in_shell(record.getMessage()))


def _forget_output() -> None:
    """Drop what standard output does not take, or Python would try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
