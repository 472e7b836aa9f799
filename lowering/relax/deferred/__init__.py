"""Deferred compilation: ops on values of unknown rank or dtype are compiled when the values are known."""
