"""The structure of a blocked product: reductions for contiguous vectors of channels, at the pixels of an image.

The innermost dimension of output and weights is a block of one or a few vectors; the data is not indexed by it.
Accumulators of several pixels and blocks stay in registers, and nothing is packed: weights are read in place, data
element by element. Convolutions in `NCHW16c` are such products, and matrix products with few columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.problem import Gemm as Product
from lowering.kernels.cpu.structure.accesses import AffineAccess
from lowering.kernels.cpu.structure.contraction import Factor, is_chain
from tir_dialect.ops.memory import LoadOp

MOST_VECTORS = 4
"""A block is at most so many vectors."""


@dataclass(frozen=True)
class Blocks:
    """The axes of a blocked product."""

    lane: int
    """The axis within a block."""
    vectors: int
    """How many vectors a block has."""
    pixels: tuple[int, ...]
    """The axes that count as one, along which sums share weights."""
    lines: tuple[int, ...]
    """The other axes that move only the data and the output."""
    reduced: tuple[tuple[int, ...], ...]
    """The axes of the sums, those that count as one together; those of the weights' smallest step last."""


def find_blocks(product: Product) -> Blocks | None:
    """The blocks of a product; `None` if it has none."""
    what = product.what
    size = what.stage.extents[what.column[-1]].constant_value if len(what.column) == 1 else None
    lanes = product.tiles.lanes
    if size is None or what.is_integer or size % lanes or size > MOST_VECTORS * lanes or lanes == 1:
        return None
    if not all(_is_plain(factor) for factor in (what.rows, what.columns)) or what.columns.stride(what.column[0]) != 1:
        return None
    if what.columns.panels is not None:  # only the indices in the first panel follow from strides
        return None
    output, weights = what.output, what.columns.accesses[0]
    pixel = next((axis for axis in what.row if output.strides[axis].constant_value == size), None)
    if pixel is None or any(weights.strides[axis].constant_value is None for axis in what.reduced):
        return None
    pixels = _joined(product, pixel)
    reduced = sorted(what.reduced, key=lambda axis: -(weights.strides[axis].constant_value or 0))
    lines = tuple(axis for axis in what.row if axis not in pixels)
    return Blocks(what.column[0], size // lanes, pixels, lines, _together(product, reduced))


def _together(product: Product, reduced: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Neighbours among the axes of the sums as one, if neither data nor weights jump between them."""
    what, groups = product.what, list[tuple[int, ...]]()
    for axis in reduced:
        longer = (*groups[-1], axis) if groups else ()
        if longer and is_chain((*what.rows.accesses, *what.columns.accesses), what.stage.extents, longer):
            groups[-1] = longer
        else:
            groups.append((axis,))
    return tuple(groups)


def _is_plain(factor: Factor) -> bool:
    """Whether a factor is an element of memory, at an index that is linear in the axes."""
    plain = isinstance(factor.value.owner, LoadOp) and factor.value.type == factor.element
    return plain and factor.is_linear


def _joined(product: Product, pixel: int) -> tuple[int, ...]:
    """The axes that count as one with that of the pixels: between which neither data nor output jumps."""
    what, epilogue = product.what, product.epilogue
    count = len(what.stage.axes)
    accesses: Iterable[AffineAccess] = [
        *what.rows.accesses,
        what.output,
        *(step.access(op, count) for step, op in epilogue.accesses),
    ]
    found, accesses = (pixel,), tuple(accesses)
    while True:
        rest = (axis for axis in what.row if axis not in found)
        before = next((axis for axis in rest if is_chain(accesses, what.stage.extents, (axis, *found))), None)
        if before is None:
            return found
        found = (before, *found)


def load_of(factor: Factor) -> tuple[SSAValue, AffineAccess]:
    """The buffer that a plain factor is in, and where."""
    load = factor.value.owner
    assert isinstance(load, LoadOp)  # so is what blocks were found in
    return load.buffer, factor.accesses[0]
