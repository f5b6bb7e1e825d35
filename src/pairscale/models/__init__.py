"""Models: comparisons in, scores out. They know nothing of judges."""

from pairscale.models.bayes import BayesFit, BTLFit, MCMCSettings, fit_bayes_btl_mcmc, fit_btl
from pairscale.models.bradley_terry import BTFit, fit_bt_model, summarize_bt_fit
from pairscale.models.elo import EloFit, fit_elo_model
from pairscale.models.fit_statistics import FitStatistics, fit_statistics
from pairscale.models.logs import summarize_items, summarize_refits
from pairscale.models.posterior import Posterior
from pairscale.models.reliability import eap_reliability, scale_separation_reliability, split_half_reliability

__all__ = [
    "BTFit",
    "BTLFit",
    "BayesFit",
    "EloFit",
    "FitStatistics",
    "MCMCSettings",
    "Posterior",
    "eap_reliability",
    "fit_bayes_btl_mcmc",
    "fit_bt_model",
    "fit_btl",
    "fit_elo_model",
    "fit_statistics",
    "scale_separation_reliability",
    "split_half_reliability",
    "summarize_bt_fit",
    "summarize_items",
    "summarize_refits",
]
