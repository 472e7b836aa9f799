"""Packed products: panels of rows and columns, and the blocks that the caches hold."""
