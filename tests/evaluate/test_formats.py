"""Answers in the formats of other tools: files that they wrote (tests/data/traces), and shapes that they document."""

import asyncio
import json
import logging
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluate.sides import compared, longer, write

import pairscale as ps
from pairscale.core.errors import FileFormatError, InputError, UnsureColumnError
from pairscale.evaluate.formats.reading import named_columns, read_answers, variants_of
from pairscale.evaluate.formats.tools import conversation

DATA = Path(__file__).parents[1] / "data" / "traces"
CAPITAL, EGG, BROKEN = "What is the capital of France?", "How do I boil an egg?", "Use the broken tool."
LONG = {CAPITAL: "It is Paris, on the Seine.", EGG: "In boiling water, for eight minutes."}


def loaded(source):
    async def all_of():
        return [(ref, await source.load(ref)) async for ref in source.list()]

    return asyncio.run(all_of())


# Files of the tools themselves


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("otlp_b.json", "OpenTelemetry spans (OTLP JSON)"),
        ("openinference_b.jsonl", "OpenTelemetry or OpenInference spans"),
        ("langsmith_b.jsonl", "LangSmith runs"),
        ("langfuse_b.json", "Langfuse export"),
    ],
)
def test_files_that_tools_wrote(name, said, caplog):
    with caplog.at_level(logging.WARNING):
        found = read_answers(DATA / name)
    assert f"read 3 answers from {DATA / name}: {said}, 1 failure among them" in caplog.text
    by_input = {answer.trace.metadata["input"]: answer.trace for answer in found}
    assert {task: trace.output for task, trace in by_input.items() if trace.failure is None} == LONG
    assert by_input[BROKEN].failure


def test_recordings_of_different_tools_are_paired_by_what_was_asked(caplog):
    found = compared(DATA / "openinference_a.jsonl", DATA / "otlp_b.json")
    assert found.tally("longer") == (0, 2, 1)
    assert "A and B share no task_id; answers are paired by the text of the task" in caplog.text
    assert {case.task_id for case in found.cases} == {"capital", "egg", "broken"}


def test_logs_of_inspect_ai():
    zipped, plain = read_answers(DATA / "inspect_a.eval"), read_answers(DATA / "inspect_b.json")
    assert [(a.task_id, a.trace.failure) for a in plain] == [
        ("2", None), ("broken", "RuntimeError('the tool server was not there')"), ("capital", None),
        ("long", "the output is empty"),
    ]  # fmt: skip
    assert [answer.task_id for answer in zipped] == ["2", "broken", "capital", "long"] * 2, "epochs are repeats"
    talk = zipped[0]
    assert talk.trace.metadata["input"].startswith("[user]\nHello.\n\n[assistant]\nHello, what can I do?")
    assert (talk.trace.output, talk.trace.metadata["reference"]) == ("In water.", "water")
    found = compared(DATA / "inspect_a.eval", DATA / "inspect_b.json")
    assert found.tally("longer") == (1, 2, 1)
    assert [(one.task_id, one.repeat, one.missing) for one in found.unmatched if one.task_id == "2"] == [("2", 2, "b")]


def test_promptfoo_holds_several_variants():
    found = compared(DATA / "promptfoo.jsonl", None)
    assert (found.variant_a, found.variant_b) == ("Answer: {{question}}", "Answer at length, please: {{question}}")
    assert found.tally("longer") == (1, 2, 0), "an assertion that was not met is no failure, an error is one"
    assert [case.reasoning for case in found.cases if case.failed] == [f"{found.variant_b} failed: the tool is broken"]
    assert len(ps.read_outputs(DATA / "promptfoo.jsonl", variant=found.variant_b)) == 3


def test_folders_of_ag2():
    found = compared(DATA / "ag2_a", DATA / "ag2_b", suite=DATA / "ag2_suite.jsonl")
    assert found.tally("longer") == (1, 2, 0)
    assert [case.reasoning for case in found.cases if case.failed] == ["B failed: the trace has no spans"]
    assert {case.task_id: case.tags for case in found.cases}["capital"] == ("easy",)
    traces = {ref.task_id: trace for ref, trace in loaded(ps.DirectoryTraceSource(DATA / "ag2_a"))}
    assert traces["egg"].output == "In water."


