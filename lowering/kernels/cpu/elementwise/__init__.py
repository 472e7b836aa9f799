"""Maps that are more than a sweep: broadcasts, padding, interleaving, transposition."""
