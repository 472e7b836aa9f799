"""The table of what ops do to the elements of shapes, with the rules of all families in it."""

from __future__ import annotations

from relax_dialect.shape_values import computing, gather, moving, sources
from relax_dialect.shape_values.elements import RULES

__all__ = ["RULES", "computing", "gather", "moving", "sources"]
