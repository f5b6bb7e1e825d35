"""``adaptive_rank``: the manual's signature of adaptive ranking, with the settings of the design document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.adaptive.config import DOCUMENT, OURS, PRESETS, Preset
from pairscale.adaptive.rank import AdaptiveResult, rank_samples
from pairscale.adaptive.selectors import POLLITT, OwnSelector
from pairscale.adaptive.session import run_path, session_exists
from pairscale.compat._given import model_settings
from pairscale.compat.logs import as_r_logs, with_r_names
from pairscale.core.errors import InputError, JudgeError
from pairscale.core.files import TABLE_SUFFIXES
from pairscale.core.notices import notice
from pairscale.core.options import ProgressMode, checked, require_choice, require_path, require_suffix
from pairscale.core.samples import read_samples, say_positions
from pairscale.core.tables import listed
from pairscale.core.traits import Trait, choose_trait
from pairscale.judges.base import Judge
from pairscale.judges.build import make_judge
from pairscale.providers.catalog import PROVIDERS

if TYPE_CHECKING:
    import os

    from pairscale.adaptive.refits import FitFn
    from pairscale.core.tables import Table

_PRESET_IN_WORDS = {
    DOCUMENT: f"the settings of the design document; rank() has those of {OURS}",
    OURS: f"the settings of rank(); those of the design document are {DOCUMENT}",
}
_OPTIONS = ("concurrency", "max_comparisons", "max_cost", "max_minutes", "retries", "retry_wait", "timeout")


@checked
def adaptive_rank(
    data: Table,
    id_col: int | str | None = None,
    text_col: int | str | None = None,
    backend: str = "openai",
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
    n_steps: int | None = 1,
    fit_fn: FitFn | str | None = None,
    adaptive_config: Mapping[str, Any] | None = None,
    btl_config: Mapping[str, Any] | None = None,
    session_dir: str | os.PathLike[str] | None = None,
    persist_item_log: bool = False,
    resume: bool = True,
    seed: int = 1,
    progress: ProgressMode = "all",
    progress_redraw_every: int = 10,
    progress_show_events: bool = True,
    progress_errors: bool = True,
    save_outputs: bool = False,
    output_file: str | os.PathLike[str] | None = None,
    judge: str | Judge | Callable[..., Any] | None = None,
    *,
    selector: str | OwnSelector = POLLITT,
    preset: Preset = DOCUMENT,
    run: str | os.PathLike[str] | None = None,
    without: str | Sequence[str] = (),
    **options: Any,
) -> AdaptiveResult:
    """Rank texts adaptively: the run chooses which pairs to ask about, and stops when the ranking is reliable.

    Run the same call again, with the same ``run`` or ``session_dir``, to resume after a limit, Ctrl-C or a crash. New
    rows in ``data`` join the run; a changed text, seed or setting is an error that names it. A run that has stopped
    continues with other settings, such as a higher ``eap_reliability_min``. A paused run takes another stop rule
    (``eap_reliability_min``, ``stability_lag``, ``theta_corr_min``, ``theta_sd_rel_change_max``,
    ``rank_spearman_min``) or ``flip_share_max``, and nothing else; it stops at once if its last refit meets the rule.
    The log says from which step on settings hold.

    Args:
        data: samples: a table, a file (csv, tsv, jsonl, parquet, xlsx) or a folder of ``.txt`` files.
        id_col: the column of ids, by name or position from 0.
        text_col: the column of texts, likewise.
        backend: the provider, for ``model``; ``openai`` by default.
        model: the model that judges; with ``backend``, another way to write ``judge="backend:model"``.
        trait: what to judge: a built-in trait's key or a :class:`Trait`.
        trait_name: Name of a custom trait.
        trait_description: Definition of the custom trait; required with ``trait_name``.
        prompt_template: Name, file or text of a prompt template.
        endpoint: For OpenAI: ``chat.completions`` or ``responses``; None chooses by the model.
        api_key: the key of the provider; by default that of the environment. It is kept in no log and no file.
        include_raw: add ``raw_responses`` to ``logs``: ``step_id ID1 ID2 better_id outcome raw_response``, one row per
            step that has an answer. The run file keeps the raw replies in any case.
        judge_args: settings of the judge.
        judge_call_args: keyword arguments of every call of a callable judge.
        n_steps: Steps of this call, invalid ones included, 1 by default as in R; None runs to the statistical stop. A
            call of a single step makes no closing refit.
        fit_fn: what fits: ``exact``, the sampler (default); ``laplace``, a fast approximation; or a function. A run
            keeps to the one that it began with.
        adaptive_config: fields of ``AdaptiveConfig``.
        btl_config: fields of ``BTLConfig``.
        session_dir: keep the run in ``session_dir/run.db``.
        persist_item_log: also write the items of every refit as a CSV file.
        resume: continue a run that is there; False refuses to touch it.
        seed: Seed of every choice.
        progress: ``all``, ``refits``, ``steps``, ``line`` or ``none``.
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
        preset: The settings to start from: ``pairwiseLLM``, the design document's, or ``pairscale``, those of
            :func:`rank`. Your own in ``adaptive_config`` and ``btl_config`` come first.
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
        _named(judge, backend, model), choose_trait(trait, trait_name, trait_description), prompt_template,
        {"endpoint": endpoint, "api_key": api_key}, judge_args, judge_call_args,
    )  # fmt: skip
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise InputError(
            f"adaptive_rank has no option {listed(unknown)}; there are also {listed(sorted(_OPTIONS), 20)}"
        )
    _check_output(output_file)
    say_positions(id_col, text_col)
    samples = read_samples(data, id_col=id_col, text_col=text_col)
    where = run_path(session_dir, run)
    require_choice(preset, "preset", PRESETS)
    if not session_exists(where):
        notice(f"preset {preset}: {_PRESET_IN_WORDS[preset]}")
    try:
        out = rank_samples(
            samples, judge_, n_steps, fit_fn, run=where, resume=resume, without=without, include_raw=include_raw,
            save_outputs=save_outputs, output_file=output_file, preset=preset, seed=seed,
            adaptive_config=adaptive_config, btl_config=btl_config, selector=selector,
            persist_item_log=persist_item_log, progress=progress, progress_redraw_every=progress_redraw_every,
            progress_show_events=progress_show_events, progress_errors=progress_errors, closing_refit=None, **options,
        )  # fmt: skip
    except JudgeError as error:
        if isinstance(error.result, AdaptiveResult):
            error.result = _as_r(error.result)
        raise
    return _as_r(out)


