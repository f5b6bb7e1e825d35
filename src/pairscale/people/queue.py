"""What people are asked: the cases of a run file with their labels, or the live questions of a run."""

from __future__ import annotations

import hmac
import random
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from sqlalchemy import func, or_, select, update

from pairscale.core.errors import InputError, StoreError, StoreMismatchError
from pairscale.core.options import FilePath, optional, require_int, require_number, require_seed
from pairscale.core.provenance import utc_now
from pairscale.core.tables import Row, Values, listed
from pairscale.core.timelimit import Clock
from pairscale.core.traits import Trait
from pairscale.judges.base import Verdict
from pairscale.people.cases import Case, clean_text
from pairscale.store import labels as labelling
from pairscale.store.database import next_number
from pairscale.store.runfile import open_run
from pairscale.store.schema import label_cases, label_questions, labellers, labels

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from pairscale.judges.human import QuestionQueue
    from pairscale.store.chain import Change

Choice: TypeAlias = Literal["1", "2", "tie"]

LABEL_COLUMNS = (
    "case_id", "task_id", "criterion", "labeller", "preferred", "comment", "skipped", "decision_ms", "labelled_at",
)  # fmt: skip
"""The fields of exported labels; ``preferred`` is 1, 2 or tie in the manifest's order, null where it was skipped."""

