"""Helpers that tests of all packages share."""
