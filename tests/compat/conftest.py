"""Servers that play the providers: live, where the longer text wins, and with batches."""

import pytest
from tests.batching import simulator

from pairscale.testing import Behaviour, ProviderSimulator


def _found_by(monkeypatch, server):
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def server(monkeypatch, fast_limits):
    with ProviderSimulator(Behaviour(quality=len, sharpness=0.02)) as running:
        yield _found_by(monkeypatch, running)


@pytest.fixture
def batch_server(monkeypatch):
    with simulator() as running:
        yield _found_by(monkeypatch, running)
