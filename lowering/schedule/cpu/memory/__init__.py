"""Memory-bound kernels: maps, reductions, scans, transposes."""
