"""``pairscale export``."""

from __future__ import annotations

from pathlib import Path

import pairscale as ps
from pairscale.cli._common import Arguments, Output, say, writable
from pairscale.cli.from_verb import from_verb
from pairscale.core.options import FilePath


@from_verb("reporting.exporting.export", "RUN...", hidden="path conversational encoding key")
def command(arguments: Arguments, emit: Output, *, out: FilePath) -> None:
    """Write a run to a table: all of its comparisons, or preference pairs for training.

    Results come with a second file, with .logs.jsonl after the name: attempts, logs, labels and the hash chain, which
    `pairscale import` reads. Texts are in neither.

    Preferences are rows of prompt, chosen and rejected, as TRL takes them, with probability (that the chosen text is
    better, as the judge stated it), margin (the difference of the scores, in logits), both_orders (whether both orders
    were asked, and agree), chosen_id and rejected_id. Ties and flips are left out, and counted. Of an A/B run the task
    is the prompt.

    With --copy, FILE is a new run file that holds everything, texts and links of labellers too.

    Args:
        run: The run file, several or their folder, or results of any form that `pairscale fit` takes.
        out: The table to write: csv, tsv, jsonl, json, parquet or xlsx; or the copy.

    Examples:
        pairscale export run.db --out comparisons.csv
        pairscale export run.db --kind preferences --out pairs.jsonl
        pairscale export run.db --kind preferences --input-col q --out p.jsonl
        pairscale export arena.csv --out results.csv
        pairscale export ab.db --kind preferences --out pairs.parquet
        pairscale export run.db --copy --out copy.db
    """
    is_copy = arguments["copy"]
    if not is_copy:
        writable(Path(out))
    written = ps.export(**arguments, path=out)
    say(f"written: {written}")
    emit({"written": str(written), "kind": "copy" if is_copy else arguments["kind"]}, None, lambda: None)
