"""``pairscale`` and ``python -m pairscale``: the command, from the first import to the end of the process."""

import gc
import sys

__all__ = ["start"]


def start() -> None:
    """Load the command and run it; an interrupt is one line, also while it is still loading."""
    try:
        from pairscale.cli import main

        main()
    except KeyboardInterrupt:  # before the command could catch it
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    finally:
        gc.freeze()  # or Python looks through all modules for garbage when it ends, for longer than `--help` takes


if __name__ == "__main__":
    start()
