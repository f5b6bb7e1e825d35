"""A key goes into a header and nowhere else: plant one, let everything go right and wrong, and search all of it."""

import asyncio
import base64
import contextlib
import io
import itertools
import json
import logging
import traceback
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers import careless
from tests.providers.careless import CarelessSimulator

import pairscale as ps
from pairscale.core.errors import JudgeError, PairscaleError
from pairscale.providers.keys import KEY_VARIABLES, Key, Redactor
from pairscale.runtime import ask_once
from pairscale.testing import Behaviour, Faults, ProviderSimulator

PLANTED = "pl4nted-Zebra_9817236450-key"  # looks like no provider's: only being known gives it away
MODELS = {
    "openai": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro-preview",
    "together": "deepseek-ai/DeepSeek-V3",
    "ollama": "qwen3:32b",
    "compatible": "my-model",
}
FATES = ["all of it", "ok", 400, 401, 429, 500, "reset", "truncated", "slow"]
SILENT = {"empty_answer", "parse_error", "truncated"}
CODES = {  # what each can say: Anthropic's filter is a refusal, Gemini's refusal a filter, and Ollama has words alone
    "openai": SILENT | {"refusal", "content_filter"},
    "anthropic": SILENT | {"refusal"},
    "gemini": SILENT | {"content_filter"},
    "together": SILENT | {"refusal", "content_filter"},
    "ollama": SILENT | {"refusal"},
    "compatible": SILENT | {"refusal", "content_filter"},
}
WAYS = ["refusal_rate", "malformed_rate", "empty_rate", "truncated_rate", "filtered_rate", "echo_rate"]
TEXTS = [{"ID": name, "text": f"Text {name}."} for name in "abcd"]
PAIRS = ps.make_pairs(TEXTS)


@pytest.fixture(autouse=True)
def quick(fast_limits):
    pass


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.DEBUG)
    return caplog


def address(server: ProviderSimulator, provider: str) -> str:
    return server.url + ("" if provider in {"anthropic", "gemini", "ollama"} else "/v1")


def told(error: BaseException) -> str:
    """Everything that an exception can show."""
    parts = [str(error), repr(error), repr(error.args), "".join(traceback.format_exception(error))]
    for other in (error.__cause__, error.__context__):
        parts += [repr(other), repr(getattr(other, "args", "")), repr(getattr(other, "raw", ""))]
    return "\n".join(parts)


