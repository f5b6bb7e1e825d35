"""A served page for tests."""

from __future__ import annotations

import contextlib

import pytest

from pairscale.people import Address, LabelStore, serve_labels


@pytest.fixture
def serve(tmp_path):
    """Serves cases until the test ends: gives the store and the site."""
    with contextlib.ExitStack() as stack:

        def start(cases, people=("ann", "bob"), *, path=None, instructions="", plain=False, **options):
            store = stack.enter_context(LabelStore(path or tmp_path / "labels.db", cases, **options))
            for name in people:
                store.add_labeller(name)
            page = serve_labels(store, address=Address(port=0), instructions=instructions, plain=plain)
            return store, stack.enter_context(page)

        yield start
