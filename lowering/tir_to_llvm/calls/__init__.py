"""Calls of prim_funcs, C functions and packed functions, and the errors that they raise."""
