"""Hosted services by name: what reaches a server on loopback is what OpenAI's SDK sends there, path, query and key."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from tests.providers.intents import PROMPT, SERVICES, USER
from tests.providers.recorder import Recorder

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.providers.base import LLMRequest
from pairscale.providers.catalog import PROVIDERS, add_rows, capabilities, own_file, presets, provider_named
from pairscale.providers.client import LLMClient, ProviderError, base_url_of

NAMES = (
    "openrouter", "groq", "deepseek", "xai", "mistral", "azure", "bedrock", "vertex", "vllm", "sglang", "lmstudio",
)  # fmt: skip
PLACES = {
    "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/",
    "AWS_REGION": "eu-central-1",
    "GOOGLE_CLOUD_PROJECT": "school-7",
    "GOOGLE_CLOUD_LOCATION": "europe-west4",
}
ADDRESSES = {
    "openrouter": "https://openrouter.ai/api/v1",
    "groq": "https://api.groq.com/openai/v1",
    "deepseek": "https://api.deepseek.com",
    "xai": "https://api.x.ai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "azure": "https://mine.openai.azure.com/openai/v1",
    "bedrock": "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1",
    "vertex": "https://europe-west4-aiplatform.googleapis.com/v1/projects/school-7/locations/europe-west4/endpoints/openapi",
    "vllm": "http://localhost:8000/v1",
    "sglang": "http://localhost:30000/v1",
    "lmstudio": "http://localhost:1234/v1",
}


@pytest.fixture(scope="module")
def recorder():
    made = Recorder()
    yield made
    made.close()


@pytest.fixture
def places(monkeypatch):
    for name, value in PLACES.items():
        monkeypatch.setenv(name, value)


def ask(client, request):
    async def once():
        try:
            return await client.complete(request)
        finally:
            await client.aclose()

    return asyncio.run(once())


@pytest.mark.parametrize(("service", "fields", "theirs"), SERVICES)
def test_what_is_sent_is_what_the_sdk_sends(recorder, places, service, fields, theirs):
    from openai import OpenAI

    base_url = recorder.url + urlsplit(presets()[service].address()).path
    with OpenAI(api_key="planted-key-1", base_url=base_url, max_retries=0) as sdk:
        sdk.chat.completions.create(model=fields["model"], **{"messages": USER} | theirs)
    expected = recorder.path, recorder.body, recorder.headers["authorization"]
    recorder.path = recorder.body = recorder.headers = None
    client = LLMClient(provider_named(service), api_key="planted-key-1", base_url=base_url)
    with pytest.raises(ProviderError, match="cannot be read as"):  # the recorder's replies hold no choices
        ask(client, LLMRequest(prompt=PROMPT, **fields))
    key = recorder.headers.get("authorization") or f"Bearer {recorder.headers['api-key']}"
    assert (recorder.path, recorder.body, key) == expected
    assert recorder.path == urlsplit(ADDRESSES[service]).path + "/chat/completions"
    assert ("api-key" in recorder.headers) == (service == "azure")


@pytest.mark.parametrize("service", NAMES)
def test_addresses(places, monkeypatch, service):
    assert base_url_of(provider_named(service), None) == ADDRESSES[service]
    if variable := presets()[service].base_url_variable:
        monkeypatch.setenv(variable, "http://elsewhere:1/v9/")
        assert base_url_of(provider_named(service), None) == "http://elsewhere:1/v9"
    assert base_url_of(provider_named(service), "http://given:2/v1") == "http://given:2/v1"


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("service", ["vertex", "azure", "openai"])
def test_a_callable_renews_the_token_before_every_request(recorder, kind, service, caplog):
    given = []

    def plain():
        given.append(f"planted-token-{len(given)}")
        return given[-1]

    async def waiting():
        await asyncio.sleep(0)
        return plain()

    client = LLMClient(
        provider_named(service), api_key=plain if kind == "plain" else waiting, base_url=f"{recorder.url}/v1"
    )
    for turn in range(3):
        with pytest.raises(ProviderError):
            ask(client, LLMRequest(model="m", prompt=PROMPT))
        assert recorder.headers["authorization"] == f"Bearer planted-token-{turn}"
        assert "api-key" not in recorder.headers
    assert len(given) == 3
    assert client.redactor.text(" ".join(given)) == "[key] [key] [key]"
    assert "planted-token" not in repr(client) + caplog.text


class ShortLived(BaseHTTPRequestHandler):
    """Takes a token for two requests; then it has expired."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        token = self.headers["Authorization"].removeprefix("Bearer ")
        self.server.seen.append(token)
        good = token in self.server.accepted and self.server.seen.count(token) <= 2
        answer = {"role": "assistant", "content": "<BETTER_SAMPLE>SAMPLE_1</BETTER_SAMPLE>"}
        done = {"choices": [{"message": answer, "finish_reason": "stop"}], "usage": {}}
        body = json.dumps(done if good else {"error": {"message": "expired", "code": 401}}).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def short_lived():
    server = ThreadingHTTPServer(("127.0.0.1", 0), ShortLived)
    server.seen, server.accepted = [], {f"planted-token-{n}" for n in range(100)}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def judged(server, token, tmp_path):
    address = f"http://127.0.0.1:{server.server_port}/v1"
    judge = ps.make_judge("vertex:google/gemini-3.8-flash", judge_args={"api_key": token, "base_url": address})
    pairs = [{"ID1": "a", "text1": "one", "ID2": f"b{n}", "text2": f"two {n}"} for n in range(5)]
    return ps.submit_pairs(pairs, judge, run=tmp_path / "run.db", concurrency=1, progress=False)


