"""Speed and scale, as tables on the screen and JSON in build/benchmarks. Never part of the tests."""
