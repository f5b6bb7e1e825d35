"""Run where AG2 is installed, by test_frameworks.py: its suites, agents, comparators and traces, given to us."""

import asyncio
import json
import sys
from pathlib import Path

from ag2 import Agent
from ag2.eval import InMemoryTraceSource, PairwiseOutcome, Suite, Trace, TraceRef, run_pairwise
from ag2.eval.scorers import pairwise_judge
from ag2.events import ModelMessage, ModelResponse
from ag2.testing import TestConfig

import pairscale as ps

TASKS = [{"task_id": f"t{n}", "inputs": {"input": f"Question {n}?"}, "tags": ["x"]} for n in range(3)]


class Longer:
    """A comparator as AG2's users write them."""

    key = "longer"

    async def compare(self, *, task, trace_a, trace_b, reference_outputs):
        a, b = (trace.events_of(ModelResponse)[-1].content for trace in (trace_a, trace_b))
        return PairwiseOutcome("b" if len(b) > len(a) else "a", "by length")


def trace(text):
    """A trace of AG2 with one answer."""
    return Trace(events=[ModelResponse(ModelMessage(text))], exception=None, duration_ms=5)


def verdicts(choice):
    """A judge's model that always says the same."""
    said = json.dumps({"preferred": choice, "reasoning": "it is"})
    return TestConfig(*[said] * 12)


suite = Suite.from_list(TASKS)
found = {}
functions = {"variant_a": lambda task: "Short.", "variant_b": lambda task: f"Long: {task.input}"}
result = ps.run_pairwise(suite, **functions, comparators=[Longer()], progress=False)
found["functions"] = result.tally("longer")

sources = [
    InMemoryTraceSource([(TraceRef(f"{side}{n}", f"t{n}"), trace(text)) for n in range(3)])
    for side, text in (("a", "Short."), ("b", "A long answer."))
]
result = ps.evaluate_pairwise(*sources, comparators=[Longer()], suite=suite, progress=False)
found["sources"] = [result.tally("longer"), result.variants[0].failures]

judge = pairwise_judge(verdicts("first"), criterion="better", key="first")
result = ps.run_pairwise(suite, **functions, comparators=[judge], concurrency=1, progress=False)
found["judge"] = [result.tally("first"), result.flips("first")]

agents = {
    f"variant_{side}": Agent("helper", config=TestConfig(*[words] * 3))
    for side, words in (("a", "No."), ("b", "Yes, it is."))
}
result = ps.run_pairwise(suite, **agents, comparators=[Longer()], concurrency=1, progress=False)
found["agents"] = result.tally("longer")


async def saved():
    """A run that AG2 itself saves."""
    one, two = (Agent("helper", config=TestConfig(*[words] * 3)) for words in ("No.", "Yes, it is."))
    done = await run_pairwise(suite, variant_a=one, variant_b=two, comparators=[Longer()], concurrency=1)
    return done.save(Path(sys.argv[1]) / "saved.json"), done


path, theirs = asyncio.run(saved())
ours = ps.PairwiseRunResult.load(path)
found["saved"] = [ours.tally("longer"), list(theirs.tally("longer"))]
print(json.dumps(found))
