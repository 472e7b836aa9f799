"""transform_layout and the maps that it takes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import check_valid, elementwise, k, m, matmul, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.test_storage import allocations
from tir_dialect import te
from tir_dialect.dims import symbol
from tir_dialect.interpreter import run_prim_func
from tir_dialect.schedule import Schedule
from tir_dialect.schedule.index_map import IndexMap
from tir_dialect.schedule.trace import load, save

TILED = "(i, j) -> (floordiv(i, 4), floordiv(j, 8), mod(i, 4), mod(j, 8))"


def test_map_of_text_and_functions():
    assert IndexMap.of(TILED) == IndexMap.of(lambda i, j: (i // 4, j // 8, i % 4, j % 8))
    assert str(IndexMap.of(TILED)) == TILED
    assert str(IndexMap.of("(i) -> (i)")) == "(i) -> (i)"
    assert (
        IndexMap.of(lambda *outer, i: (*outer, i // 4, i % 4), rank=3).outputs
        == IndexMap.of(lambda outer0, outer1, i: (outer0, outer1, i // 4, i % 4)).outputs
    )


@pytest.mark.parametrize("text", ["(i, j)", "(i, i) -> (i)", "(i) -> i", "(i) -> (i +)", "(1) -> (0)"])
def test_text_that_is_no_map(text):
    with pytest.raises(ValueError, match=r"index map|in parentheses"):
        IndexMap.of(text)


@pytest.mark.parametrize(
    ("index_map", "shape"),
    [
        ("(i, j) -> (j, i)", "[m, n]"),
        (TILED, "[floordiv(n + 3, 4), floordiv(m + 7, 8), 4, 8]"),
        ("(i, j) -> (m * i + j)", "[m * n]"),
        ("(i, j) -> (j, 2 * i)", "[m, max(0, 2 * n - 1)]"),
        (lambda i, j: (i // 4, j, i % 4), "[floordiv(n + 3, 4), m, 4]"),
        (lambda i, j: (n - 1 - i, m - 1 - j), "[n, m]"),
        (lambda i, j: (j, (n - 1 - i) // 4, (n - 1 - i) % 4), "[m, floordiv(n + 3, 4), 4]"),
    ],
)
def test_layouts_of_an_intermediate(index_map, shape):
    sizes = ({"n": 1, "m": 1, "k": 1}, {"n": 7, "m": 13, "k": 5}, {"n": 8, "m": 16, "k": 4})
    sch = scheduled(elementwise(), lambda sch: sch.transform_layout(sch.get_block("B"), 0, index_map), sizes)
    assert allocations(sch) == {"B": f"!tir.buffer<{shape}, i32>"}


def test_layouts_from_the_end():
    """Elements counted from the end are written in parallel, and positions that are free are told."""

    def transform(sch):
        sch.transform_layout("B", "B", lambda i, j: ((n - 1 - i) // 4, j, (n - 1 - i) % 4), pad_value=3)
        sch.transform_block_layout("C", lambda i, j: (i // 4, 3 - i % 4, m - 1 - j))
        sch.parallel(sch.get_loops("B")[0])
        sch.parallel(sch.get_loops("C")[0])

    scheduled(elementwise(), transform)
    func = half_written()
    sch = Schedule(func.clone())
    sch.transform_layout("Y", "Y", lambda i, j: (i, (symbol("m") - 1 - j) // 4, (symbol("m") - 1 - j) % 4), pad_value=9)
    a, want, got = np.ones((3, 5), np.float32), np.zeros((6, 5), np.float32), np.zeros((6, 2, 4), np.float32)
    run_prim_func(func, [a, want])
    run_prim_func(sch.func, [a, got])
    flat = got.reshape(6, 8)
    np.testing.assert_array_equal(flat, np.pad(want[:, ::-1], ((0, 0), (0, 3)), constant_values=9))


def test_padding_of_a_layout_is_filled():
    def transform(sch):
        sch.transform_layout("B", ("write", 0), lambda *ij: (ij[0] // 4, ij[1], ij[0] % 4), pad_value=-7)
        assert [block.name for block in sch.get_blocks()] == ["B_pad", "B", "C"]

    scheduled(elementwise(), transform)
    sch = Schedule(elementwise())
    message = "expected a map of 2 indices to one number to pad with, got (i, j) -> (i, j)"
    refuses(sch, message, "transform_layout", "B", "B", "(i, j) -> (j, i)", lambda i, j: (i, j))
    message = 'the number to pad with uses "q", which is no symbol of the function'
    refuses(sch, message, "transform_layout", "B", "B", "(i, j) -> (j, i)", "(i, j) -> (q + i)")
    for value in (1.5, float("nan"), float("inf"), 1 << 31):
        message = f"expected a number of i32 to pad with, got {value}"
        refuses(sch, message, "transform_layout", "B", "B", "(i, j) -> (floordiv(i, 4), j, mod(i, 4))", value)
    sch.transform_layout("B", "B", "(i, j) -> (j, i)", pad_value=np.int8(0))
    assert [block.name for block in sch.get_blocks()] == ["B", "C"]


def test_packed_panels_of_a_matmul():
    def transform(sch):
        block = sch.get_block("C")
        copy = sch.cache_read(block, "B")
        sch.transform_layout(copy, 0, lambda r, j: (j // 8, r, j % 8))
        i, j, _ = sch.get_loops(block)
        i0, _, _, j1 = sch.tile(i, j, [4, 8])
        sch.parallel(i0)
        sch.vectorize(j1)

    sch = scheduled(matmul(), transform)
    assert allocations(sch) == {"B_global": "!tir.buffer<[floordiv(m + 7, 8), k, 8], i32>"}


def test_simple_indices_stay_simple():
    def transform(sch):
        sch.transform_layout(sch.get_block("B"), 0, "(i, j) -> (m * i + j)")
        sch.transform_layout(sch.get_block("B"), 0, "(x) -> (floordiv(x, m), mod(x, m))")

    a = te.placeholder((n, m), "i32", "A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + 1, name="C")
    func = te.create_prim_func([a, c], bounds={"n": (1, None), "m": (1, None)})
    sizes = ({"n": 1, "m": 1, "k": 1}, {"n": 7, "m": 13, "k": 5})
    sch = scheduled(func, transform, sizes)
    assert allocations(sch) == {"B": "!tir.buffer<[n, m], i32>"}


def test_layout_refusals():
    sch = Schedule(elementwise())
    b = sch.get_block("B")
    refuses(sch, "expected an index map of 2 indices, got (i) -> (i)", "transform_layout", b, 0, "(i) -> (i)")
    refuses(sch, "may map two elements to the same index", "transform_layout", b, 0, "(i, j) -> (i)")
    refuses(sch, "may map two elements to the same index", "transform_layout", b, 0, "(i, j) -> (i + j)")
    refuses(sch, 'uses "q", which is no symbol', "transform_layout", b, 0, "(i, j) -> (i, j + q)")
    refuses(sch, "is not known to be at least 0", "transform_layout", b, 0, "(i, j) -> (i, j - 1)")
    refuses(sch, "expected an index map such as", "transform_layout", b, 0, "(i, j)")


def test_layouts_of_parameters():
    func = elementwise()
    sch = Schedule(func.clone())
    sch.transform_layout("B", "A", "(i, j) -> (j, i)")
    sch.transform_layout("C", "C", "(i, j) -> (floordiv(j, 4), i, mod(j, 4))", pad_value=9)
    check_valid(sch.func)
    a = np.arange(15, dtype=np.int32).reshape(3, 5)
    want, got = np.empty((3, 5), np.int32), np.empty((2, 3, 4), np.int32)
    run_prim_func(func, [a, want])
    run_prim_func(sch.func, [np.ascontiguousarray(a.T), got])
    flat = got.transpose(1, 0, 2).reshape(3, 8)
    np.testing.assert_array_equal(flat, np.pad(want, ((0, 0), (0, 3)), constant_values=9))


def half_written():
    """Writes every other row of a parameter; the rest stays the caller's."""
    return parse_prim_func("""
    tir.prim_func @f[%n, %m](%A: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[2 * n, m], f32>) {
      %c2 = arith.constant 2 : index
      tir.for (%i, %j) in (%n, %m) {
        tir.block "Y" (%vi = spatial %i in %n, %vj = spatial %j in %m) {
          %a = tir.load %A[%vi, %vj]
          %row = arith.muli %vi, %c2 : index
          tir.store %a, %Y[%row, %vj]
        }
      }
    }""")


