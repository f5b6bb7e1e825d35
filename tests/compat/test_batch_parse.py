"""Files of results alone: golden files with R's faults corrected, those of our own pipeline, and unreadable lines."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.batching import MODELS, pairs_of

from pairscale import r
from pairscale.core.errors import FileFormatError
from pairscale.r import (
    parse_anthropic_batch_output,
    parse_gemini_batch_output,
    parse_openai_batch_output,
)
from pairscale.r.parse import ids_of

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name: str) -> dict:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def written(tmp_path, lines) -> Path:
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def departures(ours, theirs) -> dict[int, dict[str, tuple]]:
    """By row, the columns in which we differ: (theirs, ours)."""
    found: dict[int, dict[str, tuple]] = {}
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        for name, value in other.items():
            if mine[name] != value:
                found.setdefault(number, {})[name] = (value, mine[name])
    return found


def test_openai_golden(tmp_path, caplog):
    data = golden("parse_openai_batch_output")
    table = parse_openai_batch_output(written(tmp_path, data["input"]))
    theirs = data["output"]["value"]
    assert table.columns == list(theirs[0])
    assert "1 line cannot be read: line 15" in caplog.text
    found = departures(table.to_dicts(), theirs)
    for row in found.values():  # R leaves out what chat completions say of these tokens
        row.pop("prompt_cached_tokens", None)
        row.pop("reasoning_tokens", None)
    both = {"better_sample": ("SAMPLE_1", None), "better_id": ("S2", None)}
    read = {"better_sample": (None, "SAMPLE_1"), "better_id": (None, "S1")}
    assert {number: row for number, row in found.items() if row} == {
        3: both,  # both tags stand there: no answer
        4: {"ID1": ("01", "stu_01"), "better_id": ("01", "stu_01")},  # an id with an underscore
        8: read,  # case and white space do not matter
        9: read,
        10: {"thoughts": ("weighing both second", "weighing both\n\nsecond")},
        13: {"error_message": (None, "server exploded")},
    }


def test_anthropic_golden(tmp_path, caplog):
    data = golden("parse_anthropic_batch_output")
    table = parse_anthropic_batch_output(written(tmp_path, data["input"]))
    theirs = data["output"]["value"]
    assert table.columns[: len(theirs[0])] == list(theirs[0])
    assert "1 line cannot be read: line 12" in caplog.text
    found = departures(table.to_dicts(), theirs)
    for row in found.values():  # which R does not add up
        if row.get("total_tokens") == (None, 60):
            row.pop("total_tokens")
    found = {number: row for number, row in found.items() if row}
    assert {number: set(row) for number, row in found.items()} == {
        5: {"ID1", "ID2", "better_id"},  # a name without a prefix holds its ids nevertheless
        7: {"error_message", "status_code"},  # the message of a nested error
        9: {"error_message"},
        10: {"error_message"},
        11: {"error_message"},
    }
    assert found[7] == {"error_message": (None, "Overloaded"), "status_code": (None, 529)}
    assert found[9]["error_message"][1] == "the request expired before it was worked off"


def test_gemini_golden(tmp_path, caplog):
    data = golden("parse_gemini_batch_output")
    path = written(tmp_path, data["input"]["lines"])
    table = parse_gemini_batch_output(path, data["input"]["requests_tbl"])
    theirs = data["output"]["value"]
    assert table.columns[: len(theirs[0])] == list(theirs[0])
    assert "1 line cannot be read: line 10" in caplog.text
    found = departures(table.to_dicts(), theirs)
    for row in found.values():  # thoughts are paid for as output
        if row.get("completion_tokens") == (8, 30):
            row.pop("completion_tokens")
    found = {number: row for number, row in found.items() if row}
    assert {number: set(row) for number, row in found.items()} == {
        3: {"thought_signature"},
        5: {"status_code"},
        6: {"status_code"},
        8: {"error_message"},
        9: {"error_message"},
    }
    assert found[3]["thought_signature"] == (None, "sig==")
    assert found[5]["status_code"] == (None, 400)
    assert found[6]["status_code"] == (200, None)  # an error is no success


@pytest.mark.parametrize(
    ("name", "prefix", "ids"),
    [
        ("EXP_a_b_vs_c_d", None, ("a_b", "c_d")),
        ("my_study_a_b_vs_c_d", "my_study", ("a_b", "c_d")),
        ("other_a_vs_b", "my_study", None),
        ("pair_17", None, None),
        ("_vs_b", None, None),
        ("a_vs_b", None, ("a", "b")),
    ],
)
def test_ids_in_names(name, prefix, ids):
    assert ids_of(name, prefix) == ids


def test_no_file(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        parse_openai_batch_output(tmp_path / "none.jsonl")
    assert parse_anthropic_batch_output(written(tmp_path, [""])).height == 0


def test_strange_lines(tmp_path, caplog):
    lines = ["[1]", '"text"', "{}", '{"custom_id": 3}', '{"custom_id": "EXP_a_vs_b"}', '{"custom_id": "x", "error": 5}']
    table = parse_openai_batch_output(written(tmp_path, lines))
    assert "5 lines cannot be read: line 1: it is no JSON object; line 2" in caplog.text
    assert table.height == 1


# What our own pipeline wrote: its requests have names that hold no ids

PARSERS = {
    "openai": parse_openai_batch_output,
    "anthropic": parse_anthropic_batch_output,
    "gemini": parse_gemini_batch_output,
    "together": parse_openai_batch_output,
}


def judged(provider="openai", n=4, **settings):
    settings = {"interval_seconds": 0.01, "verbose": False} | settings
    return r.llm_submit_pairs_batch(pairs_of(n), provider, MODELS[provider], **settings)


def answers(table):
    return sorted(table.select("ID1", "ID2", "better_id").rows())


@pytest.mark.slow_except("*openai")
@pytest.mark.usefixtures("batch_server")
@pytest.mark.parametrize("provider", list(PARSERS))
@pytest.mark.parametrize("copied", [False, True])
def test_ids_and_winners_are_those_of_the_pipeline(provider, copied, tmp_path, caplog):
    given = {"batch_output_path": tmp_path / "copy" / "out.jsonl"} if copied else {}
    (tmp_path / "copy").mkdir()
    done = judged(provider, run=tmp_path / "run.db", **given)
    caplog.clear()
    table = PARSERS[provider](done.batch_output_path)
    assert answers(table) == answers(done.results)
    assert table.height == 6
    assert table["better_id"].null_count() == 0
    assert not caplog.messages


@pytest.mark.usefixtures("batch_server")
def test_a_pair_in_both_orders_is_two_rows_each_as_it_was_shown(tmp_path):
    done = judged(both_orders=True, run=tmp_path / "run.db")
    table = parse_openai_batch_output(done.batch_output_path)
    forward = {(one, two) for one, two in pairs_of(4).select("ID1", "ID2").iter_rows()}
    shown = set(table.select("ID1", "ID2").iter_rows())
    assert shown == forward | {(two, one) for one, two in forward}
    assert all(winner == max(one, two) for one, two, winner in answers(table))


def test_names_that_do_not_say_their_ids_are_named(tmp_path, caplog):
    line = '{"custom_id": "%s", "response": {"status_code": 200, "body": {"object": "chat.completion", "choices": []}}}'
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(line % name for name in ("pair_17", "pair_18", "EXP_a_vs_b")), "utf-8")
    assert parse_openai_batch_output(path)["ID1"].to_list() == [None, None, "a"]
    assert "2 names of requests without known samples: pair_17, pair_18; pass requests_tbl" in caplog.text
    caplog.clear()
    known = pl.DataFrame({"custom_id": ["pair_17", "EXP_a_vs_b"], "ID1": ["x", "a"], "ID2": ["y", "b"]})
    assert parse_openai_batch_output(path, requests_tbl=known)["ID1"].to_list() == ["x", None, "a"]
    assert "1 name of requests without known samples: pair_18" in caplog.text
