"""``pairscale init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairscale.cli._common import say
from pairscale.core.errors import InputError

EXAMPLES = (
    "pairscale init",
    "pairscale init may.toml --data essays.csv",
    "pairscale init --essays 12",
    "pairscale init again.toml --from run.db",
)


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study file to write.")] = Path("study.toml"),
    data: Annotated[str, typer.Option(metavar="DATA", help="The texts: a folder, or a table.")] = "essays",
    essays: Annotated[
        int | None, typer.Option(min=2, max=1000, metavar="N", help="Write N made-up essays into DATA, to try it with.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Write the settings that this run file was made with.")
    ] = None,
) -> None:
    """Write a study file: texts, judge, trait, limits, each with a comment.

    `pairscale rank FILE` runs it, and resumes it when it is called again. Every option of `pairscale rank` can be set
    in it; options on the command line override the file. Other commands that take DATA also take the file, and use
    what concerns them.

    No texts at hand? --essays 12 writes a dozen made-up ones, of known quality, into the folder DATA first.

    A run file remembers the settings that it was made with, without keys; --from writes them as a study file.
    """
    from pairscale.cli._history import study_of
    from pairscale.cli._study import TEMPLATE

    if file.suffix.lower() != ".toml":
        raise InputError(f"{file}: a study file ends in .toml")
    if file.exists():
        raise InputError(f"{file} already exists; name another file, or remove it first")
    if essays is not None:
        _write_essays(Path(data), essays)
    if source is not None:
        content = study_of(source, file)
    else:
        content = TEMPLATE.format(name=file.name, data=data.replace("\\", "\\\\").replace('"', '\\"'))
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(content)
    except FileExistsError:
        raise InputError(f"{file} already exists; name another file, or remove it first") from None
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
    say(f"written: {file}; check it, then run: pairscale rank {file}")


def _write_essays(folder: Path, count: int) -> None:
    """Made-up essays, a file each; never over another text."""
    from pairscale.datasets import synthetic_essays

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for ID, text in synthetic_essays(count, seed=7).select("ID", "text").iter_rows():
            path = folder / f"{ID}.txt"
            if not path.exists():
                path.write_text(text, "utf-8")
            elif path.read_text("utf-8", errors="replace") != text:
                raise InputError(f"{path} holds another text already; name another folder by --data")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}") from None
    say(f"written: {count} made-up essays in {folder}")
