"""A key goes into a header and nowhere else: plant one, let everything go right and wrong, and search all of it."""

import asyncio
import base64
import contextlib
import io
import itertools
import json
import logging
import pickle
import traceback
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers import careless
from tests.providers.careless import CarelessSimulator

import pairscale as ps
from pairscale.core.addresses import without_login, without_logins
from pairscale.core.errors import InputError, JudgeError, PairscaleError
from pairscale.providers.catalog import provider_named
from pairscale.providers.keys import KEY_VARIABLES, Key, Redactor, _in_a_shell, find_key
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


@given(st.text(alphabet="abcXYZ019-_.~+/=", min_size=8, max_size=60), st.binary(max_size=9), st.binary(max_size=9))
def test_a_key_is_found_in_base64_wherever_it_begins(key, before, after):
    redactor = Redactor([Key(key)])
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for written in (
            encode(before + key.encode() + after).decode(),
            encode(before + key.encode()).decode().rstrip("="),
        ):
            assert redactor.text(f"<{written}>") == "<[key]>"


@given(st.text(alphabet="abcXYZ019-_.~+/=", min_size=8, max_size=60), st.data())
def test_a_key_is_found_with_any_letters_escaped(key, data):
    """As addresses have them: some or all letters, also twice."""
    ways = ("{0}", "%{1:02x}", "%{1:02X}", "%25{1:02X}")
    form = "".join(data.draw(st.sampled_from(ways)).format(letter, ord(letter)) for letter in key)
    assert Redactor([Key(key)]).text(f"<{form}>") == "<[key]>"


def test_lines_of_files():
    """A line without a key stays to the letter, whatever it is; one with a key stays a document."""
    redactor = Redactor([Key(PLANTED)])
    for line in (b'{"a" : "\\u00e9 \\/"}\n', b"\xff\xfe no document\n", b"", b"\n", b'"' + b"[" * 9_000 + b'\\u"\n'):
        assert redactor.line(line) == line
    for form in forms_of(PLANTED):
        clean = redactor.line(json.dumps({"custom_id": "k-1", "said": f"it is {form} é", form: 1}).encode() + b"\n")
        assert json.loads(clean) == {"custom_id": "k-1", "said": "it is [key] é", "[key]": 1}
        assert clean.endswith(b"\n")
        assert redactor.line(f"no document, but {form}\n".encode()) == b"no document, but [key]\n"


def test_ordinary_base64_and_percents_stay():
    redactor = Redactor([Key(PLANTED)])
    for text in (base64.b64encode(bytes(range(200))).decode(), "100% of %20 and %7E", "pl4nted zebra",
                 "a \\u002d b &#45; c \\/ d"):  # fmt: skip
        assert redactor.text(text) == text


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


def test_a_key_in_an_adaptive_run_and_its_report(tmp_path, monkeypatch, said):
    from pairscale.reporting.verbs import write_report

    with CarelessSimulator(faults=Faults(script=[500, 429])) as server:
        out = ps.adaptive_rank(
            TEXTS,
            backend="openai",
            model="gpt-4.1",
            judge_args={"api_key": PLANTED, "base_url": f"{server.url}/v1"},
            n_steps=8,
            fit_fn="laplace",
            progress="none",
            run=tmp_path / "run.db",
            retry_wait=0.001,
            output_file=tmp_path / "out",
            save_outputs=True,
        )
        write_report(out, tmp_path / "report.html", TEXTS, title="t", judge="openai:gpt-4.1")
    assert server.served >= 8
    shown = repr(out) + repr(out.state) + repr(vars(out.state)) + repr(out.logs) + said.text
    assert PLANTED not in shown
    assert PLANTED.encode() not in everything_written(tmp_path)