def _as_r(out: AdaptiveResult) -> AdaptiveResult:
    """A result whose tables have the columns that R calls otherwise behind their own."""
    refits, items = with_r_names(out.refits), with_r_names(out.items)
    return replace(out, refits=refits, items=items, logs=as_r_logs(out.logs))


def _named(
    judge: str | Judge | Callable[..., Any] | None, backend: str, model: str | None
) -> str | Judge | Callable[..., Any]:
    if judge is not None:
        return judge
    if model is None:
        raise InputError("name a judge (judge='lexical', judge='openai:gpt-5.1', a callable) or backend and model")
    return f"{backend}:{model}"


def _judge(
    judge: str | Judge | Callable[..., Any],
    trait: Trait,
    template: str | None,
    of_model: Mapping[str, Any],
    judge_args: Mapping[str, Any] | None,
    judge_call_args: Mapping[str, Any] | None,
) -> Judge:
    given: dict[str, Any] = {"template": template, "judge_args": judge_args, "judge_call_args": judge_call_args}
    if isinstance(judge, str) and judge.partition(":")[0] in PROVIDERS:
        own = {name: value for name, value in of_model.items() if value is not None}
        given["judge_args"] = model_settings(judge.partition(":")[0], dict(judge_args or {}) | own)
    if not isinstance(judge, Judge):
        given["trait"] = trait
    return make_judge(judge, **given)


def _check_output(output_file: str | os.PathLike[str] | None) -> None:
    """Refuse a file that cannot be written before anything is asked rather than after it."""
    if output_file is None or not require_path(output_file, "output_file").suffix:
        return
    require_suffix(output_file, "output_file", TABLE_SUFFIXES)
    if not Path(output_file).parent.is_dir():
        raise InputError(f"output_file {output_file}: there is no folder {Path(output_file).parent}")
