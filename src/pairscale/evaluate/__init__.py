"""Is B better than A? Variants over a suite of tasks, judges and people as comparators, and figures to trust."""

from pairscale.evaluate._judge import pairwise_judge
from pairscale.evaluate.comparators import PairwiseComparator, PairwiseOutcome
from pairscale.evaluate.diff import CaseChange, RunDiff
from pairscale.evaluate.human import human_labels, human_pairwise
from pairscale.evaluate.labels import Labels, read_labels
from pairscale.evaluate.manifest import ExportedCases, export_pairwise_cases, export_pairwise_cases_async
from pairscale.evaluate.panel import pairwise_panel
from pairscale.evaluate.ranking import VariantsResult, run_variants, run_variants_async
from pairscale.evaluate.result import PairwiseAgreement, PairwiseCase, PairwiseRunResult, Unmatched
from pairscale.evaluate.run import (
    evaluate_pairwise,
    evaluate_pairwise_async,
    run_pairwise,
    run_pairwise_async,
)
from pairscale.evaluate.stored import RunTraceSource, read_suite
from pairscale.evaluate.suite import Suite, Task
from pairscale.evaluate.traces import (
    DirectoryTraceSource,
    InMemoryTraceSource,
    Trace,
    TraceRef,
    TraceSource,
    read_outputs,
    save_trace,
)
from pairscale.evaluate.variants import ModelVariant

__all__ = [
    "CaseChange",
    "DirectoryTraceSource",
    "ExportedCases",
    "InMemoryTraceSource",
    "Labels",
    "ModelVariant",
    "PairwiseAgreement",
    "PairwiseCase",
    "PairwiseComparator",
    "PairwiseOutcome",
    "PairwiseRunResult",
    "RunDiff",
    "RunTraceSource",
    "Suite",
    "Task",
    "Trace",
    "TraceRef",
    "TraceSource",
    "Unmatched",
    "VariantsResult",
    "evaluate_pairwise",
    "evaluate_pairwise_async",
    "export_pairwise_cases",
    "export_pairwise_cases_async",
    "human_labels",
    "human_pairwise",
    "pairwise_judge",
    "pairwise_panel",
    "read_labels",
    "read_outputs",
    "read_suite",
    "run_pairwise",
    "run_pairwise_async",
    "run_variants",
    "run_variants_async",
    "save_trace",
]
