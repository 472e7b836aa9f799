"""Products along contiguous rows of both operands: vectors are multiplied and their lanes summed."""
