"""Is this judge fit for this study? Some pairs in both orders, against what people said, and the answer in figures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from pairscale.checks.calibration import Calibration, calibrations_of
from pairscale.checks.card import JudgeCard, JudgeIdentity, read_judge_card
from pairscale.checks.position import PositionalBias, compute_reverse_consistency, measure_bias
from pairscale.collect.live import SubmitResult, submit_pairs
from pairscale.core.comparisons import Outcome, ordered_key
from pairscale.core.display import ReprMixin
from pairscale.core.errors import InputError
from pairscale.core.files import TABLE_SUFFIXES, read_rows
from pairscale.core.notices import notice, without_notices
from pairscale.core.options import FilePath, ProgressMode, checked, optional, require_choice, require_int
from pairscale.core.provenance import fingerprint, text_hash
from pairscale.core.samples import read_samples
from pairscale.core.tables import PAIRS, Table, Values, listed, to_frame
from pairscale.evaluate.comparators import item_name
from pairscale.evaluate.judge import JudgeLike, make_task_judge, model_settings
from pairscale.evaluate.judge_measures import (
    LEVEL,
    JudgeChange,
    answers_of,
    change_between,
    labelled_answers,
    measures_of,
    require_same_labels,
    with_choices,
)
from pairscale.evaluate.labels import answers_digest, read_labels
from pairscale.evaluate.manifest import MANIFEST
from pairscale.evaluate.tasks import Row
from pairscale.judges.base import Judge, judge_member
from pairscale.judges.build import judge_with, want_probability
from pairscale.models.bayes.fit import fit_btl
from pairscale.models.data import outcome_figures
from pairscale.pairing.make import some_pairs
from pairscale.pairing.order import randomize_pair_order
from pairscale.pairing.table import drawn, generator, paired_columns, swapped
from pairscale.providers.catalog import price_date
from pairscale.runtime import CONCURRENCY, RETRIES, TIMEOUT
from pairscale.store.label_keys import key_path
from pairscale.store.reading import read_comparisons

if TYPE_CHECKING:
    from pairscale.core.traits import Trait
    from pairscale.models.bayes.settings import Answer
    from pairscale.providers.catalog import Price

Labels: TypeAlias = "Table | FilePath"

_SYLLABLES = "ba dro fen gli kou lat mi nor pla ree stu tra vin zel".split()
_LEAST_WORDS = 12
_MOST_WORDS = 60
_WORDS_A_SENTENCE = 9
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
        change: with ``since``, how far it agrees with people beside the earlier judge.
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
    change: JudgeChange | None = None

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
    def save_card(self, path: FilePath) -> Path:
        """Write the judge card to a ``.json`` file; see :class:`JudgeCard`."""
        return self.card.save(path)


@checked
def check_judge(
    data: Table | FilePath,
    judge: JudgeLike = "lexical",
    *,
    labels: Labels | None = None,
    since: JudgeCard | FilePath | None = None,
    key: FilePath | None = None,
    criterion: str | None = None,
    run: FilePath | None = None,
    n_pairs: int | None = None,
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
    people have labelled; 20 questions are asked a second time, and 20 texts are compared with themselves plus appended
    nonsense. ``result.save_card(path)`` keeps all figures in a judge card.

    Args:
        data: Samples (a table, a file, a folder of texts), or the cases of a manifest
            (``case_id task_id criterion task_input response_1 response_2``), which ``ps.ab(manifest=...)`` writes.
        judge: A name (``lexical``, ``openai:gpt-5.1``, ``module:function``), a function ``judge(A, B)`` or a
            :class:`Judge`.
        labels: What people said. Of texts: comparisons in any form that ``ps.fit`` takes. Of cases: ``case_id`` and
            ``preferred`` per row. Of several people, the majority counts.
        since: With ``labels``: the judge card of an earlier judge or model, made with the same labels. Both are
            compared, pair by pair: ``result.change``.
        key: The key of the labelled manifest, unless it lies beside the labels.
        criterion: Which criterion of a manifest that has several.
        run: The run file; the same call again asks nothing twice.
        n_pairs: How many pairs; each is asked twice. By default 30, or all that have a label.
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
    n_pairs = optional(require_int, n_pairs, "n_pairs", least=1)
    earlier = _earlier(since, labels, key)
    cases = case_rows(data)
    if cases is None:
        if criterion is not None:
            raise InputError("criterion belongs to the cases of a manifest; texts are judged by a trait")
        samples = read_samples(
            data, id_col=id_col, text_col=text_col, encoding=encoding, strict=strict, skip_unreadable=skip_unreadable
        )
        asked = _pairs_of_texts(samples, labels, key, n_pairs, seed)
        made = judge_with(
            judge, trait=trait, template=template, judge_args=judge_args, base_url=base_url, cache=cache, price=price,
            answer=answer,
        )  # fmt: skip
    else:
        if trait is not None or template is not None:
            raise InputError("trait and template belong to texts; the cases of a manifest have a criterion")
        if labels is not None and not isinstance(labels, str | os.PathLike):
            raise InputError("labels of cases are a file or a run file")
        manifest = data if isinstance(data, str | os.PathLike) else None
        asked = _pairs_of_cases(cases, labels, key or _key_beside(manifest, labels), criterion, n_pairs, seed, encoding)
        settings = dict(judge_args or {})
        if require_choice(answer, "answer", ("winner", "probability")) == "probability":
            want_probability(judge, settings)
        settings |= model_settings([judge], base_url=base_url, cache=cache, price=price)
        made = make_task_judge(judge, str(asked.criterion), settings or None)
    questions = asked.questions(0 if labels is None else _PROBES, seed)
    if earlier is not None:  # before anything is paid for
        require_same_labels(labelled_answers(with_choices(asked, {})), earlier)
    done = submit_pairs(
        questions, made, run=run, concurrency=concurrency, retries=retries, timeout=timeout, max_cost=max_cost,
        progress=progress,
    )  # fmt: skip
    result = _check(asked, questions, done, made, seed)
    if earlier is not None:
        result = replace(result, change=change_between(result.card, earlier))
    if cases is None and result.n_valid:
        spread, error = _spread(asked.main(done.results), answer, seed)
        result = replace(result, spread=spread, error=error)
    if answer == "probability" and result.n_valid and not result.calibrations:
        notice("the judge gave no probability, so there is nothing to say about them")
    return result


def _earlier(since: JudgeCard | FilePath | None, labels: Labels | None, key: FilePath | None) -> JudgeCard | None:
    """The card to compare with; None without one. What belongs to labels is refused without them."""
    if labels is None and key is not None:
        raise InputError("`key=` belongs to `labels=`")
    if labels is None and since is not None:
        raise InputError("`since=` belongs to `labels=`: two judges are compared by the same labels of people")
    card = since if since is None or isinstance(since, JudgeCard) else read_judge_card(since)
    if card is not None and not card.data.get("answers"):
        raise InputError(
            f"the card of {card.judge.judge_id} has no answers on labels of people, so that nothing can be compared "
            "with it; make it again, with `labels=`",
            argument="since",
        )
    return card


def _key_beside(manifest: FilePath | None, labels: FilePath | None) -> Path | None:
    """The key of a manifest, where the labels have none beside them."""
    if manifest is None or labels is None or key_path(Path(labels)).exists() or not key_path(Path(manifest)).exists():
        return None
    return key_path(Path(manifest))


def _check(asked: CheckPairs, questions: pl.DataFrame, done: SubmitResult, judge: Judge, seed: int) -> JudgeCheck:
    """The figures of a check."""
    results = done.results
    main = asked.main(results)
    answers = answers_of(results)
    failed = done.failed_pairs["custom_id"].n_unique()
    unasked = questions.height - results.height - failed
    if unasked:
        notice(f"{unasked:,} of {questions.height:,} questions were not asked; what they would show is not measured")
    bias = None
    is_forward = pl.col("custom_id").is_in(asked.pairs["pair_uid"].to_list())
    consistency = compute_reverse_consistency(main.filter(is_forward), main.filter(~is_forward))
    if consistency.details.height:
        bias = measure_bias(consistency, LEVEL)
    # An answer of the cache has no status and costs nothing.
    from_cache = pl.col("model").is_not_null() & pl.col("status_code").is_null() & (pl.col("cost") == 0)
    paid = results.filter(~from_cache.fill_null(value=False))
    costs = paid["cost"].drop_nulls().to_list()
    if not costs and done.cached and done.saved:
        costs = [done.saved / done.cached]
    pairs = with_choices(asked, answers)
    better = pl.when(person="1").then("ID1").when(person="2").then("ID2")
    outcome = pl.when(person="tie").then(pl.lit("tie")).otherwise(pl.lit("win"))
    people = pairs.drop_nulls("person").select("ID1", "ID2", better_id=better, outcome=outcome)
    prices_as_of = price_date(judge_member(judge, "price"))
    about = {
        "kind": asked.kind,
        "n_pairs": pairs.height,
        "n_labelled": people.height,
        "labellers": asked.labellers,
        "n_unasked": unasked,
        "seed": seed,
        "digest": fingerprint([pairs.select("text1", "text2").rows(), pairs["said"].to_list()]),
        "prices_as_of": prices_as_of,
    }
    if people.height:
        about["answers"] = labelled_answers(pairs)
    calibrations = calibrations_of(main, people if people.height else None, LEVEL)
    if calibrations:
        about["calibration"] = [calibration.to_dict() for calibration in calibrations]
    measures = measures_of(asked, results, failed, costs, bias)
    return JudgeCheck(
        judge_id=judge.condition.judge_id,
        n_items=asked.n_items,
        n_pairs=pairs.height,
        n_asked=main.height + asked.main(done.failed_pairs)["custom_id"].n_unique(),
        n_valid=main["better_id"].count(),
        failures=done.failed_pairs.group_by("error_code", "error_message").len("n").sort("n", descending=True),
        prop_consistent=None if bias is None else float(bias.summary["prop_consistent"][0]),
        bias=bias,
        cost_each=measures["cost"].value,
        seconds_each=_mean(paid["latency_s"]),
        tokens_each=_mean(results["total_tokens"]),
        prices_as_of=prices_as_of,
        card=JudgeCard(JudgeIdentity.of(judge.condition, asked.kind, asked.criterion), measures, about, LEVEL),
    )


def _spread(results: pl.DataFrame, answer: Answer, seed: int) -> tuple[float | None, float | None]:
    """How far apart the scores of the texts are, and how large the errors of the judge's probabilities."""
    rows = results.filter(pl.col("outcome").is_in([Outcome.WIN, Outcome.TIE]))
    ids = pl.concat([rows["ID1"], rows["ID2"]]).unique(maintain_order=True).to_list()
    model: Literal["btl_b", "btl_e_b"] = "btl_b"
    if answer == "winner":
        model = "btl_e_b"
        rows = rows.select("ID1", "ID2", "better_id")
    elif not rows["probability"].count():
        return None, None
    with without_notices():  # some pairs need not link all texts, and a spread is told all the same
        fit = fit_btl(rows, ids, model, seed=seed, prior_sd="learned", repeats="learned")
    return _median(fit.prior_sd), _median(fit.error)


