"""Products of several numbers per 32-bit word, by the dot-product instructions of the target."""
