"""Checks on judges: does the position sway them, which template does so least, and do they agree with each other."""

from pairscale.checks._effect import PairedEffect
from pairscale.checks._orders import split_orders
from pairscale.checks.agreement import Agreement, agreement
from pairscale.checks.injection import check_injection
from pairscale.checks.judge import JudgeCheck, check_judge
from pairscale.checks.position import (
    PositionalBias,
    ReverseConsistency,
    check_positional_bias,
    compute_reverse_consistency,
)
from pairscale.checks.published import published_default_template, published_template_study
from pairscale.checks.templates import StudyCell, TemplateStudy, template_study

__all__ = [
    "Agreement",
    "JudgeCheck",
    "PairedEffect",
    "PositionalBias",
    "ReverseConsistency",
    "StudyCell",
    "TemplateStudy",
    "agreement",
    "check_injection",
    "check_judge",
    "check_positional_bias",
    "compute_reverse_consistency",
    "published_default_template",
    "published_template_study",
    "split_orders",
    "template_study",
]
