"""From texts and a judge to a ranking: ``rank``, and the manual's functions that start, run, keep and resume a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale._version import __version__
from pairscale.adaptive.config import (
    DOCUMENT,
    OURS,
    Preset,
    given_settings,
    resolve_preset,
    stopping_at,
    with_goal,
)
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.live import LiveRun, RunLimits, View
from pairscale.adaptive.messages import has_begun, ids_of
from pairscale.adaptive.selectors import POLLITT, OwnSelector, selector_for
from pairscale.adaptive.session import (
    LOG_VERSION,
    AdaptiveState,
    as_items,
    beliefs_of,
    change_settings,
    check_session,
    event_of,
    existing_path,
    join_items,
    load_session,
    plain_settings,
    require_same_judge,
    require_state,
    require_unique,
    run_path,
    session_exists,
    withdraw_items,
)
from pairscale.core.display import PlotMixin, ReportMixin
from pairscale.core.errors import InputError, JudgeError, StoreMismatchError
from pairscale.core.files import write_table
from pairscale.core.options import FilePath, ProgressMode, checked, optional, require_int, require_run
from pairscale.core.samples import read_samples, with_kept
from pairscale.core.tables import listed
from pairscale.core.traits import Trait
from pairscale.judges.base import Judge, no_grading
from pairscale.judges.build import judge_with, make_judge
from pairscale.judges.panel import panel_settings
from pairscale.models.bayes.logs import ITEM_FIGURES, summarize_items, summarize_refits
from pairscale.models.scores import with_scores
from pairscale.runtime import RETRIES, TIMEOUT, RunOptions
from pairscale.store.policies import JournalWriter
from pairscale.store.runfile import open_run

if TYPE_CHECKING:
    from pairscale.adaptive.refits import FitFn
    from pairscale.core.tables import Table
    from pairscale.models.bayes.settings import Answer
    from pairscale.providers.catalog import Price
    from pairscale.store.reading import Comparisons


_CERTAINTY = ("reliability_lower", "reliability_upper", "rank_correlation", "reliability_without_outliers")


@dataclass(frozen=True, slots=True, repr=False)
class AdaptiveResult(PlotMixin, ReportMixin, table="items", columns=ITEM_FIGURES, charts=("scores", "ranks")):
    """What an adaptive run gave.

    Attributes:
        state: the run, for :func:`adaptive_rank_run_live` and the accessors.
        summary: the run in one row.
        refits: one row per refit.
        items: The ranking: the item log of the last refit, best first by ``rank``, the place by the posterior mean. In
            that of :func:`rank`, ``score`` stands behind ``ID``, with ``score_lower`` and ``score_upper``: of 100
            comparisons with the other texts of this set, how many it would win. The other columns of the samples stand
            last, such as a name or a class. In a run with withdrawn items, ``withdrawn`` is the last column.
        logs: ``step_log``, ``round_log`` and ``item_log`` (a list of tables); with ``include_raw``, also
            ``raw_responses``.
        output_file: where the outputs were saved, when they were.
    """

    state: AdaptiveState
    summary: pl.DataFrame
    refits: pl.DataFrame
    items: pl.DataFrame
    logs: dict[str, Any]
    output_file: Path | None = None

    @property
    def results(self) -> pl.DataFrame:
        """The comparisons of the run, as :func:`submit_pairs` gives them."""
        return self.state.results

    def as_comparisons(self) -> Comparisons:
        """The same with all items, and how the pairs were chosen, for :func:`pairscale.fit`."""
        return self.state.as_comparisons()

    @property
    def notices(self) -> tuple[str, ...]:
        """Who judged, and whether that was a judgement at all."""
        who = self.state.judge_id
        return () if who is None else (f"judged by {who}. {no_grading([who])}".rstrip(),)

    def __str__(self) -> str:
        return str(self.state)


@checked
def rank(
    data: Table,
    *,
    judge: str | Judge | Callable[..., Any] | Sequence[str | Judge | Callable[..., Any]] = "lexical",
    run: FilePath | None = None,
    trait: str | Trait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    cache: bool | None = None,
    price: Price | Mapping[str, Any] | None = None,
    goal: str = "order",
    answer: Answer = "winner",
    preset: Preset = OURS,
    selector: str | OwnSelector | None = None,
    concurrency: int = 1,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    max_comparisons: int | None = None,
    max_cost: float | None = None,
    max_minutes: float | None = None,
    steps: int | None = None,
    reliability: float | None = None,
    add: Table | FilePath | None = None,
    without: str | Sequence[str] = (),
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    fit: FitFn | str = "exact",
    seed: int = 1,
    progress: ProgressMode = "all",
    id_col: int | str | None = None,
    text_col: int | str | None = None,
    encoding: str | None = None,
    strict: bool = False,
    skip_unreadable: bool = False,
) -> AdaptiveResult:
    """Rank texts adaptively: each pair is chosen by what is known so far, and the run stops when the order is reliable.

    Run the same call again to resume after a limit, an error or Ctrl-C; ``run`` names the file that holds everything.
    New texts in ``data`` join the run. A changed text, judge, seed, preset or setting is an error that names it, except
    that the stop rule may change while the run is paused, and any setting after it has stopped.

    Args:
        data: Samples: a table, a file (csv, tsv, jsonl, parquet, xlsx), a folder of texts (txt, md,
            html, docx, odt, pdf), or what :func:`inspect_samples` returns.
        judge: A name (``lexical``, ``openai:gpt-5.1``, ``module:function``), a function ``judge(A, B)`` or a
            :class:`Judge`. Several of them, as a list or as one text with commas, share the comparisons: each has a
            slope and a position effect of its own in the model, and weak judges are named.
        run: The run file; without one, the run is kept in memory.
        trait: What to judge: the key of a built-in trait, or a :class:`Trait`.
        template: A prompt template, by its name, file or text.
        judge_args: Settings of the judge; of a function, keyword arguments of every call.
        base_url: Address of the provider, such as ``http://localhost:8000/v1``.
        cache: Whether to use answers of earlier runs to the same request; by default for temperature 0.
        price: US dollars per million tokens, such as ``{"input": 1.25, "output": 10}``; by default the dated table.
        goal: What the run is for: ``order``, the whole ranking, or ``top:K``, such as ``top:10``, the K best texts;
            then the pairs are chosen for that, and the run stops when few wrong members are expected among them.
        answer: What is evidence: the ``winner``, or the ``probability`` that the judge gives; a model is then asked for
            log-probabilities, and scores are in the judge's logits.
        preset: The settings to start from: ``pairscale``, or ``pairwiseLLM``, the design document's.
        selector: What chooses the pairs: ``pollitt`` (the default for the whole order), ``information`` (the default
            for ``top:K``), ``random``, ``nearest``, ``module:function``, or a function of your own (see
            ``pairscale.adaptive.selectors.OwnSelector``).
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer may take; None for no limit.
        max_comparisons: Maximum number of comparisons of the whole run.
        max_cost: US dollars that the run may spend, all calls and resumptions together.
        max_minutes: Minutes that this call may take.
        steps: Maximum number of questions of this call, those without a valid answer included.
        reliability: Reliability to stop at, the squared correlation to expect between the scores and the judge's true
            scale; 0.9 by default. It belongs to the goal ``order``.
        add: Further texts that join those of ``data``, such as texts with known marks; a finished run asks what it
            takes to place them.
        without: IDs of texts to withdraw from the run, for good.
        adaptive_config: Fields of ``AdaptiveConfig`` to use instead of the preset's.
        btl_config: Fields of ``BTLConfig`` to use instead of the preset's.
        fit: What fits the model: ``exact`` (the sampler), ``laplace`` (a fast approximation) or a function.
        seed: Seed of every choice.
        progress: ``none`` shows nothing; ``all``, ``refits``, ``steps`` and ``line`` show the same line.
        id_col: The column of ids, by name, position from 0 or path in JSON.
        text_col: The column of texts, by name, position from 0 or path in JSON.
        encoding: Encoding of the text files; detected by default.
        strict: Raise an error if any file was not read.
        skip_unreadable: Continue without the files that need an optional package that is not installed.

    Returns:
        An :class:`AdaptiveResult` with ``state``, ``summary``, ``refits``, ``items`` and ``logs``.

    Raises:
        InputError: If the data, the judge or a setting cannot be used.
        JudgeError: If the judge cannot be asked, or fails in the same way on ten different questions in a row; its
            ``result`` holds what came before.
        StoreError: If the run file cannot be used, or holds another run.

    Example:
        >>> import pairscale as ps
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> texts = [{"ID": name, "text": "word " * length} for name, length in [("a", 3), ("b", 1), ("c", 2)]]
        >>> out = ps.rank(texts, judge=longer, steps=6, fit="laplace", progress="none")
        >>> out.items["ID"].to_list(), out.summary["preset"].item()
        (['a', 'c', 'b'], 'pairscale')
    """
    reading: dict[str, Any] = {
        "id_col": id_col, "text_col": text_col, "encoding": encoding, "strict": strict,
        "skip_unreadable": skip_unreadable,
    }  # fmt: skip
    samples = read_samples(data, **reading)
    if add is not None:
        more = read_samples(add, **reading)
        samples = require_unique(pl.concat([samples, more], how="diagonal_relaxed"), "data and add")
    asked = judge_with(
        judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url, cache=cache, price=price,
        answer=answer,
    )  # fmt: skip
    limit = optional(require_int, steps, "steps", least=0)
    settings = with_goal(goal, adaptive_config, reliability)
    btl = panel_settings(asked, stopping_at(reliability, btl_config, answer), preset)
    return rank_samples(
        samples, asked, limit, fit, run=optional(require_run, run, "run"), without=without, preset=preset,
        seed=seed, selector=selector_for(selector, settings.get("goal", "order")), adaptive_config=settings,
        btl_config=btl, progress=progress, concurrency=concurrency, retries=retries,
        timeout=timeout, max_comparisons=max_comparisons, max_cost=max_cost, max_minutes=max_minutes, keep_columns=True,
        closing_refit=True,
    )  # fmt: skip


def rank_samples(
    samples: pl.DataFrame,
    judge: Judge,
    n_steps: int | None,
    fit_fn: FitFn | str | None,
    *,
    preset: str,
    seed: int,
    selector: str | OwnSelector,
    adaptive_config: Mapping[str, Any] | None,
    btl_config: Mapping[str, Any] | None,
    run: str | None,
    resume: bool = True,
    without: str | Sequence[str] = (),
    keep_columns: bool = False,
    include_raw: bool = False,
    save_outputs: bool = False,
    output_file: FilePath | None = None,
    persist_item_log: bool = False,
    **options: Any,
) -> AdaptiveResult:
    """Start a run or continue it; see :func:`adaptive_rank`. ``options`` are those of ``adaptive_rank_run_live``.

    With ``keep_columns``, the other columns of the samples stand behind the ranking; the manual's has its own alone.
    """
    gone = [without] if isinstance(without, str) else [str(name) for name in without]
    given: dict[str, Any] = {"adaptive_config": adaptive_config, "btl_config": btl_config}
    if session_exists(run):
        if not resume:
            raise InputError(f"{run} holds a run already; give resume=True to continue with it, or name another file")
        state = load_session(str(run), selector)
        require_same_judge(state, judge)
        for name, value in (("seed", seed), ("preset", preset)):
            if state.settings[name] != value:
                raise StoreMismatchError(
                    f"{run} was started with {name}={state.settings[name]!r}, not {value!r}; give that, or take a new "
                    "run file"
                )
        configs = _settings_now(state, given)
        missing = sorted(set(state.ids) - {*samples["ID"], *gone, *state.withdrawn})
        if missing:
            raise StoreMismatchError(
                f"{run} ranks {listed(missing)}, which the data lack; is it another data set? To withdraw a text from "
                "the run, name it in `without=`"
            )
        late = samples.filter(~pl.col("ID").is_in(state.ids))
        if late.height:
            join_items(state, late)
        change_settings(state, **configs, is_free=False)
        with state.writing() as store:
            store.add_items(samples.iter_rows(named=True))  # names the samples whose text has changed
    else:
        state = adaptive_rank_start(
            samples, seed, persist_item_log=persist_item_log, selector=selector, preset=preset, run=run, **given
        )
    withdraw_items(state, gone)
    try:
        adaptive_rank_run_live(state, judge, n_steps, fit_fn, persist_item_log=persist_item_log, **options)
    except JudgeError as error:
        error.result = _result(state, keep_columns, include_raw)
        raise
    out = _result(state, keep_columns, include_raw)
    if save_outputs or output_file is not None:
        return replace(out, output_file=_save(out, output_file))
    return out


def _settings_now(state: AdaptiveState, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of a run that is taken up; one of an earlier version continues without what it did not know."""
    configs = {}
    for name, resolved in zip(given, resolve_preset(state.preset, **given), strict=True):
        known = {*state.settings[name], *given_settings(given[name], name)}
        kept = {setting: value for setting, value in resolved.items() if setting in known}
        configs[name] = plain_settings(kept, name)
    return configs