def everything_written(folder) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def forms_of(key: str) -> list[str]:
    """Ways in which a careless server may write a key: plain, url-encoded, in base64, alone and behind a user."""
    every = "".join(f"%{ord(letter):02X}" for letter in key)
    forms = [key, every, every.lower(), quote(key, safe=""), quote(key.replace("-", "%2D"), safe="%")]
    forms += [every.replace("%", "%25")]
    for text in (key, f":{key}", f"me:{key}", f"ann:{key}", f"{key}:", f"{key}:x", f"ben@x.org:{key}:more"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms += [encode(text.encode()).decode(), encode(text.encode()).decode().rstrip("=")]
    return list(dict.fromkeys(forms))


def traces_of(key: str) -> list[str]:
    """What must be nowhere: the key itself, and the letters of base64 that are its own wherever it begins."""
    plain = [key, "".join(f"%{ord(letter):02X}" for letter in key), "".join(f"%{ord(letter):02x}" for letter in key)]
    inside = [base64.b64encode(b"x" * at + key.encode() + b"yyy").decode()[at + 2 : -6] for at in range(3)]
    assert min(map(len, inside)) > 30
    return [
        *plain,
        quote(key.replace("-", "%2D"), safe="%"),
        *inside,
        *(text.replace("+", "-").replace("/", "_") for text in inside),
    ]


@pytest.mark.parametrize("around", ["{}", "said {}!", "key={}&x=1", "Basic {}", '"{}"'])
def test_an_encoded_key_is_hidden(around):
    redactor = Redactor([Key(PLANTED)])
    for form in forms_of(PLANTED):
        text = around.format(form)
        for clean in (redactor.text(text), json.dumps(redactor.document(json.dumps({"m": text}).encode())["m"])):
            assert "[key]" in clean, form
            assert not any(trace in clean for trace in traces_of(PLANTED)), form
            assert not any(form[at : at + 12] in clean for at in range(len(form) - 12)), form


@contextlib.contextmanager
def encoding(server):
    """Let a server that repeats the key write it in another way at every answer."""
    forms, plain = itertools.cycle(forms_of(PLANTED)), careless.with_key
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(careless, "with_key", lambda document, key: plain(document, next(forms) if key else key))
        yield


CASES = [*((provider, "argument") for provider in MODELS), ("anthropic", "environment")]


@pytest.mark.slow_except("openai-argument")
@pytest.mark.parametrize(("provider", "where"), CASES)
def test_a_planted_key_is_nowhere(provider, where, tmp_path, monkeypatch, said):
    settings = {"headers": {"X-Team-Token": f"team-{PLANTED}"}}
    if where == "argument":
        settings["api_key"] = PLANTED
    else:
        monkeypatch.setenv(KEY_VARIABLES[provider], f" {PLANTED}\n")
    shown, run = io.StringIO(), tmp_path / "run.db"
    # A careless provider: the key is in every sentence that it says, written in one way after the other.
    with CarelessSimulator() as server, encoding(server), contextlib.redirect_stderr(shown):
        settings["base_url"] = address(server, provider)
        for fate in FATES:
            everything = fate == "all of it"
            server.behaviour = Behaviour(**(dict.fromkeys(WAYS, 1 / 7) if everything else {}), seed=3)
            server.faults = Faults(script=[] if everything else [fate] * 3, slow_s=60)
            server.served = 0
            patience = {"timeout": 0.15} if fate == "slow" else {}  # else a busy machine may take as long
            judge = ps.make_judge(f"{provider}:{MODELS[provider]}", judge_args=settings | patience)
            print(judge, repr(judge), repr(judge.client), judge.condition, judge.preview(pair()), file=shown)
            texts = [
                {"ID": f"{name}-{fate}", "text": f"Text {name} of {fate}."}
                for name in ("abcdefghi" if everything else "abc")
            ]
            try:
                done = ps.submit_pairs(
                    ps.make_pairs(texts), judge, run=run, save_path=tmp_path / "saved.csv", include_raw=True,
                    progress=False, retries=1, retry_wait=0.001, concurrency=3,
                )  # fmt: skip
            except PairscaleError as error:
                print(told(error), file=shown)
            else:
                if everything:
                    assert set(done.failed_pairs["error_code"]) == CODES[provider]
                print(done, repr(done), done.provenance, file=shown)
                for table in (done.results, done.failed_pairs, done.failed_attempts):
                    print(table.to_dicts(), file=shown)
            assert server.served >= 1
    with ps.open_run(run, write=True) as store:
        print(store.conditions().to_dicts(), store.results(raw=True).to_dicts(), file=shown)
        store.set_meta("note", "held open")
        written = everything_written(tmp_path)  # with the write-ahead log
        assert [trace for trace in traces_of(PLANTED) if trace.encode() in written] == []
    for ending in ("csv", "jsonl"):
        ps.export(run, tmp_path / f"export.{ending}")
    report = ps.audit(run)
    assert report.passed
    written = everything_written(tmp_path)
    everything = shown.getvalue() + said.text + repr([record.__dict__ for record in said.records]) + str(report)
    for trace in traces_of(PLANTED):
        assert trace not in everything
        assert trace.encode() not in written
    assert written.count(b"[key]") > len(FATES)  # the replies are there, without it


def pair() -> ps.JudgePair:
    return ps.JudgePair(TEXTS[0], TEXTS[1], "a:b#1")


PASSWORD = "s3cr3t-Wort9"
BROKEN_DATABASES = [
    "postgresql+psycopg://ann:{}@host:54x32/db", "postgresql+psycopg://ann:{}@host:5432:5/db",
    "postgresql+psycopg://ann:{}@[::1/db", "postgresql+psycopg://ann:{}@127.0.0.1:1/db",
    "postgresql+psycopg://ann:{}@127.0.0.1:1/db?sslmode=nope",
    "postgresql+psycopg://ann:{}@127.0.0.1:1/db?password={}", "postgresql+psycopg://ann:x@{}@127.0.0.1:y/db",
    "postgresql+psycopg://ann:x@h:{}@127.0.0.1/db", "postgresql+psycopg:/ann:{}@host/db",
    "postgresql+psycopg:ann:{}@host/db", "postgresql+nodriver://ann:{}@host/db", "nosuch://ann:{}@host/db",
    "sqlite://ann:{}@host/run.db",
]  # fmt: skip


def all_told(error: BaseException) -> str:
    """Also the causes of causes."""
    parts, seen = [told(error)], error.__cause__ or error.__context__
    while seen is not None:
        parts.append(told(seen))
        seen = seen.__cause__ or seen.__context__
    return "\n".join(parts)


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("address", BROKEN_DATABASES)
def test_a_malformed_database_address_does_not_show_its_password(address, write, tmp_path, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PairscaleError) as refused:
        ps.open_run(address.replace("{}", PASSWORD), write=write)
    assert PASSWORD not in all_told(refused.value)
    assert PASSWORD not in said.text
    assert list(tmp_path.iterdir()) == []


def test_a_proxy_that_repeats_its_password(tmp_path, monkeypatch):
    """It answers with the password as it got it, and in the form of its header."""
    with ProviderSimulator() as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://ann:{PASSWORD}@{server.url.removeprefix('http://')}")
        monkeypatch.delenv("http_proxy", raising=False)
        judge = ps.make_judge("compatible:m", judge_args={"base_url": "http://host.invalid/v1"})
        shown = repr(judge) + repr(judge.client) + str(judge.condition)
        sent = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
        assert judge.client.redactor.text(f"no {PASSWORD}, no {sent}") == "no [key], no [key]"
        with contextlib.suppress(PairscaleError):
            ps.submit_pairs(PAIRS, judge, run=tmp_path / "run.db", progress=False, retries=0)
    assert PASSWORD not in shown
    for form in (PASSWORD, sent):
        assert form.encode() not in everything_written(tmp_path)


@pytest.mark.parametrize(
    "given", [f"api_key={PLANTED}", f"api-key={PLANTED}", f"token={PLANTED}", f"apikey={PLANTED}", f"API_KEY={PLANTED}"]
)
def test_a_key_on_the_command_line_is_refused(given, capsys):
    from pairscale.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["compare", "a", "b", "--judge", "openai:gpt-4.1", "--judge-arg", given])
    out, err = capsys.readouterr()
    assert ended.value.code == 1
    assert "a key on the command line" in err
    assert PLANTED not in out + err


