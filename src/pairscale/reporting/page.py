"""The report of a run or a result: one HTML file that opens from the disk, needs no network, and prints well."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pairscale.core.errors import InputError
from pairscale.core.files import replacing
from pairscale.reporting._chart_files import require_drawing
from pairscale.reporting._shell import Facts, render
from pairscale.store.labels import label_counts
from pairscale.store.marks import RESULTS, RUNS, STUDY_MARK, VARIANTS
from pairscale.store.reading import read_comparisons
from pairscale.store.runfile import RunFile, open_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.checks.card import JudgeCard
    from pairscale.checks.position import PositionalBias
    from pairscale.checks.templates import TemplateStudy
    from pairscale.core.tables import Table
    from pairscale.evaluate.ranking import VariantsResult
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.models.bradley_terry import BTFit

Kind: TypeAlias = Literal["ranking", "bias", "ab", "variants"]
KINDS: tuple[Kind, ...] = ("ranking", "bias", "ab", "variants")
"""What a run may be: texts that are ranked, a study of position bias, or a comparison of two variants or of more."""


def write_report(
    source: str
    | os.PathLike[str]
    | RunFile
    | AdaptiveResult
    | BTFit
    | PositionalBias
    | TemplateStudy
    | PairwiseRunResult
    | VariantsResult
    | JudgeCard,
    path: str | os.PathLike[str] | None = None,
    samples: Table | None = None,
    *,
    title: str | None = None,
    judge: str | None = None,
    condition_id: str | None = None,
    kind: Kind | None = None,
    texts: bool = True,
    pseudonyms: bool = False,
    interactive: bool = False,
) -> Path:
    """Write a ranking, a study of position bias, a comparison of variants or a judge card as one HTML file.

    It says what was found and how sure that is, holds charts, a table to search and sort, the texts side by side with
    the judge's words, what it cost, what to look at again, a paragraph on the method, and where everything comes from;
    of a result that is kept in no file, what can be known from it alone. It loads nothing, and whatever comes from
    outside stays text.

    Args:
        source: a run file of any kind, or a result that has a report.
        path: where to write; beside the run file under its name with ``.html`` when None.
        samples: of a ranking, the texts, where the source does not have them.
        title: what was asked.
        judge: who judged, where the source does not know.
        condition_id: of a run file with several judges, the one whose answers count; all together when None.
        kind: what to read a run file as: ``ranking``, ``bias``, ``ab`` or ``variants``; it knows by itself when None.
        texts: whether the texts and the judge's words are in it; leave them out before you pass the page on.
        pseudonyms: call the texts or tasks T1, T2 and so on, in an order that says nothing.
        interactive: also have altair draw the charts, with all they need in the page (0.9 MB): they respond to the
            pointer, and many scores can be searched and zoomed. On paper and without scripts the page is the same.

    Returns:
        The file that was written.

    Raises:
        InputError: when nothing was decided yet, or an option does not fit the source.
        MissingExtraError: when ``interactive`` is wanted, and altair is not installed.
    """
    if interactive:
        require_drawing("an interactive report")
    run: str | None = None
    if isinstance(source, RunFile):
        facts, run = facts_of(source, kind, condition_id), source.name
    elif isinstance(source, str | os.PathLike):
        with open_run(source) as store:
            facts, run = facts_of(store, kind, condition_id), str(source)
    else:
        if kind is not None or condition_id is not None:
            raise InputError("kind and condition_id choose what to read of a run file; leave them out with a result")
        facts = _facts_of_result(source, samples, judge)
    target = page_of(run) if path is None else Path(path)
    if pseudonyms:
        facts, run = facts.disguised(), None
    options = {"kind": kind, "condition": condition_id}
    return write_page(facts, target, title=title, texts=texts, run=run, options=options, interactive=interactive)


def page_of(run: str | None) -> Path:
    """Where the page of a file, or of a folder of run files, goes by default: beside it.

    Raises:
        InputError: when it is no file.
    """
    if run is not None and Path(run).is_dir():
        return Path(run).with_name(f"{Path(run).name}.html")
    if run is None or not Path(run).is_file():
        raise InputError("name the file to write the report to; only that of a file has a place of its own, beside it")
    return Path(run).with_suffix(".html")


def write_page(
    facts: Facts,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    texts: bool = True,
    run: str | None = None,
    options: Mapping[str, Any] | None = None,
    interactive: bool = False,
) -> Path:
    """Write the page of what is known already.

    Args:
        facts: what is known.
        path: where to write.
        title: what was asked.
        texts: whether the texts are in it.
        run: the run file that it comes from; None where it must not be named.
        options: of the command, by which the file was read.
        interactive: whether altair also draws the charts.
    """
    named = run if run is not None and Path(run).is_file() else None  # an address may hold a password
    target, page = Path(path), facts.page(texts=texts)
    source = render(page, title=title, run=named, options=options, texts=texts, interactive=interactive)
    with replacing(target) as temporary:
        temporary.write_text(source, "utf-8", "replace")
    return target


def kind_of(store: RunFile) -> Kind:
    """What a run file holds."""
    if rankings := store.read_log(VARIANTS, last=1):
        compared = store.read_log(RESULTS, last=1)
        return "ab" if compared and compared[0]["result"]["created_at"] > rankings[0]["created_at"] else "variants"
    if store.log_length(RESULTS) or store.log_length(RUNS):
        return "ab"
    return "bias" if store.get_meta(STUDY_MARK) is not None else "ranking"


def facts_of(
    store: RunFile, kind: Kind | None = None, condition_id: str | None = None, people: str | None = None
) -> Facts:
    """What there is to say of a run file.

    Args:
        store: the run file.
        kind: what it is read as; what it is when None.
        condition_id: which answers count; None for all.
        people: of a ranking by people's labels: ``people``, or the criterion.

    Raises:
        InputError: when there is nothing to say of it.
    """
    facts = _facts_of_run(store, kind or kind_of(store), condition_id, people)
    counts = label_counts(store)
    if counts is None:
        return facts
    from pairscale.reporting.labels import FactsWithLabels, with_key

    return FactsWithLabels(facts, with_key(store.labels(), store.name), counts)


def _facts_of_run(store: RunFile, kind: Kind, condition_id: str | None, people: str | None) -> Facts:
    if kind in {"ab", "variants"}:
        from pairscale.reporting._ab_figures import ab_of_run
        from pairscale.reporting._variants import variants_of_run

        if condition_id is not None:
            raise InputError(
                "a condition is a judge of a ranking or a study; a comparison of variants shows all of its own"
            )
        return ab_of_run(store) if kind == "ab" else variants_of_run(store)
    if kind == "bias":
        from pairscale.reporting._bias_figures import bias_of_run

        return bias_of_run(store, condition_id)
    from pairscale.reporting._origin import origin_of
    from pairscale.reporting.figures import facts_of_results, facts_of_run

    of_people = label_counts(store) is not None and not store.counts()["comparisons"]
    if people is not None or of_people:
        with store.snapshot():
            return facts_of_results(read_comparisons(store, people), origin_of(store))
    return facts_of_run(store, condition_id)


def _facts_of_result(source: Any, samples: Table | None, judge: str | None) -> Facts:
    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.checks.card import JudgeCard
    from pairscale.checks.position import PositionalBias
    from pairscale.checks.templates import TemplateStudy
    from pairscale.core.samples import read_samples_df
    from pairscale.evaluate.ranking import VariantsResult
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.models.bradley_terry import BTFit
    from pairscale.reporting import _ab_figures, _bias_figures, figures
    from pairscale.reporting._card import CardFacts
    from pairscale.reporting._variants import variants_of_result

    if samples is not None and not isinstance(source, AdaptiveResult | BTFit):
        raise InputError("samples are the texts of a ranking; a study and a comparison have theirs in the run file")
    alone: dict[type, Callable[[Any], Facts]] = {
        PairwiseRunResult: _ab_figures.ab_of_result,
        VariantsResult: variants_of_result,
        JudgeCard: CardFacts,
        TemplateStudy: _bias_figures.bias_of_study,
    }
    if (facts := alone.get(type(source))) is not None:
        return facts(source)
    if isinstance(source, PositionalBias):
        return _bias_figures.bias_of_check(source, judge)
    known = None if samples is None else read_samples_df(samples, "ID", "text")
    if isinstance(source, AdaptiveResult):
        return figures.facts_of_result(source, known, judge)
    if isinstance(source, BTFit):
        return figures.facts_of_fit(source, known, judge)
    raise InputError(f"a {type(source).__name__} has no report; name a run file, a ranking, a study or a comparison")
