"""Rows of simulated runs, kept in the repository, so that a long suite continues in another sitting and on another
machine.

Every row says what made it: a fingerprint of the settings of the preset, of the simulated judges, and of the pairs that
the engine chooses in a short run. When one of them changes, earlier rows say nothing about the present code. They are
left out and counted, never mixed with the others. The draws of the sampler are no part of it: they are exact, whatever
their order.
"""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.presets import resolve_preset
from pairscale.adaptive.refits import refit
from validation import judges

__all__ = ["DATA", "KeptRows", "fingerprint", "started"]

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


@cache
def fingerprint(preset: str, selector: str) -> str:
    """What rows made by the present code say that they were made by."""
    adaptive, btl = resolve_preset(preset)
    settings = [asdict(config.for_items(40, given)) for config, given in ((AdaptiveConfig, adaptive), (BTLConfig, btl))]
    world = hashlib.sha256(Path(judges.__file__).read_bytes()).hexdigest()
    told = json.dumps([settings, world, _choices(preset, selector)], sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:10]


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
