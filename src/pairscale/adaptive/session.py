"""Sessions: a run in its run file, from its first row to its last, and back into memory.

What is written is what happens (proposals, answers, refits, joins, calls), in its order. Loading lets it happen again,
so a run that was killed goes on as if it had not been.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale._version import __version__
from pairscale.adaptive._replay import engine_at_start, replay, samples_of
from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.selectors import POLLITT, OwnSelector
from pairscale.adaptive.state import AdaptiveState, as_items, beliefs_of
from pairscale.adaptive.step_log import STEP_LOG
from pairscale.errors import InputError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.models.logs import ROUND_LOG
from pairscale.options import optional, require_mapping
from pairscale.provenance import utc_now
from pairscale.store import RunFile, open_run
from pairscale.store.chain import CHAIN, canonical, verify_chain
from pairscale.store.policies import JournalWriter
from pairscale.tables import listed

if TYPE_CHECKING:
    import os

    Where = str | os.PathLike[str]

__all__ = [
    "adaptive_rank_resume",
    "adaptive_rank_start",
    "adaptive_session_exists",
    "adaptive_status",
    "event_of",
    "load_adaptive_session",
    "plain_settings",
    "reading",
    "run_path",
    "save_adaptive_session",
    "session_facts",
    "validate_session_dir",
    "writing",
]

LOG_VERSION = 1
"""Of what is written about an adaptive run."""
_R_FILES = ("state.rds", "step_log.rds", "round_log.rds", "metadata.rds")
"""What R's pairwiseLLM writes into the folder of a session."""


def run_path(session_dir: Where | None, run: Where | None) -> str | None:
    """The run file that ``run`` names, or that a session folder holds (made when it is missing)."""
    _one_of(session_dir, run)
    if run is not None:
        return str(run)
    if session_dir is None:
        return None
    folder = Path(session_dir)
    if folder.is_file():
        raise InputError(f"session_dir {folder} is a file; name a folder, or give run={folder}")
    if not (folder / "run.db").exists():
        _refuse_r_session(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"session_dir {folder} cannot be made: {error.strerror}") from None
    return str(folder / "run.db")


def _refuse_r_session(folder: Path) -> None:
    """Refuse a folder in which R's pairwiseLLM keeps a session: nothing of it can be read here."""
    if found := next((name for name in _R_FILES if (folder / name).is_file()), None):
        raise InputError(
            f"{folder} holds a session of R's pairwiseLLM ({found}), which cannot be read here. In R, "
            f"write.csv(adaptive_results_history(load_adaptive_session({str(folder)!r})), 'results.csv', "
            "row.names = FALSE) writes its comparisons, which fit_bt_model, `pairscale fit` and import_run read. For a "
            "run of its own, name another folder"
        )


def _one_of(session_dir: Where | None, run: Where | None) -> None:
    if run is not None and session_dir is not None:
        raise InputError("give session_dir or run, not both: session_dir=DIR means the run file DIR/run.db")


