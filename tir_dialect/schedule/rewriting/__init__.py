"""Rewrites that schedule primitives share: loops, blocks, conditions, allocations and index values."""
