"""``pairscale`` and ``python -m pairscale``: the command, which can also be interrupted while it is still loading."""

import sys

__all__ = ["start"]


def start() -> None:
    """Load the command and run it."""
    try:
        from pairscale.cli import main

        main()
    except KeyboardInterrupt:  # before the command could catch it
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    start()
