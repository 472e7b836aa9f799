"""Nothing outside of buffers is touched by the kernels of operators whose positions depend on data, windows or scales.

The families with rules of their own have such tests beside those of their values: products, convolutions, pooling,
softmax, reductions, transpositions, attention.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.kernels import kernel_of_program
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter import Run, compile_prim_func, run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

X, PICTURE = "%x: !relax.tensor<[m, n], f32>", "%x: !relax.tensor<[1, 2, m, n], f32>"
INDICES, VALUES = "%i: !relax.tensor<[m, n], i64>", "%v: !relax.tensor<[m, n], f32>"
BYTES = "%x: !relax.tensor<[m, n], i8>"
SCALE, ZERO = "%s: !relax.tensor<[n], f32>", "%z: !relax.tensor<[n], i8>"
CASES = {
    "sort": (X, "relax.sort %x axis = 0 descending"),
    "argsort": (X, "relax.argsort %x"),
    "topk": (X, 'relax.topk %x k = 2 axis = -1 ret_type = "indices"'),
    "gather elements": (f"{X}, {INDICES}", "relax.gather_elements %x, %i axis = 0"),
    "gather rows": (f"{X}, %i: !relax.tensor<[m, 1], i64>", "relax.gather_nd %x, %i"),
    "scatter elements": (f"{X}, {INDICES}, {VALUES}", 'relax.scatter_elements %x, %i, %v axis = 1 reduction = "add"'),
    "scatter rows": (f"{X}, %i: !relax.tensor<[m, 1], i64>, {VALUES}", 'relax.scatter_nd %x, %i, %v reduction = "add"'),
    "quantize": (f"{X}, {SCALE}, {ZERO}", "relax.quantize %x, %s, %z dtype = i8 axis = 1"),
    "dequantize": (f"{BYTES}, {SCALE}, {ZERO}", "relax.dequantize %x, %s, %z axis = 1 dtype = f32"),
    "resize": (PICTURE, "%size = relax.shape [5, 9]", 'relax.image.resize2d %x, %size method = "linear"'),
    "reflected border": (PICTURE, 'relax.nn.pad %x pad_width = [0, 0, 0, 0, 1, 1, 1, 1] mode = "reflect"'),
    "every second": (X, "relax.strided_slice %x axes = [0, 1] begin = [-1, 1] end = [-100, 100] strides = [-1, 2]"),
    "flipped": (X, "relax.flip %x axis = -1"),
    "one hot": (
        "%x: !relax.tensor<[m, n], i64>, %a: !relax.prim<f32>, %b: !relax.prim<f32>",
        "relax.one_hot %x, %a, %b depth = 3 axis = 1",
    ),
    "lower triangle": (X, "relax.tril %x k = 1"),
    "running sums of columns": (X, "relax.cumsum %x axis = 0"),
    "transposed convolution": (
        f"{PICTURE}, %k: !relax.tensor<[2, 3, 3, 3], f32>",
        "relax.nn.conv2d_transpose %x, %k strides = [2, 2] padding = [1, 1, 1, 1]",
    ),
    "convolution of lines": (
        "%x: !relax.tensor<[m, 2, n], f32>, %k: !relax.tensor<[3, 2, 2], f32>",
        "relax.nn.conv1d %x, %k padding = [1, 1]",
    ),
    "convolution of spaces": (
        "%x: !relax.tensor<[1, 2, 3, m, n], f32>, %k: !relax.tensor<[2, 2, 2, 2, 2], f32>",
        "relax.nn.conv3d %x, %k",
    ),
    "pooling of spaces": ("%x: !relax.tensor<[1, 2, 3, m, n], f32>", "relax.nn.max_pool3d %x pool_size = [2, 2, 2]"),
    "adaptive pooling": (PICTURE, "relax.nn.adaptive_avg_pool2d %x output_size = [2, 1]"),
    "sampled at places": (
        f"{PICTURE}, %g: !relax.tensor<[1, 2, m, n], f32>",
        'relax.image.grid_sample %x, %g padding_mode = "border"',
    ),
    "repeated": (X, "relax.repeat %x repeats = 3 axis = 1"),
    "buckets": (f"{X}, %e: !relax.tensor<[n], f32>", "relax.bucketize %x, %e"),
    "median": (X, "relax.median %x axes = [1]"),
    "written into": (
        f"{X}, %v: !relax.tensor<[m, 1], f32>",
        "relax.slice_scatter %x, %v axis = 1 start = 1 end = 2",
    ),
    "einsum": (f"{X}, {VALUES}", 'relax.einsum %x, %v subscripts = "ij,ij->j"'),
}


@cache
def kernels_of(name: str) -> tuple[dict[PrimFuncOp, Run], Kernels]:
    """The functions of an operator, each with what interprets it, and their code."""
    parameters, *before, op = CASES[name]
    body = "\n".join([*before, f"%y = {op}", "relax.return %y"])
    module = parse_module(f"relax.func @main[%m in [2, _], %n in [2, _]]({parameters}) {{\n{body}\n}}")
    LegalizeOpsPass().apply(Context(), module)
    funcs = tuple(op for op in module.ops if isinstance(op, PrimFuncOp))
    assert funcs, "the operator makes no kernel"
    for func in funcs:
        func.detach()
        func.sym_visibility = None
    kernels = compile_prim_funcs(ModuleOp([func.clone() for func in funcs]), cache=NO_CACHE)
    return {func: compile_prim_func(func) for func in funcs}, kernels


def random_arguments(func: PrimFuncOp, sizes: dict[str, int]) -> list[np.ndarray | float]:
    """Numbers that are not 0, and indices below 2."""
    rng = np.random.default_rng(sum(sizes.values()))
    found: list[np.ndarray | float] = []
    for kind in (param.type for param in func.params):
        if not isinstance(kind, BufferType):
            found.append(3.0)
            continue
        shape, dtype = [extent.evaluate(sizes) for extent in kind.shape], numpy_dtype(kind.dtype)
        values = rng.integers(0, 2, shape) if dtype.kind in "iu" else rng.standard_normal(shape) + 3
        found.append(np.asarray(values).astype(dtype))
    return found


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=4)
@given(m=st.integers(2, 20), n=st.integers(2, 70))
def test_nothing_outside_is_touched(name: str, m: int, n: int) -> None:
    funcs, kernels = kernels_of(name)
    for func, run in funcs.items():
        sizes = {symbol: {"m": m, "n": n}[symbol] for symbol in func.symbol_names}
        given = random_arguments(func, sizes)
        expected = [np.copy(each) if isinstance(each, np.ndarray) else each for each in given]
        run(expected, sizes)
        for at_end in (True, False):
            guarded = [Guarded(each, at_end) if isinstance(each, np.ndarray) else each for each in given]
            passed = [each.array if isinstance(each, Guarded) else each for each in guarded]
            assert call(kernels, func, passed, sizes) == 0
            for each, got, want in zip(guarded, passed, expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-6)
                if isinstance(each, Guarded):
                    each.release()


STRIDED = """
tir.prim_func @strided[%m, %n](%X: !tir.buffer<[m, n], f32, strides = [n + 3, 1], offset = 2>,
                               %Y: !tir.buffer<[n, m], f32, strides = [m + 1, 1]>) {
  %B = tir.alloc_buffer : !tir.buffer<[n, m], f32, strides = [m + 5, 1], offset = 1, align = 64>
  tir.for (%j, %i) in (%n, %m) {
    tir.block "turn" (%vj = spatial %j in %n, %vi = spatial %i in %m) {
      %x = tir.load %X[%vi, %vj]
      tir.store %x, %B[%vj, %vi]
    }
  }
  tir.for (%j, %i) in (%n, %m) {
    tir.block "twice" (%vj = spatial %j in %n, %vi = spatial %i in %m) {
      %b = tir.load %B[%vj, %vi]
      %y = arith.addf %b, %b : f32
      tir.store %y, %Y[%vj, %vi]
    }
  }
}"""


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 17), (17, 64), (5, 0)])
def test_memory_with_gaps(m: int, n: int) -> None:
    module = parse_module(STRIDED)
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    x = np.arange(2 + m * (n + 3) - 3, dtype=np.float32)
    seen = np.lib.stride_tricks.as_strided(x[2:], (m, n), (4 * (n + 3), 4))
    for at_end in (True, False):
        data, result = Guarded(x, at_end), Guarded(np.full(max(n * (m + 1) - 1, 0), -1, np.float32), at_end)
        assert call(kernels, func, [data.array, result.array], {"m": m, "n": n}) == 0
        rows = np.append(result.array, np.float32(-1))[: n * (m + 1)].reshape(n, m + 1)
        np.testing.assert_array_equal(rows[:, :m], 2 * seen.T)
        assert (rows[:, m] == -1).all(), "a gap is written"
        data.release()
        result.release()


@pytest.mark.parametrize("count", [3, 100])
@pytest.mark.parametrize("length", [0, 2])
def test_a_kernel_called_for_more_elements_than_there_are(count: int, length: int):
    """It reads none that is not there; Relax would refuse the call."""
    text = f"relax.func @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[{count}], i64> {{\n  %r = "
    kernel = kernel_of_program(f'{text}relax.topk %x k = {count} ret_type = "indices"\n  relax.return %r\n}}')
    places = np.full(count, -1, np.int64)
    run_prim_func(kernel, [np.arange(length, dtype=np.float32), places])
    assert places.tolist() == [*reversed(range(length)), *[-1] * (count - length)]
