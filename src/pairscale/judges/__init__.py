"""Judges: anything that can say which of two samples is better.

A judge is an object with a ``condition`` and an async ``compare`` (:class:`Judge`), or any callable, which
:class:`FunctionJudge` wraps. Judges know nothing of files and run files; :func:`pairscale.submit_pairs` does.
"""
