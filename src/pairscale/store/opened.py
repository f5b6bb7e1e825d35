"""The row of the command log that goes into a run file together with its first change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

__all__ = ["command_row_for", "recording"]

_Row = Callable[["RunFile"], "Mapping[str, Any] | None"]
_ROW: ContextVar[_Row | None] = ContextVar("row", default=None)


@contextmanager
def recording(row: _Row) -> Iterator[None]:
    """Inside the block, whatever changes a run file first also writes a row into its command log, at the same moment.

    Args:
        row: makes the row when a run file is opened for writing; None for a file that is not the command's.
    """
    token = _ROW.set(row)
    try:
        yield
    finally:
        _ROW.reset(token)


def command_row_for(store: RunFile) -> Mapping[str, Any] | None:
    """The row that the first change of a run file is to carry; None when no command is recorded there."""
    row = _ROW.get()
    return None if row is None else row(store)
