"""The report of a comparison of two variants: of its run file, its result, or a file of labels."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairscale.checks.calibration import calibrate
from pairscale.core.comparisons import Outcome
from pairscale.core.errors import InputError
from pairscale.core.options import FilePath
from pairscale.core.provenance import Provenance
from pairscale.core.tables import listed
from pairscale.evaluate.comparators import PairwiseOutcome, majority
from pairscale.evaluate.inference.control import MARKDOWN
from pairscale.evaluate.inference.win_rate import slices
from pairscale.evaluate.labels import read_labels
from pairscale.evaluate.result import PairwiseCase, PairwiseRunResult, judge_and_people
from pairscale.evaluate.store import Compared, saved_result
from pairscale.evaluate.wording import asked_words, basis_of, controlled_lines, deciding_rate, graded_words
from pairscale.judges.base import is_judge
from pairscale.reporting.page import Report, calibration_parts, moment, origin_of, other_names, preview, summed
from pairscale.reporting.picture import rate_picture, shares
from pairscale.store.marks import ANSWERS, RESULTS
from pairscale.store.queries import PRICES_MARK, SPENDING, dated_spending

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pairscale.evaluate.result import PairwiseAgreement
    from pairscale.reporting.picture import Content, Row
    from pairscale.store.runfile import RunFile

PEOPLE = "people"
"""The key of people's labels, beside those of judges."""

_KINDS = {"wins": "b", "ties": "tie", "flips": "flip", "losses": "a", "abstentions": "abstention", "errors": "error"}
_OUTCOMES = {"tie": "tie", "flip": "flip", "abstention": "no answer", "error": "error"}
_IMPERSONAL = {"run", "compared", "ranked", "pairscale", "seed", "run file made by", "digest", "last command"}
_LONGEST_REASON = 160

Case = tuple[str, int]
"""A task, and which answer to it."""


# Where it comes from


def ab_of_run(store: RunFile, *, texts: bool = True, pseudonyms: bool = False) -> Report:
    """Read the last result that a run file keeps.

    Raises:
        InputError: when it keeps none.
    """
    kept = saved_result(store)
    results = store.log_length(RESULTS)
    judging = store.spending()
    answering = answering_of(store)
    origin = origin_of(store, pseudonyms=pseudonyms)
    if kept is None:
        raise InputError(
            "the run file keeps no result of a comparison of two variants; if it was broken off, give the same "
            "`pairscale ab` line again, which asks nothing that is known"
        )
    notices = [f"the run file keeps {results:,} results; this is the last"] if results > 1 else []
    if pseudonyms:
        other = {kept[0].variant_a: "A", kept[0].variant_b: "B"}
        answering = answering.with_columns(pl.col("model").replace_strict(other, default="another variant"))
    report = ab_report(*kept, texts=texts, pseudonyms=pseudonyms, origin=origin, notices=notices)
    return replace(report, spending=pl.concat([judging, answering]))


def answering_of(store: RunFile) -> pl.DataFrame:
    """What the variants' own answers cost, in the columns of the judges' spending."""
    rows = []
    for answer in store.read_log(ANSWERS):
        trace = answer["trace"]
        row = {"model": answer["name"], "day": str(answer["at"])[:10], "attempts": 1}
        rows.append(row | {"total_tokens": trace.get("tokens") or 0, "cost": trace.get("cost") or 0.0})
    return dated_spending(summed(pl.DataFrame(rows, schema=dict(SPENDING))), store.get_meta(PRICES_MARK))


