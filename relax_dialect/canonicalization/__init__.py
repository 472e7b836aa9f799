"""Canonicalization patterns by op family; the ops name theirs, and nothing is imported before they are asked for."""
