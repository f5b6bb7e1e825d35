"""The result of a run, saved in its run file beside the texts that were compared, to be reported later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pairscale.core.provenance import text_hash
from pairscale.evaluate.result import PairwiseRunResult
from pairscale.store.marks import RESULTS

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

__all__ = ["Compared", "result_row", "saved_result"]

_ONCE = ("run_id", "asked", "answered", "cost", "duration_ms", "created_at", "provenance")
"""Fields of a result that are of a call, not of what it found."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared in a case.

    Attributes:
        task_input: the task.
        a: A's answer, or in the log the name of it; None when there is none.
        b: B's.
    """

    task_input: str
    a: str | None
    b: str | None


def result_row(result: PairwiseRunResult, shown: Mapping[tuple[str, int], Compared]) -> dict[str, Any]:
    """A result as the run file keeps it; the digest is the same when only the call was another.

    Args:
        result: the result.
        shown: by task and repeat, what was compared, by the names of the answers.
    """
    plain = {
        "result": result.to_dict(),
        "shown": [[*case, one.task_input, one.a, one.b] for case, one in shown.items()],
    }
    row: dict[str, Any] = json.loads(json.dumps(plain, default=str))
    found = {name: value for name, value in row["result"].items() if name not in _ONCE}
    return {**row, "digest": text_hash(json.dumps([found, sorted(row["shown"])], sort_keys=True))}


def saved_result(store: RunFile) -> tuple[PairwiseRunResult, dict[tuple[str, int], Compared]] | None:
    """The last result that a run file keeps, and by task and repeat what was compared; None when it keeps none."""
    rows = store.read_log(RESULTS, last=1)
    if not rows:
        return None
    texts = dict(store.items().select("ID", "text").iter_rows())
    shown = {
        (task_id, repeat): Compared(task_input, texts.get(a), texts.get(b))
        for task_id, repeat, task_input, a, b in rows[0]["shown"]
    }
    return PairwiseRunResult.from_dict(rows[0]["result"], store.name), shown