PASSWORD = "s3cr3t-Wort9"
BROKEN_DATABASES = [
    "postgresql+psycopg://ann:{}@host:54x32/db",
    "postgresql+psycopg://ann:{}@host:5432:5/db",
    "postgresql+psycopg://ann:{}@[::1/db",
    "postgresql+psycopg://ann:{}@127.0.0.1:1/db",
    "postgresql+psycopg://ann:{}@127.0.0.1:1/db?sslmode=nope",
    "postgresql+psycopg://ann:{}@127.0.0.1:1/db?password={}",
    "postgresql+psycopg://ann:x@{}@127.0.0.1:y/db",
    "postgresql+psycopg://ann:x@h:{}@127.0.0.1/db",
    "postgresql+psycopg:/ann:{}@host/db",
    "postgresql+psycopg:ann:{}@host/db",
    "postgresql+nodriver://ann:{}@host/db",
    "nosuch://ann:{}@host/db",
    "sqlite://ann:{}@host/run.db",
]
BROKEN_SERVERS = [
    "http://ann:{}@host:99x/v1", "http://ann:{}@host:999999/v1", "http://ann:{}@[::1/v1", "ftp://ann:{}@host/v1",
    "http://ann:{}@/v1", "http://ann:{}@ho st/v1", "http://ann:{}/x@host:y/v1", "ann:{}@host:x", "http://ann:{}@host/v1",
    "http://host:x/v1?api_key={}", "http:ann:{}@host:x", "http://ann:x {}@host/v1", "http://ann:{}'y@host:x/v1",
    'http://ann:x"{}@host:x/v1', "http://ann:{}?y@host:x/v1", "http://ann:{}/y@z@host:x/v1",
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


@pytest.mark.parametrize("address", BROKEN_DATABASES)
@pytest.mark.parametrize("line", [["status"], ["audit"], ["judge", "pairs.csv", "--judge", "lexical", "--run"]])
def test_a_malformed_database_address_in_the_shell(address, line, tmp_path, monkeypatch, capsys):
    from pairscale.cli import main

    monkeypatch.chdir(tmp_path)
    PAIRS.write_csv("pairs.csv")
    with pytest.raises(SystemExit) as ended:
        main([*line, address.replace("{}", PASSWORD)])
    out, err = capsys.readouterr()
    assert ended.value.code == 1
    assert err.splitlines()[-1].startswith("error: ")
    assert PASSWORD not in out + err
    assert PASSWORD.encode() not in everything_written(tmp_path)


@pytest.mark.parametrize("how", ["argument", "variable"])
@pytest.mark.parametrize("address", BROKEN_SERVERS)
def test_a_malformed_address_of_a_server_does_not_show_its_password(address, how, monkeypatch):
    address = address.replace("{}", PASSWORD)
    monkeypatch.setenv("PAIRSCALE_BASE_URL", address)
    with pytest.raises(InputError) as refused:
        ps.make_judge("compatible:m", judge_args={"base_url": address} if how == "argument" else {})
    assert PASSWORD not in all_told(refused.value)


@pytest.mark.parametrize("proxy", [*BROKEN_SERVERS[:7], "socks9://ann:{}@host"])
def test_a_malformed_proxy_does_not_show_its_password(proxy, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", proxy.replace("{}", PASSWORD))
    monkeypatch.delenv("http_proxy", raising=False)
    with pytest.raises(InputError, match="proxy of the environment") as refused:
        ps.make_judge("compatible:m", judge_args={"base_url": "http://host.invalid/v1"})
    assert PASSWORD not in all_told(refused.value)


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
    ("text", "clean"),
    [
        ("http://ann:pw@host:99x/v1 is none", "http://host:99x/v1 is none"),
        ("'https://ann:p@w@host/v1'", "'https://host/v1'"),
        ("postgresql+psycopg://ann:p/w@host:5/db", "postgresql+psycopg://host:5/db"),
        ("postgresql:/ann:pw@host/db", "postgresql:/host/db"),
        ("postgresql//ann:pw@host/db: no such run file", "postgresql//host/db: no such run file"),
        ("postgresql/ann:pw@host:a/db: no such run file", "postgresql/host:a/db: no such run file"),
        ("postgresql://ann:p@ss/word@host:x/db", "postgresql://host:x/db"),
        ("https://ann:pw@host/v1?mail=a@b.org", "https://host/v1?mail=a@b.org"),
        ("docs/https/ann@x.txt is no table", "docs/https/ann@x.txt is no table"),
        ("https://host/v1?api-key=abc&v=2", "https://host/v1?api-key=[key]&v=2"),
        ("https://host:8080/@me and a:b:c@d, ann@x.org", "https://host:8080/@me and a:b:c@d, ann@x.org"),
    ],
)
def test_what_an_error_shows_of_an_address(text, clean):
    assert str(PairscaleError(text)) == without_logins(text) == clean


@pytest.mark.parametrize(
    ("address", "clean"),
    [
        ("postgresql+psycopg://ann:it's mine@host:5432/db", "postgresql+psycopg://host:5432/db"),
        ('postgresql://ann:a"b?c#d/e@f@host/db', "postgresql://host/db"),
        ("http://ann@host/v1", "http://host/v1"),
        ("https://host:8000/v1?mail=a@b.org&key=abc", "https://host:8000/v1?mail=a@b.org&key=[key]"),
        ("https://[::1]:8000/@me", "https://[::1]:8000/@me"),
        ("runs/ann@school.db", "runs/ann@school.db"),
        ("C:\\runs\\ann@school.db", "C:\\runs\\ann@school.db"),
        ("C:/runs/ann@school.db", "C:/runs/ann@school.db"),
    ],
)
def test_an_address_that_stands_alone_shows_no_login(address, clean):
    assert without_login(address) == clean


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


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("compatible", "PAIRSCALE_API_KEY"), ("ollama", "OLLAMA_API_KEY"), ("vllm", "VLLM_API_KEY")],
)
def test_a_server_of_ones_own_may_have_a_key(provider, variable, monkeypatch):
    monkeypatch.setenv(variable, PLANTED)
    assert find_key(provider_named(provider), None).reveal() == PLANTED
    assert PLANTED not in Redactor().text(f"said {PLANTED}")


