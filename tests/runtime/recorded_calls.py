"""What recorded runs share: texts, judges, calls of the package with all their options, and tables of what came of it.

Options whose defaults may change are always given: ``concurrency``, ``retries``, prices and the answer cache.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

import pairscale as ps
from pairscale.store.runfile import open_run
from pairscale.testing import Batches, Behaviour, Faults, ProviderSimulator
from tests.runtime.recorded_tables import Tables

MODELS = {
    "openai": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "together": "deepseek-ai/DeepSeek-V3",
    "ollama": "llama3.2",
}
PRICE = {"input": 2.0, "output": 8.0, "batch": 0.5}

# Texts and pairs


def texts(n: int, seed: int = 1) -> list[dict[str, Any]]:
    """Texts of different lengths, each with a true ability."""
    draw = random.Random(seed)
    return [
        {"ID": f"s{k:02d}", "text": f"Text {k}. " + "More words. " * draw.randrange(1, 12), "theta": draw.gauss(0, 1.5)}
        for k in range(1, n + 1)
    ]


def pairs_of(samples: Sequence[Mapping[str, Any]], seed: int = 1) -> pl.DataFrame:
    """All pairs, in an order and with sides that depend on the seed."""
    made = ps.randomize_pair_order(ps.make_pairs(list(samples)), seed=seed)
    return made[random.Random(seed).sample(range(made.height), made.height)]


# Judges


def simulated(abilities: str = "theta", **settings: Any) -> Any:
    return ps.SimulatedJudge(abilities, **settings)


@contextmanager
def provider(*, faults: Mapping[str, Any] | None = None, batches: Mapping[str, Any] | None = None, **behaviour: Any):
    """A simulated provider; its judgements depend on the lengths of the texts, the seed and the prompt."""
    judged = Behaviour(**{"quality": lambda text: len(text) / 40, **behaviour})
    with ProviderSimulator(judged, Faults(**(faults or {})), batches=Batches(**(batches or {}))) as server:
        yield server


def connection(server: ProviderSimulator, name: str) -> dict[str, Any]:
    """The settings of a model that is asked at the simulated provider."""
    path = {"openai": "/v1", "together": "/together/v1"}.get(name, "")
    return {"api_key": "simulated-key", "base_url": server.url + path, "price": PRICE, "cache": False}


def model_judge(server: ProviderSimulator, name: str = "openai", **settings: Any) -> Any:
    question = {key: settings.pop(key) for key in ("trait", "template") if key in settings}
    model = settings.pop("model", MODELS[name])
    return ps.make_judge(f"{name}:{model}", judge_args=connection(server, name) | settings, **question)


# Given pairs


def judge_pairs(pairs: Any, judge: Any, *, run: Path | None = None, concurrency: int, **options: Any) -> Any:
    waits = {"retries": 3, "retry_wait": 0.0}
    return ps.submit_pairs(pairs, judge, run=run, concurrency=concurrency, progress=False, **waits | options)


def ask_model(pairs: Any, server: ProviderSimulator, *, backend: str, **options: Any) -> Any:
    """The verb for models by their names."""
    known = connection(server, backend) | {"concurrency": 1, "retries": 3, "retry_wait": 0.0, "progress": False}
    return ps.submit_llm_pairs(pairs, MODELS[backend], backend=backend, **known | options)


def ask_model_once(one: Mapping[str, str], server: ProviderSimulator, *, backend: str, **options: Any) -> pl.DataFrame:
    sides = (one["ID1"], one["text1"], one["ID2"], one["text2"])
    return ps.llm_compare_pair(*sides, MODELS[backend], backend=backend, **connection(server, backend) | options)


def answer_tables(done: Any, prefix: str = "") -> Tables:
    """What judging given pairs returned; all tables are in the order of the pairs."""
    failed = ("ID1", "ID2", "error_code", "attempt", "outcome")
    return {
        f"{prefix}results": done.results,
        f"{prefix}failed_pairs": done.failed_pairs.select(*failed),
        f"{prefix}failed_attempts": done.failed_attempts.select(*failed),
        f"{prefix}facts": {"asked": done.asked, "cached": done.cached, "saved": done.saved},
    }


# The run file


_STORED = (
    "custom_id", "judge_id", "trait", "template_id", "condition_id", "model", "outcome", "better_id", "probability",
    "content", "total_tokens", "cost",
)  # fmt: skip
"""The columns of stored comparisons; the others are those of the results, which are recorded, too."""


def file_tables(run: Path, *, ordered: bool, prefix: str = "") -> Tables:
    """What the run file holds; ``ordered`` when it was written in a certain order."""
    with open_run(run) as store:
        results, conditions = store.results().select(*_STORED), store.conditions()
        failed = store.failed_attempts().drop("pair_id")
        attempts = pl.concat([store.usage(name) for name in conditions["condition_id"]])
        counts, spent = store.counts(), store.spent()
    later = attempts.filter(pl.col("attempt") > 1).select("custom_id", "attempt", "outcome")
    if not ordered:
        results = results.sort("judge_id", "template_id", "custom_id", "condition_id")
        failed, later = failed.sort("custom_id", "condition_id", "attempt"), later.sort(pl.all())
    return {
        f"{prefix}file_results": results,
        f"{prefix}file_failed": failed,
        f"{prefix}file_later_attempts": later,
        f"{prefix}file_conditions": conditions.sort("judge_id", "model", "template_id", "trait"),
        f"{prefix}file_facts": counts | {"spent": spent},
    }


# Adaptive ranking


def rank(data: Any, judge: Any, *, run: Path | None = None, concurrency: int = 1, **options: Any) -> Any:
    usual = {"n_steps": None, "fit_fn": "laplace", "progress": "none", "retries": 3, "retry_wait": 0.0}
    return ps.adaptive_rank(data, judge=judge, run=run, concurrency=concurrency, **usual | options)


def rank_steps(state: Any, judge: Any, **options: Any) -> Any:
    usual = {"fit_fn": "laplace", "progress": "none", "retries": 3, "retry_wait": 0.0, "concurrency": 1}
    return ps.adaptive_rank_run_live(state, judge, **usual | options)


def history(state: Any) -> list[tuple[Any, ...]]:
    return ps.adaptive_results_history(state, committed_only=False).rows()


def log_tables(state: Any) -> Tables:
    """The logs of an adaptive run."""
    return {
        "step_log": state.step_log,
        "refits": ps.summarize_refits(state, include_optional=False),
        "summary": ps.summarize_adaptive(state),
    }


def adaptive_tables(done: Any, run: Path, selector: Any = None) -> Tables:
    """The logs of an adaptive run as its file has them, the ranking, and what an audit says."""
    loaded = ps.adaptive_rank_resume(run=run, selector=selector)
    audit = ps.audit(run, selector=selector)
    with open_run(run) as store:
        answers = store.results().select("custom_id", "ID1", "ID2", "better_id", "outcome", "probability", "cost")
        counts, spent = store.counts(), store.spent()
    return log_tables(loaded) | {
        "items": done.items,
        "summary": done.summary,
        "file_results": answers,
        "facts": {
            "audit_passed": audit.passed,
            "audited_steps": audit.steps,
            "audited_refits": audit.refits,
            "loaded_as_returned": history(loaded) == history(done.state),
            "spent": spent,
            **counts,
        },
    }


def sampler_probe() -> str:
    """Figures of the sampler on fixed data, to their last digits: means, and the sensitive R-hat."""
    draw = random.Random(1)
    rows = [dict(zip(("winner", "loser"), draw.sample("abcdefgh", 2), strict=True)) for _ in range(40)]
    fit = ps.fit_bayes_btl_mcmc(rows, model_variant="btl", seed=1)
    means = [float(mean) for mean in ps.summarize_items(fit).sort("ID")["theta_mean"]]
    return repr([*means, float(fit.round_log["max_rhat"][0])])


# Studies of judges


def check_tables(done: Any, prefix: str = "") -> Tables:
    names = ("judge_id", "n_items", "n_pairs", "n_asked", "n_valid", "prop_consistent", "cost_each", "tokens_each")
    tables: Tables = {f"{prefix}facts": {name: getattr(done, name) for name in names}}
    tables[f"{prefix}failures"] = done.failures.select("error_code", "n").sort("error_code")
    if done.bias is not None:
        tables[f"{prefix}bias"] = done.bias.summary.select("n_pairs", "prop_consistent", "prop_pos1", "p_paired")
    return tables


def estimate(pairs: Any, server: ProviderSimulator, *, name: str = "openai", **options: Any) -> Any:
    known = connection(server, name) | {"concurrency": 1, "retries": 3, "retry_wait": 0.0, "progress": False}
    known |= {"cost_per_million_input": 2.0, "cost_per_million_output": 8.0}
    return ps.estimate_llm_pairs_cost(pairs, MODELS[name], backend=name, **known | options)


def estimate_tables(done: Any, prefix: str = "") -> Tables:
    tables: Tables = {f"{prefix}summary": done.summary, f"{prefix}calibration": dict(done.calibration)}
    tables[f"{prefix}test_pairs"] = done.test_pairs.select("ID1", "ID2")
    if done.pilot is not None:
        tables[f"{prefix}pilot"] = done.pilot
    if done.remaining_pairs is not None:
        tables[f"{prefix}remaining"] = done.remaining_pairs.select("ID1", "ID2")
    return tables


# Batches

_PIPELINES = {"openai": "run_openai_batch_pipeline", "anthropic": "run_anthropic_batch_pipeline"}
_PIPELINES |= {"gemini": "run_gemini_batch_pipeline"}
_QUICK = {"interval_seconds": 0.01, "timeout_seconds": 600}


def batch_pipeline(pairs: Any, server: ProviderSimulator, name: str, **options: Any) -> Any:
    """A provider's own pipeline."""
    known = connection(server, name) | _QUICK | {"verbose": False}
    return getattr(ps, _PIPELINES[name])(pairs, MODELS[name], **known | options)


def batch_submit(pairs: Any, server: ProviderSimulator, name: str, **options: Any) -> Any:
    return ps.llm_submit_pairs_batch(pairs, name, MODELS[name], **connection(server, name) | _QUICK | options)


def batches_submit(pairs: Any, server: ProviderSimulator, name: str, folder: Path, **options: Any) -> Any:
    known = connection(server, name) | options
    return ps.llm_submit_pairs_multi_batch(pairs, MODELS[name], backend=name, output_dir=folder, **known)


def batches_resume(**options: Any) -> Any:
    quick = {"interval_seconds": 0.01, "per_job_delay": 0.0, "api_key": "simulated-key"}
    return ps.llm_resume_multi_batches(**quick | options)


def batch_tables(done: Any, prefix: str = "") -> Tables:
    failed = done.failed_attempts.sort("ID1", "ID2", "attempt").select("ID1", "ID2", "error_code", "attempt", "outcome")
    facts = {"backend": done.backend, "batch_ids": list(done.batch_ids)}
    return {
        f"{prefix}results": done.results.sort("custom_id"),
        f"{prefix}failed_attempts": failed,
        f"{prefix}facts": facts,
    }
