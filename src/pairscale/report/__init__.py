"""What people look at: pages and charts made of results."""

from pairscale.report.charts import rank_chart, save_chart, score_chart, simulation_chart, study_chart, win_matrix
from pairscale.report.page import write_report

__all__ = [
    "rank_chart",
    "save_chart",
    "score_chart",
    "simulation_chart",
    "study_chart",
    "win_matrix",
    "write_report",
]
