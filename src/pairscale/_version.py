"""The version, on its own so that it can be read without importing anything."""

__version__ = "0.1.0"
