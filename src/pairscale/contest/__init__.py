"""The best of a set of candidates within a number of questions, and the order of the first few."""
