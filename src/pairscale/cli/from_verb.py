"""Commands made from verbs: a Python function's signature gives the options, its docstring gives their help.

The source is parsed instead of imported, so that the help of a command does not wait for the packages it needs. What a
command adds to its verb are parameters of its own function; where both have one of the same name, the command's holds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairscale.core.options import FilePath

_SOURCE = Path(__file__).parents[1]
_METAVARS = {"int": "N", "float": "X", "path": "FILE", "text": "TEXT", "mapping": "NAME=VALUE"}
_FLAGS = {"judge_args": "--judge-arg", "as_json": "--json"}
NOT_IN_SHELL = "arguments emit retries owner_token on_look on_again tell save n_boot".split()
"""Parameters that no command has: what a command hands on itself, and what is for programs."""
_ENTRY = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Option:
    """An option or an argument of a command.

    Attributes:
        name: The parameter in Python.
        flag: What the shell calls it: ``--judge-arg``, or ``DATA`` for an argument.
        help: One sentence or more.
        default: The default of the function.
        is_required: Whether there is no default.
        kind: ``flag``, ``int``, ``float``, ``path``, ``text`` or ``mapping``.
        choices: All values that are allowed, where these are few.
        is_several: Whether it may be repeated.
        has_commas: Whether several values are given with commas.
    """

    name: str
    flag: str
    help: str
    default: Any
    is_required: bool
    kind: str = "text"
    choices: tuple[str, ...] = ()
    is_several: bool = False
    has_commas: bool = False

    @property
    def is_argument(self) -> bool:
        """Whether it is given without a flag."""
        return not self.flag.startswith("-")

    @property
    def key(self) -> str:
        """Its name in study files and run files."""
        return self.flag.strip("-").replace("-", "_").lower()

    @property
    def metavar(self) -> str:
        """What stands for the value in the help."""
        return "|".join(self.choices) or _METAVARS.get(self.kind, "VALUE")


@dataclass(frozen=True)
class Command:
    """A command of the shell.

    Attributes:
        function: Shows the result, and returns an exit code other than 0; takes the verb's ``arguments`` where there is
            a verb, ``emit`` where there is a result to write, and the options of the shell alone.
        verb: The public function, as ``module.function`` within the package; several of them, or none.
        usage: The arguments that are given without a flag, as the help shows them: ``A [B]`` or ``RUN...``.
        hidden: Parameters of the verb that the shell does not have.
    """

    function: Callable[..., int | None]
    verb: str
    usage: str
    hidden: str

    @cached_property
    def own(self) -> _Function:
        """The function of the command."""
        return _Function(self.function.__module__.removeprefix("pairscale."), self.function.__name__)

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Arguments and options: those of the shell, those of the verb, and where the result goes."""
        verbs = [_Function(*verb.rsplit(".", 1)) for verb in self.verb.split()]
        if "emit" in self.own.parameters:
            verbs.append(_Function("cli.from_verb", "output_options"))
        helps = _Function("cli.from_verb", "shared_options").helps | self.own.helps
        options: dict[str, Option] = {}
        for function in (self.own, *verbs):
            for option in self._options(function, function.helps | helps):
                options.setdefault(option.name, option)
        return tuple(sorted(options.values(), key=lambda option: not option.is_argument))

    def _options(self, function: _Function, helps: dict[str, str]) -> Iterator[Option]:
        arguments = {word.strip("[].").lower(): word for word in self.usage.split()}
        flags = {name: f"--{name.strip('_').replace('_', '-')}" for name in function.parameters} | _FLAGS
        flags |= {name: name.upper() for name in arguments}
        for name, (annotation, default) in function.parameters.items():
            value = None if default is None else function.value(default)
            if name in NOT_IN_SHELL or name in self.hidden.split() or (name == "progress" and isinstance(value, bool)):
                continue
            text = re.sub(r"``(\w+)``", lambda match: flags.get(match[1], match[1]), helps.get(name, ""))
            kind = function.kind_of(annotation)
            if name in arguments:
                kind = {"is_several": "..." in arguments[name]}
            elif isinstance(value, str):
                kind["is_several"] = False  # several judges are given with commas
            text = re.sub(r":\w+:`~?([\w.]+)`", r"\1", text.replace("``", ""))
            yield Option(name, flags[name], text, value, default is None, **kind)


def from_verb(verb: str, usage: str, *, hidden: str = "") -> Callable[[Callable[..., int | None]], Command]:
    """Make a command of the function that shows its result; see :class:`Command`."""
    return lambda function: Command(function, verb, usage, hidden)


