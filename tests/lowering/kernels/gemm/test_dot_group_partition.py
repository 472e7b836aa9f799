"""How the tiles of a GEMM on dot-product groups are partitioned among tasks."""

from __future__ import annotations

import operator
from itertools import chain, product

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, UnknownLoc
from xdsl.ir import Block, Operation, SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.gemm.dot_groups import TilePartition
from tir_dialect.dims import constant

MEANING = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.DivUIOp: operator.floordiv,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.SelectOp: lambda condition, a, b: a if condition else b,
}
COMPARISONS = {"sge": operator.ge, "sle": operator.le}


def number(value: SSAValue) -> int:
    """What arithmetic on index constants gives; no quotient is of a negative number."""
    op = value.owner
    assert isinstance(op, Operation)
    if isinstance(op, arith.ConstantOp):
        assert isinstance(op.value, IntegerAttr)
        return op.value.value.data
    operands = [number(operand) for operand in op.operands]
    if isinstance(op, arith.CmpiOp):
        return COMPARISONS[arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]](*operands)
    assert not isinstance(op, arith.DivUIOp) or min(operands) >= 0
    return MEANING[type(op)](*operands)


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(("strips", "panels"), [(37, 16), (9, 1), (1, 9), (100, 3), (12, 3), (5, 7), (0, 3), (3, 0)])
def test_each_tile_has_a_task(tasks: int, strips: int, panels: int) -> None:
    """Two tasks differ by a tile at most; no more is packed than there is room for."""
    code = Code(Block(), UnknownLoc())
    partition = TilePartition(code, constant(strips), constant(panels), constant(tasks))
    room = number(code.dim(partition.strips)), number(code.dim(partition.panels))
    found: list[list[tuple[int, int]]] = []
    for task in range(tasks):
        own = partition.of(code.index(task))
        (first, end), (top, bottom) = (tuple(map(number, each)) for each in (own.panels, own.strips))
        assert 0 <= first <= end <= panels
        assert 0 <= top <= bottom <= strips
        assert bottom - top <= room[0]
        assert end - first <= room[1]
        tiles: list[tuple[int, int]] = []
        for panel in range(first, end):
            rows = range(*map(number, partition.strips_of(own, code.index(panel))))
            assert not rows or top <= rows[0] <= rows[-1] < bottom
            tiles += [(strip, panel) for strip in rows]
        found.append(tiles)
    assert sorted(chain(*found)) == [*product(range(strips), range(panels))]
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_many_strips_are_partitioned_before_panels() -> None:
    """Panels take longer to pack than strips do."""
    code = Code(Block(), UnknownLoc())
    for strips, panels, expected in ((37, 16, (37, 9)), (224, 2, (113, 2))):
        partition = TilePartition(code, constant(strips), constant(panels), constant(2))
        assert (number(code.dim(partition.strips)), number(code.dim(partition.panels))) == expected