def test_a_token_that_expires_during_a_run_is_renewed(short_lived, tmp_path):
    calls = iter(f"planted-token-{n}" for n in (0, 0, 0, 1, 1, 1, 2))
    done = judged(short_lived, lambda: next(calls), tmp_path)
    assert (done.results.height, done.failed_attempts.height) == (5, 0)
    assert short_lived.seen == [f"planted-token-{n}" for n in (0, 0, 0, 1, 1, 1, 2)]
    assert b"planted-token" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


MINE = {
    "as_of": "2026-11-01",
    "source": "our handbook",
    "providers": [{"name": "school", "base_url": "https://models.school.example/v1", "key_variable": "SCHOOL_KEY"}],
    "models": [{"provider": "school", "model": "^big", "family": "big", "thinking": "effort", "levels": ["low"]}],
}


def added(folder, document):
    path = folder / "mine.json"
    path.write_text(json.dumps(document), "utf-8")
    return add_rows(path)


def test_a_provider_of_ones_own(message_snapshot, tmp_path, monkeypatch):
    assert "school" not in PROVIDERS
    assert added(tmp_path, MINE)[1:] == (2, 0)
    assert "school" in PROVIDERS
    monkeypatch.setenv("SCHOOL_KEY", "planted-key-8")
    judge = ps.make_judge("school:big-1", judge_args={"reasoning": "low"})
    assert judge.client.base_url == "https://models.school.example/v1"
    assert judge.condition.settings["base_url"] == "https://models.school.example/v1"
    assert capabilities("school", "big-1").levels == ("low",)
    assert capabilities("school", "small").family == "unknown"
    with pytest.raises(InputError) as refused:
        ps.make_judge("school:big-1", judge_args={"reasoning": "high"})
    message_snapshot(refused)
    moved = MINE | {"providers": [MINE["providers"][0] | {"base_url": "https://new.example/v1"}], "models": []}
    assert added(tmp_path, moved)[1:] == (1, 1)
    assert ps.make_judge("school:big-1").client.base_url == "https://new.example/v1"
    assert capabilities("school", "big-1").family == "big"
    own_file().unlink()
    assert "school" not in PROVIDERS
