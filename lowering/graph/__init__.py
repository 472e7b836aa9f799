"""Rewrites of relax programs that stay on the graph level."""
