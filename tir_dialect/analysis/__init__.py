"""Static analyses of a prim_func."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from tir_dialect.analysis.dims import dim_of
    from tir_dialect.analysis.init import init_placement
    from tir_dialect.analysis.patterns import OpPattern, op_pattern
    from tir_dialect.analysis.regions import block_regions

__all__ = ["OpPattern", "block_regions", "dim_of", "init_placement", "op_pattern"]

# Loaded on first use: the ops ask for analyses when they are verified, and the analyses import the ops.
_NAMES = LazyNames(
    __name__,
    {
        "OpPattern": "tir_dialect.analysis.patterns:OpPattern",
        "block_regions": "tir_dialect.analysis.regions:block_regions",
        "dim_of": "tir_dialect.analysis.dims:dim_of",
        "init_placement": "tir_dialect.analysis.init:init_placement",
        "op_pattern": "tir_dialect.analysis.patterns:op_pattern",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
