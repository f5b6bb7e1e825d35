"""A job in shards: the answers of one run, dealt to several run files that are read together."""

import os
import signal
from pathlib import Path

import joblib
import pytest

import pairscale as ps
from pairscale.core.errors import InputError, StoreMismatchError

SAMPLES = [{"ID": f"s{n}", "text": "word " * (n + 1)} for n in range(9)]
PAIRS = ps.make_pairs(SAMPLES)  # 36


def longer(A, B):
    return 1 if len(A["text"]) > len(B["text"]) else 2


def judged(run="job", **options):
    return ps.judge(PAIRS, longer, run=run, progress=False, **options)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_shards_give_the_results_of_one_run() -> None:
    whole = judged("whole.db")
    dealt = judged(shards=5)
    same = [name for name in whole.results.columns if name not in {"custom_id", "latency_s"}]
    assert dealt.results.select(same).equals(whole.results.select(same))
    assert (dealt.n_answered, dealt.n_failed, dealt.asked) == (36, 0, 36)
    assert sorted(file.name for file in Path("job").glob("*.db")) == [f"shard-{n}.db" for n in range(1, 6)]
    assert ps.fit("job").theta.equals(ps.fit("whole.db").theta)
    assert judged(shards=5).asked == 0


def test_every_shard_by_itself_makes_the_job() -> None:
    Path("job").mkdir()
    asked = [judged(f"job/part-{n}.db", shard=f"{n}/7").asked for n in range(1, 8)]
    assert (sum(asked), max(asked) - min(asked)) == (36, 1)
    judged("whole.db")
    assert ps.fit("job/*.db").theta.equals(ps.fit("whole.db").theta)


def test_a_failed_shard_is_continued() -> None:
    def fails_at_first(A, B):
        if not Path("repaired").exists() and A["ID"] == "s0":
            raise RuntimeError("out of order")
        return longer(A, B)

    first = ps.judge(PAIRS, fails_at_first, run="job", shards=2, retries=0, progress=False)
    assert first.n_failed == 8
    Path("repaired").touch()
    again = ps.judge(PAIRS, fails_at_first, run="job", shards=2, retries=0, progress=False)
    assert (again.asked, again.n_answered, again.n_failed) == (8, 36, 0)


@pytest.mark.parametrize("shard", ["5/4", "x", "1/0"])
def test_a_shard_that_does_not_exist_is_refused(shard, message_snapshot) -> None:
    with pytest.raises(InputError) as refused:
        judged("run.db", shard=shard)
    message_snapshot(str(refused.value))
    assert not Path("run.db").exists()


def test_options_that_contradict_each_other_are_refused(message_snapshot) -> None:
    wrong = [
        {"run": "job", "shards": 2, "shard": "1/2"},
        {"run": None, "shards": 2},
        {"run": None, "shard": "1/2"},
        {"run": "postgresql+psycopg://user@host/db", "shard": "1/2"},
        {"run": "job", "n_jobs": 2},
        {"run": "job", "shards": 2, "save_path": "results.csv"},
        {"run": "run.db", "shard": "40/40"},
    ]
    messages = []
    for options in wrong:
        with pytest.raises(InputError) as refused:
            judged(**options)
        messages.append(str(refused.value))
    message_snapshot("\n".join(messages))


def test_shards_of_other_pairs_are_refused_before_anything_is_asked(message_snapshot) -> None:
    judged(shards=3)
    judged("whole.db")
    asked = []

    def asks(A, B):
        asked.append(A["ID"])
        return 1

    messages = []
    for run, options in [("job", {"shards": 3}), ("whole.db", {"shard": "1/3"})]:
        with pytest.raises(StoreMismatchError) as refused:
            ps.judge(PAIRS.head(20), asks, run=run, progress=False, **options)
        messages.append(str(refused.value))
    with pytest.raises(StoreMismatchError) as refused:
        judged("job/shard-2.db", shard="1/3")
    messages.append(str(refused.value))
    message_snapshot("\n".join(messages))
    assert asked == []


def test_a_shard_spends_its_part(caplog) -> None:
    def paid(A, B):
        return {"is_valid": True, "Y": 1, "cost": 0.01}

    found = ps.judge(PAIRS, paid, run="job", shards=4, max_cost=0.22, concurrency=1, progress=False)
    assert found.results["cost"].sum() == pytest.approx(0.2)
    assert ps.status("job").conditions["cost"].max() <= 0.055
    assert "each of 4 shards may spend $0.0550, its part of $0.2200" in caplog.text


# A cluster.


def dies_once(A, B):
    """A judge whose first process dies in the middle of its shard."""
    died = Path(os.environ["SHARD_TEST"]) / "died"
    answered = Path(os.environ["SHARD_TEST"]) / f"asked-{A['ID']}-{B['ID']}"
    answered.write_text(answered.read_text() + "x" if answered.exists() else "x")
    if A["ID"] == "s4" and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return longer(A, B)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of Dask and of its event loop are not ours
def test_a_shard_of_a_dead_worker_is_continued_on_a_cluster(tmp_path, monkeypatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("SHARD_TEST", str(tmp_path))
    judge = ps.make_judge(dies_once)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as made,
        distributed.Client(made),
        joblib.parallel_config(backend="dask"),
    ):
        found = ps.judge(PAIRS, judge, run=tmp_path / "job", shards=4, concurrency=1, progress=False)
    assert (found.n_answered, found.n_failed) == (36, 0)
    times = [len(file.read_text()) for file in tmp_path.glob("asked-*")]
    assert (tmp_path / "died").exists()
    assert len(times) == 36
    assert sum(times) <= 36 + 1  # the one that was open when the worker died
