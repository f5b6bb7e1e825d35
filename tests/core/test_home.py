"""The user's own folders, and guesses at names."""

from pathlib import Path

import platformdirs
import pytest

from pairscale.core.home import home_folder
from pairscale.core.prompts import user_folder
from pairscale.providers.cache import cache_file


def test_one_variable_moves_both_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAIRSCALE_HOME", str(tmp_path))
    assert user_folder() == home_folder("templates") == tmp_path / "templates"
    assert cache_file() == home_folder("cache") / "answers.db" == tmp_path / "cache" / "answers.db"
    monkeypatch.setenv("PAIRSCALE_HOME", "~/mine")
    assert home_folder("cache") == Path.home() / "mine" / "cache"


def test_without_it_the_platform_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PAIRSCALE_HOME")
    for kind in ("cache", "config"):
        monkeypatch.setattr(platformdirs, f"user_{kind}_path", lambda name, kind=kind: tmp_path / kind / name)
    assert user_folder() == tmp_path / "config" / "pairscale" / "templates"
    assert cache_file() == tmp_path / "cache" / "pairscale" / "answers.db"
