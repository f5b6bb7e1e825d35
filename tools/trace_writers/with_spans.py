"""Spans of OpenTelemetry and OpenInference, runs of LangSmith, observations of Langfuse, from their own packages."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import httpx
from google.protobuf.json_format import MessageToDict
from langfuse.api.commons.types.observation_v2 import ObservationV2
from langsmith.schemas import Run
from openai import OpenAI
from openinference.instrumentation import using_attributes
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

OUT = Path(sys.argv[1]) / "out"
QUESTIONS = {
    "capital": "What is the capital of France?",
    "egg": "How do I boil an egg?",
    "broken": "Use the broken tool.",
}
ANSWERS = {
    "a": {"capital": "Paris.", "egg": "In water."},
    "b": {"capital": "It is Paris, on the Seine.", "egg": "In boiling water, for eight minutes."},
}


def tracing():
    """A provider, and what it keeps."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "demo"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def without_stack(span):
    """A span as a mapping without the stack of an exception, which tells of this machine."""
    for event in span.get("events", []):
        held = event["attributes"]
        if isinstance(held, dict):
            held.pop("exception.stacktrace", None)
        else:
            event["attributes"] = [one for one in held if one["key"] != "exception.stacktrace"]
    return span


def otlp(side):
    """An agent that calls a model twice, by OpenTelemetry's conventions for generative AI, as OTLP in JSON."""
    provider, exporter = tracing()
    tracer = provider.get_tracer("demo")
    for name, question in QUESTIONS.items():
        asked = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
        try:
            with tracer.start_as_current_span("invoke_agent helper") as root:
                root.set_attributes({"gen_ai.operation.name": "invoke_agent", "task_id": name})
                for turn in ("I look it up.", ANSWERS[side].get(name)):
                    with tracer.start_as_current_span("chat demo") as call:
                        call.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "demo"})
                        call.set_attribute("gen_ai.input.messages", json.dumps(asked))
                        if turn is None:
                            raise ConnectionError("the model was not there")
                        parts = [{"type": "text", "content": turn}]
                        said = [{"role": "assistant", "parts": parts, "finish_reason": "stop"}]
                        call.set_attribute("gen_ai.output.messages", json.dumps(said))
                        call.set_attributes({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5})
        except ConnectionError:
            continue
    document = MessageToDict(encode_spans(exporter.get_finished_spans()))
    for batch in document["resourceSpans"]:
        for scope in batch["scopeSpans"]:
            scope["spans"] = [without_stack(span) for span in scope["spans"]]
    (OUT / f"otlp_{side}.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def openinference(side):
    """OpenAI's client as its instrumentation by OpenInference records it, one span a line."""
    provider, exporter = tracing()

    def answer(request):
        question = json.loads(request.content)["messages"][-1]["content"]
        name = next(name for name, words in QUESTIONS.items() if words == question)
        if name not in ANSWERS[side]:
            return httpx.Response(
                400, json={"error": {"message": "the tool is broken", "type": "invalid_request_error"}}
            )
        message = {"role": "assistant", "content": ANSWERS[side][name]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        reply = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "demo",
            "choices": [choice],
            "usage": usage,
        }
        return httpx.Response(200, json=reply)

    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    client = OpenAI(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(answer)), max_retries=0)
    for question in QUESTIONS.values():
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
        with using_attributes(session_id="demo"):
            try:
                client.chat.completions.create(model="demo", messages=messages)
            except Exception as error:  # noqa: BLE001 - one of them is broken on purpose
                print(type(error).__name__)
    instrumentor.uninstrument()
    rows = [without_stack(json.loads(span.to_json())) for span in exporter.get_finished_spans()]
    (OUT / f"openinference_{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def langsmith(side):
    """Runs as LangSmith's client has them: a chain, the call of a model in it, and one that failed."""
    start, runs = datetime(2026, 11, 1, tzinfo=UTC), []
    for number, (name, question) in enumerate(QUESTIONS.items(), start=1):
        text = ANSWERS[side].get(name)
        own, example = UUID(int=number + (100 if side == "b" else 0)), UUID(int=1000 + number)
        shared = {
            "start_time": start,
            "end_time": start + timedelta(seconds=1),
            "trace_id": own,
            "session_id": UUID(int=7),
        }
        runs.append(
            Run(
                id=own, name="helper", run_type="chain", inputs={"question": question, "top_k": 3},
                outputs=None if text is None else {"answer": text}, reference_example_id=example,
                error=None if text else "ConnectionError('the model was not there')", **shared,
            )
        )  # fmt: skip
        message = {"type": "ai", "content": text or ""}
        runs.append(
            Run(
                id=UUID(int=500 + own.int), name="ChatDemo", run_type="llm", parent_run_id=own,
                inputs={"messages": [[{"type": "human", "content": question}]]},
                outputs={"generations": [[{"text": text or "", "message": message}]]}, total_tokens=15, **shared,
            )
        )  # fmt: skip
    rows = [run.model_dump_json() for run in runs]
    (OUT / f"langsmith_{side}.jsonl").write_text("".join(row + "\n" for row in rows), "utf-8")


def langfuse(side):
    """Observations as Langfuse's API gives them: a generation for each question, one of which failed."""
    start, rows = datetime(2026, 11, 1, tzinfo=UTC), []
    for number, (name, question) in enumerate(QUESTIONS.items(), start=1):
        text = ANSWERS[side].get(name)
        found = ObservationV2(
            id=f"{side}-{number}", trace_id=f"trace-{side}-{number}", start_time=start,
            end_time=start + timedelta(seconds=2), project_id="demo", type="GENERATION", name="answer",
            level="DEFAULT" if text else "ERROR", status_message=None if text else "the model was not there",
            input=[{"role": "user", "content": question}],
            output={"role": "assistant", "content": text} if text else None,
            usage_details={"input": 10, "output": 5, "total": 15}, total_cost=0.25,
        )  # fmt: skip
        rows.append(json.loads(found.model_dump_json(by_alias=True)))
    (OUT / f"langfuse_{side}.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


OUT.mkdir()
for one in "ab":
    otlp(one)
    openinference(one)
    langsmith(one)
    langfuse(one)
