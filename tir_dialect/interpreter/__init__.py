"""Reference semantics of the tir dialect on NumPy arrays."""
