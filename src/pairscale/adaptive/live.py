"""``adaptive_rank_run_live``: take a run some steps further with a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.adaptive._changes import other_settings
from pairscale.adaptive._repeats import EXHAUSTED
from pairscale.adaptive._stop_rule import change_stop_rule, is_stop_rule
from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.engine import FEWEST
from pairscale.adaptive.ledger import FIRST_ANSWERS
from pairscale.adaptive.messages import exhaustion, flips, starvation, stop_meaning, weak_judges
from pairscale.adaptive.refits import fit_name
from pairscale.adaptive.session import event_of, plain_settings, reading, run_path, save_adaptive_session, writing
from pairscale.adaptive.source import AdaptiveSource, RunLimits
from pairscale.adaptive.state import AdaptiveState, require_state
from pairscale.adaptive.view import View
from pairscale.core.errors import InputError, JudgeError, StoreMismatchError
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, checked
from pairscale.core.provenance import fingerprint
from pairscale.judges.base import Judge
from pairscale.judges.build import make_judge
from pairscale.models.judge_slopes import weak_words
from pairscale.runtime import (
    RETRIES,
    TIMEOUT,
    Budget,
    RunOptions,
    Runtime,
    Terminated,
    close,
    record_prices,
    recorded_prices,
    require_prices,
)
from pairscale.runtime.sync import resumable, run_sync
from pairscale.store.policies import JournalWriter

if TYPE_CHECKING:
    import os

    from pairscale.adaptive.refits import FitFn
    from pairscale.core.comparisons import Condition
    from pairscale.store.runfile import RunFile

__all__ = ["adaptive_rank_run_live", "require_same_judge"]


@checked
def adaptive_rank_run_live(
    state: AdaptiveState,
    judge: str | Judge | Callable[..., Any],
    n_steps: int | None = 1,
    fit_fn: FitFn | str | None = None,
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    session_dir: str | os.PathLike[str] | None = None,
    persist_item_log: bool | None = None,
    progress: ProgressMode = "all",
    progress_redraw_every: int = 10,
    progress_show_events: bool = True,
    progress_errors: bool = True,
    *,
    concurrency: int = 1,
    max_comparisons: int | None = None,
    max_cost: float | None = None,
    max_minutes: float | None = None,
    retries: int = RETRIES,
    retry_wait: float = 1.0,
    timeout: float | None = TIMEOUT,
    closing_refit: bool | None = None,
    **judge_call_args: Any,
) -> AdaptiveState:
    """Take a run further: choose a pair, ask the judge, commit the answer, refit when it is time.

    Every answer is in the run file before this call ends; run the same call again to continue. After a stop, a limit
    or Ctrl-C the scores are those of all comparisons (a closing refit); after an error or a crash, they are again when
    a later call has ended so. A call of a single step makes no closing refit, so that you can step through a run. A
    process that is killed loses at most the answers of its last moments.

    Args:
        state: from :func:`adaptive_rank_start` or :func:`adaptive_rank_resume`.
        judge: a callable ``judge(A, B, state, ...)`` that returns ``{"is_valid", "Y", "invalid_reason"}``, a
            :class:`Judge`, or the name of one.
        n_steps: steps of this call, invalid ones included; None for no such limit.
        fit_fn: what fits: ``exact``, the sampler (default); ``laplace``, the fast normal approximation; or a function
            (see ``pairscale.adaptive.refits.FitFn``). A run keeps to the one that it began with.
        adaptive_config: settings to change from here on; the log says so.
        btl_config: likewise. A change of the stop rule alone leaves every choice as it would have been.
        session_dir: keep a run that was in memory in this folder from now on.
        persist_item_log: write the items of every refit as a CSV file beside the run file.
        progress: ``all``, ``refits``, ``steps``, ``line`` or ``none``.
        progress_redraw_every: steps between two drawings.
        progress_show_events: say what is notable.
        progress_errors: say which answers were not valid.
        concurrency: Questions open at once.
        max_comparisons: stop at so many comparisons of the whole run.
        max_cost: US dollars that the run may spend, all calls and resumptions together.
        max_minutes: stop this call after so long; what is being asked then is waited for, and not asked again.
        retries: How often to ask again after a transient failure.
        retry_wait: Seconds before the first retry, where the provider does not say; doubled each time.
        timeout: Seconds that one answer may take; None for no limit.
        closing_refit: Whether to fit once more at the end, so that the scores are those of all comparisons; None for
            every call of more than one step. A run that stops always does.
        judge_call_args: further keyword arguments of every call of a callable judge.

    Returns:
        The same state, further on.

    Raises:
        InputError: a setting cannot be used.
        StoreError: the run file cannot be used; what was answered before is kept.
        KeyboardInterrupt: on Ctrl-C, after everything is in order.

    Example:
        >>> import pairscale as ps
        >>> state = ps.adaptive_rank_start(["a", "b", "c"], seed=1)
        >>> first_by_name = lambda A, B: {"is_valid": True, "Y": int(A["ID"] < B["ID"])}
        >>> state = ps.adaptive_rank_run_live(state, first_by_name, n_steps=6, fit_fn="laplace", progress="none")
        >>> ps.summarize_items(state)["ID"].to_list()
        ['a', 'b', 'c']
    """
    require_state(state)
    limits = RunLimits(n_steps, max_comparisons, max_cost, max_minutes)
    asking = RunOptions(concurrency, retries, retry_wait, timeout, max_cost)
    _same_fit(state, fit_name(fit_fn))
    asked = make_judge(judge, judge_call_args=judge_call_args or None)
    require_prices([asked], max_cost)
    entered = require_same_judge(state, asked)
    if session_dir is not None:
        _keep_in(state, session_dir)
    _say_what_is_unsure(state, entered, asked)
    if persist_item_log is not None:
        state.settings["persist_item_log"] = persist_item_log
    _merge_settings(state, adaptive_config, btl_config)
    stopped = state.engine.stop_reason
    if stopped is None:
        state.engine.require_selector()
    else:
        notice(f"this run has stopped ({stopped}): {_stopped(state, stopped)}")
        if not state.needs_closing and not state.unlogged:
            return state
    view = View(
        progress,
        n_items=len(state.ids),
        redraw_every=progress_redraw_every,
        show_events=progress_show_events,
        show_errors=progress_errors,
        reliability_target=state.engine.btl.eap_reliability_min,
        goal=state.engine.config.goal,
        n_steps=n_steps,
        max_comparisons=max_comparisons,
        max_cost=max_cost,
    )
    with writing(state) as store:
        condition_id = entered or _enter_judge(state, store, asked)
        record_prices(store, [asked])
        view.prices = recorded_prices(store)
        with view, JournalWriter(store) as journal:
            _log_changes(state, journal)
            budget = Budget.of(store, max_cost)
            source = AdaptiveSource(
                state, asked, condition_id, journal, view, limits, budget, concurrency=concurrency, fit_fn=fit_fn
            )
            if stopped is not None:  # a process that died before left the scores behind the answers
                run_sync(source.close)
                return state
            state.engine.set_lag(concurrency)
            call = {"concurrency": concurrency, "refit_lag": state.engine.refit_lag, **asdict(limits)}
            call |= {"condition_id": condition_id, "judged_by": asked.condition.condition_id, "fit_fn": state.fit_fn}
            journal.event(event_of("call", state.engine, **call))
            runtime = Runtime(source, journal, asking, budget=budget, deadline=source.deadline)
            with resumable(state.where):
                closing = n_steps != 1 if closing_refit is None else closing_refit
                _run(source, runtime, journal, asked, view, closing=closing)
    _say_how_it_ended(state)
    return state


def _keep_in(state: AdaptiveState, session_dir: str | os.PathLike[str]) -> None:
    """Keep a run that was in memory in a folder; one that is kept already must be kept there."""
    if state.where is None:
        save_adaptive_session(state, session_dir)
    elif Path(state.where).resolve() != Path(str(run_path(session_dir, None))).resolve():
        raise InputError(f"this run is kept in {state.where}; it cannot move to {session_dir}")


def _same_fit(state: AdaptiveState, name: str) -> None:
    """Refits are compared with each other, so all of a run must come from the same function, where it is known."""
    if state.n_logged_refits and state.fit_fn not in (None, name):
        raise StoreMismatchError(
            f"{state.where or 'this run'} was started with fit_fn={state.fit_fn!r}, not {name!r}; give that, or take a "
            "new run file"
        )
    state.fit_fn = name


def _run(
    source: AdaptiveSource, runtime: Runtime, journal: JournalWriter, judge: Judge, view: View, *, closing: bool
) -> None:
    ended = False

    async def ask() -> None:
        nonlocal ended
        source.start()
        try:
            await runtime.run()
            await source.finish()
        except BaseException as error:
            await source.interrupt()
            source.end(_ENDS.get(type(error), "failed"))
            raise
        finally:
            await close(judge)
            ended = True
            journal.flush()
        source.end(source.reason(runtime.stopped))

    try:
        run_sync(ask)
    except (KeyboardInterrupt, Terminated) as stop:
        if not ended:  # a second Ctrl-C already: the run is storing its answers, and is left to it
            raise
        if isinstance(stop, KeyboardInterrupt):
            view.note("stopping: one last fit, so that the scores are up to date (Ctrl-C again to skip it)")
            run_sync(source.close)
        raise
    except JudgeError:
        run_sync(source.close)
        raise
    if source.reason(None) == "no_probabilities":
        raise JudgeError(_NO_PROBABILITIES)
    if closing or source.stopped:
        run_sync(source.close)
    if (n := source.n_without_winner) is not None:
        notice(f"all {n:,} answers are ties, so the order of the texts means nothing; try another judge")


_NO_PROBABILITIES = (
    f"the judge gave no probability in its first {FIRST_ANSWERS} answers, and answer='probability' asks for them. Its "
    "answers are kept. Ask a judge that gives probabilities, or use answer='winner', each with a new run file"
)
_ENDS = {asyncio.CancelledError: "interrupted", KeyboardInterrupt: "interrupted", JudgeError: "judge_failed"}


def _merge_settings(
    state: AdaptiveState, adaptive_config: Mapping[str, Any] | None, btl_config: Mapping[str, Any] | None
) -> None:
    """Take over settings that are otherwise than before; they are logged when the run file is open."""
    reconfigure(
        state,
        {**state.settings["adaptive_config"], **plain_settings(adaptive_config, "adaptive_config")},
        {**state.settings["btl_config"], **plain_settings(btl_config, "btl_config")},
    )


def reconfigure(state: AdaptiveState, adaptive_config: dict[str, Any], btl_config: dict[str, Any]) -> None:
    """Continue with exactly these settings; if they come to those of before, nothing happens.

    A run that is paused takes another stop rule as such, so that all its choices stay as they would have been.
    """
    new = {"adaptive_config": adaptive_config, "btl_config": btl_config}
    if all(state.settings[name] == value for name, value in new.items()) or not changed_settings(state, **new):
        return
    if changes_stop_rule_only(state, **new):
        change_stop_rule(state, btl_config)
        return
    state.unlogged.append(event_of("configure", state.engine, **new))
    state.settings |= new
    state.engine.configure(adaptive_config, btl_config)
    state.ended = None


def changed_settings(state: AdaptiveState, adaptive_config: dict[str, Any], btl_config: dict[str, Any]) -> list[str]:
    """Which of the two come to something else than a run goes by: a default is the same, said or not."""
    adaptive, btl = _made(state, adaptive_config, btl_config)
    now = {"adaptive_config": adaptive == state.engine.config, "btl_config": btl == state.engine.btl}
    return [name for name, same in now.items() if not same]


def changes_stop_rule_only(state: AdaptiveState, adaptive_config: dict[str, Any], btl_config: dict[str, Any]) -> bool:
    """Whether a run is paused, not stopped, and these settings change nothing but its stop rule."""
    adaptive, btl = _made(state, adaptive_config, btl_config)
    engine = state.engine
    return engine.stop_reason is None and adaptive == engine.config and is_stop_rule(engine, btl)


def raises_flip_share_only(state: AdaptiveState, adaptive_config: dict[str, Any], btl_config: dict[str, Any]) -> bool:
    """Whether these settings change nothing but how many flips pause a run."""
    adaptive, btl = _made(state, adaptive_config, btl_config)
    return btl == state.engine.btl and other_settings(state.engine.config, adaptive) == ["flip_share_max"]


def _made(
    state: AdaptiveState, adaptive_config: dict[str, Any], btl_config: dict[str, Any]
) -> tuple[AdaptiveConfig, BTLConfig]:
    n = len(state.ids)
    btl = BTLConfig.for_items(n, btl_config)
    return AdaptiveConfig.for_items(n, adaptive_config, refit_pairs_target=btl.refit_pairs_target), btl


def _log_changes(state: AdaptiveState, journal: JournalWriter) -> None:
    for event in state.unlogged:
        journal.event(event)
    state.unlogged.clear()


def require_same_judge(state: AdaptiveState, judge: Judge) -> str | None:
    """Refuse another judge than the one that a run belongs to, before anything is asked, changed or returned.

    Returns:
        The condition that the answers of the run are stored under; None while there are none.

    Raises:
        StoreMismatchError: it is another one; the message names the difference.
    """
    now = judge.condition
    with reading(state) as store:
        rows = {row["condition_id"]: row for row in store.conditions().iter_rows(named=True)}
        entered = str(store.get_meta("adaptive_condition"))
        if entered not in rows or not _has_judged(rows[entered]):
            return None
        before = store.condition(entered)
    is_function = now.backend == "function"
    changed = []
    for name in ("judge_id", "model", "trait", "template_id"):
        old = getattr(before, name)
        new = getattr(now, name)
        # A function may be given a trait for the record, and need not be every time.
        is_optional = is_function and name != "judge_id" and None in (old, new)
        if old != new and not is_optional:
            changed.append(f"{name} was {old!r}, is {new!r}")
    if changed or not (is_function or entered == now.condition_id):
        raise StoreMismatchError(
            f"{store.name} was judged by another judge: {'; '.join(changed or _other_judge_settings(before, now))}; "
            "give the same judge, or take a new run file"
        )
    return entered


def _other_judge_settings(before: Condition, now: Condition) -> list[str]:
    """Each setting of a judge that differs; long values, such as hashes, by the name alone."""
    lines = []
    for name in sorted({*before.settings, *now.settings}):
        values = f"was {before.settings.get(name)!r}, is {now.settings.get(name)!r}"
        if fingerprint(before.settings.get(name)) != fingerprint(now.settings.get(name)):
            lines.append(f"{name} {values}" if len(values) <= _LONGEST_VALUES else f"{name} differs")
    return lines


_LONGEST_VALUES = 80


def _say_what_is_unsure(state: AdaptiveState, entered: str | None, judge: Judge) -> None:
    """Say of a function that it has no name, or that it is not quite the one whose answers the run holds."""
    now = judge.condition
    if "instance" in now.settings:
        if state.where is not None:
            notice("this judge has no name, so a later call cannot recognise it; use FunctionJudge(f, name=…)")
        return
    if entered is None or entered == now.condition_id:
        return
    with reading(state) as store:
        before = store.condition(entered)
    if replace(now, trait=before.trait, template_id=before.template_id).condition_id != entered:
        notice(
            "the judge's code or its arguments have changed since the last call; "
            "its answers are taken as those of the same judge"
        )


def _enter_judge(state: AdaptiveState, store: RunFile, judge: Judge) -> str:
    """Enter the condition of a run's first judge."""
    state.judge_id = judge.condition.judge_id
    condition_id = store.add_condition(judge.condition)
    store.set_meta("adaptive_condition", condition_id)  # before the first answer: a process may die at any time
    return condition_id


