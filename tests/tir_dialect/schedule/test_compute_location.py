"""compute_at and reverse_compute_at."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import blur, elementwise, home, k, m, matmul, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule

A = te.placeholder((n, m), "i32", "A")


def matmul_with_epilogue():
    b = te.placeholder((m, k), "i32", "B")
    r = te.reduce_axis(m, "r")
    c = te.compute((n, k), lambda i, j: te.sum(A[i, r] * b[r, j], r), name="C")
    d = te.compute((n, k), lambda i, j: te.maximum(c[i, j], 0), name="D")
    return te.create_prim_func([A, b, d], name="matmul_relu")


def softmax():
    q = te.reduce_axis(m, "q")
    top = te.compute((n,), lambda i: te.max(A[i, q], q), name="top")
    shifted = te.compute((n, m), lambda i, j: A[i, j] - top[i], name="shifted")
    total = te.compute((n,), lambda i: te.sum(shifted[i, q] * shifted[i, q], q), name="total")
    out = te.compute((n, m), lambda i, j: shifted[i, j] * total[i], name="out")
    return te.create_prim_func([A, out], name="softmax_like")


@pytest.mark.parametrize("position", [0, 1])
def test_compute_at_a_loop_of_the_consumer(position):
    def transform(sch):
        sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[position])

    sch = scheduled(elementwise(), transform)
    assert home(sch, "B") == "ij"[position]


@settings(max_examples=12)
@given(st.sampled_from([2, 4, 8]), st.sampled_from([2, 8]), st.integers(0, 3))
def test_compute_at_a_tile_of_the_consumer(rows, columns, position):
    def transform(sch):
        i, j = sch.get_loops(sch.get_block("C"))
        sch.compute_at(sch.get_block("B"), sch.tile(i, j, [rows, columns])[position])

    scheduled(elementwise(), transform)


@pytest.mark.parametrize("factor", [None, 4])
def test_compute_at_with_overlapping_needs(factor):
    def transform(sch):
        i, _ = sch.get_loops(sch.get_block("C"))
        if factor is not None:
            i, _ = sch.split(i, [None, factor])
        sch.compute_at(sch.get_block("B"), i)
        sch.parallel(i)

    sch = scheduled(blur(), transform)
    extents = [str(sch.extent(loop.op)) for loop in sch.get_loops(sch.get_block("B"))[1:]]
    assert extents == (["3", "m"] if factor is None else ["6", "m"])


def test_compute_at_of_a_reduction():
    def transform(sch):
        i, j = sch.get_loops(sch.get_block("D"))
        _, _, i1, _ = sch.tile(i, j, [4, 8])
        sch.compute_at(sch.get_block("C"), i1)

    scheduled(matmul_with_epilogue(), transform)


def test_compute_at_of_a_chain_makes_rows_independent():
    def transform(sch):
        i, _ = sch.get_loops(sch.get_block("out"))
        sch.compute_at(sch.get_block("total"), i)
        sch.compute_at(sch.get_block("shifted"), i)
        sch.compute_at(sch.get_block("top"), i)
        sch.parallel(i)

    sch = scheduled(softmax(), transform)
    assert [home(sch, name) for name in ("top", "shifted", "total")] == ["i", "i", "i"]


def test_compute_at_of_a_part_that_a_guard_needs():
    padded = te.compute((n, m + 2), lambda i, j: te.if_then_else((j >= 1) & (j <= m), A[i, j - 1], 0), name="P")
    out = te.compute((n, m), lambda i, j: padded[i, j] + padded[i, j + 2], name="C")

    def transform(sch):
        _, j = sch.get_loops(sch.get_block("C"))
        j0, _ = sch.split(j, [None, 4])
        sch.compute_at(sch.get_block("P"), j0)

    scheduled(te.create_prim_func([A, out]), transform)


def test_compute_at_where_the_need_depends_on_data():
    at = te.placeholder((n,), "i32", "at")
    b = te.compute((4, m), lambda i, j: te.cast(i + j, "i32"), name="B")
    c = te.compute((n, m), lambda i, j: b[te.minimum(te.maximum(at[i], 0), 3), j] + A[i, j], name="C")
    func = te.create_prim_func([A, at, c])
    scheduled(func, lambda sch: sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[1]))


def producer_at(rows, columns, row, column):
    """A producer that stores `[row, column]` of a buffer of `rows` by `columns`, and a consumer that transposes."""
    return parse_prim_func(f"""
    tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], i32>, %Z: !tir.buffer<[m, n], i32>) {{
      %Y = tir.alloc_buffer : !tir.buffer<[{rows}, {columns}], i32>
      %rows = tir.dim {row[0]}
      %columns = tir.dim {column[0]}
      tir.for (%i, %j) in (%n, %m) {{
        tir.block "B" (%vi = spatial %i in %n, %vj = spatial %j in %m) {{
          %x = tir.load %A[%vi, %vj]
          %row = arith.{row[1]} %rows, %vi : index
          %column = arith.{column[1]} %columns, %vj : index
          tir.store %x, %Y[%row, %column]
        }}
      }}
      tir.for (%i, %j) in (%m, %n) {{
        tir.block "C" (%vi = spatial %i in %m, %vj = spatial %j in %n) {{
          %row = arith.{row[1]} %rows, %vj : index
          %column = arith.{column[1]} %columns, %vi : index
          %y = tir.load %Y[%row, %column]
          %z = arith.addi %y, %y : i32
          tir.store %z, %Z[%vi, %vj]
        }}
      }}
    }}""")


@pytest.mark.parametrize("factor", [None, 4])
@pytest.mark.parametrize(
    ("shape", "row", "column"),
    [
        (("n", "m"), ("n - 1", "subi"), ("m - 1", "subi")),
        (("n + 2", "2 * m"), ("2", "addi"), ("m", "addi")),
        (("n + 3", "m"), ("n + 1", "subi"), ("0", "addi")),
    ],
)
def test_compute_at_of_a_producer_that_counts_from_elsewhere(shape, row, column, factor):
    def transform(sch):
        i, _ = sch.get_loops(sch.get_block("C"))
        if factor is not None:
            i, _ = sch.split(i, [None, factor])
        sch.compute_at(sch.get_block("B"), i)

    sch = scheduled(producer_at(*shape, row, column), transform)
    assert home(sch, "Y") is not None
    assert len(sch.get_loops(sch.get_block("B"))) == (2 if factor is None else 3)


@pytest.mark.parametrize("tile", [2, 4, 8])
def test_compute_at_of_tiles(tile):
    """A block of blocks, which makes a tile of four rows at a time, at loops over more and over fewer rows."""
    x = te.placeholder((4 * n, m), "i32", "X")
    b = te.compute((4 * n, m), lambda i, j: x[4 * n - 1 - i, j] * 2, name="B")
    c = te.compute((4 * n, m), lambda i, j: b[i, j] + 1, name="C")

    def transform(sch):
        inner = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 4])[1]
        sch.blockize(inner)
        rows = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, tile])[0]
        sch.compute_at(sch.get_block("B_o"), rows)

    scheduled(te.create_prim_func([x, c], name="tiles"), transform)


def test_compute_at_of_scattered_elements():
    def transform(sch):
        spread = "(i, j) -> (i, 2 * j + 1)"
        sch.transform_layout(sch.get_block("B"), "Y", spread, assume_injective_transform=True)
        sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0])

    func = producer_at("n", "m", ("n - 1", "subi"), ("m - 1", "subi"))
    scheduled(func, transform)
    sch = Schedule(func)
    sch.transform_layout(sch.get_block("B"), "Y", "(i, j) -> (i, i + j)", assume_injective_transform=True)
    message = 'stores to buffer "Y" at other indices than its iterators, each once, or multiples of them'
    refuses(sch, message, "compute_at", sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0])


def test_compute_at_refusals():
    sch = Schedule(elementwise())
    b, c = sch.get_block("B"), sch.get_block("C")
    refuses(sch, 'buffer "C" is a parameter or a view', "compute_at", c, sch.get_loops(b)[0])
    refuses(sch, 'block "B" is already inside of loop "i"', "compute_at", b, sch.get_loops(b)[0])


def test_compute_at_refuses_consumers_elsewhere():
    b = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + 1, name="C")
    d = te.compute((n, m), lambda i, j: b[i, j] + 2, name="D")
    sch = Schedule(te.create_prim_func([A, c, d]))
    loop = sch.get_loops(sch.get_block("C"))[0]
    refuses(sch, 'block "D" reads buffer "B" outside of loop "i"', "compute_at", sch.get_block("B"), loop)


def test_compute_at_refuses_inputs_that_change():
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
    loop = sch.get_loops(sch.get_block("Y2"))[0]
    refuses(sch, 'block "Y2" writes an input of block "T" before it would run', "compute_at", sch.get_block("T"), loop)


@pytest.mark.parametrize("position", [0, 1])
def test_reverse_compute_at_a_loop_of_the_producer(position):
    def transform(sch):
        sch.reverse_compute_at(sch.get_block("C"), sch.get_loops(sch.get_block("B"))[position])

    sch = scheduled(elementwise(), transform)
    assert home(sch, "B") == "ij"[position]


@settings(max_examples=12)
@given(st.sampled_from([2, 4, 8]), st.sampled_from([2, 8]), st.integers(0, 3))
def test_epilogue_at_a_tile_of_a_matmul(rows, columns, position):
    def transform(sch):
        i, j, r = sch.get_loops(sch.get_block("C"))
        nest = sch.tile(i, j, [rows, columns])
        sch.split(r, [None, 4])
        sch.reverse_compute_at(sch.get_block("D"), nest[position])

    scheduled(matmul_with_epilogue(), transform)


def test_reverse_compute_at_of_broadcast_and_transposed_reads():
    b = te.compute((n, m), lambda i, j: A[i, j] * 2, name="B")
    c = te.compute((m, k, n), lambda j, p, i: b[i, j] + te.cast(p, "i32"), name="C")
    func = te.create_prim_func([A, c])
    for position in (0, 1):
        scheduled(
            func,
            lambda sch, p=position: sch.reverse_compute_at(sch.get_block("C"), sch.get_loops(sch.get_block("B"))[p]),
        )


def test_reverse_compute_at_of_a_reduction_over_what_is_complete():
    def transform(sch):
        i, _ = sch.get_loops(sch.get_block("shifted"))
        sch.reverse_compute_at(sch.get_block("total"), i)
        sch.reverse_compute_at(sch.get_block("out"), i)

    scheduled(softmax(), transform)


def test_reverse_compute_at_refusals():
    sch = Schedule(matmul_with_epilogue())
    c, d = sch.get_block("C"), sch.get_block("D")
    i, j, r = sch.get_loops(c)
    refuses(sch, 'buffer "C" is complete only after loop "r"', "reverse_compute_at", d, r)
    refuses(sch, 'block "C" comes before loop "i"', "reverse_compute_at", c, sch.get_loops(d)[0])
    sch.reorder(r, i, j)
    refuses(sch, 'which drives a reduce iterator of block "C"', "reverse_compute_at", d, j)


def test_reverse_compute_at_refuses_needs_of_other_iterations():
    sch = Schedule(blur())
    loop = sch.get_loops(sch.get_block("B"))[0]
    refuses(
        sch,
        'block "C" reads elements of buffer "B" that other iterations of loop "i" write',
        "reverse_compute_at",
        sch.get_block("C"),
        loop,
    )


def test_reverse_compute_at_refuses_values_used_in_between():
    sch = Schedule(softmax())
    loop = sch.get_loops(sch.get_block("shifted"))[0]
    refuses(
        sch, 'block "total" writes an input of block "out" before it', "reverse_compute_at", sch.get_block("out"), loop
    )


def test_unused_producer():
    sch = Schedule(matmul())
    assert sch.get_child_blocks(sch.get_loops(sch.get_block("C"))[0]) == (sch.get_block("C"),)
    assert sch.get_child_blocks() == sch.get_blocks()
    assert sch.get_block("C", func_name="main") == sch.get_block("C")


def test_the_function_as_the_block_around_it():
    sch = Schedule(elementwise())
    root = sch.get_block("root")
    assert [block.name for block in sch.get_child_blocks(root)] == ["B", "C"]
    assert [block.name for block in sch.get_output_blocks("root")] == ["C"]
    outer = sch.blockize(sch.get_loops("B")[0])
    assert [block.name for block in sch.get_child_blocks(root)] == ["B_o", "C"], "not what is inside of those"
    assert [block.name for block in sch.get_child_blocks(outer)] == ["B"]
    assert [block.name for block in sch.get_output_blocks("root")] == ["C"], "B is allocated in the function"
    assert [block.name for block in sch.get_output_blocks(outer)] == ["B"], "and outside of the block around it"
    last = sch.blockize(sch.get_loops("C")[0])
    assert [block.name for block in sch.get_output_blocks("root")] == ["C_o", "C"], "a block writes what those in it do"
    assert [block.name for block in sch.get_output_blocks(last)] == ["C"]
    refuses(sch, '"root" is the function, which no block is around', "get_loops", root)
    assert [block.name for block in sch.copy().get_child_blocks(root)] == ["B_o", "C_o"]
    again = Schedule(elementwise())
    sch.trace.replay(again)
    assert str(again.func) == str(sch.func)


def test_the_place_in_a_loop():
    def transform(sch):
        i, _ = sch.get_loops("C")
        sch.compute_at("B", i, preserve_unit_loops=True, index=0)
        assert [loop.name for loop in sch.get_loops("B")] == ["i", "i", "j"]
        refuses(
            sch, 'expected an index of 2 to 2, or -1 or -2, in loop "i", got 0', "reverse_compute_at", "D", i, index=0
        )
        sch.reverse_compute_at("D", i, index=-2)
        assert [block.name for block in sch.get_child_blocks(i)] == ["B", "C", "D"]

    b = te.compute((n, m), lambda i, j: A[i, j] + 1, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] * 2, name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] + 3, name="D")
    scheduled(te.create_prim_func([A, d]), transform)


def in_blocks(halves):
    """A buffer in blocks of four, and a consumer of its elements in a row, or in blocks of two."""
    x = te.placeholder((n, 4), "i32", "X")
    b = te.compute((n, 4), lambda i, j: x[i, j] + 1, name="B")
    if halves:
        c = te.compute((n * 2, 2), lambda v, w: b[(v * 2 + w) // 4, (v * 2 + w) % 4] * 2, name="C")
    else:
        c = te.compute((n * 4,), lambda v: b[v // 4, v % 4] * 2, name="C")
    return te.create_prim_func([x, c], name="blocks")


@pytest.mark.parametrize(("halves", "position", "extents"), [(False, 0, [4]), (False, 1, []), (True, 0, [2, 2])])
def test_reverse_compute_at_of_quotients_and_remainders(halves, position, extents):
    def transform(sch):
        sch.reverse_compute_at(sch.get_block("C"), sch.get_loops(sch.get_block("B"))[position])

    sch = scheduled(in_blocks(halves), transform, [{"n": 1}, {"n": 5}, {"n": 0}])
    loops = sch.get_loops(sch.get_block("C"))[position + 1 :]
    assert [sch.extent(loop.op).constant_value for loop in loops] == extents


def test_reverse_compute_at_refuses_remainders_alone():
    sch = Schedule(in_blocks(False))
    i, j = sch.get_loops(sch.get_block("B"))
    sch.reorder(j, i)
    message = 'block "C" reads elements of buffer "B" that other iterations of loop "j" write'
    refuses(sch, message, "reverse_compute_at", sch.get_block("C"), j)
