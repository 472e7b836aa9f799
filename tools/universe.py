"""The entry point `xdsl.universe`, which is in `xdsl_relax.universe`."""

from __future__ import annotations

from xdsl_relax.universe import RELAX_UNIVERSE

__all__ = ["RELAX_UNIVERSE"]
