"""``pairscale label``, and ``pairscale rank --judge human``."""

import builtins
import io
import json
import re
import signal
import subprocess
import threading
import urllib.parse
import urllib.request

import polars as pl
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


def test_in_the_terminal_by_a_pipe(process, manifest, folder):
    """What is typed in another encoding is no answer, and no crash."""
    child = process(
        "label", manifest, "--terminal", "--labellers", "ann", "--json", stdin=subprocess.PIPE, encoding="latin-1"
    )
    out, err = child.communicate("1\n2\xfc\ntie\n2\n", timeout=600)
    assert child.returncode == 0, err
    assert json.loads(out)["done"] == 3
    assert err.count("Which is better?") == 4
    assert "Done. Thank you!" in err


def test_in_the_terminal_and_out_again(cli, manifest, typed, folder):
    typed("1", "tie", "quit")
    outcome = cli("label", manifest, "--terminal", "--labellers", "ann", "--json")
    assert outcome.code == 0
    assert outcome.json["done"] == 2
    assert [row["labeller"] for row in outcome.json["labels"]] == ["ann", "ann"]
    assert "Which is better? 1 / 2 / tie: " in outcome.err
    kept = manifest.with_suffix(".db")
    assert outcome.lines[-1].endswith(f"2 of 3 labels are in {kept}; run the same command again to continue")
    typed("2")
    outcome = cli("label", manifest, "--terminal", "--labellers", "ann", "--out", "labels.csv")
    assert outcome.code == 0
    assert "Done. Thank you!" in outcome.err
    assert len((folder / "labels.csv").read_text().splitlines()) == 4
    outcome = cli("label", manifest, "--status")
    assert (
        outcome.out.splitlines()[0].split()
        == "labeller labels ties skipped seconds too fast leans to a side left side".split()
    )
    assert outcome.out.splitlines()[-1] == "clearer: 3 of 3 cases complete"
    assert outcome.err == ""
    assert cli("label", kept, "--status", "--json").json == cli("label", manifest, "--status", "--json").json


def test_the_run_file_is_read_by_other_commands(cli, manifest, typed, folder):
    ps.submit_pairs([{"ID1": "a", "text1": "Yes.", "ID2": "b", "text2": "No."}], "lexical", run="run.db")
    for name, choices in (("ann", ("1", "2", "tie")), ("bob", ("1", "2", "skip no idea"))):
        typed(*choices)
        options = ["--labellers", name, "--labels-per-case", 2]
        assert cli("label", manifest, "--run", "run.db", "--terminal", *options).code == 0
    outcome = cli("status", "run.db")
    assert "5 of 6 labels of 3 cases, 1 skipped" in outcome.out
    status = cli("status", "run.db", "--json")
    counts = {"cases": 3, "labellers": 2, "labels": 5, "skipped": 1, "complete": 5, "wanted": 6}
    assert status.json["labels"] == counts
    with ps.open_run("run.db") as store:
        assert store.results().height == 1
        secrets = {store.get_meta("labelling_links")["owner_token"], store.get_meta("labelling_links")["secret"]}
    assert not [secret for secret in secrets if secret in status.out]
    agreed = cli("agreement", "run.db", "--json")
    assert (agreed.json["n_units"], agreed.json["n_raters"]) == (3, 2)
    labels = cli("label", "run.db", "--status", "--out", "labels.jsonl")
    assert labels.code == 0
    assert cli("agreement", "labels.jsonl", "--json").json["table"] == agreed.json["table"]


def test_without_the_extra(cli, manifest, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "uvicorn":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    outcome = cli("label", manifest, "--port", 0)
    assert outcome.code == 1
    assert outcome.lines == ['error: the labelling page needs an optional package: pip install "pairscale[web]"']


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
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_served_stopped_and_served_again(process, manifest, cli, stop):
    links = {}
    for round_ in range(2):
        child = process("label", manifest, "--labellers", "ann,bob", "--labels-per-case", 1, "--port", 0, "--json")
        lines, found = links_of(child, "send each labeller")
        assert lines[0] == f"3 cases, 1 label each, kept in {manifest.with_suffix('.db')}"
        assert list(found) == ["owner", "ann", "bob"]
        paths = {name: urllib.parse.urlsplit(link).path for name, link in found.items()}
        links = links or paths
        assert paths == links  # everybody keeps their link
        page = get(found["ann"])
        second = cli("label", manifest, "--terminal", "--labellers", "cat")  # one process writes at a time
        assert second.code == 1
        assert "is being written by another run" in second.lines[-1]
        assert cli("label", manifest, "--status", "--json").json["done"] == 2 * round_  # and any may read
        for _ in range(2 - round_):
            page = post(found["ann"], page, "1")
        assert "first_variant" not in page
        child.send_signal(stop)
        out, err = child.communicate(timeout=600)
        done = 2 + round_
        assert child.returncode == (0 if done == 3 else 128 + stop)
        assert not manifest.with_name("cases.db-wal").exists()  # all is in the run file itself
        assert json.loads(out)["done"] == done
        assert "Traceback" not in err
    assert cli("label", manifest, "--status", "--json").json["done"] == 3


@pytest.mark.slow
def test_people_as_the_judge_of_a_run(process, folder):
    options = ["--steps", 4, "--labellers", "ann", "--port", 0, "--run", "run.db", "--progress", "none", "--json"]
    child = process("rank", "essays", "--judge", "human", "--fit", "laplace", *options)
    lines, found = links_of(child, "/l/")
    assert "the run asks people" in lines[-3]
    assert "/owner/" in lines[-2]
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


def test_ties_alone_do_not_end_what_trust_says_of_new_labels(run, folder, monkeypatch, capsys):
    from pairscale.cli import trust

    looked = threading.Event()
    kept = folder / "kept.db"
    pairs = [{"ID1": "ann", "text1": "A.", "ID2": "dot", "text2": "B."}]
    pl.DataFrame(pairs).write_csv("pairs.csv")
    monkeypatch.setattr("sys.stdin", io.StringIO("tie\n"))
    ps.label("pairs.csv", run=kept, labellers="ann", terminal=True)
    real = ps.trust

    def watched(**arguments):
        try:
            return real(**arguments)
        finally:
            looked.set()

    monkeypatch.setattr(trust, "_LOOK_INTERVAL_S", 0.01)
    monkeypatch.setattr(trust.ps, "trust", watched, raising=False)
    with trust._updates({"run": str(run)}, kept):  # an exception in its thread would fail the test
        assert looked.wait(600)
    assert "Traceback" not in capsys.readouterr().err
