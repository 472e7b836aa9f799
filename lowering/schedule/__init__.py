"""Schedules: how the loops of kernels run on a machine."""
