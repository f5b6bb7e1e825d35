"""The user's own folders: in ``PAIRSCALE_HOME``, or the platform's folders for settings and for caches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal


def home_folder(kind: Literal["templates", "cache", "data"]) -> Path:
    """The folder of the user's templates, prices and providers, or of earlier answers; it need not exist."""
    if home := os.environ.get("PAIRSCALE_HOME"):
        return Path(home).expanduser() / kind
    from platformdirs import user_cache_path, user_config_path

    return user_cache_path("pairscale") if kind == "cache" else user_config_path("pairscale") / kind
