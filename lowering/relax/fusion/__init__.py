"""Fusion: operators that one kernel can compute become one PrimFunc."""