def test_a_key_and_the_command(tmp_path, monkeypatch, capsys):
    from pairscale.cli import main

    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    PAIRS.write_csv(tmp_path / "pairs.csv")
    for script in ([], [401], [429] * 9, [400] * 9):
        with CarelessSimulator(faults=Faults(script=script, retry_after="0")) as server:
            for more in (["--run", str(tmp_path / "run.db"), "--retries", "0"], ["--dry-run"]):
                with contextlib.suppress(SystemExit):
                    asked = ["judge", str(tmp_path / "pairs.csv"), "--judge", "openai:gpt-4.1"]
                    main([*asked, "--base-url", f"{server.url}/v1", *more])
    out, err = capsys.readouterr()
    assert PLANTED not in out + err
    assert "gpt-4.1" in out
    assert PLANTED.encode() not in everything_written(tmp_path)


# Where keys come from


def test_an_argument_goes_before_the_environment(monkeypatch):
    openai = provider_named("openai")
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        find_key(openai, None)
    monkeypatch.setenv("OPENAI_API_KEY", " from-environment ")
    assert find_key(openai, None).reveal() == "from-environment"
    assert find_key(openai, "").reveal() == "from-environment"
    assert find_key(openai, " given ").reveal() == "given"


@pytest.mark.parametrize(
    ("system", "typed"),
    [
        ("posix", "export OPENAI_API_KEY=…"),
        ("nt", 'PowerShell: $env:OPENAI_API_KEY = "…"; cmd: set OPENAI_API_KEY=…'),
    ],
)
def test_a_missing_key_says_what_to_type(system, typed, monkeypatch):
    monkeypatch.setattr(_in_a_shell, "__defaults__", (system,))
    with pytest.raises(InputError) as refused:
        find_key(provider_named("openai"), None)
    assert str(refused.value) == f"there is no key for openai; set OPENAI_API_KEY ({typed}), or give api_key"


def test_gemini_takes_the_second_name_of_its_sdk(monkeypatch):
    gemini = provider_named("gemini")
    monkeypatch.setenv("GOOGLE_API_KEY", PLANTED)
    assert find_key(gemini, None).reveal() == PLANTED
    assert PLANTED not in Redactor().text(f"said {PLANTED}")
    assert ps.check_llm_api_keys(verbose=False).filter(backend="gemini")["has_key"].to_list() == [True]
    monkeypatch.setenv("GEMINI_API_KEY", "the-first-name-1")
    assert find_key(gemini, None).reveal() == "the-first-name-1"
    monkeypatch.setenv("GEMINI_API_KEY", " ")
    assert find_key(gemini, None).reveal() == PLANTED
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        find_key(provider_named("openai"), None)


