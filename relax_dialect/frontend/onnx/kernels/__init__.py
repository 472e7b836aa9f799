"""Kernels, as tensor expressions, of operators that are not put together from others."""
