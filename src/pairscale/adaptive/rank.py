"""``adaptive_rank``: from texts and a judge to a ranking, in one call that can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.adaptive.live import (
    adaptive_rank_run_live,
    changed_settings,
    changes_stop_rule_only,
    reconfigure,
)
from pairscale.adaptive.selectors import POLLITT, OwnSelector
from pairscale.adaptive.session import (
    adaptive_rank_resume,
    adaptive_rank_start,
    adaptive_session_exists,
    event_of,
    plain_settings,
    reading,
    run_path,
    writing,
)
from pairscale.adaptive.state import AdaptiveState, beliefs_of, summarize_adaptive
from pairscale.display import Charted, Reported
from pairscale.errors import InputError, JudgeError, StoreMismatchError
from pairscale.files import TABLE_SUFFIXES, write_table
from pairscale.judges.base import Judge
from pairscale.judges.resolve import make_judge
from pairscale.models.logs import ITEM_FIGURES, summarize_items, summarize_refits
from pairscale.notices import did_you_mean, notice
from pairscale.options import require_int, require_path, require_suffix
from pairscale.providers.registry import PROVIDERS
from pairscale.samples import read_samples
from pairscale.tables import listed
from pairscale.traits import Trait

if TYPE_CHECKING:
    import os

    from pairscale.adaptive._view import Mode
    from pairscale.adaptive.refits import FitFn
    from pairscale.tables import Table

__all__ = ["AdaptiveResult", "adaptive_rank"]

_OPTIONS = ("concurrency", "max_comparisons", "max_cost", "max_minutes", "retries", "retry_wait", "timeout")


@dataclass(frozen=True, slots=True, repr=False)
class AdaptiveResult(Charted, Reported, table="items", columns=ITEM_FIGURES, charts=("scores", "ranks")):
    """What an adaptive run gave.

    Attributes:
        state: the run, for :func:`adaptive_rank_run_live` and the accessors.
        summary: the run in one row.
        refits: one row a refit.
        items: the ranking: one row an item, best first; the item log of the last refit, and ``rank`` behind it. In a
            run with withdrawn items, ``withdrawn`` is the last column.
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

    def __repr__(self) -> str:
        return f"<AdaptiveResult: {self.state}>"


