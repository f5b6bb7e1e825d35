#!/bin/sh
# Answers of the working copy against the baseline. Exit codes: 0 passed, 3 failed, 4 untested, 1 could not run, 2 wrong usage.
set -u
pairscale gate pr.jsonl --baseline baseline.jsonl --criterion "more helpful" --judge "${JUDGE:-openai:gpt-5.1}" \
    --margin 0.1 --run gate.db --summary gate.md
code=$?
case $code in
    0) echo "passed: the answers are not shown to be worse" ;;
    3) echo "failed: see gate.md" ;;
    4) echo "untested: see gate.md" ;;
    *) echo "the gate could not run" ;;
esac
exit $code
