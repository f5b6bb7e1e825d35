"""Answers that a run file holds, as a source: to be graded again, exported for labelling, or read."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from pairscale.core.errors import UnknownNameError
from pairscale.core.options import checked
from pairscale.core.tables import listed
from pairscale.evaluate.store import stored_answers, stored_suite
from pairscale.evaluate.suite import Suite
from pairscale.evaluate.traces import Trace, TraceRef
from pairscale.store.runfile import open_run

__all__ = ["RunTraceSource", "read_suite"]


class RunTraceSource:
    """The answers of one variant in the run file of :func:`run_pairwise`.

    Args:
        run: the run file.
        variant: the variant's name there.

    Raises:
        StoreError: when the run file cannot be read.
        UnknownNameError: when it has no answers of such a variant.
    """

    @checked
    def __init__(self, run: str | os.PathLike[str], variant: str) -> None:
        with open_run(run) as store:
            found = stored_answers(store)
        if variant not in found:
            raise UnknownNameError(f"{run} has no answers of a variant {variant!r}; there are {listed(list(found))}")
        self._traces = list(found[variant].items())

    def __len__(self) -> int:
        return len(self._traces)

    async def list(self) -> AsyncIterator[TraceRef]:
        """What there is, in the order in which it was answered; repeats in theirs."""
        for at, ((task_id, _), _trace) in sorted(enumerate(self._traces), key=lambda one: one[1][0][1]):
            yield TraceRef(str(at), task_id)

    async def load(self, ref: TraceRef) -> Trace:
        """One of them."""
        return self._traces[int(ref.trace_id)][1]


@checked
def read_suite(run: str | os.PathLike[str]) -> Suite | None:
    """The tasks that a run file has answers to; None when there are none.

    Example:
        >>> import pairscale as ps
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> judge = ps.pairwise_judge(longer, criterion="says more", key="longer")
        >>> sides = {"variant_a": lambda task: "No.", "variant_b": lambda task: "Certainly."}
        >>> _ = ps.run_pairwise(ps.Suite.from_list(["Is it raining?"]), **sides, comparators=[judge], run="ab.db")
        >>> [task.input for task in read_suite("ab.db")]
        ['Is it raining?']
    """
    with open_run(run) as store:
        return stored_suite(store)
