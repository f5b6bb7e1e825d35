"""Is a stop ever delayed by the screen? At every refit that the normal approximation screened, the sampler fits too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pairscale.adaptive.engine import Engine, Starved
from pairscale.adaptive.presets import resolve_preset
from pairscale.adaptive.refits import refit
from validation.judges import make_world


def screened_refits(judge: str, n: int, sd: float, seed: int, selector: str = "pollitt") -> Iterator[dict[str, Any]]:
    """Run to the stop, and for every screened refit the row that the sampler gives for the same comparisons."""
    world = make_world(judge, n, sd, seed)
    adaptive, btl = resolve_preset("pairscale")
    ids = [f"t{number:03d}" for number in range(n)]
    engine = Engine(ids, seed=seed, selector=selector, adaptive_config=adaptive, btl_config=btl)
    while True:
        if engine.pending is not None:
            request = engine.pending
            outcome = refit(request)
            if outcome.row["screened"]:
                yield refit(replace(request, btl=replace(request.btl, screen_refits=False))).row
            engine.apply(outcome.belief, stop_reason=outcome.row["stop_reason"])
            continue
        found = engine.propose()
        if found is None:
            return
        if not isinstance(found, Starved):
            engine.record(found.step_id, world.answer(found.first, found.second))


def main() -> None:
    """One hundred runs: how many refits were screened, and how many of these the sampler would have stopped at."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    judges = ("clean", "repeatable", "half_repeatable", "position_lapse")
    screened = wrong = 0
    for number in range(runs):
        found = list(screened_refits(judges[number % 4], 30, (1.0, 2.5)[number // 4 % 2], 20_000 + number))
        screened += len(found)
        wrong += sum(bool(row["stop_decision"]) for row in found)
        print(f"{number + 1} runs: {screened} refits screened, {wrong} would have been stops", flush=True)


if __name__ == "__main__":
    main()
