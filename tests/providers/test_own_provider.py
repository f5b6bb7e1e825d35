"""Providers of the user's own: registered, or named by an installed package."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError, UnknownNameError
from pairscale.providers import catalog
from pairscale.providers.base import HTTPCall, LLMRequest, ProviderProblem, Reply
from pairscale.providers.catalog import PROVIDERS, provider_named, register_provider
from pairscale.providers.compatible import Compatible
from pairscale.testing import ProviderSimulator


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """What a test registers, the next one must not find."""
    before = dict(catalog._registered)
    catalog._installed.cache_clear()
    yield
    catalog._registered.clear()
    catalog._registered.update(before)
    catalog._installed.cache_clear()


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
    assert len(PROVIDERS) == len(list(PROVIDERS))
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


def test_it_has_no_batches(message_snapshot) -> None:
    register_provider(Plain)
    with pytest.raises(InputError) as refused:
        ps.llm_submit_pairs_batch(PAIRS, "plain", "tiny", poll=False)
    message_snapshot(refused)


def test_a_package_names_its_provider(message_snapshot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As pip leaves it: a module, and the names that it wants to be known by."""
    code = (
        "from pairscale.providers.compatible import Compatible\n"
        "class Farm(Compatible):\n    name, base_url = 'farm', 'https://farm.example.org/v1'\n"
        "class Halfway:\n    name = 'halfway'\n"
    )
    names = "farm = farm:Farm\nhalfway = farm:Halfway\ngone = nowhere:Gone"
    installed(tmp_path, monkeypatch, "farm", code, names)
    assert {"farm", "halfway", "gone"} <= set(PROVIDERS)
    assert provider_named("farm").base_url == "https://farm.example.org/v1"
    with ProviderSimulator() as server:
        settings = {"base_url": f"{server.url}/v1"}
        assert ps.submit_pairs(PAIRS, "farm:small", judge_args=settings).results.height == PAIRS.height
    with pytest.raises(InputError) as refused:
        provider_named("halfway")
    message_snapshot(refused)
    with pytest.raises(InputError) as refused:
        provider_named("gone")
    message_snapshot(refused)


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str, code: str, entry_points: str) -> None:
    """A package as pip leaves it."""
    (folder / f"{package}.py").write_text(code)
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[pairscale.providers]\n{entry_points}\n")
    monkeypatch.syspath_prepend(str(folder))
    catalog._installed.cache_clear()


BARN = "from pairscale.providers.compatible import Compatible\nclass Barn(Compatible):\n    name = 'barn'\n"


def test_a_package_that_ends_the_process_cannot_be_used(
    message_snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "exiting", "raise SystemExit('no licence')", "exiting = exiting:Any")
    with pytest.raises(InputError) as refused:
        provider_named("exiting")
    message_snapshot(refused)


def test_a_package_takes_no_name_that_is_not_its_own(
    message_snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "barn", BARN, "shed = barn:Barn\nlexical = barn:Barn\nopenai = barn:Barn")
    register_provider(type("Barn", (Compatible,), {"name": "barn", "base_url": "https://mine.example.org/v1"}))
    with pytest.raises(InputError) as refused:
        provider_named("shed")
    message_snapshot(refused)
    assert provider_named("barn").base_url == "https://mine.example.org/v1"
    assert "lexical" not in PROVIDERS
    assert provider_named("openai").base_url == "https://api.openai.com/v1"


def test_a_provider_that_cannot_be_made_says_why(message_snapshot) -> None:
    @register_provider
    class Picky(Compatible):
        name = "picky"

        def __init__(self) -> None:
            raise TypeError("it wants a region")

    with pytest.raises(InputError) as refused:
        provider_named("picky")
    message_snapshot(refused)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openai", "openai comes with pairscale"),
        ("human", "human comes with pairscale"),
        ("a:b", "needs a name of letters"),
        ("", "needs a name of letters"),
        (None, "needs a name of letters"),
    ],
)
def test_names_that_are_refused(name: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        register_provider(type("Odd", (Compatible,), {"name": name}))
    with pytest.raises(UnknownNameError):
        provider_named("odd")


def test_what_lacks_a_member_is_refused(message_snapshot) -> None:
    with pytest.raises(InputError) as refused:
        register_provider(type("Half", (), {"name": "half"}))
    message_snapshot(refused)


def test_settings_of_ones_own(message_snapshot) -> None:
    @register_provider
    @dataclasses.dataclass(frozen=True)
    class Regional(Compatible):
        name = "regional"
        region: str = "eu"

        @property
        def base_url(self) -> str:  # type: ignore[override]
            return f"https://{self.region}.example.org/v1"

    judge = ps.make_judge("regional:m", judge_args={"provider_args": {"region": "us"}})
    assert judge.condition.settings["provider_args"] == {"region": "us"}
    assert provider_named("regional", region="us").base_url == "https://us.example.org/v1"
    with pytest.raises(InputError) as refused:
        provider_named("regional", planet="mars")
    message_snapshot(refused)
