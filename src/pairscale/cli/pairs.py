"""``pairscale pairs``."""

from __future__ import annotations

from typing import Literal

import pairscale as ps
from pairscale.cli._asking import read_pairs
from pairscale.cli._common import Arguments, Output, fields, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.options import optional, require_int


@from_verb("pairing.reading.read_pairs", "DATA", hidden="encoding a_col b_col strict")
def command(
    arguments: Arguments,
    emit: Output,
    *,
    n_pairs: int | None = None,
    order: Literal["random", "alternate", "keep"] = "random",
    reverse: bool = False,
    seed: int = 1,
) -> None:
    """Make, sample, order or reverse pairs.

    DATA is a folder of texts (txt, md, html, docx, odt, pdf; the file's name is the id), or a csv, tsv,
    jsonl, json, parquet or xlsx table with a column of ids and one of texts. Every text meets every other, or a random
    part of the pairs is drawn; which of the two stands first is left to chance, because judges tend to favour a
    position. Keep the file that --out writes: it is what `pairscale judge` reads.

    Args:
        data: A folder of texts, a table of texts, or a table of pairs.
        n_pairs: Maximum number of pairs, drawn at random.
        order: Which of the two stands first: random, alternate (in turn), or keep (as they are).
        reverse: Swap the two of every pair, to see whether a judge favours a position.
        seed: The same seed gives the same pairs.

    Examples:
        pairscale pairs essays/ --out pairs.csv
        pairscale pairs essays.xlsx --text-col essay --n-pairs 400 --out pairs.csv
        pairscale pairs pairs.csv --reverse --out reversed.csv
    """
    optional(require_int, n_pairs, "n_pairs", least=1)
    ids = read_pairs(arguments, "data")
    pairs = arguments["data"]
    if n_pairs is not None:
        pairs = ps.sample_pairs(pairs, 1, n_pairs, seed)
    if order == "alternate":
        pairs = ps.alternate_pair_order(pairs)
    elif order == "random" and not (ids is None and reverse):
        pairs = ps.randomize_pair_order(pairs, seed)
    if reverse:
        pairs = ps.sample_reverse_pairs(pairs, reverse_pct=1, seed=seed)
    summary = ps.summarize_pairs(pairs, ids)
    say(str(summary))
    if summary.unpaired:
        say(f"note: {len(summary.unpaired):,} of {summary.n_items:,} samples are in no pair; draw more pairs")
    document = fields(summary, "n_items n_pairs connected unpaired") | {"pairs": pairs}
    emit(document, pairs, lambda: show_table(pairs.select("ID1", "ID2", "text1", "text2"), most=10))
