"""Pages: blinded labelling in the browser, and a run as it goes."""

from pairscale.web.cases import Case, read_cases
from pairscale.web.labels import LABEL_COLUMNS, LabelStore
from pairscale.web.overview import label_table
from pairscale.web.serve import Address, BoardSite, LabelSite, serve_board, serve_labels, serve_run

__all__ = [
    "LABEL_COLUMNS",
    "Address",
    "BoardSite",
    "Case",
    "LabelSite",
    "LabelStore",
    "label_table",
    "read_cases",
    "serve_board",
    "serve_labels",
    "serve_run",
]