def test_a_suite_is_a_file_a_list_or_one_of_ag2(message_snapshot):
    options = {"variant_a": lambda task: "No.", "variant_b": lambda task: task.input, "progress": False}
    judge = [ps.pairwise_judge(longer, criterion="longer", key="longer")]
    for suite in (DATA / "ag2_suite.jsonl", str(DATA / "ag2_suite.jsonl"), [CAPITAL, EGG, BROKEN], _Suite()):
        assert ps.run_pairwise(suite, comparators=judge, **options).tally("longer") == (0, 3, 0)
    with pytest.raises(InputError) as refused:
        ps.run_pairwise(CAPITAL, comparators=judge, **options)
    message_snapshot(refused)


class _Task:
    def __init__(self, number):
        self.inputs, self.task_id = {"input": f"Question {number}?"}, f"t{number}"
        self.reference_outputs, self.tags, self.metadata = None, ("x",), {}


class _Suite:
    """A suite as another library has it."""

    name, source, tasks = "theirs", "inline", tuple(map(_Task, range(3)))


# Documented shapes


def test_alpaca_eval(tmp_path, caplog):
    sides = {
        side: write(tmp_path / f"{side}.json", [
            {"instruction": f"Question {n}?", "output": text * (n + 1), "generator": side, "dataset": "helpful_base"}
            for n in range(5)
        ]) for side, text in (("old", "x"), ("new", "xx"))
    }  # fmt: skip
    found = compared(sides["old"], sides["new"])
    assert found.tally("longer") == (0, 5, 0)
    assert f"read 5 answers from {sides['old']}: AlpacaEval model_outputs.json" in caplog.text
    assert found.cases[0].task_id.startswith("Question 0? #")
    own = write(tmp_path / "own.json", [
        {"task_id": "t1", "instruction": "Why?", "output": "So.", "generator": "g", "cost": 0.5, "tone": 3.0}
    ])  # fmt: skip
    (answer,) = read_answers(own)
    assert (answer.task_id, answer.trace.cost, answer.trace.metadata["tone"]) == ("t1", 0.5, 3.0)
    both = write(tmp_path / "both.json", json.loads(sides["old"].read_text()) + json.loads(sides["new"].read_text()))
    assert compared(both, None, name_a="new", name_b="old").tally("longer") == (5, 0, 0)


def test_mt_bench(tmp_path):
    for side, text in (("a", "Yes."), ("b", "Yes, surely.")):
        write(tmp_path / f"{side}.jsonl", [
            {"question_id": n, "answer_id": f"{side}{n}", "model_id": side, "tstamp": 1.0,
             "choices": [{"index": 0, "turns": [text, "$ERROR$" if side == "b" and n == 82 else text]}]}
            for n in (81, 82)
        ])  # fmt: skip
    questions = [
        {"question_id": n, "category": "writing", "turns": ["Why?", "And then?"], "reference": ["So.", "Then."]}
        for n in (81, 82)
    ]
    found = compared(tmp_path / "a.jsonl", tmp_path / "b.jsonl", suite=write(tmp_path / "q.jsonl", questions))
    assert [(case.task_id, case.winner, case.tags) for case in found.cases] == [
        ("81", "b", ("writing",)), ("82", "a", ("writing",)),
    ]  # fmt: skip
    answer = read_answers(tmp_path / "a.jsonl")[0]
    assert answer.trace.output == "[turn 1]\nYes.\n\n[turn 2]\nYes."
    suite = ps.Suite.from_file(tmp_path / "q.jsonl")
    assert suite.tasks[0].input == "[turn 1]\nWhy?\n\n[turn 2]\nAnd then?"


