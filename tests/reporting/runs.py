"""Small runs of each kind, full of texts that would like to be more than text."""

from __future__ import annotations

import polars as pl

import pairscale as ps

HOSTILE = (
    "<script>alert(1)</script>", "</script><b>bold</b>", "<img src=x onerror=alert(1)>", "{{ 7 * 7 }}",
    'say "hello"', "a&amp;b", "<!-- -->", "=cmd|'/c calc'!A1",
)  # fmt: skip


def samples() -> list[dict[str, str]]:
    """Texts that are called like what they hold, each longer than the one before."""
    return [{"ID": f"{at} {text}", "text": f"Text {at}. " * (at + 1) + text} for at, text in enumerate(HOSTILE)]


def place(item) -> int:
    """Where a text stands in the order of them all."""
    return int(item["ID"].split()[0])


class Judge:
    """Prefers the later text, except that the nearest neighbours go to the first position, or to the second.

    Args:
        name: its name.
        sway: how near two texts must be for the position to decide.
        side: the position that then wins.
    """

    def __init__(self, name: str, sway: int = 0, side: int = 1) -> None:
        self.condition = ps.Condition(name, model=f"{name}-1", settings={"sway": sway, "side": side})
        self._sway, self._side = sway, side

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        first, second = place(pair.first), place(pair.second)
        side = self._side if abs(first - second) <= self._sway else 1 if first > second else 2
        return ps.Verdict.win(side, content=f"It has more to say. {HOSTILE[0]}", cost=0.001, total_tokens=90)


def ranking_run(path):
    """Everybody beats those before, except that the first beats the last."""

    class Odd(Judge):
        async def compare(self, pair):
            found = await super().compare(pair)
            ends = {place(pair.first), place(pair.second)} == {0, len(HOSTILE) - 1}
            return ps.Verdict.win(3 - found.winner_pos, content=found.content) if ends else found

    ps.submit_pairs(ps.make_pairs(pl.DataFrame(samples())), Odd("odd"), run=path, progress=False)
    return path


SWAY = {("plain", "ann"): (3, 1), ("plain", "bob"): (3, 2), ("weigh", "ann"): (0, 1), ("weigh", "bob"): (1, 2)}
"""By template and judge, how the position sways."""


def bias_study(path=None):
    """Two templates with two judges."""
    pairs = ps.make_pairs(pl.DataFrame(samples()))
    judges = {name: lambda template, name=name: Judge(name, *SWAY[template, name]) for name in ("ann", "bob")}
    return ps.template_study(pairs, templates=["plain", "weigh"], judge=judges, run=path, progress=False)


A_NAME, B_NAME = "old <b>", "new & improved"
SAYS = "ABABBBTFNE"
"""What the judge makes of the tasks, one after the other: A, B, a tie, a flip, no answer, an error."""


def answer_a(task: ps.Task) -> str:
    return f"The old answer to {task.task_id}."


def answer_b(task: ps.Task) -> str:
    return f"The new and longer answer to {task.task_id}. {HOSTILE[int(task.task_id[-1]) % len(HOSTILE)]}"


def suite() -> ps.Suite:
    rows = [
        {
            "task_id": f"task {HOSTILE[n % 3]} {n}",
            "input": f"Question {n}? {HOSTILE[2]}",
            "tags": ["odd" if n % 2 else "even"],
        }
        for n in range(len(SAYS))
    ]
    return ps.Suite.from_list(rows)


class Grader:
    """Says what stands in :data:`SAYS`."""

    condition = ps.Condition("grader", model="grader-1")

    async def compare(self, pair: ps.JudgePair) -> ps.Verdict:
        says = SAYS[int(pair.first["task_id"][-1])]
        b_first = "new and longer" in pair.first["text"]
        words = f"Because of {HOSTILE[2]}"
        if says == "N":
            return ps.Verdict.abstain(f"I will not. {HOSTILE[0]}")
        if says == "E":
            return ps.Verdict.fail("parse_error", f"Nothing useful: {HOSTILE[0]}")
        if says == "T":
            return ps.Verdict.tie(content=words)
        if says == "F":
            return ps.Verdict.win(2, content=words)
        return ps.Verdict.win(1 if (says == "B") == b_first else 2, content=words, cost=0.002)


def person(task: ps.Task, response_1: str, response_2: str) -> str:
    """Always prefers the new one."""
    return "1" if "new and longer" in response_1 else "2"


def ab_run(path=None, **more):
    """Ten tasks, a judge and a person."""
    judge = ps.pairwise_judge(Grader(), criterion="clearer", key="clearer")
    human = ps.human_pairwise(key="clearer (people)", ask=person, seed=1)
    options = {"comparators": [judge, human], "run": path, "progress": False} | more
    return ps.run_pairwise(
        suite(), variant_a=answer_a, variant_b=answer_b, variant_a_name=A_NAME, variant_b_name=B_NAME, **options
    )
