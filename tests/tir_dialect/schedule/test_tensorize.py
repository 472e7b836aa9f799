"""tensorize."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import elementwise, k, m, matmul, n, scheduled
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.schedule import Schedule
from tir_dialect.schedule.primitives.tensorizing import TensorIntrin, register_tensor_intrin

SIZES = ({"n": 4, "m": 8, "k": 2}, {"n": 8, "m": 16, "k": 4})


def multiply_add_4x8x2():
    a, b = te.placeholder((4, 2), "i32", "A"), te.placeholder((2, 8), "i32", "B")
    r = te.reduce_axis(2, "r")
    c = te.compute((4, 8), lambda i, j: te.sum(a[i, r] * b[r, j], r), name="C")
    sch = Schedule(te.create_prim_func([a, b, c], name="description"))
    block = sch.get_block("C")
    init = sch.decompose_reduction(block, sch.get_loops(block)[0])
    for loop in reversed(sch.get_loops(init)):
        loop.op.detach()
    return sch.func


IMPLEMENTATION = """
tir.prim_func @implementation(
  %A: !tir.buffer<[4, 2], i32>, %B: !tir.buffer<[2, 8], i32>, %C: !tir.buffer<[4, 8], i32>
) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  tir.for (%i, %r) in (%c4, %c2) {
    %a = tir.load %A[%i, %r]
    %wide = vector.broadcast %a : i32 to vector<8xi32>
    %b = tir.load %B[%r, %c0] : vector<8xi32>
    %c = tir.load %C[%i, %c0] : vector<8xi32>
    %p = arith.muli %wide, %b : vector<8xi32>
    %s = arith.addi %c, %p : vector<8xi32>
    tir.store %s, %C[%i, %c0]
  }
}
"""

DOUBLE = """
tir.prim_func @double(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[8], i32>) {
  %c8 = arith.constant 8 : index
  tir.for (%i) in (%c8) {
    tir.block "double" (%vi = spatial %i in %c8) {
      %a = tir.load %A[%vi]
      %two = arith.constant 2 : i32
      %p = arith.muli %a, %two : i32
      tir.store %p, %B[%vi]
    }
  }
}
"""

DOUBLE_BY_VECTORS = """
tir.prim_func @double_by_vectors(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[8], i32>) {
  %c0 = arith.constant 0 : index
  %a = tir.load %A[%c0] : vector<8xi32>
  %s = arith.addi %a, %a : vector<8xi32>
  tir.store %s, %B[%c0]
}
"""


@pytest.fixture(autouse=True)
def _intrinsics():
    register_tensor_intrin(TensorIntrin("multiply_add_4x8x2", multiply_add_4x8x2(), parse_prim_func(IMPLEMENTATION)))
    register_tensor_intrin(TensorIntrin("double_8", parse_prim_func(DOUBLE), parse_prim_func(DOUBLE_BY_VECTORS)))


def exact_matmul():
    a, b = te.placeholder((4 * n, 2 * k), "i32", "A"), te.placeholder((2 * k, 8 * m), "i32", "B")
    r = te.reduce_axis(2 * k, "r")
    c = te.compute((4 * n, 8 * m), lambda i, j: te.sum(a[i, r] * b[r, j], r), name="C")
    return te.create_prim_func([a, b, c])


def tiles(sch, factors=(4, 8, 2)):
    block = sch.get_block("C")
    nest = [sch.split(loop, [None, factor]) for loop, factor in zip(sch.get_loops(block), factors, strict=True)]
    outer, inner = zip(*nest, strict=True)
    sch.reorder(*outer, *inner)
    return outer, inner


def test_tile_of_a_matmul():
    def transform(sch):
        outer, inner = tiles(sch)
        block = sch.tensorize(inner[0], "multiply_add_4x8x2")
        sch.decompose_reduction(block, outer[2])
        sch.parallel(outer[0])

    sch = scheduled(exact_matmul(), transform)
    assert sum(op.name == "tir.match_buffer" for op in sch.func.walk()) == 3


def test_tile_of_packed_buffers():
    def transform(sch):
        block = sch.get_block("C")
        sch.pad_einsum(block, [4, 8, 2])
        copy = sch.get_block("B_pad")
        sch.transform_layout(copy, 0, lambda r, j: (j // 8, r, j % 8))
        _, inner = tiles(sch)
        refuses(sch, "accesses buffer", "tensorize", inner[0], "multiply_add_4x8x2")
        sch.blockize(inner[0])

    scheduled(matmul(), transform)


def test_tile_of_padded_buffers():
    def transform(sch):
        sch.pad_einsum(sch.get_block("C"), [4, 8, 2])
        sch.tensorize(tiles(sch)[1][0], "multiply_add_4x8x2")

    scheduled(matmul(), transform)


def test_row_of_an_elementwise_block():
    a = te.placeholder((n, 8 * m), "i32", "A")
    b = te.compute((n, 8 * m), lambda i, j: a[i, j] * 2, name="B")

    def transform(sch):
        _, j = sch.get_loops(sch.get_block("B"))
        _, j1 = sch.split(j, [None, 8])
        sch.tensorize(sch.blockize(j1), "double_8")

    scheduled(te.create_prim_func([a, b]), transform)


def test_tensorize_refusals():
    sch = Schedule(exact_matmul())
    outer, inner = tiles(sch, (4, 8, 4))
    message = 'expected a registered tensor intrinsic, got "none"; there are double_8, multiply_add_4x8x2'
    refuses(sch, message, "tensorize", inner[0], "none")
    refuses(sch, 'has loop "r1" to 4, the description one to 2', "tensorize", inner[0], "multiply_add_4x8x2")
    refuses(sch, "has 2 loops, the description has 3", "tensorize", inner[1], "multiply_add_4x8x2")
    sch = Schedule(elementwise())
    loop = sch.split(sch.get_loops(sch.get_block("C"))[1], [None, 8])[1]
    refuses(sch, 'the content of block "C_o" has a condition', "tensorize", loop, "double_8")
    b = te.compute((n, 8 * m), lambda i, j: te.cast(i + j, "i32"), name="B")
    sch = Schedule(te.create_prim_func([b]))
    loop = sch.split(sch.get_loops(sch.get_block("B"))[1], [None, 8])[1]
    refuses(sch, "or other ops than the description", "tensorize", loop, "double_8")
    assert len(outer) == 3


WHOLE = """
tir.prim_func @double(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[8], i32>) {
  tir.block "root" annotations {note} {
    %c0 = arith.constant 0 : index
    %a = tir.load %A[%c0] : vector<8xi32>
    %s = arith.addi %a, %a : vector<8xi32>
    tir.store %s, %B[%c0]
  }
}
"""


def test_annotations_of_an_implementation_that_is_one_block():
    of_one_element = DOUBLE.replace("in %c8) {\n      %a", "in %c8) annotations {note} {\n      %a")
    assert of_one_element != DOUBLE
    for name, text, expected in (("whole", WHOLE, "{note}"), ("element", of_one_element, "None")):
        register_tensor_intrin(TensorIntrin(name, parse_prim_func(DOUBLE), parse_prim_func(text)))
        a = te.placeholder((8 * m,), "i32", "A")
        sch = Schedule(te.create_prim_func([a, te.compute((8 * m,), lambda i, a=a: a[i] * 2, name="B")]))
        inner = sch.split(sch.get_loops("B")[0], [None, 8])[1]
        assert str(sch.tensorize(inner, name).op.annotations) == expected


DOUBLE_IN_TWO_STEPS = """
tir.prim_func @double_in_two_steps(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[8], i32>) {
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i32
  tir.for (%i) in (%c8) {
    tir.store %zero, %B[%i]
  }
  tir.for (%i) in (%c8) {
    %a = tir.load %A[%i]
    %b = tir.load %B[%i]
    %s = arith.addi %a, %b : i32
    %t = arith.addi %a, %s : i32
    tir.store %t, %B[%i]
  }
}
"""

IN_PLACE = """
tir.prim_func @in_place[%n](%A: !tir.buffer<[2, 8 * n], i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2 : i32
  %e = tir.dim 8 * n
  tir.for (%i) in (%e) {
    tir.block "C" (%v = spatial %i in %e) {
      %a = tir.load %A[%c0, %v]
      %p = arith.muli %a, %two : i32
      tir.store %p, %A[%c0, %v]
    }
  }
}
"""


def innermost(sch, factor=8):
    return sch.split(sch.get_loops("C")[0], [None, factor])[1]


def test_tiles_overlap_only_where_they_are_read():
    register_tensor_intrin(TensorIntrin("steps", parse_prim_func(DOUBLE), parse_prim_func(DOUBLE_IN_TWO_STEPS)))
    sch = Schedule(parse_prim_func(IN_PLACE))
    message = 'the tiles of parameters "A" and "B" may overlap in buffer "A", and one of them is written'
    refuses(sch, message, "tensorize", innermost(sch), "steps")
    between_rows = parse_prim_func(IN_PLACE.replace("store %p, %A[%c0", "store %p, %A[%c1"))
    scheduled(between_rows, lambda sch: sch.tensorize(innermost(sch), "steps"), ({"n": 0}, {"n": 1}, {"n": 3}))
    square = parse_prim_func(SQUARE)
    register_tensor_intrin(TensorIntrin("multiply", parse_prim_func(MULTIPLY), parse_prim_func(MULTIPLY)))
    scheduled(square, lambda sch: sch.tensorize(innermost(sch), "multiply"), ({"n": 0}, {"n": 1}, {"n": 3}))


SQUARE = """
tir.prim_func @square[%n](%A: !tir.buffer<[8 * n], i32>, %B: !tir.buffer<[8 * n], i32>) {
  %e = tir.dim 8 * n
  tir.for (%i) in (%e) {
    tir.block "C" (%v = spatial %i in %e) {
      %a = tir.load %A[%v]
      %b = tir.load %A[%v]
      %p = arith.muli %a, %b : i32
      tir.store %p, %B[%v]
    }
  }
}
"""

MULTIPLY = """
tir.prim_func @multiply(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[8], i32>, %C: !tir.buffer<[8], i32>) {
  %c8 = arith.constant 8 : index
  tir.for (%i) in (%c8) {
    tir.block "multiply" (%v = spatial %i in %c8) {
      %a = tir.load %A[%v]
      %b = tir.load %B[%v]
      %p = arith.muli %a, %b : i32
      tir.store %p, %C[%v]
    }
  }
}
"""


def test_copies_of_schedules_with_implementations_that_bring_their_bounds():
    three_times = DOUBLE_IN_TWO_STEPS.replace("tir.for (%i) in (%c8)", "tir.for (%z, %i) in (%c3, %c8)", 1)
    three_times = three_times.replace("  %zero", "  %c3 = arith.constant 3 : index\n  %zero", 1)
    register_tensor_intrin(TensorIntrin("steps", parse_prim_func(DOUBLE), parse_prim_func(three_times)))
    sch = Schedule(parse_prim_func(IN_PLACE.replace("store %p, %A[%c0", "store %p, %A[%c1")))
    block = sch.tensorize(innermost(sch), "steps")
    assert sch.copy().get(block) is not block.op


def test_tiles_stay_in_buffers():
    half = DOUBLE.replace("[8]", "[16]")
    register_tensor_intrin(TensorIntrin("half", parse_prim_func(half), parse_prim_func(half)))
    sch = Schedule(parse_prim_func(IN_PLACE.replace("store %p, %A[%c0", "store %p, %A[%c1")))
    refuses(sch, 'the tile of buffer "A" may reach behind its end', "tensorize", innermost(sch), "half")


def test_description_with_a_condition():
    text = DOUBLE.replace(
        "tir.block", "%c1 = arith.constant 1 : index\n    %c = arith.cmpi sge, %i, %c1 : index\n    tir.block"
    )
    text = text.replace("in %c8) {\n      %a", "in %c8) where %c {\n      %a")
    register_tensor_intrin(TensorIntrin("some", parse_prim_func(text), parse_prim_func(text)))
    sch = Schedule(parse_prim_func(IN_PLACE.replace("store %p, %A[%c0", "store %p, %A[%c1")))
    refuses(sch, "has a condition", "tensorize", innermost(sch), "some")


def test_implementation_that_needs_other_strides():
    rows = """
    tir.prim_func @rows(%A: !tir.buffer<[4, 2], i32>, %B: !tir.buffer<[4, 2], i32>) {
      %c4 = arith.constant 4 : index
      %c2 = arith.constant 2 : index
      tir.for (%i, %j) in (%c4, %c2) {
        tir.block "copy" (%v = spatial %i in %c4, %w = spatial %j in %c2) {
          %a = tir.load %A[%v, %w]
          tir.store %a, %B[%v, %w]
        }
      }
    }
    """
    flat = """
    tir.prim_func @flat(%A: !tir.buffer<[4, 2], i32>, %B: !tir.buffer<[4, 2], i32>) {
      %c8 = arith.constant 8 : index
      %F = tir.flatten %A
      %G = tir.flatten %B
      tir.for (%i) in (%c8) {
        %a = tir.load %F[%i]
        tir.store %a, %G[%i]
      }
    }
    """
    register_tensor_intrin(TensorIntrin("flat", parse_prim_func(rows), parse_prim_func(flat)))
    for width in (2 * m, 4):
        a = te.placeholder((4 * n, width), "i32", "A")
        sch = Schedule(te.create_prim_func([a, te.compute((4 * n, width), lambda i, j, a=a: a[i, j], name="C")]))
        _, inner = tiles(sch, (4, 2))
        refuses(sch, 'the implementation of intrinsic "flat" does not fit here', "tensorize", inner[0], "flat")


def test_intrinsics_fit_together():
    with pytest.raises(ValueError, match="expected two functions with the same parameters"):
        register_tensor_intrin(TensorIntrin("bad", parse_prim_func(DOUBLE), parse_prim_func(IMPLEMENTATION)))
