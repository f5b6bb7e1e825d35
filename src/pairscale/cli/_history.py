"""The settings of a command, kept in its run file: every one that applied, by the line, a study file or a default.

They are written with the command's first change of the file, before its first answer, so that they outlive its process.
A command that changes nothing is not written. Keys and tokens are left out.
"""

from __future__ import annotations

import contextlib
import re
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale._version import __version__
from pairscale.core.errors import NAMES_OF_KEYS, InputError, without_logins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pairscale.cli._common import Arguments
    from pairscale.store.runfile import RunFile

READ: ContextVar[dict[str, Any] | None] = ContextVar("read", default=None)
"""What this command has read, for the run file."""

_ABOUT_OUTPUT = frozenset({"run", "json", "out", "dry_run"})
_SECRET = re.compile(rf"{NAMES_OF_KEYS}$", re.IGNORECASE)


@contextlib.contextmanager
def keeping_settings(command: str, run: str | None, settings: Arguments, study: str | None = None) -> Iterator[None]:
    """Have the settings of the command in the block written into its run file, together with its first change there.

    One that changes nothing, because it was refused or all was done before, leaves no trace.

    Args:
        command: its name.
        run: its run file.
        settings: every option by its name in the shell, with the value that held.
        study: the study file that some of them come from.
    """
    READ.set(None)
    if run is None or settings.get("dry_run") or settings.get("status"):
        yield
        return
    from pairscale.core.files import TABLE_SUFFIXES

    if run.lower().endswith(TABLE_SUFFIXES):  # `pairscale fit` would read it as one
        raise InputError(f"--run {run}: that is the ending of a table; call it run.db (--out writes tables)")
    from pairscale.core.provenance import utc_now
    from pairscale.store.chain import recording

    kept = {
        name: _without_keys(value)
        for name, value in settings.items()
        if value is not None and name not in _ABOUT_OUTPUT and not _SECRET.search(name)
    }
    row = {"command": command, "at": utc_now(), "version": __version__, "study": study, "settings": kept}

    def row_for(store: RunFile) -> Arguments | None:
        if "://" not in run and Path(store.name) != Path(run):
            return None
        read = READ.get()
        return row if read is None else {**row, "read": read}

    with recording(row_for):
        yield


def _without_keys(value: Any) -> Any:
    """A value without keys and logins."""
    from pairscale.providers.keys import Redactor

    if isinstance(value, list | tuple):
        named = ((text, *str(text).partition("=")) for text in value)
        return [_without_keys(text) for text, name, equals, _ in named if not (equals and _SECRET.search(name))]
    return Redactor().text(without_logins(value)) if isinstance(value, str) else value
