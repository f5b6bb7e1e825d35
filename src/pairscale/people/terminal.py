"""Labelling in the terminal: the same questions, the same run file, no page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from pairscale.evaluate.human import for_terminal
from pairscale.people.queue import LabelQuestion

if TYPE_CHECKING:
    from pairscale.people.queue import Labeller, LabelStore


def label_in_terminal(
    store: LabelStore,
    name: str,
    *,
    ask: Callable[[str], str] | None = None,
    show: Callable[[str], None] | None = None,
) -> int:
    """Ask one person in the terminal until there is nothing left, or until they quit.

    Args:
        store: the labels.
        name: who labels.
        ask: shows a prompt and returns what was typed; EOFError quits. Standard input by default.
        show: shows a text; on standard error by default, so that results can be piped.

    Returns:
        How many labels and skips were given.
    """
    say = show or _to_stderr
    asked = ask or _from_stdin
    labeller = store.add_labeller(name)
    before = store.progress(labeller).mine
    choices = "1 / 2 / tie" if store.ties else "1 / 2"
    say("Also: skip REASON, undo, quit.")
    question = store.next(labeller)
    while isinstance(question, LabelQuestion):
        say(_shown(question))
        try:
            if not _answered(store, labeller, question, asked(f"Which is better? {choices}: "), say):
                break
        except EOFError:
            break
        question = store.next(labeller)
    if question == "done":
        say("Done. Thank you!")
    elif question == "waiting":
        say("What is left is with other people now; come back later.")
    return store.progress(labeller).mine - before


def _shown(question: LabelQuestion) -> str:
    task = f"Task: {question.task_input}\n" if question.task_input.strip() else ""
    return for_terminal(f"\nCriterion: {question.criterion}\n{task}[1] {question.left}\n[2] {question.right}")


def _answered(
    store: LabelStore, labeller: Labeller, question: LabelQuestion, typed: str, say: Callable[[str], None]
) -> bool:
    """Do what was typed; False to quit."""
    word, _, remark = typed.strip().partition(" ")
    word = {"t": "tie", "s": "skip", "u": "undo", "q": "quit"}.get(word.lower(), word.lower())
    if word == "quit":
        return False
    if word == "undo":
        say("Taken back." if store.undo(labeller) else "There is nothing to take back.")
    elif word == "skip" and remark.strip():
        store.answer(labeller, question.question_id, None, skipped=remark.strip())
    elif word in {"1", "2"} or (word == "tie" and store.ties):
        store.answer(labeller, question.question_id, word, comment=remark.strip() or None)  # type: ignore[arg-type]
    else:
        say("To skip, say why: skip REASON." if word == "skip" else "Please answer 1 or 2" + ", or tie." * store.ties)
    return True


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - this is the conversation


def _from_stdin(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)  # noqa: T201
    line = sys.stdin.readline()
    if not line:
        _to_stderr("")
        raise EOFError
    return line
