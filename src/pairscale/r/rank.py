"""The manual's adaptive ranking, with the settings of the design document; see :mod:`pairscale.r.manual`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pairscale.adaptive.config import DOCUMENT, OURS, PRESETS
from pairscale.adaptive.rank import AdaptiveResult, rank_samples
from pairscale.adaptive.session import run_path, session_exists
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES
from pairscale.core.notices import notice
from pairscale.core.options import require_choice, require_suffix
from pairscale.core.samples import read_samples, say_positions
from pairscale.core.tables import Table
from pairscale.core.traits import choose_trait
from pairscale.judges import build
from pairscale.judges.base import Judge
from pairscale.providers.catalog import PROVIDERS
from pairscale.r.logs import as_r_logs, with_r_names
from pairscale.r.settings import Settings, model_settings, taken


def rank(
    data: Table,
    id_col: int | str | None,
    text_col: int | str | None,
    session_dir: str | None,
    run: str | None,
    preset: str,
    output_file: str | None,
    **given: Any,
) -> AdaptiveResult:
    """Rank texts adaptively: the run chooses which pairs to ask about, and stops when the ranking is reliable."""
    judge = _judge(given)
    if output_file is not None and Path(output_file).suffix:  # before anything is asked rather than after it
        require_suffix(output_file, "output_file", TABLE_SUFFIXES)
        if not Path(output_file).parent.is_dir():
            raise InputError(f"output_file {output_file}: there is no folder {Path(output_file).parent}")
    say_positions(id_col, text_col)
    samples = read_samples(data, id_col=id_col, text_col=text_col)
    where = run_path(session_dir, run)
    require_choice(preset, "preset", PRESETS)
    if preset == DOCUMENT and not session_exists(where):
        notice(f"preset {preset}: the settings of the design document; rank() has those of {OURS}")
    out = rank_samples(samples, judge, run=where, preset=preset, output_file=output_file, closing_refit=None, **given)
    return replace(out, refits=with_r_names(out.refits), items=with_r_names(out.items), logs=as_r_logs(out.logs))


def _judge(given: Settings) -> Judge:
    """Take what describes the judge out of the arguments, and make it."""
    trait = choose_trait(given.pop("trait"), given.pop("trait_name"), given.pop("trait_description"))
    of_model = taken(given, "model backend endpoint api_key")
    judge = given.pop("judge")
    judge_args = given.pop("judge_args")
    if judge is None:
        if of_model["model"] is None:
            raise InputError("name a judge (judge='lexical', judge='openai:gpt-5.1', a callable) or backend and model")
        judge = "{backend}:{model}".format_map(of_model)
    if isinstance(judge, str) and judge.partition(":")[0] in PROVIDERS:
        judge_args = model_settings(judge.partition(":")[0], taken(of_model, "endpoint api_key") | (judge_args or {}))
    asked = {"template": given.pop("prompt_template"), "judge_call_args": given.pop("judge_call_args")}
    of_texts = None if isinstance(judge, Judge) else trait
    return build.make_judge(judge, trait=of_texts, judge_args=judge_args, **asked)
