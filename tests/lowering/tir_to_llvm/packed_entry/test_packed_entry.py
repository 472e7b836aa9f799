"""The checked entry: right arguments run, every wrong one is named, and no wrong size reaches the kernel."""

import ctypes
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from tir_dialect.interpreter import run_prim_func

SCALE = """
tir.prim_func @scale[%n, %m in [1, 100]](%x: !tir.buffer<[n, m], f32>, %a: f32, %y: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j) in (%n, %m) {
    %v = tir.load %x[%i, %j]
    %w = arith.mulf %v, %a : f32
    tir.store %w, %y[%i, %j]
  }
}"""


@pytest.fixture
def scale(tir) -> tvm_ffi.Function:
    return compile_prim_funcs(tir(SCALE), cache=NO_CACHE).packed("scale")


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [np.arange(np.prod(shape), dtype="f4").reshape(shape) for shape in shapes]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(0, 1), (1, 1), (3, 7), (40, 100)])
def test_sizes_come_from_the_shapes_or_from_the_caller(shape: tuple[int, int], scale: tvm_ffi.Function):
    x, y = arrays(shape, shape)
    scale(tvm_ffi.from_dlpack(x), 2.5, tvm_ffi.from_dlpack(y))
    np.testing.assert_array_equal(y, x * np.float32(2.5))
    scale(*shape, tvm_ffi.from_dlpack(x), 3, tvm_ffi.from_dlpack(y))
    np.testing.assert_array_equal(y, x * np.float32(3))


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda x, y: (x, y), TypeError, "scale: expected 3 arguments (x, a, y), got 2"),
    (lambda x, y: (3, x, 1.0, y), TypeError, "scale: expected 3 arguments (x, a, y), got 4"),
    (lambda x, y: (1.0, 1.0, y), TypeError, "scale: argument #0 (x): expected a tensor, got float"),
    (lambda x, y: (None, 1.0, y), TypeError, "scale: argument #0 (x): expected a tensor, got null"),
    (lambda x, y: (x, "a", y), TypeError, "scale: argument #1 (a): expected a float, got string"),
    (lambda x, y: (x, x, y), TypeError, "scale: argument #1 (a): expected a float, got tensor"),
    (lambda x, y: (x[0], 1.0, y), TypeError, "scale: argument #0 (x): expected rank 2, got 1"),
    (lambda x, y: (x.astype("f8"), 1.0, y), TypeError, "argument #0 (x): expected dtype float32, got float64"),
    (lambda x, y: (x.astype(bool), 1.0, y), TypeError, "argument #0 (x): expected dtype float32, got bool"),
    (lambda x, y: (x.astype("u2"), 1.0, y), TypeError, "argument #0 (x): expected dtype float32, got uint16"),
    (
        lambda x, y: (x, 1.0, y[:2]),
        ValueError,
        "scale: argument #2 (y) dimension 0: expected n = 3 (from argument #0 (x) dimension 0), got 2",
    ),
    (lambda x, y: (x[:, :3], 1.0, y), ValueError, "argument #2 (y) dimension 1: expected m = 3 (from argument #0"),
    (lambda x, y: (x[:, :0], 1.0, y[:, :0]), ValueError, "dimension 1: expected m in the range 1 to 100, got 0"),
    (
        lambda x, y: (x.T, 1.0, y.T),
        ValueError,
        "scale: argument #0 (x): expected contiguous memory, got a gap along axis",
    ),
    (lambda x, y: (x[:, ::2], 1.0, y[:, :2].copy()), ValueError, "argument #0 (x): expected contiguous memory"),
    (lambda x, y: (3, 5, x, 1.0, y), ValueError, "argument #0 (x) dimension 1: expected m = 5, got 4"),
    (lambda x, y: (4, 4, x, 1.0, y), ValueError, "argument #0 (x) dimension 0: expected n = 4, got 3"),
    (lambda x, y: (-1, 4, x, 1.0, y), ValueError, "scale: size n: expected n in the range at least 0, got -1"),
    (lambda x, y: (3, 101, x, 1.0, y), ValueError, "scale: size m: expected m in the range 1 to 100, got 101"),
    (lambda x, y: (3, 4.0, x, 1.0, y), TypeError, "scale: size m: expected an int, got float"),
    (lambda x, y: (x, 1.0, x), ValueError, "scale: argument #2 (y): overlaps argument #0 (x): pass a copy"),
    (lambda x, y: (x[:2], 1.0, x[1:]), ValueError, "scale: argument #2 (y): overlaps argument #0 (x): pass a copy"),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("change", "kind", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_wrong_arguments(change: Any, kind: type[Exception], message: str, scale: tvm_ffi.Function):
    x, y = arrays((3, 4), (3, 4))
    values = [tvm_ffi.from_dlpack(v) if isinstance(v, np.ndarray) else v for v in change(x, y)]
    before = y.copy()
    with pytest.raises(kind) as caught:
        scale(*values)
    assert message in str(caught.value)
    np.testing.assert_array_equal(y, before)


def test_misaligned_memory(scale: tvm_ffi.Function):
    raw = np.zeros(65, np.uint8)
    x = raw[1:].view("f4").reshape(4, 4)
    with pytest.raises(ValueError, match="expected memory aligned to 4 bytes, got remainder"):
        scale(tvm_ffi.from_dlpack(x), 1.0, tvm_ffi.from_dlpack(np.zeros((4, 4), "f4")))


def test_alignment_of_a_parameter_is_not_relied_on(tir):
    """TVM prints `align=64` for every buffer; arrays of NumPy begin at multiples of 16 bytes."""
    text = SCALE.replace("f32>, %a", "f32, align = 64>, %a").replace("f32>) {", "f32, align = 64>) {")
    library = compile_prim_funcs(tir(text), cache=NO_CACHE)
    x, y = (np.ones(35, "f4")[1:].reshape(2, 17) for _ in range(2))
    library.packed("scale")(tvm_ffi.from_dlpack(x), 2.0, tvm_ffi.from_dlpack(y))
    np.testing.assert_array_equal(y, 2 * x)


def test_neighbours_do_not_overlap(scale: tvm_ffi.Function):
    memory = np.ones(24, "f4")
    scale(tvm_ffi.from_dlpack(memory[:12].reshape(3, 4)), 2.0, tvm_ffi.from_dlpack(memory[12:].reshape(3, 4)))
    np.testing.assert_array_equal(memory, [1] * 12 + [2] * 12)


def test_tensors_without_elements_overlap_with_nothing(tir):
    text = """
tir.prim_func @first[%m, %n](%x: !tir.buffer<[m], f32>, %y: !tir.buffer<[n], f32>) {
  %one = arith.constant 1.0 : f32
  tir.for (%i) in (%n) {
    tir.store %one, %y[%i]
  }
}"""
    first = compile_prim_funcs(tir(text), cache=NO_CACHE).packed("first")
    memory = np.zeros(8, "f4")
    first(tvm_ffi.from_dlpack(memory[3:3]), tvm_ffi.from_dlpack(memory))
    assert memory.all()
    first(tvm_ffi.from_dlpack(memory), tvm_ffi.from_dlpack(memory[3:3]))
    with pytest.raises(ValueError, match=r"argument #1 \(y\): overlaps argument #0 \(x\)"):
        first(tvm_ffi.from_dlpack(memory[3:4]), tvm_ffi.from_dlpack(memory))


STRIDED = """
tir.prim_func @strided[%s](%x: !tir.buffer<[2, 4], f32, strides = [s, -1], offset = 3>, %y: !tir.buffer<[2, 4], f32>) {
  %two = tir.dim 2
  %four = tir.dim 4
  tir.for (%i, %j) in (%two, %four) {
    %v = tir.load %x[%i, %j]
    tir.store %v, %y[%i, %j]
  }
}"""


def test_memory_that_is_read_backwards_does_not_overlap(tir):
    copy = compile_prim_funcs(tir(STRIDED), cache=NO_CACHE).packed("strided")
    memory = np.arange(40, dtype="f4")
    x = memory[10:30].reshape(2, 10)[:, :4][:, ::-1]  # from element 10 to before 24
    for begin in range(32):
        y = memory[begin : begin + 8].reshape(2, 4)
        if begin + 8 <= 10 or begin >= 24:
            expected = x.copy()
            copy(10, tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))
            np.testing.assert_array_equal(y, expected)
        else:
            with pytest.raises(ValueError, match=r"argument #1 \(y\): overlaps argument #0 \(x\)"):
                copy(10, tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))