def _has_judged(condition: Mapping[str, Any]) -> bool:
    """Whether anything rests on what a judge said; one that could not be asked at all may be replaced."""
    return any(condition[outcome] for outcome in ("win", "tie", "flip", "abstention", "error"))


def _stopped(state: AdaptiveState, reason: str) -> str:
    """Why a run has stopped for good, and how it continues all the same."""
    if reason == EXHAUSTED:
        return f"{exhaustion(state)}; add texts, or set discount_repeats to False to ask pairs again anyway"
    if reason != "candidate_starvation":
        if state.engine.config.top is not None:
            more = "lower top_wrong_max in btl_config"
        else:
            more = "ask for a higher reliability (reliability=, or eap_reliability_min in btl_config)"
        return f"{stop_meaning(reason, state.last_refit)}; to continue, {more}"
    also = ", or max_invalid_per_pair to ask about what was refused" if state.engine.ledger.given_up else ""
    return f"{starvation(state)}; raise dup_max_obs and dup_p_margin to ask pairs again{also}"


def _say_how_it_ended(state: AdaptiveState) -> None:
    if state.ended == "judge_failing":
        notice(
            f"paused: {state.engine.config.max_failures_in_row} answers in a row were not valid; the last reason: "
            f"{state.invalid_reason}. Nothing was lost. Run it again to continue"
        )
    if state.ended == "judge_flips":
        repeats, limit = state.engine.ledger.repeats, state.engine.config.flip_share_max
        notice(
            f"paused: {flips(repeats.n_flips, repeats.n_reversed)}: this judge goes by position. Look at it with "
            "`pairscale check-judge`, ask it in both orders (both_orders=True), or try another template, each with a "
            f"new run file. To continue anyway, raise flip_share_max, now {limit:g}"
        )
    if state._rounds and (weak := weak_judges(state._rounds[-1].row(0, named=True))):
        notice(weak_words(weak))
    if state.ended == EXHAUSTED or (state.ended == "candidate_starvation" and state.engine.ledger.given_up):
        notice(f"stopped: {_stopped(state, state.ended)}")
    if state.engine.committed and not state.engine.can_fit:
        notice(f"there are no scores yet: they need {FEWEST} comparisons, and there are {state.engine.committed}")
    if state.engine.unlinked:
        notice(f"the judge does not answer on {', '.join(state.engine.unlinked[:5])}: only the prior places them")
