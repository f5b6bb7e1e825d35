"""Models: comparisons in, scores out. They know nothing of judges."""

from pairscale.models.bradley_terry import BTFit, fit_bt_model, summarize_bt_fit

__all__ = ["BTFit", "fit_bt_model", "summarize_bt_fit"]
