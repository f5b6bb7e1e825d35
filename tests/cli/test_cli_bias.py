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
