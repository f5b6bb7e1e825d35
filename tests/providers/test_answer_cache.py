"""An answer that was paid for once is not paid for again; repeats stay repeats; keys and prompts are in no file."""

import json
import subprocess
import sys
import textwrap

import pytest
from tests.providers.careless import CarelessSimulator

import pairscale as ps
from pairscale.providers.cache import AnswerCache, cache_file
from pairscale.testing import Behaviour, ProviderSimulator

KEY = "pl4nted-Zebra_9817236450-key"
TEXTS = [{"ID": name, "text": f"Text {name} about rain."} for name in "abcd"]
PAIRS = ps.make_pairs(TEXTS)  # 6
MODELS = {
    "openai": "gpt-4.1",
    "anthropic": "claude-3-5-haiku-latest",
    "gemini": "gemini-2.5-flash-lite",
    "together": "deepseek-ai/DeepSeek-V3",
    "ollama": "mistral:7b",
    "compatible": "my-model",
}


def address(server, provider):
    return server.url + ("" if provider in {"anthropic", "gemini", "ollama"} else "/v1")


def judged(server, pairs=PAIRS, provider="openai", model=None, **settings):
    """The pairs, judged by a judge of their own, as in a process of their own."""
    names = ("run", "concurrency", "save_path", "max_cost")
    options = {name: settings.pop(name) for name in names if name in settings}
    settings = {"api_key": KEY, "base_url": address(server, provider), "cache": True} | settings
    judge = ps.make_judge(f"{provider}:{model or MODELS[provider]}", judge_args=settings)
    done = ps.submit_pairs(pairs, judge, progress=False, include_raw=True, retry_wait=0.001, **options)
    return done, judge


def replies(done):
    """Which reply of the server each pair got: it numbers them."""
    rows = done.results.select("custom_id", "raw_response").iter_rows()
    return {name: json.loads(raw)["id"] for name, raw in rows}


# Across runs, over HTTP


@pytest.mark.parametrize("provider", MODELS)
def test_another_run_asks_nothing(provider, caplog):
    with ProviderSimulator() as server:
        first, _ = judged(server, provider=provider)
        assert (server.served, first.asked, first.cached) == (6, 6, 0)
        again, _ = judged(server, provider=provider)
        assert server.served == len(server.journal) == 6
    assert (again.asked, again.cached) == (0, 6)
    same = ["custom_id", "better_id", "content", "thoughts", "model", "total_tokens", "raw_response"]
    assert again.results.select(same).equals(first.results.select(same))
    assert again.results["cost"].to_list() == [0.0] * 6
    assert again.results["status_code"].null_count() == 6  # nothing was sent
    paid = first.results["cost"].sum() or 0.0
    assert again.saved == pytest.approx(paid)
    assert str(again).endswith("0 asked now, 6 from the cache")
    assert caplog.text.count("answers of earlier runs are used again") == 1


def test_keys_and_secret_headers_change_nothing(tmp_path):
    with ProviderSimulator() as server:
        judged(server, PAIRS[:1], headers={"X-Team-Token": "one"})
        done, _ = judged(server, PAIRS[:1], headers={"X-Team-Token": "two"}, api_key="another-key-1")
        assert done.cached == 1


# Repeats


def test_repeats_in_one_run_have_answers_of_their_own_and_keep_them():
    pairs = [*PAIRS.to_dicts(), *PAIRS.to_dicts(), PAIRS.row(0, named=True)]
    with ProviderSimulator() as server:
        first, _ = judged(server, pairs, concurrency=8)
        assert (server.served, first.cached) == (13, 0)
        assert len(set(replies(first).values())) == 13
        again, _ = judged(server, pairs, concurrency=3)
        assert (server.served, again.cached) == (13, 13)
        assert replies(again) == replies(first)  # each repeat its own answer, in every run
        more, _ = judged(server, [*pairs, PAIRS.row(0, named=True)])
        assert (server.served, more.asked, more.cached) == (14, 1, 13)


# What is kept


@pytest.mark.slow_except("openai*")
@pytest.mark.parametrize(
    ("provider", "model", "settings", "kept"),
    [
        ("openai", "gpt-4.1", {}, 6),
        ("openai", "gpt-4.1", {"temperature": 0.2}, 0),
        ("openai", "gpt-5.1", {"reasoning": "low"}, 0),
        ("anthropic", "claude-3-5-haiku-latest", {}, 6),
        ("anthropic", "claude-3-5-haiku-latest", {"temperature": 1}, 0),
        ("gemini", "gemini-2.5-flash-lite", {}, 6),
        ("gemini", "gemini-3-pro-preview", {}, 0),
        ("ollama", "mistral:7b", {}, 6),
        ("ollama", "mistral:7b", {"temperature": 0.1}, 0),
    ],
)
def test_by_itself_only_what_is_deterministic_is_kept(provider, model, settings, kept, monkeypatch):
    """Another machine, as far as the client can tell: the simulator plays its proxy."""
    with ProviderSimulator() as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        ending = "" if provider in {"anthropic", "gemini", "ollama"} else "/v1"
        for _ in range(2):
            more = {"cache": "auto", "base_url": f"http://models.example{ending}"}
            judged(server, provider=provider, model=model, **more, **settings)
        assert (AnswerCache().count(), server.served) == (kept, 6 if kept else 12)


def test_neither_keys_nor_prompts_are_in_the_file():
    with CarelessSimulator(Behaviour(thoughts="I thought.")) as server:
        judged(server, headers={"X-Team-Token": f"team-{KEY}"})
    files = [path for path in cache_file().parent.iterdir() if path.is_file()]
    written = b"".join(path.read_bytes() for path in files)
    assert KEY.encode() not in written
    assert b"[key]" in written  # the careless replies are there, without it
    assert b"about rain" not in written
    assert b"authorization" not in written.lower()


# The file


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to be read as one" * 9, b"short", "run file"]
)
def test_a_file_that_cannot_be_used_is_said_once_and_left_alone(content, tmp_path, caplog):
    path = tmp_path / "answers.db"
    if content == "run file":
        ps.open_run(path, write=True).close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with ProviderSimulator() as server:
        done, _ = judged(server, cache=path, concurrency=3)
        assert (done.results.height, server.served) == (6, 6)
    assert caplog.text.count("continuing without the answer cache") == 1
    assert path.read_bytes() == before


def test_a_killed_process_leaves_a_whole_file(tmp_path):
    path = tmp_path / "answers.db"
    child = textwrap.dedent("""
        import os, signal, sys
        from pairscale.providers.cache import AnswerCache
        answers = AnswerCache(sys.argv[1])
        for number in range(50):
            answers.keep(f"{number:064d}", {"n": number}, 200)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = subprocess.run([sys.executable, "-c", child, str(path)], check=False)
    assert done.returncode != 0
    with AnswerCache(path) as answers:
        assert answers.count() == 50
        answers.clear()
        assert answers.count() == answers.size() == 0


# Keys of the cache
