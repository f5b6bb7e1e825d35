"""``pairscale bias-study``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pairscale as ps
from pairscale.cli._asking import opening, read_pairs, say_judged
from pairscale.cli._common import Arguments, Output, echo, fields, say, show_table
from pairscale.cli.from_verb import from_verb
from pairscale.core.errors import InputError

if TYPE_CHECKING:
    from pairscale.checks.templates import TemplateStudy


@from_verb(
    "checks.templates.template_study pairing.reading.read_pairs",
    "[DATA]",
    hidden="templates timeout level n_jobs encoding strict a_col b_col judge_args price",
)
def command(
    arguments: Arguments,
    emit: Output,
    data: str | None = None,
    *,
    template: list[str] | None = None,
    n_pairs: int | None = None,
    published: bool = False,
) -> None:
    """Find the prompt template that lets the position sway judges least.

    Every judge sees every pair with every template, in both orders. DATA is a folder or table of texts, a table of
    pairs, or, without --judge, a table of judgements: results of pairs in both orders, with the column template_id, and
    backend, model, thinking or judge where there are several judges.

    A template is good when the same text wins in both orders (prop_consistent near 1), the first position wins half
    of the comparisons (prop_pos1 near 0.5), and the effect is near 0 logits.

    Args:
        data: Texts or pairs to ask about, or judgements that were made already.
        template: Prompt template, a name or a .txt file; can be repeated.
        judge: As in `pairscale judge`, also with settings: openai:gpt-5.1,reasoning=low; can be repeated.
        run: The run file of all answers; the same command resumes the study.
        n_pairs: Maximum number of pairs, drawn at random.
        published: Show the published study of five templates instead, and ask nothing.

    Examples:
        pairscale bias-study essays/ --judge mine:better --run study.db
        pairscale bias-study p.csv --judge a:b --template weigh --template mine.txt
        pairscale bias-study p.csv --judge openai:gpt-4.1,seed=1 --run s.db --batch
        pairscale bias-study judgements.csv --out study.csv
        pairscale bias-study --published
    """
    from pairscale.checks.published import published_template_study
    from pairscale.checks.templates import template_study
    from pairscale.core.files import read_table

    judges = arguments["judge"] or []
    if published:
        study = published_template_study()
    elif data is None:
        raise InputError("name texts, pairs or judgements as DATA, or see --published")
    elif judges:
        arguments["data"] = data
        ids = read_pairs(arguments, "data")
        opening(*judges, run=arguments["run"])
        pairs = arguments["data"]
        if n_pairs is not None:
            pairs = ps.sample_pairs(pairs, 1, n_pairs, seed=1)
        if ids is not None:
            pairs = ps.randomize_pair_order(pairs, seed=1)
        arguments["data"] = pairs
        study = template_study(**arguments, templates=template or ["default"])
    else:
        judgements = None if Path(data).is_dir() else read_table(data)
        if judgements is None or "template_id" not in judgements.columns:
            raise InputError(
                f"{data} holds no judgements (there is no column 'template_id'); say who judges with --judge"
            )
        study = template_study(judgements)
    if study.source is not None and not emit.is_screen:
        say(f"note: {study.source}")
    document = fields(study, "source level notices ranking table")
    emit(document, study.table, lambda: _show(study))
    if judges:
        say_judged(*judges)


def _show(study: TemplateStudy) -> None:
    show_table(study.ranking)
    echo()
    names = "template_id judge backend model thinking n_pairs prop_consistent prop_pos1 p_paired effect"
    table = study.table.select(*names.split(), "effect_lower", "effect_upper")
    show_table(table.drop(name for name in table.columns if table[name].null_count() == table.height), most=100)
    echo(f"\n{study}")
