"""Rows of simulated runs, kept in the repository, so that a long suite continues in another sitting and on another
machine.

Every row says what made it, by a name that ``made_by.json`` explains: all settings of the preset, the answers of the
simulated judges to some questions, and the pairs that the engine chooses in a short run. When one of them has changed,
earlier rows say nothing about the present code. They are left out and counted, never mixed with the others. A setting
that was added since does not matter as long as the engine chooses the same pairs. The draws of the sampler are no part
of it: they are exact, whatever their order.
"""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig, resolve_preset
from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.refits import refit
from validation import judges

__all__ = ["DATA", "KeptRows", "is_present", "signed", "started"]

DATA = Path(__file__).parent / "data"
_MADE_BY = "made_by"
_PROBE = 12, 150  # texts and comparisons of the short run


class KeptRows:
    """The rows of one CSV file.

    Attributes:
        path: the file; it need not exist.
        columns: of every row, in their order; ``made_by`` is added behind them.
    """

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path, self.columns = path, (*columns, _MADE_BY)

    def read(self) -> list[dict[str, Any]]:
        """All rows; numbers are numbers."""
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            return [
                {name: value if name == _MADE_BY else _number(value) for name, value in row.items()}
                for row in csv.DictReader(file)
            ]

    def append(self, row: dict[str, Any], made_by: str) -> None:
        """Add one row, and write it at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row | {_MADE_BY: made_by})

    def drop(self, stale: list[dict[str, Any]]) -> None:
        """Write the file again without these rows."""
        left = [row for row in self.read() if row not in stale]
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(left)


def _number(value: str) -> float | str:
    try:
        return float(value) if "." in value or "e" in value else int(value)
    except ValueError:
        return value


def started(preset: str, selector: str, n: int, seed: int) -> Engine:
    """The engine of a run with this preset."""
    adaptive, btl = resolve_preset(preset)
    ids = [f"t{number:03d}" for number in range(n)]
    return Engine(ids, seed=seed, selector=selector, adaptive_config=adaptive, btl_config=btl)


def signed(preset: str, selector: str, file: Path = DATA / "made_by.json") -> str:
    """The name of the present code; written down with what it stands for."""
    known, present = _known(file), _present(preset, selector)
    name = hashlib.sha256(json.dumps(present, sort_keys=True).encode()).hexdigest()[:10]
    if name not in known:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(known | {name: present}, indent=1, sort_keys=True) + "\n")
    return name


def is_present(made_by: str, preset: str, selector: str, file: Path = DATA / "made_by.json") -> bool:
    """Whether rows of this name are those that the present code would make."""
    recorded = _known(file).get(made_by)
    if recorded is None:
        return False
    present = _present(preset, selector)
    behaves_alike = all(recorded[part] == present[part] for part in ("answers", "choices"))
    return behaves_alike and recorded["settings"].items() <= present["settings"].items()


def _known(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


@cache
def _present(preset: str, selector: str) -> dict[str, Any]:
    """What rows of the present code depend on."""
    adaptive, btl = resolve_preset(preset)
    configs = AdaptiveConfig.for_items(40, adaptive), BTLConfig.for_items(40, btl)
    settings = {name: str(value) for config in configs for name, value in asdict(config).items()}
    return {"settings": settings, "answers": _digest(_answers()), "choices": _digest(_choices(preset, selector))}


def _digest(told: object) -> str:
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _answers() -> list[int]:
    """What the judges answer to some questions, some of them repeated."""
    worlds = [judges.make_world(judge, 12, 1.0, 1) for judge in judges.JUDGES]
    return [world.answer(at % 12, (at + 1 + at // 24) % 12) for world in worlds for at in range(72)]


def _choices(preset: str, selector: str) -> list[tuple[int, int]]:
    """The pairs of a short run, with refits by the normal approximation."""
    n, comparisons = _PROBE
    engine, world, chosen = started(preset, selector, n, 1), judges.make_world("half_repeatable", n, 1.0, 1), []
    while engine.committed < comparisons:
        if engine.pending is not None:
            engine.apply(refit(engine.pending, "laplace").belief, stop_reason=None)
            continue
        found = engine.propose()
        if found is None:
            break
        if not isinstance(found, Starved):
            engine.record(found.step_id, world.answer(found.first, found.second))
            chosen.append((found.first, found.second))
    return chosen
