"""Answers and traces as other tools write them: one module per family of formats, one reader for all of them."""
