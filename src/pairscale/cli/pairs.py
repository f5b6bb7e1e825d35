"""``pairscale pairs``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import pairscale as ps
from pairscale.cli._common import Encoding, IdCol, Json, Out, Seed, TextCol, emit, say, show_table

__all__ = ["command"]


class Order(StrEnum):
    """Which sample stands first."""

    RANDOM = "random"
    ALTERNATE = "alternate"
    KEEP = "keep"


def command(
    data: Annotated[Path, typer.Argument(help="Samples (a folder of .txt files, or a table), or a table of pairs.")],
    n_pairs: Annotated[int | None, typer.Option(help="At most this many pairs, drawn at random.")] = None,
    share: Annotated[float, typer.Option(help="This share of all pairs, 0 to 1.")] = 1.0,
    order: Annotated[Order, typer.Option(help="Which sample stands first.")] = Order.RANDOM,
    reverse: Annotated[bool, typer.Option("--reverse", help="Swap every pair of DATA, to check a judge.")] = False,
    seed: Seed = 1,
    id_col: IdCol = None,
    text_col: TextCol = None,
    encoding: Encoding = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Make, sample, order or reverse pairs.

    All pairs of the samples, or a random part of them, each with a random one of the two first, because judges tend
    to favour a position. Keep the file: it is the input of `pairscale judge`.

    Examples:
    `pairscale pairs essays/ --n-pairs 400 --out pairs.csv`;
    `pairscale pairs pairs.csv --reverse --out reversed.csv`
    """
    from pairscale.files import TABLE_SUFFIXES, read_table

    pairs = None
    if data.suffix.lower() in TABLE_SUFFIXES and not data.is_dir():
        table = read_table(data, encoding=encoding)
        pairs = table if {"ID1", "ID2"} <= set(table.columns) else None
    if pairs is None:
        pairs = ps.make_pairs(ps.read_samples(data, id_col=id_col, text_col=text_col, encoding=encoding))
    elif order is Order.RANDOM and reverse:
        order = Order.KEEP
    if share < 1 or n_pairs is not None:
        pairs = ps.sample_pairs(pairs, share, n_pairs, seed)
    if order is Order.RANDOM:
        pairs = ps.randomize_pair_order(pairs, seed)
    elif order is Order.ALTERNATE:
        pairs = ps.alternate_pair_order(pairs)
    if reverse:
        pairs = ps.sample_reverse_pairs(pairs, reverse_pct=1, seed=seed)
    summary = ps.summarize_pairs(pairs)
    say(str(summary))
    if not summary.connected:
        say("note: not every sample is linked to every other; scores need more pairs between the groups")
    document = {"n_pairs": summary.n_pairs, "connected": summary.connected, "pairs": pairs}
    emit(document, pairs, as_json=as_json, out=out, show=lambda: show_table(pairs, most=10))
