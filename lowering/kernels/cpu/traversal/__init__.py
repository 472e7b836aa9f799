"""Vectorised loop nests: loops over axes, the vector loop, accumulators, shuffled loads."""
