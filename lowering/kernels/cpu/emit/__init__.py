"""Emitting code: loops, bodies of stages, vectors, and the partitioning of work among threads."""
