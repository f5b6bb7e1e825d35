"""``pairscale trust``."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pairscale as ps
from pairscale.cli._common import Arguments, Output, echo, fields, other_file, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError
from pairscale.core.notices import plural, without_notices
from pairscale.core.options import FilePath
from pairscale.store.reading import is_run
from pairscale.store.runfile import open_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pairscale.validity.verb import Trust

_LOOK_INTERVAL_S = 5.0
_MOST_SHOWN = 10


@from_verb("validity.verb.trust", "RUN")
def command(
    arguments: Arguments,
    emit: Output,
    label: bool = False,
    labellers: str | None = None,
    url: str | None = None,
    out: FilePath | None = None,
) -> None:
    """How far can this ranking be trusted? The judge's scale against a few answers of people.

    Says how the judge's scale of these texts correlates with people's, with its interval, corrects the ranking by the
    answers, names the texts that move most, and proposes the pairs that people should look at next. With fewer than 20
    answers there are only the pairs.

    Args:
        labels: People's answers to pairs of the same texts, in any form that `pairscale fit` takes; by default the
            labels in the run file.
        label: Open the labelling page with the next pairs; what the answers say is shown as they come in. The labels
            are kept beside the run file, and the same line again continues.
        labellers: With --label: names of the labellers, such as ann,bob, or their number; each gets a link.
        url: With --label: how people reach the page, such as https://labels.example.org.
        out: Write the next pairs as a table (csv and so on), or everything as a page (.html).

    Examples:
        pairscale trust essays.db --next 40 --out pairs.csv
        pairscale trust essays.db --labels people.csv
        pairscale trust essays.db --labels people.csv --out trust.html
        pairscale trust essays.db --label --labellers ann,bob
    """
    page = other_file(emit, out, ".html")
    if label:
        arguments["labels"] = _labelled(arguments, labellers, url)
    elif labellers is not None or url is not None:
        raise InputError("`labellers=` and `url=` belong to `label=`")
    result = ps.trust(**arguments)
    if page is not None:
        say(f"wrote the page to {result.report(page)}")
    document = fields(result, " ".join(result.__dataclass_fields__))
    document["validity"] = asdict(result.validity)
    emit(document, result.next, lambda: _show(result))


def _show(result: Trust) -> None:
    echo(str(result))
    if result.validity.estimate is not None:
        echo()
        show_table(result.items.sort("rank_people").drop("theta_judge", "theta_people_sd"), digits=2)
    if result.people is not None:
        echo()
        show_table(result.people, digits=2)
    echo("\nNext pairs to ask people about (--out FILE writes them all, with their texts):")
    for row in result.next.head(_MOST_SHOWN).iter_rows(named=True):
        echo("  {ID1} and {ID2}".format_map(row))


def _labelled(arguments: Arguments, labellers: str | None, url: str | None) -> Any:
    """Serve the labelling page with the next pairs until Ctrl-C; the labels there are then."""
    run = Path(str(arguments["run"]))
    if arguments["labels"] is not None:
        raise InputError("give `label=` or `labels=`, not both", argument="label")
    if not is_run(run):
        raise InputError(f"--label needs a run file, which has the texts, and {run} is none", argument="label")
    pairs = run.with_name(f"{run.stem}-trust.csv")
    kept = run.with_name(f"{run.stem}-trust.db")
    if pairs.exists():
        say(f"the pairs are those of {pairs}, from an earlier call; delete it and {kept} to begin with others")
    else:
        ps.trust(**arguments).next.write_csv(pairs)
        say(f"wrote the pairs to {pairs}; the labels go to {kept}")
    with _updates(arguments, kept):
        ps.label(pairs, run=kept, labellers=labellers, url=url, criterion="better")
    return _labels_in(kept)


@contextmanager
def _updates(arguments: Arguments, kept: Path) -> Iterator[None]:
    """Inside the block, say what the answers tell, whenever there are more of them."""
    is_over = threading.Event()

    def look() -> None:
        seen = 0
        while not is_over.wait(_LOOK_INTERVAL_S):
            labels = _labels_in(kept)
            if labels is not None and labels.height > seen:
                seen = labels.height
                with without_notices(), suppress(InputError):  # such as that all labels so far are ties
                    result = ps.trust(**arguments | {"labels": labels})
                    say(f"{plural(seen, 'label')}: {str(result).splitlines()[0]}")

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _labels_in(kept: Path) -> Any:
    """The labels so far; None before the first one."""
    if not kept.exists():
        return None
    with open_run(kept) as store:
        if not store.labels().height:
            return None
    with without_notices():
        return ps.read_results(kept)
