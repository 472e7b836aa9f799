"""The destination of full tiles that are stored to rows of the output directly."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.kernel import buffer_type
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.structure.contraction import is_chain
from tir_dialect.dims import constant
from tir_dialect.ops.flatten import FlattenOp


@dataclass(frozen=True)
class Results:
    """Rows of a one-dimensional buffer: column `j` of row `i` is element `first + i * each + j`."""

    buffer: SSAValue
    first: SSAValue
    each: SSAValue
    k_block: SSAValue | None
    """How many blocks of the reduction have left their sums there, to be added to; `None` if they are replaced."""
    count: SSAValue | None = None
    """How many columns there are, if some may be missing."""
    masks_if_needed: bool = False
    """Whether vectors are stored under masks only if columns are missing, since masks take long."""
    is_prefetched: bool = True
    """Whether the rows are asked for before the sums are made."""

    def index(self, code: Code, i: int, j: int) -> list[SSAValue]:
        """The indices of an element."""
        return [code.add(code.add(self.first, code.mul(self.each, i)), j)]


def as_results(product: Product, tile: SSAValue) -> Results:
    """Memory for a whole tile in the same terms, so that one function of a micro-kernel does for both."""
    code, (_, width) = product.code, buffer_type(tile).shape
    zero = code.index(0)
    return Results(code.value(FlattenOp(tile)), zero, code.dim(width), zero)


def can_store_tiles(product: Product) -> bool:
    """Whether the output has the sums as they are, and evenly spaced rows of several columns of it lie in memory."""
    return bool(product.what.column) and can_store_sums(product)


def can_store_sums(product: Product) -> bool:
    """The same for any number of columns."""
    what, buffer = product.what, product.kernel.flat.get(product.what.store.buffer)
    if product.epilogue.steps or what.is_integer or buffer is None:
        return False
    even = all(is_chain([what.output], what.stage.extents, axes) for axes in (what.row, what.column))
    beside = not what.column or what.output.strides[what.column[-1]] == constant(1)
    return even and beside and buffer_type(buffer).dtype == what.element


def results(product: Product, coords: Coords, k_block: SSAValue) -> Results:
    """Those of the tile whose first row and column the coordinates say."""
    what, code = product.what, product.code
    each = what.output.strides[what.row[-1]] if what.row else constant(0)
    return Results(product.kernel.flat[what.store.buffer], product.offset(what.output, coords), code.dim(each), k_block)
