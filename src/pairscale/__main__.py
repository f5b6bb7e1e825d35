"""``python -m pairscale`` is the command."""

from pairscale.cli import main

if __name__ == "__main__":
    main()
