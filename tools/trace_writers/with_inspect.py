"""Logs of inspect_ai: run in its own environment by ``tools/make_traces.py``."""

import sys
from pathlib import Path

from inspect_ai import Task, eval  # noqa: A004 - its name
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, solver, system_message

OUT = Path(sys.argv[1]) / "out"
LONG = "Repeat this: " + "word " * 40


@solver
def broken_tool():
    """Fails on one sample."""

    async def solve(state, generate):  # noqa: ARG001 - the signature of solvers
        if "broken" in state.input_text:
            raise RuntimeError("the tool server was not there")
        return state

    return solve


def samples():
    """Four samples: text, messages, one that fails, and one that is long enough to be kept apart."""
    talk = [
        ChatMessageUser(content="Hello."),
        ChatMessageAssistant(content="Hello, what can I do?"),
        ChatMessageUser(content="How do I boil an egg?"),
    ]
    return MemoryDataset(
        [
            Sample(id="capital", input="What is the capital of France?", target="Paris"),
            Sample(id=2, input=talk, target="water"),
            Sample(id="broken", input="Use the broken tool.", target="nothing"),
            Sample(id="long", input=LONG, target="word"),
        ]
    )


def write(name, answers, **options):
    """Run the task with fixed answers, and write the log without the tracebacks, which tell of this machine."""

    def answer(messages, tools, tool_choice, config):  # noqa: ARG001 - the signature of mockllm
        said = ModelOutput.from_content("mockllm/model", answers[messages[-1].text.split()[0]])
        said.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return said

    task = Task(
        dataset=samples(),
        solver=[system_message("Be brief."), broken_tool(), generate()],
        scorer=includes(),
        name="demo",
    )
    model = get_model("mockllm/model", custom_outputs=answer)
    (log,) = eval(task, model=model, display="none", fail_on_error=False, log_dir="logs", **options)
    log = read_eval_log(log.location)
    for sample in log.samples:
        sample.events = []
        if sample.error is not None:
            sample.error.traceback = sample.error.traceback_ansi = ""
    OUT.mkdir(exist_ok=True)
    write_eval_log(log, str(OUT / name))


write("inspect_a.eval", {"What": "Paris.", "How": "In water.", "Repeat": "word word"}, log_format="eval", epochs=2)
write(
    "inspect_b.json",
    {"What": "It is Paris, on the Seine.", "How": "In boiling water, for eight minutes.", "Repeat": ""},
    log_format="json",
)
