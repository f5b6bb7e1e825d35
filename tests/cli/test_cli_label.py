"""``pairscale label``, and ``pairscale rank --judge human``."""

import builtins
import io
import json
import re
import signal
import urllib.parse
import urllib.request

import pytest

import pairscale as ps

FIELDS = ("case_id", "task_id", "criterion", "task_input", "response_1", "response_2")


@pytest.fixture
def manifest(folder):
    rows = [
        dict(zip(FIELDS, (f"c{n}", f"t{n}", "clearer", f"Question {n}?", f"A {n}", f"B {n}"), strict=True))
        for n in range(3)
    ]
    path = folder / "cases.jsonl"
    path.write_text("".join(json.dumps(row | {"first_variant": "b"}) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def typed(monkeypatch):
    def type_in(*lines: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    return type_in


def test_in_the_terminal_and_out_again(cli, manifest, typed, folder):
    typed("1", "tie", "quit")
    outcome = cli("label", manifest, "--terminal", "--labellers", "ann", "--json")
    assert outcome.code == 0
    assert outcome.json["done"] == 2
    assert [row["labeller"] for row in outcome.json["labels"]] == ["ann", "ann"]
    assert "Which is better? 1 / 2 / tie: " in outcome.err
    assert outcome.lines[-1].endswith(f"2 of 3 labels are in {manifest}.labels.db; the same command goes on")
    typed("2")
    outcome = cli("label", manifest, "--terminal", "--labellers", "ann", "--out", "labels.csv")
    assert outcome.code == 0
    assert "Done. Thank you!" in outcome.err
    assert len((folder / "labels.csv").read_text().splitlines()) == 4
    outcome = cli("label", manifest, "--status")
    assert outcome.out.splitlines()[0].split() == "labeller labels ties skipped seconds left side warning".split()
    assert outcome.out.splitlines()[-1] == "clearer: 3 of 3 cases complete"
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--status"], "no labels yet; `pairscale label"),
        (["--status", "--terminal"], "not both"),
        (["--terminal", "--labellers", "a,b"], "one person sits at a terminal"),
        (["--labellers", "ann,,bob"], "different names with commas"),
        (["--labellers", "ann,ann"], "different names with commas"),
        (["--labellers", "0"], "give 1 to 1000"),
        (["--criterion", "x"], "names its own criteria"),
        (["--url", "nonsense"], "must look like https://labels.example.org"),
        (["--owner-token", "short"], "16 letters, digits"),
        (["--instructions", "none.md"], "none.md: no such file"),
        (["--db", "essays"], "is a folder"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(cli, manifest, options, words):
    outcome = cli("label", manifest, *options)
    assert outcome.code == 1
    assert len(outcome.lines) == 1
    assert words in outcome.lines[0]


def test_without_the_extra(cli, manifest, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "uvicorn":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    outcome = cli("label", manifest, "--port", 0)
    assert outcome.code == 1
    assert outcome.lines == ["error: the labelling page needs an optional package: pip install 'pairscale[web]'"]


def post(link: str, page: str, choice: str) -> str:
    fields = dict(re.findall(r'name="(question|csrf)" value="([^"]*)"', page.partition('id="answer"')[2])[:2])
    body = urllib.parse.urlencode({**fields, "choice": choice}).encode()
    return get(urllib.request.Request(f"{link}/answer", body))


def get(link) -> str:
    with urllib.request.urlopen(link, timeout=600) as reply:
        return reply.read().decode()


def links_of(child, last: str) -> tuple[list[str], dict[str, str]]:
    """What a command says until it serves, and the links in it."""
    lines = []
    for line in child.stderr:
        lines.append(line.rstrip("\n"))
        if last in line:
            break
    found = (line.split() for line in lines if "http://127.0.0.1" in line)
    return lines, dict(found)


@pytest.mark.slow
def test_served_stopped_and_served_again(process, manifest, cli):
    links = {}
    for round_ in range(2):
        child = process("label", manifest, "--labellers", "ann,bob", "--labels-per-case", 1, "--port", 0, "--json")
        lines, found = links_of(child, "send each labeller")
        assert lines[0] == f"3 cases, 1 label each, kept in {manifest}.labels.db"
        assert list(found) == ["owner", "ann", "bob"]
        paths = {name: urllib.parse.urlsplit(link).path for name, link in found.items()}
        links = links or paths
        assert paths == links  # everybody keeps their link
        page = get(found["ann"])
        for _ in range(2 - round_):
            page = post(found["ann"], page, "1")
        assert "first_variant" not in page
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=600)
        done = 2 + round_
        assert child.returncode == (0 if done == 3 else 130)
        assert json.loads(out)["done"] == done
        assert "Traceback" not in err
    assert cli("label", manifest, "--status", "--json").json["done"] == 3


@pytest.mark.slow
def test_people_as_the_judge_of_a_run(process, folder):
    options = ["--steps", 4, "--labellers", "ann", "--port", 0, "--run", "run.db", "--progress", "none", "--json"]
    child = process("rank", "essays", "--judge", "human", "--fit", "laplace", *options)
    lines, found = links_of(child, "/l/")
    assert "the run asks people" in lines[-2]
    page, answered = get(found["ann"]), 0
    while answered < 4:
        if 'id="answer"' in page:
            page = post(found["ann"], page, "1")
            answered += 1
        else:
            page = get(found["ann"])
    out, err = child.communicate(timeout=600)
    assert child.returncode == 0, err
    assert json.loads(out)["summary"][0]["committed_pairs"] == 4
    with ps.open_run(folder / "run.db") as store:
        assert store.results()["better_sample"].to_list() == ["SAMPLE_1"] * 4
        assert store.results()["model"].to_list() == ["ann"] * 4


def test_labellers_belong_to_people(cli):
    outcome = cli("rank", "essays", "--labellers", "ann", "--steps", 1)
    assert outcome.code == 1
    assert outcome.lines[-1] == "error: --labellers and --instructions belong to --judge human"
