"""People: blinded labelling in the browser and in the terminal, and the page of a run."""

from pairscale.people.cases import Case, read_cases
from pairscale.people.overview import label_table
from pairscale.people.queue import LABEL_COLUMNS, LabelStore
from pairscale.people.serve import Address, LabelSite, serve_labels, serve_questions, serve_run

__all__ = [
    "LABEL_COLUMNS",
    "Address",
    "Case",
    "LabelSite",
    "LabelStore",
    "label_table",
    "read_cases",
    "serve_labels",
    "serve_questions",
    "serve_run",
]
