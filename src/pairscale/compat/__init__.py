"""The names of the R package's manual, with its arguments, defaults and columns; see docs/from-r.md."""
