"""``pairscale agreement``."""

from __future__ import annotations

import pairscale as ps
from pairscale.cli._common import Arguments, Output, echo, fields, show_table
from pairscale.cli.from_verb import from_verb


@from_verb("checks.agreement.agreement", "LABELS...", hidden="seed encoding level")
def command(arguments: Arguments, emit: Output) -> None:
    """Do labellers agree, and by how much more than chance would have it?

    Percent agreement, Cohen's kappa (two raters) or Light's (more), Krippendorff's alpha and Gwet's AC1, each with an
    interval; then every two raters by themselves. A missing label is left out. With --categories, or with numbers as
    labels, the order counts, and there are weighted coefficients as well.

    Labels of blinded cases are compared by variant wherever the key is known: in the labels themselves, in
    LABELS.key.jsonl beside them, or with --key.

    Args:
        labels: A run file with labels, several run files or their folder, or a table with a unit, a rater and a label
            per row, as `pairscale label` writes it, or with a column per rater; or results that say who judged, of any
            form that `pairscale fit` takes.
        categories: All labels there may be, in their order: fail,pass,good.

    Examples:
        pairscale agreement run.db
        pairscale agreement labels.jsonl
        pairscale agreement labels.jsonl --key cases.key.jsonl
        pairscale agreement marks.csv --unit essay --rater name --label mark
        pairscale agreement votes.csv --a-col x --b-col y --winner-col won
        pairscale agreement grades.csv --unit essay --categories fail,pass,good
    """
    result = ps.agreement(**arguments)

    def show() -> None:
        echo(f"{result}, labels {', '.join(map(str, result.categories))}\n")
        show_table(result.table)
        if result.n_raters > 2:
            echo("\nEvery two of them:")
            show_table(result.pairs)
        if result.people is not None:
            echo("\nEach of them beside the scale of all answers:")
            show_table(result.people.drop("last", "reason"), digits=2)

    emit(fields(result, "n_units n_raters by categories level table pairs people notices"), result.table, show)
