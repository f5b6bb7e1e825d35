"""``pairscale doctor``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pairscale.cli import _options as opt
from pairscale.cli._common import emit, show_table

EXAMPLES = ("pairscale doctor", "pairscale doctor --json", "pairscale doctor --clear-cache")

CORE = (
    "aiohttp", "filelock", "jinja2", "joblib", "lazy-loader", "msgspec", "narwhals", "numpy", "orjson", "platformdirs",
    "polars", "rich", "scipy", "sqlalchemy", "threadpoolctl", "typer",
    *(["backports-zstd"] if sys.version_info < (3, 14) else []),
)  # fmt: skip
"""What is always installed; a test holds it, and the extras, against the project's own list."""

EXTRAS = {
    "documents": ("defusedxml", "fastexcel", "pypdf", "xlsxwriter"),
    "plots": ("altair", "vl-convert-python"),
    "postgres": ("psycopg",),
    "web": ("fastapi", "markdown-it-py", "python-multipart", "uvicorn"),
}
"""What is installed on demand, by the name that goes into the brackets."""


def command(
    clear_cache: Annotated[
        bool, typer.Option("--clear-cache", help="First forget all answers of models that were kept.")
    ] = False,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Check versions, extras and keys.

    Keys are looked for in the environment; whether one is set is shown, what it is never. The answer cache keeps the
    answers of models that may be used again, without the prompts; its file may be deleted at any time.
    """
    import platform
    import sqlite3

    import polars as pl

    from pairscale._version import __version__
    from pairscale.core.prompts import user_folder
    from pairscale.providers.cache import AnswerCache
    from pairscale.providers.keys import KEY_VARIABLES, key_in_environment

    rows = [
        {"check": "pairscale", "value": __version__, "advice": ""},
        {"check": "python", "value": platform.python_version(), "advice": ""},
        {"check": "sqlite", "value": sqlite3.sqlite_version, "advice": ""},
        *({"check": name, "value": _version(name), "advice": ""} for name in CORE),
    ]
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if _version(name) == "missing"]
        advice = f'pip install "pairscale[{extra}]"' if missing else ""
        value = f"missing: {', '.join(missing)}" if missing else "installed"
        rows.append({"check": f"extra {extra}", "value": value, "advice": advice})
    for provider, variable in KEY_VARIABLES.items():
        _, found = key_in_environment(provider)
        rows.append({"check": found or variable, "value": "set" if found else "not set", "advice": ""})
    rows.append({"check": "your templates", "value": str(user_folder()), "advice": ""})
    with AnswerCache() as answers:
        if clear_cache:
            answers.clear()
        rows.append({"check": "answer cache", "value": str(answers.path), "advice": ""})
        held = f"{answers.count():,} answers, {answers.size() / 1e6:.1f} MB"
        rows.append({"check": "answers in it", "value": held, "advice": ""})
    table = pl.DataFrame(rows)
    shown = table if (table["advice"] != "").any() else table.drop("advice")
    emit({"checks": rows}, table, as_json=as_json, out=out, show=lambda: show_table(shown))


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
