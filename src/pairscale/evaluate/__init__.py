"""Is B better than A? Variants over a suite of tasks, judges and people as comparators, and figures to trust."""
