"""Collecting judgements: ask, write down, continue."""
