"""Every way of asking judges, as functions of the same arguments: the tests drive each through the same events.

A text is known by its mark, ``[[t07]]``; of two texts the one with the higher number is better. Whatever a workflow
does, the run file tells what came of it, and the server (:mod:`tests.runtime.server`) what was asked.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pairscale as ps
from pairscale.people.queue import LiveQuestions
from tests.runtime.server import PRICE, better_of, marks_in

__all__ = [
    "BATCH", "FUNCTIONS", "LIVE", "MODELS", "WORKFLOWS", "Attempt", "Call", "attempts_in", "gate", "known_judge",
    "outcomes_in", "script_of", "spent_in", "text",
]  # fmt: skip

KEY = "a-key-of-these-tests"
TEMPLATES = ("default", "concise")


@dataclass(frozen=True, slots=True)
class Call:
    """What one call of a workflow is given.

    Attributes:
        run: the run file.
        url: the server's address.
        questions: how many questions a complete run asks; a multiple of 4.
        concurrency: how many may be open at once.
        n_texts: texts of an adaptive run, and of those who draw their own pairs.
        priced: whether the model's price is known.
        star: let every pair but the last four have the text t00.
        function: a judge function instead of the model, or a :class:`Judge`.
        judge_args: further settings of the model.
        options: ``max_cost``, ``retries`` and ``timeout``.
    """

    run: str
    url: str = ""
    questions: int = 12
    concurrency: int = 4
    n_texts: int = 24
    priced: bool = True
    star: bool = False
    function: Any = None
    judge_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def settings(self) -> dict[str, Any]:
        """The settings of the model."""
        known = {"base_url": self.url, "api_key": KEY, "max_tokens": 100, **self.judge_args}
        return {**known, "price": PRICE} if self.priced else known

    def judge(self, template: str | None = None) -> Any:
        """Who is asked about pairs of texts."""
        if self.function is not None:
            return self.function
        return ps.make_judge("compatible:test-model", template=template, judge_args=self.settings())

    def texts(self) -> list[dict[str, str]]:
        """The texts that a workflow draws its pairs from."""
        return [{"ID": f"t{at:02d}", "text": text(at)} for at in range(self.n_texts)]

    def pairs(self, n: int) -> list[dict[str, str]]:
        """So many pairs; without ``star``, no text is in more than two of them."""
        last = (self.star and n - 4) or 0
        ids = [(0, at + 1) for at in range(last)] + [(at, at + 1) for at in range(last + 1, n + 1)]
        ids = [pair if at % 2 else pair[::-1] for at, pair in enumerate(ids)]
        return [{"ID1": f"t{a:02d}", "text1": text(a), "ID2": f"t{b:02d}", "text2": text(b)} for a, b in ids]


def text(number: int) -> str:
    """The text of a number, with its mark."""
    return f"[[t{number:02d}]] A text of number {number}, which {'really ' * number}has nothing else to say."


def known_judge(function: Callable[..., Any]) -> ps.Judge:
    """A function as a judge that is found again in the run file."""
    return ps.FunctionJudge(function, name="a function of these tests")


# The workflows


def given_pairs(call: Call) -> Any:
    """``submit_pairs``."""
    return ps.submit_pairs(
        call.pairs(call.questions), call.judge(), run=call.run, concurrency=call.concurrency, progress=False,
        **call.options,
    )  # fmt: skip


def adaptive(call: Call) -> Any:
    """``adaptive_rank``; as many comparisons as questions are wanted, and no statistical stop before."""
    return ps.adaptive_rank(
        call.texts(), judge=call.judge(), run=call.run, concurrency=call.concurrency, progress="none",
        fit_fn="laplace", max_comparisons=call.questions, btl_config={"eap_reliability_min": 1.0},
        n_steps=None, **call.options,
    )  # fmt: skip


def ab(call: Call) -> Any:
    """``run_pairwise``: two variants whose answers are known, each case in both orders."""
    config, settings = (
        (call.function, None) if call.function is not None else ("compatible:test-model", call.settings())
    )
    options = dict(call.options)
    asking = {name: options.pop(name) for name in ("retries",) if name in options}
    judge = ps.pairwise_judge(config, criterion="better", key="better", judge_args=settings, **asking)
    tasks = ps.Suite.from_list([{"input": "Say something.", "task_id": f"{at}"} for at in range(call.questions // 2)])
    return ps.run_pairwise(
        tasks, variant_a=_first, variant_b=_second, comparators=[judge], run=call.run, concurrency=call.concurrency,
        progress=False, **options,
    )  # fmt: skip


def gate(call: Call) -> Any:
    """``gate``: recorded answers, each case in both orders."""
    sides = [
        [{"task_id": f"{at}", "output": text(2 * at + side)} for at in range(call.questions // 2)] for side in (0, 1)
    ]
    return ps.gate(
        *sides, criterion="better", judge="compatible:test-model", judge_args=call.settings(), run=call.run,
        concurrency=call.concurrency, progress=False, fixed=True, max_errors=1.0, **call.options,
    )  # fmt: skip


def _first(task: ps.Task) -> str:
    return text(2 * int(task.task_id))


def _second(task: ps.Task) -> str:
    return text(2 * int(task.task_id) + 1)


def study(call: Call) -> Any:
    """``template_study``: two templates, each pair in both orders."""
    factory: Any = call.judge if call.function is None else lambda template: _templated(call.function, template)
    return ps.template_study(
        call.pairs(call.questions // 4), templates=TEMPLATES, judge=factory, run=call.run,
        concurrency=call.concurrency, progress=False, **call.options,
    )  # fmt: skip


def _templated(judge: Any, template: str) -> Any:
    if not isinstance(judge, ps.FunctionJudge):
        return judge
    return ps.FunctionJudge(judge.function, name=judge.name, template_id=template)


def check(call: Call) -> Any:
    """``check_judge``: each pair in both orders."""
    return ps.check_judge(
        call.texts(), call.judge(), n_pairs=call.questions // 2, run=call.run, concurrency=call.concurrency,
        progress=False, **call.options,
    )  # fmt: skip


def batch(call: Call) -> Any:
    """``llm_submit_pairs_batch``: all questions in two batches."""
    settings = call.settings()
    return ps.llm_submit_pairs_batch(
        call.pairs(call.questions), "openai", "test-model", run=call.run, n_segments=2, interval_seconds=0.01,
        endpoint="chat.completions", **settings, **call.options,
    )  # fmt: skip


def people(call: Call) -> Any:
    """``adaptive_rank`` with a person, who asks the server what to choose."""
    if call.function is not None:
        raise TypeError("people are no function")
    judge = ps.HumanJudge()
    with _somebody(judge, call.url):
        return ps.adaptive_rank(
            call.texts(), judge=judge, run=call.run, concurrency=1, progress="none", fit_fn="laplace",
            max_comparisons=call.questions, btl_config={"eap_reliability_min": 1.0},
        n_steps=None, **call.options,
        )  # fmt: skip


@contextmanager
def _somebody(judge: ps.HumanJudge, url: str) -> Any:
    """A person who answers what the judge is asked, as the server says."""
    queue = judge.queue
    queue.open(["ann"])
    page = LiveQuestions(queue, ["ann"])
    (ann,) = page.labellers()

    def answer() -> None:
        while (question := page.next(ann)) != "done":
            if question == "waiting":
                continue
            shown = json.dumps({"first": question.left, "second": question.right}).encode()
            request = urllib.request.Request(f"{url}/person", shown, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as reply:
                said = json.load(reply)
            if said.get("leave"):
                queue.close()
            if "skip" in said:
                page.answer(ann, question.question_id, None, skipped=said["skip"])
            else:
                page.answer(ann, question.question_id, said["choice"])

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield
    finally:
        queue.close()


WORKFLOWS: dict[str, Callable[[Call], Any]] = {
    "pairs": given_pairs,
    "adaptive": adaptive,
    "ab": ab,
    "study": study,
    "check": check,
    "batch": batch,
    "people": people,
}
FUNCTIONS = ("pairs", "adaptive", "ab", "study", "check")
"""Those that take a function as a judge."""
LIVE = FUNCTIONS
"""Those that ask a model question by question."""
BATCH = ("batch",)
MODELS = (*LIVE, *BATCH)
"""Those that ask a model."""


# What is in a run file


@dataclass(frozen=True, slots=True)
class Attempt:
    """One time that a judge was asked, as the run file has it.

    Attributes:
        texts: the marks of the two texts, in their order.
        row: the columns of the attempt; ``failure`` among them.
    """

    texts: tuple[str, ...]
    row: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.row[name]

    @property
    def is_answer(self) -> bool:
        """Whether it gave an answer."""
        return self.row["outcome"] in {"win", "tie", "flip"}


_ATTEMPTS = """
SELECT first.text || second.text AS both, attempts.* FROM attempts JOIN pairs USING (pair_id)
JOIN items AS first ON first.item_id = pairs.ID1 JOIN items AS second ON second.item_id = pairs.ID2
ORDER BY attempt_id
"""
_OUTCOMES = """
SELECT first.text || second.text AS both, condition_id, outcome, winner_pos FROM comparisons JOIN pairs USING (pair_id)
JOIN items AS first ON first.item_id = pairs.ID1 JOIN items AS second ON second.item_id = pairs.ID2
ORDER BY comparison_id
"""


def attempts_in(run: str | Path, *, cancelled: bool = False) -> list[Attempt]:
    """Every attempt of a run file, read without the package; without those that were cancelled by ourselves."""
    rows = _rows(run, _ATTEMPTS)
    kept = [row for row in rows if cancelled or row["error_code"] != "cancelled"]
    return [Attempt(marks_in(row.pop("both")), row) for row in kept]


def outcomes_in(run: str | Path) -> list[tuple[tuple[str, ...], str]]:
    """The texts and the outcome of every comparison; an answer that is not the server's is an error."""
    found = []
    for row in _rows(run, _OUTCOMES):
        texts = marks_in(row["both"])
        if row["outcome"] == "win":
            assert row["winner_pos"] == better_of(texts), f"{texts}: the run file has another winner"
        found.append((texts, row["outcome"]))
    return found


