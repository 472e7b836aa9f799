"""What there is to schedule: loops, blocks, conditions and extents, as questions that change nothing."""
