"""The sample reports of the site: made when it is built, from texts and judges whose quality is known."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import polars as pl

import pairscale as ps

TEMPLATES = {"default": 0.9, "concise": 0.1, "weigh": 0.5}
JUDGES = {"small model": 1.0, "large model": -0.5}


class Simulated:
    """Goes by the true quality, with noise, and by the position.

    Args:
        name: its name.
        bias: what the first position is worth, in logits.
        quality: by text.
    """

    def __init__(self, name: str, bias: float, quality: dict[str, float]) -> None:
        self.condition = ps.Condition(name, settings={"bias": bias})
        self._bias, self._quality = bias, quality

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        """A winner, by chance."""
        gap = 2.5 * (self._quality[pair.first["text"]] - self._quality[pair.second["text"]]) + self._bias
        rng = random.Random(f"{self.condition.condition_id}|{pair.first['text']}|{pair.second['text']}")  # noqa: S311
        words = "It gives its reasons in an order that one can follow, and keeps to the question."
        return ps.Verdict.win(1 if rng.random() < 1 / (1 + math.exp(-gap)) else 2, content=words, cost=0.0004)


def sample_reports(folder: Path) -> dict[str, Path]:
    """Write the three reports into a folder; returns the pages by the kind of their run."""
    essays = ps.synthetic_essays(80, seed=4)
    quality = dict(essays.select("text", "theta_true").iter_rows())
    return {
        "ranking": ps.report(ranking(folder / "essays.db", essays[:24], quality), title="Which essay argues best?"),
        "bias": ps.report(bias(folder / "study.db", essays[:24], quality)),
        "ab": ps.report(ab(folder / "ab.db", essays, quality)),
    }


def ranking(run: Path, essays: pl.DataFrame, quality: dict[str, float]) -> Path:
    """Twenty-four essays, ranked adaptively."""
    judge = Simulated("our judge", 0.2, quality)
    ps.rank(essays, judge=judge, run=run, fit="laplace", max_comparisons=260, seed=2, progress="none")
    return run


def grades(folder: Path) -> Path:
    """A class of forty with ten known marks, the page of its levels."""
    essays = ps.synthetic_essays(40, seed=7)
    truth = 0.45 * essays["quality_level"]
    quality = dict(zip(essays["text"], (truth / 2.5).to_list(), strict=True))
    run = folder / "class.db"
    ps.rank(essays.select("ID", "text"), judge=Simulated("our judge", 0.2, quality), run=run, fit="laplace", seed=1,
            progress="none")  # fmt: skip
    known = essays.select("ID", mark=30 + 8 * truth).sort("mark").gather_every(4)
    levels = pl.DataFrame({"level": ["A", "B", "C"], "from_mark": [75, 55, 0]})
    return ps.grade(run, known, levels).report(folder / "grades.html", title="Class 7b")


def bias(run: Path, essays: pl.DataFrame, quality: dict[str, float]) -> Path:
    """Three templates with two judges."""
    pairs = ps.sample_pairs(ps.make_pairs(essays), 1, 120, 3)
    judges: dict[str, Any] = {
        name: lambda template, name=name: Simulated(name, TEMPLATES[template] * JUDGES[name], quality)
        for name in JUDGES
    }
    ps.template_study(pairs, templates=list(TEMPLATES), judge=judges, run=run, progress=False)
    return run


def ab(run: Path, essays: pl.DataFrame, quality: dict[str, float]) -> Path:
    """Two prompts, a judge and a person."""
    ranked = essays.sort("theta_true")["text"].to_list()
    texts = random.Random(7).sample(ranked[:50], 40), random.Random(8).sample(ranked[30:], 40)  # noqa: S311
    suite = ps.Suite.from_list(
        [
            {"task_id": f"question-{n:02}", "input": f"Question {n}: should the centre be closed to cars?"}
            | {"tags": ["reader's letter" if n % 3 else "speech"]}
            for n in range(40)
        ]
    )

    def person(task: ps.Task, one: str, two: str) -> str:  # noqa: ARG001
        gap = quality[one] - quality[two]
        return "tie" if abs(gap) < 0.1 else "1" if gap > 0 else "2"

    ps.run_pairwise(
        suite,
        variant_a=lambda task: texts[0][int(task.task_id[-2:])],
        variant_b=lambda task: texts[1][int(task.task_id[-2:])],
        variant_a_name="old prompt",
        variant_b_name="new prompt",
        comparators=[
            ps.pairwise_judge(Simulated("large model", 0.3, quality), criterion="argues better", key="argues better"),
            ps.human_pairwise(key="argues better (people)", ask=person, seed=1),
        ],
        run=run,
        progress=False,
    )
    return run
