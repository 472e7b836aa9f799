"""Rounding errors of long sums, against float64, and that no result depends on the number of threads.

Equal numbers are the worst case: all roundings of a sum go in the same direction.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.runtime.loading import library_symbol
from relax_dialect.builder import BlockBuilder, Expr, op, tensor
from tir_dialect.target import Target
from vm_dialect import VirtualMachine
from vm_dialect.tensors import from_numpy, to_numpy

pytestmark = pytest.mark.sampled(5)

Array = npt.NDArray[np.float64]
EPSILON = float(np.finfo(np.float32).eps)
WORST = 96
"""Units of the last position that equal numbers may be off: a sum of 2**18 in one accumulator is off by thousands."""
USUAL = 12
"""The same for numbers of different size."""


@dataclass(frozen=True)
class Case:
    """A program whose results are long sums."""

    shapes: Sequence[Sequence[int | str]]
    program: Callable[[Expr], Expr] | Callable[[Expr, Expr], Expr] | Callable[[Expr, Expr, Expr], Expr]
    reference: Callable[[Array], Array] | Callable[[Array, Array], Array] | Callable[[Array, Array, Array], Array]
    sizes: Sequence[Sequence[int]]


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def windows(x: Array, size: int) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))


def attend(q: Array, k: Array, v: Array) -> Array:
    scores = softmax(np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("bhqk,bkhd->bqhd", scores, v)


def depthwise(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.einsum("ncijhw,chw->ncij", windows(padded, 3), w[:, 0])


def fused_mean(x: Expr, w: Expr, v: Expr) -> Expr:
    inner = op.nn.relu(op.nn.conv2d(x, w))
    return op.mean(op.nn.conv2d(inner, v, padding=[1, 1, 1, 1], groups=24), [2, 3])


def fused_mean_reference(x: Array, w: Array, v: Array) -> Array:
    inner = np.maximum(np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]), 0)
    return depthwise(inner, v).mean((2, 3))


def matmul(x: Expr, y: Expr) -> Expr:
    return op.matmul(x, y)


def transposed(x: Expr, y: Expr) -> Expr:
    return op.matmul(x, op.permute_dims(y, [1, 0]))


def product(m: int, k: int, n: int, rows: int | str = "m") -> Case:
    return Case([(rows, "k"), ("k", "n")], matmul, lambda x, y: x @ y, [(m, k), (k, n)])


def product_of_rows(m: int, k: int, n: int) -> Case:
    return Case([("m", "k"), ("n", "k")], transposed, lambda x, y: x @ y.T, [(m, k), (n, k)])


MATRIX, IMAGE = [("n", "m")], [("n", "c", "h", "w")]
CASES = {
    "sum of all": Case([("n",)], lambda x: op.sum(x), lambda x: np.asarray(x.sum()), [(1 << 20,)]),
    "sum of rows": Case(MATRIX, lambda x: op.sum(x, [1]), lambda x: x.sum(1), [(3, 1 << 18)]),
    "sum of known rows": Case([(3, 100001)], lambda x: op.sum(x, [1]), lambda x: x.sum(1), [(3, 100001)]),
    "sum of columns": Case(MATRIX, lambda x: op.sum(x, [0]), lambda x: x.sum(0), [(1 << 17, 5)]),
    "sum of many columns": Case(MATRIX, lambda x: op.sum(x, [0]), lambda x: x.sum(0), [(20000, 300)]),
    "sum of known columns": Case([(1 << 16, 48)], lambda x: op.sum(x, [0]), lambda x: x.sum(0), [(1 << 16, 48)]),
    "sum in the middle": Case([("n", "m", "k")], lambda x: op.sum(x, [1]), lambda x: x.sum(1), [(2, 1 << 16, 20)]),
    "sum around the middle": Case(
        [("n", "m", "k")], lambda x: op.sum(x, [0, 2]), lambda x: x.sum((0, 2)), [(1000, 3, 1000)]
    ),
    "sum of lines": Case(IMAGE, lambda x: op.sum(x, [0, 2, 3]), lambda x: x.sum((0, 2, 3)), [(70000, 2, 1, 3)]),
    "sum of pixels, channels last": Case(
        IMAGE, lambda x: op.sum(x, [1, 2]), lambda x: x.sum((1, 2)), [(1, 500, 401, 8)]
    ),
    "running sums": Case([("n",)], lambda x: op.cumsum(x), lambda x: x.cumsum(), [(1 << 20,)]),
    "running sums of rows": Case(MATRIX, lambda x: op.cumsum(x, 1), lambda x: x.cumsum(1), [(3, 100001)]),
    "sum of exponentials": Case(MATRIX, lambda x: op.sum(op.exp(x), [1]), lambda x: np.exp(x).sum(1), [(3, 1 << 18)]),
    "mean of products": Case(
        [("n", "m"), ("n", "m")],
        lambda x, y: op.mean(op.multiply(x, y), [0]),
        lambda x, y: (x * y).mean(0),
        [(1 << 17, 5)] * 2,
    ),
    "variance": Case(
        MATRIX,
        lambda x: op.variance(op.concat([x, op.add(x, x)], axis=1), [1]),
        lambda x: np.concatenate((x, 2 * x), 1).var(1),
        [(3, 1 << 17)],
    ),
    "softmax": Case(MATRIX, lambda x: op.nn.softmax(x), softmax, [(3, 1 << 18)]),
    "softmax of columns": Case(MATRIX, lambda x: op.nn.softmax(x, axis=0), lambda x: softmax(x.T).T, [(1 << 17, 5)]),
    "rms norm": Case(
        [("n", "m"), ("m",)],
        lambda x, g: op.nn.rms_norm(x, g, axes=[-1]),
        lambda x, g: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * g,
        [(3, 1 << 18), (1 << 18,)],
    ),
    "pooling, channels last": Case(
        [(1, 240, 320, 24)],
        lambda x: op.nn.avg_pool2d(x, pool_size=[240, 320], layout="NHWC"),
        lambda x: x.mean((1, 2), keepdims=True),
        [(1, 240, 320, 24)],
    ),
    "pooling of windows": Case(
        [(1, 4, 200, 200)],
        lambda x: op.nn.avg_pool2d(x, pool_size=[150, 150], strides=[1, 1]),
        lambda x: windows(x, 150).mean((4, 5)),
        [(1, 4, 200, 200)],
    ),
    "mean behind convolutions": Case(
        [("n", 24, "h", "w"), (24, 24, 1, 1), (24, 1, 3, 3)],
        fused_mean,
        fused_mean_reference,
        [(1, 24, 120, 160), (24, 24, 1, 1), (24, 1, 3, 3)],
    ),
    "convolution with a long window": Case(
        [(1, 1, "n"), (1, 1, 30000)],
        lambda x, w: op.nn.conv1d(x, w),
        lambda x, w: np.array([[[x[0, 0, i : i + 30000] @ w[0, 0] for i in range(5)]]]),
        [(1, 1, 30004), (1, 1, 30000)],
    ),
    "depthwise convolution with a large window": Case(
        [(1, 2, 200, 200), (2, 1, 190, 190)],
        lambda x, w: op.nn.conv2d(x, w, groups=2),
        lambda x, w: np.einsum("ncijhw,chw->ncij", windows(x, 190), w[:, 0]),
        [(1, 2, 200, 200), (2, 1, 190, 190)],
    ),
    "dot product": Case([("n",), ("n",)], matmul, lambda x, y: np.asarray(x @ y), [(1 << 20,)] * 2),
    "one row": product(1, 1 << 17, 16, 1),
    "one row of many columns": product(1, 1000, 4001),
    "two rows": product(2, 20000, 700),
    "four rows": product(4, 1 << 16, 40),
    "many rows": product(50, 1 << 15, 40),
    "one column": product(16, 1 << 16, 1),
    "few columns": product(50, 1 << 15, 6),
    "one row along rows": product_of_rows(1, 1 << 16, 16),
    "few rows along rows": product_of_rows(5, 4096, 300),
    "rows along rows": product_of_rows(4, 1 << 16, 5),
    "transposed matrix times a vector": Case(
        [("k", "m"), ("k", 1)],
        lambda x, y: op.matmul(op.permute_dims(x, [1, 0]), y),
        lambda x, y: x.T @ y,
        [(1 << 16, 16), (1 << 16, 1)],
    ),
    "attention of few rows": Case(
        [(1, 3, 2, 16), (1, "k", 2, 16), (1, "k", 2, 16)],
        lambda q, k, v: op.nn.attention(q, k, v),
        attend,
        [(1, 3, 2, 16), (1, 1 << 15, 2, 16), (1, 1 << 15, 2, 16)],
    ),
    "attention": Case(
        [(1, "q", 2, 16), (1, "k", 2, 16), (1, "k", 2, 16)],
        lambda q, k, v: op.nn.attention(q, k, v),
        attend,
        [(1, 40, 2, 16), (1, 1 << 14, 2, 16), (1, 1 << 14, 2, 16)],
    ),
}


def module_of(case: Case) -> ModuleOp:
    builder = BlockBuilder()
    types = {f"x{number}": tensor(tuple(shape), "f32") for number, shape in enumerate(case.shapes)}
    with builder.function("main", types) as inputs:
        builder.emit_func_output(cast("Callable[..., Expr]", case.program)(*inputs))
    return builder.get()


def numbers(case: Case, kind: str) -> list[npt.NDArray[np.float32]]:
    random = np.random.default_rng(0)
    low, high = {"equal": (0.7, 0.7), "positive": (0.2, 1), "any": (-1, 1)}[kind]
    return [random.uniform(low, high, tuple(size)).astype(np.float32) for size in case.sizes]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", CASES)
def test_errors_of_long_sums_are_small(name: str) -> None:
    case = CASES[name]
    main = VirtualMachine(build(module_of(case)))["main"]
    for kind, most in (("equal", WORST), ("positive", USUAL)):
        inputs = numbers(case, kind)
        expected = cast("Callable[..., Array]", case.reference)(*(each.astype(np.float64) for each in inputs))
        error = np.abs(to_numpy(main(*map(from_numpy, inputs))) - expected).max() / np.abs(expected).max()
        assert error <= most * EPSILON, f"{kind}: {error / EPSILON}"


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", CASES)
def test_results_are_the_same_for_any_number_of_threads(name: str) -> None:
    set_threads = ctypes.CFUNCTYPE(None, ctypes.c_int)(library_symbol("relax_set_num_threads") or 0)
    get_threads = ctypes.CFUNCTYPE(ctypes.c_int)(library_symbol("relax_max_threads") or 0)
    case, before = CASES[name], get_threads()
    main = VirtualMachine(build(module_of(case), target=Target.host().with_settings({"cores": 4})))["main"]
    inputs, results = [*map(from_numpy, numbers(case, "any"))], list[bytes]()
    try:
        for threads in (1, 2, 3, 4):
            set_threads(threads)
            results.append(to_numpy(main(*inputs)).tobytes())
    finally:
        set_threads(before)
    assert len(set(results)) == 1