COMPOUND = """
tir.prim_func @f[%n, %m](%x: !tir.buffer<[2 * n + 1, m], i32>, %y: !tir.buffer<[n, m * n], i32>) {
  %zero = arith.constant 0 : index
  tir.for (%i, %j) in (%n, %m) {
    %v = tir.load %x[%i, %j]
    tir.store %v, %y[%i, %j]
  }
}"""


def test_sizes_are_solved_for(tir):
    f = compile_prim_funcs(tir(COMPOUND), cache=NO_CACHE).packed("f")

    def call(first: tuple[int, ...], second: tuple[int, ...], *sizes: int) -> np.ndarray:
        y = np.zeros(second, np.int32)
        f(*sizes, tvm_ffi.from_dlpack(np.ones(first, np.int32)), tvm_ffi.from_dlpack(y))
        return y

    assert call((7, 2), (3, 6)).sum() == 6
    assert call((7, 2), (3, 6), 3, 2).sum() == 6
    with pytest.raises(ValueError, match=r"argument #0 \(x\) dimension 0: expected 2 \* n \+ 1 = 7, got 6"):
        call((6, 2), (3, 6))
    with pytest.raises(ValueError, match=r"argument #1 \(y\) dimension 1: expected m \* n = 6, got 7"):
        call((7, 2), (3, 7))
    with pytest.raises(ValueError, match="the sizes are too large"):
        call((7, 2), (3, 6), 1 << 62, 1 << 62)


