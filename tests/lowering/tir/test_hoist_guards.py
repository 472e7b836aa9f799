"""`hoist-guards` on schedules: whole tiles have no predicates, and what is computed stays the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowering.tir.hoist_guards import MOST_OPS, WHOLE_TILES, HoistGuardsPass
from lowering.tir.lower_blocks import LowerInitBlocksPass
from tests.support.sweeps import examples
from tests.tir_dialect.schedule import support
from tests.tir_dialect.schedule.random_schedules import PROGRAMS, SIZES
from tests.tir_dialect.schedule.random_steps import step
from tests.tir_dialect.schedule.test_compute_location import matmul_with_epilogue
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Schedule


def hoisted(func: PrimFuncOp) -> PrimFuncOp:
    """A copy whose guards are hoisted."""
    module = ModuleOp([copy := func.clone()])
    for each in (LowerInitBlocksPass(), HoistGuardsPass()):
        each.apply(Context(), module)
    module.verify()
    copy.detach()
    return copy


def halves(func: PrimFuncOp) -> list[IfOp]:
    return [op for op in func.walk() if isinstance(op, IfOp) and WHOLE_TILES in op.attributes]


def predicates(op: Operation) -> int:
    """How many blocks have one."""
    return sum(isinstance(inner, BlockOp) and inner.condition is not None for inner in op.walk())


def tile(sch: Schedule, block: str, sizes: tuple[int, int] = (8, 16)) -> None:
    sch.tile(*sch.get_loops(block)[:2], sizes)


@pytest.mark.parametrize(
    ("program", "block", "splits"),
    [(support.elementwise, "C", 1), (support.blur, "C", 1), (support.matmul, "C", 1), (matmul_with_epilogue, "D", 1)],
)
def test_whole_tiles_have_no_predicates(program, block: str, splits: int):
    sch = Schedule(program().clone())
    tile(sch, block)
    found = hoisted(sch.func)
    assert len(halves(found)) == splits
    for branch in halves(found):
        assert not any(isinstance(op, BlockOp) and op.condition is not None for op in branch.then_body.walk())
        assert predicates(branch) > 0
    support.check_same(program(), found)


def test_each_level_of_tiles_is_split_in_whole_ones():
    sch = Schedule(support.matmul().clone())
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    i0, j0, i1, j1 = sch.tile(i, j, [4, 8])
    r0, r1 = sch.split(r, [None, 4])
    sch.reorder(i0, j0, r0, r1, i1, j1)
    sch.decompose_reduction(block, r0)
    found = hoisted(sch.func)
    outer, inner = halves(found)
    assert inner in outer.then_body.walk()
    assert (predicates(outer), predicates(inner)) == (3, 1)
    support.check_same(support.matmul(), found)


def test_static_tiles_that_do_not_divide():
    sch = Schedule(support.elementwise().clone())
    i, _ = sch.get_loops("C")
    sch.split(sch.split(i, [None, 12])[1], [None, 8])
    found = hoisted(sch.func)
    assert halves(found)
    support.check_same(support.elementwise(), found)


def test_long_bodies_are_not_copied():
    sch = Schedule(support.elementwise().clone())
    tile(sch, "C")
    func = sch.func
    inner = next(op for op in func.walk() if isinstance(op, BlockOp) and op.block_name.data == "C")
    first = inner.body.block.first_op
    assert first is not None
    for _ in range(MOST_OPS):
        inner.body.block.insert_op_before(first.clone(), first)
    assert not halves(hoisted(func))


@examples(15)
@given(st.sampled_from(sorted(PROGRAMS)), st.integers(2, 7), st.data())
def test_random_schedules_compute_the_same(program: str, steps: int, data: st.DataObject):
    before = PROGRAMS[program]()
    sch = Schedule(before.clone())
    for _ in range(steps):
        step(data.draw, sch)
    found = hoisted(sch.func)
    support.check_same(before, found, SIZES)
    assert str(hoisted(found)) == str(found)
