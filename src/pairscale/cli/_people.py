"""The page of a run whose judge is people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.cli._common import say
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from pairscale.judges.base import Judge


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
    from pairscale.people.verbs import labeller_names, read_instructions, show_links

    names, guide = labeller_names(labellers) or ["labeller-1"], read_instructions(instructions)
    where = Address(*address)
    with serve_questions(person.queue, names, trait=person.trait, address=where, instructions=guide) as site:
        say("the run asks people; send each their link (Ctrl-C stops; the same command continues, with new links):")
        show_links(site.links)
        # A question for each of them, and as long as they need for it, unless --timeout says otherwise.
        yield {"concurrency": max(concurrency, len(names)), "timeout": None if timeout == TIMEOUT else timeout}
