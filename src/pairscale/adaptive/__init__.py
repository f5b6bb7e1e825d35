"""Adaptive ranking: the engine that chooses the next pair, its refits, its runner, its logs and its audit."""

from pairscale.adaptive.audit import AuditReport, audit_run
from pairscale.adaptive.config import AdaptiveConfig, BTLConfig
from pairscale.adaptive.engine import Engine
from pairscale.adaptive.live import adaptive_rank_run_live
from pairscale.adaptive.rank import AdaptiveResult, adaptive_rank
from pairscale.adaptive.session import (
    adaptive_rank_resume,
    adaptive_rank_start,
    load_adaptive_session,
    save_adaptive_session,
    validate_session_dir,
)
from pairscale.adaptive.state import (
    AdaptiveState,
    adaptive_get_logs,
    adaptive_item_log,
    adaptive_results_history,
    adaptive_round_log,
    adaptive_step_log,
    summarize_adaptive,
)

__all__ = [
    "AdaptiveConfig",
    "AdaptiveResult",
    "AdaptiveState",
    "AuditReport",
    "BTLConfig",
    "Engine",
    "adaptive_get_logs",
    "adaptive_item_log",
    "adaptive_rank",
    "adaptive_rank_resume",
    "adaptive_rank_run_live",
    "adaptive_rank_start",
    "adaptive_results_history",
    "adaptive_round_log",
    "adaptive_step_log",
    "audit_run",
    "load_adaptive_session",
    "save_adaptive_session",
    "summarize_adaptive",
    "validate_session_dir",
]
