"""The settings of a command, kept in its run file: every one that applied, by the line, a study file or a default.

They are written with the command's first change of the file, before its first answer, so that they outlive its process.
A command that changes nothing is not written. Keys and tokens are left out. Paths are relative to the run file, so that
they hold when its folder moves.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.core.addresses import NAMES_OF_KEYS, without_logins
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pairscale.store.runfile import RunFile

_ABOUT_OUTPUT = frozenset({"run", "as_json", "out", "dry_run"})
_SECRET = re.compile(rf"{NAMES_OF_KEYS}$", re.IGNORECASE)


@contextlib.contextmanager
def keeping_settings(command: str, params: Mapping[str, Any], study: str | None = None) -> Iterator[None]:
    """Have the settings of the command in the block written into its run file, together with its first change there.

    One that changes nothing, because it was refused or all was done before, leaves no trace.

    Args:
        command: its name.
        params: every parameter by its Python name, with the value that held.
        study: the study file that some of them come from.
    """
    run = params["run"]
    if run is None or params.get("dry_run") or params.get("status"):
        yield
        return
    from pairscale._version import __version__
    from pairscale.cli._opening import READ
    from pairscale.core.provenance import utc_now
    from pairscale.store.chain import recording

    settings = {
        name.rstrip("_"): _plain(name, value, _folder(run))
        for name, value in params.items()
        if value is not None and name not in _ABOUT_OUTPUT and not _SECRET.search(name)
    }
    row = {"command": command, "at": utc_now(), "version": __version__, "study": study, "settings": settings}

    def row_for(store: RunFile) -> dict[str, Any] | None:
        if "://" not in run and Path(store.name) != Path(run):
            return None
        read = READ.get()
        return row if read is None else {**row, "read": read}

    with recording(row_for):
        yield


def kept_settings(store: RunFile) -> list[dict[str, Any]]:
    """The commands that wrote to a run file, in order: ``command at version study settings``."""
    from pairscale.store.marks import COMMANDS

    return store.read_log(COMMANDS)


def study_of(run: str, target: Path) -> str:
    """The last `pairscale rank` of a run file as a study file that does the same.

    Args:
        run: the run file.
        target: where the study will be; paths in it are relative to that.

    Raises:
        InputError: when no such command wrote to the run file.
    """
    from pairscale.store.runfile import open_run

    with open_run(run) as store:
        ranked = [row for row in kept_settings(store) if row["command"] == "rank"]
    if not ranked:
        raise InputError(f"{run} was not written by `pairscale rank`, so there are no settings for a study file")
    last = ranked[-1]
    options = dict(last["settings"])
    for name in ("data", "template", "instructions"):
        if name in options and (name != "template" or options[name].endswith(".txt")):
            options[name] = _moved(options[name], _folder(run), target)
    tables = {name: options.pop(name, None) for name in ("judge_arg", "set")}
    lines = [
        f"# As `pairscale rank` of version {last['version']} was run on {last['at'][:10]}, every setting in full.",
        f"data = {_toml(options.pop('data'))}",
        f"run = {_toml(_without_keys(run) if '://' in run else _moved(run, Path(), target))}",
        *(f"{name} = {_toml(value)}" for name, value in options.items()),
    ]
    for name, given in tables.items():
        if given:
            lines += ["", f"[{name}]", *_settings(given)]
    return "\n".join([*lines, ""])


def _plain(name: str, value: Any, folder: Path) -> Any:
    """A value as JSON holds it, without keys, with paths as the run file sees them."""
    if isinstance(value, Path) or (name == "template" and str(value).endswith(".txt")):
        return _relative(Path(value), folder)
    if isinstance(value, list | tuple):
        given = ((text, *text.partition("=")) for text in map(str, value))
        return [_without_keys(text) for text, name, equals, _ in given if not (equals and _SECRET.search(name))]
    if isinstance(value, bool | int | float):
        return value
    return _without_keys(str(getattr(value, "value", value)))


def _without_keys(text: str) -> str:
    from pairscale.providers.keys import Redactor

    return Redactor().text(without_logins(text))


def _folder(run: str) -> Path:
    return Path() if "://" in run else Path(run).parent


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return path.absolute().as_posix()


def _moved(path: str, before: Path, target: Path) -> str:
    return _relative(before / path, target.parent)


def _settings(given: list[str]) -> list[str]:
    from pairscale.core.options import read_setting

    return [f"{name} = {_toml(value)}" for name, value in map(read_setting, given)]


def _toml(value: Any) -> str:
    import json

    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else repr(value)
