"""The page over HTTP: blinded, escaped, guarded, and saved before it continues."""

import io
import json

import httpx
import polars as pl
import pytest
from labelling import Visitor, form_of, get, make_cases, write_manifest

from pairscale.people import Case, read_cases
from pairscale.people._guard import MOST_BYTES, POLICY


@pytest.fixture
def site(serve):
    return serve(make_cases(3), labels_per_case=2, instructions="Read **both**.")


# Labelling


def test_a_labeller_labels_everything_and_the_labels_are_in_the_manifests_order(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        assert "<strong>both</strong>" in ann.page
        assert 'class="guide" open' in ann.page
        for done in range(3):
            assert f"{done} by you · {done} of 6 in all" in ann.page
            ann.choose_version("two")
        assert "Done. Thank you!" in ann.page
    assert [row["preferred"] for row in store.run.labels().to_dicts()] == ["2", "2", "2"]
    assert {row["labeller"] for row in store.run.labels().to_dicts()} == {"ann"}


def test_the_same_form_twice(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        action, hidden = form_of(ann.page, "answer")
        ann.http.post(action, data={**hidden, "choice": "1"})
        before = store.run.labels().to_dicts()
        again = ann.http.post(action, data={**hidden, "choice": "2"})
        assert "That one was answered already" in again.text
        assert store.run.labels().to_dicts() == before


# Blinding and escaping


def test_no_key_no_variant_and_no_id_reaches_a_labeller(serve, tmp_path):
    secret = [Case(f"gpt-secret-{i}::x", f"gpt-secret-{i}", "clearer", "Q", "one", "two") for i in range(4)]
    manifest = write_manifest(
        tmp_path / "cases.jsonl", secret, first_variant="champion-model", variant_a="champion-model"
    )
    _, where = serve(read_cases(manifest), people=["ann"])
    said = []
    with Visitor(where.links["ann"]) as ann:
        said.append(ann.page)
        while ann.has_question:
            reply = ann.send(choice="1")
            said += [reply.text, *(str(step.headers) for step in [reply, *reply.history])]
    assert len(said) > 4
    for text in said:
        assert not [word for word in ("gpt-secret", "champion", "first_variant", "variant") if word in text]


# Guards


def test_headers_of_every_answer(site):
    _, where = site
    for path in (
        "/",
        "/static/page.css",
        "/nothing",
        "/l/wrong",
        where.links["ann"],
        where.owner,
        f"{where.owner}/labels.csv",
    ):
        headers = get(where.url + path if path.startswith("/") else path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        kept = "public, max-age=86400" if "/static/" in path else "no-store"
        assert headers["cache-control"] == kept
        assert "server" not in headers
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:99", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200), ("10.1.2.3", 200),
        ("evil.example", 400), ("localhost.evil.example", 400), ("", 400), ("127.0.0.1.evil.example:80", 400),
    ],
)  # fmt: skip
def test_foreign_names_are_refused(site, host, status):
    assert get(site[1].url, headers={"host": host}).status_code == status


def test_forms_without_a_signature_of_this_page_are_refused(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann, Visitor(where.links["bob"]) as bob:
        action, hidden = form_of(ann.page, "answer")
        _, others = form_of(bob.page, "answer")
        _, undo = form_of(ann.page, "undo")
        assert ann.http.post(action, data={**hidden, "choice": "1", "csrf": ""}).status_code == 422
        for csrf in ("x" * 64, others["csrf"], undo["csrf"], hidden["csrf"][:-1], "ü"):
            reply = ann.http.post(action, data={**hidden, "choice": "1", "csrf": csrf})
            assert reply.status_code == 403, csrf
        assert ann.http.post(action, data={**hidden, "choice": "1", "question": others["question"]}).status_code == 403
        assert ann.http.post(action.replace("answer", "undo"), data={"csrf": hidden["csrf"]}).status_code == 403
    assert store.run.labels().to_dicts() == []


def test_posts_from_other_sites_are_refused(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        action, hidden = form_of(ann.page, "answer")
        for origin, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
            reply = ann.http.post(action, data={**hidden, "choice": "1"}, headers={"sec-fetch-site": origin})
            assert reply.status_code == status
    assert len(store.run.labels().to_dicts()) == 1


def test_too_much_is_refused(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        action, hidden = form_of(ann.page, "answer")
        assert ann.send(choice="1", comment="x" * 5001).status_code == 422
        large = "&".join(f"{name}={value}" for name, value in hidden.items()) + "&choice=1&comment=" + "x" * MOST_BYTES
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert ann.http.post(action, content=large, headers=form).status_code == 413

        def in_pieces():
            yield from (large[at : at + 1000].encode() for at in range(0, len(large), 1000))

        assert ann.http.post(action, content=in_pieces(), headers=form).status_code == 413  # says no length
    assert store.run.labels().to_dicts() == []


def test_strangers(site):
    _, where = site
    ann = where.links["ann"]
    owners = where.owner.rpartition("/")[2]
    for path in (f"{ann}x", ann[:-1], f"{where.url}/l/{owners}", f"{where.url}/owner/{ann.rpartition('/')[2]}"):
        assert get(path).status_code == 404
    for path in ("/docs", "/redoc", "/openapi.json", "/l/", "/static/", "/static/../app.py", "/static/%2e%2e/app.py"):
        assert get(where.url + path).status_code == 404
    assert "open the link that you were given" in get(where.url).text


# The owner


def test_the_owner_sees_progress_and_adds_a_labeller(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        ann.choose_version("one")
    with httpx.Client(base_url=where.url, follow_redirects=True, timeout=600) as owner:
        page = owner.get(where.owner).text
        assert "1 of 6 labels, 2 for each case" in page
        action = f"{where.owner}/labellers"
        assert owner.post(action, data={"name": "Eve", "csrf": "wrong"}).status_code == 403
        csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
        assert owner.post(f"{where.links['ann']}/labellers", data={"name": "Eve", "csrf": csrf}).status_code == 404
        assert "Eve" in owner.post(action, data={"name": "Eve", "csrf": csrf}).text
        assert owner.post(action, data={"name": " ", "csrf": csrf}).status_code == 422
    assert [one.name for one in store.labellers()] == ["ann", "bob", "Eve"]


def test_downloads(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        ann.send(choice="1", comment='=HYPERLINK("x"), "quoted"\nline')
        ann.send("skip", other_reason="@SUM(1)")
        ann.send(choice="2", comment="")
    lines = [json.loads(line) for line in get(f"{where.owner}/labels.jsonl").text.splitlines()]
    wanted = "case_id task_id criterion labeller preferred comment skipped decision_ms labelled_at".split()
    assert [list(line) for line in lines] == [wanted] * 3
    assert [{name: row[name] for name in wanted} for row in store.run.labels().to_dicts()] == lines
    reply = get(f"{where.owner}/labels.csv")
    assert reply.headers["content-disposition"] == 'attachment; filename="labels.csv"'
    table = pl.read_csv(io.StringIO(reply.text))
    assert table.columns == wanted
    assert table["comment"].to_list() == ['\'=HYPERLINK("x"), "quoted"\nline', None, None]
    assert table["skipped"].to_list() == [None, "'@SUM(1)", None]
    assert table["case_id"].to_list() == [row["case_id"] for row in store.run.labels().to_dicts()]
