"""Makes the calls that it reads from standard input, with the official SDKs that its own environment has.

It knows nothing of pairscale, and is run by :mod:`tests.providers.test_sdks`. Before every call it asks the server for
``/_mark/NAME``, so that the server knows which requests belong to which call.
"""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

KEY = "planted-key-1"


def openai(url: str) -> Any:
    from openai import OpenAI

    return OpenAI(api_key=KEY, base_url=url, max_retries=0)


def azure(url: str) -> Any:
    from openai import AzureOpenAI

    return AzureOpenAI(api_key=KEY, base_url=url, api_version="2024-10-21", max_retries=0)


def bedrock(url: str) -> Any:
    from openai import BedrockOpenAI

    return BedrockOpenAI(api_key=KEY, base_url=url, max_retries=0)


def anthropic(url: str) -> Any:
    from anthropic import Anthropic

    return Anthropic(api_key=KEY, base_url=url, max_retries=0)


def google(url: str) -> Any:
    from google import genai

    return genai.Client(api_key=KEY, http_options={"base_url": url, "api_version": "v1beta"})


def together(url: str) -> Any:
    from together import Together

    return Together(api_key=KEY, base_url=url, max_retries=0)


def ollama(url: str) -> Any:
    from ollama import Client

    return Client(host=url)


def groq(url: str) -> Any:
    from groq import Groq

    return Groq(api_key=KEY, base_url=url, max_retries=0)


def mistral(url: str) -> Any:
    from mistralai.client import Mistral

    return Mistral(api_key=KEY, server_url=url)


def openrouter(url: str) -> Any:
    from openrouter import OpenRouter

    return OpenRouter(api_key=KEY, server_url=url)


CLIENTS: dict[str, Callable[[str], Any]] = {
    made.__name__: made
    for made in (openai, azure, bedrock, anthropic, google, together, ollama, groq, mistral, openrouter)
}
PACKAGES = ("anthropic", "google-genai", "groq", "mistralai", "ollama", "openai", "openrouter", "together")


def mark(url: str, name: str) -> None:
    urllib.request.urlopen(f"{url}/_mark/{name}").close()


def make(server: str, call: dict[str, Any]) -> str | None:
    """Make one call; what went wrong, if anything did."""
    client = target = CLIENTS[call["sdk"]](call["url"])
    for name in call["call"].split("."):
        target = getattr(target, name)
    mark(server, call["name"])
    try:
        target(**call["arguments"])
    except Exception as error:  # noqa: BLE001 - it is reported
        return f"{type(error).__name__}: {error}"
    finally:
        del client  # some close themselves when nothing refers to them
    return None


def addresses() -> dict[str, str]:
    """Where the SDKs send requests by default."""
    from anthropic import Anthropic
    from google import genai
    from groq import Groq
    from mistralai.client import Mistral
    from ollama import Client
    from openai import BedrockOpenAI, OpenAI
    from openrouter import OpenRouter
    from together import Together

    by_url = {"openai": OpenAI, "anthropic": Anthropic, "groq": Groq, "together": Together, "bedrock": BedrockOpenAI}
    by_server = {"mistral": Mistral, "openrouter": OpenRouter}
    return {
        **{name: str(kind(api_key=KEY).base_url) for name, kind in by_url.items()},
        **{name: kind(api_key=KEY).sdk_configuration.get_server_details()[0] for name, kind in by_server.items()},
        "gemini": "{0.base_url}{0.api_version}".format(genai.Client(api_key=KEY)._api_client._http_options),
        "ollama": str(Client()._client.base_url),
    }


# Batches: every step yields its name before its requests are made


def openai_batches(client: Any, lines: Path) -> Iterator[str]:
    yield "upload"
    with lines.open("rb") as file:
        stored = client.files.create(file=("key.jsonl", file, "application/jsonl"), purpose="batch")
    yield "create"
    made = client.batches.create(
        input_file_id=stored.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"pairscale": "key"}
    )
    yield "list"
    list(client.batches.list(limit=100))
    yield "retrieve"
    done = client.batches.retrieve(made.id)
    yield "results"
    client.files.content(done.output_file_id).read()
    yield "cancel"
    client.batches.cancel(made.id)


def anthropic_batches(client: Any, lines: Path) -> Iterator[str]:
    yield "create"
    made = client.messages.batches.create(requests=[json.loads(line) for line in lines.read_text().splitlines()])
    yield "list"
    list(client.messages.batches.list(limit=100))
    yield "retrieve"
    client.messages.batches.retrieve(made.id)
    yield "results"
    list(client.messages.batches.results(made.id))
    yield "cancel"
    client.messages.batches.cancel(made.id)


def gemini_batches(client: Any, lines: Path) -> Iterator[str]:
    yield "upload"
    stored = client.files.upload(file=lines, config={"mime_type": "application/jsonl", "display_name": "key"})
    yield "create"
    made = client.batches.create(model="gemini-2.0-flash", src=stored.name, config={"display_name": "key"})
    yield "list"
    list(client.batches.list(config={"page_size": 100}))
    yield "retrieve"
    done = client.batches.get(name=made.name)
    yield "results"
    client.files.download(file=done.dest.file_name)
    yield "cancel"
    client.batches.cancel(name=made.name)


def together_batches(client: Any, lines: Path) -> Iterator[str]:
    yield "upload"
    stored = client.files.upload(lines, purpose="batch-api", check=True)
    yield "create"
    made = client.batches.create(input_file_id=stored.id, endpoint="/v1/chat/completions", completion_window="24h").job
    yield "list"
    list(client.batches.list())
    yield "retrieve"
    done = client.batches.retrieve(made.id)
    yield "results"
    client.files.content(done.output_file_id).read()
    yield "cancel"
    client.batches.cancel(made.id)


BATCHES = {
    "openai": openai_batches,
    "anthropic": anthropic_batches,
    "google": gemini_batches,
    "together": together_batches,
}


def run_batches(work: dict[str, Any]) -> str | None:
    """Take a batch through all its steps; what went wrong, if anything did."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "key.jsonl")
        lines.write_text(work["lines"])
        try:
            for step in BATCHES[work["sdk"]](CLIENTS[work["sdk"]](work["url"]), lines):
                mark(work["server"], step.replace(" ", "%20"))
        except Exception as error:  # noqa: BLE001 - it is reported
            return f"{type(error).__name__}: {error}"
    return None


def main() -> None:
    work = json.load(sys.stdin)
    if "calls" in work:
        problems = {call["name"]: make(work["server"], call) for call in work["calls"]}
    else:
        problems = {"batches": run_batches(work)}
    said = {"problems": problems, "addresses": addresses(), "versions": {name: version(name) for name in PACKAGES}}
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
