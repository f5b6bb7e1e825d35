"""What all other packages use: tables, files, samples, prompts, comparisons, options, errors, display."""

from pairscale.core import errors

__all__ = ["errors"]
