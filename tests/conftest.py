"""What every test gets: an environment of its own."""

import gc
import os
import re
import shutil
import signal
import zlib
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]

# No test depends on the clock, on a quiet machine or on luck: properties see the same examples at every run, and
# `make validate` draws new ones, and many more.
PATIENT = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("pairscale", PATIENT, max_examples=25, derandomize=True)
settings.register_profile("thorough", PATIENT, max_examples=500)
settings.load_profile("pairscale")

# Half a million objects of pytest and of imported modules stay to the end: looking for garbage among them takes a tenth
# of the time that collecting the tests takes.
gc.set_threshold(50_000, 20, 20)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; children would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def homes(tmp_path_factory):
    """Where every test has a home of its own; pytest's own way of naming folders looks at all that there are."""
    return tmp_path_factory.mktemp("homes"), count()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, homes):
    """No keys, no settings and no templates of the person who runs the tests."""
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith("PAIRSCALE_"):
            monkeypatch.delenv(name)
    folder, number = homes
    home = folder / str(next(number))
    home.mkdir()
    monkeypatch.setenv("PAIRSCALE_HOME", str(home))


VARYING = {
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d": "TIME",
    r"process \d+ on [^\s,)]+": "process PID on HOST",
    r"127\.0\.0\.1(:|', )\d+": r"127.0.0.1\1PORT",
    r"\bps[0-9a-f]{20}": "BATCH",
    r"TMP/(people|labels)\d+/": r"TMP/\1/",
    r"\b(test_\w+\.py):\d+": r"\1:LINE",
}
"""What differs between runs of the same test, and what stands for it in a snapshot."""


@pytest.fixture
def message_snapshot(snapshot, request, tmp_path_factory):
    """Compare a message with the stored one in ``__snapshots__``; ``--snapshot-update`` stores the present one."""

    def compare(message):
        text = str(getattr(message, "value", message))  # of pytest.raises, too
        if "tmp_path" in request.fixturenames:
            text = text.replace(str(request.getfixturevalue("tmp_path")), "TMP")
        text = text.replace(os.environ["PAIRSCALE_HOME"], "HOME")
        text = text.replace(str(tmp_path_factory.getbasetemp()), "TMP").replace(str(ROOT), "ROOT")
        for pattern, name in VARYING.items():
            text = re.sub(pattern, name, text)
        assert text == snapshot

    return compare


@pytest.fixture
def impatient(monkeypatch):
    """What cannot be written is given up at once; otherwise it is tried again for two minutes."""
    monkeypatch.setattr("pairscale.store.policies.WRITE_RETRY_INTERVAL_S", 0.001)
    monkeypatch.setattr("pairscale.store.policies.WRITE_GIVE_UP_S", 0.01)


@pytest.fixture(scope="module")
def browser():
    """A real one; not for the whole session, as no other event loop can run beside it."""
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")))
    if (chromium := next(found, None)) is None:
        pytest.skip("no Chromium was found")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=600_000)
        yield started
        started.close()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of this process's own; see ``tools/postgres.py``."""
    pytest.importorskip("psycopg")
    from tools.postgres import PostgresServer

    try:
        server = PostgresServer()
    except OSError as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture
def address(postgres, request):
    """The address of an empty database, for one test."""
    return postgres.create(f"{zlib.crc32(request.node.nodeid.encode()):08x}_{request.node.name.lower()}"[:60])


@pytest.fixture
def fast_limits(monkeypatch):
    """Let the rate limiter and the breaker of a provider run a thousand times as fast."""
    import asyncio
    import time

    from pairscale.providers.limits import Breaker, RateLimiter

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 1000)

    for waits in (RateLimiter, Breaker):
        monkeypatch.setitem(waits.__init__.__kwdefaults__, "clock", lambda: time.monotonic() * 1000)
        monkeypatch.setitem(waits.__init__.__kwdefaults__, "sleep", sleep)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of some tests only a few parameters are worth their time in a quicker tier; the others are slow, or validate."""
    for item in items:
        for tier in ("slow", "validate"):
            kept = item.get_closest_marker(f"{tier}_except")
            if kept is not None and not any(fnmatchcase(item.callspec.id, name) for name in kept.args):
                item.add_marker(tier)


def pytest_collection_finish():
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Say in the last lines when the page was not tried in a browser, or no run in a PostgreSQL database."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for what, reason, package in (
        ("browser", "no Chromium", "chromium"),
        ("PostgreSQL", "no PostgreSQL", "postgresql"),
    ):
        if left_out := sum(reason in said for said in skipped):
            terminalreporter.write_line(
                f"{left_out} {what} tests were NOT run: {reason} was found (Debian: apt-get install {package})"
            )
