"""The audit of a run of any kind: is everything as it was written, and does it follow from what it should follow from?

The rows of all tables are compared with the hash chain; comparisons with the attempts that gave them, and these with
the replies of models; and every choice, answer and stop of an adaptive run with a replay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from pairscale.adaptive.audit import read_replay
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, StoreDamagedError
from pairscale.core.options import FilePath, checked
from pairscale.judges.answers import read_tag
from pairscale.store.audit import Evidence, check_evidence
from pairscale.store.database import raw_rows
from pairscale.store.reading import named_runs
from pairscale.store.runfile import RunFile, open_run
from pairscale.store.schema import attempts, comparisons, conditions, items, pairs

if TYPE_CHECKING:
    from pairscale.adaptive.selectors import OwnSelector

_SHOWN = 20  # differences that are printed
_NOT_CLOSED = "not closed: it is being written, its process was killed, or its end was cut off"


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport(ReprMixin):
    """What an audit found.

    Attributes:
        steps: steps of an adaptive run that were reproduced.
        refits: refits that were.
        problems: every difference, with its table and row; of a replay, the first. None when there is none.
        rows: by table, how many rows were compared with the chain.
        digest: the digest over everything, as the run file was closed with; None when something was written since, or
            its process was killed.
        imported: the digest of the exported run that it was imported from; None when it was not imported.
        preset: the preset of an adaptive run that was replayed.
        is_replayed: whether it holds an adaptive run, which was replayed because nothing in it was changed.
        digests: of several run files, the digest of each.
    """

    steps: int = 0
    refits: int = 0
    problems: tuple[str, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    digest: str | None = None
    imported: str | None = None
    preset: str | None = None
    is_replayed: bool = False
    digests: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether no difference was found."""
        return not self.problems

    @property
    def problem(self) -> str | None:
        """The first difference; None when there is none."""
        return self.problems[0] if self.problems else None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        done = f"{self.steps:,} steps, {self.refits:,} refits"
        named = "" if self.preset is None else f"preset {self.preset}: "
        if self.problems:
            n = len(self.problems)
            if n > 1:
                yield f"{n:,} differences"
            before = f"{named}after {done}: " if self.is_replayed else ""
            yield from (f"{before}{problem}" for problem in self.problems[:_SHOWN])
            if n > _SHOWN:
                yield f"and {n - _SHOWN:,} more"
            return
        if self.is_replayed:
            yield f"{named}{done}, all reproduced"
        yield f"{sum(self.rows.values()):,} rows in {len(self.rows):,} tables, all as they were written"
        if self.imported is not None:
            yield f"imported from a run with the digest {self.imported}; what happened before is not compared"
        for file, digest in self.digests.items():
            yield f"{file}: {_NOT_CLOSED if digest is None else f'digest {digest}'}"
        if not self.digests:
            yield _NOT_CLOSED if self.digest is None else f"digest {self.digest}"


@checked
def audit(
    run: FilePath | Sequence[FilePath],
    *,
    selector: str | OwnSelector | None = None,
    digest: str | None = None,
    closed: bool = False,
) -> AuditReport:
    """Check that nothing in a run file was changed, and that everything follows from what it should follow from.

    The rows of all tables are compared with the hash chain: texts, pairs, conditions, attempts, comparisons, labels and
    logs. Comparisons must follow from the attempts that gave them, and these from the replies of models. An adaptive
    run is replayed: every pair must come out as it was asked, and every stop must follow from the figures that were
    logged with it.

    The chain finds every row that was changed, added or removed, with two exceptions: a file whose hashes were all
    computed again, which ``digest`` finds, and an end that was cut off together with its part of the chain, which
    ``digest`` finds, and ``closed`` unless it was cut off at an earlier closing.

    Args:
        run: the run file; or several, as a list, their folder or a pattern.
        selector: who chose the pairs of an adaptive run, when it was a selector of your own: it has to choose again.
        digest: the digest that the run must have, which you kept elsewhere.
        closed: whether a run that was not closed is a difference, too: its last rows may have been cut off.

    Returns:
        How much was compared, and every difference.

    Raises:
        StoreError: when it is no run file.

    Example:
        >>> import pairscale as ps
        >>> options = {"judge": "lexical", "n_steps": 6, "fit_fn": "laplace", "progress": "none"}
        >>> out = ps.adaptive_rank(ps.synthetic_essays(4, seed=1), run="audited.db", **options)
        >>> report = ps.audit("audited.db")
        >>> report.passed, report.steps, report.refits
        (True, 6, 2)
    """
    wanted = None if digest is None else _digest(digest)
    path, files = named_runs(run)
    if files is not None:
        if digest is not None:
            raise InputError("`digest=` is that of one run file; these are several")
        return _together({file: audit(file, selector=selector, closed=closed) for file in files})
    with open_run(path) as store, store.snapshot():  # the run may be writing
        try:
            evidence = check_evidence(store)
            problems = [str(problem) for problem in evidence.problems]
            problems += [] if problems else _misread(store)
            if wanted is not None:
                problems += _other_digest(wanted, evidence)
            if closed and evidence.digest is None:
                problems.append(f"the run file is {_NOT_CLOSED}")
            is_adaptive = store.get_meta("adaptive") is not None and store.log_length("adaptive_events") > 0
        except StoreDamagedError as error:
            return AuditReport(problems=(str(error),))
        replay = read_replay(store, str(path), selector) if is_adaptive and not problems else None
    compared: dict[str, Any] = {"rows": evidence.rows, "digest": evidence.digest, "imported": evidence.imported}
    if replay is None:
        return AuditReport(problems=tuple(problems), **compared)
    replayed = replay()
    problems += [] if replayed.problem is None else [replayed.problem]
    return AuditReport(
        replayed.steps, replayed.refits, tuple(problems), preset=replayed.preset, is_replayed=True, **compared
    )


