"""Judges: anything that can say which of two samples is better.

A judge is an object with a ``condition`` and an async ``compare`` (:class:`Judge`), or any callable, which
:class:`FunctionJudge` wraps. Judges know nothing of files and run files; :func:`pairscale.submit_pairs` does.
"""

from pairscale.judges.base import Item, Judge, JudgePair, Verdict
from pairscale.judges.function import FunctionJudge
from pairscale.judges.human import HumanJudge
from pairscale.judges.lexical import LexicalJudge, lexical_features, lexical_score
from pairscale.judges.llm import LLMJudge
from pairscale.judges.replay import ReplayJudge
from pairscale.judges.resolve import make_judge
from pairscale.judges.simulated import SimulatedJudge

__all__ = [
    "FunctionJudge",
    "HumanJudge",
    "Item",
    "Judge",
    "JudgePair",
    "LLMJudge",
    "LexicalJudge",
    "ReplayJudge",
    "SimulatedJudge",
    "Verdict",
    "lexical_features",
    "lexical_score",
    "make_judge",
]
