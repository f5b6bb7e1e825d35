"""Is this judge fit for this study? Some pairs in both orders, against what people said, and the answer in figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairscale.checks.calibration import Calibration, calibrations_of
from pairscale.checks.card import JudgeCard, JudgeIdentity
from pairscale.checks.position import PositionalBias, check_positional_bias, compute_reverse_consistency
from pairscale.collect.live import SubmitResult, submit_pairs
from pairscale.core.comparisons import Outcome
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.notices import notice, without_notices
from pairscale.core.options import ProgressMode, checked, optional, require_choice, require_int
from pairscale.core.samples import read_samples
from pairscale.evaluate.judge import make_task_judge
from pairscale.evaluate.judge_measures import measures_of
from pairscale.evaluate.judge_questions import (
    CheckPairs,
    Labels,
    Questions,
    case_rows,
    pairs_of_cases,
    pairs_of_texts,
    questions_of,
)
from pairscale.judges.base import Judge, judge_member
from pairscale.judges.build import judge_with, want_probability
from pairscale.models.bayes.fit import fit_btl
from pairscale.providers.catalog import PROVIDERS, price_date
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT
from pairscale.store.label_keys import key_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairscale.core.tables import Table
    from pairscale.core.traits import Trait
    from pairscale.models.bayes.settings import Answer
    from pairscale.providers.catalog import Price

__all__ = ["JudgeCheck", "check_judge"]

_LEVEL, _PROBES = 0.95, 20


@dataclass(frozen=True, slots=True, repr=False)
class JudgeCheck(ReprMixin):
    """What some pairs in both orders say of a judge.

    Attributes:
        judge_id: who was asked.
        n_items: texts of the data set.
        n_pairs: pairs that were asked about, in both orders.
        n_asked: questions.
        n_valid: of these, answered with a winner.
        failures: ``error_code error_message n`` of the others.
        prop_consistent: the share of pairs with the same winner both ways; None when no pair was answered twice.
        bias: what the two orders say of the position; None likewise.
        cost_each: US dollars a question, where the judge says; also of one that came from the answer cache.
        seconds_each: seconds a question that was asked.
        tokens_each: tokens a question, where the judge says.
        prices_as_of: date of the prices behind ``cost_each``; None where the judge states its costs itself.
        card: all figures with their intervals, to be saved and read by later runs.
        spread: standard deviation of the scores of the texts in logits, as far as the answers tell (posterior median);
            None of cases, and where nothing was answered.
        error: scale of the errors of the judge's probabilities in logits, likewise; None where winners are asked for.
    """

    judge_id: str
    n_items: int
    n_pairs: int
    n_asked: int
    n_valid: int
    failures: pl.DataFrame
    prop_consistent: float | None
    bias: PositionalBias | None
    cost_each: float | None
    seconds_each: float | None
    tokens_each: float | None
    prices_as_of: str | None
    card: JudgeCard
    spread: float | None = None
    error: float | None = None

    @property
    def prop_valid(self) -> float:
        """The share of questions that were answered with a winner."""
        return self.n_valid / self.n_asked if self.n_asked else 0.0

    @property
    def calibrations(self) -> list[Calibration]:
        """How right the judge's probabilities are: against people, and against the other order; empty without any."""
        return self.card.calibrations

    def __str__(self) -> str:
        valid = f"{self.judge_id}: {self.n_valid:,} of {self.n_asked:,} questions answered with a winner"
        if self.bias is None or self.prop_consistent is None:
            return valid
        people = f"; {self.card}" if self.card.measures["agreement"].measured else ""
        return f"{valid}, {self.prop_consistent:.1%} of pairs consistent; {self.bias.verdict}{people}"

    @checked
    def save_card(self, path: str | os.PathLike[str]) -> Path:
        """Write the judge card to a ``.json`` file; see :class:`JudgeCard`."""
        return self.card.save(path)


