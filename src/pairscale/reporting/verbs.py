"""``report`` and ``status`` of a run file, with the option names and defaults of the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import polars as pl

from pairscale.core.counting import is_pattern
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError, without_login
from pairscale.core.files import TABLE_SUFFIXES, write_table, write_workbook
from pairscale.core.notices import notice
from pairscale.core.options import FilePath, checked, optional, require_choice, require_suffix
from pairscale.core.samples import read_samples
from pairscale.core.tables import listed
from pairscale.reporting.page import Report, origin_of, sheets_of, summed, write_page
from pairscale.reporting.slips import as_printed
from pairscale.store.labels import LABELLING
from pairscale.store.marks import RESULTS, RUNS, STUDY_MARK, VARIANTS
from pairscale.store.reading import PEOPLE, choose_condition, is_run, labels_variants, named_runs, read_comparisons
from pairscale.store.runfile import RunFile, open_run

if TYPE_CHECKING:
    from pairscale.core.tables import Table
    from pairscale.reporting.picture import Content
    from pairscale.store.reading import Comparisons

Kind: TypeAlias = Literal["ranking", "bias", "ab", "variants"]
"""What a run may be: texts that are ranked, a study of position bias, or a comparison of two variants or of more."""


@checked
def report(
    run: Table | FilePath,
    *,
    out: FilePath | None = None,
    title: str | None = None,
    kind: Kind | None = None,
    condition: str | None = None,
    without_texts: bool = False,
    pseudonyms: bool = False,
    slips: bool = False,
    private: bool = False,
    short: bool = False,
    again: FilePath | None = None,
    interactive: bool = False,
    samples: Table | FilePath | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
    key: FilePath | None = None,
) -> Path:
    """Write a run as one HTML page that opens from the disk and loads nothing.

    It says what was found and how sure that is, with charts, the texts side by side, what it cost, what to look at
    again, and a paragraph on the method. With ``without_texts`` and ``pseudonyms`` the page can be shared: it then
    holds no text, and no name of one.

    Args:
        run: The run file: a ranking, a study of position bias, an A/B run or a ranking of variants. Or results of any
            form that :func:`pairscale.fit` takes, which make a ranking. Or a file of labels of two variants with their
            key: a labeller that is called like a judge (or that ``condition`` names) is held against people. Or a judge
            card (``.json``).
        out: The page to write, or by its ending a table; an ``.xlsx`` file has a sheet each for the ranking, the
            comparisons and the method. By default a page beside the run file.
        title: What was asked.
        kind: What to read the run as: ``ranking``, ``bias``, ``ab`` or ``variants``; by default what it is.
        condition: The judge, or the beginning of a condition, if there are several; ``people`` for their labels. Of
            labels: the criterion.
        without_texts: Leave the texts and the judge's words out.
        pseudonyms: Call the texts or tasks T1, T2 and so on, in random order; of an A/B run, also leave out the words
            of judges and people.
        slips: Of a ranking: a slip for each text to be printed and cut: name, score, and the texts next to it.
        private: With ``slips``: nothing of other texts is on a slip.
        short: Of a ranking: one printed sheet with the ranking, how sure it is, and who judged.
        again: A ``.jsonl`` file to write what to look at again to, as cases for labellers.
        interactive: Draw charts that can be pointed at and zoomed as well; adds 0.9 MB and needs altair.
        samples: Of results: the texts, if the page is to show them, as :func:`pairscale.read_samples` takes them.
        a_col: Of results: the column of the first text of a pair, or its path where values are nested.
        b_col: Of results: the column of the second text.
        winner_col: Of results: the column that says who won.
        encoding: Of results: the encoding of a text file that is not UTF-8.
        key: Of labels that do not say what they compare: the key of their manifest, or their table of pairs.

    Returns:
        The file that was written.

    Raises:
        InputError: If nothing was decided yet, or an option does not fit the run.
        MissingExtraError: If ``interactive`` is given and altair is not installed.
        StoreError: If the run file cannot be read.

    Example:
        >>> import pairscale as ps
        >>> pairs = ps.make_pairs(ps.example_writing_samples)
        >>> _ = ps.judge(pairs, run="essays.db", progress=False)
        >>> ps.report("essays.db", title="Which essay is better?").name
        'essays.html'
    """
    return written_report(**locals())[0]


def written_report(
    run: Table | FilePath,
    *,
    out: FilePath | None,
    title: str | None,
    kind: Kind | None,
    condition: str | None,
    without_texts: bool,
    pseudonyms: bool,
    slips: bool,
    private: bool,
    short: bool,
    again: FilePath | None,
    interactive: bool,
    **reading: Any,
) -> tuple[Path, Report, int | None]:
    """What :func:`report` does with its options: the file, what it holds, and the cases to look at again.

    Raises:
        InputError: If an option does not fit the run.
    """
    from pairscale.checks.card import is_judge_card, read_judge_card

    optional(require_suffix, out, "out", (".html", ".htm", *TABLE_SUFFIXES))
    optional(require_suffix, again, "again", (".jsonl", ".ndjson"))
    optional(require_choice, kind, "kind", get_args(Kind))
    _require_interactive(interactive, out)
    run, files = named_runs(run)
    path = str(run) if isinstance(run, str | os.PathLike) and not is_pattern(run) else None
    reading = named(**reading)
    how = {"texts": not without_texts, "pseudonyms": pseudonyms}
    if path is not None and files is None and is_run(path):
        require_none(reading, "a run file knows its columns and its texts")
        with open_run(path) as store, store.snapshot():
            page = report_of_run(store, kind, _chosen(store, kind, condition), **how)
    elif path is not None and files is None and is_judge_card(path):
        require_none({"kind": kind, "condition": condition}, "a judge card is one thing")
        page = report_of_result(read_judge_card(path))
    else:
        page = _of_results(files or run, kind, condition, reading, **how)
    if slips or short or private:
        page = as_printed(page, out, slips=slips, private=private, short=short)
    if again is not None and page.write_again is None:
        raise InputError("`again=` writes texts for people to label, and there are none here; give `samples=` or a run")
    target = page_of(path) if out is None else Path(out)
    is_named = not pseudonyms and all(isinstance(value, str | os.PathLike) for value in reading.values())
    _write(
        page, target, run=path if is_named else None, title=title,
        options={"kind": kind, "condition": condition, **reading}, interactive=interactive,
    )  # fmt: skip
    n_again = None
    if again is not None and page.write_again is not None:
        n_again = page.write_again(Path(again))
    return target, page, n_again


def write_report(
    source: Any,
    path: FilePath,
    samples: Table | None = None,
    *,
    title: str | None = None,
    judge: str | None = None,
    texts: bool = True,
    pseudonyms: bool = False,
    slips: bool = False,
    private: bool = False,
    short: bool = False,
    interactive: bool = False,
) -> Path:
    """Write a result that has a report as one HTML file.

    Args:
        source: a ranking, a study of position bias, a comparison of variants or a judge card.
        path: where to write.
        samples: of a ranking, the texts, where the source does not have them.
        title: what was asked.
        judge: who judged, where the source does not know.
        texts: whether the texts and the judge's words are in it; leave them out before you pass the page on.
        pseudonyms: call the texts or tasks T1, T2 and so on, in an order that says nothing.
        slips: of a ranking or grades, a slip for each text.
        private: with ``slips``, nothing of other texts is on a slip.
        short: of a ranking or grades, one printed sheet.
        interactive: also have altair draw the charts, with all they need in the page (0.9 MB). On paper and without
            scripts the page is the same.

    Returns:
        The file that was written.

    Raises:
        InputError: when nothing was decided yet, or the source has no report.
        MissingExtraError: when ``interactive`` is wanted, and altair is not installed.
    """
    _require_interactive(interactive, path)
    page = report_of_result(source, samples, judge, texts=texts, pseudonyms=pseudonyms)
    if slips or short or private:
        page = as_printed(page, path, slips=slips, private=private, short=short)
    return _write(page, Path(path), title=title, interactive=interactive)


def _require_interactive(interactive: bool, out: object) -> None:
    from pairscale.reporting.vega import require_drawing

    if interactive:
        if out is not None and Path(str(out)).suffix.lower() in TABLE_SUFFIXES:
            raise InputError(
                f"`interactive=` is for the charts of a page, and {out} is a table; leave one of the two out"
            )
        require_drawing("`interactive=True`")


def page_of(run: str | None) -> Path:
    """Where the page of a file, or of a folder of run files, goes by default: beside it.

    Raises:
        InputError: when it is no file.
    """
    if run is not None:
        path = Path(run)
        if path.is_dir():
            return path.with_name(f"{path.name}.html")
        if path.is_file():
            return path.with_suffix(".html")
    raise InputError("name the file to write the report to; only that of a file has a place of its own, beside it")


def _write(page: Report, target: Path, **options: Any) -> Path:
    """Write a report as a workbook, a table or a page, by the ending of its name."""
    if target.suffix.lower() == ".xlsx":
        return write_workbook(sheets_of(page), target)
    if target.suffix.lower() in TABLE_SUFFIXES:
        return write_table(page.table, target)
    return write_page(page, target, **options)


# What is reported


def kind_of(store: RunFile) -> Kind:
    """What a run file holds."""
    if rankings := store.read_log(VARIANTS, last=1):
        compared = store.read_log(RESULTS, last=1)
        return "ab" if compared and compared[0]["result"]["created_at"] > rankings[0]["created_at"] else "variants"
    if store.log_length(RESULTS) or store.log_length(RUNS):
        return "ab"
    return "bias" if store.get_meta(STUDY_MARK) is not None else "ranking"


def report_of_run(
    store: RunFile,
    kind: Kind | None = None,
    condition: str | None = None,
    *,
    texts: bool = True,
    pseudonyms: bool = False,
) -> Report:
    """The report of a run file, which another process may be writing: read as of one moment.

    Args:
        store: the run file.
        kind: what it is read as; what it is when None.
        condition: which answers count, None for all; ``people`` for their labels.
        texts: whether the report holds the texts.
        pseudonyms: whether texts and people have other names.

    Raises:
        InputError: when there is nothing to say of it.
    """
    how = {"texts": texts, "pseudonyms": pseudonyms}
    with store.snapshot():
        kind = kind or kind_of(store)
        if kind in {"ab", "variants"} and condition is not None:
            raise InputError("`condition=` chooses a judge of a ranking or a study; an A/B run shows all of its own")
        if kind == "ab":
            from pairscale.reporting.ab import ab_of_run

            page = ab_of_run(store, **how)
        elif kind == "variants":
            from pairscale.reporting.variants import variants_of_run

            page = variants_of_run(store, pseudonyms=pseudonyms)
        elif kind == "bias":
            from pairscale.reporting.bias import bias_of_run

            page = bias_of_run(store, condition, **how)
        else:
            from pairscale.reporting.ranking import ranking_of_results, ranking_of_run

            if condition == PEOPLE or not store.counts()["comparisons"]:
                comparisons = read_comparisons(store, condition)
                page = ranking_of_results(comparisons, origin_of(store, pseudonyms=pseudonyms), **how)
            else:
                page = ranking_of_run(store, condition, **how)
        is_labelled = store.get_meta(LABELLING) is not None
        if not is_labelled and "human" not in store.conditions()["judge_id"].to_list():
            return page
        from pairscale.reporting.labels import labels_of_run, people_of_run

        if kind == "ranking":
            people = people_of_run(store, pseudonyms=pseudonyms)
            judges = [name for name in page.judges if name != "human"]
            if len(judges) < len(page.judges):
                judges += [person["person"] for person in people]
            page = replace(page, people=people, judges=judges)
        if not is_labelled:
            return page
        labels = labels_of_run(store, pseudonyms=pseudonyms)
        if labels is not None and kind == "ranking" and condition != PEOPLE and not pseudonyms:
            from pairscale.reporting.trust import trust_of_labels

            labels["trust"] = trust_of_labels(store, condition)
        return replace(page, labels=labels)


def report_of_result(
    source: Any, samples: Table | None = None, judge: str | None = None, *, texts: bool = True, pseudonyms: bool = False
) -> Report:
    """The report of a result that is kept in no file, or whose file is not needed."""
    from pairscale.adaptive.rank import AdaptiveResult
    from pairscale.checks.card import JudgeCard
    from pairscale.checks.position import PositionalBias
    from pairscale.checks.templates import TemplateStudy
    from pairscale.core.samples import read_samples_df
    from pairscale.evaluate.ranking import VariantsResult
    from pairscale.evaluate.result import PairwiseRunResult
    from pairscale.grading.verb import Grades
    from pairscale.models.bradley_terry import BTFit
    from pairscale.reporting.ab import ab_report
    from pairscale.reporting.bias import bias_of_result
    from pairscale.reporting.card import card_report
    from pairscale.reporting.grades import grades_report
    from pairscale.reporting.ranking import ranking_of_result
    from pairscale.reporting.trust import trust_report
    from pairscale.reporting.variants import variants_of_result
    from pairscale.validity.verb import Trust

    how = {"texts": texts, "pseudonyms": pseudonyms}
    match source:
        case PairwiseRunResult():
            page = ab_report(source, {}, texts=texts, pseudonyms=pseudonyms)
        case VariantsResult():
            page = variants_of_result(source, pseudonyms=pseudonyms)
        case JudgeCard():
            page = card_report(source)
        case Grades():
            page = grades_report(source, pseudonyms=pseudonyms)
        case Trust():
            page = trust_report(source, **how)
        case TemplateStudy() | PositionalBias():
            page = bias_of_result(source, judge, pseudonyms=pseudonyms)
        case AdaptiveResult() | BTFit():
            sample_texts = None if samples is None else read_samples_df(samples, "ID", "text")
            page = ranking_of_result(source, sample_texts, judge, **how)
        case _:
            raise InputError(
                f"a {type(source).__name__} has no report; name a run file, a ranking, a study or a comparison"
            )
    return page


def _chosen(store: RunFile, kind: str | None, condition: str | None) -> str | None:
    """The condition that is meant: a study is about all of its judges; a ranking of several needs a choice."""
    kind = kind or kind_of(store)
    if condition == PEOPLE or kind in {"ab", "variants"} or not store.counts()["comparisons"]:
        return condition
    return None if kind == "bias" and condition is None else choose_condition(store.conditions(), condition)


def _of_results(results: Any, kind: str | None, condition: str | None, reading: Content, **how: Any) -> Report:
    """Results that are in no run file: labels of two variants, or comparisons of texts, which make a ranking."""
    is_path = isinstance(results, str | os.PathLike)
    key, encoding = reading.get("key"), reading.get("encoding")
    if kind in {None, "ab"} and is_path and labels_variants(results, key, encoding):
        from pairscale.reporting.ab import ab_report, result_of_labels

        require_none(reading | {"key": None, "encoding": None}, "labels of two variants have their own columns")
        return ab_report(result_of_labels(results, condition, key, encoding), {}, **how)
    if kind not in {None, "ranking"}:
        raise InputError(f"kind={kind!r} belongs to one run file; results and several run files make a ranking")
    from pairscale.reporting.ranking import ranking_of_results

    origin = {"results": str(results)} if is_path else {}
    comparisons = comparisons_of(results, condition, **reading)
    return ranking_of_results(comparisons, origin, **how)


# Where a run stands


@dataclass(frozen=True, slots=True, repr=False)
class RunStatus(ReprMixin, table="conditions", columns=None):
    """Where a run stands.

    Attributes:
        run: the run file, without a login.
        counts: how many ``items``, ``pairs``, ``attempts`` and so on it holds.
        made: what has written it: ``created_by``, ``created_at`` and ``writer``.
        digest: the digest over everything, as the run file was closed with; None while it is being written.
        adaptive: how far an adaptive run is; None without one.
        conditions: one row per judge with its trait, template and settings.
        spending: what was paid, by model, template and day (UTC).
        labelled: how many labels of people there are; None without labelling.
        labels: the labels of people.
        batches: how many batches there are.
        open_batches: how many of them are not collected yet.
        files: the run files, where they are several.
    """

    run: str
    counts: Mapping[str, int]
    made: Mapping[str, Any]
    digest: str | None
    adaptive: Mapping[str, Any] | None
    conditions: pl.DataFrame
    spending: pl.DataFrame
    labelled: Mapping[str, int] | None
    labels: pl.DataFrame
    batches: int
    open_batches: int
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = ", ".join(f"{self.counts[name]:,} {name}" for name in ("items", "pairs", "attempts"))
        return f"{self.run}: {counts}, ${self.spending['cost'].sum():,.4f} spent"


@checked
def status(run: FilePath | Sequence[FilePath]) -> RunStatus:
    """Show where a run stands: answers, failures, attempts, tokens and cost of every judge.

    You may ask while the run is working.

    Args:
        run: The run file; or several, as a list, their folder or a pattern, whose counts are added up.

    Returns:
        A :class:`RunStatus` with ``conditions``, ``spending``, ``adaptive``, ``labels`` and ``digest``.

    Raises:
        StoreError: If the run file cannot be read.

    Example:
        >>> import pairscale as ps
        >>> _ = ps.judge(ps.make_pairs(ps.example_writing_samples), run="essays.db", progress=False)
        >>> ps.status("essays.db").conditions.select("judge_id", "win").row(0)
        ('lexical', 190)
    """
    from pairscale.adaptive.messages import adaptive_status
    from pairscale.collect.batch.registry import entries
    from pairscale.store.labels import label_counts

    path, files = named_runs(run)
    if files is not None:
        return _status_of_several(files)
    with open_run(path) as store, store.snapshot():
        batches = entries(store)
        return RunStatus(
            run=without_login(str(path)),
            counts=store.counts(),
            made={key: store.get_meta(key) for key in ("created_by", "created_at", "writer")},
            digest=store.closing(),
            adaptive=adaptive_status(store),
            conditions=store.conditions(),
            spending=store.spending(),
            labelled=label_counts(store),
            labels=store.labels(),
            batches=len(batches),
            open_batches=sum(entry.open for entry in batches),
        )


def _status_of_several(files: Sequence[str]) -> RunStatus:
    """Run files together: counts added up, and a row per file and judge."""
    parts = [status(file) for file in files]
    texts: set[str] = set()
    for file in files:
        with open_run(file) as store:
            texts.update(store.items()["ID"])
    tables = [part.conditions.insert_column(0, pl.lit(part.run).alias("run")) for part in parts]
    spending = pl.concat([part.spending for part in parts], how="vertical_relaxed")
    labelled = [part.labelled for part in parts if part.labelled is not None]
    return replace(
        parts[0],
        run=f"{len(parts):,} run files",
        counts=_summed([part.counts for part in parts]) | {"items": len(texts)},
        digest=None,
        adaptive=None,
        conditions=pl.concat(tables, how="vertical_relaxed"),
        spending=summed(spending),
        labelled=_summed(labelled) if labelled else None,
        labels=pl.concat([part.labels for part in parts], how="vertical_relaxed"),
        batches=sum(part.batches for part in parts),
        open_batches=sum(part.open_batches for part in parts),
        files=tuple(part.run for part in parts),
    )


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return pl.DataFrame(counts).sum().row(0, named=True)


def comparisons_of(results: Any, condition: str | None, *, samples: Any = None, **reading: Any) -> Comparisons:
    """Comparisons that are in no run file, with their texts where they were given.

    Args:
        results: the results.
        condition: the judge.
        samples: the texts.
        reading: how results are read; see :func:`pairscale.store.reading.read_comparisons`.
    """
    comparisons = read_comparisons(results, condition, **reading)
    if samples is None:
        return comparisons
    texts = read_samples(samples, encoding=reading.get("encoding"))
    judged = {*comparisons.table["ID1"], *comparisons.table["ID2"]}
    if not judged & set(texts["ID"]):
        raise InputError(f"samples: none of the {len(judged):,} texts that were compared is in it, by its ID")
    missing = sorted(judged - set(texts["ID"]))
    if missing:
        notice(f"samples: no text of {listed(missing)}")
    return replace(comparisons, samples=texts.filter(pl.col("ID").is_in(judged)))


def named(**options: Any) -> Content:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def require_none(options: Mapping[str, object], why: str) -> None:
    """Refuse options that do not belong to what was asked.

    Raises:
        InputError: If anything was given.
    """
    unused = [name for name, value in options.items() if value is not None]
    if unused:
        raise InputError(f"`{unused[0]}=` does not belong here: {why}; leave it out")
