"""``pairscale init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairscale.cli._common import say
from pairscale.errors import InputError

__all__ = ["EXAMPLES", "SUMMARY", "command"]

SUMMARY = "Write a commented study file that `pairscale rank` runs."
EXAMPLES = ("pairscale init", "pairscale init may.toml --data essays.csv")


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study file to write.")] = Path("study.toml"),
    data: Annotated[str, typer.Option(metavar="DATA", help="The texts: a folder, or a table.")] = "essays",
) -> None:
    """Write a study file: texts, judge, trait, limits, each with a comment.

    `pairscale rank FILE` runs it, and goes on with it when it is called again. Every option of `pairscale rank` may
    stand in it; one on the line wins over the file's. Other commands that take DATA take the file, too, and use what
    concerns them.
    """
    from pairscale.cli._study import TEMPLATE

    if file.suffix.lower() != ".toml":
        raise InputError(f"{file}: a study file ends in .toml")
    content = TEMPLATE.format(name=file.name, data=data.replace("\\", "\\\\").replace('"', '\\"'))
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(content)
    except FileExistsError:
        raise InputError(f"{file} is there already; name another file, or remove it first") from None
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
    say(f"written: {file}; look it over, then: pairscale rank {file}")
