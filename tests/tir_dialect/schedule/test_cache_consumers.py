"""Which blocks read a copy that cache_read makes."""

from __future__ import annotations

import pytest

from tests.tir_dialect.schedule.support import m, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.schedule import Schedule

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


def consumers_in_and_behind_a_loop():
    """`B` reads what an iteration of a loop has written, `C` reads after the loop."""
    x = te.placeholder((8 * n,), "i32", "X")
    a = te.compute((8 * n,), lambda i: x[i] + 1, name="A")
    b = te.compute((8 * n,), lambda i: a[i] * 2, name="B")
    c = te.compute((8 * n,), lambda i: a[i] + 3, name="C")
    sch = Schedule(te.create_prim_func([x, b, c]))
    sch.reverse_compute_at("B", sch.split(sch.get_loops("A")[0], [None, 8])[0])
    return sch.func


def readers_of(sch, buffer):
    loads = [op for op in sch.func.walk() if isinstance(op, LoadOp) and op.buffer.name_hint == buffer]
    return sorted(op.parent_op().block_name.data for op in loads)


@pytest.mark.parametrize("consumers", [(), ("B", "C"), ("C", "B")])
def test_cache_read_for_consumers_in_and_behind_a_loop(consumers):
    func = consumers_in_and_behind_a_loop()
    sch = scheduled(func, lambda sch: sch.cache_read("B", 0, "local", consumers))
    assert readers_of(sch, "A_local") == ["B", "C"]
    assert readers_of(sch, "A") == ["A_local"]
    only = scheduled(func, lambda sch: sch.cache_read("B", 0, "local", ["B"]))
    assert readers_of(only, "A") == ["A_local", "C"]


def test_a_reader_behind_the_loops_needs_all_that_it_reads():
    x = te.placeholder((n, 2), "i32", "X")
    a = te.compute((n, 2), lambda i, j: x[i, j] + 1, name="A")
    b = te.compute((n,), lambda i: a[i, 0] * 2, name="B")
    c = te.compute((n, 2), lambda i, j: a[i, j] + 3, name="C")
    sch = Schedule(te.create_prim_func([x, b, c]))
    sch.reverse_compute_at("B", sch.get_loops("A")[0])
    before = scheduled(sch.func, lambda sch: sch.cache_read("B", 0, "local"))
    assert readers_of(before, "A_local") == ["B"]
    message = 'block "C" reads elements of buffer "A" that are not copied'
    refuses(sch, message, "cache_read", "B", 0, "local", ["B", "C"])


def test_a_buffer_that_changes_after_it_was_copied():
    def body(b, ins, outs):
        (x,), (a, y, z) = ins, outs
        with b.for_range(0, n, "t"):
            with b.block("A", ("spatial", n, "i")) as (i,):
                b.store(a, i, x[i] + 1)
            with b.block("B", ("spatial", n, "i")) as (i,):
                b.store(y, i, a[i] * 2)
        with b.block("C", ("spatial", n, "i")) as (i,):
            b.store(z, i, a[i] + 3)
        with b.block("D", ("spatial", n, "i")) as (i,):
            b.store(a, i, z[i])

    x = te.placeholder((n,), "i32", "X")
    func = te.create_prim_func([x, *te.extern([((n,), "i32")] * 3, [x], body, name="Y")])
    sch = scheduled(func, lambda sch: sch.cache_read("B", 0, "local"))
    assert readers_of(sch, "Y_v0_local") == ["B"]
    message = 'elements of buffer "Y_v0" change in later iterations than they are copied in'
    refuses(Schedule(func), message, "cache_read", "B", 0, "local", ["B", "C"])
