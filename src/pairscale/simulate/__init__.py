"""Studies with judges of known truth: how good is a ranking after how many comparisons, and how many will be needed?"""

from pairscale.simulate.plan import ComparisonPlan, plan_comparisons
from pairscale.simulate.run import SimulatedRun, simulate_run
from pairscale.simulate.study import SimulationStudy, simulate_study

__all__ = [
    "ComparisonPlan",
    "SimulatedRun",
    "SimulationStudy",
    "plan_comparisons",
    "simulate_run",
    "simulate_study",
]
