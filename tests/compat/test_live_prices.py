"""What a model is asked for by the manual's functions: settings of ours never reach the request."""

import pytest

import pairscale as ps
from pairscale.testing import ProviderSimulator


@pytest.mark.parametrize("backend", ["openai", "together"])
def test_a_price_is_no_field_of_the_request(backend) -> None:
    pairs = ps.make_pairs(ps.synthetic_essays(3, seed=1))
    path = {"openai": "/v1", "together": "/together/v1"}[backend]
    with ProviderSimulator() as server:
        results = ps.submit_llm_pairs(
            pairs, "some-model", backend=backend, api_key="simulated-key", base_url=server.url + path,
            price={"input": 1.0, "output": 2.0}, timeout=60.0, cache=False, progress=False,
        ).results  # fmt: skip
        asked = [str(entry.body) for entry in server.journal]
    assert len(asked) == 3
    assert not any(name in body for body in asked for name in ("'price'", "'timeout'", "'cache'", '"price"'))
    assert (results["cost"] > 0).all()
