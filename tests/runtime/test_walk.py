"""The way of an answer from the client's read to its row, counted in files of the package."""

import threading
from itertools import pairwise
from pathlib import Path

import pairscale as ps
from pairscale.testing import ProviderSimulator

PACKAGE = f"{Path(ps.__file__).parent}/"
PAIRS = [
    {"ID1": "a", "text1": "Yes.", "ID2": "b", "text2": "No, because it rains."},
    {"ID1": "a", "text1": "Yes.", "ID2": "c", "text2": "No, it rains."},
]
MOST_FILES = 18
MOST_CHANGES = 35


class Walk:
    """The files that are entered from the moment that a reply was read until its outcome was handed over."""

    def __init__(self):
        self.answers, self._is_on = [], False

    def __call__(self, frame, event, result):
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or "/testing/" in code.co_filename:
            return
        name = (code.co_filename.removeprefix(PACKAGE), code.co_name)
        if self._is_on and event == "call":
            self.answers[-1].append(name[0])
        if event == "return" and name == ("providers/client.py", "_answer") and isinstance(result, tuple):
            self.answers.append([])
            self._is_on = True
        if event == "return" and name == ("collect/live.py", "done"):
            self._is_on = False


def test_an_answer_meets_few_files_and_changes_between_them_seldom(tmp_path):
    walk = Walk()
    with ProviderSimulator() as server:
        settings = {"base_url": f"{server.url}/v1", "api_key": "sk-" + "x" * 20}
        judge = ps.make_judge("openai:gpt-4.1", judge_args=settings)
        threading.setprofile(walk)
        try:
            ps.submit_pairs(PAIRS, judge, run=tmp_path / "run.db", concurrency=1, progress=False)
        finally:
            threading.setprofile(None)
    assert len(walk.answers) == 2
    files = walk.answers[1]  # the first one also reads what is read once
    changes = sum(before != after for before, after in pairwise(files))
    assert len(set(files)) <= MOST_FILES, sorted(set(files))
    assert changes <= MOST_CHANGES, files
