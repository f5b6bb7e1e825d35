"""``pairscale export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

import pairscale as ps
from pairscale.cli import _options as opt
from pairscale.cli._common import say
from pairscale.cli._groups import ResultCols, with_groups

EXAMPLES = (
    "pairscale export run.db --out comparisons.csv",
    "pairscale export run.db --kind preferences --out pairs.jsonl",
    "pairscale export run.db --kind preferences --input-col q --out p.jsonl",
    "pairscale export arena.csv --out results.csv",
    "pairscale export ab.db --kind preferences --out pairs.parquet",
    "pairscale export run.db --copy --out copy.db",
)


@with_groups
def command(
    run: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="The run file, several or their folder, or results of any form that `fit` takes."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The table to write: csv, tsv, jsonl, json, parquet or xlsx; or the copy."),
    ],
    kind: Annotated[
        Literal["results", "preferences"],
        typer.Option(metavar="KIND", help="results: all comparisons; preferences: pairs for training, in TRL's form."),
    ] = "results",
    condition: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For preferences: the judge or the condition, people, or all; for an A/B run, the comparator.",
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For preferences: the prompt that all texts answer.")
    ] = None,
    input_col: Annotated[
        str | None, typer.Option(metavar="NAME", help="For preferences: the column of the texts that holds the prompt.")
    ] = None,
    conversational: Annotated[
        bool, typer.Option("--conversational", help="For preferences: messages with roles instead of plain text.")
    ] = False,
    implicit_prompt: Annotated[
        bool, typer.Option("--implicit-prompt", help="For preferences: put the prompt into both texts.")
    ] = False,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Copy the run file, whole, at any time, also while the run is being written."),
    ] = False,
    samples: opt.SamplesOfResults = None,
    columns: ResultCols = ResultCols(),
    key: opt.Key = None,
    as_json: opt.Json = False,
) -> None:
    """Write a run to a table: all of its comparisons, or preference pairs for training.

    Results come with a second file, with .logs.jsonl after the name: attempts, logs, labels and the hash chain, which
    `pairscale import` reads. Texts are in neither.

    Preferences are rows of prompt, chosen and rejected, as TRL takes them, with probability (that the chosen text is
    better, as the judge stated it), margin (the difference of the scores, in logits), both_orders (whether both orders
    were asked, and agree), chosen_id and rejected_id. Ties and flips are left out, and counted. Of an A/B run the task
    is the prompt.

    With --copy, FILE is a new run file that holds everything, texts and links of labellers too.
    """
    if not copy:
        opt.writable(out)
    written = ps.export(
        opt.single(run), out, kind=kind, condition=condition, prompt=prompt, input_col=input_col,
        conversational=conversational, implicit_prompt=implicit_prompt, samples=samples, key=key, copy=copy,
        **vars(columns),
    )  # fmt: skip
    say(f"written: {written}")
    if as_json:
        typer.echo(json.dumps({"written": str(written), "kind": "copy" if copy else kind}, indent=2))