def _together(parts: Mapping[str, AuditReport]) -> AuditReport:
    """The audits of several run files as one."""
    rows: dict[str, int] = {}
    for part in parts.values():
        for table, count in part.rows.items():
            rows[table] = rows.get(table, 0) + count
    return AuditReport(
        steps=sum(part.steps for part in parts.values()),
        refits=sum(part.refits for part in parts.values()),
        problems=tuple(f"{file}: {problem}" for file, part in parts.items() for problem in part.problems),
        rows=rows,
        is_replayed=any(part.is_replayed for part in parts.values()),
        digests={file: part.digest for file, part in parts.items()},
    )


def _digest(text: str) -> str:
    digest = text.strip().lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise InputError(f"a digest has 64 hexadecimal digits, as `pairscale status` prints it, not {text!r:.80}")
    return digest


def _other_digest(wanted: str, evidence: Evidence) -> list[str]:
    if wanted == evidence.digest:
        return []
    if wanted in evidence.earlier:
        now = "it was not closed since" if evidence.digest is None else f"it is {evidence.digest} now"
        return [f"the run file was written to after it was closed with the digest {wanted}; {now}"]
    return [f"the run file was never closed with the digest {wanted}"]


def _misread(store: RunFile) -> list[str]:
    """Wins that the reply of the model does not state, where a tag has the answer and one order was asked."""
    with store.transaction() as connection:
        tags: dict[Any, tuple[str, str]] = {}
        problems = []
        for name, settings in raw_rows(connection, select(conditions.c.condition_id, conditions.c.settings)):
            try:
                if (around := _tags(settings)) is not None:
                    tags[name] = around
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                problems.append(
                    f"conditions, row {name}: the settings cannot be read ({type(error).__name__}: {error})"
                )
        if not tags:
            return problems
        first = items.alias()
        second = items.alias()
        joined = (
            comparisons.join(attempts, attempts.c.attempt_id == comparisons.c.attempt_id)
            .join(pairs, pairs.c.pair_id == comparisons.c.pair_id)
            .join(first, first.c.item_id == pairs.c.ID1)
            .join(second, second.c.item_id == pairs.c.ID2)
        )
        c = comparisons.c
        columns = (c.comparison_id, c.condition_id, c.outcome, c.winner_pos, attempts.c.content, first.c.text)
        query = select(*columns, second.c.text).select_from(joined).order_by(c.comparison_id)
        for number, condition_id, outcome, place, content, *texts in raw_rows(connection, query):
            if (
                outcome != "win"
                or condition_id not in tags
                or not all(isinstance(cell, str) for cell in (content, *texts))
            ):
                continue
            prefix, suffix = tags[condition_id]
            position = read_tag(content, prefix, suffix, texts).position
            if position != place:
                says = "no winner" if position is None else f"SAMPLE_{position}"
                problems.append(f"comparisons, row {number}: winner_pos is {place}, and the reply says {says}")
        return problems


def _tags(settings: Any) -> tuple[str, str] | None:
    """The tags around the answer in replies to a judge of these settings; None where there are none.

    Raises:
        ValueError: these are no settings.
    """
    rules = dict(settings if isinstance(settings, Mapping) else json.loads(settings))
    if rules.get("answer") != "tag" or rules.get("both_orders"):
        return None
    prefix, suffix = rules["tags"]
    if not isinstance(prefix, str) or not isinstance(suffix, str):
        raise ValueError("tags are no texts")
    return prefix, suffix
