"""Sentences of README and guides that tell the reader to do something next: each is walked as a new user would.

Code blocks of pages run elsewhere (tests/docs). Here a sentence is quoted, so that whoever changes it changes its walk.
"""

import json
from pathlib import Path

import pytest

from pairscale.testing import ProviderSimulator

ROOT = Path(__file__).parents[2]
RANK = ("rank", "essays", "--fit", "laplace", "--progress", "none")


def on_page(page: str, *sentences: str) -> None:
    """Check that the page still says what is walked."""
    words = " ".join((ROOT / page).read_text("utf-8").split())
    for sentence in sentences:
        assert sentence in words, f"{page} no longer says: {sentence}"


@pytest.fixture
def openai(monkeypatch):
    """A key, and a server that answers for OpenAI."""
    with ProviderSimulator() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        yield server


@pytest.fixture
def essays(cli):
    """Twelve essays in a folder, as the README makes them."""
    for path in Path("essays").iterdir():
        path.unlink()
    Path("essays").rmdir()
    assert cli("init", "--essays", "12").code == 0


@pytest.mark.usefixtures("essays")
def test_readme_a_model_in_place_of_the_embedded_judge(cli, openai):
    on_page(
        "README.md",
        "`--judge openai:gpt-5.1` asks a model (key: `OPENAI_API_KEY`)",
        "name another run file for each",
    )
    assert cli(*RANK, "--run", "essays.db").code == 0
    same = cli(*RANK, "--run", "essays.db", "--judge", "openai:gpt-5.1")
    assert same.code == 1
    assert "was judged by another judge: judge_id was 'lexical', is 'openai:gpt-5.1'" in same.err
    assert openai.served == 0
    other = cli(*RANK, "--run", "gpt.db", "--judge", "openai:gpt-5.1", "--max-comparisons", "8")
    assert other.code == 0
    assert "judged by openai:gpt-5.1" in other.err


@pytest.mark.usefixtures("essays")
def test_readme_the_same_command_and_the_audit(cli):
    on_page("README.md", "The same command resumes after a crash;")
    assert cli(*RANK, "--run", "essays.db", "--max-comparisons", "20").code == 0
    again = cli(*RANK, "--run", "essays.db", "--json")
    assert again.code == 0
    assert again.json["summary"][0]["committed_pairs"] > 20
    assert cli("audit", "essays.db").code == 0
    assert cli("status", "essays.db").code == 0


def test_first_ranking_another_judge_in_the_same_file(cli, pairs):
    on_page(
        "docs/guides/first-ranking.md",
        "After a crash or Ctrl-C, run the same command again.",
        "Another judge, trait, template or setting is another *condition*. It starts from nothing, also in the same",
        "run file; `--condition` of `pairscale fit` then says which.",
        "Save it with `--out`, or from Python with any method of a Polars table.",
    )
    first = ("judge", pairs, "--judge", "lexical", "--run", "run.db")
    assert cli(*first).code == 0
    assert "0 asked now" in cli(*first).err
    other = cli("judge", pairs, "--judge", "mine:longer", "--run", "run.db")
    assert "6 of 6 pairs answered" in other.err
    unsure = cli("fit", "run.db")
    assert unsure.code == 1
    assert "--condition" in unsure.err
    assert cli("fit", "run.db", "--condition", "mine:longer", "--out", "scores.csv").code == 0
    assert Path("scores.csv").read_text("utf-8").startswith("ID,")


@pytest.mark.usefixtures("essays")
def test_adaptive_ranking_limits_late_texts_and_withdrawals(cli):
    on_page(
        "docs/guides/adaptive-ranking.md",
        "To continue, start the same command again; after a limit, with a higher one or none:",
        "Put them into the folder and run the same command again. They join the run; nothing is asked again that was "
        "answered.",
    )
    assert (
        "run the same command with a higher one to continue"
        in cli(*RANK, "--run", "essays.db", "--max-comparisons", "20").out
    )
    assert cli(*RANK, "--run", "essays.db", "--max-comparisons", "30").code == 0
    stopped = cli(*RANK, "--run", "essays.db")
    assert "a higher --reliability continues the run" in stopped.out
    further = cli(*RANK, "--run", "essays.db", "--reliability", "0.99", "--max-comparisons", "120")
    assert further.code == 0
    Path("essays/late.txt").write_text("A late text, which is short and plain.", "utf-8")
    joined = cli(*RANK, "--run", "essays.db", "--reliability", "0.99", "--max-comparisons", "140")
    assert "new in the run: 1 text, 'late'" in joined.err
    gone = cli(*RANK, "--run", "essays.db", "--reliability", "0.99", "--max-comparisons", "141", "--without", "late")
    assert gone.code == 0
    assert "withdrawn: late" in gone.out


def _answers(name: str, n: int, text: str) -> Path:
    rows = [{"task_id": f"t{k}", "input": f"Explain rule {k}.", "output": f"{text} {k}"} for k in range(n)]
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return Path(name)


@pytest.mark.usefixtures("folder")
def test_gate_tasks_that_b_has_no_answer_to(cli):
    on_page(
        "docs/guides/gate.md",
        "If B has no answer at all to a task of A, the gate refuses to run: its job may have died halfway.",
        "Add such tasks with an empty output, or give `--missing excluded` if they are no longer asked.",
    )
    a = _answers("a.jsonl", 30, "Because.")
    b = _answers(
        "b.jsonl", 29, "It keeps people safe on the road, because drivers then know what others will do. This is rule"
    )
    gate = ("gate", a, b, "--criterion", "more helpful", "--judge", "lexical")
    refused = cli(*gate)
    assert refused.code == 1
    assert "--missing excluded" in refused.err
    assert cli(*gate, "--missing", "excluded").code == 0
    with b.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"task_id": "t29", "input": "Explain rule 29.", "output": ""}) + "\n")
    assert cli(*gate).code == 0


def test_budget_a_higher_limit_continues(cli, pairs, openai):
    on_page(
        "docs/guides/budget.md", "Raise it in the file, or on the line, and the run continues; nothing is asked twice."
    )
    line = ("judge", pairs, "--judge", "openai:gpt-4.1", "--run", "run.db", "--concurrency", "1")
    stopped = cli(*line, "--max-cost", "0.008")
    assert "stopped before" in stopped.err
    asked = openai.served
    assert 0 < asked < 6
    assert cli(*line, "--max-cost", "5").code == 0
    assert openai.served == 6
