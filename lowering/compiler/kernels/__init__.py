"""Prim_funcs to machine code: lowered, deduplicated, compiled once."""
