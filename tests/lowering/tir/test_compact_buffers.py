"""`compact-buffers` on schedules: buffers become small, and what is computed stays the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.pipelines import TIRToFlatPass
from tests.support.sweeps import examples
from tests.tir_dialect.schedule import support
from tests.tir_dialect.schedule.random_schedules import PROGRAMS, SIZES
from tests.tir_dialect.schedule.random_steps import step
from tests.tir_dialect.schedule.test_compute_location import matmul_with_epilogue, softmax
from tests.tir_dialect.schedule.test_padding import padded
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule import Schedule


def flat(func: PrimFuncOp) -> PrimFuncOp:
    """A copy without blocks, whose buffers are compact."""
    module = ModuleOp([copy := func.clone()])
    for each in TIRToFlatPass.passes():
        each.apply(Context(), module)
    copy.detach()
    return copy


def shapes(func: PrimFuncOp) -> dict[str | None, str]:
    """The shapes of allocated buffers, by name."""
    found = [op.buffer for op in func.walk() if isinstance(op, AllocBufferOp)]
    return {buffer.name_hint: ", ".join(map(str, buffer.type.shape)) for buffer in found}


def tile(sch: Schedule, block: str) -> None:
    """Splits the outer loops of a block, and moves the one before it into a tile."""
    i, j = sch.get_loops(block)[:2]
    _, j0, _, _ = sch.tile(i, j, [8, 16])
    sch.compute_at(sch.get_producers(block)[0], j0)


@pytest.mark.parametrize(
    ("program", "block", "want"),
    [
        (support.elementwise, "C", {"B": "8, 16"}),
        (support.blur, "C", {"B": "10, 16"}),
        (support.pools, "C", {"B": "10, 18"}),
        (matmul_with_epilogue, "D", {"C": "8, 16"}),
        (padded, "C", {"P": "10, 19"}),
    ],
)
def test_tiles_have_the_size_of_tiles(program, block: str, want: dict[str | None, str]):
    sch = Schedule(program().clone())
    tile(sch, block)
    compact = flat(sch.func)
    assert shapes(compact) == want
    support.check_same(program(), compact)


def test_rows_of_a_softmax_are_rows():
    sch = Schedule(softmax().clone())
    last = sch.get_output_blocks()[0]
    row = sch.get_loops(last)[0]
    for producer in ("total", "shifted", "top"):
        sch.compute_at(producer, row)
    compact = flat(sch.func)
    assert set(shapes(compact).values()) == {"1, m", "1"}
    support.check_same(softmax(), compact)


def test_caches_of_a_product_are_tiles():
    sch = Schedule(support.matmul().clone())
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    i0, j0, i1, j1 = sch.tile(i, j, [8, 16])
    r0, r1 = sch.split(r, [None, 4])
    sch.reorder(i0, j0, r0, i1, j1, r1)
    for number in range(2):
        sch.compute_at(sch.cache_read(block, number, "local"), r0)
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), j0)
    compact = flat(sch.func)
    assert shapes(compact) == {"A_local": "8, 4", "B_local": "4, 16", "C_local": "8, 16"}
    support.check_same(support.matmul(), compact)


@pytest.mark.slow
@examples(15)
@given(st.sampled_from(sorted(PROGRAMS)), st.integers(2, 7), st.data())
def test_random_schedules_compute_the_same(program: str, steps: int, data: st.DataObject):
    before = PROGRAMS[program]()
    sch = Schedule(before.clone())
    for _ in range(steps):
        step(data.draw, sch)
    support.check_same(before, flat(sch.func), SIZES)
