"""Adaptive ranking: the engine that chooses the next pair, its refits, its runner, its logs and its audit."""