def spent_in(run: str | Path) -> float:
    """What the attempts of a run file cost."""
    return sum(attempt["cost"] or 0.0 for attempt in attempts_in(run, cancelled=True))


def _rows(run: str | Path, query: str) -> list[dict[str, Any]]:
    if not Path(run).exists():
        return []
    with closing(sqlite3.connect(f"{Path(run).absolute().as_uri()}?mode=ro", uri=True, timeout=600)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'comparisons'").fetchone():
            return []
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query)]


# In a process of its own

_SCRIPT = """
import json, sys

sys.path.insert(0, {root!r})
from pairscale.core.errors import PairscaleError
from tests.runtime.workflows import WORKFLOWS, Call, gate

try:
    ({{**WORKFLOWS, "gate": gate}})[{workflow!r}](Call(**json.loads(sys.argv[1])))
except PairscaleError as error:
    print(f"error: {{error}}", file=sys.stderr)
    sys.exit(1)
except KeyboardInterrupt:
    sys.exit(130)
"""


def script_of(workflow: str, folder: Path) -> list[str]:
    """A program that makes one call of a workflow, which is its argument as JSON."""
    file = folder / f"{workflow}.py"
    file.write_text(_SCRIPT.format(workflow=workflow, root=str(Path(__file__).parents[2])))
    return [sys.executable, str(file)]
