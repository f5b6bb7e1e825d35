"""What a command was told, kept in its run file: every setting that held, by the line, a study file or a default.

Keys and tokens are left out. Paths are relative to the run file, so that they hold when its folder moves.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.errors import InputError, PairscaleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pairscale.store import RunFile

__all__ = ["keep_settings", "kept_settings", "study_of"]

_LOG = "commands"
_ABOUT_OUTPUT = frozenset({"run", "as_json", "out", "dry_run"})
_SECRET = re.compile(r"(?:^|_)(?:key|token|secret|password|headers)$", re.IGNORECASE)
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")


def keep_settings(command: str, params: Mapping[str, Any], study: str | None = None) -> None:
    """Write the settings of a command that has ended into its run file, if there is one.

    Args:
        command: its name.
        params: every parameter by its Python name, with the value that held.
        study: the study file that some of them come from.
    """
    from pairscale._version import __version__
    from pairscale.provenance import utc_now
    from pairscale.store import open_run

    run = params["run"]
    if run is None or params.get("dry_run") or not ("://" in run or Path(run).exists()):
        return
    settings = {
        name.rstrip("_"): _plain(name, value, _folder(run))
        for name, value in params.items()
        if value is not None and name not in _ABOUT_OUTPUT and not _SECRET.search(name)
    }
    row = {"command": command, "at": utc_now(), "version": __version__, "study": study, "settings": settings}
    # The command's work is done; that a record of it cannot be kept must not make it fail.
    with contextlib.suppress(PairscaleError, OSError), open_run(run, write=True) as store:
        store.log(_LOG, [row])


def kept_settings(store: RunFile) -> list[dict[str, Any]]:
    """The commands that wrote to a run file, in order: ``command at version study settings``."""
    return store.read_log(_LOG)


def study_of(run: str, target: Path) -> str:
    """The last `pairscale rank` of a run file as a study file that does the same.

    Args:
        run: the run file.
        target: where the study will be; paths in it are relative to that.

    Raises:
        InputError: when no such command wrote to the run file.
    """
    from pairscale.store import open_run

    with open_run(run) as store:
        ranked = [row for row in kept_settings(store) if row["command"] == "rank"]
    if not ranked:
        raise InputError(f"{run} was not written by `pairscale rank`, so that there are no settings to make a study of")
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
        return [_without_keys(text) for text in map(str, value) if not _SECRET.search(text.partition("=")[0])]
    if isinstance(value, bool | int | float):
        return value
    return _without_keys(str(getattr(value, "value", value)))


def _without_keys(text: str) -> str:
    from pairscale.providers.keys import Redactor

    return Redactor().text(_LOGIN.sub("", text))


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
    from pairscale.cli._inputs import setting

    return [f"{name} = {_toml(value)}" for name, value in map(setting, given)]


def _toml(value: Any) -> str:
    import json

    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else repr(value)
