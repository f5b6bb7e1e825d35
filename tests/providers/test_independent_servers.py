"""Two servers of other authors, from the package registries, that imitate providers: our judges against theirs.

``llmock`` (PyPI) grades its clients: whether they wait as long as Retry-After says, back off, retry what cannot
succeed, or give up on what can. ``@copilotkit/aimock`` (npm) checks itself daily against the real providers.
``make mock-servers`` installs both into ``build/mock-servers``.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import JudgeError

pytestmark = pytest.mark.validate

INSTALLED = Path(__file__).parents[2] / "build" / "mock-servers"
PATIENCE_S = 600
N_PAIRS = 30
KEY = "a-key-of-these-tests"
PROGRAMS = {
    "llmock": INSTALLED / "python" / "bin" / "llmock",
    "aimock": INSTALLED / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js",
}
FAULTS = {
    "llmock": ["--error-rate", "429=0.2", "--error-rate", "503=0.1", "--error-rate", "529=0.05"],
    "aimock": [
        "--chaos-ratelimit", "0.15", "--chaos-drop", "0.1", "--chaos-disconnect", "0.1", "--chaos-malformed", "0.05",
    ],
}  # fmt: skip
JUDGES = {
    "llmock": {
        "openai:gpt-4.1": "/v1",
        "openai:gpt-5.1": "/v1",
        "anthropic:claude-sonnet-4-5": "/anthropic",
        "gemini:gemini-2.5-flash": "/gemini",
        "together:deepseek-ai/DeepSeek-V3": "/together/v1",
        "compatible:grok-3": "/xai/v1",
    },
    "aimock": {
        "openai:gpt-4.1": "/v1",
        "openai:gpt-5.1": "/v1",
        "anthropic:claude-sonnet-4-5": "",
        "gemini:gemini-2.5-flash": "",
        "ollama:qwen3:8b": "",
        "compatible:test-model": "/v1",
    },
}
"""By server and judge, where the server has its provider."""
CASES = [(server, judge) for server, judges in JUDGES.items() for judge in judges]


@dataclass(frozen=True, slots=True)
class MockServer:
    """A server that is running."""

    name: str
    url: str

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path) as reply:
            return json.load(reply)

    def judge(self, judge: str, **settings: Any) -> ps.Judge:
        known = {"base_url": self.url + JUDGES[self.name][judge], "cache": False, "price": {"input": 1, "output": 10}}
        known |= {} if judge.startswith("ollama") else {"api_key": KEY}
        return ps.make_judge(judge, judge_args={**known, **settings})

    def verdict(self) -> dict[str, Any]:
        """What llmock finds about the client: ``calls``, ``attempts``, ``errors``, ``warnings``, ``findings``."""
        return dict(self.get("/_llmock/verdict"))


@contextmanager
def running(name: str, folder: Path, *options: str, **environment: str) -> Iterator[MockServer]:
    """A server that answers on every pair: llmock always names the first text, aimock each text in turn."""
    if not PROGRAMS[name].exists():
        pytest.fail(f"{PROGRAMS[name]} is not there; install the servers with `make mock-servers`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if name == "llmock":
        command = [str(PROGRAMS[name]), "serve", "--port", str(port), *options]
    else:
        rows = [{"match": {"userMessage": _mark(2 * at)}, "response": {"content": _said(at)}} for at in range(N_PAIRS)]
        (folder / "answers.json").write_text(json.dumps({"fixtures": rows}))
        command = ["node", str(PROGRAMS[name]), "-p", str(port), "-f", str(folder / "answers.json"), *options]
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        server = MockServer(name, f"http://127.0.0.1:{port}")
        try:
            _wait_for(server, process)
            if name == "llmock":
                reply = {"type": "reply", "text": _said(0), "times": None}
                document = json.dumps({"behaviors": [reply]}).encode()
                urllib.request.urlopen(f"{server.url}/_llmock/scenario", document).close()
            yield server
        finally:
            process.kill()


def _wait_for(server: MockServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            urllib.request.urlopen(f"{server.url}/health").close()
        except urllib.error.HTTPError:
            return
        except OSError:
            assert process.poll() is None, f"{server.name} has ended"
            assert time.monotonic() < deadline, f"{server.name} does not answer"
            time.sleep(0.1)
        else:
            return


def _mark(number: int) -> str:
    return f"[[t{number:02d}]]"


def _said(at: int) -> str:
    return f"I have compared them. <BETTER_SAMPLE>SAMPLE_{1 + at % 2}</BETTER_SAMPLE>"


def pairs(long: int | None = None) -> list[dict[str, str]]:
    """Pairs of texts of their own; the first text of one of them may be very long."""
    texts = [f"{_mark(at)} A text of number {at}." for at in range(2 * N_PAIRS)]
    if long is not None:
        texts[2 * long] += " It goes on and on." * 5_000
    return [
        {"ID1": f"t{at:02d}", "text1": texts[at], "ID2": f"t{at + 1:02d}", "text2": texts[at + 1]}
        for at in range(0, 2 * N_PAIRS, 2)
    ]


def judged(server: MockServer, judge: ps.Judge, data: list[dict[str, str]] | None = None, **options: Any) -> Any:
    given = {"concurrency": 8, "retries": 10, "retry_wait": 0.2, **options}
    return ps.submit_pairs(data or pairs(), judge, progress=False, **given)


def assert_all_answered(server: MockServer, done: Any) -> None:
    expected = ["SAMPLE_1"] * N_PAIRS if server.name == "llmock" else ["SAMPLE_1", "SAMPLE_2"] * (N_PAIRS // 2)
    assert done.results["better_sample"].to_list() == expected
    assert done.failed_pairs.height == 0
    for name in ("prompt_tokens", "completion_tokens", "cost"):
        assert done.results[name].null_count() == 0
        assert done.results[name].min() > 0 or server.name == "aimock"  # which counts no tokens for most providers


@pytest.fixture(scope="module", params=PROGRAMS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockServer]:
    with running(request.param, tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.mark.parametrize("judge", sorted({judge for _, judge in CASES}))
def test_thirty_pairs_are_judged(server: MockServer, judge: str) -> None:
    if judge not in JUDGES[server.name]:
        pytest.skip(f"{server.name} does not have this provider")
    done = judged(server, server.judge(judge))
    assert done.asked == N_PAIRS
    assert_all_answered(server, done)


@pytest.mark.parametrize(("name", "judge"), CASES)
def test_thirty_pairs_are_judged_through_faults(
    name: str, judge: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(name, tmp_path, *FAULTS[name]) as server:
        done = judged(server, server.judge(judge))
        found = server.verdict() if name == "llmock" else None
    assert_all_answered(server, done)
    failed = done.failed_attempts
    assert done.asked == N_PAIRS + failed.height
    assert set(failed["failure"]) == {"transient"}
    grade = ""
    if found is not None:
        assert (found["calls"], found["attempts"]) == (N_PAIRS, done.asked)
        assert found["findings"] == []
        grade = ", the server finds nothing wrong with the client"
    with capsys.disabled():
        codes = ", ".join(f"{n} {code}" for code, n in sorted(Counter(failed["error_code"]).items()))
        print(f"\n{name}, {judge}: {N_PAIRS} of {N_PAIRS} answered in {done.asked} requests ({codes}){grade}")


@pytest.mark.parametrize("judge", ["openai:gpt-4.1", "anthropic:claude-sonnet-4-5"])
def test_a_quota_is_kept(judge: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty requests at once and one every three seconds after that, with 16 open at once."""
    with running("llmock", tmp_path, "--rpm", "20") as server:
        done = judged(server, server.judge(judge), concurrency=16)
        found = server.verdict()
    assert_all_answered(server, done)
    assert [finding for finding in found["findings"] if finding["severity"] == "error"] == []
    with capsys.disabled():
        warned = dict(Counter(finding["code"] for finding in found["findings"]))
        print(f"\nllmock, {judge}, 20 a minute: {done.asked} requests for {N_PAIRS} answers, warnings {warned}")


