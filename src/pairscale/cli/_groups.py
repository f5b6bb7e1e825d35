"""Options that commands have together: a group is one parameter of a command, and each of its fields is an option.

The classes have no more methods than they need: each is compiled whenever a command starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from pairscale.cli import _options as opt
from pairscale.cli._inputs import price_of, run_file, settings_of


@dataclass(frozen=True, eq=False, repr=False)
class Asking:
    """How a judge is asked."""

    concurrency: opt.Concurrency = 8
    retries: opt.Retries = 3
    timeout: opt.Timeout = 300.0
    max_cost: opt.MaxCost = None
    price: opt.PriceOption = None

    @property
    def limits(self) -> dict[str, Any]:
        """The arguments of the verb without the price, for a judge that is made and knows it."""
        return {name: getattr(self, name) for name in ("concurrency", "retries", "timeout", "max_cost")}

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the verb."""
        return {**self.limits, "price": None if self.price is None else price_of(self.price)}


@dataclass(frozen=True, eq=False, repr=False)
class Judging:
    """What a judge is asked, and how it is set."""

    trait: opt.TraitName = None
    template: opt.TemplateName = None
    judge_arg: opt.JudgeArgs = None
    base_url: opt.BaseUrl = None
    cache: opt.Cache = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the verb."""
        return {
            "trait": self.trait, "template": self.template, "judge_args": settings_of(self.judge_arg) or None,
            "base_url": self.base_url, "cache": self.cache,
        }  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """How texts are read."""

    id_col: opt.IdCol = None
    text_col: opt.TextCol = None
    encoding: opt.Encoding = None
    strict: opt.Strict = False
    skip_unreadable: opt.SkipUnreadable = False


@dataclass(frozen=True, eq=False, repr=False)
class ResultCols:
    """How a table of results is read."""

    a_col: opt.ACol = None
    b_col: opt.BCol = None
    winner_col: opt.WinnerCol = None
    encoding: opt.Encoding = None


@dataclass(frozen=True, eq=False, repr=False)
class ChartLook:
    """How a chart in a file looks."""

    width: Annotated[int | None, typer.Option(min=50, metavar="PIXELS", help="With --chart: its width.")] = None
    font_size: Annotated[
        float | None, typer.Option(min=4, metavar="PIXELS", help="With --chart: of names and numbers.")
    ] = None
    no_title: Annotated[bool, typer.Option("--no-title", help="With --chart: neither title nor notes.")] = False


@dataclass(frozen=True, eq=False, repr=False)
class Variants:
    """What is compared, and how often."""

    variant_a: Annotated[
        str | None,
        typer.Option(metavar="VARIANT", help="With a suite: provider:model, module:function, or a file of answers."),
    ] = None
    variant_b: Annotated[str | None, typer.Option(metavar="VARIANT", help="The same for B.")] = None
    prompt_a: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The prompt of a model that is A: a text, or a .txt file, with {input}."),
    ] = None
    prompt_b: Annotated[str | None, typer.Option(metavar="TEXT", help="The same for B.")] = None
    name_a: Annotated[str, typer.Option(metavar="NAME", help="What A is called.")] = "A"
    name_b: Annotated[str, typer.Option(metavar="NAME", help="What B is called.")] = "B"
    suite: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With recorded answers: the tasks that they belong to.")
    ] = None
    run: Annotated[
        str | None,
        typer.Option(metavar="FILE", callback=run_file, help="The run file; the same command resumes it."),
    ] = None
    swap: Annotated[
        bool, typer.Option("--swap/--no-swap", help="Ask judges in both orders; a win only when they agree.")
    ] = True
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="With a suite: answers of each to a task.")] = 1
    variant_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="With a suite: how long one answer of a variant may take before it has failed; by default no limit.",
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether there is anything to run, besides recorded answers."""
        return any((self.variant_a, self.variant_b, self.prompt_a, self.prompt_b))


@dataclass(frozen=True, eq=False, repr=False)
class AnswerCols:
    """The columns of recorded answers."""

    id_col: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column of the tasks' names, or its path in JSON, if not task_id."),
    ] = None
    input_col: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of the tasks, or its path in JSON, if not input.")
    ] = None
    output_col: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of the answers, or its path, if not output.")
    ] = None
    a_col: Annotated[
        str | None, typer.Option(metavar="NAME", help="With one file of both: the column of A's answers, or its path.")
    ] = None
    b_col: Annotated[str | None, typer.Option(metavar="NAME", help="The same for B.")] = None


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it, where a parameter that is a group stands for its fields.

    A default of a group is that group with other defaults of its fields, such as ``Asking(concurrency=1)``.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint) or not isinstance(hint, type):
            parameters.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = hint
        own = get_type_hints(hint, include_extras=True)
        defaults = hint() if parameter.default is Parameter.empty else parameter.default
        parameters += [
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=getattr(defaults, one.name), annotation=own[one.name])
            for one in fields(hint)
        ]

    def grouped(**given: Any) -> None:
        made = {name: kind(**{one.name: given.pop(one.name) for one in fields(kind)}) for name, kind in groups.items()}
        command(**given, **made)

    grouped.__name__, grouped.__doc__, grouped.__module__ = command.__name__, command.__doc__, command.__module__
    grouped.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    grouped.__annotations__ = {one.name: one.annotation for one in parameters}
    return grouped