@checked
def check_judge(
    data: Table | str | os.PathLike[str],
    judge: str | Judge | Callable[..., Any] = "lexical",
    *,
    labels: Labels | None = None,
    key: str | os.PathLike[str] | None = None,
    criterion: str | None = None,
    run: str | os.PathLike[str] | None = None,
    n_pairs: int | None = None,
    n_repeats: int | None = None,
    n_distractors: int | None = None,
    trait: str | Trait | None = None,
    template: str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    answer: Answer = "winner",
    base_url: str | None = None,
    cache: bool | None = None,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float | None = TIMEOUT,
    max_cost: float | None = None,
    price: Price | Mapping[str, Any] | None = None,
    seed: int = 1,
    progress: ProgressMode = True,
    id_col: int | str | None = None,
    text_col: int | str | None = None,
    encoding: str | None = None,
    strict: bool = False,
    skip_unreadable: bool = False,
) -> JudgeCheck:
    """Ask a judge about some pairs in both orders, compare it with people, and see what it is worth.

    Give texts to check a judge of texts (``ps.rank``, ``ps.judge``), or the cases of a manifest to check a judge of two
    answers to a task (``ps.ab``): the same judge has another prompt there. With ``labels``, the pairs are those that
    people have labelled, and ``result.save_card(path)`` writes a judge card, by which ``ps.ab`` corrects its win rates.

    Args:
        data: Samples (a table, a file, a folder or zip archive of texts), or the cases of a manifest
            (``case_id task_id criterion task_input response_1 response_2``), which ``ps.ab(manifest=...)`` writes.
        judge: A name (``lexical``, ``openai:gpt-5.1``, ``module:function``), a function ``judge(A, B)`` or a
            :class:`Judge`.
        labels: What people said. Of texts: comparisons in any form that ``ps.fit`` takes. Of cases: ``case_id`` and
            ``preferred`` per row. Of several people, the majority counts.
        key: The key of the labelled manifest, unless it lies beside the labels.
        criterion: Which criterion of a manifest that has several.
        run: The run file; the same call again asks nothing twice.
        n_pairs: How many pairs; each is asked twice. By default 30, or all that have a label.
        n_repeats: How many questions to ask a second time. By default 20 with ``labels``, else none.
        n_distractors: How many texts to compare with themselves plus appended nonsense, in both orders. By default 20
            with ``labels``, else none.
        trait: What to judge: the key of a built-in trait, or a :class:`Trait`.
        template: A prompt template, by its name, file or text.
        judge_args: Settings of the judge; of a function, keyword arguments of every call.
        answer: With ``probability``, a model is asked for log-probabilities, and the check shows whether what it states
            is right: ``result.calibrations``.
        base_url: Address of the provider, such as ``http://localhost:8000/v1``.
        cache: Whether to use answers of earlier runs to the same request; by default for temperature 0.
        concurrency: Questions open at once.
        retries: How often to ask again after a transient failure.
        timeout: Seconds that one answer may take; None for no limit.
        max_cost: US dollars that the run may spend, all calls together.
        price: US dollars per million tokens, such as ``{"input": 1.25, "output": 10}``; by default the dated table.
        seed: Seed of the choice of pairs and of the nonsense.
        progress: Show progress on standard error.
        id_col: The column of ids, by name, position from 0 or path in JSON.
        text_col: The column of texts, by name, position from 0 or path in JSON.
        encoding: Encoding of the text files; detected by default.
        strict: Raise an error if any file was not read.
        skip_unreadable: Continue without the files that need an optional package that is not installed.

    Returns:
        A :class:`JudgeCheck`.

    Raises:
        InputError: If the data, the labels, the judge or a setting cannot be used.
        JudgeError: If the judge cannot be asked, or fails in the same way on ten different questions in a row.
        StoreError: If the run file cannot be used.

    Example:
        >>> import pairscale as ps
        >>> ps.check_judge(ps.example_writing_samples, "lexical", n_pairs=10, progress=False).prop_consistent
        1.0
    """
    n_pairs, seed = optional(require_int, n_pairs, "n_pairs", least=1), require_int(seed, "seed", least=0)
    concurrency = require_int(concurrency, "concurrency", least=1)
    probes = 0 if labels is None else _PROBES
    n_repeats, n_distractors = (
        probes if given is None else require_int(given, name, least=0)
        for given, name in ((n_repeats, "n_repeats"), (n_distractors, "n_distractors"))
    )
    cases = case_rows(data)
    if cases is None and criterion is not None:
        raise InputError("criterion belongs to the cases of a manifest; texts are judged by a trait")
    if cases is not None and (trait is not None or template is not None):
        raise InputError("trait and template belong to texts; the cases of a manifest have a criterion")
    if cases is None:
        samples = read_samples(
            data, id_col=id_col, text_col=text_col, encoding=encoding, strict=strict, skip_unreadable=skip_unreadable
        )
        if samples.height < 2:
            raise InputError(f"a judge compares two texts; there are {samples.height}")
        found = pairs_of_texts(samples, labels, key, n_pairs, seed)
        asked = judge_with(
            judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url, cache=cache, price=price,
            answer=answer,
        )  # fmt: skip
    else:
        if labels is not None and not isinstance(labels, str | os.PathLike):
            raise InputError("labels of cases are a file or a run file")
        found = pairs_of_cases(cases, labels, _key_of(data, labels, key), criterion, n_pairs, seed, encoding)
        asked = _task_judge(judge, str(found.criterion), judge_args, base_url, cache, price, answer)
    questions = questions_of(found, n_repeats, n_distractors, seed)
    done = submit_pairs(
        questions.table, asked, run=run, concurrency=concurrency, retries=retries, timeout=timeout, max_cost=max_cost,
        progress=progress,
    )  # fmt: skip
    checked = _check(found, questions, done, asked, seed)
    if cases is None and checked.n_valid:
        spread, error = _spread(_main(done, questions), answer, seed)
        checked = replace(checked, spread=spread, error=error)
    if answer == "probability" and checked.n_valid and not checked.calibrations:
        notice("the judge gave no probability, so there is nothing to say about them")
    return checked