def adaptive_rank_start(
    items: Any,
    seed: int = 1,
    session_dir: Where | None = None,
    persist_item_log: bool = False,
    *,
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    selector: str | OwnSelector = POLLITT,
    run: Where | None = None,
) -> AdaptiveState:
    """Start an adaptive run: nothing is asked yet.

    Args:
        items: ids, or a table with ``ID`` (or ``item_id``, ``id``), ``text`` and any other columns; ``mu`` and
            ``sigma``, when there, are what is believed of the items beforehand (TrueSkill scale: 25 and 25/3).
        seed: of the warm start and of every choice.
        session_dir: keep the run in ``session_dir/run.db``.
        persist_item_log: write the items of every refit as a table beside the run file, too.
        adaptive_config: fields of :class:`AdaptiveConfig` that shall be otherwise than their default.
        btl_config: fields of :class:`BTLConfig`, likewise.
        selector: who chooses: ``pollitt`` (the design's), ``random``, ``nearest`` or ``information``; or a function of
            your own, see ``pairscale.adaptive.selectors.OwnSelector``.
        run: keep the run in this file instead.

    Returns:
        The state, for :func:`adaptive_rank_run_live`.

    Raises:
        InputError: when items or a setting cannot be used; the message names it.
        StoreError: when the run file cannot be used, or holds a run already.

    Example:
        >>> adaptive_rank_start(["a", "b", "c"], seed=11)
        <AdaptiveState: 3 items, 0 comparisons, 0 steps, next: warm_start>
    """
    frame = as_items(items)
    mu, sigma = beliefs_of(frame, frame["ID"].to_list())
    engine = Engine(
        frame["ID"].to_list(), seed=seed, selector=selector, adaptive_config=adaptive_config, btl_config=btl_config,
        mu=mu, sigma=sigma,
    )  # fmt: skip
    settings = {
        "seed": engine.seed,
        "selector": engine.selector,
        "adaptive_config": plain_settings(adaptive_config, "adaptive_config"),
        "btl_config": plain_settings(btl_config, "btl_config"),
        "persist_item_log": persist_item_log,
    }
    where = run_path(session_dir, run)
    state = AdaptiveState(frame, engine, where, settings)
    with writing(state, fresh=True) as store:
        if _has_begun(store):
            raise StoreMismatchError(f"{store.name} holds an adaptive run already; resume it, or name another file")
        store.add_items(frame.iter_rows(named=True))
        # In this order: the run is there from its first event on, and a process that dies before leaves none.
        store.set_meta("adaptive", {"log_version": LOG_VERSION, "package_version": __version__})
        with JournalWriter(store) as journal:
            journal.event(
                event_of("start", engine, ids=engine.ids, **settings)
                | {"mu": None if mu is None else mu.tolist(), "sigma": None if sigma is None else sigma.tolist()}
            )
    return state


def event_of(kind: str, engine: Engine, **more: Any) -> dict[str, Any]:
    """A row of the log of events: what happened, behind which row and which step, and when."""
    return {"event": kind, "after": engine.rows, "steps": engine.steps, "at": utc_now(), **more}


def _has_begun(store: RunFile) -> bool:
    return store.get_meta("adaptive") is not None and store.log_length("adaptive_events") > 0


@contextmanager
def writing(state: AdaptiveState, *, fresh: bool = False) -> Iterator[RunFile]:
    """The run file of a state, open for writing; one in memory when it has none."""
    if state.where is not None:
        with open_run(state.where, write=True) as store:
            if not fresh and (store.log_length("step_log"), store.get_meta(CHAIN)) != (state.engine.rows, state._heads):
                raise StoreMismatchError(
                    f"{state.where} has gone on since this state was loaded; load it again with adaptive_rank_resume"
                )
            state._heads = None  # nothing is known of the file when it fails
            try:
                yield store
            except StoreError as error:
                if isinstance(error, StoreMismatchError):
                    state._heads = store.get_meta(CHAIN)
                raise
            except BaseException:
                state._heads = store.get_meta(CHAIN)
                raise
            state._heads = store.get_meta(CHAIN)
        return
    if state._memory is None:
        state._memory = open_run(None, write=True)
    yield state._memory


@contextmanager
def reading(state: AdaptiveState) -> Iterator[RunFile]:
    """The run file of a state, open for reading; that in memory when it has none."""
    if state.where is not None:
        with open_run(state.where) as store:
            yield store
    else:
        with writing(state) as store:
            yield store


def adaptive_session_exists(where: str | None) -> bool:
    """Whether a run file is there and holds an adaptive run; damage is an error, not an absence."""
    if where is None or ("://" not in where and not Path(where).exists()):
        return False
    # Open for writing: a process that died while it made the file may have left one without tables.
    with open_run(where, write=True) as store:
        return _has_begun(store)


def adaptive_rank_resume(
    session_dir: Where | None = None, *, run: Where | None = None, selector: str | OwnSelector | None = None
) -> AdaptiveState:
    """Take up a run where it is, for :func:`adaptive_rank_run_live`.

    Args:
        session_dir: the folder that holds ``run.db``.
        run: the run file itself.
        selector: a selector of your own, again; without it, such a run can be looked at and not go on.

    Raises:
        StoreMismatchError: when it is another selector than before.
        StoreError: when there is none, it is damaged, or it holds no adaptive run.

    Example:
        >>> folder = save_adaptive_session(adaptive_rank_start(["a", "b", "c"], seed=1), "resumed")
        >>> adaptive_rank_resume(folder)
        <AdaptiveState: 3 items, 0 comparisons, 0 steps, next: warm_start>
    """
    _one_of(session_dir, run)
    where = str(run) if run is not None else _existing(session_dir)
    with open_run(where) as store, store.snapshot():
        session_facts(store, where)
        _check_chain(store, where)
        return _restored(store, where, selector)


