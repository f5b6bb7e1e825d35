"""Sessions: a run in its run file, from its first row to its last, and back into memory.

What is written is what happens (proposals, answers, refits, joins, calls), in its order. Loading lets it happen again,
so a run that was killed continues as if it had not been.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale._version import __version__
from pairscale.adaptive._replay import engine_at_start, replay, samples_of
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.presets import DOCUMENT, given_settings, resolve_preset
from pairscale.adaptive.selectors import POLLITT, OwnSelector, say_unaimed
from pairscale.adaptive.state import AdaptiveState, as_items, beliefs_of
from pairscale.adaptive.status import has_begun, n_items
from pairscale.adaptive.step_log import STEP_LOG
from pairscale.core.errors import InputError, StoreDamagedError, StoreError, StoreMismatchError
from pairscale.core.options import checked, require_run
from pairscale.core.provenance import utc_now
from pairscale.core.tables import listed
from pairscale.models.bayes.logs import ROUND_LOG
from pairscale.store.audit import check_evidence
from pairscale.store.chain import canonical, log_ends
from pairscale.store.policies import JournalWriter
from pairscale.store.runfile import RunFile, open_run

if TYPE_CHECKING:
    import os


__all__ = [
    "adaptive_rank_resume",
    "adaptive_rank_start",
    "adaptive_session_exists",
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

LOG_VERSION = 2
"""Of what is written about an adaptive run."""
_SETTINGS = ("seed", "selector", "preset", "adaptive_config", "btl_config", "persist_item_log")
"""What the first event says of the run."""
LOGS = ("step_log", "round_log", "item_log", "adaptive_events")
"""The logs that an adaptive run is restored from."""
_R_FILES = ("state.rds", "step_log.rds", "round_log.rds", "metadata.rds")
"""What R's pairwiseLLM writes into the folder of a session."""


def run_path(session_dir: str | os.PathLike[str] | None, run: str | os.PathLike[str] | None) -> str | None:
    """The run file that ``run`` names, or that a session folder holds (made when it is missing)."""
    _one_of(session_dir, run)
    if run is not None:
        return require_run(run)
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


def _one_of(session_dir: str | os.PathLike[str] | None, run: str | os.PathLike[str] | None) -> None:
    if run is not None and session_dir is not None:
        raise InputError("give session_dir or run, not both: session_dir=DIR means the run file DIR/run.db")


