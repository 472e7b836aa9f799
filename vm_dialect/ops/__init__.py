"""Ops of the vm dialect, one file per family."""
