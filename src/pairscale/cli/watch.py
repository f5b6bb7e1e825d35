"""``pairscale watch``."""

from __future__ import annotations

import threading

from pairscale.cli._common import say
from pairscale.cli.from_verb import from_verb


@from_verb("", "RUN")
def command(run: str, *, host: str = "127.0.0.1", port: int = 8585, url: str | None = None) -> None:
    """Show a run live in the browser: ranking, reliability against its target, rate, cost, errors.

    The page only reads the run file, so the run may have been started anywhere that writes to it. It looks again by
    itself. Ctrl-C stops the page, never the run. In the terminal, `pairscale status RUN --follow` does the same.

    Args:
        run: The run file, of a run that is running or has ended.
        host: Where to listen; 127.0.0.1 is reached from this machine alone.
        port: Port of the page; 0 takes a free one.
        url: How people reach the page, such as https://labels.example.org.

    Examples:
        pairscale watch run.db
        pairscale watch run.db --port 0
    """
    from pairscale.people import Address, serve_run

    with serve_run(run, address=Address(host, port, url)) as base:
        say(f"open {base}/ in a browser (Ctrl-C stops the page; the run continues)")
        threading.Event().wait()
