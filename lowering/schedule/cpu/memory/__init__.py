"""Kernels whose time goes into memory: maps, reductions, scans, changes of order."""