def load_adaptive_session(session_dir: Where, *, selector: str | OwnSelector | None = None) -> AdaptiveState:
    """The run of a session folder (or of a run file), checked and ready to go on.

    Args:
        session_dir: the folder, or the run file.
        selector: as in :func:`adaptive_rank_resume`.

    Raises:
        StoreError: when it is damaged: a log's columns, order or hash chain are not what they were when written.

    Example:
        >>> folder = save_adaptive_session(adaptive_rank_start(["a", "b", "c"], seed=1), "loaded")
        >>> load_adaptive_session(folder)
        <AdaptiveState: 3 items, 0 comparisons, 0 steps, next: warm_start>
    """
    where = _existing(session_dir)
    with open_run(where) as store, store.snapshot():
        _validated(store, where)
        return _restored(store, where, selector)


def save_adaptive_session(state: AdaptiveState, session_dir: Where, overwrite: bool = False) -> Path:
    """Keep a run in a folder, as ``run.db``; it is written there from then on.

    Args:
        state: the run.
        session_dir: the folder, made when it is missing.
        overwrite: replace a run that is there.

    Returns:
        The folder.

    Raises:
        StoreError: when there is a run and ``overwrite`` is false.

    Example:
        >>> save_adaptive_session(adaptive_rank_start(["a", "b", "c"], seed=1), "session").name
        'session'
    """
    target = run_path(session_dir, None)
    assert target is not None  # noqa: S101
    if state.where is not None and Path(state.where).resolve() == Path(target).resolve():
        return Path(session_dir)
    if Path(target).exists() and not overwrite:
        raise StoreError(f"{target} is there already; give overwrite=True to replace it, or name another folder")
    if Path(target).exists():
        open_run(target, write=True).close()  # nobody may be writing, and nothing of the old one may stay beside it
    with writing(state) as store:
        store.copy_to(target)
        heads = store.get_meta(CHAIN)
    if state._memory is not None:
        state._memory.close()
        state._memory = None
    state.where, state._heads = target, heads
    return Path(session_dir)


def validate_session_dir(session_dir: Where) -> dict[str, Any]:
    """Check a session before it is loaded: that all is there, that columns are right, that nothing was changed.

    Args:
        session_dir: the folder, or the run file.

    Returns:
        Facts about it: at least ``schema_version``, ``package_version`` and ``n_items``.

    Raises:
        StoreDamagedError: that names what is wrong.

    Example:
        >>> folder = save_adaptive_session(adaptive_rank_start(["a", "b", "c"], seed=1), "checked")
        >>> validate_session_dir(folder)["n_items"]
        3
    """
    where = _existing(session_dir)
    with open_run(where) as store, store.snapshot():
        return _validated(store, where)


def _validated(store: RunFile, where: str) -> dict[str, Any]:
    facts = session_facts(store, where)
    _check_chain(store, where)
    for log, schema in (("step_log", STEP_LOG), ("round_log", ROUND_LOG)):
        if strange := sorted(set(store.read_columns(log)) - set(schema) - {"blobs"}):
            raise StoreDamagedError(f"{where}: the {log} has unknown columns {listed(strange)}")
    return {
        "schema_version": facts["log_version"],
        "package_version": facts["package_version"],
        "n_items": _n_items(store.read_log("adaptive_events")),
        "steps": store.log_length("step_log"),
        "refits": store.log_length("round_log"),
        "created_at": store.get_meta("created_at"),
    }


def _check_chain(store: RunFile, where: str) -> None:
    if problems := verify_chain(store):
        raise StoreDamagedError(f"{where}: {problems[0]}; restore the file from a copy")


def _n_items(events: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(event["ids"]) for event in events if event["event"] in {"start", "join"})


