"""What the commands share that ask people: the options of the page, and the links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairscale.cli._common import printable, say
from pairscale.errors import InputError

if TYPE_CHECKING:
    from pairscale.judges import Judge

__all__ = ["Host", "Instructions", "Labellers", "Plain", "Port", "Url", "answering", "people", "show_links", "written"]

Labellers = Annotated[
    str | None, typer.Option(metavar="WHO", help="Their names, as ann,bob, or their number; each gets a link.")
]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where to listen; 127.0.0.1 is reached from this machine alone.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port of the page; 0 takes a free one.")]
Url = Annotated[
    str | None, typer.Option(metavar="URL", help="How people reach the page, such as https://labels.example.org.")
]
Instructions = Annotated[Path | None, typer.Option(metavar="FILE", help="What labellers read first, in Markdown.")]
Plain = Annotated[bool, typer.Option("--plain", help="Show texts as they are written, not as Markdown.")]


def people(labellers: str | None) -> list[str]:
    """The names of ``--labellers``."""
    if labellers is None:
        return []
    if labellers.strip().isdecimal():
        number = int(labellers)
        if not 1 <= number <= 1000:
            raise InputError(f"--labellers {number}: give 1 to 1000, or names")
        return [f"labeller-{at}" for at in range(1, number + 1)]
    names = [" ".join(name.split()) for name in labellers.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(f"--labellers {labellers!r} must be different names with commas between them, or a number")
    return names


def written(instructions: Path | None) -> str:
    """The text of ``--instructions``."""
    from pairscale.files import read_text

    return "" if instructions is None else read_text(instructions)


def show_links(links: Mapping[str, str]) -> None:
    """Each labeller's link, for the person who sends them."""
    width = max(len(name) for name in links)
    for name, link in links.items():
        say(f"  {printable(name):{width}}  {link}")


@contextmanager
def answering(
    judge: Judge,
    labellers: str | None,
    address: tuple[str, int, str | None],
    instructions: Path | None,
    concurrency: int,
    timeout: float,
) -> Iterator[dict[str, Any]]:
    """Serve the page when people are the judge; the options that a run needs then, or those of any other judge."""
    from pairscale.judges.human import HumanJudge
    from pairscale.judges.orders import unwrapped
    from pairscale.runtime import TIMEOUT

    person = unwrapped(judge)
    if not isinstance(person, HumanJudge):
        if labellers is not None or instructions is not None:
            raise InputError("--labellers and --instructions belong to --judge human")
        yield {"concurrency": concurrency, "timeout": timeout}
        return
    from pairscale.people import Address, serve_questions

    names, guide = people(labellers) or ["labeller-1"], written(instructions)
    where = Address(*address)
    with serve_questions(person.queue, names, trait=person.trait, address=where, instructions=guide) as site:
        say("the run asks people; send each of them their link (Ctrl-C stops, the same command continues):")
        show_links(site.links)
        # A question for each of them, and as long as they need for it, unless --timeout says otherwise.
        yield {"concurrency": max(concurrency, len(names)), "timeout": None if timeout == TIMEOUT else timeout}