HOLD_SECONDS = 30 * 60.0
_LIVE_HOLD_S = 10 * 60.0
_MODULUS = 2**31 - 1  # a prime: by it, a factor and a shift, every labeller has an order of their own
_QUEUE_WAIT_S = 1.5  # a run needs some hundredths of a second to choose its next pair
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,}")
_LONGEST_NAME = 100
_N_RECENT = 5
_BEGINNING = 60  # characters of a text by which a labeller knows it again
_CASES = label_cases.c
_QUESTIONS = label_questions.c
_LABELS = labels.c
_WHO = labellers.c
_LABELLER = (_WHO.labeller_id, _WHO.name, _WHO.token)
_CASE_FIELDS = ("case_id", "task_id", "criterion", "ID1", "ID2", "digest")
_OTHER: dict[str, Choice] = {"1": "2", "2": "1", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Labeller:
    """A person with a link of their own."""

    labeller_id: int
    name: str
    token: str


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """What a labeller is asked.

    Attributes:
        question_id: what the page calls it; it does not reveal the case.
        left: the text that is shown first.
        right: the other one.
        criterion: what one text may be better in.
        definition: of the criterion; may be empty.
        task_input: what both texts answer; may be empty.
        case_id: the case, which no page shows; empty for a question of a run.
        swapped: whether the second text of the case is shown first.
    """

    question_id: int
    left: str
    right: str
    criterion: str = ""
    definition: str = ""
    task_input: str = ""
    case_id: str = ""
    swapped: bool = False


Turn: TypeAlias = LabelQuestion | Literal["waiting", "done", "paused"]
"""What comes next for a labeller; ``waiting`` while all that is missing is held by others."""


@dataclass(frozen=True, slots=True)
class LabelProgress:
    """The progress of labelling.

    Attributes:
        mine: labels and skips of the labeller.
        labels: labels that count: up to the wanted number for each case.
        wanted: labels when all is done; None when that is not known.
    """

    mine: int
    labels: int
    wanted: int | None


@dataclass(frozen=True, slots=True)
class RecentAnswer:
    """An answer that its labeller may still change.

    Attributes:
        question_id: of the question.
        choice: ``1`` for the left text, ``2``, ``tie``, or ``skipped``.
        left: how the left text begins.
        right: how the right text begins.
    """

    question_id: int
    choice: str
    left: str
    right: str


class LabelStore:
    """The labels of a run file, and who gets which case: a queue of questions.

    Each case gets ``labels_per_case`` labels, and no labeller sees a case twice. Cases that others have begun come
    first, so that they are complete early; among equals, each labeller has an order of their own. A case that a
    labeller is asked about is held for ``hold`` seconds; after that others may get it, and a label that comes later
    still counts.

    Any thread may use it. One process at a time may write to a run file.

    Args:
        run: the run file: a path, created if it is missing, or a database URL; None for memory only. It holds the links
            of labellers, so that only its owner may read it.
        cases: what is labelled. The run file must know them by the same texts; new ones are added.
        labellers: names of people who label; more can be added later.
        labels_per_case: labels that each case gets; by default as before, else 2 with several labellers and 1 with one.
        ties: whether a tie is allowed; by default as before, else yes.
        seed: of sides and orders; by default as before, else random.
        owner_token: for the owner's page; by default as before, else random.
        write: False reads only, also while another process labels.
        hold: seconds.
        clock: the time in seconds.

    Attributes:
        run: the open run file.
        name: its name.
        cases: what is labelled, by the ids of the cases.
        labels_per_case: labels that each case gets.
        ties: whether a tie is allowed.

    Raises:
        StoreBusyError: another process is writing to the run file.
        StoreMismatchError: the run file holds labels of other cases.
    """

    undoes = True
    shuffles = True

    def __init__(
        self,
        run: FilePath | None,
        cases: Sequence[Case],
        *,
        labellers: Sequence[str] = (),
        labels_per_case: int | None = None,
        ties: bool | None = None,
        seed: int | None = None,
        owner_token: str | None = None,
        write: bool = True,
        hold: float = HOLD_SECONDS,
        clock: Clock = time.time,
    ) -> None:
        labels_per_case = optional(require_int, labels_per_case, "labels_per_case", least=1)
        seed = require_seed(seed)
        hold = require_number(hold, "hold", least=0)
        if owner_token is not None and not _TOKEN.fullmatch(owner_token):
            raise InputError("an owner's token is 16 letters, digits, - and _ or more")
        names = [_checked_name(name) for name in labellers]
        self.cases = {case.case_id: case for case in cases}
        self._write = write
        self._hold = hold
        self._clock = clock
        self.run = labelling.open_private(run) if write else open_run(run)
        self.name = self.run.name
        wanted = {"labels_per_case": labels_per_case, "ties": ties, "seed": seed}
        defaults = {"labels_per_case": 2 if len(names) > 1 else 1, "ties": True, "seed": secrets.randbits(53)}
        links = {"owner_token": labelling.new_token(), "secret": labelling.new_token()}
        try:
            with self.run.snapshot():  # one transaction: what is refused leaves nothing
                self._enter()
                for name in names:
                    self.add_labeller(name)
                settings = self._settings(labelling.LABELLING, wanted, defaults)
                kept = self._settings(labelling.LINKS, {"owner_token": owner_token}, links)
        except BaseException:
            self.close()
            raise
        self.labels_per_case = int(settings["labels_per_case"])
        self.ties = bool(settings["ties"])
        self._seed = int(settings["seed"])
        self.owner_token = str(kept["owner_token"])
        self.secret = str(kept["secret"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the run file."""
        self.run.close()

    def _changing(self) -> AbstractContextManager[Change]:
        """A transaction that writes and is chained: all or nothing, and on the disk when the block has ended."""
        if not self._write:
            raise StoreError(f"{self.name} was opened to read its labels; open it with write=True to change them")
        return self.run.writer.changing()

    def _settings(self, fact: str, wanted: Values, defaults: Values) -> dict[str, Any]:
        """The settings that are wanted, else those of the run file, else the defaults; changes are kept."""
        kept = self.run.get_meta(fact) or {}
        values = {**defaults, **kept, **{name: value for name, value in wanted.items() if value is not None}}
        if values != kept and (self._write or any(value is not None for value in wanted.values())):
            with self._changing():
                self.run.set_meta(fact, values)
        return values

    def _enter(self) -> None:
        """Check the cases against those of the run file, and add the new ones."""
        cases = self.cases
        with self.run.transaction() as connection:
            kept = connection.execute(select(_CASES.case_id, _CASES.digest))
            digests = {row.case_id: row.digest for row in kept}
        changed = [name for name, digest in digests.items() if name in cases and cases[name].digest != digest]
        if changed:
            raise StoreMismatchError(
                f"{self.name} holds labels of other texts or another criterion under {listed(changed)}; restore them, "
                "or use another run file for these labels"
            )
        missing = sorted(digests.keys() - cases.keys())
        if missing:
            raise StoreMismatchError(
                f"{self.name} holds the cases {listed(missing)}, which are not among those given; "
                "use another run file for these labels"
            )
        if not self._write:
            if not digests:
                raise InputError(f"{self.name} holds no labels yet; `pairscale label` collects them")
            self.cases = {name: cases[name] for name in digests}
            return
        self.add(case for name, case in cases.items() if name not in digests)

    def add(self, cases: Iterable[Case]) -> None:
        """Add new cases."""
        new = list(cases)
        if not new:
            return
        self._enter_items(new)
        rows = []
        with self.run.transaction() as connection:
            first = next_number(connection, _CASES.case_number)
        for number, case in enumerate(new, start=first):
            self.cases[case.case_id] = case
            row = {name: getattr(case, name) for name in _CASE_FIELDS}
            if case.ID1 is None:  # texts that are samples are in the table of samples
                row |= {name: getattr(case, name) for name in ("task_input", "response_1", "response_2")}
            rows.append(row | {"case_number": number, "n_labels": 0})
        with self._changing() as change:
            change.insert(label_cases, rows)

    def _enter_items(self, cases: Iterable[Case]) -> None:
        """Add the samples that cases are about, as far as the run file does not know them."""
        texts: dict[str, str] = {}
        more: dict[str, Row] = {}
        for case in cases:
            if case.ID1 is not None and case.ID2 is not None:
                texts |= {case.ID1: case.response_1, case.ID2: case.response_2}
                more |= {case.ID1: case.columns_1, case.ID2: case.columns_2}
        if not texts:
            return
        stored = {name: clean_text(text) for name, text in self.run.items().select("ID", "text").iter_rows()}
        changed = [name for name, text in texts.items() if stored.get(name, text) != text]
        if changed:
            raise StoreMismatchError(
                f"{self.name} holds another text for {listed(changed)}; restore the text, or use another run file"
            )
        self.run.add_items(
            {**more[name], "ID": name, "text": text} for name, text in texts.items() if name not in stored
        )

    # Labellers

    def add_labeller(self, name: str, token: str | None = None) -> Labeller:
        """The labeller of a name; a new one gets a link, with this token where there is one."""
        name = _checked_name(name)
        with self._changing() as change:
            connection = change.connection
            row = connection.execute(select(*_LABELLER).where(_WHO.name == name)).first()
            if row is None:
                labeller = Labeller(next_number(connection, _WHO.labeller_id), name, token or labelling.new_token())
                change.insert(labellers, [asdict(labeller) | {"joined_at": utc_now()}])
                return labeller
        return Labeller(*row)

    def labellers(self) -> list[Labeller]:
        """All labellers, in the order in which they were added."""
        with self.run.transaction() as connection:
            return [Labeller(*row) for row in connection.execute(select(*_LABELLER).order_by(_WHO.labeller_id))]

    def labeller_of(self, token: str) -> Labeller | None:
        """Whose link it is; all are compared, each in constant time."""
        presented = token.encode("utf-8", "replace")
        matching = [
            labeller for labeller in self.labellers() if hmac.compare_digest(labeller.token.encode(), presented)
        ]
        return next(iter(matching), None)

    # Questions

    def next(self, labeller: Labeller) -> Turn:
        """What to ask a labeller now: what they have begun, else the next case.

        Returns:
            A case; ``waiting`` while all that is missing is held by others; ``done``; or ``paused``.
        """
        if labeller.name in self.paused():
            return "paused"
        now = self._clock()
        me = labeller.labeller_id
        with self._changing() as change:
            connection = change.connection
            asked = connection.execute(
                select(label_questions)
                .where(or_(_QUESTIONS.labeller_id == me, _QUESTIONS.done.is_(False)))
                .order_by(_QUESTIONS.question_id)
            ).all()
            mine = {row.case_number: row for row in asked if row.labeller_id == me}
            held = Counter(row.case_number for row in asked if not row.done and row.held_until > now)
            cases = connection.execute(select(_CASES.case_number, _CASES.case_id, _CASES.n_labels)).all()
            names = {case.case_number: case.case_id for case in cases}
            lacking = {case.case_number: case.n_labels for case in cases if case.n_labels < self.labels_per_case}
            taken = {number: n + held[number] for number, n in lacking.items()}
            free = {number: n for number, n in taken.items() if n < self.labels_per_case}
            for number, row in mine.items():
                if not row.done and (row.held_until > now or number in free):
                    self._keep(connection, row, now)
                    return self._question(row.question_id, names[number], row.swapped)
            new = free.keys() - mine.keys()
            if not new:
                is_missing = any(number not in mine or not mine[number].done for number in lacking)
                return "waiting" if is_missing else "done"
            place = self._order(labeller.name)
            number = min(new, key=lambda number: (-free[number], place(number)))
            swapped = self._is_swapped(labeller.name, names[number])
            question_id = next_number(connection, _QUESTIONS.question_id)
            new_question = {"question_id": question_id, "labeller_id": me, "case_number": number, "swapped": swapped}
            new_question |= {"shown_at": now, "held_until": now + self._hold, "done": False}
            change.insert(label_questions, [new_question])
            return self._question(question_id, names[number], swapped)

    def _order(self, name: str) -> Callable[[int], int]:
        """A labeller's own order of the cases, by their numbers."""
        draw = random.Random(f"{self._seed}|{name}")  # noqa: S311 - an order, not a secret
        factor = draw.randrange(1, _MODULUS) if self.shuffles else 1
        shift = draw.randrange(_MODULUS) if self.shuffles else 0
        return lambda number: (number * factor + shift) % _MODULUS

    def _question(self, question_id: int, case_id: str, swapped: bool) -> LabelQuestion:
        """The texts of a case, on the sides that were drawn for a labeller."""
        case = self.cases[case_id]
        left = case.response_2 if swapped else case.response_1
        right = case.response_1 if swapped else case.response_2
        return LabelQuestion(question_id, left, right, case.criterion, "", case.task_input, case_id, swapped)

    def _keep(self, connection: Connection, row: Any, now: float) -> None:
        """Hold a question longer, though not at every reload; one whose hold had ended counts as shown just now."""
        if row.held_until - now > self._hold / 2:
            return
        shown = now if row.held_until <= now else row.shown_at
        _change_question(connection, row.question_id, held_until=now + self._hold, shown_at=shown)

    def _is_swapped(self, name: str, case_id: str) -> bool:
        """Whether a labeller sees the second text of a case first, by a draw of their own."""
        draw = random.Random(f"{self._seed}|{name}|{case_id}").random()  # noqa: S311 - a side, not a secret
        return self.shuffles and draw < 0.5

    # Labels

    def answer(
        self,
        labeller: Labeller,
        question_id: int,
        choice: Choice | None,
        *,
        skipped: str | None = None,
        comment: str | None = None,
        elapsed_ms: int | None = None,
    ) -> bool:
        """Save a label, or a skip with its reason; it is on the disk when this returns.

        Args:
            labeller: who answers.
            question_id: of a question of theirs.
            choice: as it was shown: 1 is the left text; None skips.
            skipped: the reason.
            comment: in the labeller's words.
            elapsed_ms: what the page measured; never more than the time since the case was first shown.

        Returns:
            Whether it was saved; False when the question is answered already.

        Raises:
            InputError: it is no question of this labeller, or the choice is not allowed.
        """
        if (choice is None) != bool(skipped):
            raise InputError("choose 1, 2 or tie, or skip with a reason")
        if choice == "tie" and not self.ties:
            raise InputError("there are no ties here; choose 1 or 2, or skip with a reason")
        theirs = select(label_questions).where(
            _QUESTIONS.question_id == question_id, _QUESTIONS.labeller_id == labeller.labeller_id
        )
        with self._changing() as change:
            connection = change.connection
            question = connection.execute(theirs).first()
            if question is None:
                raise InputError("that question belongs to another labeller")
            if question.done:
                return False
            since = max(0, round(1000 * (self._clock() - question.shown_at)))
            label = {
                "label_id": next_number(connection, _LABELS.label_id),
                "question_id": question_id,
                "preferred": _OTHER[choice] if choice is not None and question.swapped else choice,
                "skipped": None if skipped is None else clean_text(skipped),
                "comment": clean_text(comment) if comment else None,
                "decision_ms": since if elapsed_ms is None else min(max(0, elapsed_ms), since),
                "labelled_at": utc_now(),
            }
            change.insert(labels, [label])
            _change_question(connection, question_id, done=True)
            if choice is not None:
                _count(connection, question.case_number, 1)
        return True

    def undo(self, labeller: Labeller, question_id: int | None = None) -> bool:
        """Take back one of the last five labels of a labeller, and ask them again.

        Args:
            labeller: who answered.
            question_id: of the answer; the last one when None.

        Returns:
            Whether there was such an answer.
        """
        now = self._clock()
        with self._changing() as change:
            recent = self._latest(change.connection, labeller, _N_RECENT)
            last = next((row for row in recent if question_id in {None, row.question_id}), None)
            if last is None:
                return False
            _take_back(change, [last])
            _change_question(change.connection, last.question_id, done=False, shown_at=now, held_until=now + self._hold)
        return True

    def recent(self, labeller: Labeller) -> list[RecentAnswer]:
        """The answers that a labeller may change, the last one first."""
        with self.run.transaction() as connection:
            rows = self._latest(connection, labeller, _N_RECENT)
        answers = []
        for row in rows:
            asked = self._question(row.question_id, row.case_id, row.swapped)
            choice = _OTHER[row.preferred] if row.swapped and row.preferred else row.preferred or "skipped"
            answers.append(RecentAnswer(row.question_id, choice, asked.left[:_BEGINNING], asked.right[:_BEGINNING]))
        return answers

    def _latest(self, connection: Connection, labeller: Labeller, most: int | None = None) -> Sequence[Any]:
        """The standing labels and skips of a labeller, the last one first."""
        return connection.execute(labelling.LATEST_FIRST.limit(most), {"me": labeller.labeller_id}).all()

    # People who pause or leave

    def paused(self) -> list[str]:
        """The names of those who are not asked at present."""
        return list(self.run.get_meta(labelling.PAUSED) or [])

    def pause(self, labeller: Labeller, paused: bool = True) -> None:
        """Ask a labeller nothing from now on, or ask them again; what they hold is free at once."""
        names = [name for name in self.paused() if name != labeller.name]
        if paused:
            names.append(labeller.name)
        held = update(label_questions).where(_QUESTIONS.labeller_id == labeller.labeller_id, _QUESTIONS.done.is_(False))
        with self._changing() as change:
            change.set_fact(labelling.PAUSED, names)
            change.connection.execute(held.values(held_until=0))

    def withdraw(self, labeller: Labeller) -> int:
        """Take back all answers of a labeller, so that others are asked, and pause them; gives how many these were.

        The answers stay in the run file, as taken back.
        """
        with self._changing() as change:
            rows = self._latest(change.connection, labeller)
            _take_back(change, rows)
        self.pause(labeller)
        return len(rows)

    # Reading

    def progress(self, labeller: Labeller) -> LabelProgress:
        """The progress, for a labeller's page."""
        mine = select(func.count()).where(_QUESTIONS.labeller_id == labeller.labeller_id, _QUESTIONS.done.is_(True))
        with self.run.transaction() as connection:
            return LabelProgress(connection.execute(mine).scalar_one(), *self._totals(connection))

    def totals(self) -> tuple[int, int]:
        """Labels that count, and labels when all is done."""
        with self.run.transaction() as connection:
            return self._totals(connection)

    def _totals(self, connection: Connection) -> tuple[int, int]:
        """Labels that count, and labels when all is done."""
        n_labels, n_cases = connection.execute(labelling.TOTALS, {"k": self.labels_per_case}).one()
        return int(n_labels), n_cases * self.labels_per_case

    def state(self) -> tuple[int, ...]:
        """Numbers that differ whenever anything has changed that an overview shows."""
        people = select(func.count()).select_from(labellers).scalar_subquery()
        query = select(func.count(), func.count(_LABELS.undone_at), people).select_from(labels)
        with self.run.transaction() as connection:
            return (*connection.execute(query).one(), *map(hash, self.paused()))


def _change_question(connection: Connection, question_id: int, **values: Any) -> None:
    connection.execute(update(label_questions).where(_QUESTIONS.question_id == question_id).values(**values))


def _take_back(change: Change, rows: Sequence[Any]) -> None:
    """Mark labels as taken back; they stay in the run file."""
    for row in rows:
        change.connection.execute(update(labels).where(_LABELS.label_id == row.label_id).values(undone_at=utc_now()))
        change.changed(labels, [row.label_id])
        if row.preferred is not None:
            _count(change.connection, row.case_number, -1)


def _count(connection: Connection, case_number: int, step: int) -> None:
    """Add to the number of standing labels of a case."""
    counted = update(label_cases).where(_CASES.case_number == case_number)
    connection.execute(counted.values(n_labels=_CASES.n_labels + step))


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InputError(f"{name!r} cannot be the name of a labeller; give up to {_LONGEST_NAME} printable letters")
    return name


class LiveQuestions(LabelStore):
    """The questions that a run asks people: the same queue in memory, to which a case is added for every question.

    They come in the order of the run, with the two texts on the sides that it chose.

    Args:
        queue: that of the judge.
        people: who answers; each gets a link of their own.
        trait: what is judged.
        asking: the run file of the run that asks. It keeps the links, so that they are the same when the run is
            resumed; without one they end with the page.

    Raises:
        StoreBusyError: another process is writing to the run file.
    """

    undoes = False  # the run has used an answer as soon as it is given
    shuffles = False

    def __init__(
        self,
        queue: QuestionQueue,
        people: Sequence[str],
        trait: Trait | None = None,
        asking: FilePath | None = None,
    ) -> None:
        names = [_checked_name(name) for name in people]
        links = None if asking is None else labelling.links_of_people(asking, names)
        super().__init__(None, [], labels_per_case=1, hold=_LIVE_HOLD_S)
        tokens: Mapping[str, str] = {}
        if links is not None:
            self.owner_token = links["owner_token"]
            self.secret = links["secret"]
            tokens = links["people"]
        for name in names:
            self.add_labeller(name, tokens.get(name))
        self.asking = asking
        self._queue = queue
        self._trait = trait or Trait("", "")
        self._asked: dict[int, str] = {}

    def next(self, labeller: Labeller) -> Turn:
        """The oldest question that is free, which may take a moment to come."""
        if labeller.name in self.paused():
            return "paused"
        self.ties = self._queue.ties
        deadline = time.monotonic() + _QUEUE_WAIT_S
        with self._queue.changed:
            while self._queue.is_open:
                question = self._free(labeller)
                if question is not None:
                    self._asked[question.question_id] = question.case_id
                    return replace(question, definition=self._trait.description)
                if not self._queue.changed.wait(deadline - time.monotonic()):
                    return "waiting"
        return "done"

    def _free(self, labeller: Labeller) -> LabelQuestion | None:
        """A question that the run still waits for, and that no one else is answering; None when there is none."""
        new = {str(number): pair for number, pair in self._queue.waiting.items() if str(number) not in self.cases}
        about = (self._trait.name, "")
        self.add(
            Case(name, name, *about, clean_text(pair.first["text"]), clean_text(pair.second["text"]))
            for name, pair in new.items()
        )
        question = super().next(labeller)
        while isinstance(question, LabelQuestion):
            if int(question.case_id) in self._queue.waiting:
                return question
            super().answer(labeller, question.question_id, None, skipped="the run has given up")
            question = super().next(labeller)
        return None

    def answer(self, labeller: Labeller, question_id: int, choice: Choice | None, **more: Any) -> bool:
        """Give an answer to the run; a question that all have skipped is an abstention."""
        if not super().answer(labeller, question_id, choice, **more):
            return False
        name = self._asked[question_id]
        question_labels = [label for label in self.run.labels().to_dicts() if label["case_id"] == name]
        skips = {label["labeller"]: label["skipped"] for label in question_labels if label["skipped"]}
        asked = {person.name for person in self.labellers()} - set(self.paused())
        if choice is None and asked - skips.keys():
            with self._queue.changed:
                self._queue.changed.notify_all()
            return True
        last = question_labels[-1]
        facts: Values = {
            "model": labeller.name,
            "content": last["comment"],
            "raw_response": {name: last[name] for name in ("labeller", "comment", "decision_ms")} | {"skips": skips},
            "latency_s": last["decision_ms"] / 1000,
        }
        if choice is None:
            verdict = Verdict.abstain("; ".join(f"{who}: {reason}" for who, reason in skips.items()), **facts)
        elif choice == "tie":
            verdict = Verdict.tie(**facts)
        else:
            verdict = Verdict.win(1 if choice == "1" else 2, **facts)
        self._queue.settle(int(name), verdict)
        return True

    def undo(self, _labeller: Labeller, _question_id: int | None = None) -> bool:
        """Take nothing back: the run has already used the answer."""
        return False

    def recent(self, _labeller: Labeller) -> list[RecentAnswer]:
        """An empty list: no answer can be changed."""
        return []

    def progress(self, labeller: Labeller) -> LabelProgress:
        """How much was answered; only the run knows how much is left."""
        return replace(super().progress(labeller), wanted=None)