def output_options(*, as_json: bool = False, out: FilePath | None = None) -> None:
    """Where the result goes.

    Args:
        as_json: One JSON document on standard output, nothing else there.
        out: Write the whole table to this file: csv, tsv, jsonl, json, parquet or xlsx, by its ending.
    """


def shared_options() -> None:
    """What the shell says of options that several verbs have, where Python takes more than a text.

    Args:
        judge: provider:model (openai:gpt-5.1, anthropic:…, gemini:…, together:…, ollama:…, compatible:…), lexical
            (embedded, a baseline), simulated:COLUMN (known truth), replay:FILE (recorded answers), human (people), or
            module:function (yours, also from this folder).
        trait: What to judge; `pairscale traits` lists the built-in ones.
        template: Prompt template, a name or a .txt file; `pairscale templates` lists them.
        judge_args: A setting of the judge; can be repeated.
        price: US dollars per million tokens: input=1.25,output=10, also cached= and batch=. By default the dated table.
        timeout: Seconds that one answer may take.
        id_col: The column of ids, or its path in JSON (meta.id); by default ID, or the only candidate.
        text_col: The column of texts, or its path in JSON; by default text, or the only column of long texts.
        progress: What to show: all, refits, steps, line or none.
        n_jobs: Processes to spread the work over; -1 for all cores. The results are the same.
    """


@cache
def _parsed(module: str) -> ast.Module:
    """The syntax tree of a module of the package."""
    path = _SOURCE.joinpath(*module.split("."))
    file = path.with_suffix(".py")
    return ast.parse((file if file.exists() else path / "__init__.py").read_text("utf-8"))


def _constant(name: str, module: str) -> ast.expr | None:
    """What a name stands for in a module, also where it is imported; None for a class, a function or a library's."""
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            package, _, rest = str(node.module).partition(".")
            return _constant(name, rest) if package == "pairscale" else None
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if ast.unparse(target) == name:
                return node.value
    return None


class _Function:
    """A function of the package as its source has it.

    Attributes:
        help: The docstring before its arguments.
        examples: Of a command, the lines of its help.
        helps: Its arguments, explained.
        parameters: Annotation and default of each; no default where it is required.
    """

    def __init__(self, module: str, name: str) -> None:
        node = next(node for node in _parsed(module).body if isinstance(node, ast.FunctionDef) and node.name == name)
        self.module = module
        text, _, examples = (ast.get_docstring(node) or "").partition("\nExamples:\n")
        self.examples = [line.strip() for line in examples.splitlines()]
        self.help, _, rest = text.partition("\nArgs:\n")
        arguments = re.split(r"^\w+:$", rest, flags=re.MULTILINE)[0]
        self.helps = {name: " ".join(text.split()) for name, text in _ENTRY.findall(arguments)}
        required = [None] * (len(node.args.args) - len(node.args.defaults))
        defaults = [*required, *node.args.defaults, *node.args.kw_defaults]
        parameters = zip([*node.args.args, *node.args.kwonlyargs], defaults, strict=True)
        self.parameters = {parameter.arg: (parameter.annotation, default) for parameter, default in parameters}

    def value(self, default: ast.expr) -> Any:
        """The value of a default; None for a function."""
        node = _constant(default.id, self.module) if isinstance(default, ast.Name) else default
        return None if node is None else ast.literal_eval(node)

    def kind_of(self, annotation: Any) -> dict[str, Any]:
        """What an annotation says of an option: its kind, the choices, and whether it may be repeated."""
        text = re.sub(r"\b[A-Z]\w*", self._written_out, ast.unparse(annotation))
        choices = tuple(re.findall(r"'([\w-]+)'", text))
        types = {*re.findall(r"\w+", re.sub(r"'[\w-]+'", "", text))}
        numbers = types & {"int", "float"}
        is_several = bool(types & {"Sequence", "list", "Mapping"}) and not (numbers and "str" in types)
        has_commas = is_several and bool(numbers or choices or "str" not in types)
        kind = "text"
        if "Mapping" in types and "Sequence" not in types:
            kind = "mapping"
        elif "bool" in types:
            kind = "flag"
        elif types & {"Path", "PathLike", "FilePath"}:
            kind = "path"
        elif numbers and "str" not in types:
            kind = max(numbers)
        shown = () if has_commas else choices
        return {"kind": kind, "choices": shown, "is_several": is_several, "has_commas": has_commas}

    def _written_out(self, name: re.Match[str]) -> str:
        """What a name stands for, where that is a few words."""
        value = ast.unparse(_constant(name[0], self.module) or ast.Name(name[0]))
        return value if "Literal[" in value else name[0]
