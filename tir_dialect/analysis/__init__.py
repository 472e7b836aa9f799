"""Static analyses of a prim_func."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tir_dialect.analysis.dims import dim_of
    from tir_dialect.analysis.init import init_placement
    from tir_dialect.analysis.patterns import OpPattern, op_pattern
    from tir_dialect.analysis.regions import block_regions

__all__ = ["OpPattern", "block_regions", "dim_of", "init_placement", "op_pattern"]

# Loaded on first use: the ops ask for analyses when they are verified, and the analyses import the ops.
_LAZY = {
    "OpPattern": "patterns",
    "block_regions": "regions",
    "dim_of": "dims",
    "init_placement": "init",
    "op_pattern": "patterns",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"tir_dialect.analysis.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
