"""What can be said about a prim_func without running it."""
