"""``pairscale report``."""

from __future__ import annotations

from pairscale.cli._common import Arguments, Output, say
from pairscale.cli.from_verb import from_verb
from pairscale.core.notices import plural
from pairscale.core.options import FilePath


@from_verb("reporting.verbs.report", "RUN...", hidden="encoding")
def command(arguments: Arguments, emit: Output, *, out: FilePath | None = None) -> None:
    """Write a run as one HTML page that opens from the disk and loads nothing.

    Of a ranking it holds the scores with intervals, any two texts side by side with the judgements between them, what
    the reliability means, and how the judge behaved; of a bias study, what the position does under each template and
    judge; of an A/B run, which variant is better, case by case. And of each what it cost, what to look at again, and a
    paragraph on the method.

    Results that are in no run file, such as a session of comparative judgement or the votes of an arena, make a ranking
    with the fit of texts and judges; texts are shown if you give them with --samples.

    Of an A/B run with labels of people, and of a file of labels in which a labeller is a judge, the page holds the
    judge against people: a table of who said what, their agreement, and the cases in which they differ.

    With --without-texts and --pseudonyms the page can be shared: it then holds no text, and no name of one.

    Args:
        run: The run file: a ranking, a bias study or an A/B run; several, or their folder, make one ranking; results of
            any form that `pairscale fit` takes; labels of two variants with their key; or a judge card.
        out: The page (RUN.html when it is left out), or by its ending a table: csv and so on; xlsx has a sheet each for
            ranking, comparisons and method.

    Examples:
        pairscale report run.db
        pairscale report run.db --out ranking.html --title 'Essays of May'
        pairscale report run.db --without-texts --pseudonyms --out to-share.html
        pairscale report run.db --out ranking.xlsx
        pairscale report run.db --slips --out slips.html
        pairscale report run.db --short --out short.html
        pairscale report run.db --again again.jsonl
        pairscale report run.db --kind bias
        pairscale report session.csv --samples essays
        pairscale report labels.jsonl --condition openai:gpt-5.1
        pairscale report run.db --interactive
        pairscale report judge-card.json
    """
    from pairscale.reporting.verbs import written_report

    path, made, n_again = written_report(**arguments, out=out)
    say(f"written: {path}")
    again = arguments["again"]
    if again is not None:
        hint = f" (try: pairscale label {again})" if n_again else ", so there is nothing to label"
        say(f"written: {again}, {plural(n_again or 0, 'case')} to look at again{hint}")
    emit({"report": str(path), "again": n_again, "items": made.table}, None, lambda: None)
