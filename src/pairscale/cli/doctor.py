"""``pairscale doctor``."""

from __future__ import annotations

import sys

from pairscale.cli._common import Output, show_table
from pairscale.cli.from_verb import from_verb

CORE = (
    "aiohttp filelock jinja2 joblib lazy-loader msgspec narwhals numpy orjson platformdirs polars rich scipy "
    "sqlalchemy threadpoolctl"
).split()
if sys.version_info < (3, 14):
    CORE.append("backports-zstd")
"""What is always installed; a test holds it, and the extras, against the project's own list."""

EXTRAS = {
    "documents": ("defusedxml", "fastexcel", "pypdf", "xlsxwriter"),
    "plots": ("altair", "vl-convert-python"),
    "postgres": ("psycopg",),
    "web": ("fastapi", "markdown-it-py", "python-multipart", "uvicorn"),
}
"""What is installed on demand, by the name that goes into the brackets."""


@from_verb("", "")
def command(emit: Output, *, clear_cache: bool = False) -> None:
    """Check versions, extras and keys.

    Keys are looked for in the environment; whether one is set is shown, what it is never. The answer cache keeps the
    answers of models that may be used again, without the prompts; its file may be deleted at any time.

    Args:
        clear_cache: First forget all answers of models that were kept.

    Examples:
        pairscale doctor
        pairscale doctor --json
        pairscale doctor --clear-cache
    """
    import platform
    import sqlite3

    import polars as pl

    from pairscale._version import __version__
    from pairscale.core.prompts import user_folder
    from pairscale.providers.cache import AnswerCache
    from pairscale.providers.keys import KEY_VARIABLES, key_in_environment

    checks = {"pairscale": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    checks |= {name: _version(name) for name in CORE}
    advice = {}
    for extra, packages in EXTRAS.items():
        missing = ", ".join(name for name in packages if _version(name) == "missing")
        checks[f"extra {extra}"] = f"missing: {missing}" if missing else "installed"
        if missing:
            advice[f"extra {extra}"] = f'pip install "pairscale[{extra}]"'
    for provider, variable in KEY_VARIABLES.items():
        _, found = key_in_environment(provider)
        checks[found or variable] = "set" if found else "not set"
    checks["your templates"] = str(user_folder())
    with AnswerCache() as answers:
        if clear_cache:
            answers.clear()
        checks["answer cache"] = str(answers.path)
        checks["answers in it"] = f"{answers.count():,} answers, {answers.size() / 1e6:.1f} MB"
    rows = [{"check": name, "value": value, "advice": advice.get(name, "")} for name, value in checks.items()]
    table = pl.DataFrame(rows)
    emit({"checks": rows}, table, lambda: show_table(table if advice else table.drop("advice")))


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