def result_of_labels(
    path: FilePath,
    judge: str | None = None,
    key_file: FilePath | None = None,
    encoding: str | None = None,
) -> PairwiseRunResult:
    """Labels as the result of a comparison.

    With a judge among the labellers there is a comparator for the judge and one for people, by majority; without one,
    every labeller is a comparator.

    Args:
        path: the labels; see :func:`pairscale.read_labels`.
        judge: the labeller that is a judge; by default those that are called like one, such as ``openai:gpt-5.1``.
        key_file: the key, where it does not lie beside the labels.
        encoding: of text files that are not UTF-8.

    Raises:
        InputError: If there are no labels, or no labeller has the name of the judge.
        FileFormatError: If the labels or their key cannot be read.
    """
    labels = read_labels(path, key_file=key_file, encoding=encoding)
    if labels.table.is_empty():
        raise InputError(f"{path} holds no label that can be used; `pairscale agreement {path}` says why")
    who = labels.table["labeller"].unique(maintain_order=True).to_list()
    if judge is not None and judge not in who:
        raise InputError(f"no labeller is called {judge!r}; there are {listed(who)}")
    judges = [judge] if judge is not None else [name for name in who if is_judge(name)]
    criteria = labels.table["criterion"].n_unique()
    cases: dict[tuple[str, str, int], list[Row]] = {}
    for row in labels.table.iter_rows(named=True):
        group = row["labeller"] if not judges or row["labeller"] in judges else PEOPLE
        key = group if criteria == 1 else f"{row['criterion']}: {group}"
        cases.setdefault((key, row["task_id"], row["repeat"]), []).append(row)
    keys = sorted(dict.fromkeys(key for key, _, _ in cases), key=lambda key: key.endswith(PEOPLE))
    labelled = tuple(_labelled(key, rows, judges) for (key, _, _), rows in cases.items())
    settings = {"labels": str(path), "unusable": labels.problems.height or None}
    return PairwiseRunResult("labels", labelled, tuple(keys), provenance=Provenance("read_labels", settings))


def _labelled(key: str, rows: Sequence[Row], judges: Sequence[str]) -> PairwiseCase:
    """The labels of one case as a case: the answer of a judge, or the majority of people."""
    first = rows[0]
    detail: Content = {"judge_id": first["labeller"]}
    if first["labeller"] not in judges:
        kept = ("labeller", "winner", "comment", "first_variant")
        detail = {"labels": [{name: row[name] for name in kept} for row in rows]}
    words = "\n".join(f"{row['labeller']}: {row['comment']}" for row in rows if row["comment"])
    decided = majority([PairwiseOutcome(row["winner"]) for row in rows], detail, words)
    winner: Any = decided.winner
    outcome = decided.outcome or Outcome.ERROR
    return PairwiseCase(first["task_id"], key, winner, words, dict(decided.detail), outcome, repeat=first["repeat"])


def _disguised(
    run: PairwiseRunResult, shown: Mapping[Case, Compared]
) -> tuple[PairwiseRunResult, dict[Case, Compared]]:
    """The same with other names for tasks, variants and people, and without words, which may hold any of them."""
    tasks = other_names([*(case.task_id for case in run.cases), *run.unasked, *(u.task_id for u in run.unmatched)])
    people = other_names((str(label["labeller"]) for case in run.cases for label in case.detail.get("labels", ())), "L")

    def other_key(key: str) -> str:
        """Of labels alone, every labeller is a comparator, alone or behind the criterion."""
        criterion, colon, name = key.rpartition(": ")
        return f"{criterion}{colon}{people.get(name, name)}"

    cases = []
    for case in run.cases:
        detail = dict(case.detail)
        for name in {"orders", "members", "labels"} & set(detail):
            detail[name] = [{**part, "reasoning": "", "comment": ""} for part in detail[name]]
        for label in detail.get("labels", ()):
            label["labeller"] = people[str(label["labeller"])]
        cases.append(replace(case, task_id=tasks[case.task_id], key=other_key(case.key), detail=detail, reasoning=""))
    hidden = replace(
        run,
        cases=tuple(cases),
        keys=tuple(map(other_key, run.keys)),
        variant_a="A",
        variant_b="B",
        unmatched=tuple(replace(task, task_id=tasks[task.task_id]) for task in run.unmatched),
        unasked=tuple(tasks[name] for name in run.unasked),
        label=None,
    )
    return hidden, {(tasks[name], repeat): texts for (name, repeat), texts in shown.items() if name in tasks}


# The report


