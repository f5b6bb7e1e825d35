"""Who labels what: assignment, labels, undo and their export, all in one durable file."""

from __future__ import annotations

import hmac
import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from pairscale.errors import InputError, StoreMismatchError
from pairscale.options import optional, require_int, require_number, require_seed
from pairscale.provenance import utc_now
from pairscale.tables import listed
from pairscale.web._database import Database

if TYPE_CHECKING:
    import os
    import sqlite3

    from pairscale.web.cases import Case

__all__ = ["LABEL_COLUMNS", "Assigned", "Choice", "LabelStore", "Labeller", "Standing", "other_side", "whose"]

Choice: TypeAlias = Literal["1", "2", "tie"]

LABEL_COLUMNS = (
    "case_id", "task_id", "criterion", "labeller", "preferred", "comment", "skipped", "decision_ms", "labelled_at",
)  # fmt: skip
"""The fields of exported labels; ``preferred`` is 1, 2 or tie in the manifest's order, null where it was skipped."""

HOLD_SECONDS = 30 * 60.0
_SHORTEST_TOKEN = 16
_PRIME = 2**31 - 1
_OTHER: dict[str, Choice] = {"1": "2", "2": "1", "tie": "tie"}


def other_side(choice: Choice) -> Choice:
    """The same choice, told by the other order of the two texts."""
    return _OTHER[choice]


