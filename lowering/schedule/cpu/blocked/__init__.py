"""Products whose channels lie in blocks, such as direct convolutions."""