def _result(state: AdaptiveState, keep_columns: bool, include_raw: bool) -> AdaptiveResult:
    items = summarize_items(state, sort_by="theta_mean")
    if keep_columns:
        items, _ = with_kept(with_scores(items), state.items)
    if state.withdrawn:
        items = items.with_columns(withdrawn=pl.col("ID").is_in(state.withdrawn))
    logs = state.logs
    if include_raw:
        step_id = pl.col("custom_id").str.extract(r"^step-(\d+)$").cast(pl.Int64)
        with state.reading() as store:
            answers = store.results(raw=True).with_columns(step_id=step_id).drop_nulls("step_id")
        logs["raw_responses"] = answers.select("step_id", "ID1", "ID2", "better_id", "outcome", "raw_response")
    return AdaptiveResult(state, summarize_adaptive(state), summarize_refits(state), items, logs)


def _save(out: AdaptiveResult, target: FilePath | None) -> Path:
    """Every table as a file of a folder, or the ranking alone as the file that was named."""
    if target is None:
        target = (out.state.folder or Path.cwd()) / "adaptive_outputs"
    folder = Path(target)
    if folder.suffix:
        return write_table(out.items, folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("summary", "refits", "items"):
        write_table(getattr(out, name), folder / f"{name}.csv")
    write_table(out.state.step_log, folder / "step_log.csv")
    return folder


# The manual's functions


@checked
def adaptive_rank_start(
    items: Any,
    seed: int = 1,
    session_dir: FilePath | None = None,
    persist_item_log: bool = False,
    *,
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    selector: str | OwnSelector = POLLITT,
    preset: str = DOCUMENT,
    run: FilePath | None = None,
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
    adaptive, btl = resolve_preset(preset, adaptive_config, btl_config)
    beliefs = beliefs_of(frame)
    engine = Engine(
        frame["ID"].to_list(), seed=seed, selector=selector, adaptive_config=adaptive, btl_config=btl, **beliefs
    )
    settings = {
        "seed": engine.seed,
        "selector": engine.selector,
        "preset": preset,
        "adaptive_config": plain_settings(adaptive, "adaptive_config"),
        "btl_config": plain_settings(btl, "btl_config"),
        "persist_item_log": persist_item_log,
    }
    state = AdaptiveState(frame, engine, run_path(session_dir, run), settings)
    with state.writing(fresh=True) as store:
        if has_begun(store):
            raise StoreMismatchError(f"{store.name} holds an adaptive run already; resume it, or name another file")
        store.add_items(frame.iter_rows(named=True))
        # In this order: the run is there from its first event on, and a process that dies before leaves none.
        store.set_meta("adaptive", {"log_version": LOG_VERSION, "package_version": __version__})
        with JournalWriter(store) as journal:
            journal.event(event_of("start", engine, ids=engine.ids, **settings, **beliefs))
    return state


@checked
def adaptive_rank_run_live(
    state: AdaptiveState,
    judge: str | Judge | Callable[..., Any],
    n_steps: int | None = 1,
    fit_fn: FitFn | str | None = None,
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    session_dir: FilePath | None = None,
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
        progress: ``none`` shows nothing; ``all``, ``refits``, ``steps`` and ``line`` show the same line.
        progress_redraw_every: steps between two drawings.
        progress_show_events: say what is notable.
        progress_errors: say which answers were not valid.
        concurrency: Questions open at once.
        max_comparisons: stop when the whole run has this many comparisons.
        max_cost: US dollars that the run may spend, all calls and resumptions together.
        max_minutes: stop this call after this time; what is being asked then is waited for, and not asked again.
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
    if session_dir is not None:
        save_adaptive_session(state, session_dir)
    if persist_item_log is not None:
        state.settings["persist_item_log"] = persist_item_log
    limits = RunLimits(n_steps, max_comparisons, max_cost, max_minutes)
    asking = RunOptions(concurrency, retries, retry_wait, timeout, max_cost)
    live_judge = make_judge(judge, judge_call_args=judge_call_args or None)
    condition_id = require_same_judge(state, live_judge)  # before anything changes
    change_settings(
        state,
        {**state.settings["adaptive_config"], **plain_settings(adaptive_config, "adaptive_config")},
        {**state.settings["btl_config"], **plain_settings(btl_config, "btl_config")},
        is_free=True,
    )
    view = View(
        progress, state, limits, redraw_every=progress_redraw_every, show_events=progress_show_events,
        show_errors=progress_errors,
    )  # fmt: skip
    closing = n_steps != 1 if closing_refit is None else closing_refit
    LiveRun(state, live_judge, condition_id, limits, asking, view, fit_fn, closing).run()
    return state


@checked
def adaptive_rank_resume(
    session_dir: FilePath | None = None,
    *,
    run: FilePath | None = None,
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
    if run is not None and session_dir is not None:
        raise InputError("give session_dir or run, not both: session_dir=DIR means the run file DIR/run.db")
    return load_session(existing_path(session_dir) if run is None else require_run(run), selector)


@checked
def load_adaptive_session(session_dir: FilePath, *, selector: str | OwnSelector | None = None) -> AdaptiveState:
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
    return adaptive_rank_resume(session_dir, selector=selector)


@checked
def save_adaptive_session(state: AdaptiveState, session_dir: FilePath, overwrite: bool = False) -> Path:
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
    state.save(str(run_path(session_dir, None)), overwrite=overwrite)
    return Path(session_dir)


@checked
def validate_session_dir(session_dir: FilePath) -> dict[str, Any]:
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
    where = existing_path(session_dir)
    with open_run(where) as store, store.snapshot():
        facts = check_session(store, where)
        return {
            "schema_version": facts["log_version"],
            "package_version": facts["package_version"],
            "n_items": len(ids_of(store.read_log("adaptive_events"))),
            "steps": store.log_length("step_log"),
            "refits": store.log_length("round_log"),
            "created_at": store.get_meta("created_at"),
        }


def summarize_adaptive(state: AdaptiveState) -> pl.DataFrame:
    """A run in one row: items, steps, comparisons, refits, whether and why it has stopped, and what its claims rest on.

    All figures are those of the last refit; missing where there is none, or the model has no such figure:
    ``position_effect`` is the posterior mean of the bias for the first position, and ``weak_judges`` are the weak ones
    of a panel, as JSON. With the preset ``pairscale``, ``reliability`` is the squared correlation to expect between the
    scores and the judge's true scale, ``reliability_lower`` and ``reliability_upper`` are its 95 % interval,
    ``reliability_eap`` is EAP reliability, ``rank_correlation`` is the rank correlation to expect with the true order,
    and ``reliability_without_outliers`` is the reliability without texts that lie far from all others, where there are
    some. With ``pairwiseLLM``, ``reliability`` is EAP reliability.

    Example:
        >>> import pairscale as ps
        >>> ps.summarize_adaptive(ps.adaptive_rank_start(["a", "b", "c"], seed=11)).row(0)[:7]
        (3, 0, 0, 0, False, None, 'pairwiseLLM')
    """
    engine = require_state(state).engine
    last = state.latest
    row = {
        "n_items": engine.ledger.n,
        "steps_attempted": engine.rows,
        "committed_pairs": engine.committed,
        "n_refits": len(state.rounds),
        "last_stop_decision": state.stop_reason is not None,
        "last_stop_reason": state.stop_reason,
        "preset": state.preset,
        "goal": engine.config.goal,
        "reliability": last.get("reliability"),
        "judge_id": state.judge_id,
        "position_effect": last.get("b_mean"),
        "repeat_agreement": last.get("repeat_agreement"),
        "weak_judges": last.get("weak_judges"),
        "reliability_eap": last.get("reliability_EAP"),
        **{name: last.get(name) for name in _CERTAINTY},
    }
    texts = ("last_stop_reason", "judge_id", "weak_judges")
    numbers = ("reliability", "position_effect", "repeat_agreement", "reliability_eap", *_CERTAINTY)
    types: dict[str, Any] = dict.fromkeys(texts, pl.String()) | dict.fromkeys(numbers, pl.Float64())
    summary = pl.DataFrame([row], schema_overrides=types)
    return summary if state.preset == OURS else summary.drop("reliability_eap", *_CERTAINTY)
