"""What people look at: pages made of results."""

from pairscale.report.html import write_ranking_report

__all__ = ["write_ranking_report"]
