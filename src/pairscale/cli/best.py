"""``pairscale best``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pairscale as ps
from pairscale.cli._asking import opening, say_judged
from pairscale.cli._common import Arguments, Output, echo, fields, show_table
from pairscale.cli.from_verb import from_verb

if TYPE_CHECKING:
    from pairscale.contest.verb import Best


@from_verb("contest.verb.best", "CANDIDATES")
def command(arguments: Arguments, emit: Output) -> None:
    """Which candidate is the best? Asks where it matters, and stops when the best is sure.

    Two candidates are compared at a time. The answers say how probable it is that each candidate is the best, and the
    next two are drawn by that. With --by, one table holds many sets of candidates; with --k, the order of the first k
    is found. Run the same command again to resume a run.

    Args:
        candidates: A table with ID and text, and with --by the column of the sets.
        run: The run file: every answer is kept there, and the same command resumes it.

    Examples:
        pairscale best answers.csv --query 'Why is the sky blue?'
        pairscale best answers.csv --judge openai:gpt-5.1 --max-comparisons 60
        pairscale best answers.jsonl --by task_id --run best.db
        pairscale best documents.csv --query 'cheap flights' --k 10
    """
    opening(arguments["judge"], run=arguments["run"])
    result = ps.best(**arguments)
    document = fields(result, "winner items asked comparisons set_aside")
    emit(document, result.items, lambda: _show(result))
    say_judged(arguments["judge"])


def _show(result: Best) -> None:
    table = result.items if isinstance(result.winner, str | None) else result.winner
    echo(str(result))
    echo()
    show_table(table, most=20, digits=2)
