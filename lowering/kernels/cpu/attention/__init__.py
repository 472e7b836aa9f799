"""Attention, a block of rows at a time."""