def _existing(session_dir: Where | None) -> str:
    if session_dir is None:
        raise InputError("name the session folder or the run file")
    path = Path(session_dir)
    target = path / "run.db" if path.is_dir() else path
    if "://" not in str(session_dir) and not target.exists():
        _refuse_r_session(path)
        raise StoreError(f"{path}: there is no session" + (" (no run.db in it)" if path.is_dir() else ""))
    return str(session_dir) if "://" in str(session_dir) else str(target)


def session_facts(store: RunFile, where: str) -> dict[str, Any]:
    """What wrote the run; one that another log version wrote cannot be read."""
    facts = store.get_meta("adaptive")
    if facts is None:
        raise StoreDamagedError(f"{where} holds no adaptive run")
    if facts["log_version"] != LOG_VERSION:
        raise StoreDamagedError(
            f"{where} was written by pairscale {facts['package_version']} (log version {facts['log_version']}, "
            f"this one reads {LOG_VERSION}); use that version"
        )
    return dict(facts)


def _restored(store: RunFile, where: str, selector: str | OwnSelector | None) -> AdaptiveState:
    """The run, out of a file that was checked."""
    events = store.read_log("adaptive_events")
    if not events or events[0]["event"] != "start":
        raise StoreDamagedError(f"{where}: the run has no beginning; restore the file from a copy")
    start = events[0]
    settings = {name: start[name] for name in ("seed", "selector", "adaptive_config", "btl_config", "persist_item_log")}
    engine = engine_at_start(start, where, selector)
    state = AdaptiveState(samples_of(store, engine.ids), engine, where, settings)
    try:
        replay(store, state, events[1:])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise StoreDamagedError(
            f"{where}: the log does not fit together ({type(error).__name__}: {error}); restore the file from a copy"
        ) from error
    state.items = samples_of(store, engine.ids)
    state.cost = store.spent()
    state._heads = store.get_meta(CHAIN)
    return state


def plain_settings(config: Any, what: str) -> dict[str, Any]:
    """Settings as JSON keeps them."""
    if isinstance(config, AdaptiveConfig | BTLConfig):
        config = asdict(config)
    return dict(json.loads(canonical(optional(require_mapping, config, what) or {})))


def adaptive_status(store: RunFile) -> dict[str, Any] | None:
    """Where an adaptive run stands, from its logs alone and without replaying it; None when the file holds none.

    ``n_items withdrawn steps committed_pairs invalid stage round_id n_refits reliability_EAP has_ended stop_reason``.
    """
    with store.snapshot():
        if not _has_begun(store):
            return None
        status = store.log_counts("step_log", "status")
        last = (store.read_log("step_log", last=1) or [{"round_stage": "warm_start", "round_id": 0}])[0]
        rounds, events = store.read_log("round_log"), store.read_log("adaptive_events")
    has_ended, stop_reason = _ended(events, rounds)
    return {
        "n_items": _n_items(events),
        "withdrawn": [name for event in events if event["event"] == "withdraw" for name in event["ids"]],
        "steps": sum(status.values()),
        "committed_pairs": status.get("committed", 0),
        "invalid": status.get("invalid", 0),
        "stage": last["round_stage"],
        "round_id": last["round_id"],
        "n_refits": len(rounds),
        "reliability_EAP": rounds[-1]["reliability_EAP"] if rounds else None,
        "has_ended": has_ended,
        "stop_reason": stop_reason,
    }


def _ended(events: Sequence[Mapping[str, Any]], rounds: Sequence[Mapping[str, Any]]) -> tuple[bool, str | None]:
    """Whether the last call came to its end, and why; one that did not is running, or its process was killed."""
    ended: tuple[bool, str | None] = True, None
    decisions = {row["refit_id"]: row["stop_reason"] for row in rounds if row["stop_decision"]}
    for event in events:
        if event["event"] in {"call", "configure", "join", "stop_rule"}:  # a text may be withdrawn from any run
            ended = event["event"] != "call", event.get("stop_reason")
        elif event["event"] == "end":
            ended = True, event["reason"]
        elif event["event"] == "refit" and not event["is_closing"]:
            ended = ended[0], decisions.get(event["refit_id"])
    return ended
