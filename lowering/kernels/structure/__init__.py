"""Analyses of a kernel: its stages, affine accesses, contractions, reductions, padding. No code is generated here."""
