"""Errors of interpreted programs."""

from __future__ import annotations


class OutOfRangeError(IndexError):
    """An access outside its buffer, a view outside its source, or an iterator outside its domain."""


class UnsupportedOpError(NotImplementedError):
    """An op that has no reference semantics here."""
