"""The version, on its own so that it can be read without importing anything."""

__version__ = "1.0.0"
__year__ = 2026  # of this version, for citations
