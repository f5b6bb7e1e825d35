"""AG2's calls: its arguments and defaults, in its order, and what it has that we refuse."""

import inspect

import pytest

import pairscale as ps
from pairscale.core.errors import InputError

SHARED = {"concurrency": 4, "run_id": None, "label": None, "stream": None}
RUN = {"store_dir": None, "model_config": None, "variant_a_name": "A", "variant_b_name": "B", **SHARED}
EVALUATE = {"store_dir": None, "variant_a": "A", "variant_b": "B", "suite": None, **SHARED}


@pytest.mark.parametrize(
    ("name", "required", "defaults"),
    [
        ("run_pairwise", ["suite", "variant_a", "variant_b", "comparators"], RUN),
        ("evaluate_pairwise", ["source_a", "source_b", "comparators"], EVALUATE),
    ],
)
def test_arguments_and_defaults_are_those_of_ag2(name, required, defaults):
    for function in (getattr(ps, name), getattr(ps, f"{name}_async")):
        parameters = inspect.signature(function).parameters
        assert list(parameters)[: len(required) + len(defaults)] == [*required, *defaults]
        assert {key: parameters[key].default for key in defaults} == defaults
    assert inspect.signature(getattr(ps, name)).parameters == parameters


class Agent:
    """An agent as AG2 has them: ``ask`` is awaited and takes a configuration."""

    def __init__(self):
        self.configs = []

    async def ask(self, text, config=None):
        self.configs.append(config)
        return f"{text} {config}"


def call(**options):
    longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}  # noqa: E731
    comparators = [ps.pairwise_judge(longer, criterion="says more", key="longer")]
    suite = ps.Suite.from_list(["rain", "snow"])
    return ps.run_pairwise(suite, comparators=comparators, progress=False, **options)


def test_model_config_reaches_the_agents():
    one, other = Agent(), Agent()
    result = call(variant_a=one, variant_b=other, model_config="gpt")
    assert one.configs == other.configs == ["gpt", "gpt"]
    assert result.tally("longer") == (0, 0, 2)


def test_model_config_without_an_agent_is_refused(message_snapshot):
    with pytest.raises(InputError) as refused:
        call(variant_a=Agent(), variant_b=lambda task: task.input, model_config="gpt")
    message_snapshot(refused)


def test_a_stream_is_refused_with_the_way_out():
    with pytest.raises(InputError, match="on_case="):
        call(variant_a=Agent(), variant_b=Agent(), stream=object())
    source = ps.InMemoryTraceSource({"t": "a"})
    with pytest.raises(InputError, match="on_case="):
        ps.evaluate_pairwise(source, source, comparators=[], stream=object())
