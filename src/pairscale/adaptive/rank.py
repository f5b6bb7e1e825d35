"""From texts and a judge to a ranking, in one call that can be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.adaptive.live import (
    adaptive_rank_run_live,
    changed_settings,
    changes_stop_rule_only,
    raises_flip_share_only,
    reconfigure,
    require_same_judge,
)
from pairscale.adaptive.presets import resolve_preset
from pairscale.adaptive.selectors import OwnSelector, named_selector
from pairscale.adaptive.session import (
    adaptive_rank_resume,
    adaptive_rank_start,
    adaptive_session_exists,
    event_of,
    plain_settings,
    reading,
    writing,
)
from pairscale.adaptive.state import AdaptiveState, beliefs_of, summarize_adaptive
from pairscale.core.display import PlotMixin, ReportMixin
from pairscale.core.errors import InputError, JudgeError, StoreMismatchError
from pairscale.core.files import write_table
from pairscale.core.notices import notice
from pairscale.core.options import require_int
from pairscale.core.samples import with_kept
from pairscale.core.tables import listed
from pairscale.judges.base import Judge
from pairscale.judges.names import no_grading
from pairscale.models.bayes.logs import ITEM_FIGURES, summarize_items, summarize_refits

if TYPE_CHECKING:
    import os

    from pairscale.adaptive.refits import FitFn
    from pairscale.store.reading import Comparisons

__all__ = ["AdaptiveResult", "rank_samples"]


@dataclass(frozen=True, slots=True, repr=False)
class AdaptiveResult(PlotMixin, ReportMixin, table="items", columns=ITEM_FIGURES, charts=("scores", "ranks")):
    """What an adaptive run gave.

    Attributes:
        state: the run, for :func:`adaptive_rank_run_live` and the accessors.
        summary: the run in one row.
        refits: one row per refit.
        items: The ranking: the item log of the last refit, best first by ``rank``, the place by the posterior mean. In
            that of :func:`rank`, the other columns of the samples stand behind it, such as a name or a class. In a run
            with withdrawn items, ``withdrawn`` is the last column.
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

    def __repr__(self) -> str:
        return f"<AdaptiveResult: {self.state}>"


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
    include_raw: bool = False,
    save_outputs: bool = False,
    output_file: str | os.PathLike[str] | None = None,
    persist_item_log: bool = False,
    keep_columns: bool = False,
    **options: Any,
) -> AdaptiveResult:
    """Start a run or continue it; see :func:`adaptive_rank`. ``options`` are those of ``adaptive_rank_run_live``.

    With ``keep_columns``, the other columns of the samples stand behind the ranking; the manual's has its own alone.
    """
    gone = [without] if isinstance(without, str) else [str(name) for name in without]
    selector = named_selector(selector)
    adaptive, btl = resolve_preset(preset, adaptive_config, btl_config)
    settings: dict[str, Any] = {
        "seed": require_int(seed, "seed", least=0),
        "preset": preset,
        "adaptive_config": plain_settings(adaptive, "adaptive_config"),
        "btl_config": plain_settings(btl, "btl_config"),
    }
    save = save_outputs or output_file is not None
    result = partial(_result, save=save, output_file=output_file, raw=include_raw, keep=keep_columns)
    options.setdefault("closing_refit", True)

    if adaptive_session_exists(run):
        if not resume:
            raise InputError(f"{run} holds a run already; give resume=True to continue with it, or name another file")
        state = adaptive_rank_resume(run=run, selector=selector)
        require_same_judge(state, judge)
        _same_settings(state, settings)
        _same_samples(state, samples, gone)
        reconfigure(state, settings["adaptive_config"], settings["btl_config"])
    else:
        state = adaptive_rank_start(samples, run=run, persist_item_log=persist_item_log, selector=selector, **settings)
    withdraw_items(state, gone)
    try:
        adaptive_rank_run_live(state, judge, n_steps, fit_fn, persist_item_log=persist_item_log, **options)
    except JudgeError as error:
        error.result = result(state)
        raise
    return result(state)


def _same_settings(state: AdaptiveState, settings: Mapping[str, Any]) -> None:
    """What a run goes by must be as it was; after a stop it may be anything, in a pause the stop rule may change."""
    changed = [name for name, value in settings.items() if state.settings[name] != value]
    if "preset" in changed:
        changed = ["preset"]  # the settings differ because of it
    elif changed and changed != ["seed"]:
        configs = {name: settings[name] for name in ("adaptive_config", "btl_config")}
        allowed = state.engine.stop_reason is not None or changes_stop_rule_only(state, **configs)
        allowed = allowed or raises_flip_share_only(state, **configs)
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
            "from the run, name it in `without=`"
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
    beliefs = {"mu": None if mu is None else mu.tolist(), "sigma": None if sigma is None else sigma.tolist()}
    event = event_of("join", state.engine, ids=ids, **beliefs)
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
        raise InputError(f"`without=`: the run has no text {listed(unknown)}")
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
    state: AdaptiveState, *, save: bool, output_file: str | os.PathLike[str] | None, raw: bool, keep: bool
) -> AdaptiveResult:
    summary, refits = summarize_adaptive(state), summarize_refits(state)
    items = summarize_items(state, sort_by="theta_mean")
    if keep:
        items, _ = with_kept(items, state.items)
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
        notice("include_raw: this judge gives no raw replies, so raw_response is empty")
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
