"""``pairscale doctor``."""

from __future__ import annotations

import os

from pairscale.cli._common import Json, Out, emit, show_table

__all__ = ["EXAMPLES", "SUMMARY", "command"]

SUMMARY = "Check versions, extras and keys."
EXAMPLES = ("pairscale doctor", "pairscale doctor --json")

_CORE = ("numpy", "scipy", "polars", "sqlalchemy", "rich", "typer")
_EXTRAS = {
    "excel": ("fastexcel", "xlsxwriter"),
    "pandas": ("pandas", "pyarrow"),
    "plots": ("altair", "vl-convert-python"),
    "postgres": ("psycopg",),
}
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "TOGETHER_API_KEY")


def command(as_json: Json = False, out: Out = None) -> None:
    """Check versions, extras and keys.

    Keys are looked for in the environment; whether one is set is shown, what it is never.
    """
    import platform
    import sqlite3

    import polars as pl

    from pairscale._version import __version__
    from pairscale.prompts import user_folder

    rows = [
        {"check": "pairscale", "value": __version__, "advice": ""},
        {"check": "python", "value": platform.python_version(), "advice": ""},
        {"check": "sqlite", "value": sqlite3.sqlite_version, "advice": ""},
        *({"check": name, "value": _version(name), "advice": ""} for name in _CORE),
    ]
    for extra, packages in _EXTRAS.items():
        missing = [name for name in packages if _version(name) == "missing"]
        advice = f"pip install 'pairscale[{extra}]'" if missing else ""
        rows.append({"check": f"extra {extra}", "value": "missing" if missing else "installed", "advice": advice})
    rows += [{"check": key, "value": "set" if os.environ.get(key) else "not set", "advice": ""} for key in _KEYS]
    rows.append({"check": "templates of yours", "value": str(user_folder()), "advice": ""})
    table = pl.DataFrame(rows)
    shown = table if (table["advice"] != "").any() else table.drop("advice")
    emit({"checks": rows}, table, as_json=as_json, out=out, show=lambda: show_table(shown))


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
