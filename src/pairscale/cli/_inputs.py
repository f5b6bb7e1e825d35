"""What commands take: results, pairs or samples, a run file, settings of a judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pairscale as ps
from pairscale.cli import _names
from pairscale.cli._common import say
from pairscale.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from pairscale.store import RunFile

__all__ = [
    "BaseUrl",
    "Cache",
    "DryRun",
    "JudgeArgs",
    "JudgeName",
    "PriceOption",
    "TemplateName",
    "TraitName",
    "condition_of",
    "make_named_judge",
    "price_of",
    "read_pairs",
    "read_results",
    "run_file",
    "say_reused",
    "setting",
    "show_request",
]


def read_results(source: str, condition: str | None) -> tuple[pl.DataFrame, list[str] | None]:
    """Results from a table, or from a run file under one condition; then also the ids of all samples."""
    from pairscale.files import TABLE_SUFFIXES, read_table

    if Path(source).suffix.lower() in TABLE_SUFFIXES:
        if condition is not None:
            raise InputError("--condition belongs to run files; a table of results has no conditions to choose from")
        table = read_table(source)
        if "ID1" in table.columns and not {"better_id", "better_sample"} & set(table.columns):
            raise InputError(f"{source} holds pairs without answers; `pairscale judge {source} --run FILE` gets them")
        return table, None
    with ps.open_run(source) as store:
        return store.results(condition_of(store, condition)), store.items()["ID"].to_list()


def condition_of(store: RunFile, wanted: str | None) -> str | None:
    """The condition that is meant by a judge's name or the beginning of an id; None for all together."""
    conditions = store.conditions()
    if conditions.height == 0:
        raise InputError("the run file holds no comparisons yet; `pairscale judge` makes them")
    if wanted == "all":
        say("note: the answers of all conditions are fitted together")
        return None
    found = [
        row["condition_id"]
        for row in conditions.iter_rows(named=True)
        if wanted is None or row["judge_id"] == wanted or row["condition_id"].startswith(wanted)
    ]
    if len(found) == 1:
        return str(found[0])
    there = "; ".join(f"{row['judge_id']} ({row['condition_id'][:8]})" for row in conditions.iter_rows(named=True))
    if not found:
        raise InputError(f"no condition is called {wanted!r}; there are: {there}")
    raise InputError(
        f"the run file holds several conditions; choose one by --condition {found[0][:8]}, or --condition all: {there}"
    )


def read_pairs(
    data: Path, id_col: str | None, text_col: str | None, encoding: str | None
) -> tuple[pl.DataFrame, list[str] | None]:
    """The pairs, and the ids of all samples where DATA is samples."""
    from pairscale.files import TABLE_SUFFIXES, read_table
    from pairscale.pairs._table import as_pairs

    if data.suffix.lower() in TABLE_SUFFIXES and not data.is_dir() and id_col is None:
        table = read_table(data, encoding=encoding)
        if {"ID1", "ID2"} <= set(table.columns):
            return as_pairs(table), None
        if table.width < 2:
            raise InputError(f"{data} has one column, {table.columns[0]!r}; it needs one of ids and one of texts")
    samples = ps.read_samples(data, id_col=id_col, text_col=text_col, encoding=encoding)
    return ps.make_pairs(samples), samples["ID"].to_list()


def run_file(run: str | None) -> str | None:
    """A run file under the name of a table would be read as one by `pairscale fit`."""
    if run is None:
        return None
    from pairscale.files import TABLE_SUFFIXES

    if run.lower().endswith(TABLE_SUFFIXES):
        raise InputError(f"--run {run}: that is the ending of a table; call the run file run.db, and see --save-path")
    return run


BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Where the provider is, such as http://localhost:8000/v1.")
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        metavar="PRICE",
        help="US dollars per million tokens: input=1.25,output=10, also cached= and batch=; or a JSON file "
        "of prices. By default the dated table.",
    ),
]
JudgeName = Annotated[str, typer.Option(metavar="JUDGE", autocompletion=_names.judges, help="As in `pairscale judge`.")]
TraitName = Annotated[
    str | None,
    typer.Option(metavar="NAME", autocompletion=_names.traits, help="What to judge; `pairscale traits` lists them."),
]
TemplateName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_names.templates,
        help="Prompt template, a name or a .txt file; `pairscale templates`.",
    ),
]
JudgeArgs = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the judge; may stand several times.")
]
Cache = Annotated[
    bool | None,
    typer.Option(
        "--cache/--no-cache",
        help="Use answers of earlier runs to the same request again, for nothing; by default for temperature 0.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the first request and the number of calls; ask nothing.")]


def make_named_judge(
    judge: str,
    trait: str | None,
    template: str | None,
    given: Sequence[str] | None,
    base_url: str | None = None,
    cache: bool | None = None,
    price: str | None = None,
) -> ps.Judge:
    """A judge by its name; settings go to a model or an embedded judge itself, and to every call of a function."""
    from pairscale.providers.registry import PROVIDERS

    settings: dict[str, Any] = dict(setting(text) for text in given or [])
    kind = judge.partition(":")[0]
    prices = None if price is None else price_of(price)
    for name, option, value in (
        ("base_url", "--base-url", base_url), ("cache", "--cache", cache), ("price", "--price", prices),
    ):  # fmt: skip
        if value is not None:
            if kind not in PROVIDERS:
                raise InputError(f"{option} belongs to a provider's model, such as compatible:MODEL, not to {judge}")
            settings[name] = value
    own = kind not in {"lexical", "simulated", "replay", "human", *PROVIDERS}
    return ps.make_judge(
        judge,
        trait=trait,
        template=template,
        judge_args={key: value for key, value in settings.items() if not own or key == "name"},
        judge_call_args={key: value for key, value in settings.items() if own and key != "name"},
    )


def price_of(price: str) -> dict[str, Any]:
    """The prices that ``--price`` gives: a text, or the name of a JSON file."""
    if "=" in price:
        parts = dict(setting(part.strip(), "--price") for part in price.split(","))
        if not {"input", "output"} <= set(parts) <= {"input", "output", "cached", "batch"}:
            raise InputError(f"--price {price!r} must look like input=1.25,output=10, also with cached= and batch=")
        return parts
    try:
        found = json.loads(Path(price).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"--price {price}: {error.strerror}; write input=1.25,output=10, or name a file") from None
    except ValueError as error:
        raise InputError(f"--price {price} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f'--price {price} must hold {{"input": …, "output": …}}, or a table {{"prices": […]}}')
    return found


def say_reused(judge: ps.Judge) -> None:
    """How many answers came from the cache, if any did, and what that saved."""
    reused = getattr(judge, "reused", None)
    if reused is not None and reused.answers:
        say(str(reused))


def show_request(judge: ps.Judge, pair: dict[str, Any], *, calls: int, as_json: bool) -> None:
    """What would be sent for the first pair, and how often something would be."""
    if not hasattr(judge, "preview"):
        raise InputError(f"--dry-run shows what a model would be sent; {judge.condition.judge_id} is no model")
    sides = [{"ID": pair[f"ID{side}"], "text": pair[f"text{side}"]} for side in "12"]
    question = ps.JudgePair(sides[0], sides[1])
    address, body = judge.preview(question)
    prompt = judge.request(question).prompt  # type: ignore[attr-defined]
    if as_json:
        typer.echo(json.dumps({"calls": calls, "address": address, "body": body, "prompt": prompt}, indent=2))
        return
    typer.echo(f"{calls:,} calls to {address}, nothing was sent; the first:\n")
    typer.echo(json.dumps(body, indent=2, ensure_ascii=False))


def setting(text: str, option: str = "--judge-arg") -> tuple[str, float | int | str]:
    """A setting, ``name=value``; the value is a number, or true or false, where it looks like one."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"{option} {text!r} must look like name=value, such as bias=0.3")
    if value.lower() in {"true", "false"}:
        return name, value.lower() == "true"
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