def _key_of(data: Any, labels: str | os.PathLike[str] | None, key: Any) -> Any:
    """The key of the labels: the one that is named, the one beside them, or the one beside the manifest."""
    if key is not None or labels is None or not isinstance(data, str | os.PathLike) or key_path(Path(labels)).exists():
        return key
    beside = key_path(Path(data))
    return beside if beside.exists() else None


def _task_judge(
    judge: str | Judge | Callable[..., Any],
    criterion: str,
    judge_args: Mapping[str, Any] | None,
    base_url: str | None,
    cache: bool | None,
    price: Price | Mapping[str, Any] | None,
    answer: Answer,
) -> Judge:
    """The judge that :func:`pairwise_judge` would ask about a criterion."""
    settings = dict(judge_args or {})
    if require_choice(answer, "answer", ("winner", "probability")) == "probability":
        want_probability(judge, settings)
    given = {"base_url": base_url, "cache": cache, "price": price}
    more = {name: value for name, value in given.items() if value is not None}
    if more and not (isinstance(judge, str) and judge.partition(":")[0] in PROVIDERS):
        raise InputError(f"`{next(iter(more))}=` belongs to a provider's model, such as compatible:MODEL")
    return make_task_judge(judge, criterion, {**settings, **more} or None)


def _check(found: CheckPairs, questions: Questions, done: SubmitResult, asked: Judge, seed: int) -> JudgeCheck:
    results, n_pairs = done.results, found.pairs.height
    main = _main(done, questions)
    n_valid = main.filter(pl.col("better_id").is_not_null()).height
    failed = set(done.failed_pairs["custom_id"].cast(pl.String))
    unasked = questions.table.height - results.height - len(failed)
    if unasked:
        notice(
            f"{unasked:,} of {questions.table.height:,} questions were not asked; what they would show is not measured"
        )
    bias = None
    if n_valid:
        halves = [results.filter(pl.col("custom_id").is_in(names)) for names in (questions.forward, questions.backward)]
        consistency = compute_reverse_consistency(*halves)
        if consistency.details.height:
            bias = check_positional_bias(consistency, conf_level=_LEVEL, seed=seed)
    if "instance" in asked.condition.settings:
        notice(
            "this judge has no name, so no later run can be checked by its card; name it: FunctionJudge(f, name=...)"
        )
    cost_each = _cost_each(done)
    costs = _paid(done)["cost"].drop_nulls().to_list() or ([] if cost_each is None else [cost_each])
    card = JudgeCard(
        JudgeIdentity.of(asked.condition, found.kind, found.criterion),
        measures_of(found, questions, results, len(failed), costs, bias, _LEVEL),
        {
            "kind": found.kind,
            "n_pairs": n_pairs,
            "n_labelled": sum(said is not None for said in found.labels),
            "labellers": found.labellers,
            "n_unasked": unasked,
            "seed": seed,
            "digest": found.digest,
            "prices_as_of": price_date(judge_member(asked, "price")),
            **_calibrated(found, main),
        },
        _LEVEL,
    )
    failures = done.failed_pairs.group_by("error_code", "error_message").len("n").sort("n", descending=True)
    return JudgeCheck(
        judge_id=asked.condition.judge_id,
        n_items=found.n_items,
        n_pairs=n_pairs,
        n_asked=main.height + len(failed & {*questions.forward, *questions.backward}),
        n_valid=n_valid,
        failures=failures,
        prop_consistent=None if bias is None else float(bias.summary["prop_consistent"][0]),
        bias=bias,
        cost_each=cost_each,
        seconds_each=_mean(_paid(done), "latency_s"),
        tokens_each=_mean(results, "total_tokens"),
        prices_as_of=price_date(judge_member(asked, "price")),
        card=card,
    )


