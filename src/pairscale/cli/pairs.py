"""``pairscale pairs``."""

from __future__ import annotations

from typing import Any, Literal

import pairscale as ps
from pairscale.cli._asking import read_pairs
from pairscale.cli._common import Output, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.options import optional, require_int


@from_verb(
    "pairing.reading.read_pairs",
    "DATA",
    "pairscale pairs essays/ --out pairs.csv",
    "pairscale pairs essays.xlsx --text-col essay --n-pairs 400 --out pairs.csv",
    "pairscale pairs pairs.csv --reverse --out reversed.csv",
    hidden="tell",
)
def command(
    arguments: dict[str, Any],
    emit: Output,
    *,
    n_pairs: int | None = None,
    share: float = 1.0,
    order: Literal["random", "alternate", "keep"] = "random",
    reverse: bool = False,
    seed: int = 1,
) -> None:
    """Make, sample, order or reverse pairs.

    DATA is a folder or zip archive of texts (txt, md, html, docx, odt, pdf; the file's name is the id), or a csv, tsv,
    jsonl, json, parquet or xlsx table with a column of ids and one of texts. Every text meets every other, or a random
    part of the pairs is drawn; which of the two stands first is left to chance, because judges tend to favour a
    position. Keep the file that --out writes: it is what `pairscale judge` reads.

    Args:
        data: A folder or zip archive of texts, a table of texts, or a table of pairs.
        n_pairs: Maximum number of pairs, drawn at random.
        share: This share of all pairs, 0 to 1.
        order: Which of the two stands first: random, alternate (in turn), or keep (as they are).
        reverse: Swap the two of every pair, to see whether a judge favours a position.
        seed: The same seed gives the same pairs.
    """
    optional(require_int, n_pairs, "n_pairs", least=1)
    ids = read_pairs(arguments, "data")
    pairs = arguments["data"]
    if share != 1 or n_pairs is not None:
        pairs = ps.sample_pairs(pairs, share, n_pairs, seed)
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
    elif not summary.connected:
        say("note: not every sample is linked to every other; scores need more pairs between the groups")
    document = {
        "n_samples": summary.n_items,
        "n_pairs": summary.n_pairs,
        "connected": summary.connected,
        "unpaired": summary.unpaired,
        "pairs": pairs,
    }
    emit(document, pairs, lambda: show_table(pairs.select("ID1", "ID2", "text1", "text2"), most=10))
