"""Legality checks of schedule primitives: accesses, dependences between iterations, program order, reductions."""
