"""Reductions along columns and rows, pooling windows, argmax."""
