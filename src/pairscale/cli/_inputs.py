"""What commands take: a run file, a judge and its settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

import pairscale as ps
from pairscale.cli._common import say
from pairscale.core.errors import InputError
from pairscale.core.options import read_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairscale.cli._groups import Judging


def run_file(run: str | None) -> str | None:
    """A run file under the name of a table would be read as one by `pairscale fit`."""
    if run is None:
        return None
    from pairscale.core.files import TABLE_SUFFIXES

    if run.lower().endswith(TABLE_SUFFIXES):
        raise InputError(f"--run {run}: that is the ending of a table; call the run file run.db, and see --save-path")
    return run


def make_named_judge(
    judge: str, judging: Judging, price: str | None = None, answer: Literal["winner", "probability"] = "winner"
) -> ps.Judge:
    """A judge by its name, with the settings that the options give."""
    from pairscale.judges.build import judge_with

    return judge_with(judge, **judging.arguments, price=None if price is None else price_of(price), answer=answer)


def settings_of(given: Sequence[str] | None) -> dict[str, Any]:
    """The settings that ``--judge-arg`` gives."""
    return dict(read_setting(text) for text in given or [])


def price_of(price: str) -> dict[str, Any]:
    """The prices that ``--price`` gives: a text, or the name of a JSON file."""
    if "=" in price:
        parts = dict(read_setting(part.strip(), "--price") for part in price.split(","))
        if not {"input", "output"} <= set(parts) <= {"input", "output", "cached", "batch"}:
            raise InputError(f"--price {price!r} must look like input=1.25,output=10, also with cached= and batch=")
        return parts
    try:
        found = json.loads(Path(price).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"--price {price}: {error.strerror}; write input=1.25,output=10, or name a file") from None
    except ValueError as error:
        raise InputError(f"--price {price} is not JSON: {error}") from None
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
        raise InputError(f"--dry-run shows what a model would be sent; {judge.condition.judge_id} is not a model")
    sides = [{"ID": pair[f"ID{side}"], "text": pair[f"text{side}"]} for side in "12"]
    question = ps.JudgePair(sides[0], sides[1])
    address, body = judge.preview(question)
    prompt = judge.request(question).prompt  # type: ignore[attr-defined]
    if as_json:
        typer.echo(json.dumps({"calls": calls, "address": address, "body": body, "prompt": prompt}, indent=2))
        return
    typer.echo(f"{calls:,} calls to {address}, nothing was sent; the first:\n")
    typer.echo(json.dumps(body, indent=2, ensure_ascii=False))