def test_chat_messages(tmp_path):
    system = {"role": "system", "content": "Be brief."}
    tools = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    rows = [
        {"messages": [system, {"role": "user", "content": "Capital?"}, {"role": "assistant", "content": "Paris."}]},
        {"messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is it?"}, {"type": "image_url"}]},
            tools, {"role": "tool", "content": "a cat"}, {"role": "assistant", "content": "A cat."}]},
        {"messages": [{"role": "user", "content": "Go on."}, tools]},
        {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"},
                      {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]},
    ]  # fmt: skip
    found = read_answers(write(tmp_path / "chat.jsonl", rows))
    assert [(one.trace.metadata["input"], one.trace.output) for one in found] == [
        ("Capital?", "Paris."),
        ("What is it?\n[image_url]", "A cat."),
        ("Go on.", ""),
        ("Hello", "[assistant]\nYes?\n\n[user]\nWhy?\n\n[assistant]\nSo."),
    ]
    assert found[2].trace.failure == "the output is empty", "a call of a tool is no answer"
    asked = write(tmp_path / "asked.jsonl", [{"custom_id": "r1", "body": {"messages": rows[0]["messages"][:2]}}])
    with pytest.raises(FileFormatError, match="requests, not answers"):
        read_answers(asked)
    assert [(task.task_id, task.input) for task in ps.Suite.from_file(asked)] == [("r1", "Capital?")]


def test_results_of_batches_are_read_by_their_columns(tmp_path):
    body = {"choices": [{"message": {"role": "assistant", "content": "Paris."}}], "usage": {"total_tokens": 9}}
    responses = {"object": "response", "output": [{"type": "reasoning", "content": [{"type": "text", "text": "hm"}]},
                            {"type": "message", "content": [{"type": "output_text", "text": "Rome."}]}]}  # fmt: skip
    failed = {"error": {"message": "too long"}}
    rows = [
        {"custom_id": "r1", "response": {"status_code": 200, "body": body}, "error": None},
        {"custom_id": "r2", "response": {"status_code": 200, "body": responses}, "error": None},
        {"custom_id": "r3", "response": {"status_code": 400, "body": failed}, "error": None},
        {"custom_id": "r4", "response": None, "error": {"code": "batch_expired", "message": "expired"}},
    ]
    named = named_columns("custom_id", None, "response.body")
    found = read_answers(write(tmp_path / "out.jsonl", rows), named)
    assert [(one.task_id, one.trace.output, one.trace.failure) for one in found] == [
        ("r1", "Paris.", None), ("r2", "Rome.", None), ("r3", "", "too long"), ("r4", "", "expired"),
    ]  # fmt: skip


def test_requests_with_their_responses(tmp_path):
    said = {"choices": [{"message": {"content": "Paris."}, "finish_reason": "stop"}]}
    refused = {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}
    rows = [{"request": {"messages": [{"role": "user", "content": f"Q{n}"}]}, "response": one}
            for n, one in enumerate([said, refused])]  # fmt: skip
    found = read_answers(write(tmp_path / "log.jsonl", rows))
    assert [(one.trace.metadata["input"], one.trace.output, one.trace.failure) for one in found] == [
        ("Q0", "Paris.", None), ("Q1", "", "the provider withheld the answer (content_filter)"),
    ]  # fmt: skip


def test_traces_of_langfuse_by_their_schema(tmp_path):
    row = {"timestamp": "2026-11-01T00:00:00Z", "name": "x", "sessionId": None, "userId": None, "release": None,
           "input": {"question": "Q?", "lang": "en"}, "totalCost": 0.5, "latency": 1.5}  # fmt: skip
    failed = [{"id": "o", "parentObservationId": None, "level": "ERROR", "statusMessage": "no model"}]
    rows = [
        {**row, "id": "1", "output": {"answer": "Yes."}},
        {**row, "id": "2", "output": None, "observations": failed},
    ]
    found = read_answers(write(tmp_path / "t.json", rows))
    assert [(one.trace.output, one.trace.failure) for one in found] == [("Yes.", None), ("", "no model")]
    page = write(tmp_path / "page.json", {"data": rows, "meta": {"page": 1}})
    assert len(read_answers(page)) == 2
    unclear = [{**row, "id": "3", "output": {"answer": "Yes.", "response": "No."}}]
    (whole,) = read_answers(write(tmp_path / "u.json", unclear))
    assert whole.trace.output == '{"answer": "Yes.", "response": "No."}', "either may be the answer"
    named = read_answers(tmp_path / "u.json", named_columns("id", None, "output.response"))
    assert [(one.task_id, one.trace.output) for one in named] == [("3", "No.")]


