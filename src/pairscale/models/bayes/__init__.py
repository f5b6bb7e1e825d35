"""Models: comparisons in, scores out. They know nothing of judges."""
