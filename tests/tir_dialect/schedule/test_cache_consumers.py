"""Which blocks read a copy that cache_read makes."""

from __future__ import annotations

import pytest

from tests.tir_dialect.schedule.support import m, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.ops.memory import AllocBufferOp, LoadOp

A = te.placeholder((n, m), "i32", "A")


@pytest.mark.parametrize("block", ["B", "C"])
@pytest.mark.parametrize("consumers", [(), ("B",), ("C",), ("B", "C")])
def test_cache_read_is_for_its_consumers(block, consumers):
    b = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    c = te.compute((n, m), lambda i, j: A[i, j] + 1, name="C")
    func = te.create_prim_func([A, b, c])
    sch = scheduled(func, lambda sch: sch.cache_read(block, 0, "local", consumers))
    readers = {op.parent_op().block_name.data: op.buffer.name_hint for op in sch.func.walk() if isinstance(op, LoadOp)}
    wanted = {name: "A_local" if name in (consumers or "BC") else "A" for name in "BC"}
    assert readers == {"A_local": "A", **wanted}


def test_cache_read_without_consumers_ends_where_the_buffer_is_written():
    def body(b, ins, outs):
        (a,), (x, y) = ins, outs
        for name, source, target in (("S", a, x), ("B", x, y), ("C", x, y), ("D", a, x), ("E", x, y)):
            with b.block(name, ("spatial", n, "i")) as (i,):
                b.store(target, i, source[i] + (y[i] if name in "CE" else 1))

    a = te.placeholder((n,), "i32", "A")
    func = te.create_prim_func([a, *te.extern([((n,), "i32")] * 2, [a], body, name="Y")])
    sch = scheduled(func, lambda sch: sch.cache_read("C", 0, "local"))
    loads = (op for op in sch.func.walk() if isinstance(op, LoadOp) and isinstance(op.buffer.owner, AllocBufferOp))
    assert [op.parent_op().block_name.data for op in loads] == ["B", "C"]
    refuses(sch, 'block "S" does not read buffer', "cache_read", "C", 0, "local", ["S"])
