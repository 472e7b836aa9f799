"""Scans: cumulative sums and products, along rows and down columns."""