@pytest.mark.parametrize("judge", JUDGES["llmock"])
def test_a_text_that_is_too_long_is_asked_about_once(judge: str, tmp_path: Path) -> None:
    with running("llmock", tmp_path, "--context-window", "8000") as server:
        done = judged(server, server.judge(judge), pairs(long=7))
        found = server.verdict()
    assert done.results.height == N_PAIRS - 1
    assert done.failed_attempts.select("ID1", "failure").rows() == [("t14", "question")]
    assert found["findings"] == []
    assert found["attempts"] == N_PAIRS


@pytest.mark.parametrize("judge", ["openai:gpt-4.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"])
def test_a_key_that_is_not_accepted_ends_the_run(judge: str, tmp_path: Path) -> None:
    with running("aimock", tmp_path, AIMOCK_API_KEYS="another-key") as server:
        with pytest.raises(JudgeError, match="401"):
            judged(server, server.judge(judge), run=tmp_path / "run.db")
        judged(server, server.judge(judge, api_key="another-key"), run=tmp_path / "run.db")
    with ps.open_run(tmp_path / "run.db") as store:
        assert set(store.failed_attempts()["failure"]) == {"judge"}
        assert store.results().height == N_PAIRS


@pytest.mark.parametrize(
    ("name", "provider", "model", "path"),
    [
        ("llmock", "openai", "gpt-4.1", "/v1"),
        ("llmock", "anthropic", "claude-sonnet-4-5", "/anthropic"),
        ("aimock", "openai", "gpt-4.1", "/v1"),
    ],
)
def test_a_batch_comes_back_whole(
    message_snapshot, name: str, provider: str, model: str, path: str, tmp_path: Path
) -> None:
    """In batches, both servers reply to every request with words of their own: each reply is kept, and none is read."""
    with running(name, tmp_path) as server, pytest.raises(JudgeError) as refused:
        ps.llm_submit_pairs_batch(
            pairs(), provider, model, run=tmp_path / "run.db", base_url=server.url + path, api_key=KEY,
            interval_seconds=0.1, verbose=False,
        )  # fmt: skip
    message_snapshot(refused)
    with ps.open_run(tmp_path / "run.db") as store:
        failed = store.failed_attempts()
    assert (failed.height, failed["custom_id"].n_unique()) == (N_PAIRS, N_PAIRS)
    assert set(failed["error_code"]) == {"parse_error"}
    assert failed["content"].str.len_chars().min() > 0
    assert failed["total_tokens"].min() > 0
