"""Names of logs and marks in a run file that say what it holds, for readers that need nothing else of its writers."""

from __future__ import annotations

STUDY_MARK = "template_study"
"""Under this name a run file keeps what it studies: ``template_id judge condition_id`` of every combination."""

COMMANDS = "commands"
"""The log of the commands that changed a run file, with their settings."""

ANSWERS = "ab_answers"
TASKS = "ab_tasks"
OUTCOMES = "ab_outcomes"
RUNS = "ab_runs"
RESULTS = "ab_results"
VARIANTS = "ab_variants"
"""The logs of an evaluation; see :mod:`pairscale.evaluate.store`."""
