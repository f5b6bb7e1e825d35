"""``pairscale bias`` and ``pairscale bias-study``."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from pairscale.checks.published import OTHER_WORDINGS
from pairscale.core.errors import InputError

PROMPTED = """
def fond(A, B, prompt_template=""):
    \"\"\"Takes whatever stands first when the template is terse, else the longer text.\"\"\"
    if len(prompt_template) < FEW:
        return {"is_valid": True, "Y": 1}
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
"""


@pytest.fixture
def call(cli):
    def invoke(*args: object):
        done = cli(*args)
        if done.code:
            raise InputError(done.lines[-1].removeprefix("error: "))
        return done

    return invoke


@pytest.fixture
def orders(folder):
    """Twenty pairs: twelve went to the first position both times, the others were consistent."""
    winners = [("a", "b" if at < 12 else "a") for at in range(20)]
    for name, sides, side in (("forward.csv", "ab", 0), ("reverse.csv", "ba", 1)):
        rows = [
            {"ID1": f"{sides[0]}{i}", "ID2": f"{sides[1]}{i}", "better_id": f"{w[side]}{i}"}
            for i, w in enumerate(winners)
        ]
        pl.DataFrame(rows).write_csv(name)
    return "forward.csv", "reverse.csv"


# bias


def test_bias_in_words_and_figures(call, orders):
    result = call("bias", *orders)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "consistency 0.400 (95 % confidence interval 0.219 to 0.613; 20 pairs)"
    assert lines[1] == "first position won 80.0 % of the answers"
    assert lines[2].startswith("position bias: the first position is favoured; position decided 60 % of 20 pairs")


def test_bias_as_json_and_file(call, orders):
    result = call("bias", *orders, "--json", "--out", "pairs.csv")
    document = json.loads(result.out)
    assert document["summary"]["n_both_first"] == 12
    assert document["summary"]["effect_upper"] is None
    assert document["why"] == "the pairs do not join all texts"
    assert document["level"] == 0.95
    assert document["verdict"].startswith("position bias")
    assert len(document["details"]) == pl.read_csv("pairs.csv").height == 20


def test_one_table_or_run_file_may_hold_both_orders(call, cli, orders, pairs):
    pl.concat([pl.read_csv(name) for name in orders]).write_csv("both.csv")
    assert call("bias", "both.csv").out == call("bias", *orders).out
    assert cli("pairs", pairs, "--reverse", "--out", "reversed.csv").code == 0
    for table in (pairs, "reversed.csv"):
        assert cli("judge", table, "--judge", "mine:longer", "--run", "run.db").code == 0
    result = call("bias", "run.db")
    assert "no sign of position bias; the winner changed with the order in 0 % of 6 pairs" in result.out


def test_one_order_is_not_enough(message_snapshot, call, orders):
    with pytest.raises(InputError) as refused:
        call("bias", "forward.csv")
    message_snapshot(refused)


# bias-study


@pytest.fixture
def templates(folder):
    """A judge that is fond of the first position when the template is the shorter of two."""
    from pairscale import get_prompt_template

    sizes = {name: len(get_prompt_template(name)) for name in ("concise", "protocol")}
    assert sizes["concise"] < sizes["protocol"]
    Path("mine.py").write_text(f"FEW = {sum(sizes.values()) // 2}\n{PROMPTED}", "utf-8")
    return ["--template", "concise", "--template", "protocol"]


def test_a_study_asks_ranks_and_resumes(call, templates):
    line = ["bias-study", "essays", "--judge", "mine:fond", *templates, "--run", "study.db"]
    first = call(*line)
    assert first.code == 0
    assert first.out.splitlines()[1].split()[:2] == ["1", "protocol"]
    assert "2 templates, 1 judge, most consistent 'protocol' (100.0%)" in first.out
    document = json.loads(call(*line, "--json", "--out", "study.csv").out)
    assert [row["template_id"] for row in document["ranking"]] == ["protocol", "concise"]
    assert document["table"][0]["prop_pos1"] == 1
    assert document["source"] is None
    assert pl.read_csv("study.csv").height == 2


def test_a_study_of_judgements_made_already(call, orders):
    parts = [
        pl.read_csv(name).with_columns(direction=pl.lit(name.removesuffix(".csv")), template_id=pl.lit("t"))
        for name in orders
    ]
    pl.concat(parts).write_csv("judgements.csv")
    result = call("bias-study", "judgements.csv")
    assert result.code == 0
    assert "most consistent 't' (40.0%)" in result.out


@pytest.mark.parametrize("options", [[], ["--json"], ["--out", "published.csv"]])
def test_every_display_of_the_published_study_says_whose_wordings_it_is_of(call, options):
    result = call("bias-study", "--published", *options)
    assert result.code == 0
    assert OTHER_WORDINGS in result.out + result.err
    if options == ["--json"]:
        assert OTHER_WORDINGS in json.loads(result.out)["source"]
