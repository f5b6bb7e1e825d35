"""Example data, all of it our own, and a generator of essays of known quality.

The tables are made when they are first asked for:

- ``example_writing_samples``: 20 short answers to *Why is it hard to change a habit?*, ``ID text quality_score``,
  from very weak (1) to very strong (20);
- ``example_writing_pairs``: their 190 pairs, ``ID1 ID2 better_id``, as a judge who sees the quality scores through
  some noise would decide them; every text wins and loses at least once, so that every model can be fitted;
- ``example_writing_results``: the same as canonical results;
- ``example_writing_samples1000``: 1,000 synthetic essays, ``ID text quality_level theta_true prompt_id model
  created_at``;
- ``example_openai_batch_output``: three lines of a batch output file, one of them an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.core.comparisons import build_btl_results_data
from pairscale.datasets.synthetic import synthetic_essays

__all__ = [
    "example_openai_batch_output",
    "example_writing_pairs",
    "example_writing_results",
    "example_writing_samples",
    "example_writing_samples1000",
    "synthetic_essays",
]

if TYPE_CHECKING:
    example_openai_batch_output: list[str]
    example_writing_pairs: pl.DataFrame
    example_writing_results: pl.DataFrame
    example_writing_samples: pl.DataFrame
    example_writing_samples1000: pl.DataFrame


def __getattr__(name: str) -> Any:
    if name not in _TABLES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _TABLES[name]()


def __dir__() -> list[str]:
    return __all__


def _data(name: str) -> str:
    return (files(__name__) / "data" / name).read_text("utf-8")


def _csv(name: str) -> pl.DataFrame:
    return pl.read_csv(_data(f"{name}.csv").encode())


_TABLES: dict[str, Callable[[], Any]] = {
    "example_openai_batch_output": lambda: _data("example_openai_batch_output.jsonl").splitlines(),
    "example_writing_pairs": cache(lambda: _csv("example_writing_pairs")),
    "example_writing_results": cache(lambda: build_btl_results_data(_csv("example_writing_pairs"))),
    "example_writing_samples": cache(lambda: _csv("example_writing_samples")),
    "example_writing_samples1000": cache(lambda: synthetic_essays(1000, seed=2026)),
}
