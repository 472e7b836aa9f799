"""One traversal of some axes: vectorised loops, accumulators, and loads that neighbours share."""