def _median(draws: Any) -> float | None:
    return None if draws is None else float(np.median(draws))


def _mean(values: pl.Series) -> float | None:
    return float(values.drop_nulls().cast(pl.Float64).to_numpy().mean()) if values.count() else None


# What is asked


@dataclass(slots=True)
class CheckPairs:
    """Pairs to check a judge with, what people said of them, and the questions about them.

    Attributes:
        kind: ``texts`` or ``cases``.
        pairs: ``pair_uid ID1 text1 ID2 text2`` and what else the judge is shown of both sides; ``said``, whom people
            prefer (1.0 the first, 0.0 the second, 0.5 neither), and ``first_variant``, which stands first (``a`` or
            ``b``), both null where that is not known.
        labellers: how many people labelled.
        n_items: texts there are.
        criterion: what cases are judged by.
        people: people's answers to pairs of texts, one by one.
        orders: by the pair's place, the names of the questions in both orders.
        again: the names of questions that are asked twice, and of their second asking.
        padded: the names of both orders of the questions about appended nonsense; the text as it was stands first in
            the first of them.
    """

    kind: str
    pairs: pl.DataFrame
    labellers: int
    n_items: int
    criterion: str | None = None
    people: pl.DataFrame | None = None
    orders: Sequence[tuple[str, str]] = ()
    again: Sequence[tuple[str, str]] = ()
    padded: Sequence[tuple[str, str]] = ()

    def main(self, table: pl.DataFrame) -> pl.DataFrame:
        """What a table of questions says of the pairs themselves, without probes."""
        names = [name for both in self.orders for name in both]
        return table.filter(pl.col("custom_id").is_in(names))

    def questions(self, n_probes: int, seed: int) -> pl.DataFrame:
        """Every question of a check, as one table of pairs.

        Args:
            n_probes: how many pairs are asked a second time, and how many texts are compared with themselves and
                nonsense.
            seed: of the nonsense.
        """
        pairs = self.pairs.drop("said", "first_variant")
        backward = _reversed(pairs)
        if self.kind == "texts":
            backward = _named(backward)
        second = pairs.head(n_probes).with_columns(pl.col("pair_uid").str.strip_suffix("#1") + "#2")
        padded = _padded(pairs, n_probes, seed)
        turned = _reversed(padded)
        self.orders = list(zip(pairs["pair_uid"], backward["pair_uid"], strict=True))
        self.again = list(zip(pairs["pair_uid"], second["pair_uid"], strict=False))
        self.padded = list(zip(padded["pair_uid"], turned["pair_uid"], strict=True))
        return pl.concat([pairs, backward, second, padded, turned])


