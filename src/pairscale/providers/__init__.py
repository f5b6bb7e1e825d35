"""Providers of language models: their wire formats, one file each, over one HTTP client."""
