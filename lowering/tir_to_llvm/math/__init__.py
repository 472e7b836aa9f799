"""Elementary functions as straight-line code that vectorises."""
