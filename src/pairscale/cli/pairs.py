"""``pairscale pairs``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import emit, say, show_table
from pairscale.cli._groups import Reading, with_groups
from pairscale.cli._opening import read_pairs

EXAMPLES = (
    "pairscale pairs essays/ --out pairs.csv",
    "pairscale pairs essays.xlsx --text-col essay --n-pairs 400 --out pairs.csv",
    "pairscale pairs pairs.csv --reverse --out reversed.csv",
)


@with_groups
def command(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="A folder of texts, a table of texts, or a table of pairs."),
    ],
    n_pairs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of pairs, drawn at random.")
    ] = None,
    share: Annotated[float, typer.Option(metavar="SHARE", help="This share of all pairs, 0 to 1.")] = 1.0,
    order: Annotated[
        Literal["random", "alternate", "keep"],
        typer.Option(
            metavar="ORDER", help="Which of the two stands first: random, alternate (in turn), or keep (as they are)."
        ),
    ] = "random",
    reverse: Annotated[
        bool, typer.Option("--reverse", help="Swap the two of every pair, to see whether a judge favours a position.")
    ] = False,
    seed: opt.Seed = 1,
    reading: Reading = Reading(),
    a_col: opt.ACol = None,
    b_col: opt.BCol = None,
    as_json: opt.Json = False,
    out: opt.Out = None,
) -> None:
    """Make, sample, order or reverse pairs.

    DATA is a folder of texts (txt, md, html, docx, odt, pdf; the file's name is the id), or a csv, tsv,
    jsonl, json, parquet or xlsx table with a column of ids and one of texts. Every text meets every other, or a random
    part of the pairs is drawn; which of the two stands first is left to chance, because judges tend to favour a
    position. Keep the file that --out writes: it is what `pairscale judge` reads.
    """
    pairs, ids, opening = read_pairs(data, reading, a_col, b_col)
    opening.say()
    if ids is None and reverse and order == "random":
        order = "keep"
    if share != 1 or n_pairs is not None:
        pairs = ps.sample_pairs(pairs, share, n_pairs, seed)
    if order == "random":
        pairs = ps.randomize_pair_order(pairs, seed)
    elif order == "alternate":
        pairs = ps.alternate_pair_order(pairs)
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
    shown = pairs.select("ID1", "ID2", "text1", "text2")
    emit(document, pairs, as_json=as_json, out=out, show=lambda: show_table(shown, most=10))