@checked
def adaptive_rank_start(
    items: Any,
    seed: int = 1,
    session_dir: str | os.PathLike[str] | None = None,
    persist_item_log: bool = False,
    *,
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    selector: str | OwnSelector = POLLITT,
    preset: str = DOCUMENT,
    run: str | os.PathLike[str] | None = None,
) -> AdaptiveState:
    """Start an adaptive run: nothing is asked yet.

    Args:
        items: ids, or a table with ``ID`` (or ``item_id``, ``id``), ``text`` and any other columns; ``mu`` and
            ``sigma``, when there, are what is believed of the items beforehand (TrueSkill scale: 25 and 25/3).
        seed: of the warm start and of every choice.
        session_dir: keep the run in ``session_dir/run.db``.
        persist_item_log: also write the items of every refit as a table beside the run file.
        adaptive_config: fields of :class:`AdaptiveConfig` that shall be otherwise than their default.
        btl_config: fields of :class:`BTLConfig`, likewise.
        selector: who chooses: ``pollitt`` (the design's), ``random``, ``nearest`` or ``information``; or a function of
            your own, see ``pairscale.adaptive.selectors.OwnSelector``.
        preset: The settings to start from: ``pairwiseLLM`` (the design document's) or ``pairscale`` (ours). Those that
            you give yourself come first.
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
    adaptive_config, btl_config = resolve_preset(preset, adaptive_config, btl_config)
    mu, sigma = beliefs_of(frame, frame["ID"].to_list())
    engine = Engine(
        frame["ID"].to_list(), seed=seed, selector=selector, adaptive_config=adaptive_config, btl_config=btl_config,
        mu=mu, sigma=sigma,
    )  # fmt: skip
    settings = {
        "seed": engine.seed,
        "selector": engine.selector,
        "preset": preset,
        "adaptive_config": plain_settings(adaptive_config, "adaptive_config"),
        "btl_config": plain_settings(btl_config, "btl_config"),
        "persist_item_log": persist_item_log,
    }
    say_unaimed(engine.selector, engine.config.goal)
    where = run_path(session_dir, run)
    state = AdaptiveState(frame, engine, where, settings)
    with writing(state, fresh=True) as store:
        if has_begun(store):
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


@contextmanager
def writing(state: AdaptiveState, *, fresh: bool = False) -> Iterator[RunFile]:
    """The run file of a state, open for writing; one in memory when it has none."""
    if state.where is not None:
        with open_run(state.where, write=True) as store:
            if not fresh and (store.log_length("step_log"), log_ends(store, LOGS)) != (state.engine.rows, state._ends):
                raise StoreMismatchError(
                    f"{state.where} has continued since this state was loaded; load it again with adaptive_rank_resume"
                )
            state._ends = None  # nothing is known of the file when it fails
            try:
                yield store
            except StoreError as error:
                if isinstance(error, StoreMismatchError):
                    state._ends = log_ends(store, LOGS)
                raise
            except BaseException:
                state._ends = log_ends(store, LOGS)
                raise
            state._ends = log_ends(store, LOGS)
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
        return has_begun(store)


@checked
def adaptive_rank_resume(
    session_dir: str | os.PathLike[str] | None = None,
    *,
    run: str | os.PathLike[str] | None = None,
    selector: str | OwnSelector | None = None,
) -> AdaptiveState:
    """Take up a run where it is, for :func:`adaptive_rank_run_live`.

    Args:
        session_dir: the folder that holds ``run.db``.
        run: the run file itself.
        selector: a selector of your own, again; without it, such a run can be looked at and not continue.

    Raises:
        StoreMismatchError: when it is another selector than before.
        StoreError: when there is none, it is damaged, or it holds no adaptive run.

    Example:
        >>> folder = save_adaptive_session(adaptive_rank_start(["a", "b", "c"], seed=1), "resumed")
        >>> adaptive_rank_resume(folder)
        <AdaptiveState: 3 items, 0 comparisons, 0 steps, next: warm_start>
    """
    _one_of(session_dir, run)
    where = require_run(run) if run is not None else _existing(session_dir)
    with open_run(where) as store, store.snapshot():
        session_facts(store, where)
        _check_chain(store, where)
        return _restored(store, where, selector)


@checked
def load_adaptive_session(
    session_dir: str | os.PathLike[str], *, selector: str | OwnSelector | None = None
) -> AdaptiveState:
    """The run of a session folder (or of a run file), checked and ready to continue.

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


@checked
def save_adaptive_session(state: AdaptiveState, session_dir: str | os.PathLike[str], overwrite: bool = False) -> Path:
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
        raise StoreError(f"{target} already exists; give overwrite=True to replace it, or name another folder")
    if Path(target).exists():
        open_run(target, write=True).close()  # no one may be writing, and nothing of the old one may stay beside it
    with writing(state) as store:
        store.copy_to(target)
        ends = log_ends(store, LOGS)
    if state._memory is not None:
        state._memory.close()
        state._memory = None
    state.where, state._ends = target, ends
    return Path(session_dir)


@checked
def validate_session_dir(session_dir: str | os.PathLike[str]) -> dict[str, Any]:
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
        if strange := sorted(set(store.read_columns(log)) - set(schema)):
            raise StoreDamagedError(f"{where}: the {log} has unknown columns {listed(strange)}")
    return {
        "schema_version": facts["log_version"],
        "package_version": facts["package_version"],
        "n_items": n_items(store.read_log("adaptive_events")),
        "steps": store.log_length("step_log"),
        "refits": store.log_length("round_log"),
        "created_at": store.get_meta("created_at"),
    }


def _check_chain(store: RunFile, where: str) -> None:
    if problems := check_evidence(store, "logs", "blobs").problems:
        raise StoreDamagedError(f"{where}: {problems[0]}; restore the file from a copy")


def _existing(session_dir: str | os.PathLike[str] | None) -> str:
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
    settings = {name: start[name] for name in _SETTINGS}
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
    state.judge_id = _judge_of(store)
    state._ends = log_ends(store, LOGS)
    return state


def _judge_of(store: RunFile) -> str | None:
    """The judge of an adaptive run; None before its first call."""
    found = store.conditions().filter(pl.col("condition_id") == (store.get_meta("adaptive_condition") or ""))
    return found["judge_id"][0] if found.height else None


def plain_settings(config: Any, what: str) -> dict[str, Any]:
    """Settings as JSON keeps them."""
    return dict(json.loads(canonical(given_settings(config, what))))
