"""What people look at: pages and charts made of results."""

from pairscale.report.charts import rank_chart, save_chart, score_chart, simulation_chart, study_chart, win_matrix
from pairscale.report.page import report_table, write_again, write_report

__all__ = [
    "rank_chart",
    "report_table",
    "save_chart",
    "score_chart",
    "simulation_chart",
    "study_chart",
    "win_matrix",
    "write_again",
    "write_report",
]
