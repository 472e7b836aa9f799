"""Products with one row: a vector times a matrix."""