def test_tables_of_phoenix(tmp_path):
    phoenix = {"name": "llm", "context.trace_id": "t", "context.span_id": "s", "parent_id": None, "status_code": "OK",
               "start_time": "2026-11-01T00:00:00+00:00", "end_time": "2026-11-01T00:00:01+00:00",
               "attributes.openinference.span.kind": "LLM",
               "attributes.input.value": "Capital?", "attributes.output.value": "Paris."}  # fmt: skip
    found = read_answers(write(tmp_path / "p.jsonl", [phoenix]))
    assert [(one.trace.metadata["input"], one.trace.output) for one in found] == [("Capital?", "Paris.")]


def test_spans_without_contents_are_refused(message_snapshot, tmp_path):
    span = {
        "name": "chat",
        "context": {"trace_id": "t", "span_id": "s"},
        "attributes": {"gen_ai.operation.name": "chat"},
    }
    with pytest.raises(FileFormatError) as refused:
        read_answers(write(tmp_path / "s.jsonl", [span]))
    message_snapshot(refused)


# Plain rows of any shape


@pytest.mark.parametrize(
    "content",
    [
        [{"id": "t1", "prompt": "Q?", "completion": "Yes."}],
        {"version": 1, "rows": [{"question_id": "t1", "question": "Q?", "prediction": "Yes."}]},
        {"t1": "Yes."},
        {"task_id": "t1", "output": "Yes.", "events": [{"type": "message"}]},
    ],
)
def test_plain_json(tmp_path, content):
    found = read_answers(write(tmp_path / "x.json", content))
    assert [(one.task_id, one.trace.output) for one in found] == [("t1", "Yes.")]


@pytest.mark.parametrize(
    ("output", "text", "failure"),
    [
        ([{"type": "text", "text": "Paris"}, {"type": "text", "text": "France"}], "Paris\nFrance", None),
        ({"role": "assistant", "content": "Paris"}, "Paris", None),
        ([{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "Paris"}], "Paris", None),
        ({"choices": [{"message": {"role": "assistant", "content": "Paris"}}]}, "Paris", None),
        ({"choices": [{"message": {"content": None, "refusal": "I cannot."}}]}, "", "refusal: I cannot."),
        ({"object": "response", "output": [{"type": "reasoning"}, {"type": "message", "role": "assistant",
          "content": [{"type": "output_text", "text": "Paris"}]}]}, "Paris", None),
        ({"candidates": [{"content": {"parts": [{"text": "Paris"}], "role": "model"}}]}, "Paris", None),
        ([{"role": "user", "content": "Q?"}], "", "the assistant did not answer"),
        ({"city": "Paris"}, '{"city": "Paris"}', None),
        (["Paris", "Rome"], '["Paris", "Rome"]', None),
        ([{"type": "city", "name": "Paris"}], '[{"type": "city", "name": "Paris"}]', None),
    ],
)  # fmt: skip
def test_an_output_that_is_a_reply_is_read_as_its_words(tmp_path, output, text, failure):
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital?"}]
    path = write(tmp_path / "a.jsonl", [{"task_id": "t", "input": asked, "output": output}])
    ((_, trace),) = loaded(ps.read_outputs(path))
    assert (trace.output, trace.failure, trace.metadata["input"]) == (text, failure, "Capital?")


