"""Products of matrices: packed panels, a tile in registers, and what suits few rows or columns."""