def test_who_needs_no_key_gets_none_of_another_s(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    assert find_key(provider_named("ollama"), None) is None
    assert find_key(provider_named("compatible"), None) is None
    with CarelessSimulator() as server:
        judge = ps.make_judge("compatible:my-model", judge_args={"base_url": f"{server.url}/v1"})
        assert "authorization" not in {name.lower() for name in asyncio.run(judge.client.headers())}


@pytest.mark.parametrize("key", ["with blank", "two\nlines", "späße-in-a-key", "null\0byte", "esc\x1b"])
def test_keys_that_cannot_be_are_refused_without_being_shown(key):
    with pytest.raises(InputError) as raised:
        find_key(provider_named("openai"), key)
    assert key not in str(raised.value)


def test_a_key_shows_itself_to_nobody():
    key = Key(PLANTED)
    assert PLANTED not in f"{key} {key!r} {[key]} {vars(Redactor([key])).keys()}"
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(key)


# Redaction


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-Ab12Cd34Ef56Gh78Ij90",
        "sk-ant-api03-aaaaBBBB1111cccc",
        "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
        "tgp_v1_abcdefghijklmnop1234",
        "Authorization: Bearer abcdefgh12345678",
    ],
)
def test_what_looks_like_a_key_goes_too(text):
    clean = Redactor().text(f"Incorrect API key provided: {text}. See the docs.")
    assert text.rpartition(" ")[2] not in clean
    assert "[key]" in clean
    assert "See the docs" in clean


@pytest.mark.parametrize(
    "text",
    [
        "key-performance-indicators matter",
        "the risk-averse sk- prefix",
        "SAMPLE_1 is better",
        "task_1234567890123456789",
    ],
)
def test_ordinary_words_stay(text):
    assert Redactor().text(text) == text


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


@pytest.mark.parametrize("before", ["", " ", "\n", "\t", '"', "\\", "x\n", "(", "é "])
@pytest.mark.parametrize("key", ["sk-proj-Ab12Cd34Ef56Gh78Ij90", "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"])
def test_what_looks_like_a_key_is_found_behind_any_escape(before, key):
    said = {"error": {"message": f"wrong key:{before}{key}"}}
    redactor = Redactor()
    assert redactor.document(json.dumps(said).encode()) == redactor.value(said)
    assert key not in json.dumps(redactor.document(json.dumps(said, ensure_ascii=False).encode()))


@pytest.mark.parametrize("letter", sorted(set(PLANTED)))
def test_a_key_is_found_however_its_letters_are_escaped(letter):
    content = json.dumps(["said", PLANTED]).replace(letter, f"\\u{ord(letter):04x}")
    assert json.loads(content)[1] == PLANTED
    assert Redactor([Key(PLANTED)]).document(content.encode())[1] == "[key]"


def test_what_is_no_document_is_a_text_without_keys():
    assert Redactor([Key(PLANTED)]).document(f"<html>{PLANTED}</html>".encode()) == "<html>[key]</html>"


def test_a_document_without_keys_stays_as_it_is():
    document = {"a": [1, 2.5, None, True, "text"], "b": {"c": "x"}}
    assert Redactor([Key(PLANTED)]).value(document) == document


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

    with CarelessSimulator(
        keys=["another"],
    ) as server:
        verdict, shown = asyncio.run(scene())
    assert verdict.failure == "judge"
    assert PLANTED not in repr(verdict) + str(verdict.raw_response)
    assert "key is not accepted" in shown
    assert PLANTED not in shown
    assert PLANTED.encode() not in (tmp_path / "run.db").read_bytes()


def test_a_document_that_is_nested_too_deeply_is_a_text_without_keys():
    nested = b"[" * 100_000 + b'"sk-proj-1234567890abcdefgh"' + b"]" * 100_000
    found = Redactor().document(nested)
    assert isinstance(found, str)
    assert "1234567890" not in found


@pytest.mark.parametrize(
    "address",
    [
        "https//ann:{}@host/v1", "http:/ann:{}@host/v1", "http//ann:{}@host/v1", "//ann:{}@host/v1", "ann:{}@host/v1",
        "https:ann:{}@host/v1", "http://http://ann:{}@host/v1", "htps://ann:{}@host/v1",
    ],
)  # fmt: skip
def test_a_password_in_an_address_is_refused_and_not_shown_however_it_is_misspelt(address):
    secret = "pAssw0rd-1234567890"
    with pytest.raises(InputError) as refused:
        ps.make_judge("compatible:m", judge_args={"base_url": address.format(secret), "api_key": "k" * 20})
    assert secret not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["https://host/accounts/a@b.org/v1", "http://host:8000/a@b/v1", "http://h/v1?api-version=a@b"]
)
def test_an_address_may_hold_an_at_sign_that_is_no_login(address):
    judge = ps.make_judge("compatible:m", judge_args={"base_url": address, "api_key": "k" * 20})
    assert judge.client.base_url == address
