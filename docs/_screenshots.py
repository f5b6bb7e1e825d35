"""Takes the pictures of the pages in docs/images: ``python docs/_screenshots.py``. It needs a Chromium."""

from __future__ import annotations

import math
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright
from sqlalchemy import select, update

import pairscale as ps
from pairscale.people import Address, Case, LabelStore, serve_labels, serve_run
from pairscale.people.queue import LabelQuestion
from pairscale.store.schema import labels

IMAGES = Path(__file__).with_name("images")
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}

HOW = """Read **both** texts to the end before you choose.

- Judge only what is asked.
- Neither length nor spelling decides by itself.
- If they are equally good, it is a tie.
"""
TASK = "Should there be a day every week without cars in the centre of our town? Take a side and give reasons."
ANSWER = """## Two ways

`sorted` returns a **new** list:

```python
names = sorted(people, key=lambda p: p.last)
```

- it is *stable*: equal names keep their order
- it takes anything that can be iterated over

`people.sort(key=...)` sorts the list itself.
"""
SHORT = "Call `people.sort()`. It sorts the list in place, so that you need no second one."


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    essays = ps.synthetic_essays(60, seed=3).sort("theta_true", descending=True)["text"].to_list()
    pairs = [(essays[n], essays[59 - n])[:: 1 if n % 2 else -1] for n in range(24)]
    cases = [Case(f"e{n}", f"e{n}", "better argued", TASK, *both) for n, both in enumerate(pairs)]
    code = [Case("code", "code", "more helpful", "How do I sort a list of people by name in Python?", ANSWER, SHORT)]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with LabelStore(Path(folder) / "essays.db", cases, labels_per_case=2, seed=5) as store:
            for name in ("Ann", "Bob", "Cleo"):
                store.add_labeller(name)
            with serve_labels(store, address=Address(port=0), instructions=HOW) as site:
                shoot(browser, site.links["Ann"], "label-start", DESKTOP)
                label(store, 14)
                shoot(browser, site.links["Ann"], "label", DESKTOP)
                shoot(browser, site.links["Ann"], "label-phone", PHONE, "dark")
                shoot(browser, site.links["Ann"], "label-skip", DESKTOP, press="s")
                shoot(browser, site.owner, "owner", DESKTOP, full_page=True)
        with LabelStore(Path(folder) / "code.db", code, seed=2) as store:
            store.add_labeller("Ann")
            with serve_labels(store, address=Address(port=0)) as site:
                shoot(browser, site.links["Ann"], "label-markdown", DESKTOP, "dark")
                shoot(browser, site.links["Ann"], "label-markdown-phone", PHONE)
        watch(browser, Path(folder) / "run.db")
        browser.close()


def watch(browser: Browser, run: Path) -> None:
    """A run of eighty essays on its way, with a judge that costs something and sometimes says nothing."""

    def judge(A: dict[str, str], B: dict[str, str]) -> ps.Verdict:
        rng = random.Random(A["ID"] + B["ID"])  # noqa: S311
        if rng.random() < 0.01:
            return ps.Verdict.abstain("no answer in the reply", error_code="parse_error")
        gap = float(A["theta_true"]) - float(B["theta_true"])
        return ps.Verdict.win(1 if rng.random() < 1 / (1 + math.exp(-2 * gap)) else 2, cost=0.0003)

    essays = ps.synthetic_essays(80, seed=3)
    named = ps.FunctionJudge(judge, name="our judge")
    ps.rank(essays, judge=named, run=run, fit="laplace", max_comparisons=1100, progress="none")
    with serve_run(run, address=Address(port=0)) as base:
        shoot(browser, base, "watch", {"viewport": {"width": 1280, "height": 900}})
        shoot(browser, base, "watch-phone", PHONE, "dark")


def label(store: LabelStore, rounds: int) -> None:
    """Let Ann and Bob mostly agree on the better text, and Cleo click on the left without reading."""
    rng = random.Random(4)  # noqa: S311
    for _ in range(rounds):
        for person in store.labellers():
            found = store.next(person)
            if isinstance(found, LabelQuestion):
                better = "1" if found.swapped != bool(int(found.case_id[1:]) % 2) else "2"
                chosen = "1" if person.name == "Cleo" else rng.choices([better, "tie"], [6, 1])[0]
                store.answer(person, found.question_id, chosen)  # type: ignore[arg-type]
    # Nobody waits a minute for a picture.
    with store.run.transaction() as connection:
        for at, label_id in enumerate(connection.execute(select(labels.c.label_id)).scalars().all()):
            took = 1900 + 40 * at if at % 3 == 2 else 38_000 + 1300 * at
            connection.execute(update(labels).where(labels.c.label_id == label_id).values(decision_ms=took))


def shoot(
    browser: Browser,
    link: str,
    name: str,
    screen: dict[str, Any],
    scheme: str = "light",
    *,
    press: str = "",
    full_page: bool = False,
) -> None:
    """One picture."""
    context = browser.new_context(**screen, color_scheme=scheme)
    page = context.new_page()
    page.goto(link)
    if press:
        page.keyboard.press(press)
    page.screenshot(path=IMAGES / f"{name}.png", full_page=full_page)
    context.close()


if __name__ == "__main__":
    main()
