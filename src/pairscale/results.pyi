# Written by tools/r_stub.py; run: python tools/r_stub.py

from pairscale.adaptive.rank import AdaptiveResult as AdaptiveResult
from pairscale.adaptive.session import AdaptiveState as AdaptiveState
from pairscale.auditing import AuditReport as AuditReport
from pairscale.batch import BatchAnswers as BatchAnswers
from pairscale.checks.agreement import Agreement as Agreement
from pairscale.checks.calibration import Calibration as Calibration
from pairscale.checks.card import JudgeCard as JudgeCard
from pairscale.checks.position import PositionalBias as PositionalBias
from pairscale.checks.position import ReverseConsistency as ReverseConsistency
from pairscale.checks.templates import TemplateStudy as TemplateStudy
from pairscale.collect.cost import CostEstimate as CostEstimate
from pairscale.collect.live import SubmitResult as SubmitResult
from pairscale.contest.verb import Best as Best
from pairscale.core.samples import SamplesReport as SamplesReport
from pairscale.evaluate.gate import GateCriterion as GateCriterion
from pairscale.evaluate.gate import GateResult as GateResult
from pairscale.evaluate.inference.win_rate import WinRate as WinRate
from pairscale.evaluate.judge_check import JudgeCheck as JudgeCheck
from pairscale.evaluate.judge_measures import JudgeChange as JudgeChange
from pairscale.evaluate.labels import Labels as Labels
from pairscale.evaluate.manifest import ExportedCases as ExportedCases
from pairscale.evaluate.ranking import VariantsResult as VariantsResult
from pairscale.evaluate.result import PairwiseAgreement as PairwiseAgreement
from pairscale.evaluate.result import PairwiseCase as PairwiseCase
from pairscale.evaluate.result import PairwiseRunResult as PairwiseRunResult
from pairscale.evaluate.tasks import Unmatched as Unmatched
from pairscale.grading.verb import Grades as Grades
from pairscale.models.bayes.results import BayesFit as BayesFit
from pairscale.models.bradley_terry import BTFit as BTFit
from pairscale.models.elo import EloFit as EloFit
from pairscale.pairing import PairSummary as PairSummary
from pairscale.people.verbs import Labelling as Labelling
from pairscale.r.batches import BatchResult as BatchResult
from pairscale.r.multi import MultiBatch as MultiBatch
from pairscale.r.multi import MultiBatchResult as MultiBatchResult
from pairscale.r.position import RPositionalBias as RPositionalBias
from pairscale.reporting.verbs import RunStatus as RunStatus
from pairscale.simulation.planning import ComparisonPlan as ComparisonPlan
from pairscale.simulation.study import SimulationStudy as SimulationStudy
from pairscale.validity.verb import Trust as Trust
from pairscale.validity.verb import Validity as Validity

TABLE: str
