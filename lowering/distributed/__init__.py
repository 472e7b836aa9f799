"""Sharded programs: from annotations to the program of each worker, and running it."""