def test_only_solvable_symbols_follow_from_shapes(tir):
    text = "tir.prim_func @f[%n, %m](%x: !tir.buffer<[mod(n, 8), m], f32>) { }"
    f = compile_prim_funcs(tir(text), cache=NO_CACHE).packed("f")
    x = tvm_ffi.from_dlpack(np.zeros((3, 4), "f4"))
    f(11, 4, x)
    with pytest.raises(TypeError, match="f: the sizes do not follow from the shapes, pass them first"):
        f(x)
    with pytest.raises(ValueError, match=r"expected mod\(n, 8\) = 4, got 3"):
        f(12, 4, x)


def as_tensor(array: np.ndarray, type_: str) -> Any:
    """A tensor on the array's memory; of bf16, which NumPy does not exchange, by changing the type in the structure."""
    tensor = tvm_ffi.from_dlpack(array)
    if type_ == "bf16":
        structure = (ctypes.c_uint8 * 48).from_address(tensor.__chandle__() + 24)
        structure[20], structure[21] = 4, 16
    return tensor


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("type_", "good", "bad", "kind"),
    [
        ("i8", [-128, 255, True], [-129, 256], ValueError),
        ("i32", [-(1 << 31), (1 << 32) - 1], [1 << 32], ValueError),
        ("i64", [-(1 << 63), (1 << 63) - 1], [0.5], TypeError),
        ("i1", [True, False, 1, 0], ["yes"], TypeError),
        ("f64", [0.1, 3], [None], TypeError),
        ("f16", [0.5, 2], [[1]], TypeError),
        ("bf16", [0.5, 2], ["1"], TypeError),
    ],
)
def test_scalars(type_: str, good: list[Any], bad: list[Any], kind: type[Exception], tir):
    from tir_dialect.dtypes import numpy_dtype, parse_dtype

    text = f"""
    tir.prim_func @f(%a: {type_}, %y: !tir.buffer<[], {type_}>) {{
      tir.store %a, %y[]
    }}"""
    f = compile_prim_funcs(tir(text), cache=NO_CACHE).packed("f")
    dtype = numpy_dtype(parse_dtype(type_))
    raw = np.zeros((), np.int16 if type_ == "bf16" else dtype)
    y = as_tensor(raw, type_)
    for value in good:
        f(value, y)
        number = np.int64(value).astype(dtype) if dtype.kind in "iu" else np.asarray(value).astype(dtype)
        np.testing.assert_array_equal(raw.view(dtype), number)
    for value in bad:
        with pytest.raises(kind):
            f(value, y)


