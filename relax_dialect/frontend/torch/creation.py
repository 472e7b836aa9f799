"""Tensors made from a shape or a rule; windows of signals, and frequencies."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import f64, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect import te
from tir_dialect.dims import constant, maximum, to_dim
from tir_dialect.dtypes import is_float


def filled(node: Node, value: Any) -> Expr:
    """A tensor of one value, of the shape and dtype of the result."""
    return op.full(node.out_dims(), node.graph.tensor(value, node.out_dtype()))


@converts("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def full(node: Node) -> Result:
    """A tensor of a value."""
    return filled(node, node.value("fill_value"))


@converts("aten.fill.Scalar", "aten.fill.Tensor")
def fill(node: Node) -> Result:
    """A tensor of a value, of the shape of another."""
    return filled(node, node.value("value"))


@converts("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(node: Node) -> Result:
    """A tensor of ones."""
    return filled(node, 1)


@converts(
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.empty_permuted.default",
    "aten.empty_strided.default",
    "aten.new_empty.default",
    "aten.new_empty_strided.default",
    "aten.new_zeros.default",
    "aten.zero.default",
    "aten.zeros.default",
    "aten.zeros_like.default",
)
def zeros(node: Node) -> Result:
    """A tensor of zeros, also where elements may be anything."""
    return filled(node, 0)


@converts("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(node: Node) -> Result:
    """Numbers from a start on, as many as PyTorch says there are."""
    dtype = node.out_dtype()
    start, step = (node.value(name) for name in ("start", "step"))
    if not is_float(dtype) and all(isinstance(each, int | None) for each in (start, step)):
        first, by, (length,) = to_dim(start or 0), 1 if step is None else step, node.out_dims()
        return node.matched(op.arange(first, first + length * by, by), dtype)
    return _steps(node, start or 0, 1 if step is None else step)


def _steps(node: Node, start: Any, step: Any) -> Expr:
    """`start + i * step`, computed in `f64` or, of integers, in `i64`."""
    wide = f64 if is_float(node.out_dtype()) else node.out_dtype()
    (length,) = node.out_dims()

    def kernel(start: te.Tensor, step: te.Tensor) -> te.Tensor:
        return te.compute((length,), lambda *i: start[()] + te.cast(i[0], str(wide)) * step[()], name="arange")

    made = node.te(kernel, node.graph.tensor(start, wide), node.graph.tensor(step, wide), name="arange")
    return node.matched(made, node.out_dtype())


@converts("aten.linspace.default")
def linspace(node: Node) -> Result:
    """Numbers at equal distances between two, which are both included."""
    steps = node.graph.dimension(maximum(node.out_dims()[0] - 1, constant(1)), f64)
    start, end = node.tensor("start", f64), node.tensor("end", f64)
    return _steps(node, start, op.divide(op.subtract(end, start), steps))


@converts("aten.eye.default", "aten.eye.m")
def eye(node: Node) -> Result:
    """Ones on the diagonal."""
    rows, columns = node.out_dims()
    return op.eye(rows, columns, 0, dtype=node.out_dtype())


@converts("aten.tril.default", "aten.triu.default")
def triangle(node: Node) -> Result:
    """The lower or upper triangle of matrices."""
    return (op.tril if node.name == "tril" else op.triu)(node.tensor("self"), node.dim("diagonal"))


@converts("aten.tril_indices.default", "aten.triu_indices.default")
def triangle_indices(node: Node) -> Result:
    """The indices of the lower or upper triangle of a matrix."""
    import numpy as np

    function = np.tril_indices if node.name == "tril_indices" else np.triu_indices
    return node.const(function(node.integer("row"), node.integer("offset"), node.integer("col")), node.out_dtype())


@converts("aten.one_hot.default")
def one_hot(node: Node) -> Result:
    """1 at the places that indices name along a new axis, else 0."""
    on, off = node.bb.prim(1, node.out_dtype()), node.bb.prim(0, node.out_dtype())
    return op.one_hot(node.tensor("self"), on, off, node.out_dims()[-1], -1)


_COSINES = {"hann_window": [0.5, 0.5], "blackman_window": [0.42, 0.5, 0.08]}


@converts(
    *(f"aten.{name}.{overload}" for name in _COSINES for overload in ("default", "periodic")),
    *(f"aten.hamming_window.{overload}" for overload in ("default", "periodic", "periodic_alpha")),
    "aten.hamming_window.periodic_alpha_beta",
)
def window(node: Node) -> Result:
    """A sum of cosines with alternating signs; it is periodic unless it is said not to be."""
    hamming = [node.number("alpha", 0.54), node.number("beta", 0.46)]
    periodic = node.value("periodic") is not False
    coefficients = _COSINES.get(node.name, hamming)
    return op.cosine_window(node.dim("window_length"), coefficients, periodic=periodic, dtype=node.out_dtype())


@converts("aten.fft_fftfreq.default", "aten.fft_rfftfreq.default")
def frequencies(node: Node) -> Result:
    """The frequencies of a Fourier transform; above the half, negative ones."""
    (length,), dtype, n = node.out_dims(), node.out_dtype(), node.dim("n")
    index = op.arange(0, length, 1, dtype=i64)
    if node.name == "fft_fftfreq":
        size, half = node.graph.dimension(n, i64), node.graph.dimension((n + 1) // 2, i64)
        index = op.where(op.less(index, half), index, op.subtract(index, size))
    step = op.multiply(node.graph.dimension(n, dtype), node.const(node.number("d", 1.0), dtype))
    return op.divide(node.matched(index, dtype), step)