def test_a_reply_with_several_answers_is_refused(message_snapshot, tmp_path):
    path = write(tmp_path / "a.jsonl", [{"task_id": "t", "output": {"choices": [{"text": "a"}, {"text": "b"}]}}])
    with pytest.raises(InputError) as refused:
        ps.read_outputs(path)
    message_snapshot(refused)


def test_paths_name_what_is_nested(message_snapshot, tmp_path):
    rows = [{"meta": {"case": 7}, "io": {"in": "Q?", "out": ["x", {"said": "Yes."}]}}]
    path = write(tmp_path / "x.jsonl", rows)
    (found,) = read_answers(path, named_columns("meta.case", "io.in", "$.io.out[1].said"))
    assert (found.task_id, found.trace.metadata["input"], found.trace.output) == ("7", "Q?", "Yes.")
    with pytest.raises(InputError) as refused:
        read_answers(path, named_columns(None, None, "io.nothing"))
    message_snapshot(refused)


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        (
            {"task_id": "t", "response": "a", "answer": "b"},
            UnsureColumnError,
            r"it may be 'response', 'answer'; name the column \(`output_col=`\)",
        ),
        ({"id": 1, "uid": 2, "output": "a"}, UnsureColumnError, "it may be 'id', 'uid'"),
        ({"output": "a"}, InputError, "row 1 has no task_id and no input"),
        ({"task_id": "t", "said": "a"}, InputError, "row 1 has no 'output'"),
    ],
)
def test_what_is_unsure_is_refused(tmp_path, row, error, words):
    with pytest.raises(error, match=words):
        read_answers(write(tmp_path / "x.jsonl", [row]))


@pytest.mark.parametrize("content", [{"a": 1}, [1, 2], "text", {"a": [{"x": 1}], "b": [{"y": 1}]}, []])
def test_json_that_holds_no_answers(tmp_path, content):
    with pytest.raises(FileFormatError, match=r"x\.json"):
        read_answers(write(tmp_path / "x.json", content))


# Logs that ended too early


def test_a_log_that_was_killed_has_no_header(tmp_path, caplog):
    path = tmp_path / "killed.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": {"dataset": {"samples": 3}}}))
        archive.writestr("samples/1_epoch_1.json", json.dumps({"id": 1, "input": "q", "output": {"completion": "y"}}))
    assert len(read_answers(path)) == 1
    assert f"{path} has the status started" in caplog.text


# Hostile files


def test_a_zip_that_is_no_log(message_snapshot, tmp_path):
    path = tmp_path / "x.eval"
    path.write_bytes(b"PK not a zip")
    with pytest.raises(FileFormatError, match="it is damaged"):
        read_answers(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.json", "{}")
    with pytest.raises(FileFormatError, match=r"without header.json"):
        read_answers(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", '{"eval": {"model": "m"}, "status": "error"}')
    with pytest.raises(FileFormatError) as refused:
        read_answers(path)
    message_snapshot(refused)
    with pytest.raises(FileFormatError) as refused:
        read_answers(tmp_path / "none.eval")
    message_snapshot(refused)


@pytest.mark.slow
def test_a_log_that_expands_to_too_much(message_snapshot, tmp_path):
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {"model": "m"}}')
        archive.writestr("samples/1_epoch_1.json", b" " * (65 * 2**20))
    with pytest.raises(FileFormatError) as refused:
        read_answers(path)
    message_snapshot(refused)


@pytest.mark.parametrize("at", range(0, 9_000, 1_800))
def test_a_damaged_log_is_refused_and_nothing_else(tmp_path, at):
    content = bytearray((DATA / "inspect_a.eval").read_bytes())
    content[at : at + 40] = bytes(40)
    path = tmp_path / "x.eval"
    path.write_bytes(content)
    try:
        found = read_answers(path)
    except FileFormatError as error:
        assert str(path) in str(error)  # noqa: PT017 - it may also be read, where no sample was hit
    else:  # what was hit is no sample
        assert len(found) == 8


def test_deep_and_odd_values_do_no_harm(tmp_path):
    deep = "[" * 100_000
    (tmp_path / "d.json").write_text(deep)
    with pytest.raises(FileFormatError, match="JSON"):
        read_answers(tmp_path / "d.json")
    odd = [{"run_type": "chain", "inputs": None, "outputs": "[" * 5000, "error": ["x"], "start_time": 3, "id": None}]
    (found,) = read_answers(write(tmp_path / "odd.jsonl", odd))
    assert found.trace.failure == '["x"]'
    spans = {
        "resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": [{"key": "output.value", "value": {}}, 3]}]}]}]
    }
    with pytest.raises(FileFormatError):
        read_answers(write(tmp_path / "s.json", spans))


