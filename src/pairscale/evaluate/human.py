"""People as comparators: asked one case after the other, or labels that they gave before."""

from __future__ import annotations

import inspect
import random
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from pairscale.core.notices import notice
from pairscale.core.options import FilePath, checked, optional, require_seed, require_text
from pairscale.evaluate.comparators import PairwiseOutcome, majority
from pairscale.evaluate.labels import CHOICES, Labels, answers_digest, read_labels, winner_of
from pairscale.evaluate.tasks import Task, Trace
from pairscale.judges.function import in_thread


@checked
def human_pairwise(
    *,
    key: str,
    criterion: str | None = None,
    ask: Callable[[Task, str, str], Any] | None = None,
    seed: int | None = None,
) -> HumanComparator:
    """A person who is asked about each pair, without being told which answer is whose.

    Without ``ask`` the terminal is used: the criterion, the task, both answers as [1] and [2] in a random order, and a
    line that takes ``1``, ``2`` or ``tie``. One question at a time. With a run file every choice is kept at once, and
    no question is asked twice; some may be answered today, and the rest tomorrow.

    Args:
        key: what the figures stand under.
        criterion: what "better" means, for the terminal.
        ask: takes the task and the two answers in the order in which they are shown, and returns ``"1"``, ``"2"`` or
            ``"tie"``; plain or ``async``. Anything else is an error of that case, and None an abstention.
        seed: makes the order reproducible; a new one each time without it.

    Example:
        >>> human_pairwise(key="human", ask=lambda task, response_1, response_2: "tie").key
        'human'
    """
    optional(require_text, criterion, "criterion")
    require_text(key, "key")
    return HumanComparator(key, ask or partial(_terminal, criterion), seed)


class HumanComparator:
    """A person as a comparator; :func:`human_pairwise` makes one."""

    def __init__(self, key: str, ask: Callable[[Task, str, str], Any], seed: int | None) -> None:
        self.key = key
        self._ask = ask
        self._seed = random.SystemRandom().getrandbits(64) if seed is None else require_seed(seed)
        self._turn = threading.Lock()  # one person has one attention

    async def compare(self, *, task: Task, trace_a: Trace, trace_b: Trace, reference_outputs: Any) -> PairwiseOutcome:  # noqa: ARG002
        """Which is better, as the person says."""
        first = random.Random(f"{self._seed}|{self.key}|{task.task_id}").choice("ab")  # noqa: S311 - a side, no secret
        shown = (trace_a.output, trace_b.output) if first == "a" else (trace_b.output, trace_a.output)
        detail = {"first_variant": first}
        if inspect.iscoroutinefunction(self._ask):
            answer = await self._ask(task, *shown)
        else:
            answer = await in_thread(partial(self._one_by_one, task, *shown))
            answer = await answer if inspect.isawaitable(answer) else answer
        if answer is None:
            return PairwiseOutcome.abstain("no choice was made", detail=detail)
        choice = CHOICES.get(str(answer).strip().lower())
        if choice is None:
            return PairwiseOutcome.fail(f"the choice must be '1', '2' or 'tie', not {answer!r:.80}", detail=detail)
        return PairwiseOutcome(winner_of(choice, first), detail=detail)

    def _one_by_one(self, task: Task, response_1: str, response_2: str) -> Any:
        with self._turn:
            return self._ask(task, response_1, response_2)


