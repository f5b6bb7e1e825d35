"""The names of the R package's manual and of AG2's evaluation, with their arguments and defaults."""
