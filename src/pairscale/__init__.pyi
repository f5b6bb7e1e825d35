# What `import *` and `dir()` give; tests/test_public.py pins it. All other public names are reached by attribute.
from . import batch as batch
from ._version import __version__ as __version__
from .adaptive.config import AdaptiveConfig as AdaptiveConfig
from .adaptive.config import BTLConfig as BTLConfig
from .adaptive.rank import rank as rank
from .auditing import audit as audit
from .checks.agreement import agreement as agreement
from .checks.templates import template_study as template_study
from .checks.verbs import bias as bias
from .collect.cost import cost as cost
from .collect.live import submit_pairs as submit_pairs
from .collect.verbs import compare as compare
from .collect.verbs import judge as judge
from .core import errors as errors
from .core.comparisons import Condition as Condition
from .core.comparisons import Outcome as Outcome
from .core.errors import PairscaleError as PairscaleError
from .core.prompts import get_prompt_template as get_prompt_template
from .core.prompts import list_prompt_templates as list_prompt_templates
from .core.prompts import register_prompt_template as register_prompt_template
from .core.samples import inspect_samples as inspect_samples
from .core.samples import read_samples as read_samples
from .core.traits import Trait as Trait
from .core.traits import list_traits as list_traits
from .core.traits import trait_description as trait_description
from .datasets import example_writing_results as example_writing_results
from .datasets import example_writing_samples as example_writing_samples
from .datasets import synthetic_essays as synthetic_essays
from .evaluate.ab import ab as ab
<<<<<<< HEAD
=======
from .evaluate.comparators import PairwiseComparator as PairwiseComparator
from .evaluate.comparators import PairwiseOutcome as PairwiseOutcome
from .evaluate.diff import CaseChange as CaseChange
from .evaluate.diff import RunDiff as RunDiff
from .evaluate.formats.reading import DirectoryTraceSource as DirectoryTraceSource
from .evaluate.formats.reading import read_outputs as read_outputs
from .evaluate.formats.reading import save_trace as save_trace
from .evaluate.gate import GateCriterion as GateCriterion
from .evaluate.gate import GateResult as GateResult
>>>>>>> w-evaluate
from .evaluate.gate import gate as gate
from .evaluate.judge_check import check_judge as check_judge
<<<<<<< HEAD
=======
from .evaluate.labels import Labels as Labels
from .evaluate.labels import read_labels as read_labels
from .evaluate.manifest import ExportedCases as ExportedCases
from .evaluate.manifest import export_pairwise_cases as export_pairwise_cases
from .evaluate.manifest import export_pairwise_cases_async as export_pairwise_cases_async
from .evaluate.ranking import VariantsResult as VariantsResult
from .evaluate.ranking import run_variants as run_variants
from .evaluate.ranking import run_variants_async as run_variants_async
from .evaluate.result import PairwiseAgreement as PairwiseAgreement
from .evaluate.result import PairwiseCase as PairwiseCase
from .evaluate.result import PairwiseRunResult as PairwiseRunResult
from .evaluate.store import RunTraceSource as RunTraceSource
from .evaluate.store import read_suite as read_suite
from .evaluate.tasks import InMemoryTraceSource as InMemoryTraceSource
from .evaluate.tasks import Suite as Suite
from .evaluate.tasks import Task as Task
from .evaluate.tasks import Trace as Trace
from .evaluate.tasks import TraceRef as TraceRef
from .evaluate.tasks import TraceSource as TraceSource
from .evaluate.tasks import Unmatched as Unmatched
from .evaluate.variants import ModelVariant as ModelVariant
>>>>>>> w-evaluate
from .judges.base import Judge as Judge
from .judges.base import JudgePair as JudgePair
from .judges.base import Verdict as Verdict
from .judges.build import make_judge as make_judge
from .judges.function import FunctionJudge as FunctionJudge
from .judges.human import HumanJudge as HumanJudge
from .judges.lexical import LexicalJudge as LexicalJudge
from .judges.llm import LLMJudge as LLMJudge
from .judges.replay import ReplayJudge as ReplayJudge
from .judges.simulated import SimulatedJudge as SimulatedJudge
from .models.fit_statistics import fit_statistics as fit_statistics
from .models.fitting import fit as fit
from .pairing import make_pairs as make_pairs
from .pairing import randomize_pair_order as randomize_pair_order
from .pairing import sample_pairs as sample_pairs
from .pairing import sample_reverse_pairs as sample_reverse_pairs
from .pairing import summarize_pairs as summarize_pairs
from .people.verbs import label as label
from .providers.catalog import register_provider as register_provider
from .reporting.exporting import export as export
from .reporting.verbs import report as report
from .reporting.verbs import status as status
from .simulation.planning import plan as plan
from .simulation.study import simulate as simulate
from .store.reading import read_results as read_results
from .store.runfile import open_run as open_run
from .store.transfer import import_run as import_run

def __getattr__(name: str): ...  # type: ignore[no-untyped-def]  # names of pairscale.r, .results and .ag2
