"""Notebooks: one output that is updated in place, tried with a real kernel."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pairscale import Verdict
from pairscale.core import notebooks
from pairscale.core.notebooks import LiveOutput, in_notebook
from pairscale.runtime import Progress


def test_a_script_is_no_notebook():
    assert not in_notebook()


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


def test_progress_is_one_line(front, capsys):
    now = [0.0]
    with Progress(40, clock=lambda: now[0]) as bar:
        for _ in range(40):
            now[0] += 1
            bar.advance(Verdict.win(1))
    assert [one["text/plain"] for one in front.shown] == ["judging: 40 of 40, 1.0 per second"]
    assert front.updates == 40
    assert capsys.readouterr() == ("", "")
