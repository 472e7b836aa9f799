"""Bring your own codegen: offloading parts of a program to libraries."""