def ab_report(
    run: PairwiseRunResult,
    shown: Mapping[Case, Compared],
    *,
    texts: bool = True,
    pseudonyms: bool = False,
    origin: Mapping[str, str] | None = None,
    notices: Sequence[str] = (),
) -> Report:
    """Put a comparison into figures and pictures.

    Args:
        run: the result, with its own figures and sentences.
        shown: by case, the task and the two answers; empty when they are not known.
        texts: whether the report holds them, and what was said of them.
        pseudonyms: whether tasks, variants and people have other names.
        origin: where the run file comes from.
        notices: what to be careful with.
    """
    provenance = {**provenance_of(run, "compared"), **(origin or {})}
    listed_cases = list(run.cases)
    if pseudonyms:
        run, shown = _disguised(run, shown)
        provenance = {name: value for name, value in provenance.items() if name in _IMPERSONAL}
        listed_cases = sorted(run.cases, key=lambda case: int(case.task_id[1:]))
    cases: dict[Case, dict[str, PairwiseCase]] = {}
    for case in listed_cases:
        cases.setdefault((case.task_id, case.repeat), {})[case.key] = case
    rates = {key: run.win_rate(key) for key in run.keys}
    deciding = {key: deciding_rate(run, key) for key in run.keys}
    compared_by = {key: comparator_of(run, key) for key in run.keys}
    with_texts = texts and bool(shown)
    agreements = _agreements(run)
    axis = f"win rate of {run.variant_b}"
    content = {
        "run": run,
        "n_cases": len(cases),
        "tasks": len({case.task_id for case in run.cases}),
        "repeats": max((case.repeat for case in run.cases), default=1),
        "verdicts": {key: run.verdict(key) for key in run.keys},
        "compared_by": {key: words for key, (_, words) in compared_by.items()},
        "first_rate": rates[run.keys[0]],
        "deciding": deciding[run.keys[0]],
        "basis": basis_of(run, run.keys[0]),
        "rates": _rates(run),
        "rates_chart": rate_picture(
            ((key, rate.rate, rate.ci) for key, rate in deciding.items() if rate is not None), axis
        ),
        "graded": [(key, line) for key in run.keys for line in graded_words(run, key)],
        "outcomes": shares(
            {key: {kind: getattr(rate, field) for field, kind in _KINDS.items()} for key, rate in rates.items()},
            {"b": f"{run.variant_b} won", "a": f"{run.variant_a} won", **_OUTCOMES},
            "Outcomes of the cases, by criterion",
        ),
        "outcome_rows": [
            (key, compared_by[key][1], *(getattr(rate, n) for n in _KINDS)) for key, rate in rates.items()
        ],
        "flips": {key: (run.flips(key), run.flip_directions(key)) for key in run.keys if run.flips(key)},
        "tags": _tags(run),
        "length": [(key, line) for key in run.keys for line in _style_lines(run, key)],
        "agreements": agreements,
        "people": [_judge_and_people(run, *two) for two in judge_and_people(run)],
        "words": {**run.names, "tie": "a tie"},
        "place": {task_id: at for at, (task_id, _) in enumerate(cases)},
        "asked": "" if run.provenance.method == "read_labels" else asked_words(run),
        "unanswered": _entries(cases, {Outcome.ERROR, Outcome.ABSTENTION}, _why_not if texts else lambda _: ""),
        "flipped": _entries(cases, {Outcome.FLIP}, lambda case: str(case.detail.get("direction") or "")),
        **_table(run, cases, shown if with_texts else {}),
    }
    again = {case.task_id for case in run.cases if case.outcome not in {Outcome.WIN, Outcome.TIE}}
    again |= {task_id for _, _, agreement in agreements for task_id, _, _ in agreement.disagreements}
    table = run.frame()
    if pseudonyms:
        table = table.sort(pl.col("task_id").str.slice(1).cast(int), maintain_order=True)
    return Report(
        "ab.html",
        f"{run.variant_b} against {run.variant_a}",
        table if texts else table.drop("reasoning"),
        content,
        provenance,
        [name for names, _ in compared_by.values() for name in names],
        [*notices, *dict.fromkeys(notice for rate in rates.values() for notice in rate.notices)],
        n_results=len(cases),
        packed={"cases": _packed(run, cases, shown)} if with_texts else None,
        write_again=_case_writer(run, shown, again) if shown else None,
    )


def provenance_of(run: Any, word: str) -> dict[str, str]:
    """Where a comparison of variants comes from, by its own record."""
    made = run.provenance
    settings = {name: value for name, value in made.settings.items() if value is not None and name != "run"}
    facts = {"run": getattr(run, "run_id", None), "label": getattr(run, "label", None)}
    facts |= {word: f"{moment(run.created_at)}, by {made.method}", "pairscale": made.version, "seed": made.seed}
    facts |= {**settings, **{f"variant {name}": value for name, value in made.inputs.items()}}
    return {name: str(value) for name, value in facts.items() if value is not None}


