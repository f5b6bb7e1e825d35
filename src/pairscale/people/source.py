"""Where the page gets its questions: the labels of a run file, or the question queue of a run."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pairscale.people.labels import Labeller, Standing, whose

if TYPE_CHECKING:
    from pairscale.core.traits import Trait
    from pairscale.judges.human import QuestionQueue
    from pairscale.people.cases import Case
    from pairscale.people.labels import Choice, LabelStore

_QUEUE_WAIT = 1.5  # seconds: a run needs some hundredths of one to choose its next pair


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """All that a labeller sees of a case.

    Attributes:
        question_id: a number that says nothing of the case.
        criterion: in what one may be better.
        definition: of the criterion; may be empty.
        task_input: what both texts answer; may be empty.
        left: the text that is shown first.
        right: the other one.
    """

    question_id: int
    criterion: str
    definition: str
    task_input: str
    left: str
    right: str


class StoredLabelSource:
    """The labels of a run file, and the cases that belong to them."""

    undoes = True

    def __init__(self, store: LabelStore, cases: Sequence[Case]) -> None:
        self.store = store
        self.cases = {case.case_id: case for case in cases}
        self.secret = store.secret
        self.ties = store.ties
        self.labeller_of = store.labeller_of
        self.answer = store.answer
        self.undo = store.undo
        self.standing = store.standing

    def next(self, labeller: Labeller) -> LabelQuestion | Literal["waiting", "done"]:
        """The texts of the case that comes next, on the sides that were drawn for this labeller."""
        found = self.store.next(labeller)
        if isinstance(found, str):
            return found
        case = self.cases[found.case_id]
        texts = (case.response_2, case.response_1) if found.swapped else (case.response_1, case.response_2)
        return LabelQuestion(found.question_id, case.criterion, "", case.task_input, *texts)


class QuestionQueueSource:
    """The question queue of a run, and the people who answer it."""

    undoes = False

    def __init__(self, queue: QuestionQueue, people: Sequence[str], trait: Trait | None = None) -> None:
        self.secret = secrets.token_urlsafe(24)
        self.queue = queue
        self._trait = trait
        self.labellers = [
            Labeller(number, name, secrets.token_urlsafe(24)) for number, name in enumerate(people, start=1)
        ]

    @property
    def ties(self) -> bool:
        """Whether a tie is allowed: the run that asks decides."""
        return self.queue.ties

    def labeller_of(self, token: str) -> Labeller | None:
        """Whose link it is."""
        return whose(token, self.labellers)

    def next(self, labeller: Labeller) -> LabelQuestion | Literal["waiting", "done"]:
        """The question that the run asks, in the run's own order of the two texts."""
        found = self.queue.take(labeller.name, _QUEUE_WAIT)
        if found is None:
            return "waiting" if self.queue.is_open else "done"
        name, definition = (self._trait.name, self._trait.description) if self._trait else ("", "")
        return LabelQuestion(found.number, name, definition, "", found.first, found.second)

    def answer(self, labeller: Labeller, question_id: int, choice: Choice | None, **more: Any) -> bool:
        """Give an answer to the run; the queue refuses a tie where the choice is forced."""
        return self.queue.answer(labeller.name, question_id, choice, **more)

    def undo(self, _labeller: Labeller) -> bool:
        """Take nothing back: the run has used the answer already."""
        return False

    def standing(self, labeller: Labeller) -> Standing:
        """How much was answered; only the run knows how much is left."""
        return Standing(self.queue.answered(labeller.name), self.queue.answered(), None)


LabelSource: TypeAlias = StoredLabelSource | QuestionQueueSource
"""Where questions come from and answers go to."""
