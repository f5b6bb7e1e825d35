"""`pairscale report`: the page beside the run, tables, what may be shared, and what to look at again."""

import html
import json
import re
import shlex
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


def test_json_has_the_same_items_and_nothing_else_is_printed(cli, run):
    done = cli("report", run, "--out", "r.html", "--json")
    assert [row["ID"] for row in done.json["items"]] == ["dot", "cem", "bob", "ann"]
    assert done.json["report"] == "r.html"


def test_to_share(cli, run):
    done = cli("report", run, "--without-texts", "--pseudonyms", "--out", "share.html", "--json")
    source = Path("share.html").read_text("utf-8")
    shown = re.findall(r'<td class="id">(T\d)</td>', source)
    assert shown == [row["ID"] for row in done.json["items"]]  # one disguise for both
    assert sorted(shown) == ["T1", "T2", "T3", "T4"]
    assert not any(f">{name}<" in source for name in ("ann", "bob", "cem", "dot"))
    assert "Somewhat longer" not in source


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


@pytest.mark.slow
def test_charts_to_point_at(cli, run):
    assert cli("report", run, "--interactive").code == 0
    source = Path("run.html").read_text("utf-8")
    assert "vegaEmbed" in source
    assert "pairscale report run.db --interactive" in source
    done = cli("report", run, "--interactive", "--out", "ranking.csv")
    assert (done.code, Path("ranking.csv").exists()) == (1, False)
    assert "is a table; leave one of the two out" in done.err


def test_charts_to_point_at_need_a_package(cli, folder, monkeypatch):
    monkeypatch.setattr("pairscale.reporting.vega.find_spec", lambda name: None)
    done = cli("report", "nowhere.db", "--interactive")
    assert (done.code, done.out) == (1, "")
    assert done.lines == ['error: --interactive needs an optional package: pip install "pairscale[plots]"']


def test_the_line_to_get_a_page_again_gives_the_same_page(cli):
    Path("votes.csv").write_text("left,right,who\na,b,a\nb,c,b\na,c,a\nc,d,c\na,d,d\n", "utf-8")
    Path("texts.csv").write_text("ID,text\na,one\nb,two\nc,three\nd,four\n", "utf-8")
    cols = ("--a-col", "left", "--b-col", "right", "--winner-col", "who")
    options = ("--samples", "texts.csv", *cols, "--title", "Which is 'best'?", "--without-texts")
    assert cli("report", "votes.csv", *options).code == 0
    first = Path("votes.html").read_text("utf-8")
    heading = first.index("<h3>To get this page again</h3>")
    [line] = re.findall(r"<pre>(.*?)</pre>", first[heading:])
    command, *arguments = shlex.split(html.unescape(line))
    assert command == "pairscale"
    Path("votes.html").unlink()
    assert cli(*arguments).code == 0
    assert Path("votes.html").read_text("utf-8") == first
