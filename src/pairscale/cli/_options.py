"""The options that several commands have: each is defined once, with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pairscale.cli import _names


def writable(out: Path | None) -> Path | None:
    """The file to write, refused before any work is done rather than after it."""
    if out is None:
        return None
    from importlib.util import find_spec
    from tempfile import TemporaryFile

    from pairscale.core.errors import FileFormatError, MissingExtraError
    from pairscale.core.files import TABLE_SUFFIXES
    from pairscale.core.options import require_suffix

    require_suffix(out, "--out", TABLE_SUFFIXES)
    if out.is_dir():
        raise FileFormatError(f"--out {out} is a folder; name a file in it")
    if out.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise MissingExtraError("writing an Excel file", "documents")
    try:
        with TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise FileFormatError(f"--out {out} cannot be written: {error.strerror}") from None
    return out


def single(sources: list[str]) -> str | list[str]:
    """The one thing that was named, or all of them."""
    return sources[0] if len(sources) == 1 else sources


# What is read

Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="A run file; several, a folder of them, or a pattern such as 'shards/*.db'."),
]

# The result

Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else there.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        callback=writable,
        help="Write the whole table to this file: csv, tsv, jsonl, json, parquet or xlsx, by its ending.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same pairs.")]
NJobs = Annotated[
    int | None,
    typer.Option(metavar="N", help="Processes to spread the work over; -1 for all cores. The results are the same."),
]
IdCol = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The column of ids, or its path in JSON (meta.id); by default ID, or the only candidate."
    ),
]
TextCol = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The column of texts, or its path in JSON; by default text, or the only column of long texts.",
    ),
]
ACol = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column of the first text of a pair; pair.0.id if it is nested."),
]
BCol = Annotated[str | None, typer.Option(metavar="NAME", help="The column of the second text of a pair.")]
WinnerCol = Annotated[
    str | None, typer.Option(metavar="NAME", help="For a table of results: the column that says who won.")
]


SamplesOfResults = Annotated[
    str | None,
    typer.Option("--samples", metavar="DATA", help="For results in a table: the texts, a table or a folder."),
]
WhichColumns = Annotated[
    Literal["short", "all"] | None,
    typer.Option(
        "--columns",
        metavar="WHICH",
        help="short: rank, ID, score and interval; all. By default the screen shows short, and --out writes all.",
    ),
]
Answer = Annotated[
    Literal["winner", "probability"],
    typer.Option(
        metavar="FORM", help="What is evidence: the winner, or the probability that the first text is better."
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="For labels that do not say what they compare: the key of their manifest, or their table of pairs.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse to start if any file of a folder was not read.")]
SkipUnreadable = Annotated[
    bool,
    typer.Option(
        "--skip-unreadable", help="Continue without files that need an optional package that is not installed."
    ),
]
Concurrency = Annotated[int, typer.Option(min=1, metavar="N", help="Questions open at once.")]
Retries = Annotated[int, typer.Option(min=0, metavar="N", help="Retries after a transient failure.")]
Timeout = Annotated[float, typer.Option(min=0.001, metavar="S", help="Seconds that one answer may take.")]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", help="Stop before the run, all calls together, costs more; needs known prices."),
]
Failures = Annotated[
    str,
    typer.Option(
        metavar="WAY", help="How a failed answer counts: loss, shown (the judges see “(no answer)”) or excluded."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Encoding of text files that are not UTF-8, such as cp1252 or utf-16."),
]

# The judge

BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Where the provider is, such as http://localhost:8000/v1.")
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        metavar="PRICE",
        help="US dollars per million tokens: input=1.25,output=10, also cached= and batch=; or a JSON file "
        "of prices. By default the dated table.",
    ),
]
Goal = Annotated[
    str,
    typer.Option(metavar="GOAL", help="What the run is for: order, or top:K, such as top:10 for the ten best texts."),
]
PresetName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=_names.presets,
        help="The settings to start from: pairscale, or pairwiseLLM, those of the design document.",
    ),
]
JudgeName = Annotated[str, typer.Option(metavar="JUDGE", autocompletion=_names.judges, help="As in `pairscale judge`.")]
TraitName = Annotated[
    str | None,
    typer.Option(metavar="NAME", autocompletion=_names.traits, help="What to judge; `pairscale traits` lists them."),
]
TemplateName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_names.templates,
        help="Prompt template, a name or a .txt file; `pairscale templates`.",
    ),
]
JudgeArgs = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the judge; can be repeated.")
]
Cache = Annotated[
    bool | None,
    typer.Option(
        "--cache/--no-cache",
        help="Use answers of earlier runs to the same request, without cost; by default for temperature 0.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the first request and the number of calls; ask nothing.")]

# The page for people

Labellers = Annotated[
    str | None,
    typer.Option(metavar="WHO", help="Names of the labellers, such as ann,bob, or their number; each gets a link."),
]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where to listen; 127.0.0.1 is reached from this machine alone.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port of the page; 0 takes a free one.")]
Url = Annotated[
    str | None, typer.Option(metavar="URL", help="How people reach the page, such as https://labels.example.org.")
]
Instructions = Annotated[Path | None, typer.Option(metavar="FILE", help="What labellers read first, in Markdown.")]
Plain = Annotated[bool, typer.Option("--plain", help="Show texts as they are written, not as Markdown.")]
