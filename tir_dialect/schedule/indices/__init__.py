"""Index maps and their inverses: indices as sums of digits."""
