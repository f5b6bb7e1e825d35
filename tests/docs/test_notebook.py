"""The notebook of the guides runs from the first cell to the last, and shows what it shows."""

import json
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOK = Path(__file__).parents[2] / "docs/guides/notebook.ipynb"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel and its client
def test_the_notebook_runs(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert (tmp_path / "notebook.html").exists()
    require_quiet(notebook.cells)


def test_what_it_shows_was_printed_by_it():
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in cells)
    assert "all reproduced" in str(cells[-1]["outputs"])
    require_quiet(cells)


def require_quiet(cells):
    """No cell writes to standard error; a run is one output, and its result has a table and a chart."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    (ranked,) = [cell for cell in cells if "ps.rank(samples" in "".join(cell["source"])]
    progress, result = ranked["outputs"]
    assert progress["output_type"] == "display_data"
    assert " comparisons" in "".join(progress["data"]["text/plain"])
    html = "".join(result["data"]["text/html"])
    assert html.count("<table") == 1
    assert html.count("<circle") == 20
