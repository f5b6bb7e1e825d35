"""``report`` and ``status`` of a run file, with the option names and defaults of the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from pairscale.core.addresses import without_login
from pairscale.core.counting import is_pattern
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES, write_table, write_workbook
from pairscale.core.options import checked, optional, require_choice, require_suffix
from pairscale.reporting.results import ResultsReading
from pairscale.store.reading import PEOPLE, condition_of, is_run, labels_variants
from pairscale.store.runfile import open_run
from pairscale.store.several import named_runs

if TYPE_CHECKING:
    from pairscale.core.tables import Table
    from pairscale.reporting._shell import Facts
    from pairscale.reporting.page import Kind


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report, and what it holds.

    Attributes:
        path: the file that was written.
        items: one row per text, template or case.
        again: how many cases to look at again were written; None without a file for them.
    """

    path: Path
    items: pl.DataFrame
    again: int | None


@checked
def report(
    run: Table | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    title: str | None = None,
    kind: Kind | None = None,
    condition: str | None = None,
    without_texts: bool = False,
    pseudonyms: bool = False,
    again: str | os.PathLike[str] | None = None,
    interactive: bool = False,
    samples: Table | str | os.PathLike[str] | None = None,
    a_col: str | None = None,
    b_col: str | None = None,
    winner_col: str | None = None,
    encoding: str | None = None,
    key: str | os.PathLike[str] | None = None,
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
        pseudonyms: Call the texts or tasks T1, T2 and so on, in random order.
        again: A ``.jsonl`` file to write what to look at again to, as cases for labellers.
        interactive: Draw charts that can be searched and zoomed as well; adds 0.9 MB and needs altair.
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
    return written_report(
        run, out=out, title=title, kind=kind, condition=condition, without_texts=without_texts, pseudonyms=pseudonyms,
        again=again, interactive=interactive,
        reading=ResultsReading(samples, a_col, b_col, winner_col, encoding, key),
    ).path  # fmt: skip


def written_report(
    run: Table | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None,
    title: str | None,
    kind: str | None,
    condition: str | None,
    without_texts: bool,
    pseudonyms: bool,
    again: str | os.PathLike[str] | None,
    interactive: bool,
    reading: ResultsReading,
) -> WrittenReport:
    """What :func:`report` does, with what the page holds.

    Args:
        run: The run file, or results.
        out: The file to write.
        title: What was asked.
        kind: What to read the run as.
        condition: The judge or the condition.
        without_texts: Leave the texts out.
        pseudonyms: Leave the names out.
        again: A file for the cases to look at again.
        interactive: Draw interactive charts.
        reading: How results are read.

    Raises:
        InputError: If an option does not fit the run.
    """
    from pairscale.reporting._chart_files import require_drawing
    from pairscale.reporting.figures import RankingFacts
    from pairscale.reporting.page import page_of, write_page

    is_table = out is not None and Path(out).suffix.lower() in TABLE_SUFFIXES
    optional(require_suffix, out, "out", (".html", ".htm", *TABLE_SUFFIXES))
    optional(require_suffix, again, "again", (".jsonl", ".ndjson"))
    if interactive and is_table:
        raise InputError(f"`interactive=` is for the charts of a page, and {out} is a table; leave one of the two out")
    if interactive:
        require_drawing("`interactive=True`")
    run, _ = named_runs(run)
    named = str(run) if isinstance(run, str | os.PathLike) and not is_pattern(run) else None
    facts = _facts(run, kind, condition, reading)
    if again is not None and isinstance(facts, RankingFacts) and not facts.texts:
        raise InputError("`again=` writes texts for people to label, and results in a table have none; give `samples=`")
    target = page_of(named) if out is None else Path(out)
    shown = facts.disguised() if pseudonyms else facts
    items = shown.rows(texts=not without_texts)
    if is_table and target.suffix.lower() == ".xlsx":
        from pairscale.reporting.workbook import sheets_of

        write_workbook(sheets_of(shown, texts=not without_texts), target)
    elif is_table:
        write_table(items, target)
    else:
        options = {"kind": kind, "condition": condition, **reading.given}
        is_said = not pseudonyms and all(isinstance(value, str | os.PathLike) for value in reading.given.values())
        write_page(
            shown, target, title=title, texts=not without_texts, run=named if is_said else None, options=options,
            interactive=interactive,
        )  # fmt: skip
    return WrittenReport(target, items, None if again is None else shown.write_again(Path(again)))


def _facts(
    run: Table | str | os.PathLike[str], kind: str | None, condition: str | None, reading: ResultsReading
) -> Facts:
    from pairscale.checks.card import is_judge_card, read_judge_card
    from pairscale.reporting.page import KINDS, facts_of, kind_of

    chosen: Any = optional(require_choice, kind, "kind", KINDS)
    run, files = named_runs(run)
    if files is not None and kind not in {None, "ranking"}:
        raise InputError(f"kind={kind!r} is read from one run file; several of them make a ranking")
    if files is not None or not isinstance(run, str | os.PathLike) or is_pattern(run):
        return _of_results(files or run, chosen, condition, reading)
    if "://" not in str(run) and is_judge_card(run):
        from pairscale.reporting._card import CardFacts

        if kind is not None or condition is not None:
            raise InputError("kind and condition choose what to read of a run file; a judge card is one thing")
        reading.require_none("a judge card is one thing")
        return CardFacts(read_judge_card(run))
    if not is_run(run):
        return _of_results(run, chosen, condition, reading)
    reading.require_none("a run file knows its columns and its texts")
    with open_run(run) as store:
        chosen = chosen or kind_of(store)
        if chosen in {"ab", "variants"}:
            if condition is not None:
                raise InputError(
                    "`condition=` chooses a judge of a ranking or a study; an A/B run shows all of its own"
                )
            return facts_of(store, chosen)
        # A study is about all of its judges; a ranking of several needs a choice.
        if chosen == "ranking" and (condition == PEOPLE or not store.counts()["comparisons"]):
            return facts_of(store, chosen, people=condition)
        all_of_them = chosen == "bias" and condition is None
        return facts_of(store, chosen, None if all_of_them else condition_of(store, condition))


def _of_results(
    results: Table | str | os.PathLike[str], kind: str | None, condition: str | None, reading: ResultsReading
) -> Facts:
    """Results that are in no run file: labels of two variants, or comparisons of texts, which make a ranking."""
    if kind not in {None, "ab", "ranking"}:
        raise InputError(f"kind={kind!r} belongs to run files; results make a ranking, and labels with a key ab")
    of_variants = (
        kind != "ranking"
        and isinstance(results, str | os.PathLike)
        and labels_variants(results, reading.key, reading.encoding)
    )
    if kind == "ab" and not of_variants:
        raise InputError("kind='ab' belongs to labels of two variants; these are results, which make a ranking")
    if of_variants:
        from pairscale.reporting._ab_figures import ab_of_result
        from pairscale.reporting._label_result import result_of_labels

        replace(reading, key=None, encoding=None).require_none("labels of two variants have their own columns")
        return ab_of_result(result_of_labels(cast("str", results), condition, reading.key, reading.encoding))
    from pairscale.reporting.figures import facts_of_results

    named = {"results": str(results)} if isinstance(results, str | os.PathLike) else {}
    return facts_of_results(reading.comparisons(results, condition), named)


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
        taken_over: answers that were taken over from elsewhere.
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
    taken_over: int
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = ", ".join(f"{self.counts[name]:,} {name}" for name in ("items", "pairs", "attempts"))
        return f"{self.run}: {counts}, ${self.spending['cost'].sum():,.4f} spent"


@checked
def status(run: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> RunStatus:
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
    from pairscale.adaptive.status import adaptive_status
    from pairscale.collect.batch.registry import entries
    from pairscale.collect.taken_over import count_taken_over
    from pairscale.store.evidence import closing_of
    from pairscale.store.labels import label_counts

    path, files = named_runs(run)
    if files is not None:
        return _status_of_several(files)
    with open_run(path) as store:
        batches = entries(store)
        return RunStatus(
            run=without_login(str(path)),
            counts=store.counts(),
            made={key: store.get_meta(key) for key in ("created_by", "created_at", "writer")},
            digest=closing_of(store),
            adaptive=adaptive_status(store),
            conditions=store.conditions(),
            spending=store.spending(),
            labelled=label_counts(store),
            labels=store.labels(),
            batches=len(batches),
            open_batches=sum(entry.open for entry in batches),
            taken_over=count_taken_over(store),
        )


def _status_of_several(files: Sequence[str]) -> RunStatus:
    """Run files together: counts added up, and a row per file and judge."""
    parts = [status(file) for file in files]
    texts: set[str] = set()
    for file in files:
        with open_run(file) as store:
            texts.update(store.item_ids())
    named = [part.conditions.insert_column(0, pl.lit(part.run).alias("run")) for part in parts]
    spending = pl.concat([part.spending for part in parts], how="vertical_relaxed")
    by = ["model", "template_id", "day"]
    sums = [name for name in spending.columns if name not in (*by, "prices_as_of")]
    labelled = [part.labelled for part in parts if part.labelled is not None]
    return RunStatus(
        run=f"{len(parts):,} run files",
        counts={name: sum(part.counts[name] for part in parts) for name in parts[0].counts} | {"items": len(texts)},
        made=parts[0].made,
        digest=None,
        adaptive=None,
        conditions=pl.concat(named, how="vertical_relaxed"),
        spending=spending.group_by(by, maintain_order=True).agg(pl.col(sums).sum(), pl.first("prices_as_of")),
        labelled={name: sum(counts[name] for counts in labelled) for name in labelled[0]} if labelled else None,
        labels=pl.concat([part.labels for part in parts], how="vertical_relaxed"),
        batches=sum(part.batches for part in parts),
        open_batches=sum(part.open_batches for part in parts),
        taken_over=sum(part.taken_over for part in parts),
        files=tuple(part.run for part in parts),
    )
