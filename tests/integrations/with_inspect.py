"""Run where inspect_ai is installed, by test_frameworks.py: our scorer in its hands."""

import json
import math
import sys
from pathlib import Path

import pairscale  # noqa: F401 - what is loaded with it is looked at

found = {"loaded": sorted(name for name in sys.modules if name.split(".")[0] == "inspect_ai")}

from inspect_ai import Task, eval, score  # noqa: A004, E402 - its names
from inspect_ai.dataset import MemoryDataset, Sample  # noqa: E402
from inspect_ai.log import read_eval_log  # noqa: E402
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.scorer import Scorer  # noqa: E402, F401 - it is there

from pairscale.integrations.inspect_ai import pairwise_scorer  # noqa: E402

DATA, OUT = Path(sys.argv[1]), Path(sys.argv[2])
ANSWERS = {
    "capital": "It is Paris, on the Seine.",
    "broken": "I did.",
    "empty": "",
    "same": "The same.",
    "other": "New.",
}


def longer(A, B):
    """Prefers the longer one."""
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


def always_first(A, B):
    """Prefers whatever stands first."""
    return {"is_valid": True, "Y": 1}


def broken_judge(A, B):
    """Says nothing."""
    return {"is_valid": False, "Y": None, "invalid_reason": "refused"}


def answer(messages, tools, tool_choice, config):
    """An answer by the first word of the question."""
    said = ModelOutput.from_content("mockllm/model", ANSWERS[messages[-1].text.split(":")[0]])
    said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return said


def run(judge, names, **options):
    """The log of a task with our scorer."""
    dataset = MemoryDataset([Sample(id=name, input=f"{name}: do it", target="x") for name in names])
    baseline = options.pop("baseline", {"capital": "Paris.", "same": "The same.", "empty": "Something.", "broken": ""})
    task = Task(dataset=dataset, scorer=pairwise_scorer(baseline, judge, "says more"))
    model = get_model("mockllm/model", custom_outputs=answer)
    (log,) = eval(task, model=model, display="none", log_dir=str(OUT), **options)
    assert log.status == "success", log.error
    return log


def told(log):
    """Metrics and scores as JSON has them."""
    (results,) = log.results.scores
    values = {name: round(one.value, 6) for name, one in results.metrics.items()}
    scores = {f"{one.id}/{one.epoch}": next(iter(one.scores.values())) for one in log.samples}
    return {
        "metrics": values,
        "unscored": results.unscored_samples,
        "scores": {name: None if math.isnan(one.value) else one.value for name, one in scores.items()},
        "reasons": {name: one.reason for name, one in scores.items() if one.reason},
        "outcomes": {name: (one.metadata or {}).get("outcome") for name, one in scores.items()},
    }


log = run(longer, ["capital", "same", "empty", "broken", "other"], epochs=2)
found["longer"] = told(log)
found["first"] = told(run(always_first, ["capital"]))
found["refused"] = told(run(broken_judge, ["capital", "same"]))
found["file"] = told(run(longer, ["capital"], baseline=DATA / "inspect_a.eval"))
again = score(
    read_eval_log(log.location), pairwise_scorer(log, longer, "says more"), display="none", action="overwrite"
)
found["itself"] = {name: one.value for name, one in again.results.scores[0].metrics.items()}
print(json.dumps(found))
