"""Providers of the user's own: registered, or named by an installed package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.providers import catalog
from pairscale.providers.base import HTTPCall, LLMRequest, ProviderProblem, Reply
from pairscale.providers.catalog import PROVIDERS, register_provider
from pairscale.providers.compatible import Compatible
from pairscale.testing import ProviderSimulator


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """What a test registers, the next one must not find."""
    before = dict(catalog._registered)
    yield
    catalog._registered.clear()
    catalog._registered.update(before)


class Elsewhere(Compatible):
    name, base_url = "elsewhere", "https://models.example.org/v1"
    base_url_variable, key_variable = "ELSEWHERE_BASE_URL", "ELSEWHERE_API_KEY"


class Plain:
    """A wire format of its own (Ollama's, to have somebody who answers)."""

    name, base_url, base_url_variable, key_variable = "plain", "http://127.0.0.1:1", "PLAIN_URL", None

    def auth(self, key: str) -> dict[str, str]:
        return {"X-Key": key}

    def call(self, request: LLMRequest) -> HTTPCall:
        return HTTPCall("POST", "/api/generate", {"model": request.model, "prompt": request.prompt, "stream": False})

    def reply(self, call: HTTPCall, body: Any) -> Reply:
        return Reply(body["response"], raw=body)

    def problem(self, status: int, body: Any) -> ProviderProblem:
        return ProviderProblem(str(body))

    def without(self, request: LLMRequest, parameter: str) -> LLMRequest | None:
        return None


PAIRS = ps.make_pairs(ps.example_writing_samples.head(4))


def test_a_server_that_speaks_openai(message_snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    assert register_provider(Elsewhere) is Elsewhere
    assert "elsewhere" in PROVIDERS
    assert list(PROVIDERS)[-1] == "elsewhere"
    with ProviderSimulator() as server:
        monkeypatch.setenv("ELSEWHERE_BASE_URL", f"{server.url}/v1")
        with pytest.raises(InputError) as refused:
            ps.make_judge("elsewhere:large")
        message_snapshot(refused)
        monkeypatch.setenv("ELSEWHERE_API_KEY", "planted-key-123456")
        price = {"input": 1.0, "output": 2.0}
        done = ps.submit_pairs(PAIRS, "elsewhere:large", judge_args={"price": price, "temperature": 0.5})
        assert {entry.body["temperature"] for entry in server.journal} == {0.5}
    assert done.results["judge_id"].unique().to_list() == ["elsewhere:large"]
    assert done.results["cost"].min() > 0
    assert "planted-key" not in done.results.write_json()


def test_a_wire_format_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register_provider(Plain)
    with ProviderSimulator() as server:
        monkeypatch.setenv("PLAIN_URL", server.url)
        first = ps.submit_pairs(PAIRS, "plain:tiny", run=tmp_path / "run.db")
        again = ps.submit_pairs(PAIRS, "plain:tiny", run=tmp_path / "run.db")
        ranked = ps.adaptive_rank(
            ps.example_writing_samples.head(4), judge="plain:tiny", n_steps=4, fit_fn="laplace", progress="none"
        )
    assert first.results.height == again.results.height == PAIRS.height
    assert "0 asked now" in str(again)
    assert ranked.summary["committed_pairs"][0] == 4
