"""``rank``: adaptive ranking under our own preset, with the option names and defaults of the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pairscale.adaptive.presets import OURS, Preset, answering_by, stopping_at, with_goal
from pairscale.adaptive.rank import AdaptiveResult, rank_samples
from pairscale.adaptive.selectors import OwnSelector, selector_for
from pairscale.core.options import ProgressMode, checked, optional, require_int, require_run
from pairscale.core.samples import read_samples
from pairscale.core.traits import Trait
from pairscale.judges.base import Judge
from pairscale.judges.build import judge_with
from pairscale.judges.panel import panel_settings
from pairscale.runtime import RETRIES, TIMEOUT

if TYPE_CHECKING:
    import os

    from pairscale.adaptive.refits import FitFn
    from pairscale.core.tables import Table
    from pairscale.models.sampling import Answer
    from pairscale.providers.catalog import Price

__all__ = ["rank"]


@checked
def rank(
    data: Table,
    *,
    judge: str | Judge | Callable[..., Any] | Sequence[str | Judge | Callable[..., Any]] = "lexical",
    run: str | os.PathLike[str] | None = None,
    trait: str | Trait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    cache: bool | None = None,
    price: Price | Mapping[str, Any] | None = None,
    goal: str = "order",
    prior: str | None = None,
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
        data: Samples: a table, a file (csv, tsv, jsonl, parquet, xlsx), a folder or zip archive of texts (txt, md,
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
        prior: A column of the samples with a number that is known beforehand, such as a mark or a score: texts with a
            higher one are expected to be better (or worse), by as much as the comparisons confirm.
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
        reliability: EAP reliability to stop at; 0.9 by default. It belongs to the goal ``order``.
        without: IDs of texts to withdraw from the run, for good.
        adaptive_config: Fields of ``AdaptiveConfig`` to use instead of the preset's.
        btl_config: Fields of ``BTLConfig`` to use instead of the preset's.
        fit: What fits the model: ``exact`` (the sampler), ``laplace`` (a fast approximation) or a function.
        seed: Seed of every choice.
        progress: What to show: ``all``, ``refits``, ``steps``, ``line`` or ``none``.
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
    samples = read_samples(
        data, id_col=id_col, text_col=text_col, encoding=encoding, strict=strict, skip_unreadable=skip_unreadable
    )
    asked = judge_with(
        judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url, cache=cache, price=price,
        answer=answer,
    )  # fmt: skip
    limit = optional(require_int, steps, "steps", least=0)
    settings = with_goal(goal, adaptive_config, reliability)
    btl = panel_settings(asked, answering_by(answer, stopping_at(reliability, btl_config)), preset)
    return rank_samples(
        samples, asked, limit, fit, run=optional(require_run, run, "run"), without=without, preset=preset, prior=prior,
        seed=seed, selector=selector_for(selector, settings.get("goal", "order")), adaptive_config=settings,
        btl_config=btl, progress=progress, concurrency=concurrency, retries=retries,
        timeout=timeout, max_comparisons=max_comparisons, max_cost=max_cost, max_minutes=max_minutes, keep_columns=True,
    )  # fmt: skip
