"""The official SDKs work their way through the simulated batches, unchanged."""

import json

import pytest

from pairscale.testing import Batches, Behaviour, ProviderSimulator

PROMPT = "<SAMPLE_1>\n{}\n</SAMPLE_1>\n<SAMPLE_2>\n{}\n</SAMPLE_2>"
TEXTS = [("long text", "x"), ("x", "long text"), ("a longer text", "y")]
WINNERS = {"r0": "SAMPLE_1", "r1": "SAMPLE_2", "r2": "SAMPLE_1"}


@pytest.fixture
def server():
    with ProviderSimulator(Behaviour(quality=lambda text: 20.0 * len(text)), batches=Batches(looks=3)) as running:
        yield running


def chat_lines(tmp_path, *, whole: bool):
    rows = []
    for n, texts in enumerate(TEXTS):
        body = {"model": "m-1", "messages": [{"role": "user", "content": PROMPT.format(*texts)}]}
        more = {"method": "POST", "url": "/v1/chat/completions"} if whole else {}
        rows.append({"custom_id": f"r{n}", **more, "body": body})
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def said(lines: str) -> dict[str, str]:
    rows = [json.loads(line) for line in lines.splitlines()]
    contents = {row["custom_id"]: row["response"]["body"]["choices"][0]["message"]["content"] for row in rows}
    return {name: content.removeprefix("<BETTER_SAMPLE>")[:8] for name, content in contents.items()}


def test_openai(server, tmp_path):
    from openai import OpenAI

    with OpenAI(base_url=f"{server.url}/v1", api_key="simulated", max_retries=0) as client:
        with chat_lines(tmp_path, whole=True).open("rb") as file:
            stored = client.files.create(file=file, purpose="batch")
        batch = client.batches.create(
            input_file_id=stored.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"a": "b"}
        )
        assert (batch.status, batch.metadata) == ("validating", {"a": "b"})
        states = [client.batches.retrieve(batch.id).status for _ in range(3)]
        assert states == ["in_progress", "in_progress", "completed"]
        done = client.batches.retrieve(batch.id)
        assert (done.request_counts.total, done.request_counts.completed, done.request_counts.failed) == (3, 3, 0)
        assert said(client.files.content(done.output_file_id).text) == WINNERS
        assert [one.id for one in client.batches.list()] == [batch.id]
        other = client.batches.create(input_file_id=stored.id, endpoint="/v1/chat/completions", completion_window="24h")
        client.batches.cancel(other.id)
        assert client.batches.retrieve(other.id).status == "cancelled"


@pytest.mark.slow
def test_anthropic(server):
    from anthropic import Anthropic

    with Anthropic(base_url=server.url, api_key="simulated", max_retries=0) as client:
        requests = [
            {
                "custom_id": f"r{n}",
                "params": {
                    "model": "m-1",
                    "max_tokens": 100,
                    "messages": [{"role": "user", "content": PROMPT.format(*texts)}],
                },
            }
            for n, texts in enumerate(TEXTS)
        ]
        batch = client.messages.batches.create(requests=requests)
        assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 3)
        while client.messages.batches.retrieve(batch.id).processing_status != "ended":
            pass
        found = {}
        for line in client.messages.batches.results(batch.id):
            found[line.custom_id] = line.result.message.content[0].text.removeprefix("<BETTER_SAMPLE>")[:8]
        assert found == WINNERS
        others = [client.messages.batches.create(requests=requests) for _ in range(3)]
        listed = [one.id for one in client.messages.batches.list(limit=2)]
        assert listed == [one.id for one in reversed([batch, *others])]
        client.messages.batches.cancel(others[0].id)
        assert client.messages.batches.retrieve(others[0].id).request_counts.processing == 0


@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # in the SDK itself, when it is compiled
@pytest.mark.parametrize("by_file", [False, True], ids=["inline", "file"])
@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_gemini(server, tmp_path, by_file, version):
    from google import genai

    options = genai.types.HttpOptions(base_url=server.url, api_version=version)
    client = genai.Client(api_key="simulated", http_options=options)
    contents = [[{"role": "user", "parts": [{"text": PROMPT.format(*texts)}]}] for texts in TEXTS]
    if by_file:
        path = tmp_path / "requests.jsonl"
        rows = [{"key": f"r{n}", "request": {"contents": content}} for n, content in enumerate(contents)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        source = client.files.upload(file=path, config={"mime_type": "jsonl", "display_name": "mine"}).name
    else:
        source = [{"contents": content, "metadata": {"key": f"r{n}"}} for n, content in enumerate(contents)]
    batch = client.batches.create(model="m-1", src=source, config={"display_name": "our-key"})
    assert (batch.display_name, batch.state.value) == ("our-key", "JOB_STATE_PENDING")
    while (done := client.batches.get(name=batch.name)).state.value == "JOB_STATE_RUNNING":
        pass
    assert done.state.value == "JOB_STATE_SUCCEEDED"
    if by_file:
        lines = client.files.download(file=done.dest.file_name).decode().splitlines()
        answers = {row["key"]: row["response"] for row in map(json.loads, lines)}
        found = {key: one["candidates"][0]["content"]["parts"][-1]["text"] for key, one in answers.items()}
    else:
        found = {one.metadata["key"]: one.response.text for one in done.dest.inlined_responses}
    assert {key: text.removeprefix("<BETTER_SAMPLE>")[:8] for key, text in found.items()} == WINNERS
    assert [one.display_name for one in client.batches.list()] == ["our-key"]
    client.batches.cancel(name=batch.name)
    client.close()


def test_together(server, tmp_path):
    from together import Together

    with Together(base_url=f"{server.url}/together/v1", api_key="simulated", max_retries=0) as client:
        stored = client.files.upload(chat_lines(tmp_path, whole=False), purpose="batch-api", check=False)
        made = client.batches.create(input_file_id=stored.id, endpoint="/v1/chat/completions").job
        assert (made.status, made.input_file_id) == ("VALIDATING", stored.id)
        while (done := client.batches.retrieve(made.id)).status != "COMPLETED":
            pass
        assert said(client.files.content(done.output_file_id).text()) == WINNERS
        assert [one.id for one in client.batches.list()] == [made.id]
        assert client.batches.cancel(made.id).status == "COMPLETED"


def test_bad_requests_get_answers_too(server, tmp_path):
    from openai import NotFoundError, OpenAI

    with OpenAI(base_url=f"{server.url}/v1", api_key="simulated", max_retries=0) as client:
        with pytest.raises(NotFoundError):
            client.batches.retrieve("batch_none")
        with pytest.raises(NotFoundError):
            client.batches.cancel("batch_none")
        with pytest.raises(NotFoundError):
            client.files.content("file-none")
        with pytest.raises(NotFoundError, match="no such file"):
            client.batches.create(input_file_id="file-none", endpoint="/v1/chat/completions", completion_window="24h")
    server.keys = ["another"]
    with (
        OpenAI(base_url=f"{server.url}/v1", api_key="simulated", max_retries=0) as client,
        pytest.raises(Exception, match="401"),
    ):
        client.batches.list()