def _terminal(criterion: str | None, task: Task, response_1: str, response_2: str) -> str | None:
    """Ask on the terminal; None at its end."""
    lines = [f"Task: {task.input}", f"[1] {response_1}", f"[2] {response_2}"]
    if criterion is not None:
        lines.insert(0, f"Criterion: {criterion}")
    sys.stdout.write("".join(f"{for_terminal(line)}\n" for line in lines))
    while True:
        sys.stdout.write("Which is better? 1 / 2 / tie: ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        choice = CHOICES.get(line.strip().lower())
        if choice is not None or not line:
            return choice


def for_terminal(text: str) -> str:
    """A text without the characters that would command the terminal; lines stay lines."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)


@checked
def human_labels(
    path: FilePath,
    *,
    criterion: str,
    key: str,
    key_file: FilePath | None = None,
    encoding: str | None = None,
) -> LabelComparator:
    """What people said before: their labels of the cases of :func:`export_pairwise_cases`.

    Several labellers decide by majority; all of their labels stay in ``detail["labels"]``. A case without a label is an
    abstention; one whose answers have changed since is an error. What cannot be used (a choice that is none, a case
    that was never exported, two labels of one labeller) is in ``problems``, and said.

    Args:
        path: the labels: the run file of ``pairscale label``, or jsonl, csv or any other table with ``case_id`` and
            ``preferred`` (1, 2 or tie); ``labeller`` and ``comment`` where they are there.
        criterion: the criterion whose labels these are.
        key: what the figures stand under.
        key_file: says which variant is Response 1. By default the file beside the labels that is called like them with
            ``.key.jsonl`` behind the stem; not needed where the labels carry ``first_variant`` themselves.
        encoding: of text files that are not UTF-8.

    Raises:
        InputError: when the labels or their key cannot be read, or none of them is of this criterion.

    Example:
        >>> import json
        >>> from pathlib import Path
        >>> from pairscale import InMemoryTraceSource, evaluate_pairwise
        >>> case = {"case_id": "t1::clarity", "task_id": "t1", "criterion": "clarity", "first_variant": "a"}
        >>> label = {**case, "preferred": 2}
        >>> _ = Path("people.jsonl").write_text(json.dumps(label), "utf-8")
        >>> people = human_labels("people.jsonl", criterion="clarity", key="people")
        >>> old, new = InMemoryTraceSource({"t1": "Rome?"}), InMemoryTraceSource({"t1": "Rome."})
        >>> evaluate_pairwise(old, new, comparators=[people]).tally("people")
        (0, 1, 0)
    """
    require_text(criterion, "criterion")
    require_text(key, "key")
    labels = read_labels(path, key_file=key_file, encoding=encoding).of(criterion)
    if labels.problems.height:
        first = labels.problems.row(0, named=True)
        notice(
            f"{path}: {labels.problems.height:,} of the labels cannot be used, the first in row {first['row']}: "
            f"{first['problem']}; human_labels(…).problems lists them"
        )
    return LabelComparator(labels, key)


class LabelComparator:
    """Labels as a comparator; :func:`human_labels` makes one.

    Attributes:
        key: what the figures stand under.
        labels: one row per label that can be used.
        problems: one row per label that cannot: ``row case_id labeller preferred problem``.
    """

    remember = False  # the file may be corrected, and grow

    def __init__(self, labels: Labels, key: str) -> None:
        self.key = key
        self.labels = labels.table
        self.problems = labels.problems
        self._cases = labels.table.partition_by("task_id", "repeat", as_dict=True)

    async def compare(
        self,
        *,
        task: Task,
        trace_a: Trace,
        trace_b: Trace,
        reference_outputs: Any = None,  # noqa: ARG002
        repeat: int = 1,
    ) -> PairwiseOutcome:
        """Which is better, as most labellers said."""
        labels = self._cases.get((task.task_id, repeat))
        if labels is None:
            return PairwiseOutcome.abstain("no one has labelled this case", detail={"missing": True})
        digests = {
            "a": answers_digest(trace_a.output, trace_b.output),
            "b": answers_digest(trace_b.output, trace_a.output),
        }
        rows = labels.to_dicts()
        if any(row["answers"] not in {None, digests[row["first_variant"]]} for row in rows):
            return PairwiseOutcome.fail("the answers are not those that were labelled", detail={"other_answers": True})
        kept = [{name: row[name] for name in ("labeller", "winner", "comment", "first_variant")} for row in rows]
        votes = [PairwiseOutcome(row["winner"]) for row in rows]
        comments = [f"{row['labeller']}: {row['comment']}" for row in rows if row["comment"]]
        return majority(votes, {"labels": kept}, "\n".join(comments))
