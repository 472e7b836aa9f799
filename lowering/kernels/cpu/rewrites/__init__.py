"""Rewrites of a kernel before its code is generated."""
