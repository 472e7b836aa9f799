"""Loops and branches as basic blocks, vectorized loops as lanes, parallel loops as functions."""
