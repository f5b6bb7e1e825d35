"""``pairscale watch``."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from pairscale.cli import _options as opt
from pairscale.cli._common import say

EXAMPLES = ("pairscale watch run.db", "pairscale watch run.db --port 0")


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run file, of a run that is running or has ended.")],
    host: opt.Host = "127.0.0.1",
    port: opt.Port = 8585,
    url: opt.Url = None,
) -> None:
    """Show a run live in the browser: ranking, reliability against its target, rate, cost, errors.

    The page only reads the run file, so the run may have been started anywhere that writes to it. It looks again by
    itself. Ctrl-C stops the page, never the run. In the terminal, `pairscale status RUN --follow` does the same.
    """
    from pairscale.people import Address, serve_run

    with serve_run(run, address=Address(host, port, url)) as base:
        say(f"open {base}/ in a browser (Ctrl-C stops the page; the run continues)")
        threading.Event().wait()
