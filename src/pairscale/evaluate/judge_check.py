"""Is this judge fit for this study? Some pairs in both orders, against what people said, and the answer in figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from pairscale.checks.calibration import Calibration, calibrations_of
from pairscale.checks.card import JudgeCard, JudgeIdentity
from pairscale.checks.position import PositionalBias, compute_reverse_consistency, measure_bias
from pairscale.collect.live import SubmitResult, submit_pairs
from pairscale.core.comparisons import Outcome, ordered_key
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES, read_rows
from pairscale.core.notices import notice, without_notices
from pairscale.core.options import ProgressMode, checked, optional, require_choice, require_int
from pairscale.core.provenance import fingerprint, text_hash
from pairscale.core.samples import read_samples
from pairscale.core.tables import PAIRS, Table, listed, to_frame
from pairscale.evaluate.comparators import item_name
from pairscale.evaluate.judge import make_task_judge, model_settings
from pairscale.evaluate.judge_measures import measures_of
from pairscale.evaluate.labels import answers_digest, read_labels
from pairscale.evaluate.manifest import MANIFEST
from pairscale.judges.base import Judge, judge_member
from pairscale.judges.build import judge_with, want_probability
from pairscale.models.bayes.fit import fit_btl
from pairscale.pairing.make import some_pairs
from pairscale.pairing.order import randomize_pair_order
from pairscale.pairing.table import generator, swapped
from pairscale.providers.catalog import price_date
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT
from pairscale.store.label_keys import key_path
from pairscale.store.reading import read_comparisons

if TYPE_CHECKING:
    from pairscale.core.traits import Trait
    from pairscale.models.bayes.settings import Answer
    from pairscale.providers.catalog import Price

Labels: TypeAlias = "Table | str | os.PathLike[str]"

_ONSETS = "b d f g k l m n p r s t v z br dr kl pl st tr sh".split()
_VOWELS = "a e i o u ai ou ee".split()
_ENDS = ["", "", "n", "r", "l", "s", "t", "nd", "x"]
_LEAST_WORDS = 12
_MOST_WORDS = 60
_WORDS_A_SENTENCE = 9
_LEVEL = 0.95
_PROBES = 20
_PAIRS = 30


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
        return f"{valid}, {self.prop_consistent:.1%} of pairs consistent; {self.bias.verdict}"

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
    people have labelled; ``result.save_card(path)`` keeps all figures in a judge card.

    Args:
        data: Samples (a table, a file, a folder of texts), or the cases of a manifest
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
    probes = 0 if labels is None else _PROBES
    n_pairs = optional(require_int, n_pairs, "n_pairs", least=1)
    n_repeats = probes if n_repeats is None else require_int(n_repeats, "n_repeats", least=0)
    n_distractors = probes if n_distractors is None else require_int(n_distractors, "n_distractors", least=0)
    if labels is None and key is not None:
        raise InputError("`key=` belongs to `labels=`")
    cases = case_rows(data)
    if cases is None:
        if criterion is not None:
            raise InputError("criterion belongs to the cases of a manifest; texts are judged by a trait")
        samples = read_samples(
            data, id_col=id_col, text_col=text_col, encoding=encoding, strict=strict, skip_unreadable=skip_unreadable
        )
        found = _pairs_of_texts(samples, labels, key, n_pairs, seed)
        asked = judge_with(
            judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url, cache=cache, price=price,
            answer=answer,
        )  # fmt: skip
    else:
        if trait is not None or template is not None:
            raise InputError("trait and template belong to texts; the cases of a manifest have a criterion")
        if labels is not None and not isinstance(labels, str | os.PathLike):
            raise InputError("labels of cases are a file or a run file")
        is_file = isinstance(data, str | os.PathLike)
        if key is None and labels is not None and is_file and not key_path(Path(labels)).exists():
            beside = key_path(Path(data))  # of the manifest
            key = beside if beside.exists() else None
        found = _pairs_of_cases(cases, labels, key, criterion, n_pairs, seed, encoding)
        settings = dict(judge_args or {})
        if require_choice(answer, "answer", ("winner", "probability")) == "probability":
            want_probability(judge, settings)
        settings |= model_settings([judge], base_url=base_url, cache=cache, price=price)
        asked = make_task_judge(judge, str(found.criterion), settings or None)
    found.ask(n_repeats, n_distractors, seed)
    done = submit_pairs(
        found.table, asked, run=run, concurrency=concurrency, retries=retries, timeout=timeout, max_cost=max_cost,
        progress=progress,
    )  # fmt: skip
    result = _check(found, done, asked, seed)
    if cases is None and result.n_valid:
        spread, error = _spread(_main(done, found), answer, seed)
        result = replace(result, spread=spread, error=error)
    if answer == "probability" and result.n_valid and not result.calibrations:
        notice("the judge gave no probability, so there is nothing to say about them")
    return result


def _check(found: CheckPairs, done: SubmitResult, asked: Judge, seed: int) -> JudgeCheck:
    results = done.results
    main = _main(done, found)
    failed = set(done.failed_pairs["custom_id"].cast(pl.String))
    unasked = found.table.height - results.height - len(failed)
    if unasked:
        notice(f"{unasked:,} of {found.table.height:,} questions were not asked; what they would show is not measured")
    bias = None
    if n_valid:
        forward = results.filter(pl.col("custom_id").is_in(found.forward))
        backward = results.filter(pl.col("custom_id").is_in(found.backward))
        consistency = compute_reverse_consistency(forward, backward)
        if consistency.details.height:
            bias = measure_bias(consistency, _LEVEL)