def adaptive_rank(
    data: Table,
    id_col: int | str | None = None,
    text_col: int | str | None = None,
    backend: str | None = None,
    model: str | None = None,
    trait: str | Trait = "overall_quality",
    trait_name: str | None = None,
    trait_description: str | None = None,
    prompt_template: str | None = None,
    endpoint: str | None = None,
    api_key: str | None = None,
    include_raw: bool = False,
    judge_args: Mapping[str, Any] | None = None,
    judge_call_args: Mapping[str, Any] | None = None,
    n_steps: int | None = None,
    fit_fn: FitFn | str | None = None,
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    session_dir: str | os.PathLike[str] | None = None,
    persist_item_log: bool = False,
    resume: bool = True,
    seed: int = 1,
    progress: Mode = "all",
    progress_redraw_every: int = 10,
    progress_show_events: bool = True,
    progress_errors: bool = True,
    save_outputs: bool = False,
    output_file: str | os.PathLike[str] | None = None,
    judge: str | Judge | Callable[..., Any] | None = None,
    *,
    selector: str | OwnSelector = POLLITT,
    run: str | os.PathLike[str] | None = None,
    without: str | Sequence[str] = (),
    **options: Any,
) -> AdaptiveResult:
    """Rank texts adaptively: the run chooses which pairs to ask about, and stops when the ranking is reliable.

    The same call again goes on where the run file (``run`` or ``session_dir``) is: after a limit, a Ctrl-C or a crash.
    New rows in ``data`` join the run; a changed text, seed or setting is an error that names it. A run that has stopped
    goes on with other settings, such as a higher ``eap_reliability_min``. One that is paused takes another stop rule
    (``eap_reliability_min``, ``stability_lag``, ``theta_corr_min``, ``theta_sd_rel_change_max``,
    ``rank_spearman_min``) and nothing else; it stops at once if its last refit meets the rule. The log says from where
    on settings hold.

    Args:
        data: samples: a table, a file (csv, tsv, jsonl, parquet, xlsx) or a folder of ``.txt`` files.
        id_col: the column of ids, by name or position from 0.
        text_col: the column of texts, likewise.
        backend: the provider, for ``model``; ``openai`` by default.
        model: the model that judges; with ``backend``, another way to write ``judge="backend:model"``.
        trait: what to judge: a built-in trait's key or a :class:`Trait`.
        trait_name: of a trait of your own, with
        trait_description: its definition.
        prompt_template: a template's name, file or text.
        endpoint: of OpenAI: ``chat.completions`` or ``responses``; None chooses by the model.
        api_key: the key of the provider; by default that of the environment. It is kept in no log and no file.
        include_raw: add ``raw_responses`` to ``logs``: ``step_id ID1 ID2 better_id outcome raw_response``, one row per
            step that has an answer. The run file keeps the raw replies in any case.
        judge_args: settings of the judge.
        judge_call_args: keyword arguments of every call of a callable judge.
        n_steps: steps of this call, invalid ones included; None runs to the statistical stop.
        fit_fn: what fits: ``exact``, the sampler (default); ``laplace``, a fast approximation; or a function. A run
            keeps to the one that it began with.
        adaptive_config: fields of ``AdaptiveConfig``.
        btl_config: fields of ``BTLConfig``.
        session_dir: keep the run in ``session_dir/run.db``.
        persist_item_log: write the items of every refit as a CSV file, too.
        resume: go on with a run that is there; False refuses to touch it.
        seed: of every choice.
        progress: ``all``, ``refits``, ``steps`` or ``none``.
        progress_redraw_every: steps between two drawings.
        progress_show_events: say what is notable.
        progress_errors: say which answers were not valid.
        save_outputs: save summary, refits and items to ``output_file``.
        output_file: a table of the items (csv, tsv, jsonl, json, parquet, xlsx, by its ending), or a folder for
            summary, refits, items and step log; by default the folder ``adaptive_outputs`` beside the run file.
        judge: a name (``lexical``, ``openai:gpt-5.1``), a callable ``judge(A, B, state)`` or a :class:`Judge`.
            ``backend``, ``model``, ``endpoint`` and ``api_key`` are those of a language model; others ignore them.
        selector: who chooses: ``pollitt``, ``random``, ``nearest`` or ``information``; a function of your own (see
            ``pairscale.adaptive.selectors.OwnSelector``); or ``module:function``.
        run: the run file.
        without: ids of texts to withdraw from the run, for good: they are not asked about any more, and the run stops
            when the others satisfy the stop rule. Their comparisons stay, and with them their place in ``items``, which
            then has a last column ``withdrawn``. A later call need not name them again.
        options: of :func:`adaptive_rank_run_live`: ``concurrency``, ``max_comparisons``, ``max_cost``,
            ``max_minutes``, ``retries``, ``retry_wait``, ``timeout``.

    Returns:
        An :class:`AdaptiveResult` with ``state``, ``summary``, ``refits``, ``items``, ``logs`` and ``output_file``.

    Raises:
        InputError: data, judge or a setting cannot be used.
        JudgeError: the judge cannot be asked, or fails in the same way on ten different questions in a row; its
            ``result`` is what came of the answers before.
        StoreError: the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> longer = lambda A, B: {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}
        >>> texts = [{"ID": name, "text": "word " * length} for name, length in [("a", 3), ("b", 1), ("c", 2)]]
        >>> out = ps.adaptive_rank(texts, judge=longer, n_steps=6, progress="none", fit_fn="laplace")
        >>> out.items["ID"].to_list()
        ['a', 'c', 'b']
    """
    judge_ = _judge(
        _named(judge, backend, model), _trait(trait, trait_name, trait_description), prompt_template,
        {"endpoint": endpoint, "api_key": api_key}, judge_args, judge_call_args,
    )  # fmt: skip
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise InputError(
            f"adaptive_rank has no option {listed(unknown)}; there are also {listed(sorted(_OPTIONS), 20)}"
        )
    _check_output(output_file)
    samples = read_samples(data, id_col=id_col, text_col=text_col)
    where = run_path(session_dir, run)
    gone = [without] if isinstance(without, str) else [str(name) for name in without]
    settings: dict[str, Any] = {
        "seed": require_int(seed, "seed", least=0),
        "adaptive_config": plain_settings(adaptive_config, "adaptive_config"),
        "btl_config": plain_settings(btl_config, "btl_config"),
    }
    if adaptive_session_exists(where):
        if not resume:
            raise InputError(f"{where} holds a run already; give resume=True to go on with it, or name another file")
        state = adaptive_rank_resume(run=where, selector=selector)
        _same_settings(state, settings)
        _same_samples(state, samples, gone)
        reconfigure(state, settings["adaptive_config"], settings["btl_config"])
    else:
        state = adaptive_rank_start(
            samples, run=where, persist_item_log=persist_item_log, selector=selector, **settings
        )
    withdraw_items(state, gone)
    try:
        adaptive_rank_run_live(
            state, judge_, n_steps, fit_fn, persist_item_log=persist_item_log, progress=progress,
            progress_redraw_every=progress_redraw_every, progress_show_events=progress_show_events,
            progress_errors=progress_errors, **options,
        )  # fmt: skip
    except JudgeError as error:
        error.result = _result(state, save_outputs or output_file is not None, output_file, raw=include_raw)
        raise
    return _result(state, save_outputs or output_file is not None, output_file, raw=include_raw)


