"""``bias``: does a judge favour a position? With the option names and defaults of the command."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pairscale.checks.orders import split_orders
from pairscale.checks.position import PositionalBias, compute_reverse_consistency, measure_bias
from pairscale.core.errors import InputError
from pairscale.core.options import checked, require_level
from pairscale.store.reading import read_comparisons

if TYPE_CHECKING:
    from pairscale.core.tables import Table
    from pairscale.store.runfile import RunFile


@checked
def bias(
    forward: Table | str | Path | RunFile,
    reverse: Table | str | Path | RunFile | None = None,
    *,
    level: float = 0.95,
    condition: str | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
) -> PositionalBias:
    """Tell whether a judge favours a position.

    Ask every pair in both orders. A pair is consistent when the same text wins both times. Where it is not, one
    position won twice, and if it is nearly always the same one, the judge favours it.

    Args:
        forward: Results of the pairs: a table, a file of results or a run file; it may hold both orders.
        reverse: Results of the reversed pairs; not needed if ``forward`` holds both orders.
        level: Level of the intervals.
        condition: Of a run file with several: a judge, or a condition (its beginning is enough).
        a_col: Of tables: the column of the text that stood first, or its path where values are nested.
        b_col: Of tables: the column of the second text.
        winner_col: Of tables: the column that says who won.
        encoding: Of tables: the encoding of a text file that is not UTF-8.

    Returns:
        A :class:`PositionalBias` with ``verdict``, ``summary``, ``details`` and ``effect`` (in logits; above 0 the
        first position is favoured; None where these data do not tell it).

    Raises:
        InputError: If there is no pair in both orders, or a setting is out of range.
        TableError: If the results cannot be read.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples)
        >>> both = [ps.judge(table, progress=False).results for table in (pairs, ps.sample_reverse_pairs(pairs, 1))]
        >>> ps.bias(*both).summary["prop_consistent"].item()
        1.0
    """
    level = require_level(level)
    read = partial(
        read_comparisons, condition=condition, a_col=a_col, b_col=b_col, winner_col=winner_col, encoding=encoding
    )
    main = read(forward).table
    is_file = isinstance(forward, str | os.PathLike)
    if reverse is None or reverse is forward or (is_file and forward == reverse):
        main, back = split_orders(main)
        if back.height == 0:
            raise InputError(
                f"{forward if is_file else 'the table'} holds every pair in one order only; reverse them (`pairscale "
                "pairs PAIRS --reverse`), judge those too, and name their results as REVERSE"
            )
    else:
        back = read(reverse).table
    return measure_bias(compute_reverse_consistency(main, back), level)