@dataclass(frozen=True, slots=True)
class Labeller:
    """A person with a link of their own."""

    labeller_id: int
    name: str
    token: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """A case before a labeller.

    Attributes:
        question_id: what the page calls it; it says nothing of the case.
        case_id: the case.
        turned: whether the manifest's second text is shown first.
    """

    question_id: int
    case_id: str
    turned: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the labelling is.

    Attributes:
        mine: labels and skips of the labeller.
        labels: labels that count: up to the wanted number for each case.
        wanted: labels when all is done; None when nobody knows.
    """

    mine: int
    labels: int
    wanted: int | None


def whose(token: str, labellers: Iterable[Labeller]) -> Labeller | None:
    """Whose link it is; all are compared, each in constant time."""
    given = token.encode("utf-8", "replace")
    matching = [one for one in labellers if hmac.compare_digest(one.token.encode(), given)]
    return matching[0] if matching else None


class LabelStore:
    """The labels of one manifest.

    Each case gets ``labels_per_case`` labels, and nobody sees a case twice. Cases that others have begun come first,
    so that they are complete early; among equals, each labeller has an order of their own. A case that is put before a
    labeller is held for ``hold`` seconds; after that others may get it, and a label that comes later still counts.

    Args:
        path: the file; made when it is missing.
        cases: what is labelled. The file must know them by the same texts; new ones join.
        labels_per_case: labels that each case gets; by default what the file says, else 1.
        ties: whether a tie may be said; by default what the file says, else yes.
        seed: of sides and orders; by default the file's, or a random one.
        owner_token: for the owner's page; by default the file's, or a random one.
        hold: seconds.
        clock: the time in seconds.

    Raises:
        StoreMismatchError: the file belongs to other cases.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        cases: Sequence[Case],
        *,
        labels_per_case: int | None = None,
        ties: bool | None = None,
        seed: int | None = None,
        owner_token: str | None = None,
        hold: float = HOLD_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        labels_per_case = optional(require_int, labels_per_case, "labels_per_case", least=1)
        seed, hold = require_seed(seed), require_number(hold, "hold", least=0)
        if owner_token is not None and (len(owner_token) < _SHORTEST_TOKEN or not _is_token(owner_token)):
            raise InputError(f"an owner's token is {_SHORTEST_TOKEN} letters, digits, - and _ or more")
        self.path = Path(path)
        self._hold, self._clock = hold, clock
        self._database = Database(self.path)
        try:
            with self._database.transaction():
                self._enter(cases)
                self.labels_per_case: int = self._setting("labels_per_case", labels_per_case, lambda: 1)
                self.ties: bool = self._setting("ties", ties, lambda: True)
                self._seed: int = self._setting("seed", seed, lambda: secrets.randbits(53))
                self.owner_token: str = self._setting("owner_token", owner_token, _token)
                self.secret: str = self._setting("secret", None, _token)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _setting(self, key: str, given: Any, default: Callable[[], Any]) -> Any:
        kept = self._database.fact(key)
        value = given if given is not None else default() if kept is None else kept
        if value != kept:
            self._database.set_fact(key, value)
        return value

    def _enter(self, cases: Iterable[Case]) -> None:
        known = {row["case_id"]: row["digest"] for row in self._database.rows("SELECT case_id, digest FROM cases")}
        given = {case.case_id: case for case in cases}
        changed = [name for name, digest in known.items() if name in given and given[name].digest != digest]
        if changed:
            raise StoreMismatchError(
                f"{self.path} holds labels of other texts under {listed(changed)}; restore the texts, or take another "
                "file for the labels"
            )
        if missing := sorted(known.keys() - given.keys()):
            raise StoreMismatchError(
                f"{self.path} knows {listed(missing)}, which the manifest lacks; is it the labels of another one?"
            )
        new = [case for name, case in given.items() if name not in known]
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT INTO cases (case_id, task_id, criterion, digest) VALUES (?, ?, ?, ?)",
                [(case.case_id, case.task_id, case.criterion, case.digest) for case in new],
            )

    # Labellers

    def add_labeller(self, name: str) -> Labeller:
        """The labeller of a name; a new one gets a link."""
        name = " ".join(name.split())
        if not name or len(name) > 100 or not name.isprintable():
            raise InputError(f"{name!r} cannot be the name of a labeller; give up to 100 printable letters")
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO labellers (name, token, joined_at) VALUES (?, ?, ?)", (name, _token(), utc_now())
            )
            found = self._database.rows("SELECT labeller_id, name, token FROM labellers WHERE name = ?", name)
        return Labeller(*found[0])

    def labellers(self) -> list[Labeller]:
        """Everybody, in the order in which they joined."""
        found = self._database.rows("SELECT labeller_id, name, token FROM labellers ORDER BY labeller_id")
        return [Labeller(*row) for row in found]

    def labeller_of(self, token: str) -> Labeller | None:
        """Whose link it is."""
        return whose(token, self.labellers())

    # Questions

    def next(self, labeller: Labeller) -> Assigned | Literal["waiting", "done"]:
        """What to put before a labeller now: what they have begun, else the next case.

        Returns:
            A case; ``waiting`` while all that is missing is held by others; or ``done``.
        """
        now = self._clock()
        with self._database.transaction() as connection:
            for row in connection.execute(_OPEN, {"me": labeller.labeller_id, "now": now}):
                if row["held_until"] > now or row["taken"] < self.labels_per_case:
                    self._keep(connection, row, now)
                    return Assigned(row["question_id"], row["case_id"], bool(row["turned"]))
            draw = random.Random(f"{self._seed}|{labeller.name}")  # noqa: S311 - an order, not a secret
            order = {"factor": draw.randrange(1, _PRIME), "shift": draw.randrange(_PRIME)}
            wanted = {"me": labeller.labeller_id, "now": now, "k": self.labels_per_case}
            new = connection.execute(_NEW, wanted | order).fetchone()
            if new is None:
                missing = connection.execute(_MISSING, wanted).fetchone()
                return "waiting" if missing else "done"
            turned = self._turned(labeller.name, new["case_id"])
            made = connection.execute(
                "INSERT INTO questions (labeller_id, number, turned, shown_at, held_until) VALUES (?, ?, ?, ?, ?)",
                (labeller.labeller_id, new["number"], turned, now, now + self._hold),
            )
            return Assigned(int(made.lastrowid or 0), new["case_id"], turned)

    def _keep(self, connection: sqlite3.Connection, row: sqlite3.Row, now: float) -> None:
        """Hold a question longer; one that had lapsed is shown anew. Not for every look at the page."""
        if row["held_until"] - now > self._hold / 2:
            return
        shown = now if row["held_until"] <= now else row["shown_at"]
        connection.execute(
            "UPDATE questions SET held_until = ?, shown_at = ? WHERE question_id = ?",
            (now + self._hold, shown, row["question_id"]),
        )

    def _turned(self, name: str, case_id: str) -> bool:
        return random.Random(f"{self._seed}|{name}|{case_id}").random() < 0.5  # noqa: S311 - a side, not a secret

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
            InputError: it is no question of this labeller, or that choice is not to be had.
        """
        if (choice is None) != bool(skipped):
            raise InputError("choose 1, 2 or tie, or skip with a reason")
        if choice == "tie" and not self.ties:
            raise InputError("there are no ties here; choose 1 or 2, or skip with a reason")
        with self._database.transaction() as connection:
            found = connection.execute(
                "SELECT * FROM questions WHERE question_id = ? AND labeller_id = ?", (question_id, labeller.labeller_id)
            ).fetchone()
            if found is None:
                raise InputError("that is no question of yours")
            if found["done"]:
                return False
            since = max(0, round(1000 * (self._clock() - found["shown_at"])))
            took = since if elapsed_ms is None else min(max(0, elapsed_ms), since)
            preferred = other_side(choice) if choice is not None and found["turned"] else choice
            connection.execute(
                "INSERT INTO labels (question_id, preferred, skipped, comment, decision_ms, labelled_at) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (question_id, preferred, skipped, comment or None, took, utc_now()),
            )
            self._settle(connection, found, done=True, counts=choice is not None)
        return True

    def undo(self, labeller: Labeller) -> bool:
        """Take back the last standing label of a labeller, and put its case before them again; False without any."""
        now = self._clock()
        with self._database.transaction() as connection:
            last = connection.execute(_LAST, (labeller.labeller_id,)).fetchone()
            if last is None:
                return False
            connection.execute("UPDATE labels SET undone_at = ? WHERE label_id = ?", (utc_now(), last["label_id"]))
            connection.execute(
                "UPDATE questions SET shown_at = ?, held_until = ? WHERE question_id = ?",
                (now, now + self._hold, last["question_id"]),
            )
            self._settle(connection, last, done=False, counts=last["preferred"] is not None)
        return True

    def _settle(self, connection: sqlite3.Connection, question: sqlite3.Row, *, done: bool, counts: bool) -> None:
        connection.execute("UPDATE questions SET done = ? WHERE question_id = ?", (done, question["question_id"]))
        if counts:
            step = 1 if done else -1
            connection.execute("UPDATE cases SET n_labels = n_labels + ? WHERE number = ?", (step, question["number"]))

    # Reading

    def standing(self, labeller: Labeller) -> Standing:
        """How far it is, for a labeller's page."""
        query = "SELECT count(*) AS mine FROM questions WHERE labeller_id = ? AND done = 1"
        mine = self._database.rows(query, labeller.labeller_id)[0]["mine"]
        return Standing(int(mine), *self.totals())

    def totals(self) -> tuple[int, int]:
        """Labels that count, and labels when all is done."""
        query = "SELECT coalesce(sum(min(n_labels, ?)), 0) AS labels, count(*) AS cases FROM cases"
        row = self._database.rows(query, self.labels_per_case)[0]
        return int(row["labels"]), int(row["cases"]) * self.labels_per_case

    def state(self) -> tuple[int, ...]:
        """Numbers that differ whenever anything has changed that an overview shows."""
        query = "SELECT count(*), count(undone_at), (SELECT count(*) FROM labellers) FROM labels"
        return tuple(self._database.rows(query)[0])

    def rows(self) -> list[dict[str, Any]]:
        """Every standing label and skip, in order: the fields of :data:`LABEL_COLUMNS`, and ``turned``."""
        return [dict(row) for row in self._database.rows(_LABELS)]