def _named(
    judge: str | Judge | Callable[..., Any] | None, backend: str | None, model: str | None
) -> str | Judge | Callable[..., Any]:
    if judge is not None:
        return judge
    if model is None:
        raise InputError("name a judge (judge='lexical', judge='openai:gpt-5.1', a callable) or backend and model")
    return f"{backend or 'openai'}:{model}"


def _judge(
    judge: str | Judge | Callable[..., Any],
    trait: Trait | str,
    template: str | None,
    of_model: Mapping[str, Any],
    judge_args: Mapping[str, Any] | None,
    judge_call_args: Mapping[str, Any] | None,
) -> Judge:
    given: dict[str, Any] = {"template": template, "judge_args": judge_args, "judge_call_args": judge_call_args}
    if isinstance(judge, str) and judge.partition(":")[0] in PROVIDERS:
        own = {name: value for name, value in of_model.items() if value is not None}
        given["judge_args"] = dict(judge_args or {}) | own
    if not isinstance(judge, Judge):
        given["trait"] = trait
    return make_judge(judge, **given)


def _trait(trait: str | Trait, name: str | None, description: str | None) -> str | Trait:
    if (name is None) != (description is None):
        raise InputError("a trait of your own needs both trait_name and trait_description")
    return Trait(name, description) if name is not None and description is not None else trait


def _check_output(output_file: str | os.PathLike[str] | None) -> None:
    """Refuse a file that cannot be written before anything is asked rather than after it."""
    if output_file is None or not require_path(output_file, "output_file").suffix:
        return
    require_suffix(output_file, "output_file", TABLE_SUFFIXES)
    if not Path(output_file).parent.is_dir():
        raise InputError(f"output_file {output_file}: there is no folder {Path(output_file).parent}")


def _same_settings(state: AdaptiveState, settings: Mapping[str, Any]) -> None:
    """What a run goes by must be as it was; after a stop it may be anything, in a pause the stop rule may change."""
    changed = [name for name, value in settings.items() if state.settings[name] != value]
    if changed and changed != ["seed"]:
        configs = {name: settings[name] for name in ("adaptive_config", "btl_config")}
        allowed = state.engine.stop_reason is not None or changes_stop_rule_only(state, **configs)
        other = [] if allowed else changed_settings(state, **configs)
        changed = [name for name in changed if name in ("seed", *other)]
    for name in changed:
        raise StoreMismatchError(
            f"{state.where} was started with {name}={state.settings[name]!r}, not {settings[name]!r}; "
            "give that, or take a new run file"
        )