def test_messages_of_frameworks():
    langchain = [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "HumanMessage"],
            "kwargs": {"content": "Hello", "type": "human"},
        },
        {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "Yes?", "type": "ai"}},
    ]
    sharegpt = [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Yes?"}]
    gemini = [{"role": "user", "parts": [{"text": "Hello"}]}, {"role": "model", "parts": [{"text": "Yes?"}]}]
    for messages in (langchain, sharegpt, gemini):
        assert conversation(messages) == ("Hello", "Yes?")


KEYS = """
task_id id input output outputs inputs messages role content parts type text error spans attributes name trace_id
context events status resourceSpans scopeSpans key value stringValue eval version status samples epoch attachments
run_type results vars provider promptIdx response prompt timestamp sessionId userId traceId startTime observations
level question_id choices turns instruction generator custom_id body request result metadata usage kwargs generations
""".split()
leaves = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=True) | st.sampled_from(
    ["", "x", "user", "assistant", "GENERATION", "ERROR", "[{}]", '{"a": 1}', "constructor", "succeeded"]
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)


def shaped(*names):
    """Objects that have these fields, so that a format is recognised, with anything in them."""
    return st.fixed_dictionaries(
        dict.fromkeys(names, values), optional=dict.fromkeys(set(KEYS[:12]) - set(names), values)
    )


SHAPES = [
    values,
    st.lists(shaped("messages"), min_size=1, max_size=3),
    st.lists(shaped("run_type", "inputs", "outputs"), min_size=1, max_size=3),
    st.lists(shaped("id", "timestamp", "input", "output", "sessionId", "userId"), min_size=1, max_size=3),
    st.lists(shaped("traceId", "startTime", "input", "output").map(lambda row: {**row, "type": "SPAN"}), min_size=1),
    st.lists(shaped("instruction", "output", "generator"), min_size=1, max_size=3),
    st.lists(shaped("question_id", "choices"), min_size=1, max_size=3),
    shaped("eval", "version", "status", "samples").map(lambda log: {**log, "eval": {}}),
    st.lists(shaped("id", "input", "output", "attachments", "error"), max_size=3).map(
        lambda samples: {"eval": {}, "version": 2, "status": "x", "samples": samples}
    ),
    st.lists(shaped("name", "attributes", "events", "status", "context"), min_size=1, max_size=3).map(
        lambda spans: [{**span, "attributes": {"output.value": span["attributes"]}, "trace_id": "t"} for span in spans]
    ),
    st.lists(shaped("name", "attributes", "events", "status"), max_size=3).map(
        lambda spans: {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    ),
    shaped("resourceSpans"),
]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_whatever_a_file_holds_it_is_read_or_refused(number, tmp_path_factory):
    path = tmp_path_factory.mktemp("x") / "x.json"

    @settings(max_examples=20)
    @given(content=SHAPES[number])
    def check(content):
        path.write_text(json.dumps(content), "utf-8")
        try:
            found = read_answers(path)
        except InputError as error:
            assert str(path) in str(error)  # noqa: PT017 - most of them are read
            return
        for answer in found:
            assert isinstance(answer.trace.output, str)
            assert isinstance(answer.task_id, str)
        if not variants_of(found):
            loaded(ps.read_outputs(path))

    check()
