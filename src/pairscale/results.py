"""The classes of results, for annotations: ``from pairscale.results import SubmitResult``."""

from __future__ import annotations

from pairscale.r import names_from

TABLE = """
adaptive.rank: AdaptiveResult
adaptive.session: AdaptiveState
auditing: AuditReport
batch: BatchAnswers
checks.agreement: Agreement
checks.calibration: Calibration
checks.card: JudgeCard
checks.position: PositionalBias ReverseConsistency
checks.templates: TemplateStudy
collect.cost: CostEstimate
collect.live: SubmitResult
contest.verb: Best
core.samples: SamplesReport
evaluate.gate: GateCriterion GateResult
evaluate.inference.win_rate: WinRate
evaluate.judge_check: JudgeCheck
evaluate.judge_measures: JudgeChange
evaluate.labels: Labels
evaluate.manifest: ExportedCases
evaluate.ranking: VariantsResult
evaluate.result: PairwiseAgreement PairwiseCase PairwiseRunResult
evaluate.tasks: Unmatched
grading.verb: Grades
models.bayes.results: BayesFit
models.bradley_terry: BTFit
models.elo: EloFit
pairing: PairSummary
people.verbs: Labelling
r.batches: BatchResult
r.multi: MultiBatch MultiBatchResult
r.position: RPositionalBias
reporting.verbs: RunStatus
simulation.planning: ComparisonPlan
simulation.study: SimulationStudy
validity.verb: Trust Validity
"""
"""Where the classes live."""

__getattr__, __dir__, __all__ = names_from(TABLE)