def comparator_of(run: PairwiseRunResult, key: str) -> tuple[list[str], str]:
    """Who compared under a key, as far as the cases tell: the names, and a phrase."""
    for case in run.of(key):
        detail = case.detail
        if "members" in detail:
            members = [str(member["judge_id"]) for member in detail["members"]]
            return members, f"a panel of {', '.join(members)}"
        if "labels" in detail:
            return [PEOPLE], "people who labelled the cases blinded"
        if "first_variant" in detail:
            return [PEOPLE], "a person who was shown the answers blinded"
        if "judge_id" in detail:
            orders = "in both orders" if len(detail.get("orders", ())) > 1 else "in one order"
            return [str(detail["judge_id"])], f"{detail['judge_id']} {orders}"
    return [], "a comparator of its own"


def _case_name(case: PairwiseCase) -> str:
    """A task, and which answer to it when that is not the first."""
    return case.task_id if case.repeat == 1 else f"{case.task_id} #{case.repeat}"


def _outcome(case: PairwiseCase, run: PairwiseRunResult) -> str:
    return run.names[case.winner] if case.winner in run.names else _OUTCOMES[str(case.outcome)]


def _rates(run: PairwiseRunResult) -> list[tuple[Any, ...]]:
    """The win rates: over all answered cases, and over those with a winner."""
    rows = []
    for key in run.keys:
        rate = run.win_rate(key)
        counted = {"ties and flips as half": rate}
        if rate.graded:
            hard = run.win_rate(key, graded=False)
            counted = {"mean preference": rate, "hard verdicts, ties and flips as half": hard}
        counted["cases with a winner"] = run.win_rate(key, ties="excluded")
        for what, counted_rate in counted.items():
            rows.append((key, what, counted_rate.n, counted_rate.rate, *(counted_rate.ci or (None, None))))
    return rows


def _tags(run: PairwiseRunResult) -> list[Content]:
    """Win rates by tag, with intervals that hold for all tags at once."""
    if not any(case.tags for case in run.cases):
        return []
    parts = []
    for key in run.keys:
        table = slices(run.frame(key), interval=run.interval).with_columns(pl.col("slice").fill_null("no tag"))
        rows = table.select("slice", "n", "rate", "lower", "upper").rows()
        chart = rate_picture(((name, rate, ends) for name, _, rate, *ends in rows), f"win rate of {run.variant_b}")
        parts.append({"key": key, "chart": chart, "rows": rows})
    return parts


def _style_lines(run: PairwiseRunResult, key: str) -> list[str]:
    """What length has to do with it, and Markdown where the answers have any."""
    if all(case.length_a is None for case in run.of(key)):
        return []  # the answers are not known
    counted = any(case.measures(side).get(name) for case in run.of(key) for side in "ab" for name in MARKDOWN)
    names = run.control or (("length", *MARKDOWN) if counted else ("length",))
    return controlled_lines(run.controlled(key, names), run.variant_b)


def _agreements(run: PairwiseRunResult) -> list[tuple[str, str, PairwiseAgreement]]:
    """How far every two comparators agree."""
    agreements = [(x, y, run.agreement(x, y)) for x, y in combinations(run.keys, 2)]
    return [(x, y, agreement) for x, y, agreement in agreements if agreement.rate is not None]


def _judge_and_people(run: PairwiseRunResult, judge: str, people: str) -> Content:
    """A judge held against people: who said what, how far they agree, and whether its preferences are right."""
    by_people = {(case.task_id, case.repeat): str(case.winner) for case in run.of(people) if case.winner is not None}
    graded = [
        (case.preference, {"b": 1.0, "a": 0.0}.get(by_people[case.task_id, case.repeat], 0.5))
        for case in run.of(judge)
        if case.preference is not None and (case.task_id, case.repeat) in by_people
    ]
    calibrations = [("", calibrate(*zip(*graded, strict=True)))] if graded else []
    return {
        "judge": judge,
        "people": people,
        "agreement": run.agreement(judge, people),
        "calibrations": calibration_parts(calibrations),
    }


def _entries(
    cases: Mapping[Case, Mapping[str, PairwiseCase]], outcomes: set[Outcome], why: Callable[[PairwiseCase], str]
) -> list[tuple[int, str, str, str]]:
    """The cases with these outcomes: their place, name, comparator, and why."""
    return [
        (place, _case_name(case), case.key, why(case))
        for place, by_key in enumerate(cases.values())
        for case in by_key.values()
        if case.outcome in outcomes
    ]


