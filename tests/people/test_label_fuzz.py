"""The page fuzzed through its own description: whatever is sent, there is no answer of 500 and above."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from labelling import make_cases

from pairscale.people import LabelStore
from pairscale.people._guard import signature
from pairscale.people.app import create_app

pytestmark = pytest.mark.slow

LINKS = "/l/{token}", "/l/{token}/answer", "/l/{token}/undo"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The application itself, with a labeller, and its description."""
    cases = make_cases(30)
    with LabelStore(tmp_path_factory.mktemp("fuzz") / "labels.db", cases, labels_per_case=2, seed=1) as store:
        ann = store.add_labeller("ann")
        app = create_app(store, instructions="Read.")
        yield app, store, ann


def operations(app):
    return [(path, method) for path, methods in app.openapi()["paths"].items() for method in methods]


@pytest.mark.parametrize("token", ["any", "right"])
@pytest.mark.parametrize("place", range(7))
def test_no_answer_is_a_server_error(served, place, token):
    app, store, ann = served
    path, method = operations(app)[place]
    schema = schemathesis.openapi.from_dict(app.openapi())
    schema.app = app
    seen: set[int] = set()

    @given(case=schema[path][method.upper()].as_strategy())
    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def fuzz(case):
        if token == "right" and "token" in (case.path_parameters or {}):
            case.path_parameters["token"] = ann.token if path in LINKS else store.owner_token
        reply = case.call(headers={"host": "localhost"})
        seen.add(reply.status_code)
        assert reply.status_code < 500, reply.text

    fuzz()
    assert seen
    if token == "right" and method == "get":
        assert 200 in seen


WORDS = st.text(max_size=60)


@given(
    fields=st.dictionaries(
        st.sampled_from(["choice", "comment", "reason", "other_reason", "elapsed", "question"]), WORDS
    ),
    choice=st.sampled_from(["1", "2", "tie", "skip"]),
    is_signed=st.booleans(),
)
@settings(
    max_examples=80,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_answers_of_any_kind_are_taken_or_refused_and_never_half(served, fields, choice, is_signed):
    """Rightly signed, too: what is behind the signature has to hold by itself."""
    app, store, ann = served
    question = store.next(ann)
    number = fields.pop("question", str(question.question_id) if not isinstance(question, str) else "1")
    data = {"choice": choice, **fields, "question": number}
    data["csrf"] = signature(store.secret, "answer", ann.token, number.strip()) if is_signed else "x"
    before = len(store.run.labels().to_dicts())
    reply = _call(app, f"/l/{ann.token}/answer", data)
    assert reply.status_code in {303, 403, 422}
    assert len(store.run.labels().to_dicts()) - before in ({0, 1} if reply.status_code == 303 else {0})
    if len(store.run.labels().to_dicts()) > 20:
        while store.undo(ann):
            pass


def _call(app, path, data) -> httpx.Response:
    import asyncio

    async def call():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post(path, data=data)

    return asyncio.run(call())
