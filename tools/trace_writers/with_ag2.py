"""Traces and suites of AG2: run in its own environment by ``tools/make_traces.py``."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from ag2 import Agent
from ag2.eval import Suite, run_agent
from ag2.eval.sources import readable_span_to_data
from ag2.eval.sources.trace_source import save_trace
from ag2.testing import TestConfig
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

OUT = Path(sys.argv[1]) / "out"
TASKS = [
    {"task_id": "capital", "inputs": {"input": "What is the capital of France?"}, "tags": ["easy"]},
    {"task_id": "egg", "inputs": {"input": "How do I boil an egg?"}, "reference_outputs": {"answer": "in water"}},
    {"task_id": "broken", "inputs": {"input": "Use the broken tool."}},
]
ANSWERS = {
    "a": {"capital": "Paris.", "egg": "In water.", "broken": "Done."},
    "b": {"capital": "It is Paris, on the Seine.", "egg": "In boiling water, for eight minutes."},
}


class Fails(TestConfig):
    """A model that is not there."""

    def create(self):
        """Fail."""
        raise ConnectionError("the model was not there")


def configs(side):
    """What each task is answered."""
    known = ANSWERS[side]
    return {
        task["task_id"]: TestConfig(known[task["task_id"]]) if task["task_id"] in known else Fails() for task in TASKS
    }


async def main():
    """Write a folder of traces for each side, and the suite."""
    suite = Suite.from_list(TASKS)
    OUT.mkdir()
    for side in "ab":
        for task in suite:
            exporter = InMemorySpanExporter()
            agent = Agent("helper", "Be brief.", config=TestConfig())
            await run_agent(
                Suite([task]), agent=agent, model_config=configs(side), span_processors=[SimpleSpanProcessor(exporter)]
            )
            spans = [readable_span_to_data(span) for span in exporter.get_finished_spans()]
            spans = [replace(span, events=tuple(_without_stack(one) for one in span.events)) for span in spans]
            save_trace(
                OUT / f"ag2_{side}", f"{task.task_id}-{side}", spans, task_id=task.task_id, metadata={"side": side}
            )
    (OUT / "ag2_suite.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS), "utf-8")


def _without_stack(event):
    return replace(event, attributes={key: value for key, value in event.attributes.items() if "stacktrace" not in key})


asyncio.run(main())