def _reversed(pairs: pl.DataFrame) -> pl.DataFrame:
    return swapped(pairs, np.ones(pairs.height, dtype=bool)).with_columns(pl.col("pair_uid") + "~")


def _named(pairs: pl.DataFrame) -> pl.DataFrame:
    """Pairs under the names that they would have anyway, so that what was asked before is found."""
    sides = pairs.select("ID1", "ID2").iter_rows()
    return pairs.with_columns(pl.Series("pair_uid", [f"{ordered_key(*ids)}#1" for ids in sides], pl.String))


def _pairs_of_texts(
    samples: pl.DataFrame, labels: Labels | None, key: FilePath | None, n_pairs: int | None, seed: int
) -> CheckPairs:
    """Pairs of texts: some of all, or those that people have labelled."""
    unknown = pl.lit(None, pl.String)
    if labels is None:
        pairs = _named(randomize_pair_order(some_pairs(samples, n_pairs or _PAIRS, seed), seed=seed))
        pairs = pairs.with_columns(said=unknown.cast(pl.Float64), first_variant=unknown)
        return CheckPairs("texts", pairs, 0, samples.height)
    read = read_comparisons(labels, key=key).table
    answered = read.with_columns(result=outcome_figures(read, "tie"))
    are_known = pl.all_horizontal(pl.col("ID1", "ID2").is_in(samples["ID"].to_list()))
    usable = answered.filter(are_known, pl.col("ID1") != pl.col("ID2")).drop_nulls("result")
    if not usable.height:
        raise InputError("labels: none of them is of two of these texts; check that both use the same ids")
    if usable.height < read.height:
        notice(f"labels: {read.height - usable.height:,} rows say nothing about two of these texts, and are left out")
    low = pl.min_horizontal("ID1", "ID2")
    low_won = pl.when(low == pl.col("ID1")).then("result").otherwise(1 - pl.col("result"))
    votes = usable.group_by(low=low, high=pl.max_horizontal("ID1", "ID2")).agg(votes=(low_won - 0.5).sum())
    said = votes.select("low", "high", said=(pl.col("votes").sign() + 1) / 2).sort("low", "high")
    pairs = drawn(said, n_pairs or said.height, seed).with_columns(ID1="low", ID2="high")
    for side in "12":
        pairs = pairs.join(samples.select(pl.all().name.suffix(side)), on=f"ID{side}", maintain_order="left")
    pairs = _named(randomize_pair_order(pairs.select(*PAIRS, pl.exclude(*PAIRS)), seed=seed))
    first_won = pl.when(pl.col("ID1") == pl.col("low")).then("said").otherwise(1 - pl.col("said"))
    pairs = pairs.with_columns(said=first_won, first_variant=unknown).drop("low", "high")
    who = [name for name in ("labeller", "judge_id", "judge", "rater") if name in usable.columns]
    labellers = usable[who[0]].n_unique() if who else 1
    return CheckPairs("texts", pairs, labellers, samples.height, people=usable.drop("result"))


