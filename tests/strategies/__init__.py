"""Random programs and values for property tests."""
