"""Ops on values of unknown rank or dtype, which are compiled when the values are there."""
