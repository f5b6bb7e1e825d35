"""`pairscale report`: the page beside the run, tables, what may be shared, and what to look at again."""

import json
from pathlib import Path

import pytest

from pairscale.core.files import read_table

RANK = ("rank", "essays", "--judge", "mine:longer", "--fit", "laplace", "--progress", "none", "--steps", "9")


@pytest.fixture
def run(cli):
    assert cli(*RANK, "--run", "run.db").code == 0
    return "run.db"


def test_the_page_goes_beside_the_run(cli, run):
    done = cli("report", run, "--title", "Whose?")
    assert (done.code, done.out, done.err) == (0, "", "written: run.html\n")
    assert "<h1>Whose?</h1>" in Path("run.html").read_text("utf-8")


def test_a_table_for_those_who_want_one(cli, run):
    assert cli("report", run, "--out", "ranking.csv").code == 0
    assert read_table("ranking.csv")["ID"].to_list() == ["dot", "cem", "bob", "ann"]


def test_what_surprises_can_be_labelled(cli, run):
    done = cli("report", run, "--again", "again.jsonl", "--json")
    cases = [json.loads(line) for line in Path("again.jsonl").read_text("utf-8").splitlines()]
    assert len(cases) == done.json["again"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nowhere.db",), "no such run file"),
        (("run.db", "--out", "report.pdf"), "--out must be a file that ends in '.html', "),
        (("run.db", "--condition", "nobody"), "no condition is called 'nobody'"),
        (("run.db", "--kind", "ab"), "keeps no result of a comparison of two variants"),
    ],
)
def test_what_is_wrong_is_named(cli, run, args, said):
    done = cli("report", *args)
    assert done.code in {1, 2}
    assert said in done.err
