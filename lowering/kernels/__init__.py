"""Generators of CPU kernels, chosen by the structure of a PrimFunc, never by its name: its loops and vector code."""
