"""What the builder raises where a program cannot be what its calls say."""

from __future__ import annotations


class BuilderError(ValueError):
    """A call of the builder in the wrong place: outside of a function, out of scope, without an end."""
