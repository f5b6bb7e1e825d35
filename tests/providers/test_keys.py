"""A key goes into a header and nowhere else: plant one, let everything go right and wrong, and search all of it."""

import asyncio
import contextlib
import io
import json
import logging
import pickle
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairscale as ps
from pairscale.errors import InputError, JudgeError, PairscaleError
from pairscale.providers.keys import KEY_VARIABLES, Key, Redactor, _in_a_shell, find_key
from pairscale.providers.registry import provider_named
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


CASES = [*((provider, "argument") for provider in MODELS), ("anthropic", "environment")]


@pytest.mark.slow_except("openai-argument", "gemini-argument")
@pytest.mark.parametrize(("provider", "where"), CASES)
def test_a_planted_key_is_nowhere(provider, where, tmp_path, monkeypatch, said):
    settings = {"headers": {"X-Team-Token": f"team-{PLANTED}"}}
    if where == "argument":
        settings["api_key"] = PLANTED
    else:
        monkeypatch.setenv(KEY_VARIABLES[provider], f" {PLANTED}\n")
    shown, run = io.StringIO(), tmp_path / "run.db"
    # A careless provider: the key is in every sentence that it says.
    with ProviderSimulator(repeats_keys=True) as server, contextlib.redirect_stderr(shown):
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
        assert PLANTED.encode() not in everything_written(tmp_path)  # with the write-ahead log
    for ending in ("csv", "jsonl"):
        ps.export_run(run, tmp_path / f"export.{ending}")
    assert PLANTED not in shown.getvalue()
    assert PLANTED not in said.text
    assert PLANTED not in repr([record.__dict__ for record in said.records])
    written = everything_written(tmp_path)
    assert PLANTED.encode() not in written
    assert written.count(b"[key]") > len(FATES)  # the replies are there, without it


def pair() -> ps.JudgePair:
    return ps.JudgePair(TEXTS[0], TEXTS[1], "a:b#1")


def test_a_key_in_an_adaptive_run_and_its_report(tmp_path, monkeypatch, said):
    from pairscale.report import write_report

    with ProviderSimulator(repeats_keys=True, faults=Faults(script=[500, 429])) as server:
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


def test_a_key_in_the_command(tmp_path, capsys):
    from pairscale.cli import main

    PAIRS.write_csv(tmp_path / "pairs.csv")
    for script in ([], [401], [429] * 9, [400] * 9):
        with ProviderSimulator(repeats_keys=True, faults=Faults(script=script, retry_after="0")) as server:
            for more in (["--run", str(tmp_path / "run.db"), "--retries", "0"], ["--dry-run"]):
                with contextlib.suppress(SystemExit):
                    asked = ["judge", str(tmp_path / "pairs.csv"), "--judge", "openai:gpt-4.1"]
                    main([*asked, "--base-url", f"{server.url}/v1", "--judge-arg", f"api_key={PLANTED}", *more])
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
    assert find_key(openai, Key("made")).reveal() == "made"


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
    with ProviderSimulator(repeats_keys=True) as server:
        judge = ps.make_judge("compatible:my-model", judge_args={"base_url": f"{server.url}/v1"})
        assert "authorization" not in {name.lower() for name in judge.client.headers()}


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
        verdict, _ = await ask_once(judge, pair(), 1)
        pairs = [{"ID1": "a", "text1": "x", "ID2": "b", "text2": "y"}]
        try:
            await ps.submit_pairs_async(pairs, judge, run=tmp_path / "run.db", progress=False)
        except JudgeError as error:
            return verdict, told(error)
        raise AssertionError

    with ProviderSimulator(keys=["another"], repeats_keys=True) as server:
        verdict, shown = asyncio.run(scene())
    assert verdict.failure == "judge"
    assert PLANTED not in repr(verdict) + str(verdict.raw_response)
    assert "key is not accepted" in shown
    assert PLANTED not in shown
    assert PLANTED.encode() not in (tmp_path / "run.db").read_bytes()
