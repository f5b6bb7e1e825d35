"""The newest official SDKs in an environment of their own: what they send to a server on loopback, and what we send.

The environment is made in ``build/sdks`` from ``sdk_requirements.txt``, because some SDKs cannot be installed beside
the tools that these tests need. Differences that are meant are listed in :mod:`tests.providers.differences`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.providers.differences import DIFFERENCES, differing
from tests.providers.intents import PROMPT, SAID, SERVICES, TABLES, USER
from tests.providers.recorder import Recorder, Request, flat
from tests.providers.sdk_program import KEY

from pairscale.providers.base import LLMRequest
from pairscale.providers.batch_http import BatchHTTP
from pairscale.providers.batches import BATCH_PROVIDERS, BatchJob, Draft, batch_format
from pairscale.providers.catalog import presets, provider_named
from pairscale.providers.client import LLMClient, ProviderError, base_url_of
from pairscale.providers.gemini import Gemini
from pairscale.testing import Batches, ProviderSimulator

pytestmark = pytest.mark.validate

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / "build" / "sdks"
PATIENCE_S = 600
HEADERS = (
    "authorization", "api-key", "x-api-key", "x-goog-api-key", "content-type", "anthropic-version", "anthropic-beta",
    "openai-beta", "openai-organization", "openai-project", "x-goog-upload-protocol", "x-goog-upload-command",
    "x-goog-upload-header-content-type", "x-goog-upload-offset",
)  # fmt: skip
"""The headers that decide what a server does."""

PLACES = {
    "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com",
    "AWS_REGION": "eu-central-1",
    "GOOGLE_CLOUD_PROJECT": "school-7",
    "GOOGLE_CLOUD_LOCATION": "europe-west4",
}
ROOTS = {"google": "", "anthropic": "", "ollama": "", "openai": "/v1", "together": ""}
"""Where the SDKs have the root of their addresses, below that of the server."""
DIRECT = ("openai", "anthropic", "gemini", "together", "ollama")
OWN = {
    "groq": ("groq", "chat.completions.create", ""),
    "mistral": ("mistral", "chat.complete", ""),
    "openrouter": ("openrouter", "chat.send", "/api/v1"),
    "bedrock": ("bedrock", "chat.completions.create", "/openai/v1"),
}
"""The services that have SDKs of their own, besides OpenAI's, which all of them document."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question to a model by an SDK and by us.

    Attributes:
        name: of the case, such as ``groq by groq 3``.
        provider: ours.
        sdk: the client of :mod:`tests.providers.sdk_program`.
        call: its function.
        root: where the SDK has its addresses, below the server.
        base: where we have them.
        fields: of our request.
        arguments: of the SDK's call.
    """

    name: str
    provider: str
    sdk: str
    call: str
    root: str
    base: str
    fields: dict[str, Any]
    arguments: dict[str, Any]


def _of_providers() -> Iterator[Case]:
    for table, (sdk, call, rows) in TABLES.items():
        provider = table.split()[0]
        base = urlsplit(provider_named(provider).base_url or "http://server/v1").path
        for number, (fields, theirs) in enumerate(rows, 1):
            arguments = {"model": fields["model"], **theirs}
            if table == "openai responses":
                arguments = {"input": PROMPT, "store": False, **arguments}
            elif provider == "anthropic":
                arguments["messages"] = SAID
            elif provider == "gemini":
                arguments = {"model": fields["model"], "contents": PROMPT, "config": theirs}
            elif provider == "ollama":
                arguments["prompt"] = PROMPT
            yield Case(f"{table} by {sdk} {number}", provider, sdk, call, ROOTS[sdk], base, fields, arguments)


def _of_services() -> Iterator[Case]:
    numbers: dict[str, int] = {}
    for service, fields, theirs in SERVICES:
        number = numbers[service] = numbers.get(service, 0) + 1
        base = urlsplit(presets()[service].address()).path
        arguments = {"model": fields["model"], "messages": USER, **theirs}
        call = "chat.completions.create"
        yield Case(f"{service} by openai {number}", service, "openai", call, base, base, fields, arguments)
        if service in OWN:
            sdk, call, root = OWN[service]
            arguments = {**arguments, **arguments.get("extra_body", {})}  # they are arguments of its own
            arguments.pop("extra_body", None)
            yield Case(f"{service} by {sdk} {number}", service, sdk, call, root, base, fields, arguments)
        if service == "azure":
            base = f"/openai/deployments/{fields['model']}"
            query = f"{base}?api-version=2024-10-21"
            yield Case(f"azure by azure {number}", service, "azure", call, base, query, fields, arguments)


with pytest.MonkeyPatch.context() as _patch:
    for _name, _value in PLACES.items():
        _patch.setenv(_name, _value)
    CASES = [*_of_providers(), *_of_services()]


# The environment


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Runs :mod:`tests.providers.sdk_program` in the environment of the SDKs, which it makes."""
    wanted, stamp = HERE / "sdk_requirements.txt", ENVIRONMENT / ".installed"
    python = ENVIRONMENT / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted.read_text() or time.time() - stamp.stat().st_mtime > 86_400:
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True, timeout=PATIENCE_S)
        line = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--upgrade", "-r", str(wanted)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode:
            pytest.fail(f"pip could not install the SDKs:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        stamp.write_text(wanted.read_text())

    def run(work: dict[str, Any]) -> dict[str, Any]:
        line = [str(python), "-W", "ignore", str(HERE / "sdk_program.py")]
        clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path_factory.mktemp("home"))}
        clean |= {**PLACES, "OLLAMA_API_KEY": KEY}
        done = subprocess.run(
            line, input=json.dumps(work), capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=clean
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    return run


def by_mark(requests: list[Request]) -> dict[str, list[Request]]:
    """The requests of each call."""
    found: dict[str, list[Request]] = {}
    for request in requests:
        if request.path.startswith("/_mark/"):
            found[unquote(request.path).removeprefix("/_mark/")] = []
        else:
            found[list(found)[-1]].append(request)
    return found


def fields_of(request: Request) -> dict[str, Any]:
    """What is compared of a request, by name."""
    headers = {name: request.headers[name] for name in HEADERS if name in request.headers}
    if headers.get("content-type", "").startswith("multipart/"):
        headers["content-type"] = "multipart"
    known = {"method": request.method, "path": request.path, "query": request.query, "header": headers}
    leaves = {name[1:]: value for name, value in flat({**known, "body": request.body}).items() if value != {}}
    if "x-goog-api-key" not in headers and "x-goog-upload-command" not in headers:
        return leaves
    spelt = [name for name in leaves if name.startswith("body.") and "_" in name]
    return {_camel(name) if name in spelt else name: value for name, value in leaves.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


# Live


@pytest.fixture(scope="module")
def live(program: Any) -> dict[str, tuple[dict[str, Any] | str, dict[str, Any]]]:
    """By case, what the SDK sent (or why it sent nothing) and what we sent."""
    recorder = Recorder()
    calls = [
        {"name": str(at), "sdk": case.sdk, "url": recorder.url + case.root, "call": case.call,
         "arguments": case.arguments}
        for at, case in enumerate(CASES)
    ]  # fmt: skip
    said = program({"server": recorder.url, "calls": calls})
    print(f"\n{', '.join(f'{name} {number}' for name, number in said['versions'].items())}: {len(CASES)} questions")
    theirs = by_mark(recorder.taken())
    found: dict[str, tuple[dict[str, Any] | str, dict[str, Any]]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PLACES.items():
            patch.setenv(name, value)
        for provider, address in said["addresses"].items():
            own = base_url_of(provider_named(provider), None)
            found[f"{provider} address"] = {"host": urlsplit(address).netloc}, {"host": urlsplit(own).netloc}
        version = urlsplit(said["addresses"]["gemini"]).path.strip("/")
        found["gemini address"][0]["version"], found["gemini address"][1]["version"] = version, Gemini().api_version
    spelt = [request for requests in theirs.values() for request in requests if b"thinking_level" in request.content]
    found["gemini spelling"] = {"body": "snake_case" if spelt else "camelCase"}, {"body": "camelCase"}
    for at, case in enumerate(CASES):
        requests = theirs[str(at)]
        sent = (
            fields_of(requests[0]) if len(requests) == 1 else f"{len(requests)} requests: {said['problems'][str(at)]}"
        )
        asyncio.run(_ask(case, recorder.url))
        [ours] = recorder.taken()
        found[case.name] = sent, fields_of(ours)
    recorder.close()
    return found


async def _ask(case: Case, url: str) -> None:
    client = LLMClient(provider_named(case.provider), api_key=KEY, base_url=url + case.base)
    try:
        with contextlib.suppress(ProviderError):  # the replies of the recorder say nothing
            await client.complete(LLMRequest(**{"prompt": PROMPT} | case.fields))
    finally:
        await client.aclose()


def remaining(name: str, theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The differences that are not meant."""
    found = differing(theirs, ours)
    return {
        field: values
        for field, values in found.items()
        if not any(one.covers(name, field, *values) for one in DIFFERENCES)
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_question_is_what_the_sdk_sends(live: Any, case: Case) -> None:
    theirs, ours = live[case.name]
    assert isinstance(theirs, dict), theirs
    assert remaining(case.name, theirs, ours) == {}


@pytest.mark.parametrize("name", [*(f"{provider} address" for provider in (*DIRECT, *OWN)), "gemini spelling"])
def test_questions_go_where_the_sdk_sends_them(live: Any, name: str) -> None:
    assert remaining(name, *live[name]) == {}


# Batches

MODELS = {"openai": "gpt-4.1", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.0-flash",
          "together": "deepseek-ai/DeepSeek-V3"}  # fmt: skip
SDKS = {"openai": "openai", "anthropic": "anthropic", "gemini": "google", "together": "together"}


def written(provider: str, path: Path) -> str:
    """Write two requests as we write them, and return where they go."""
    ours, batches = provider_named(provider), batch_format(provider)
    calls = [ours.call(LLMRequest(model=MODELS[provider], prompt=f"{PROMPT} {n}")) for n in range(2)]
    rows = [batches.line(f"key-{n}", call) for n, call in enumerate(calls)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return batches.endpoint(calls[0])


async def _batches(provider: str, base_url: str, path: Path, recorder: Recorder) -> dict[str, list[Request]]:
    """Take a batch through all its steps, as we do."""
    client = LLMClient(provider_named(provider), api_key=KEY, base_url=base_url)
    http, batches, found = BatchHTTP(client, retries=0), batch_format(provider), dict[str, list[Request]]()
    endpoint = written(provider, path)

    async def step(name: str, made: Awaitable[Any]) -> Any:
        recorder.taken()
        result = await made
        found[name] = recorder.taken()
        return result

    def draft(file_id: str | None) -> Draft:
        return Draft("key", MODELS[provider], endpoint, path, 2, 0.0, file_id)

    try:
        file_id = await step("upload", batches.upload(http, draft(None)))
        job: BatchJob = await step("create", batches.create(http, draft(file_id)))
        assert [one.id for one in await step("list", batches.find(http, draft(file_id), ()))] == [job.id]
        job = await step("retrieve", batches.get(http, job.id))
        await step("results", batches.download(http, job, path.with_suffix(".out")))
        await step("cancel", batches.cancel(http, job.id))
    finally:
        await client.aclose()
    return {name: requests for name, requests in found.items() if requests}


@pytest.fixture(scope="module")
def batched(program: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """By provider and step, the request of the SDK and ours; None where one has none."""
    found: dict[str, tuple[Any, Any]] = {}
    for provider in BATCH_PROVIDERS:
        path = tmp_path_factory.mktemp(provider) / "key.jsonl"
        written(provider, path)
        sides = []
        for side in ("theirs", "ours"):
            with ProviderSimulator(batches=Batches(looks=0)) as server:
                recorder, sdk = Recorder(server.url), SDKS[provider]
                root = "/together" if provider == "together" else ROOTS[sdk]
                if side == "theirs":
                    work = {"server": recorder.url, "sdk": sdk, "url": recorder.url + root, "lines": path.read_text()}
                    said = program(work)["problems"]["batches"]
                    assert said is None, said
                    sides.append(by_mark(recorder.taken()))
                else:
                    base_url = recorder.url + ("/together/v1" if provider == "together" else root)
                    sides.append(asyncio.run(_batches(provider, base_url, path, recorder)))
                recorder.close()
        theirs, ours = sides
        for step in theirs | ours:
            pair = theirs.get(step, []), ours.get(step, [])
            for at in range(max(map(len, pair))):  # from the last, which does what the step is called by
                found[f"{provider} batch {step}{', asked before' * at}"] = tuple(
                    fields_of(side[-at - 1]) if at < len(side) else None for side in pair
                )
    return found


STEPS = {
    "openai": ("upload", "create", "list", "retrieve", "results", "cancel"),
    "anthropic": ("create", "list", "retrieve", "results", "cancel"),
    "gemini": ("upload", "create", "list", "retrieve", "results", "cancel"),
    "together": ("upload", "create", "list", "retrieve", "results", "cancel"),
}


@pytest.mark.parametrize(("provider", "step"), [(provider, step) for provider in STEPS for step in STEPS[provider]])
def test_a_step_of_a_batch_is_what_the_sdk_sends(batched: Any, provider: str, step: str) -> None:
    requests = {name: pair for name, pair in batched.items() if name.partition(",")[0] == f"{provider} batch {step}"}
    assert requests
    for name, (theirs, ours) in requests.items():
        assert remaining(name, theirs or {}, ours or {}) == {}, name


def test_every_difference_that_is_listed_is_there(live: Any, batched: Any) -> None:
    found = {
        (name, field, *values)
        for name, (theirs, ours) in {**live, **batched}.items()
        for field, values in differing(theirs or {}, ours or {}).items()
    }
    unused = [one for one in DIFFERENCES if not any(one.covers(*pair) for pair in found)]
    assert unused == []
