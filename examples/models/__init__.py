"""Models built with `BlockBuilder`, used by examples, benchmarks and tests."""
