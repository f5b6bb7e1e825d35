"""What the project says about itself, and the archives that are made of it."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "pairscale"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = {
    name: needs for name, needs in PROJECT["optional-dependencies"].items() if name not in {"all", "dev"}
}


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """A wheel of the source, as `python -m build` makes it, in this process."""
    from hatchling.build import build_wheel as make

    with contextlib.chdir(source):
        return folder / make(str(folder))


def build_sdist(folder: Path) -> Path:
    """The source archive, likewise."""
    from hatchling.build import build_sdist as make

    with contextlib.chdir(ROOT):
        return folder / make(str(folder))
