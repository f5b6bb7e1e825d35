"""How many files of the package a walk meets: whoever follows one has to read them."""

import sys
import threading
from pathlib import Path

from tests.evaluate.sides import longer

import pairscale as ps
from pairscale.evaluate import result

PACKAGE = str(Path(ps.__file__).parent)
AB_FILES = 60
RANK_FILES = 75


def met(walk):
    """The files of the package whose functions a walk calls, in this thread and in those that it starts."""
    files = set()

    def note(frame, event, _arg):
        if event == "call" and frame.f_code.co_name != "<module>" and frame.f_code.co_filename.startswith(PACKAGE):
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(str(Path(file).relative_to(PACKAGE)) for file in files)


def test_an_ab_run_with_its_report_meets_few_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, word in (("a", "Yes. "), ("b", "Yes, it does. ")):
        rows = [
            f'{{"task_id": "t{n}", "input": "Does it rain? {n}", "output": "{word * (1 + n % 3)}"}}' for n in range(12)
        ]
        Path(f"{name}.jsonl").write_text("\n".join(rows), "utf-8")

    def walk():
        ps.ab("a.jsonl", "b.jsonl", criterion="says more", judge=longer, run="ab.db", progress=False)
        ps.report("ab.db")

    walk()  # what is loaded once is no part of the walk
    Path("ab.db").unlink()
    files = met(walk)
    assert len(files) <= AB_FILES, files


def test_a_text_from_reading_to_its_report_meets_few_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("essays")
    folder.mkdir()
    for n in range(8):
        (folder / f"essay{n}.txt").write_text("It rains. " * (n + 1), "utf-8")

    def walk():
        ps.rank(ps.read_samples(folder), judge=longer, run="rank.db", max_comparisons=30, progress=False)
        ps.report("rank.db")

    walk()
    Path("rank.db").unlink()
    files = met(walk)
    assert len(files) <= RANK_FILES, files


def test_a_report_builds_the_table_of_a_criterion_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = {f"t{n}": "Yes." for n in range(12)}
    new = {f"t{n}": "Yes, it does." * (n % 4) for n in range(12)}
    found = ps.ab(old, new, criterion="says more", judge=longer, progress=False)
    built = []
    table_of = result.cases_table
    monkeypatch.setattr(result, "cases_table", lambda *given: built.append(1) or table_of(*given))
    found.report("page.html")
    found.summary()
    found.to_dict()
    assert len(built) <= 3, "one of the criterion by each way to count failures, and one of all cases for the page"
