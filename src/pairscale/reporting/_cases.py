"""What to look at again, as cases that ``pairscale label`` takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairscale.core.files import replacing


def write_cases(rows: Sequence[Mapping[str, Any]], path: Path) -> int:
    """Write cases for people to label, one JSON line each, as ``pairscale label`` takes them."""
    with replacing(path) as temporary:
        temporary.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return len(rows)


def pair_case(one: str, two: str, texts: Mapping[str, str], criterion: str) -> dict[str, str]:
    """Two texts as a case of a manifest."""
    name = f"{one}::{two}"
    case = {"case_id": name, "task_id": name, "criterion": criterion, "task_input": ""}
    return case | {"response_1": texts.get(one, ""), "response_2": texts.get(two, "")}
