"""What somebody wants to write into a run file before anything else is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pairscale.store.runfile import RunFile

__all__ = ["on_writing", "opened_for_writing"]

_FIRST: ContextVar[Callable[[RunFile], None] | None] = ContextVar("first", default=None)


@contextmanager
def on_writing(first: Callable[[RunFile], None]) -> Iterator[None]:
    """Inside the block, call this with every run file that is opened for writing, before anything else is written."""
    token = _FIRST.set(first)
    try:
        yield
    finally:
        _FIRST.reset(token)


def opened_for_writing(store: RunFile) -> None:
    """Do what was asked for, if anything was."""
    if (first := _FIRST.get()) is not None:
        first(store)
