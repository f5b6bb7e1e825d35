"""The page in a real browser: by keyboard, by mouse, on a phone, without scripts, and with hostile texts."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
from labelling import make_cases, sides, write_manifest

from pairscale.people import Case, LabelStore, label_table, read_cases

pytestmark = pytest.mark.slow


@pytest.fixture
def visit(browser):
    """Opens pages, and watches for anything that goes wrong in them."""
    with contextlib.ExitStack() as stack:

        def start(link: str, **options):
            context = browser.new_context(**options)
            stack.callback(context.close)
            context.set_default_timeout(600_000)
            page = context.new_page()
            page.trouble = []
            page.on("console", lambda message: page.trouble.append(message.text))
            page.on("pageerror", lambda error: page.trouble.append(str(error)))
            page.on("dialog", lambda dialog: (page.trouble.append(dialog.message), dialog.dismiss()))
            page.goto(link)
            return page

        yield start


# Two at once, and a server that dies


class Served:
    """The command in a process of its own, on one port, which can be killed and started again."""

    def __init__(self, manifest) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.manifest, self.process = manifest, None

    def start(self) -> None:
        options = ["--labellers", "ann,bob", "--labels-per-case", "2", "--port", str(self.port)]
        command = [sys.executable, "-m", "pairscale", "label", str(self.manifest), *options]
        log = self.manifest.with_suffix(".log")
        with log.open("a") as said:
            self.process = subprocess.Popen(command, stderr=said, stdout=subprocess.DEVNULL)
        while True:
            assert self.process.poll() is None, log.read_text()
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{self.port}/")
                return
            time.sleep(0.05)

    def stop(self, how: int) -> int:
        self.process.send_signal(how)
        return self.process.wait(600)

    def path(self, name: str) -> str:
        with LabelStore(self.manifest.with_suffix(".db"), read_cases(self.manifest), write=False) as store:
            return next(f"/l/{one.token}" for one in store.labellers() if one.name == name)


class RecordingProxy:
    """Stands between a browser and the server, and keeps every byte that the server sends."""

    def __init__(self, port: int) -> None:
        self.target, self.sent = port, bytearray()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                browser, _ = self.listening.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:  # dead just now
                    browser.close()
                    continue
                for ends in ((browser, server, None), (server, browser, self.sent)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket, kept: bytearray | None) -> None:
        with source, contextlib.suppress(OSError):
            while data := source.recv(65536):
                if kept is not None:
                    kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("size", [9, pytest.param(30, marks=pytest.mark.validate)])
def test_two_label_by_keyboard_and_mouse_through_a_crash(tmp_path, visit, size):
    cases = [
        Case(f"gpt-{i}::clearer", f"gpt-{i}", "clearer", case.task_input, case.response_1, case.response_2)
        for i, case in enumerate(make_cases(size))
    ]
    manifest = write_manifest(tmp_path / "cases.jsonl", cases, first_variant="champion", note="champion wrote it")
    served = Served(manifest)
    served.start()
    http = RecordingProxy(served.port)
    expected: dict[tuple[str, str], str] = {}

    def case_on(page) -> str:
        number = re.search(r"Question (\d+)[?]", page.inner_text(".task"))[1]
        return f"gpt-{number}::clearer"

    def decide(name, page, number, press) -> None:
        """Choose one, two, tie, one, … by content; the button that stands for it depends on the sides."""
        version = ("one", "two", None)[number % 3]
        shown = sides(page.inner_text(".panes"))
        expected[name, case_on(page)] = {"one": "1", "two": "2", None: "tie"}[version]
        with page.expect_navigation():
            press(page, "t" if version is None else str(1 + shown.index(version)))

    def by_key(page, choice) -> None:
        page.keyboard.press(choice)

    def by_mouse(page, choice) -> None:
        page.click(f'button[data-key="{choice}"]')

    try:
        ann, bob = (visit(http.url + served.path(name)) for name in ("ann", "bob"))
        for number in range(size):
            if number == size // 2:
                served.stop(signal.SIGKILL)
                served.start()  # the pages are still open, and their forms still hold
            decide("ann", ann, number, by_key)
            decide("bob", bob, number + 1, by_mouse)
            if number == size * 2 // 3:  # a wrong key is taken back
                with ann.expect_navigation():
                    ann.keyboard.press("u")
                assert "Taken back" in ann.inner_text(".notice")
                decide("ann", ann, number, by_key)
        assert "Done. Thank you!" in ann.inner_text("main")
        assert "Done. Thank you!" in bob.inner_text("main")
    finally:
        code = served.stop(signal.SIGINT)
        http.listening.close()
    assert code == 0  # all labels are in
    assert http.sent.count(b"version one.") >= 2 * size  # it is what was sent, and not compressed
    assert re.search(rb"champion|first_variant|gpt-", http.sent) is None
    assert [page.trouble for page in (ann, bob)] == [[], []]
    with LabelStore(manifest.with_suffix(".db"), cases) as store:
        table = label_table(store)
    got = {(row["labeller"], row["case_id"]): row["preferred"] for row in table.iter_rows(named=True)}
    assert table.height == len(got) == 2 * size
    assert got == expected


# Hostile and strange texts


ATTACK = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'><svg onload='window.hacked = 3'>"
    "[click](javascript:window.hacked=4) <style>.bar { display: none }</style></textarea></section><form action=x>"
)
HUGE = "word " * 60_000


def test_hostile_texts_do_nothing(serve, visit):
    _, where = serve([Case("c", "t", ATTACK, ATTACK, ATTACK, HUGE)], ["ann"], instructions=ATTACK)
    page = visit(where.links["ann"])
    assert page.evaluate("window.hacked") is None
    assert page.trouble == []
    shown = page.inner_text(".panes")
    assert "<script>window.hacked = 1</script>" in shown
    assert shown.count("word") == 60_000
    assert page.locator(".panes script, .panes img, .panes svg, .panes form, .panes a:not(.jump)").count() == 0
    box = page.locator(".choices").bounding_box()
    assert 0 < box["y"] < page.viewport_size["height"] - box["height"]  # in sight, however long the text
    heights = {round(pane.bounding_box()["height"]) for pane in page.locator(".pane").all()}
    assert len(heights) == 1
    with page.expect_navigation():
        page.keyboard.press("1")
    assert "Done" in page.inner_text("main")


# By keyboard


def test_keys_while_typing_and_the_panel_for_skipping(serve, visit):
    store, where = serve(make_cases(6), ["ann"])
    page = visit(where.links["ann"])
    page.keyboard.press("c")
    page.keyboard.type("12tus: all typed")
    assert store.run.labels().to_dicts() == []
    page.keyboard.press("Escape")
    assert not page.locator("textarea").is_visible()
    with page.expect_navigation():
        page.keyboard.press("2")
    assert store.run.labels().to_dicts()[0]["comment"] == "12tus: all typed"
    page.keyboard.press("s")
    page.locator("input[name=other_reason]").fill("both are blank")
    with page.expect_navigation():
        page.keyboard.press("Enter")  # skips; it must not choose the first text
    assert (store.run.labels().to_dicts()[1]["preferred"], store.run.labels().to_dicts()[1]["skipped"]) == (
        None,
        "both are blank",
    )
    page.keyboard.press("s")
    page.keyboard.press("ArrowDown")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert store.run.labels().to_dicts()[2]["skipped"] == "A text is missing or cannot be read"
    for key in ("Control+1", "Alt+2", "x", "Enter"):
        page.keyboard.press(key)
    assert len(store.run.labels().to_dicts()) == 3
    with page.expect_navigation():
        page.evaluate("document.querySelectorAll('button[data-key]').forEach((b) => { b.click(); b.click(); })")
    assert len(store.run.labels().to_dicts()) == 4  # many presses before the next page are one answer
    assert page.trouble == []


# On a phone, and without scripts


# The owner


def test_the_owners_page(serve, visit):
    store, where = serve(make_cases(12), ["ann", "bob"], labels_per_case=2)
    for person in store.labellers():
        for _ in range(12):
            found = store.next(person)
            store.answer(person, found.question_id, "1", elapsed_ms=1)
    page = visit(where.owner)
    assert page.trouble == []
    assert "decides faster than anyone reads" in page.inner_text(".warnings")
    assert "leans to one side: 12 of 12" in page.inner_text(".warnings")
    assert page.locator("button", has_text="copy").count() == 2
    with page.expect_download() as download:
        page.click("text=Download jsonl")
    lines = download.value.path().read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 24
    page.fill("input[name=name]", "eve")
    with page.expect_navigation():
        page.click("text=Add")
    assert [one.name for one in store.labellers()] == ["ann", "bob", "eve"]