# Redaction


@given(
    st.text(alphabet="abcXYZ019-_.", min_size=6, max_size=40),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=8,
    ),
    st.integers(0, 3),
)
def test_no_document_keeps_a_key(key, document, depth):
    planted = [f"said {key}!", {key: [document, {"x": f"{key}{key}"}]}]
    for _ in range(depth):
        planted = {"more": planted}
    redactor = Redactor([Key(key)])
    clean = redactor.value(planted)
    assert key not in repr(clean).replace("[key]", "")
    for plain in (True, False):  # as it comes from a server, which may write letters as it likes
        content = json.dumps(planted, ensure_ascii=plain)
        assert redactor.document(content.encode("utf-8", "surrogatepass")) == redactor.value(json.loads(content))


def test_a_key_that_is_not_accepted_is_not_shown(tmp_path):
    """Neither in the verdict, nor in the error that ends a run, nor in the run file."""

    async def scene() -> tuple[ps.Verdict, str]:
        judge = ps.make_judge("openai:gpt-4.1", judge_args={"base_url": f"{server.url}/v1", "api_key": PLANTED})
        verdict = await ask_once(judge, pair())
        pairs = [{"ID1": "a", "text1": "x", "ID2": "b", "text2": "y"}]
        try:
            await ps.submit_pairs_async(pairs, judge, run=tmp_path / "run.db", progress=False)
        except JudgeError as error:
            return verdict, told(error)
        raise AssertionError

    with CarelessSimulator(keys=["another"]) as server:
        verdict, shown = asyncio.run(scene())
    assert verdict.failure == "judge"
    assert PLANTED not in repr(verdict) + str(verdict.raw_response)
    assert "key is not accepted" in shown
    assert PLANTED not in shown
    assert PLANTED.encode() not in (tmp_path / "run.db").read_bytes()
