"""Every kind of page before the validator of the W3C, wherever it is installed: `npm install --global vnu-jar`."""

import json
import shutil
import subprocess
import threading

import pytest
from labelling import Visitor, get, make_cases
from tests.reporting.runs import HOSTILE, ab_run, bias_study, ranking_run

import pairscale as ps
from pairscale.judges.human import HumanJudge
from pairscale.people import Address, serve_questions, serve_run

pytestmark = pytest.mark.validate

MARKDOWN = (
    "# Head\n\n" + "\n\n".join(HOSTILE) + "\n\n* a\n  1. b\n\n|a|b|\n|-|:-:|\n|1|2|\n\n```\n<b>\n```\n\n> one\ntwo"
)


@pytest.fixture(scope="module")
def valid():
    """Fails with what the validator says of pages."""
    if (vnu := shutil.which("vnu")) is None:
        pytest.skip("no vnu was found")

    def check(folder):
        pages = sorted(map(str, folder.glob("*.html")))
        assert pages
        line = [vnu, "--stdout", "--errors-only", "--format", "json", *pages]
        done = subprocess.run(line, check=False, capture_output=True, encoding="utf-8")
        found = json.loads(done.stdout)["messages"]
        assert [(one["url"].rpartition("/")[2], one["lastLine"], one["message"]) for one in found] == []
        assert done.returncode == 0, done.stderr

    return check


@pytest.mark.parametrize(("name", "make"), [("ranking", ranking_run), ("bias", bias_study), ("ab", ab_run)])
def test_reports(name, make, valid, tmp_path):
    run = tmp_path / "run.db"
    make(run)
    for number, options in enumerate(({"title": HOSTILE[2]}, {"pseudonyms": True}, {"without_texts": True})):
        ps.report(run, out=tmp_path / f"{name}-{number}.html", **options)
    valid(tmp_path)


@pytest.mark.parametrize("plain", [False, True])
def test_labelling(plain, serve, valid, tmp_path):
    _, site = serve(make_cases(3, text=MARKDOWN + " {} {}"), ["ann", HOSTILE[0]], instructions=MARKDOWN, plain=plain)
    with Visitor(site.links["ann"]) as ann:
        pages = {"first": ann.page, "nobody": get(site.url).text, "missing": get(f"{site.url}/nowhere").text}
        pages["owner"] = get(site.owner).text
        ann.send(choice="skip", reason="")
        pages["notice"] = ann.page
        for _ in range(3):
            ann.send(choice="1", comment=MARKDOWN)
        pages |= {"done": ann.open(), "owner-later": get(site.owner).text}
    for name, page in pages.items():
        (tmp_path / f"{name}.html").write_text(page, "utf-8")
    valid(tmp_path)


def test_a_run_that_asks_people(valid, tmp_path):
    judge, texts = HumanJudge(ps.trait_description("clarity")), [{"ID": name, "text": MARKDOWN} for name in "abcd"]
    options = {"judge": judge, "n_steps": 1, "timeout": None, "progress": "none", "fit_fn": "laplace"}
    with serve_questions(judge.queue, ["ann", "bob"], trait=judge.trait, address=Address(port=0), linger=0) as site:
        run = threading.Thread(target=lambda: ps.adaptive_rank(texts, **options))
        run.start()
        with Visitor(site.links["ann"]) as ann, Visitor(site.links["bob"]) as bob:
            while not ann.has_question:
                ann.open()
            pages = {"question": ann.page, "waiting": bob.open()}
            ann.send(choice="1")
            run.join(600)
            judge.queue.close()
            pages["done"] = ann.open()
    for name, page in pages.items():
        (tmp_path / f"{name}.html").write_text(page, "utf-8")
    valid(tmp_path)


def test_a_run_that_is_watched(valid, tmp_path):
    run = tmp_path / "run.db"
    rows = [{"ID": f"{n} {text}", "text": text, "ability": n} for n, text in enumerate(HOSTILE)]
    judge = ps.SimulatedJudge("ability", seed=1, invalid_rate=0.2)
    ps.open_run(run, write=True).close()
    for name, steps in (("empty", 0), ("some", 60)):
        if steps:
            ps.adaptive_rank(rows, judge=judge, run=run, n_steps=steps, fit_fn="laplace", progress="none")
        with serve_run(run, address=Address(port=0)) as url:
            (tmp_path / f"{name}.html").write_text(get(url).text, "utf-8")
    valid(tmp_path)
