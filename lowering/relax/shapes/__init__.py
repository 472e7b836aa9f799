"""Shapes become checks and integers."""
