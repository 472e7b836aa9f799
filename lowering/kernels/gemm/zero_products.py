"""Sums from which products with 0 are left out: what has no weight does not count, but 0 times an infinite value or
NaN is NaN.

They are made as any GEMM; a sum that is NaN then, which is rare, is made once more without those products. A sum that
is a number has no such product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.register_tile import TileColumns
from tir_dialect.ops.control_flow import LoopKind
from tir_dialect.ops.vectors import CompareOp, FirstLaneOp


def restore_row(
    grid: TileColumns,
    tile: SSAValue,
    row: SSAValue,
    length: SSAValue,
    element: Callable[[SSAValue], SSAValue],
    vector: Callable[[SSAValue, int], SSAValue],
) -> None:
    """Makes a row of a tile once more if some sum in it is NaN, from `length` steps.

    `element(r)` gives what is multiplied at a step, `vector(r, v)` a vector of the columns.
    """
    code, lanes = grid.code, grid.lanes
    assert isinstance(grid.dtype, AnyFloat)  # integers are never NaN
    columns = [[row, code.index(v * lanes)] for v in range(grid.vectors)]
    # Infinite sums of both signs are NaN together; these rows are only made in vain.
    total = reduce(code.add_floats, [code.load(tile, each, lanes) for each in columns])
    is_nan = code.value(CompareOp("uno", total, total))
    with code.when(code.compare("ne", code.value(FirstLaneOp(is_nan)), lanes)):
        for each in columns:
            code.store(code.zeros(grid.dtype, lanes), tile, each)
        with code.loop(length, "r") as r:
            factor = element(r)
            with code.when(_counts(code, factor, grid.dtype)):
                for v, each in enumerate(columns):
                    added = code.fma(code.splat(factor, lanes), vector(r, v), code.load(tile, each, lanes))
                    code.store(added, tile, each)


def restore_output(gemm: Gemm) -> None:
    """Makes those elements of the output of a GEMM once more that are NaN."""
    contraction = gemm.contraction
    groups = [contraction.batch, contraction.row, contraction.outer, contraction.column]
    _restore_elements(gemm, [axis for group in groups for axis in group], {})


def _restore_elements(gemm: Gemm, axes: list[int], coords: Coords) -> None:
    """The elements at some axes; the others have coordinates."""
    code, contraction = gemm.code, gemm.contraction
    if axes:
        kind = LoopKind.SERIAL if coords else LoopKind.PARALLEL
        with code.loop(code.dim(contraction.stage.extents[axes[0]]), "i", kind=kind) as i:
            _restore_elements(gemm, axes[1:], {**coords, (axes[0],): i})
        return
    output, at = gemm.accumulators, [gemm.offset(contraction.output, coords)]
    total = code.load(output, at)
    with code.when(code.value(arith.CmpfOp(total, total, "uno"))):
        code.store(code.number(0.0, contraction.element), output, at)
        _add_products(gemm, list(contraction.reduced), coords, lambda product: _add(code, product, output, at))


def _add_products(gemm: Gemm, axes: list[int], coords: Coords, add: Callable[[SSAValue], None]) -> None:
    """Adds the products that count along some axes."""
    code, contraction = gemm.code, gemm.contraction
    if axes:
        with code.loop(code.dim(contraction.stage.extents[axes[0]]), "r") as r:
            _add_products(gemm, axes[1:], {**coords, (axes[0],): r}, add)
        return
    tested, other = contraction.rows, contraction.columns
    if tested.value is not contraction.tested:
        tested, other = other, tested
    factor = gemm.element(tested, coords)
    with code.when(_counts(code, factor, contraction.element)):
        add(code.value(arith.MulfOp(factor, gemm.element(other, coords))))


def _add(code: Code, product: SSAValue, output: SSAValue, at: list[SSAValue]) -> None:
    code.store(code.add_floats(code.load(output, at), product), output, at)


def _counts(code: Code, factor: SSAValue, dtype: AnyFloat) -> SSAValue:
    """Whether a factor is not 0."""
    return code.value(arith.CmpfOp(factor, code.number(0.0, dtype), "une"))
