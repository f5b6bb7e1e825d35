"""What tokens cost: figures computed by hand, and tables that fit together."""

import json
import re

import pytest

from pairscale.core.errors import InputError
from pairscale.providers.base import Usage
from pairscale.providers.catalog import (
    PROVIDERS,
    UNIT,
    LongPrice,
    Price,
    add_rows,
    bundled,
    cost_of,
    own_file,
    price_of,
    price_table,
    today,
)

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


LONG = Price(1.0, 4.0, cached=0.1, batch=0.5, batch_cached=0.1, long=LongPrice(200, 2.0, 6.0))


@pytest.mark.parametrize(
    ("usage", "more", "millionths"),
    [
        (Usage(200, 10), {}, 200 + 40),
        (Usage(201, 10), {}, 402 + 60),
        (Usage(201, 10, cached=100), {}, 202 + 200 + 60),  # no long price of cached tokens is known: as the input
        (Usage(200, 10, cached=100), {"batch": True}, (100 + 40) / 2 + 100 * 0.1),
        (Usage(200, 0, written=50), {}, 200),
    ],
)
def test_long_prompts_and_cached_tokens_of_batches_by_hand(usage, more, millionths):
    assert cost_of(usage, LONG, **more) == pytest.approx(millionths / MILLION)


def test_the_table():
    table = bundled("prices")
    assert table.unit == UNIT
    assert "genai-prices" in table.source
    rows = price_table()
    assert len(rows) == len(table.prices) > 500
    for row in rows:
        re.compile(row.model)
        price = row
        assert row.provider in PROVIDERS
        assert price.source.startswith("https://")
        assert "2026-01-01" <= price.as_of <= table.as_of < today().isoformat()
        assert not row.is_own
        assert (price.cached or 0) <= price.input
        if price.long is not None:
            assert price.long.input > price.input
            assert price.long.output > price.output
        if row.provider == "anthropic" and price.written is not None:
            assert price.written == pytest.approx(price.input * (1.2 if "3-haiku" in row.model else 1.25))


GOOD = {"unit": UNIT, "as_of": "2026-11-01", "source": "a letter"}
ROW = {"provider": "openai", "model": "^gpt-6-sol$", "input": 1.5, "output": 7.5}


def added(folder, *rows, **more):
    path = folder / "mine.json"
    path.write_text(json.dumps(GOOD | more | {"prices": list(rows)}), "utf-8")
    return add_rows(path)


def test_prices_of_ones_own_come_first_and_are_replaced(tmp_path):
    target, n, replaced = added(tmp_path, ROW, {**ROW, "provider": "mine", "model": "."})
    assert (n, replaced, target) == (2, 0, own_file())
    found = price_of("openai", "gpt-6-sol")
    assert (found.input, found.as_of, found.source) == (1.5, "2026-11-01", "a letter")
    assert price_of("openai", "gpt-6-luna").input == 0.1
    assert price_of("mine", "whatever").output == 7.5
    assert added(tmp_path, {**ROW, "input": 1.25}, as_of="2026-11-02")[1:] == (1, 1)
    assert (price_of("openai", "gpt-6-sol").input, price_of("openai", "gpt-6-sol").as_of) == (1.25, "2026-11-02")
    assert price_of("mine", "whatever").as_of == "2026-11-01"
    assert [row.is_own for row in price_table("openai")[:2]] == [True, False]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": "USD per token"}, "unit: must be 'USD per million tokens'"),
        ({"unit": None}, "convert the prices first"),
        ({"as_of": "last week"}, "must be a date"),
        ({"as_of": 20261101}, "must be a date"),
        ({"source": " "}, "source: must say where"),
        ({"prices": []}, "holds no rows"),
        ({"prices": "none"}, "prices: Expected array"),
        ({"prices": [{**ROW, "input": -1}]}, "row 1: input: Expected float >= 0"),
        ({"prices": [{**ROW, "input": True}]}, "row 1.*input"),
        ({"prices": [{**ROW, "output": "7"}]}, "row 1.*output"),
        ({"prices": [ROW, {**ROW, "model": "x", "input": 0.00000125}]}, "row 2.*is it that of one token"),
        ({"prices": [{**ROW, "input": 2_000_000}]}, "row 1"),
        ({"prices": [{**ROW, "batch": 50}]}, "share that batches cost"),
        ({"prices": [{**ROW, "model": "(["}]}, "regular expression"),
        ({"prices": [{**ROW, "inputs": 1}]}, "row 1: Object contains unknown field inputs"),
        ({"prices": [{"provider": "openai", "model": "m", "input": 1}]}, "row 1: Object missing required field output"),
        ({"prices": [7]}, "row 1: Expected object"),
        ({"prices": [{**ROW, "until": "soon"}]}, "row 1: until: must be a date"),
        ({"prices": [{**ROW, "source": " "}]}, "row 1: source"),
        ({"prices": [{**ROW, "source": 7}]}, "row 1: source"),
        ({"prices": [{**ROW, "model": ""}]}, "row 1: model"),
        ({"prices": [{**ROW, "tiers": [1]}]}, "tiers"),
        ({"prices": [ROW], "price": []}, "unknown field price"),
        ({"prices": [{**ROW, "long": {"above": 0, "input": 1, "output": 1}}]}, "above"),
        ({"prices": [{**ROW, "long": {"over": 9}}]}, "long: Object contains unknown field over"),
        ({"prices": [{**ROW, "tiers": {"flex": -0.5}}]}, "row 1: tiers"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_written(tmp_path, change, words):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(GOOD | {"prices": [ROW]} | change), "utf-8")
    with pytest.raises(InputError, match=words):
        add_rows(path)
    assert not own_file().exists()
