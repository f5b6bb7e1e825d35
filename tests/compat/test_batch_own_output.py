"""The parsers of result files, on what our own pipeline wrote: its requests have names that hold no ids."""

import polars as pl
import pytest
from tests.batching import MODELS, pairs_of

from pairscale import r
from pairscale.r import (
    parse_anthropic_batch_output,
    parse_gemini_batch_output,
    parse_openai_batch_output,
)

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
