"""Notebooks: one output that is updated in place, tried with a real kernel."""

from __future__ import annotations

import re
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from pairscale import Verdict
from pairscale.core import notebooks
from pairscale.core.notebooks import LiveOutput, in_notebook
from pairscale.runtime import Progress


def test_a_script_is_no_notebook():
    assert not in_notebook()


def test_a_shell_without_a_kernel_is_no_notebook(monkeypatch):
    for shell, found in ((None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel="one"), True)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert in_notebook() is found


class Front:
    """Takes display messages as a front end does."""

    def __init__(self):
        self.shown, self.updates = [], 0

    def display(self, data, *, raw, display_id):
        assert raw
        assert display_id
        self.shown.append(data)
        return self

    def update(self, data, *, raw):
        assert raw
        self.updates += 1
        self.shown[-1] = data


@pytest.fixture
def front(monkeypatch):
    found = Front()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    monkeypatch.setattr(notebooks, "import_module", lambda name: found if name == "IPython.display" else None)
    return found


def test_an_output_is_updated_in_place_and_holds_text_only(front):
    now = 0.0
    output = LiveOutput(lambda: now)
    assert output.is_due()
    output.show(["<b>one</b>"])
    assert not output.is_due()
    now = 1.0
    assert output.is_due()
    output.show(["two", "a <note>"])
    assert (len(front.shown), front.updates) == (1, 1)
    assert front.shown[0]["text/plain"] == "two\na <note>"
    assert "a &lt;note&gt;" in front.shown[0]["text/html"]


def test_progress_is_one_line(front, capsys):
    now = [0.0]
    with Progress(40, clock=lambda: now[0]) as bar:
        for _ in range(40):
            now[0] += 1
            bar.advance(Verdict.win(1))
    assert [one["text/plain"] for one in front.shown] == ["judging: 40 of 40, 1.0 per second"]
    assert front.updates == 40
    assert capsys.readouterr() == ("", "")


CELLS = {
    "start": "import pairscale as ps\nsamples = ps.example_writing_samples",
    "rank": "result = ps.rank(samples, judge='lexical', seed=1, run='rank.db')",
    "ranking": "result",
    "judge": "judged = ps.judge(ps.make_pairs(samples), judge='lexical', run='judge.db')",
    "fit": "ps.fit_bt_model(judged.results)",
    "sample": "ps.fit(judged.results, model='bayes', seed=1)",
    "tasks": """
suite = ps.Suite.from_list([{"input": f"task {n}"} for n in range(30)])
longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
comparator = ps.pairwise_judge(longer, criterion="longer", key="longer")""",
    "run": """
ab = ps.run_pairwise(suite, variant_a=lambda task: "x", variant_b=lambda task: "xyz", comparators=[comparator])""",
    "ab": "ab",
}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """By its name, what every cell has put out, and how many messages of each type it took."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    sent = {}

    class Client(nbclient.NotebookClient):
        def process_message(self, msg, cell, cell_index):
            sent.setdefault(cell.metadata.name, Counter())[msg["msg_type"]] += 1
            return super().process_message(msg, cell, cell_index)

    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(source, metadata={"name": name}) for name, source in CELLS.items()]
    folder = tmp_path_factory.mktemp("notebook")
    Client(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return {cell.metadata.name: cell.outputs for cell in book.cells}, sent


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel and its client
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("rank", r"\d+ comparisons, reliability .* of 0\.90, 0:\d\d:\d\d"),
        ("judge", r"judging: 190 of 190, .* per second"),
        ("run", r".*30 of 30, .* per second"),
    ],
    ids=["rank", "judge", "ab"],
)
def test_a_run_has_one_output_that_is_updated(executed, cell, said):
    outputs, sent = executed
    (output,) = outputs[cell]
    assert output.output_type == "display_data"
    assert re.fullmatch(said, output.data["text/plain"].splitlines()[0])
    assert sent[cell]["display_data"] == 1
    assert sent[cell]["update_display_data"] >= 1
    assert sent[cell]["stream"] == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cell", "dots"), [("ranking", 20), ("fit", 20), ("sample", 20), ("ab", 1)])
def test_a_result_is_a_table_and_a_chart(executed, cell, dots):
    html = executed[0][cell][-1].data["text/html"]
    assert html.count("<table") == 1
    assert html.count("<circle") == dots
    assert "<script" not in html
    if cell == "ranking":
        row = re.search(r"<tbody><tr>(.*?)</tr>", html)[1]
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert cells[0] == "1"
