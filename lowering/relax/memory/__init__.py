"""Explicit memory: where a tensor lives and how long, as plain data and as passes."""
