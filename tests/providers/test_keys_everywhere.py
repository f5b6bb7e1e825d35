"""A planted key on every road: a careless server repeats it in all its forms, and every byte written is searched."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import logging
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.providers.careless import with_key
from tests.providers.recorder import Recorder
from tests.providers.test_keys import PLANTED, forms_of, told, traces_of
from tests.runtime.workflows import MODELS, WORKFLOWS, Call

import pairscale as ps
from pairscale.cli import main
from pairscale.core.errors import PairscaleError
from pairscale.testing import Batches, Behaviour, Faults, ProviderSimulator

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quick(fast_limits: None) -> None:
    pass


def repeating() -> Callable[[bytes], bytes]:
    """Puts the key into all texts of a document, or of a file of documents, in another form every time."""
    forms = itertools.cycle(forms_of(PLANTED))

    def change(content: bytes) -> bytes:
        try:
            return json.dumps(with_key(json.loads(content), next(forms))).encode()
        except ValueError:
            pass
        with contextlib.suppress(ValueError):
            rows = [json.loads(line) for line in content.splitlines()]
            return b"".join(json.dumps(with_key(row, next(forms))).encode() + b"\n" for row in rows)
        return content

    return change


def written_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file, and every file within archives."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    yield from ((f"{path.name}/{name}", archive.read(name)) for name in archive.namelist())


def used(run: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Everything that is made of a run file afterwards; what was printed."""
    shown = ""
    ps.export(run, folder / "export.csv")
    ps.export(run, folder / "export.xlsx")
    ps.export(run, folder / "export.jsonl")
    for line in (["status", str(run)], ["status", str(run), "--json"], ["audit", str(run)],
                 ["report", str(run), "--out", str(folder / "report.html")],
                 ["batch", "status", str(run)]):  # fmt: skip
        with contextlib.suppress(SystemExit):
            main(line)
        captured = capsys.readouterr()
        shown += captured.out + captured.err
    with ps.open_run(run) as store:
        shown += repr([store.results().to_dicts(), store.failed_attempts().to_dicts()])
    return shown


@pytest.mark.parametrize("road", MODELS)
def test_a_planted_key_is_nowhere(
    road: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("PAIRSCALE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    shown, behaviour = io.StringIO(), Behaviour(malformed_rate=0.1, refusal_rate=0.1, echo_rate=0.1, seed=3)
    faults = Faults(script=["ok", 500, "ok", 429, 400, "truncated"], retry_after="0")
    batches = Batches(looks=1, failing=0.2, garbage=2)
    with ProviderSimulator(behaviour, faults=faults, batches=batches) as server:
        recorder = Recorder(server.url, repeating())
        call = Call(run="run.db", url=f"{recorder.url}/v1", questions=16, judge_args={"api_key": PLANTED})
        for _ in range(2):
            try:
                with contextlib.redirect_stderr(shown):
                    done = WORKFLOWS[road](call)
            except PairscaleError as error:
                print(told(error), file=shown)
            else:
                print(done, repr(done), file=shown)
        assert len(recorder.requests) > 8
        assert any(PLANTED in str(request.headers) for request in recorder.requests)
        recorder.close()
    files = dict(written_in(tmp_path))
    said = shown.getvalue() + used(tmp_path / "run.db", tmp_path, capsys) + caplog.text
    files |= dict(written_in(tmp_path)) | {"said": said.encode("utf-8", "surrogatepass")}
    assert b"[key]" in files["run.db"]  # it was said, and hidden
    assert "export.csv" in files
    found = [
        (name, trace) for name, content in files.items() for trace in traces_of(PLANTED) if trace.encode() in content
    ]
    assert found == []
