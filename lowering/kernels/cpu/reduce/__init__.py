"""Reductions along columns, rows and windows, and the positions of extremes."""
