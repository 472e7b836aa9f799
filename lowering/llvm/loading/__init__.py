"""Machine code in memory: symbols, linking, loading."""
