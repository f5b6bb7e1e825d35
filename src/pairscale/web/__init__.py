"""Pages: blinded labelling in the browser, for a manifest, a run file, or the questions of an adaptive run."""

from pairscale.web.cases import Case, read_cases
from pairscale.web.labels import LABEL_COLUMNS, LabelStore
from pairscale.web.overview import label_table
from pairscale.web.serve import Address, BoardSite, LabelSite, serve_board, serve_labels

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
]
