"""The page over HTTP: blinded, escaped, guarded, and saved before it continues."""

import io
import json

import httpx
import polars as pl
import pytest
from labelling import Visitor, form_of, get, make_cases, sides, write_manifest

from pairscale.core.errors import StoreFullError
from pairscale.people import Address, Case, read_cases
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
    assert [row["preferred"] for row in store.rows()] == ["2", "2", "2"]
    assert {row["labeller"] for row in store.rows()} == {"ann"}


def test_an_answer_is_saved_before_the_next_page(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        action, hidden = form_of(ann.page, "answer")
        reply = ann.http.post(
            action, data={**hidden, "choice": "tie", "comment": "  équal\x1b[1m "}, follow_redirects=False
        )
        assert reply.status_code == 303
        (row,) = store.rows()
        assert (row["preferred"], row["comment"]) == ("tie", "équal[1m")
        assert reply.headers["location"] == action.removesuffix("/answer")


def test_the_time_that_the_page_measured(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        ann.send(choice="1", elapsed="0")
        ann.send(choice="1", elapsed="²")  # nonsense counts as nothing
    assert store.rows()[0]["decision_ms"] == 0
    assert store.rows()[1]["decision_ms"] > 0


def test_the_same_form_twice(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        action, hidden = form_of(ann.page, "answer")
        ann.http.post(action, data={**hidden, "choice": "1"})
        before = store.rows()
        again = ann.http.post(action, data={**hidden, "choice": "2"})
        assert "That one was answered already" in again.text
        assert store.rows() == before


def test_skipping_needs_a_reason(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        assert "please choose or write a reason" in ann.send("skip").text
        assert store.rows() == []
        ann.send("skip", reason="I cannot tell which is better")
        ann.send("skip", reason="I cannot tell which is better", other_reason=" In a\nlanguage I cannot read ")
    assert [row["skipped"] for row in store.rows()] == ["I cannot tell which is better", "In a\nlanguage I cannot read"]


def test_undo(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        assert "nothing to take back" in ann.send("undo").text
        first = sides(ann.page)
        ann.send(choice="1")
        reply = ann.send("undo")
        assert "Taken back" in reply.text
        assert sides(reply.text) == first
        assert store.rows() == []


def test_without_ties(serve):
    store, where = serve(make_cases(2), ties=False)
    with Visitor(where.links["ann"]) as ann:
        assert 'value="tie"' not in ann.page
        reply = ann.send(choice="tie")
        assert reply.status_code == 422
        assert "no ties here" in reply.text
    assert store.rows() == []


def test_waiting_looks_again_by_itself(serve):
    _, where = serve(make_cases(1))
    with Visitor(where.links["ann"]), httpx.Client(timeout=600) as bob:
        reply = bob.get(where.links["bob"])
        assert "with other people now" in reply.text
        assert reply.headers["refresh"] == "15"


def test_plain_texts(serve, tmp_path):
    case = Case("c", "t", "clearer", "", "# not a *heading*", "")
    for plain, heading in ((True, "# not a *heading*"), (False, "<h3>not a <em>heading</em></h3>")):
        _, where = serve([case], plain=plain, path=tmp_path / f"{plain}.db")
        page = get(where.links["ann"]).text
        assert heading in page
        assert "(empty)" in page


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


def test_what_is_hostile_is_shown_as_text(serve):
    bad = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
    _, where = serve(
        [Case(bad, bad, bad, bad, bad, f"[x](javascript:alert(3)) ![y](https://evil.example/p.png) {bad}")], [bad]
    )
    page = get(where.links[bad]).text
    owner = get(where.owner).text
    for text in (page, owner):
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "&lt;script&gt;alert(1)" in text
    assert "javascript:alert(3)" in page
    assert 'href="javascript' not in page
    assert 'src="https://evil' not in page


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


def test_the_names_of_an_address():
    assert Address().names() == ["127.0.0.1"]
    assert Address(url="https://labels.example.org/").names() == ["127.0.0.1", "labels.example.org"]
    assert Address(url="https://labels.example.org/").base(5) == "https://labels.example.org"
    assert Address("::1").base(5) == "http://[::1]:5"
    assert [Address(host).is_open for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "192.168.0.2")] == [
        False, False, False, True, True,
    ]  # fmt: skip


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
    assert store.rows() == []


def test_posts_from_other_sites_are_refused(site):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        action, hidden = form_of(ann.page, "answer")
        for origin, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
            reply = ann.http.post(action, data={**hidden, "choice": "1"}, headers={"sec-fetch-site": origin})
            assert reply.status_code == status
    assert len(store.rows()) == 1


def test_a_question_of_somebody_else(site):
    """Even signed rightly, for those who know the secret."""
    from pairscale.people._guard import signature

    store, where = site
    with Visitor(where.links["ann"]) as ann, Visitor(where.links["bob"]) as bob:
        action, _ = form_of(ann.page, "answer")
        theirs = form_of(bob.page, "answer")[1]["question"]
        token = action.split("/")[2]
        csrf = signature(store.secret, "answer", token, theirs)
        reply = ann.http.post(action, data={"question": theirs, "csrf": csrf, "choice": "1"})
        assert reply.status_code == 422
        assert "question belongs to another labeller" in reply.text
    assert store.rows() == []


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
    assert store.rows() == []


@pytest.mark.parametrize(
    "fields",
    [
        {"choice": "3"}, {"choice": ""}, {"question": "x"}, {"question": "-1"}, {"question": str(2**70)},
        {"csrf": "x" * 300}, {"comment": "x" * 6000}, {"reason": "x" * 300, "choice": "skip"},
    ],
)  # fmt: skip
def test_nonsense_is_refused(site, fields):
    store, where = site
    with Visitor(where.links["ann"]) as ann:
        assert ann.send(**{"choice": "1", **fields}).status_code == 422
    assert store.rows() == []


def test_strangers(site):
    _, where = site
    ann = where.links["ann"]
    owners = where.owner.rpartition("/")[2]
    for path in (f"{ann}x", ann[:-1], f"{where.url}/l/{owners}", f"{where.url}/owner/{ann.rpartition('/')[2]}"):
        assert get(path).status_code == 404
    for path in ("/docs", "/redoc", "/openapi.json", "/l/", "/static/", "/static/../app.py", "/static/%2e%2e/app.py"):
        assert get(where.url + path).status_code == 404
    assert "open the link that you were given" in get(where.url).text


def test_a_full_disk_is_told_and_nothing_goes_on(site, monkeypatch, caplog):
    store, where = site
    with Visitor(where.links["ann"]) as ann:

        def full(*_all, **_more):
            raise StoreFullError("the disk is full")

        monkeypatch.setattr(store.run, "transaction", full)
        reply = ann.send(choice="1")
    assert reply.status_code == 503
    assert "could not be saved" in reply.text
    assert "could not be saved: the disk is full" in caplog.text
    monkeypatch.undo()
    assert store.rows() == []


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
    assert [{name: row[name] for name in wanted} for row in store.rows()] == lines
    reply = get(f"{where.owner}/labels.csv")
    assert reply.headers["content-disposition"] == 'attachment; filename="labels.csv"'
    table = pl.read_csv(io.StringIO(reply.text))
    assert table.columns == wanted
    assert table["comment"].to_list() == ['\'=HYPERLINK("x"), "quoted"\nline', None, None]
    assert table["skipped"].to_list() == [None, "'@SUM(1)", None]
    assert table["case_id"].to_list() == [row["case_id"] for row in store.rows()]
