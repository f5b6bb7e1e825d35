"""Labelling in the terminal: the same questions, the same run file, no page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pairscale.evaluate.human import for_terminal
from pairscale.people.source import LabelQuestion, StoredLabelSource

if TYPE_CHECKING:
    from pairscale.people.cases import Case
    from pairscale.people.labels import Labeller, LabelStore


def label_in_terminal(
    store: LabelStore,
    cases: Sequence[Case],
    name: str,
    *,
    ask: Callable[[str], str] | None = None,
    show: Callable[[str], None] | None = None,
) -> int:
    """Ask one person in the terminal until there is nothing left, or until they quit.

    Args:
        store: the labels.
        cases: what is labelled.
        name: who labels.
        ask: shows a prompt and returns what was typed; EOFError quits. Standard input by default.
        show: shows a text; on standard error by default, so that results can be piped.

    Returns:
        How many labels and skips were given.
    """
    say = show or _to_stderr
    asked = ask or _from_stdin
    source = StoredLabelSource(store, cases)
    labeller = store.add_labeller(name)
    before = store.standing(labeller).mine
    choices = "1 / 2 / tie" if store.ties else "1 / 2"
    say("Also: skip REASON, undo, quit.")
    while isinstance(found := source.next(labeller), LabelQuestion):
        say(_shown(found))
        try:
            if not _answered(source, labeller, found, asked(f"Which is better? {choices}: "), say):
                break
        except EOFError:
            break
    else:
        say("Done. Thank you!" if found == "done" else "What is left is with other people now; come back later.")
    return store.standing(labeller).mine - before


def _shown(question: LabelQuestion) -> str:
    task = f"Task: {question.task_input}\n" if question.task_input.strip() else ""
    return for_terminal(f"\nCriterion: {question.criterion}\n{task}[1] {question.left}\n[2] {question.right}")


def _answered(
    source: StoredLabelSource, labeller: Labeller, question: LabelQuestion, typed: str, say: Callable[[str], None]
) -> bool:
    """Do what was typed; False to quit."""
    word, _, rest = typed.strip().partition(" ")
    word = {"t": "tie", "s": "skip", "u": "undo", "q": "quit"}.get(word.lower(), word.lower())
    if word == "quit":
        return False
    if word == "undo":
        say("Taken back." if source.undo(labeller) else "There is nothing to take back.")
    elif word == "skip" and rest.strip():
        source.answer(labeller, question.question_id, None, skipped=rest.strip())
    elif word in {"1", "2"} or (word == "tie" and source.ties):
        source.answer(labeller, question.question_id, word, comment=rest.strip() or None)  # type: ignore[arg-type]
    else:
        say("To skip, say why: skip REASON." if word == "skip" else "Please answer 1 or 2" + ", or tie." * source.ties)
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
