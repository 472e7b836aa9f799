"""Columns in panels of words: `B[j floordiv w, r floordiv p, j mod w, r mod p]`, as `pack-weights` arranges them.

`r` is a step of the reduction, and `p` of them make a word. A panel has `w` columns, those of a register tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.structure.accesses import linear
from lowering.kernels.cpu.structure.contraction import Contraction
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import constant
from tir_dialect.ops.memory import LoadOp

VECTORS = 2
"""Vectors of a panel: with 32 registers, tiles of 14 rows; with 16, of 6."""


@dataclass(frozen=True)
class WordPanels:
    """The load of the columns, from a buffer `[panels, depth, width, parts]`."""

    load: LoadOp


def find_word_panels(what: Contraction, reduced: Sequence[int], lanes: int, parts: int) -> WordPanels | None:
    """The panels in which the columns lie, as wide as a tile; `reduced` are the axes of the sum in their order."""
    loads = what.columns.loads
    if len(loads) != 1 or len(what.column) != 1 or len(loads[0].indices) != 4:
        return None
    (load,), axes = loads, what.stage.axes
    width, number = (extent.constant_value for extent in load.buffer_type.shape[-2:])
    column = _split_value(load.indices[0], load.indices[2], width)
    element = _split_value(load.indices[1], load.indices[3], number)
    suited = width == VECTORS * lanes and number == parts and column is axes[what.column[0]].value
    return WordPanels(load) if suited and element is not None and _counts_the_sum(what, reduced, element) else None


def _split_value(quotient: SSAValue, remainder: SSAValue, divisor: int | None) -> SSAValue | None:
    """The value that is divided into two indices."""
    high, low = quotient.owner, remainder.owner
    if not isinstance(high, arith.DivUIOp | arith.FloorDivSIOp) or not isinstance(low, arith.RemUIOp):
        return None
    same = high.lhs is low.lhs and all(_number(each.rhs) == divisor for each in (high, low))
    return low.lhs if same else None


def _number(value: SSAValue) -> int | None:
    found = dim_of(value)
    return None if found is None else found.constant_value


def _counts_the_sum(what: Contraction, reduced: Sequence[int], element: SSAValue) -> bool:
    """Whether a value numbers the elements of a sum, the last axis changing fastest."""
    space, stage = IndexSpace(what.stage.block), what.stage
    names = [space.variable(axis.value).dim.as_symbol or "" for axis in stage.axes]
    index, step = linear(space, names, element), constant(1)
    if index.value is not None or index.base.terms:
        return False
    for axis in reversed(reduced):
        if index.strides[axis] is not step:
            return False
        step = step * stage.extents[axis]
    return True
