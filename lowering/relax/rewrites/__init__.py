"""Rewrites of operators into equivalent, cheaper ones."""