def _token() -> str:
    return secrets.token_urlsafe(24)


def _is_token(text: str) -> bool:
    return text.isascii() and text.replace("-", "").replace("_", "").isalnum()


_HELD = "SELECT count(*) FROM questions o WHERE o.number = c.number AND o.done = 0 AND o.held_until > :now"
_OPEN = f"""
SELECT q.question_id, q.turned, q.shown_at, q.held_until, c.case_id,
       c.n_labels + ({_HELD} AND o.labeller_id <> :me) AS taken
FROM questions q JOIN cases c USING (number) WHERE q.labeller_id = :me AND q.done = 0 ORDER BY q.question_id
"""  # noqa: S608 - put together from constants
_NEW = """
SELECT c.number, c.case_id FROM cases c
LEFT JOIN (SELECT number, count(*) AS n FROM questions WHERE done = 0 AND held_until > :now GROUP BY number) h
    USING (number)
WHERE c.n_labels + coalesce(h.n, 0) < :k AND c.number NOT IN (SELECT number FROM questions WHERE labeller_id = :me)
ORDER BY c.n_labels + coalesce(h.n, 0) DESC, (c.number * :factor + :shift) % 2147483647 LIMIT 1
"""
_MISSING = """
SELECT 1 FROM cases WHERE n_labels < :k
AND number NOT IN (SELECT number FROM questions WHERE labeller_id = :me AND done = 1) LIMIT 1
"""
_LAST = """
SELECT l.label_id, l.preferred, q.question_id, q.number FROM labels l JOIN questions q USING (question_id)
WHERE q.labeller_id = ? AND l.undone_at IS NULL ORDER BY l.label_id DESC LIMIT 1
"""
_LABELS = """
SELECT c.case_id, c.task_id, c.criterion, w.name AS labeller, l.preferred, l.comment, l.skipped, l.decision_ms,
       l.labelled_at, q.turned
FROM labels l JOIN questions q USING (question_id) JOIN cases c USING (number) JOIN labellers w USING (labeller_id)
WHERE l.undone_at IS NULL ORDER BY l.label_id
"""
