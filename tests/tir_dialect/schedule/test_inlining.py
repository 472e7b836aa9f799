"""compute_inline and reverse_compute_inline."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import NOT_EMPTY, check_same, elementwise, k, m, matmul, n, scan, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule import Schedule

A = te.placeholder((n, m), "i32", "A")


def blocks(sch):
    return [op.block_name.data for op in sch.func.walk() if isinstance(op, BlockOp)]


def allocations(sch):
    return [op.buffer.name_hint for op in sch.func.walk() if isinstance(op, AllocBufferOp)]


def stages(*computes):
    """The function over `A` that computes the last of the stages, each made from the tensor before."""
    tensor = A
    for number, compute in enumerate(computes):
        tensor = te.compute((n, m), lambda i, j, f=compute, x=tensor: f(x, i, j), name=f"S{number}")
    return te.create_prim_func([A, tensor])


def test_inline_into_a_consumer():
    sch = scheduled(elementwise(), lambda sch: sch.compute_inline(sch.get_block("B")))
    assert blocks(sch) == ["C"]
    assert allocations(sch) == []


def test_inline_of_a_chain():
    func = stages(lambda x, i, j: x[i, j] * 2, lambda x, i, j: x[i, j] + x[i, j], lambda x, i, j: x[i, j] - 1)

    def transform(sch):
        sch.compute_inline(sch.get_block("S0"))
        sch.compute_inline(sch.get_block("S1"))

    assert blocks(scheduled(func, transform)) == ["S2"]


def test_inline_at_other_indices_and_several_times():
    b = te.compute((m, n), lambda i, j: A[j, i] * 2, name="B")
    c = te.compute((n, m), lambda i, j: b[j, i] + b[m - 1 - j, n - 1 - i] * b[j, i], name="C")
    scheduled(te.create_prim_func([A, c]), lambda sch: sch.compute_inline(sch.get_block("B")))


def test_inline_into_two_consumers():
    b = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + 1, name="C")
    d = te.compute((n, m), lambda i, j: b[i, j] - c[i, j], name="D")
    sch = scheduled(te.create_prim_func([A, c, d]), lambda sch: sch.compute_inline(sch.get_block("B")))
    assert blocks(sch) == ["C", "D"]


def test_inline_of_a_guarded_load_into_a_reduction():
    padded = te.compute((n, m + 2), lambda i, j: te.if_then_else((j >= 1) & (j <= m), A[i, j - 1], 0), name="P")
    r = te.reduce_axis(3, "r")
    out = te.compute((n, m), lambda i, j: te.sum(padded[i, j + r], r), name="C")

    def transform(sch):
        sch.compute_inline(sch.get_block("P"))
        sch.split(sch.get_loops(sch.get_block("C"))[1], [None, 4])

    assert blocks(scheduled(te.create_prim_func([A, out]), transform)) == ["C"]


def test_inline_of_a_block_over_unit_axes():
    b = te.compute((1, m), lambda i, j: A[i, j] * 2, name="B")
    c = te.compute((n, m), lambda i, j: b[0, j] + A[i, j], name="C")
    scheduled(te.create_prim_func([A, c]), lambda sch: sch.compute_inline(sch.get_block("B")))


def test_inline_refusals():
    sch = Schedule(matmul())
    refuses(
        sch,
        'block "C" has the reduce iterator "vr", expected spatial iterators only',
        "compute_inline",
        sch.get_block("C"),
    )
    sch = Schedule(elementwise())
    refuses(
        sch, 'buffer "C" is a parameter or a view, expected an allocated buffer', "compute_inline", sch.get_block("C")
    )
    sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 4])
    message = 'block "B" has a condition, expected one that runs for all iterations'
    refuses(sch, message, "compute_inline", sch.get_block("B"))
    sch = Schedule(scan())
    refuses(
        sch,
        "block \"Y\" contains 'tir.for', expected values and one scalar store",
        "compute_inline",
        sch.get_block("Y"),
    )


def test_inline_refuses_blocks_that_store_elsewhere():
    def body(b, ins, outs):
        (x,), (y,) = ins, outs
        t = b.alloc((n,), "i32", "T")
        with b.block("T", ("spatial", n, "i")) as (i,):
            b.store(t, n - 1 - i, x[i, 0])
        with b.block("Y", ("spatial", n, "i")) as (i,):
            b.store(y, i, t[i])

    (y,) = te.extern([((n,), "i32")], [A], body, name="E")
    sch = Schedule(te.create_prim_func([A, y]))
    refuses(sch, "at other indices than its iterators, each once", "compute_inline", sch.get_block("T"))


def test_inline_refuses_inputs_that_change():
    def body(b, ins, outs):
        (x,), (y, z) = ins, outs
        t = b.alloc((n,), "i32", "T")
        with b.block("Z", ("spatial", n, "i")) as (i,):
            b.store(z, i, x[i, 0])
        with b.block("T", ("spatial", n, "i")) as (i,):
            b.store(t, i, z[i])
        with b.block("Z2", ("spatial", n, "i")) as (i,):
            b.store(z, i, 0)
        with b.block("Y", ("spatial", n, "i")) as (i,):
            b.store(y, i, t[i])

    outs = te.extern([((n,), "i32"), ((n,), "i32")], [A], body, name="E")
    sch = Schedule(te.create_prim_func([A, *outs]))
    refuses(
        sch, 'block "Z2" writes an input of block "T" before its result is used', "compute_inline", sch.get_block("T")
    )


def test_inline_refuses_in_place_consumers():
    def body(b, ins, outs):
        (x,), (y,) = ins, outs
        t = b.alloc((n,), "i32", "T")
        with b.block("Y", ("spatial", n, "i")) as (i,):
            b.store(y, i, x[i, 0])
        with b.block("T", ("spatial", n, "i")) as (i,):
            b.store(t, i, y[i])
        with b.block("Y2", ("spatial", n, "i")) as (i,):
            b.store(y, i, t[n - 1 - i])

    (y,) = te.extern([((n,), "i32")], [A], body, name="E")
    sch = Schedule(te.create_prim_func([A, y]))
    refuses(sch, 'block "Y2" writes an input of block "T"', "compute_inline", sch.get_block("T"))


def test_reverse_inline_into_the_producer():
    sch = scheduled(elementwise(), lambda sch: sch.reverse_compute_inline(sch.get_block("C")))
    assert blocks(sch) == ["B"]
    assert allocations(sch) == []


def test_reverse_inline_of_a_transposed_consumer_into_a_split_producer():
    b = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    c = te.compute((m, n), lambda i, j: b[j, i] + A[j, i], name="C")

    def transform(sch):
        sch.split(sch.get_loops(sch.get_block("B"))[1], [None, 4])
        sch.reverse_compute_inline(sch.get_block("C"))

    scheduled(te.create_prim_func([A, c]), transform)


def test_reverse_inline_refusals():
    func = stages(lambda x, i, j: x[i, j] * 2, lambda x, i, j: x[i, j] + x[n - 1 - i, j])
    sch = Schedule(func)
    refuses(sch, 'block "S1" reads several elements of buffer "S0"', "reverse_compute_inline", sch.get_block("S1"))
    sch = Schedule(stages(lambda x, i, j: x[i, j] * 2, lambda x, i, j: x[i // 2, j]))
    message = 'block "S1" may read an element of its input several times'
    refuses(sch, message, "reverse_compute_inline", sch.get_block("S1"))
    sch = Schedule(stages(lambda x, i, j: x[i, j] * 2))
    refuses(sch, "reads 0 allocated buffers", "reverse_compute_inline", sch.get_block("S0"))


def test_reverse_inline_refuses_reductions_and_broadcasts():
    b = te.placeholder((m, k), "i32", "B")
    r = te.reduce_axis(m, "r")
    c = te.compute((n, k), lambda i, j: te.sum(A[i, r] * b[r, j], r), name="C")
    d = te.compute((n, k), lambda i, j: c[i, j] * 2, name="D")
    sch = Schedule(te.create_prim_func([A, b, d]))
    refuses(
        sch,
        'buffer "C" is updated by block "C": its values are not final',
        "reverse_compute_inline",
        sch.get_block("D"),
    )
    rows = te.compute((n,), lambda i: A[i, 0] * 2, name="R")
    wide = te.compute((n, m), lambda i, j: rows[i] + A[i, j], name="W")
    sch = Schedule(te.create_prim_func([A, wide]))
    message = 'block "W" may read an element of its input several times'
    refuses(sch, message, "reverse_compute_inline", sch.get_block("W"))


def test_reverse_inline_of_a_block_that_reads_a_part_of_the_buffer():
    b = te.compute((n + 1, m), lambda i, j: te.cast(i + j, "i32"), name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + A[i, j], name="C")
    scheduled(te.create_prim_func([A, c]), lambda sch: sch.reverse_compute_inline("C"))


def test_reverse_inline_of_a_block_that_reads_a_part_from_the_end():
    b = te.compute((n + 1, m), lambda i, j: te.cast(i + 10 * j, "i32"), name="B")
    c = te.compute((n, m), lambda i, j: b[n - 1 - i, m - 1 - j] + A[i, j], name="C")
    scheduled(te.create_prim_func([A, c]), lambda sch: sch.reverse_compute_inline("C"))


@pytest.mark.parametrize(
    ("shape", "element"),
    [
        ((96,), lambda b, i: b[i // 12, i % 12]),
        ((12, 8), lambda b, j, i: b[i, j]),
        (
            (2, 3, 4, 4),
            lambda b, i, j, k, r: b[(((i * 3 + j) * 4 + k) * 4 + r) // 12, (i * 48 + j * 16 + k * 4 + r) % 12],
        ),
        ((90,), lambda b, i: b[i // 12, i % 12]),
    ],
)
def test_reverse_inline_of_another_layout(shape, element):
    a = te.placeholder((8, 12), "i32", "A")
    b = te.compute((8, 12), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute(shape, lambda *index: element(b, *index) * 2, name="C")
    sch = scheduled(te.create_prim_func([a, c]), lambda sch: sch.reverse_compute_inline("C"), [{}])
    assert [block.name for block in sch.get_blocks()] == ["B"]


def test_reverse_inline_refuses_outputs_used_before():
    def body(b, ins, outs):
        (x,), (y, z) = ins, outs
        t = b.alloc((n,), "i32", "T")
        with b.block("T", ("spatial", n, "i")) as (i,):
            b.store(t, i, x[i, 0])
        with b.block("Z", ("spatial", n, "i")) as (i,):
            b.store(z, i, y[i])
        with b.block("Y", ("spatial", n, "i")) as (i,):
            b.store(y, i, t[i])

    outs = te.extern([((n,), "i32"), ((n,), "i32")], [A], body, name="E")
    sch = Schedule(te.create_prim_func([A, *outs]))
    refuses(sch, 'the output of block "Y" is used before it', "reverse_compute_inline", sch.get_block("Y"))


def sums_and(consumer, shape=(n,)):
    r = te.reduce_axis(m, "r")
    b = te.compute((n,), lambda i: te.sum(A[i, r], r), name="B")
    return te.create_prim_func([A, te.compute(shape, lambda *index: consumer(b, *index), name="C")])


@pytest.mark.parametrize("decomposed", [False, True])
def test_reverse_inline_of_a_copy_behind_a_reduction(decomposed):
    def transform(sch):
        i, r = sch.get_loops("B")
        sch.split(r, [None, 4])
        if decomposed:
            sch.decompose_reduction("B", i)
        sch.reverse_compute_inline("C")

    sch = scheduled(sums_and(lambda b, q, i: b[i], (1, n)), transform)
    assert "C" not in blocks(sch)
    assert allocations(sch) == []


def test_reverse_inline_refuses_copies_of_parts_behind_reductions():
    sch = Schedule(sums_and(lambda b, i: b[i], (n // 2,)))
    message = 'block "C" copies floordiv(n, 2) of n elements of buffer "B"'
    refuses(sch, message, "reverse_compute_inline", sch.get_block("C"))


def test_reverse_inline_refuses_a_copy_that_is_overwritten_in_the_loops_of_the_reduction():
    sch = Schedule(parse_prim_func(OVERWRITTEN.format(bounds="", before="")))
    refuses(sch, 'loop "i" may have no iteration', "reverse_compute_inline", sch.get_block("C"))
    written = OVERWRITTEN.format(bounds=" in [1, _]", before="tir.store %zero, %C[%c0]")
    sch = Schedule(parse_prim_func(written))
    message = 'writes buffer "C" in the loops of the reduction'
    refuses(sch, message, "reverse_compute_inline", sch.get_block("C"))
    func = parse_prim_func(written.replace("tir.store %zero, %C[%c0]", "", 1))
    scheduled(func, lambda sch: sch.reverse_compute_inline("C"), NOT_EMPTY)


OVERWRITTEN = """
tir.prim_func @f[%n{bounds}](%A: !tir.buffer<[n], i32>, %C: !tir.buffer<[1], i32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %B = tir.alloc_buffer : !tir.buffer<[1], i32>
  tir.block "Z" () {{
    tir.store %zero, %B[%c0]
  }}
  tir.for (%i) in (%n) {{
    {before}
    tir.block "B" (%vi = reduce %i in %n) {{
      %b = tir.load %B[%c0]
      %a = tir.load %A[%vi]
      %s = arith.addi %a, %b : i32
      tir.store %s, %B[%c0]
    }}
    tir.block "C" () {{
      %b = tir.load %B[%c0]
      tir.store %b, %C[%c0]
    }}
  }}
}}"""


STRIDED = """
tir.prim_func @f[%n](%C: !tir.buffer<[2 * n], i32>) {
  %c2 = arith.constant 2 : index
  %one = arith.constant 1 : i32
  %nn = arith.muli %n, %c2 : index
  %B = tir.alloc_buffer : !tir.buffer<[2 * n], i32>
  tir.for (%i) in (%nn) {
    tir.block "B" (%vi = spatial %i in %nn) {
      tir.store %one, %B[%vi]
    }
  }
  tir.for (%i) in (%n) {
    %j = arith.muli %i, %c2 : index
    tir.block "C" (%vi = spatial %j in %nn) {
      %b = tir.load %B[%vi]
      tir.store %b, %C[%vi]
    }
  }
}"""


def test_reverse_inline_refuses_a_consumer_that_leaves_instances_out():
    sch = Schedule(parse_prim_func(STRIDED))
    message = 'the loops of block "C" do not take its iterators through all values'
    refuses(sch, message, "reverse_compute_inline", sch.get_block("C"))


def caches(func, move):
    """A copy of a buffer that is allocated in a loop or before the loops that use it."""
    sch = Schedule(func)
    copy = sch.cache_read("C", "B", "local")
    if move:
        sch.compute_at(copy, sch.get_loops("C")[0])
    return sch, copy


def test_reverse_inline_moves_the_allocation_or_refuses():
    sch, copy = caches(elementwise(), move=False)
    sch.reverse_compute_inline(copy)
    check_same(elementwise(), sch.func)
    sch, copy = caches(elementwise(), move=True)
    message = 'cannot use buffer "B_local", which is allocated in a loop'
    refuses(sch, message, "reverse_compute_inline", copy)