@pytest.mark.parametrize("padding", [7, lambda p, i, q: 100 * p + 10 * i + q + symbol("m")])
@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (1, 1), (2, 8), (0, 3)])
def test_padding_of_a_parameter_leaves_its_elements(rows, columns, padding):
    func = half_written()
    sch = Schedule(func.clone())
    sch.transform_layout("Y", "Y", "(i, j) -> (floordiv(j, 4), i, mod(j, 4))", pad_value=padding)
    again = Schedule(func.clone())
    load(save({"f": sch.trace}))["f"].replay(again)
    assert str(again.func) == str(sch.func)
    panels = -(-columns // 4)
    a = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    want, got = np.full((2 * rows, columns), -1, np.float32), np.full((panels, 2 * rows, 4), -1, np.float32)
    run_prim_func(func, [a, want])
    run_prim_func(sch.func, [a, got])
    p, i, q = np.indices(got.shape)
    free = p * 4 + q >= columns
    np.testing.assert_array_equal(got[free], 7 if padding == 7 else (100 * p + 10 * i + q + columns)[free])
    np.testing.assert_array_equal(got.transpose(1, 0, 2).reshape(2 * rows, 4 * panels)[:, :columns], want)


def test_padding_of_a_parameter_whose_free_places_are_not_told():
    sch = Schedule(half_written())
    message = 'cannot determine which elements of buffer "Y" are unused by index map (i, j) -> (2 * i, j)'
    refuses(sch, message, "transform_layout", "Y", "Y", "(i, j) -> (2 * i, j)", 0)


def test_layouts_of_parameters_that_callers_know():
    kind = "!tir.buffer<[n, m], i32>"
    caller = f"tir.prim_func @f[%n, %m](%A: {kind}, %C: {kind}) {{ tir.call @elementwise[%n, %m](%A, %C) }}"
    callee = parse_prim_func(f"{elementwise()!s}\n{caller}")
    message = "buffer \"A\" is a parameter, and 'tir.call' calls the function"
    refuses(Schedule(callee), message, "transform_layout", "B", "A", "(i, j) -> (j, i)")


def test_layout_refuses_indices_from_memory():
    a, at = te.placeholder((n, m), "i32", "A"), te.placeholder((n,), "i32", "at")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((n, m), lambda i, j: b[at[i], j] + 1, name="C")
    sch = Schedule(te.create_prim_func([a, at, c]))
    message = 'block "C" uses buffer "B" at indices that come from memory'
    refuses(sch, message, "transform_layout", sch.get_block("B"), 0, "(i, j) -> (j, i)")


@pytest.mark.parametrize(
    "index_map",
    [
        lambda i, j, r: (j, i, r),
        lambda i, j, r: (i // 4, j, i % 4, r // 8, r % 8),
        lambda i, j, r: (i * 6 + j, r),
    ],
)
def test_other_iterators_for_a_block(index_map):
    a, b = te.placeholder((10, k), "i32", "A"), te.placeholder((k, 6), "i32", "B")
    r = te.reduce_axis(k, "r")
    c = te.compute((10, 6), lambda i, j: te.sum(a[i, r] * b[r, j], r), name="C")

    def transform(sch):
        block = sch.get_block("C")
        sch.transform_block_layout(block, index_map)
        assert len(sch.get_loops(block)) == len(block.op.iterators)

    scheduled(te.create_prim_func([a, b, c]), transform, [{"k": 5}, {"k": 16}, {"k": 0}])


def test_other_iterators_refusals():
    sch = Schedule(matmul())
    refuses(sch, "mixes reduce and spatial iterators", "transform_block_layout", "C", lambda i, j, r: (i * k + r, j))
    refuses(sch, "cannot be inverted", "transform_block_layout", "C", lambda i, j, r: (2 * i, j, r))
    refuses(sch, "may map two elements to the same index", "transform_block_layout", "C", lambda i, j, r: (i, j))


def test_what_the_caller_answers_for():
    def transform(sch):
        skewed = "(i, j) -> (i + j, j)"
        refuses(sch, "may map two elements to the same index", "transform_layout", "B", "B", skewed)
        sch.transform_layout("B", "B", skewed, assume_injective_transform=True)

    scheduled(elementwise(), transform)
    B = te.compute((4, 4), lambda i, j: te.cast(i + j, "i32"), "B")
    sch, halves = Schedule(te.create_prim_func([B])), "(i, j) -> (floordiv(i, 2), j)"
    message = f"index map {halves} has 8 places for 16 elements"
    refuses(sch, message, "transform_layout", "B", 0, halves, assume_injective_transform=True)


EMPTY = ({"n": 0, "m": 3}, {"n": 2, "m": 0}, {"n": 3, "m": 2})


def test_of_a_buffer_without_elements_the_greatest_index_is_below_zero():
    sch = scheduled(elementwise(), lambda sch: sch.transform_layout("B", ("write", 0), "(i, j) -> (2 * i, j)"), EMPTY)
    assert "!tir.buffer<[max(0, 2 * n - 1), m], i32>" in str(sch.func)
    scheduled(elementwise(), lambda sch: sch.reindex_cache_read("C", 0, "local", "(i, j) -> (j, 2 * i)"), EMPTY)
