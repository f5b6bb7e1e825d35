"""Where the figures of a run file come from: who made it, and the command that last wrote to it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pairscale.store.audit import closing_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pairscale.store.runfile import RunFile

_SETTINGS = "settings"
RESULTS_READ = "read"
"""What was read of results that are in no run file."""
_COVERED = (
    "It covers every text, question, answer, cost and log of the run file: if you keep it elsewhere, "
    "pairscale audit RUN --digest DIGEST finds any later change."
)
_OPEN = "none yet: the run file is being written, or its process was killed"


def moment(at: object) -> str:
    """A time as it is shown."""
    return f"{str(at)[:16].replace('T', ' ')} UTC"


def origin_of(store: RunFile) -> dict[str, str]:
    """Who made a run file and when; and the last command with every setting that held, where one is known."""
    known = {"run file made by": f"{store.get_meta('created_by')}, {moment(store.get_meta('created_at'))}"}
    digest = closing_of(store)
    known["digest"] = _OPEN if digest is None else f"{digest}. {_COVERED}"
    for row in store.read_log("commands", last=1):
        known["last command"] = f"pairscale {row['command']}, version {row['version']}, {moment(row['at'])}"
        known[_SETTINGS] = "; ".join(
            f"{name} = {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in row["settings"].items()
            if value not in ([], "", None)
        )
        if row["command"] == "rank" and Path(store.name).is_file():
            name = shlex.quote(Path(store.name).name)
            known["to repeat it"] = f"pairscale init study.toml --from {name}, then pairscale rank study.toml"
    return known


def without_settings(provenance: Mapping[str, str]) -> dict[str, str]:
    """The same without what may name files and people."""
    return {
        name: value
        for name, value in provenance.items()
        if name not in {_SETTINGS, "to repeat it", RESULTS_READ, "results"}
    }