def _main(done: SubmitResult, questions: Questions) -> pl.DataFrame:
    """The answers on the pairs themselves, without probes."""
    return done.results.filter(pl.col("custom_id").is_in([*questions.forward, *questions.backward]))


def _spread(results: pl.DataFrame, answer: Answer, seed: int) -> tuple[float | None, float | None]:
    """How far apart the scores of the texts are, and how large the errors of the judge's probabilities."""
    rows = results.filter(pl.col("outcome").is_in([Outcome.WIN, Outcome.TIE]))
    ids = pl.concat([rows["ID1"], rows["ID2"]]).unique(maintain_order=True).to_list()
    if answer == "probability" and rows["probability"].is_null().all():
        return None, None
    with without_notices():  # some pairs need not link all texts, and a spread is told all the same
        if answer == "probability":
            fit = fit_btl(rows, ids, "btl_b", seed=seed, prior_sd="learned", repeats="learned")
            return _median(fit.prior_sd), _median(fit.error)
        rows = rows.select("ID1", "ID2", "better_id")
        return _median(fit_btl(rows, ids, seed=seed, prior_sd="learned", repeats="learned").prior_sd), None


def _median(draws: NDArray[np.float64] | None) -> float | None:
    return None if draws is None else float(np.median(draws))


def _calibrated(found: CheckPairs, results: pl.DataFrame) -> dict[str, Any]:
    """How right the probabilities are, for the card; nothing where the judge gave none."""
    said = pl.Series("said", list(found.labels), dtype=pl.Float64)
    people = found.pairs.select(pl.col("ID1", "ID2").cast(pl.String), said).drop_nulls("said")
    chosen = pl.when(pl.col("said") == 1).then("ID1").when(pl.col("said") == 0).then("ID2")
    tie = pl.when(pl.col("said") == 0.5).then(pl.lit("tie")).otherwise(pl.lit("win"))
    labels = people.with_columns(better_id=chosen, outcome=tie) if people.height else None
    calibrations = calibrations_of(results, labels, _LEVEL)
    return {"calibration": [one.to_dict() for one in calibrations]} if calibrations else {}


def _paid(done: SubmitResult) -> pl.DataFrame:
    """The answers that were asked for: one of the answer cache has no status and costs nothing."""
    from_cache = pl.col("model").is_not_null() & pl.col("status_code").is_null() & (pl.col("cost") == 0)
    return done.results.filter(~from_cache.fill_null(value=False))


def _cost_each(done: SubmitResult) -> float | None:
    paid = _mean(_paid(done), "cost")
    return done.saved / done.cached if paid is None and done.cached and done.saved else paid


def _mean(results: pl.DataFrame, name: str) -> float | None:
    values = results[name].drop_nulls()
    return None if values.len() == 0 else float(values.cast(pl.Float64).to_numpy().mean())
