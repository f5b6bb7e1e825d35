"""Many labellers at once: no label is lost, none is doubled."""

from __future__ import annotations

import asyncio
import collections
import random

import httpx
import pytest
from labelling import form_of, make_cases, sides

from pairscale.people import label_table

pytestmark = pytest.mark.slow


async def label(link: str, n_labels: list[int], rng: random.Random) -> dict[str, str]:
    """One labeller at a time of their own: labels until there is nothing left; what they believe to be saved."""
    believed: dict[str, str] = {}
    async with httpx.AsyncClient(base_url=link.partition("/l/")[0], timeout=600, follow_redirects=True) as http:
        page = (await http.get(link)).text
        while "Done. Thank you!" not in page:
            if 'id="answer"' not in page:  # waiting
                await asyncio.sleep(0.05)
                page = (await http.get(link)).text
                continue
            action, hidden = form_of(page, "answer")
            choice = rng.choice(["1", "2", "tie"])
            number = page.partition("Question ")[2].partition("?")[0]
            version = {"1": sides(page)[0], "2": sides(page)[1], "tie": "tie"}[choice]
            sent = [http.post(action, data={**hidden, "choice": choice})]
            if rng.random() < 0.05:  # an impatient one clicks twice
                sent.append(http.post(action, data={**hidden, "choice": choice}))
            replies = await asyncio.gather(*sent)
            assert {reply.status_code for reply in replies} == {200}
            believed[f"task-{number}::clearer"] = {"one": "1", "two": "2", "tie": "tie"}[version]
            n_labels[0] += 1
            page = (await http.get(link)).text
    return believed


def all_at_once(serve, n_people: int, n_cases: int, k: int) -> None:
    people = [f"p{i}" for i in range(n_people)]
    store, where = serve(make_cases(n_cases), people, labels_per_case=k)
    n_labels = [0]

    async def work() -> list[dict[str, str]]:
        return await asyncio.gather(*(label(where.links[name], n_labels, random.Random(name)) for name in people))

    believed = dict(zip(people, asyncio.run(work()), strict=True))
    rows = label_table(store).rows(named=True)
    assert n_labels[0] == len(rows) == n_cases * k
    saved: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for row in rows:
        assert row["case_id"] not in saved[row["labeller"]]
        saved[row["labeller"]][row["case_id"]] = row["preferred"]
    assert {name: saved[name] for name in people} == believed
    assert set(collections.Counter(row["case_id"] for row in rows).values()) == {k}


def test_ten_labellers_at_once(serve):
    all_at_once(serve, n_people=10, n_cases=30, k=4)


@pytest.mark.validate
def test_fifty_labellers_and_five_thousand_labels(serve):
    all_at_once(serve, n_people=50, n_cases=1000, k=5)
