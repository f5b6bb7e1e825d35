"""``pairscale init``."""

from __future__ import annotations

from pathlib import Path

from pairscale.cli._common import say
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError


@from_verb("", "[FILE]")
def command(file: str = "study.toml", *, data: str = "essays", essays: int | None = None) -> None:
    """Write a study file: texts, judge, trait, limits, each with a comment.

    `pairscale rank FILE` runs it, and resumes it when it is called again. Every option of `pairscale rank` can be set
    in it; options on the command line override the file. Other commands that take DATA also take the file, and use
    what concerns them.

    No texts at hand? --essays 12 writes a dozen made-up ones, of known quality, into the folder DATA first.

    Args:
        file: The study file to write.
        data: The texts: a folder, or a table.
        essays: Write N made-up essays into DATA, to try it with.

    Examples:
        pairscale init
        pairscale init may.toml --data essays.csv
        pairscale init --essays 12
    """
    from pairscale.cli._study import TEMPLATE
    from pairscale.core.options import require_int, require_suffix

    path = require_suffix(file, "file", (".toml",))
    if path.exists():
        raise InputError(f"{file} already exists; name another file, or remove it first")
    if essays is not None:
        _write_essays(Path(data), require_int(essays, "essays", least=2, most=1000))
    quoted = data.replace("\\", "\\\\").replace('"', '\\"')
    path.write_text(TEMPLATE.format(name=path.name, data=quoted), "utf-8")
    say(f"written: {file}; check it, then run: pairscale rank {file}")


def _write_essays(folder: Path, count: int) -> None:
    """Made-up essays, a file each; never over another text."""
    from pairscale.datasets import synthetic_essays

    folder.mkdir(parents=True, exist_ok=True)
    for ID, text in synthetic_essays(count, seed=7).select("ID", "text").iter_rows():
        path = folder / f"{ID}.txt"
        if path.exists() and path.read_text("utf-8", errors="replace") != text:
            raise InputError(f"{path} holds another text already; name another folder by --data")
        path.write_text(text, "utf-8")
    say(f"written: {count} made-up essays in {folder}")
