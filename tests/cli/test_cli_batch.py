"""``pairscale batch``: the whole way on the command line, against simulated providers."""

import stat
from pathlib import Path

import pytest

import pairscale as ps
from pairscale.core.errors import InputError


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    rows = [f"s{n},{'x' * (n + 1)},s{n + 1},{'x' * (n + 2)}" for n in range(6)]
    path.write_text("\n".join(["ID1,text1,ID2,text2", *rows]) + "\n", "utf-8")
    return str(path)


def test_the_whole_way(cli, server, pairs, tmp_path):
    run = str(tmp_path / "run.db")
    made = cli("batch", "submit", pairs, "--judge", "openai:gpt-4.1", "--run", run, "--batch-size", "4")
    assert made.code == 0
    assert "6 pairs in 2 new batches" in made.err
    assert "validating" in made.out
    header = "batch provider model state pairs requests answered failed taken in age (h) left (h)"
    assert made.out.splitlines()[0].split() == header.split()
    again = cli("batch", "submit", pairs, "--judge", "openai:gpt-4.1", "--run", run)
    assert "nothing to submit" in again.err
    assert server.batches.created == 2
    known = cli("batch", "status", run, "--offline", "--json")
    assert [row["state"] for row in known.json["batches"]] == ["validating"] * 2
    going = cli("batch", "status", run)
    assert "running" in going.out
    assert f"2 batches are not taken in yet; next: pairscale batch resume {run}" in going.err
    assert f"2 of 2 batches not taken in yet: pairscale batch status {run}" in cli("status", run).out
    ended = cli("batch", "status", run)
    assert f"2 batches are not taken in yet; next: pairscale batch resume {run}" in ended.err
    results = str(tmp_path / "results.csv")
    done = cli("batch", "collect", run, "--out", results)
    assert "2 batches taken in; 6 pairs of this run answered" in done.err
    assert Path(results).read_text("utf-8").count("\n") == 7
    assert f"next: pairscale fit {run}" in done.err
    assert "not taken in yet" not in cli("status", run).out
    after = cli("batch", "status", run)
    assert "age" not in after.out
    assert after.err == ""
    files = [Path(run), *Path(f"{run}.batches").iterdir()]
    assert len(files) == 5  # requests and answers of two batches
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}  # they hold texts and answers
    assert cli("fit", run).code == 0


def test_resume_cancel_and_again(message_snapshot, cli, server, pairs, tmp_path):
    run = str(tmp_path / "run.db")
    server.batches.looks = 50
    cli("batch", "submit", pairs, "--judge", "anthropic:claude-sonnet-4-5", "--run", run)
    late = cli("batch", "resume", run, "--interval", "0", "--max-minutes", "0")
    assert "1 of 1 batch under way: 1 running" in late.err
    assert f"1 batch is not taken in yet; next: pairscale batch resume {run}" in late.err
    with pytest.raises(InputError) as refused:
        ps.batch.resume(run, max_minutes=-1)
    message_snapshot(refused)
    wrong = cli("batch", "cancel", run, "--batch", "none")
    assert (wrong.code, "knows no batch none" in wrong.err) == (1, True)
    ended = cli("batch", "cancel", run, "--batch", "msgbatch_000001")
    assert "cancelled" in ended.out
    assert "asked for the end of 1 batch\n" in ended.err
    server.batches.looks = 1
    got = cli("batch", "resume", run, "--interval", "0", "--json")
    n = len(got.json["results"])
    assert n + len(got.json["failed_attempts"]) == n + len(got.json["rest"]) == 6
    assert f"got no answer; the request was cancelled: `pairscale batch resume {run} --again` asks again" in got.err
    rest = cli("batch", "resume", run, "--interval", "0", "--again", "--json")
    assert f"{6 - n} pairs submitted again, in 1 new batch" in rest.err
    assert len(rest.json["results"]) == 6
    assert rest.json["rest"] == []
    assert server.batches.created == 2
    assert "nothing to cancel" in cli("batch", "cancel", run).err
    assert "nothing to submit" in cli("batch", "resume", run, "--again").err


def test_what_cannot_be(cli, server, pairs, tmp_path):
    run = str(tmp_path / "run.db")
    lexical = cli("batch", "submit", pairs, "--judge", "lexical", "--run", run)
    assert (lexical.code, "batches are for models" in lexical.err) == (1, True)
    ollama = cli("batch", "submit", pairs, "--judge", "ollama:qwen3", "--run", run)
    assert (ollama.code, "ollama has no batches" in ollama.err) == (1, True)
    samples = tmp_path / "samples.csv"
    samples.write_text("ID,text\na,x\nb,y\n", "utf-8")
    assert "holds no pairs" in cli("batch", "submit", str(samples), "--judge", "openai:m", "--run", run).err
    assert cli("batch", "status", str(tmp_path / "none.db")).code == 1
    assert cli("batch", "submit", pairs).code == 2