def _same_samples(state: AdaptiveState, samples: pl.DataFrame, without: Sequence[str]) -> None:
    """The texts must be as they were; new samples join, and none may be missing that is not withdrawn."""
    known, given = set(state.ids), set(samples["ID"])
    if missing := sorted(known - given - set(without) - set(state.withdrawn)):
        raise StoreMismatchError(
            f"{state.where} ranks {listed(missing)}, which the data lack; is it another data set? To withdraw a text "
            "from the run, name it in without="
        )
    late = samples.filter(~pl.col("ID").is_in(list(known)))
    with writing(state) as store:
        store.add_items(samples.iter_rows(named=True))  # names the samples whose text has changed, before anything else
    if late.height:
        join_items(state, late)


def join_items(state: AdaptiveState, late: pl.DataFrame) -> None:
    """Late items join a run."""
    ids = late["ID"].to_list()
    mu, sigma = beliefs_of(late, ids)
    priors = {"mu": None if mu is None else mu.tolist(), "sigma": None if sigma is None else sigma.tolist()}
    event = event_of("join", state.engine, ids=ids, **priors)
    state.engine.join(ids, mu, sigma)
    state.unlogged.append(event)
    state.ended = None
    state.items = pl.concat([state.items, late], how="diagonal_relaxed")
    notice(f"{len(ids):,} new items join the run: {listed(ids)}")


def withdraw_items(state: AdaptiveState, ids: Sequence[str]) -> None:
    """Withdraw items from a run, say so, and have it logged; those that were withdrawn before are passed over."""
    new = [name for name in dict.fromkeys(ids) if name not in state.withdrawn]
    if not new:
        return
    if unknown := [name for name in new if name not in state.ids]:
        near = did_you_mean(unknown[0], state.ids)
        raise InputError(f"without: the run has no text {listed(unknown)}.{near}")
    # A question of a step that was never finished may stand in the run file; its number is not used for another pair.
    with reading(state) as store:
        asked = store.failed_attempts()["custom_id"].str.extract(r"^step-(\d+)$").cast(pl.Int64)
    event = event_of("withdraw", state.engine, ids=new, taken=max(state.engine.steps, asked.max() or 0))
    state.engine.withdraw(new, taken=event["taken"])
    state.unlogged.append(event)
    degree = dict(zip(state.ids, state.engine.ledger.degree.tolist(), strict=True))
    places = [f"{name!r} ({degree[name]:,} comparisons)" for name in new[:5]] + (["…"] if len(new) > 5 else [])
    notice(f"withdrawn from the run, and not asked about any more: {', '.join(places)}; what was answered stays")


def _result(
    state: AdaptiveState, save: bool, output_file: str | os.PathLike[str] | None, *, raw: bool
) -> AdaptiveResult:
    summary, refits = summarize_adaptive(state), summarize_refits(state)
    items = summarize_items(state).with_columns(rank=pl.col("rank_mean").rank("min").cast(pl.Int64))
    if state.withdrawn:
        items = items.with_columns(withdrawn=pl.col("ID").is_in(state.withdrawn))
    saved = _saved(state, {"summary": summary, "refits": refits, "items": items}, output_file) if save else None
    logs = state.logs | ({"raw_responses": _raw_responses(state)} if raw else {})
    return AdaptiveResult(state, summary, refits, items, logs, saved)


def _raw_responses(state: AdaptiveState) -> pl.DataFrame:
    """The raw replies of the judge, one row per step that has an answer, from the run file."""
    with reading(state) as store:
        found = store.results(raw=True).filter(pl.col("custom_id").str.contains(r"^step-\d+$"))
    if found.height and found["raw_response"].null_count() == found.height:
        notice("include_raw: this judge gives no raw replies, so that raw_response is empty")
    step_id = pl.col("custom_id").str.strip_prefix("step-").cast(pl.Int64)
    return found.select(step_id.alias("step_id"), "ID1", "ID2", "better_id", "outcome", "raw_response")


def _saved(state: AdaptiveState, tables: Mapping[str, pl.DataFrame], target: str | os.PathLike[str] | None) -> Path:
    """Every table as a file of a folder, or the ranking alone as the file that was named."""
    if target is not None and Path(target).suffix:
        return write_table(tables["items"], target)
    beside = state.where is not None and "://" not in state.where
    default = Path(str(state.where)).parent if beside else Path.cwd()
    folder = Path(target) if target is not None else default / "adaptive_outputs"
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in {**tables, "step_log": state.step_log}.items():
        write_table(table, folder / f"{name}.csv")
    return folder
