"""What tokens cost: figures computed by hand, and tables that fit together."""

import json
import re
from importlib.resources import files

import pytest

from pairscale.errors import InputError
from pairscale.providers.base import Usage
from pairscale.providers.prices import PRICES_AS_OF, Price, cost_of, price_of, price_table

MILLION = 1_000_000
PRICE = Price(3.0, 15.0, cached=0.3, batch=0.5, written=3.75, tiers={"flex": 0.5})


@pytest.mark.parametrize(
    ("usage", "more", "dollars"),
    [
        (Usage(MILLION, 0), {}, 3.0),
        (Usage(0, MILLION), {}, 15.0),
        (Usage(MILLION, MILLION, cached=MILLION), {}, 15.3),
        (Usage(MILLION, 0, written=MILLION), {}, 3.75),
        (Usage(1000, 100, cached=200, written=300), {}, (500 * 3 + 200 * 0.3 + 300 * 3.75 + 100 * 15) / MILLION),
        (Usage(MILLION, None, total=10), {}, 3.0),  # a server that cannot add: no answer costs less than nothing
        (Usage(MILLION, 0), {"batch": True}, 1.5),
        (Usage(MILLION, 0), {"tier": "flex"}, 1.5),
        (Usage(MILLION, 0), {"tier": "FLEX"}, 1.5),
        (Usage(MILLION, 0), {"tier": "default"}, 3.0),
        (Usage(MILLION, 0), {"tier": "standard"}, 3.0),
        (Usage(MILLION, 0), {"tier": "priority"}, None),  # nobody has said what it costs
        (Usage(MILLION, 0), {"tier": "batch", "batch": True}, 1.5),
        (Usage(MILLION, None, 2 * MILLION), {}, 18.0),
        (Usage(MILLION, None), {}, None),
        (Usage(None, 5), {}, None),
        (Usage(10, 0, cached=50, written=50), {}, 10 * 0.3 / MILLION),  # more than there was is not paid for
    ],
)
def test_costs_by_hand(usage, more, dollars):
    assert cost_of(usage, PRICE, **more) == (None if dollars is None else pytest.approx(dollars))


def test_a_price_of_ones_own_is_that_of_every_tier():
    own = price_of("openai", "gpt-5.1", {"input": 2.0, "output": 8.0})
    assert cost_of(Usage(MILLION, 0), own, tier="priority") == 2.0
    assert cost_of(Usage(MILLION, 0, cached=MILLION, written=5), own, batch=True) == 2.0
    assert cost_of(Usage(1, 1), None) is None


def test_the_table():
    table = json.loads(files("pairscale.providers").joinpath("prices.json").read_text("utf-8"))
    assert table["as_of"] == PRICES_AS_OF
    for row in price_table():
        re.compile(row["model"])
        assert {"provider", "model", "input", "output", "batch"} <= set(row)
        assert row.get("cached", 0) <= row["input"] <= row["output"]
        if row["provider"] == "anthropic":
            assert row["cached"] == pytest.approx(row["input"] / 10)
            assert row["written"] == pytest.approx(row["input"] * 1.25)


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", "gpt-5.1", (1.25, 10.0)),
        ("openai", "gpt-5-mini-2025-08-07", (0.25, 2.0)),
        ("openai", "gpt-4.1-nano", (0.1, 0.4)),
        ("anthropic", "claude-sonnet-4-5", (3.0, 15.0)),
        ("anthropic", "claude-opus-4-5-20251101", (5.0, 25.0)),
        ("gemini", "gemini-2.5-flash-lite", (0.1, 0.4)),
        ("ollama", "anything:7b", (0.0, 0.0)),
        ("openai", "gpt-9-unheard-of", None),
        ("compatible", "my-model", None),
    ],
)
def test_models_by_family(provider, model, expected):
    found = price_of(provider, model)
    assert (found and (found.input, found.output)) == expected


def test_a_table_of_ones_own_goes_first():
    table = {"as_of": "2026-01-01", "prices": [{"provider": "openai", "model": "^gpt-5", "input": 9, "output": 9}]}
    assert price_of("openai", "gpt-5.1", table).input == 9
    assert price_of("openai", "gpt-4.1", table).input == 2.0


@pytest.mark.parametrize("price", [{"input": -1, "output": 1}, {"input": "x", "output": 1}, {"in": 1}, {"input": 1}])
def test_prices_that_are_none(price):
    with pytest.raises(InputError, match="price"):
        price_of("openai", "gpt-5.1", price)