def case_rows(data: Any) -> list[Values] | None:
    """The cases of a manifest; None where the data are something else."""
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if path.suffix.lower() not in TABLE_SUFFIXES or not path.is_file():
            return None
        rows = read_rows(path, text=(*MANIFEST, "preferred", "labeller", "comment"))
    elif isinstance(data, list) or hasattr(data, "columns"):
        rows = to_frame(data, "cases").to_dicts()
    else:
        return None
    return rows if rows and {"response_1", "response_2"} <= set(rows[0]) else None


def _pairs_of_cases(
    rows: Sequence[Row],
    labels: FilePath | None,
    key: FilePath | None,
    criterion: str | None,
    n_pairs: int | None,
    seed: int,
    encoding: str | None,
) -> CheckPairs:
    """The cases of a manifest under one criterion: some of all, or those that people have labelled."""
    criteria = list(dict.fromkeys(str(row.get("criterion") or "") for row in rows))
    about = criteria[0] if criterion is None and len(criteria) == 1 else criterion
    if about not in criteria or not about:
        raise InputError(f"choose one of the criteria of the cases by `criterion=`: {listed(criteria)}")
    cases = {str(row["case_id"]): _pair(row) for row in rows if str(row.get("criterion") or "") == about}
    wanted = sorted(cases)
    votes = pl.DataFrame(schema={"case_id": pl.String, "said": pl.Float64, "first_variant": pl.String})
    people = 0
    if labels is not None:
        votes, people = _case_votes(cases, labels, key, about, encoding)
        wanted = sorted(votes["case_id"])
    usable = []
    for name in wanted:
        texts = {cases[name]["text1"].strip(), cases[name]["text2"].strip(), ""}
        if len(texts) == 3:
            usable.append(name)
    if not usable:
        raise InputError(
            "there is no case to ask about: none has a label, or all have two equal answers or an empty one"
        )
    if len(usable) < len(wanted):
        notice(f"cases: {len(wanted) - len(usable):,} with two equal answers or an empty one are not asked about")
    most = n_pairs or (_PAIRS if labels is None else len(usable))
    chosen = [usable[place] for place in generator(seed).permutation(len(usable))[:most]]
    pairs = pl.DataFrame([cases[name] for name in chosen])
    labelled = pairs.join(votes, on="case_id", how="left", maintain_order="left").drop("case_id")
    return CheckPairs("cases", labelled, people, 2 * len(cases), about)


