"""Generators of kernels: the loops and vector code of a PrimFunc, for a machine."""
