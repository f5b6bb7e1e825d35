"""People: blinded labelling in the browser and in the terminal, and the page of a run."""

from pairscale.people.cases import Case as Case
from pairscale.people.cases import read_cases as read_cases
from pairscale.people.overview import label_table as label_table
from pairscale.people.queue import LABEL_COLUMNS as LABEL_COLUMNS
from pairscale.people.queue import LabelStore as LabelStore
from pairscale.people.serve import Address as Address
from pairscale.people.serve import LabelSite as LabelSite
from pairscale.people.serve import serve_labels as serve_labels
from pairscale.people.serve import serve_questions as serve_questions
from pairscale.people.serve import serve_run as serve_run
