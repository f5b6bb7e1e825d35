"""Marks and levels from a judge's scale: known texts, quotas or boundary texts, with their uncertainty."""
