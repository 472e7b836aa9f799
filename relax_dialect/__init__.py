"""The relax dialect: graph-level programs over tensors whose shapes may be symbolic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from relax_dialect.builder import BlockBuilder
    from relax_dialect.dialect import Relax

__all__ = ["BlockBuilder", "Relax"]

# Loaded on first use: importing the package must stay cheap.
_NAMES = LazyNames(
    __name__,
    {
        "BlockBuilder": "relax_dialect.builder:BlockBuilder",
        "Relax": "relax_dialect.dialect:Relax",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
