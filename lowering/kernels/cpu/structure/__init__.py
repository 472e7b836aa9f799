"""The structure of a kernel: its stages, accesses, contractions and reductions."""
