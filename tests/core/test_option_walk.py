"""What public functions refuse, by one sentence that names the option.

Every number refuses `nan`, -1, True and "3", every flag what is neither True nor False, every choice what is none
of its words, and every file what is no name of one.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import io
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

import pairscale as ps
from pairscale.core.errors import InputError
from pairscale.testing import ProviderSimulator

WRONG = (float("nan"), -1, True, "3")

RESULTS = """
Agreement AuditReport BTFit BayesFit BatchResult Calibration CaseChange ComparisonPlan CostEstimate EloFit ExportedCases
GateCriterion GateResult JudgeCard JudgeCheck
MultiBatch MultiBatchResult PairSummary PairwiseAgreement PairwiseCase PairwiseRunResult PositionalBias
ReverseConsistency RunDiff RunStatus Labelling SimulationStudy SubmitResult TemplateStudy Unmatched VariantsResult
WinRate
""".split()
"""Classes that functions return: their numbers are computed, not given."""

COUNTED = {"AdaptiveConfig.cap_count", "Verdict.with_cost_at_most",
           "AdaptiveConfig.quotas", "AdaptiveConfig.round_pairs_effective",
           "ModelVariant.answer"}  # fmt: skip
"""Methods that a run calls with what it has counted itself."""

NEGATIVE = {
    ("plan", "judge_slopes"), ("SimulatedJudge", "bias"),
    ("plan", "bias"), ("simulate", "bias"), ("fit_elo_model", "start"),
    ("build_btl_results_data", "iter_start"), ("SimulationStudy.reach", "target"), ("LLMJudge", "seed"),
    ("fit", "n_jobs"), ("fit_bt_model", "n_jobs"), ("plan", "n_jobs"), ("simulate", "n_jobs"), ("judge", "n_jobs"),
    ("template_study", "n_jobs"),
    ("LLMJudge", "thinking_budget"), ("AdaptiveConfig", "global_identified_rank_corr_min"),
    ("BTLConfig", "theta_corr_min"), ("BTLConfig", "rank_spearman_min"),
}  # fmt: skip
"""Numbers that may be negative."""

PASSED_ON = {
    "adaptive_rank": "concurrency max_comparisons max_cost max_minutes retries retry_wait timeout",
    "LLMJudge": "temperature top_p top_k max_tokens num_ctx seed thinking_budget",
    "submit_openai_pairs_live": "workers concurrency retries retry_wait max_cost temperature top_p max_tokens",
    "openai_compare_pair_live": "retries temperature",
    "llm_submit_pairs_batch": "interval_seconds timeout_seconds batch_size n_segments temperature",
    "run_openai_batch_pipeline": "batch_size n_segments",
    "ModelVariant": "temperature max_tokens timeout requests_per_minute",
}
"""Numbers that a function takes among further keyword arguments, and hands on."""

# What each function needs besides


TEXTS = [{"ID": name, "text": f"A text about {name}."} for name in ("rain", "snow", "wind")]
RESULT = [
    {"ID1": one, "ID2": other, "better_id": better}
    for one, other, better in map(str.split, ("rain snow rain", "snow rain rain", "snow wind wind", "wind rain wind"))
]
PAIR = [{"ID1": "rain", "text1": "Rain.", "ID2": "snow", "text2": "Snow falls."}]


@pytest.fixture(scope="module")
def server():
    with ProviderSimulator() as running:
        yield running


@pytest.fixture(autouse=True)
def somewhere(server, clean_environment, tmp_path, monkeypatch) -> None:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


def longer(A: Any, B: Any) -> dict[str, Any]:
    return {"is_valid": True, "Y": int(len(A["text"]) > len(B["text"]))}


@cache
def pairs() -> Any:
    return ps.make_pairs(TEXTS)


def compared() -> ps.PairwiseRunResult:
    """Forty cases, half of them won by either variant, with answers of different lengths."""
    cases = [
        ps.PairwiseCase(f"t{n}", "k", "ab"[n % 2], "", {}, ps.Outcome.WIN, length_a=90 + n, length_b=130 - n)
        for n in range(40)
    ]
    return ps.PairwiseRunResult("run", tuple(cases), ("k",))


@cache
def study() -> Any:
    return ps.simulate(4, selector="random", seeds=1, per_item=2, progress=False)


def state() -> Any:
    return ps.adaptive_rank_start(TEXTS, seed=1)


def judge() -> Any:
    trait, template = ps.trait_description("overall_quality"), ps.get_prompt_template()
    return {"provider": "openai", "model": "gpt-4.1", "trait": trait, "template": template, "template_id": "default"}


def comparing() -> dict[str, Any]:
    return {"comparators": [ps.pairwise_judge(longer, criterion="says more", key="longer")], "progress": False}


def answered() -> dict[str, Any]:
    sides = {"variant_a": lambda task: "Yes.", "variant_b": lambda task: f"About {task.input}: a lot."}
    return {"suite": ps.Suite.from_list(["rain", "snow"]), **sides, **comparing()}


def ranked() -> dict[str, Any]:
    variants = {str(n): partial(lambda n, task: task.input * n, n) for n in (1, 2, 3)}
    return {"suite": ps.Suite.from_list(["rain", "snow"]), "variants": variants, **comparing()}


def recorded() -> dict[str, Any]:
    sources = {"a": {"t1": "Rome?"}, "b": {"t1": "Rome."}}
    return {f"source_{side}": ps.InMemoryTraceSource(outputs) for side, outputs in sources.items()}


def on_desk(method: str, *args: Any, **options: Any) -> Any:
    async def work() -> Any:
        desk = ps.BatchManager(None, folder=".")
        try:
            return await getattr(desk, method)(*args, **options)
        finally:
            await desk.aclose()

    return asyncio.run(work())


def resumed(**options: Any) -> Any:
    return ps.llm_resume_multi_batches(ps.llm_submit_pairs_multi_batch(PAIR, "gpt-4.1", output_dir="jobs"), **options)


def fitted(**options: Any) -> Any:
    """With the model and the engine that the option belongs to."""
    engine = {"engine": "map"} if "prior_sd" in options else {}
    return ps.fit(RESULT, "elo" if "runs" in options else "bt", **engine, **options)


def planned(**options: Any) -> Any:
    """With the form of answers that the option belongs to."""
    answer = {"answer": "probability"} if "error" in options else {}
    return ps.plan(**answer, **options)


def calibrated(**options: Any) -> Any:
    said = [row | {"probability": 0.7} for row in RESULT * 4]
    return ps.check_calibration(said, RESULT, **options)


def labelled(**options: Any) -> Any:
    """Asks nobody: standard input is empty."""
    pairs().write_csv("pairs.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO())
        return ps.label("pairs.csv", run="labels.db", terminal=True, **options)


OTHERWISE: dict[str, Callable[..., Any]] = {
    "AdaptiveConfig": lambda **o: dataclasses.replace(ps.AdaptiveConfig.for_items(40), **o),
    "AdaptiveConfig.for_items": ps.AdaptiveConfig.for_items,
    "BTLConfig": lambda **o: dataclasses.replace(ps.BTLConfig.for_items(40), **o),
    "BTLConfig.for_items": ps.BTLConfig.for_items,
    "fit": fitted,
    "BatchManager.look": lambda **o: on_desk("look", **o),
    "BatchManager.wait": lambda **o: on_desk("wait", **o),
    "BatchManager.submit": lambda **o: on_desk("submit", PAIR, ps.LLMJudge(**judge()), **o),
    "PairwiseRunResult.controlled": lambda **o: compared().controlled("k", **o),
    "PairwiseRunResult.diff": lambda **o: compared().diff(compared(), **o),
    "PairwiseRunResult.length_controlled": lambda **o: compared().length_controlled("k", **o),
    "SimulationStudy.reach": lambda **o: study().reach(**o),
    "Verdict": lambda **o: ps.Verdict.win(1, **o),
    "Calibration.agreeing": lambda **o: calibrated().agreeing(**o),
    "check_calibration": calibrated,
    "label": labelled,
    "plan": planned,
    "llm_resume_multi_batches": resumed,
}
"""How to call what is not simply a function of the package."""

SOON = {"interval_seconds": 0.01}
BESIDES: dict[str, Callable[[], dict[str, Any]]] = {
    "AdaptiveConfig": dict,
    "AdaptiveConfig.for_items": lambda: {"n_items": 40},
    "BTLConfig": dict,
    "BTLConfig.for_items": lambda: {"n_items": 40},
    "BatchManager": lambda: {"run": None, "folder": "."},
    "BatchManager.look": dict,
    "BatchManager.wait": dict,
    "BatchManager.submit": dict,
    "JudgePair": lambda: {"first": TEXTS[0], "second": TEXTS[1]},
    "LLMJudge": judge,
    "ModelVariant": lambda: {"model": "openai:gpt-4.1"},
    "PairwiseOutcome": lambda: {"winner": "a"},
    "SimulatedJudge": lambda: {"abilities": "truth"},
    "PairwiseRunResult.controlled": dict,
    "PairwiseRunResult.diff": dict,
    "PairwiseRunResult.length_controlled": dict,
    "SimulationStudy.reach": dict,
    "Calibration.agreeing": lambda: {"stated": 0.6},
    "check_calibration": dict,
    "Trace": lambda: {"output": "Yes."},
    "Verdict": dict,
    "ab": lambda: {
        "a": {"t1": "Rome?"}, "b": {"t1": "In Rome."}, "criterion": "says more", "judge": longer, "progress": False
    },
    "bias": lambda: {"forward": RESULT[:1], "reverse": RESULT[1:2]},
    "gate": lambda: {
        "a": {"t1": "Rome?"}, "b": {"t1": "In Rome."}, "criterion": "says more", "judge": longer, "progress": False
    },
    "compare": lambda: {"text1": "It rains.", "text2": "It rains, so we stay."},
    "cost": lambda: {"pairs": PAIR, "judge": "openai:gpt-4.1", "offline": True, "progress": False},
    "judge": lambda: {"pairs": pairs(), "progress": False},
    "label": dict,
    "adaptive_item_log": lambda: {"state": state()},
    "adaptive_rank": lambda: {"data": TEXTS, "judge": longer, "progress": "none", "n_steps": 1},
    "adaptive_rank_run_live": lambda: {"state": state(), "judge": longer, "progress": "none"},
    "adaptive_rank_start": lambda: {"items": TEXTS},
    "agreement": lambda: {"labels": {"ann": ["a", "b", "a"], "bob": ["a", "b", "b"]}},
    "anthropic_poll_batch_until_complete": lambda: {"batch_id": "msgbatch_1", **SOON},
    "build_btl_results_data": lambda: {"results": RESULT},
    "build_gemini_batch_requests": lambda: {"pairs": PAIR, "model": "gemini-2.5-flash"},
    "build_openai_batch_requests": lambda: {"pairs": PAIR, "model": "gpt-4.1"},
    "check_judge": lambda: {"data": TEXTS, "judge": "lexical", "progress": False},
    "check_positional_bias": lambda: {"consistency": ps.compute_reverse_consistency(RESULT[:1], RESULT[1:2])},
    "estimate_llm_pairs_cost": lambda: {"pairs": PAIR, "model": "gpt-4.1", "offline": True},
    "evaluate_pairwise": lambda: recorded() | comparing(),
    "evaluate_pairwise_async": lambda: recorded() | comparing(),
    "export_pairwise_cases": lambda: recorded() | {"criteria": "better", "out": "cases.jsonl"},
    "export_pairwise_cases_async": lambda: recorded() | {"criteria": "better", "out": "cases.jsonl"},
    "fit": dict,
    "fit_bayes_btl_mcmc": lambda: {"results": RESULT, "mcmc": {"chains": 2}, "seed": 1},
    "fit_bt_model": lambda: {"bt_data": RESULT},
    "fit_elo_model": lambda: {"elo_data": RESULT},
    "gemini_poll_batch_until_complete": lambda: {"batch_name": "batches/1", **SOON},
    "human_pairwise": lambda: {"key": "person", "ask": lambda task, one, other: "tie"},
    "llm_resume_multi_batches": lambda: {"per_job_delay": 0, **SOON},
    "llm_submit_pairs_batch": lambda: {"pairs": PAIR, "backend": "openai", "model": "gpt-4.1", **SOON},
    "llm_submit_pairs_multi_batch": lambda: {"pairs": PAIR, "model": "gpt-4.1", "output_dir": "jobs"},
    "openai_compare_pair_live": lambda: {"ID1": "a", "text1": "A", "ID2": "b", "text2": "B", "model": "gpt-4.1"},
    "openai_poll_batch_until_complete": lambda: {"batch_id": "batch_1", **SOON},
    "pairwise_judge": lambda: {"config": longer, "criterion": "says more", "key": "longer"},
    "plan": lambda: {"items": 4, "reliability": 0.3, "seeds": 1, "progress": False},
    "rank": lambda: {"data": TEXTS, "judge": longer, "progress": "none", "steps": 1},
    "randomize_pair_order": lambda: {"pairs": PAIR},
    "run_anthropic_batch_pipeline": lambda: {"pairs": PAIR, "model": "claude-sonnet-4-5", **SOON},
    "run_gemini_batch_pipeline": lambda: {"pairs": PAIR, "model": "gemini-2.5-flash", **SOON},
    "run_openai_batch_pipeline": lambda: {"pairs": PAIR, "model": "gpt-4.1", **SOON},
    "run_pairwise": answered,
    "run_pairwise_async": answered,
    "run_variants": ranked,
    "run_variants_async": ranked,
    "sample_pairs": lambda: {"pairs": PAIR},
    "sample_reverse_pairs": lambda: {"pairs": PAIR, "reverse_pct": 1},
    "simulate": lambda: {"items": 4, "selector": "random", "seeds": 1, "per_item": 2, "progress": False},
    "submit_llm_pairs": lambda: {"pairs": PAIR, "model": "gpt-4.1", "progress": False},
    "submit_openai_pairs_live": lambda: {"pairs": PAIR, "model": "gpt-4.1", "progress": False},
    "submit_pairs": lambda: {"pairs": pairs(), "judge": "lexical", "progress": False},
    "submit_pairs_async": lambda: {"pairs": pairs(), "judge": "lexical", "progress": False},
    "summarize_items": lambda: {"state": {"item_log_list": [[{"refit_id": 1, "ID": "a", "rank_mean": 1.0}]]}},
    "summarize_refits": lambda: {"state": {"round_log": {"refit_id": [1]}}},
    "synthetic_essays": lambda: {"n": 2},
    "template_study": lambda: {
        "data": ps.make_pairs(ps.synthetic_essays(3)), "templates": ["concise"], "progress": False,
        "judge": lambda template: ps.SimulatedJudge("theta_true"),
    },
}  # fmt: skip
"""What each function needs besides the number in question."""


# Which numbers there are


def is_number(annotation: Any) -> bool:
    """Whether a parameter takes numbers: one, several, or one instead of something else."""
    parts = set(re.sub(r"Literal\[[^]]*\]", "None", str(annotation)).split(" | ")) - {"None", "str"}
    return bool(parts) and parts <= {"int", "float", "Sequence[int]", "Sequence[float]"}


def public() -> dict[str, Any]:
    """Every public function, class, and public method of a class."""
    found: dict[str, Any] = {}
    for name in ps.__all__:
        value = getattr(ps, name)
        if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
            continue
        found[name] = value
        if inspect.isclass(value):
            methods = inspect.getmembers(value, lambda one: inspect.isfunction(one) or inspect.ismethod(one))
            found |= {f"{name}.{key}": method for key, method in methods if key[0] != "_"}
    return found


def numbers() -> list[tuple[str, str, bool]]:
    """Each number that may be given: the function, the parameter, and whether it takes texts as well."""
    annotated = [
        (name, one.name, "str" in str(one.annotation).split(" | "))
        for name, function in public().items()
        if name not in RESULTS and name not in COUNTED
        for one in inspect.signature(function).parameters.values()
        if is_number(one.annotation)
    ]
    return annotated + [(name, one, False) for name, more in PASSED_ON.items() for one in more.split()]


NUMBERS = numbers()


def test_every_function_that_takes_numbers_has_its_call() -> None:
    assert {name for name, _, _ in NUMBERS} == set(BESIDES)
    assert len(NUMBERS) > 250
    known = {(name, parameter) for name, parameter, _ in NUMBERS}
    assert known >= NEGATIVE
    assert set(RESULTS) <= set(ps.__all__)


def call(name: str, **options: Any) -> Any:
    function = OTHERWISE.get(name) or getattr(ps, name)
    made = function(**(BESIDES[name]() | options))
    return asyncio.run(made) if inspect.iscoroutine(made) else made


@pytest.mark.parametrize("name", [name for name in BESIDES if not name.endswith("until_complete")])
def test_the_other_arguments_are_valid(name: str) -> None:
    call(name)


FORM = r"(?:^|[ :]){}(?: of an? \w+| as a position)? must be a (?:(?:whole )?number|list)\b.*, not "


@pytest.mark.parametrize("function", dict.fromkeys(name for name, _, _ in NUMBERS))
def test_what_is_no_such_number_is_refused(function: str) -> None:
    wrong = [f"{parameter}={line}" for name, parameter, texts in NUMBERS if name == function
             for line in accepted_or_unclear(name, parameter, texts)]  # fmt: skip
    assert wrong == []


def accepted_or_unclear(name: str, parameter: str, texts: bool) -> list[str]:
    """What a function takes for a number, or refuses with another sentence."""
    several = "Sequence" in str(inspect.signature(public()[name]).parameters.get(parameter, ""))
    said: list[str] = []
    for value in WRONG:
        if (value == -1 and (name, parameter) in NEGATIVE) or (texts and isinstance(value, str)):
            continue
        for given in (value, [value]) if several else (value,):
            try:
                call(name, **{parameter: given})
            except InputError as error:
                if not re.search(FORM.format(parameter) + re.escape(repr(value)) + "$", str(error)):
                    said.append(f"{given!r}: {error}")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the wrong one
                said.append(f"{given!r}: {type(error).__name__}: {error}")
            else:
                said.append(f"{given!r} is accepted")
    return said


# Flags, files and choices


FLAG, TEXT, TEXTS_OF, FILE, CHOICE = "True or False", "a text, not ", "a text", "a file or ", "'"
_WORDS = {"bool": FLAG, "str": TEXT, "str | Sequence[str]": TEXTS_OF, "str | os.PathLike[str]": FILE}
WORDS = _WORDS | {f"{annotation} | None": words for annotation, words in _WORDS.items()}
"""What an annotation means, by the beginning of the sentence that refuses something else."""

NEITHER = {
    FLAG: (float("nan"), -1, 1, "3", "", "yes", [True], None),
    TEXT: (float("nan"), -1, True, ["x"], b"x", None),
    TEXTS_OF: (float("nan"), -1, True, [3], b"x", None),
    FILE: (float("nan"), -1, True, "", "  ", "a\0b", ["x"], b"x", None),
    CHOICE: (float("nan"), -1, True, "3", "", ["x"], None),
}

CALLED_OFTEN = {
    "LLMJudge.read", "LLMJudge.known_of", "LLMJudge.request_cost", "LLMJudge.cache_key", "JudgePair", "Verdict",
    "Verdict.win", "ModelVariant.answer",
}  # fmt: skip
"""Made or called for every answer, by the project or by a judge, so that only their numbers are checked."""

OF_CALLS = {"LLMJudge", "ModelVariant"}
"""Classes whose texts are options that a user gives, as those of functions are."""

NAMED_OTHERWISE = {("open_run", "where")}
"""A file that is called a run in its sentence, see `tests/store/test_runfile.py`."""


ELSEWHERE: dict[str, Callable[..., Any]] = {
    "AdaptiveConfig": lambda **o: call("AdaptiveConfig", **o),
    "BTLConfig": lambda **o: call("BTLConfig", **o),
}
"""Classes and functions that check their flags themselves, with what they need besides."""


@cache
def with_batches() -> dict[str, Any]:
    """Every public function and method, and those of the namespace of batches."""
    own = {f"batch.{name}": getattr(ps.batch, name) for name in ("submit", "status", "collect", "resume", "cancel")}
    return public() | own


def options_like(words: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Each flag, file or choice that may be given: the function, the parameter, and its annotation."""
    return [
        (name, one.name, str(one.annotation))
        for name, function in with_batches().items()
        if name not in {*RESULTS, *COUNTED, *CALLED_OFTEN}
        for one in inspect.signature(function).parameters.values()
        if (kind_of(str(one.annotation)) in words)
        and (name, one.name) not in NAMED_OTHERWISE
        and not (kind_of(str(one.annotation)) in (TEXT, TEXTS_OF) and name not in OF_CALLS and of_class(name))
    ]