def _why_not(case: PairwiseCase) -> str:
    """Why a case has no answer, on one line: what was said in the orders that failed."""
    orders = case.detail.get("orders", ())
    reasons = [order["reasoning"] for order in orders if order["outcome"] == str(case.outcome)]
    reason = "; ".join(dict.fromkeys(filter(None, reasons))) or case.reasoning
    return " ".join(reason.split())[:_LONGEST_REASON]


def _table(
    run: PairwiseRunResult, cases: Mapping[Case, Mapping[str, PairwiseCase]], shown: Mapping[Case, Compared]
) -> Content:
    """The table of cases that can be searched and sorted."""
    tagged = any(case.tags for case in run.cases)
    graded = [key for key in run.keys if any(case.preference is not None for case in run.of(key))]
    columns = [("case", "id", False)]
    if tagged:
        columns.append(("tags", "word", False))
    columns += [(key, "word", False) for key in run.keys]
    columns += [(f"preference for {run.variant_b}, {key}", "n", False) for key in graded]
    columns += [(f"characters, {name}", "n", True) for name in run.names.values()]
    rows = []
    for by_key in cases.values():
        some = next(iter(by_key.values()))
        row: list[Any] = [_case_name(some), *([", ".join(some.tags)] if tagged else ())]
        row += [_outcome(by_key[key], run) if key in by_key else "" for key in run.keys]
        row += [by_key[key].preference if key in by_key else None for key in graded]
        rows.append([*row, some.length_a, some.length_b])
    previews = [preview(shown[name].task_input) if name in shown else "" for name in cases] if shown else []
    return {"columns": columns, "rows": rows, "previews": previews}


def _packed(
    run: PairwiseRunResult, cases: Mapping[Case, Mapping[str, PairwiseCase]], shown: Mapping[Case, Compared]
) -> list[tuple[Any, ...]]:
    """The cases to be read: the task, both answers, and what every comparator said."""
    content = []
    for name, by_key in cases.items():
        texts = shown.get(name, Compared("", None, None))
        lines = [line for case in by_key.values() for line in _said(case, run)]
        content.append((_case_name(next(iter(by_key.values()))), texts.task_input, texts.a or "", texts.b or "", lines))
    return content


def _said(case: PairwiseCase, run: PairwiseRunResult) -> list[tuple[str, str]]:
    """The outcome of a case and why: sentences, each with the words of the judge or person who said it."""
    names = {**run.names, "tie": "a tie"}
    head = f"{case.key}: {_outcome(case, run)}{' is better' if case.outcome is Outcome.WIN else ''}"
    if case.preference is not None:
        head += f" (preference {case.preference:.2f} for {run.variant_b})"
    orders = case.detail.get("orders", ())
    parts = [*case.detail.get("members", ()), *case.detail.get("labels", ()), *(orders if len(orders) > 1 else ())]
    if not parts:
        return [(head, case.reasoning)]
    lines = [(head, "")]
    for part in parts:
        who = part.get("judge_id") or part.get("labeller") or f"{names[part['first']]} shown first"
        winner = names.get(part["winner"] or "", part.get("outcome", ""))
        stated = part.get("preference")
        strength = "" if stated is None else f" ({stated:.2f} for {run.variant_b})"
        lines.append((f"{who}: {winner}{strength}", str(part.get("reasoning") or part.get("comment") or "")))
    return lines


def _case_writer(run: PairwiseRunResult, shown: Mapping[Case, Compared], again: set[str]) -> Callable[[Path], int]:
    """Writes the cases to look at again for people to label, blinded, with their key beside them."""

    def write(path: Path) -> int:
        from pairscale.evaluate.manifest import export_pairwise_cases
        from pairscale.evaluate.tasks import InMemoryTraceSource, Suite, Task

        readable = {
            name: (texts.task_input, texts.a, texts.b)
            for name, texts in sorted(shown.items(), key=lambda item: item[0][1])
            if name[0] in again and texts.a is not None and texts.b is not None
        }
        if not readable:
            path.write_text("", "utf-8")
            return 0
        inputs = {task_id: text for (task_id, _), (text, _, _) in readable.items()}
        sides = [
            InMemoryTraceSource([(name[0], str(texts[side])) for name, texts in readable.items()]) for side in (1, 2)
        ]
        suite = Suite(tuple(Task({"input": text} if text else {}, name) for name, text in inputs.items()))
        criteria = [key for key in run.keys if PEOPLE not in comparator_of(run, key)[0]] or list(run.keys)
        return export_pairwise_cases(sides[0], sides[1], criteria=criteria, out=path, suite=suite).n_cases

    return write