def test_strides_and_offsets_of_the_type(tir):
    text = """
    tir.prim_func @f(%x: !tir.buffer<[2, 3], i32, strides = [4, 1], offset = 2>, %y: !tir.buffer<[], i32>) {
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index
      %v = tir.load %x[%one, %two]
      tir.store %v, %y[]
    }"""
    f = compile_prim_funcs(tir(text), cache=NO_CACHE).packed("f")
    x, y = np.arange(12, dtype=np.int32).reshape(3, 4), np.zeros((), np.int32)
    f(tvm_ffi.from_dlpack(x[:2, 1:]), tvm_ffi.from_dlpack(y))
    assert y == x[1, 3]
    with pytest.raises(ValueError, match=r"expected strides \[4, 1\], got another one along axis 0"):
        f(tvm_ffi.from_dlpack(x[:2, 1:].copy()), tvm_ffi.from_dlpack(y))


def test_the_function_outlives_its_kernels(tir):
    import gc

    f = compile_prim_funcs(tir(SCALE), cache=NO_CACHE).packed("scale")
    gc.collect()
    x, y = arrays((2, 2), (2, 2))
    f(tvm_ffi.from_dlpack(x), 1.0, tvm_ffi.from_dlpack(y))
    np.testing.assert_array_equal(x, y)


GAPS = """
tir.prim_func @gaps[%n, %m, %s, %t, %o](
  %x: !tir.buffer<[n, m], f32, strides = [s, t], offset = o>, %y: !tir.buffer<[n, m], f32>, %row: !tir.buffer<[], i64>
) {
  %wide = arith.index_cast %s : index to i64
  tir.store %wide, %row[]
  tir.for (%i, %j) in (%n, %m) {
    %v = tir.load %x[%i, %j]
    tir.store %v, %y[%i, %j]
  }
}"""


def test_strides_that_are_symbols_are_those_of_the_arguments(tir):
    module = tir(GAPS)
    func = module.body.block.first_op
    copy = compile_prim_funcs(module, cache=NO_CACHE).packed("gaps")
    memory = np.arange(240, dtype="f4")
    for x in (
        memory[:12].reshape(3, 4),
        memory.reshape(12, 20)[1::3, 2:17:5],
        memory[:30].reshape(5, 6).T,
        memory[9:5],
    ):
        x = x.reshape(x.shape if x.ndim == 2 else (0, 3))
        for run in (lambda *args: run_prim_func(func, args), lambda *args: copy(*map(tvm_ffi.from_dlpack, args))):
            y, row = np.zeros(x.shape, "f4"), np.zeros((), "i8")
            run(x, y, row)
            np.testing.assert_array_equal(y, x)
            assert row == x.strides[0] // 4
    backwards = memory[:12].reshape(3, 4)[::-1]
    y, row = np.zeros((3, 4), "f4"), np.zeros((), "i8")
    with pytest.raises(
        ValueError, match=r"gaps: argument #0 \(x\) stride 0: expected s in the range at least 0, got -4"
    ):
        copy(*map(tvm_ffi.from_dlpack, (backwards, y, row)))
    with pytest.raises(
        ValueError, match=r"argument #0 \(x\) stride 0: expected at least 0 elements of 4 bytes, got -16"
    ):
        run_prim_func(func, [backwards, y, row])
    halves = np.ndarray((3, 4), "f4", np.zeros(80, "i1"), strides=(18, 4))
    with pytest.raises(ValueError, match="stride 0: expected at least 0 elements of 4 bytes, got 18"):
        run_prim_func(func, [halves, y, row])
    with pytest.raises(ValueError, match=r"expected strides \[s, t\], got another one along axis 0"):
        copy(3, 4, 5, 1, 0, *map(tvm_ffi.from_dlpack, (memory[:12].reshape(3, 4), y, row)))