def of_class(name: str) -> bool:
    """Whether it is a class or a method of one."""
    return inspect.isclass(getattr(ps, name.partition(".")[0]))


def kind_of(annotation: str) -> str | None:
    return CHOICE if re.fullmatch(r"Literal\['[^]]*\]( \| None)?", annotation) else WORDS.get(annotation)


def barely_called(name: str, parameter: str, value: Any) -> Any:
    """Call a function with nothing but this value, which is checked before anything else is."""
    function = with_batches()[name]
    needed = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    is_method = needed[:1] == ["self"]
    others = {one: object() for one in needed[is_method:] if one != parameter}
    made = function(*[None] * is_method, **{parameter: value}, **others)
    return asyncio.run(made) if inspect.iscoroutine(made) else made


def refused_by_another_sentence(name: str, parameter: str, annotation: str, use: Callable[..., Any]) -> list[str]:
    """What a function takes although its annotation says otherwise, or refuses in other words."""
    said, words = [], kind_of(annotation)
    assert words is not None
    for value in NEITHER[words]:
        if value is None and annotation.endswith("None"):
            continue
        try:
            use(value)
        except InputError as error:
            if not re.search(rf"\b{parameter} must be {words}", str(error)):
                said.append(f"{name}({parameter}={value!r}): {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the wrong one
            said.append(f"{name}({parameter}={value!r}): {type(error).__name__}: {error}")
        else:
            said.append(f"{name}({parameter}={value!r}) is accepted")
    return said


def test_flags_texts_and_files_are_refused_alike_everywhere() -> None:
    found = options_like((FLAG, TEXT, TEXTS_OF, FILE))
    assert len(found) > 400
    said = []
    for name, parameter, annotation in found:
        use = partial(barely_called, name, parameter)
        if name in ELSEWHERE:
            use = lambda value, name=name, parameter=parameter: ELSEWHERE[name](**{parameter: value})  # noqa: E731
        said += refused_by_another_sentence(name, parameter, annotation, use)
    assert not said, "\n".join(said)


def test_choices_are_refused_alike_everywhere() -> None:
    said = []
    for name, parameter, annotation in options_like((CHOICE,)):
        use = lambda value, name=name, parameter=parameter: call(name, **{parameter: value})  # noqa: E731
        said += refused_by_another_sentence(name, parameter, annotation, use)
    assert not said, "\n".join(said)


def showing() -> list[str]:
    """Every function that can show its progress; one of each family that is made from a table."""
    family = re.compile(r"submit_(?!openai)\w+_pairs_live")
    takes = [name for name, one in public().items() if "progress" in inspect.signature(one).parameters]
    return [name for name in takes if not family.fullmatch(name)]


@pytest.mark.slow
def test_progress_means_the_same_everywhere() -> None:
    """True, False and words are taken by every function, and the same words are refused by one sentence."""
    said = []
    for name in showing():
        if name not in BESIDES:
            said.append(f"{name} has no call here")
            continue
        for given in (False, "none"):
            try:
                call(name, progress=given)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the wrong one
                said.append(f"{name} with {given!r}: {type(error).__name__}: {error}")
        for given in ("loud", 1, None):
            try:
                call(name, progress=given)
            except InputError as error:
                if not re.fullmatch(f"progress must be 'all', .* or 'none', not {given!r}", str(error)):
                    said.append(f"{name} with {given!r}: {error}")
            else:
                said.append(f"{name} takes {given!r}")
    assert not said, "\n".join(said)
