"""Buffers in memory: allocation, addresses, loads and stores."""