def _pair(case: Row) -> Values:
    """A case of a manifest as a pair."""
    name = str(case["case_id"])
    task_id = str(case.get("task_id") or name)
    row: Values = {"case_id": name, "pair_uid": f"{name}#1"}
    for side in "12":
        text = str(case.get(f"response_{side}") or "")
        row |= {f"ID{side}": item_name(task_id, text), f"text{side}": text, f"task_id{side}": task_id}
        row |= {f"input{side}": str(case.get("task_input") or ""), f"criterion{side}": case["criterion"]}
    return row


def _case_votes(
    cases: Mapping[str, Row],
    labels: FilePath,
    key: FilePath | None,
    criterion: str,
    encoding: str | None,
) -> tuple[pl.DataFrame, int]:
    """Who people prefer in each case (``said``: 1 the first response), with ``first_variant``; how many people."""
    read = read_labels(labels, key_file=key, encoding=encoding)
    table = read.of(criterion).table
    digests = {name: answers_digest(case["text1"], case["text2"]) for name, case in cases.items()}
    digest = pl.col("case_id").replace_strict(digests, default=None, return_dtype=pl.String)
    usable = table.filter(digest.is_not_null(), pl.col("answers").fill_null(digest) == digest)
    left_out = read.problems.height + table.height - usable.height
    if left_out:
        notice(f"labels: {left_out:,} cannot be used, or are of other cases or other answers; they are left out")
    vote = pl.col("preferred").replace_strict({"1": 1, "2": -1}, default=0, return_dtype=pl.Int64)
    said = (vote.sum().sign() + 1) / 2
    votes = usable.group_by("case_id").agg(said=said, first_variant=pl.col("first_variant").last())
    return votes, table["labeller"].n_unique()


def _padded(pairs: pl.DataFrame, count: int, seed: int) -> pl.DataFrame:
    """The first texts of as many pairs, each against itself with nonsense behind it; no text twice."""
    chosen = pairs.unique("ID1", keep="first", maintain_order=True).head(count)
    texts = [f"{text}\n\n{nonsense(text, seed)}" for text in chosen["text1"]]
    same = chosen.with_columns(pl.col(f"{name}1").alias(f"{name}2") for name in paired_columns(pairs))
    padded = same.with_columns(pl.Series("text2", texts, pl.String), ID2=pl.col("ID1") + " + nonsense")
    return padded.with_columns(pair_uid=pl.col("ID2") + f"#{seed}")


def nonsense(text: str, seed: int) -> str:
    """Irrelevant sentences of invented words, about a quarter as long as the text; the same for the same text and seed.

    Example:
        >>> nonsense("It rains.", 1) == nonsense("It rains.", 1), len(nonsense("It rains.", 1).split())
        (True, 12)
    """
    rng = np.random.default_rng([seed, int(text_hash(text)[:12], 16)])
    count = int(np.clip(len(text.split()) // 4, _LEAST_WORDS, _MOST_WORDS))

    words = ["".join(rng.choice(_SYLLABLES, size)) for size in rng.integers(1, 4, count)]
    sentences = [words[at : at + _WORDS_A_SENTENCE] for at in range(0, count, _WORDS_A_SENTENCE)]
    return " ".join(f"{' '.join(sentence).capitalize()}." for sentence in sentences)
