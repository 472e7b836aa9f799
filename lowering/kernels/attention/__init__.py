"""Attention: recognition of the pattern, and its packed and streamed forms."""
