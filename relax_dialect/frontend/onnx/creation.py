"""Tensors made from a shape or a rule, and random numbers, which are functions of a seed and a stream of the node."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f64, i32, i64
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.formulas import range_length
from relax_dialect.frontend.edge_cases import none_zero
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.values import Array, Refusal, Value, as_strings
from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.dtypes import from_numpy, is_float

_NUMBERS: dict[str, Any] = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


@converts("Constant")
def constant(node: Node) -> Result:
    """A tensor that is an attribute."""
    if "value" in node.attributes:
        return as_strings(node.attributes["value"], node.bb) or Value.of(node.attributes["value"])
    for name, dtype in _NUMBERS.items():
        if name in node.attributes:
            return Value.of(np.array(node.attributes[name], dtype))
    for name in ("value_string", "value_strings"):
        if name in node.attributes:
            strings = node.text(name) if name == "value_string" else node.strings(name)
            made = as_strings(np.array(strings, object), node.bb)
            if made is not None:
                return made
    raise Refusal("the constant is no dense tensor of numbers")


@converts("ConstantOfShape")
def constant_of_shape(node: Node) -> Result:
    """A tensor of one value."""
    value: Array = node.attribute("value", np.zeros(1, np.float32))
    if value.size != 1:
        raise Refusal(f"expected a value of one element, got {value.size}")
    node.require_list(0, "the shape")
    dims = node.dims(0)
    if dims is None:
        dims = node.run_time_dims(node[0], node.hinted_dims(node.length(0)))
    scalar = node.bb.const(value.reshape(-1)[0], from_numpy(value.dtype))
    return op.full(dims, scalar)


@converts("EyeLike")
def eye_like(node: Node) -> Result:
    """Ones on a diagonal."""
    dtype = node.element_type("dtype") or node.dtype()
    rows, columns = node.shape()
    return op.eye(rows, columns, node.integer("k"), dtype=dtype)


@converts("Range")
def arange(node: Node) -> Result:
    """Numbers from a start to a limit, which may be data."""
    if node.floats(2) == (0,):
        raise Refusal("the step is 0")
    known = [node.dims(at) for at in range(3)] if not is_float(node.dtype()) else [None] * 3
    start, limit, step = (each[0] if each else None for each in known)
    if start is not None and limit is not None and step is not None and step.constant_value:
        return op.astype(op.arange(start, limit, step), node.dtype())
    first, last, delta = [node[at] if node.rank(at) == 0 else op.reshape(node[at], []) for at in range(3)]
    if node.floats(2) is None:
        delta = none_zero(node.bb, delta, "'Range'")
    length = node.run_time_dims(node.te(_range_length, first, last, delta, name="range_length"), node.hinted_dims(1))
    dtype = str(node.dtype())
    return node.te(
        lambda start, step: te.compute(length, lambda *i: start[()] + te.cast(i[0], dtype) * step[()], name="range"),
        first,
        delta,
    )


def _range_length(start: te.Tensor, limit: te.Tensor, step: te.Tensor) -> te.Tensor:
    """How many numbers there are, as a tensor of one element."""
    length = range_length(start[()], limit[()], step[()])
    return te.compute((1,), lambda *i: length, name="range_length")


@converts("OneHot")
def one_hot(node: Node) -> Result:
    """`on` at the indices along a new axis, `off` elsewhere; positions outside mark nothing."""
    depth = node.dims(1)
    axis = node.axis(default=-1, rank=node.rank() + 1)
    if depth is None or is_float(node.dtype(1)):
        tensor = node[1] if node.rank(1) == 1 else op.reshape(node[1], [1])
        rank = node.rank() + 1
        depth = node.run_time_dims(tensor, node.hinted_dims(rank)[axis : axis + 1])
    shape = [*node.shape()[:axis], depth[0], *node.shape()[axis:]]

    def kernel(indices: te.Tensor, values: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            position = te.cast(indices[(*i[:axis], *i[axis + 1 :])], "i64")
            position = te.select(position < 0, position + te.cast(te.cast(depth[0], "index"), "i64"), position)
            return te.select(position == te.cast(i[axis], "i64"), values[1], values[0])

        return te.compute(shape, element, name="one_hot")

    return node.te(kernel, node[0], node[2])


@converts("Trilu")
def trilu(node: Node) -> Result:
    """The upper or lower triangle of matrices."""
    upper, known = bool(node.integer("upper", 1)), node.ints(1) if node.has(1) else (0,)
    if known is not None:
        return (op.triu if upper else op.tril)(node[0], known[0])

    def kernel(x: te.Tensor, k: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            gap = te.cast(i[-1], "i64") - te.cast(i[-2], "i64")
            diagonal = k[(0,) * k.ndim]
            return te.select(gap >= diagonal if upper else gap <= diagonal, x[i], te.const(0, x.dtype))

        return te.compute(x.shape, element, name="trilu")

    return node.te(kernel, node[0], node[1])


def zeros(node: Node, shape: Sequence[Any], dtype: Attribute) -> Expr:
    """A tensor of zeros."""
    return op.full(list(shape), node.const(0, dtype))


@converts("RandomUniform", "RandomUniformLike")
def random_uniform(node: Node) -> Result:
    """Numbers between two others, all equally likely."""
    low, high = node.number("low"), node.number("high", 1.0)
    return op.random.uniform(shape=_shape(node), low=low, high=high, dtype=_dtype(node), **seed_of(node))


@converts("RandomNormal", "RandomNormalLike")
def random_normal(node: Node) -> Result:
    """Normally distributed numbers."""
    mean, scale = node.number("mean"), node.number("scale", 1.0)
    return op.random.normal(shape=_shape(node), mean=mean, scale=scale, dtype=_dtype(node), **seed_of(node))


@converts("Bernoulli")
def bernoulli(node: Node) -> Result:
    """One with the probability that an element says, else zero; the function of the standard has them reversed."""
    random = op.random.uniform(shape=list(node.shape()), dtype=node.dtype(), **seed_of(node))
    return op.astype(op.less(random, node[0]), node.element_type("dtype") or node.dtype())


@converts("Multinomial")
def multinomial(node: Node) -> Result:
    """Samples from distributions that are given by the logarithms of probabilities, up to a constant."""
    (rows, _), count = node.shape(), node.integer("sample_size", 1)
    uniform = op.random.uniform(shape=[rows * count, 1], dtype=node.dtype(), **seed_of(node))
    row_of = op.reshape(op.floor_divide(op.arange(0, rows * count, 1), count), [rows * count, 1])
    dtype = node.element_type("dtype") or i32
    samples = op.multinomial_from_uniform(op.nn.softmax(node[0], axis=-1), uniform, row_of, dtype=dtype)
    return op.reshape(samples, [rows, count])


SEEDS = 1 << 52
"""So many seeds can be drawn."""


def seed_of(node: Node) -> dict[str, Any]:
    """The seed and stream of a node's numbers.

    The seed is that of its attribute; or else that of the model, and the stream one that no other node has. In a loop
    each iteration has a seed of its own, one after the other from one that is drawn for the loop.
    """
    graph = node.graph
    stream, seed = zlib.crc32((graph.prefix + node.outputs[0]).encode()), 0 if graph.seed is None else graph.seed
    if "seed" in node.attributes:
        stream, seed = 0, int(np.float32(node.number("seed")).view(np.int32))
    for name, turn in graph.turns:
        drawn = op.random.uniform(seed, [1], high=SEEDS, dtype=f64, stream=zlib.crc32(name.encode()))
        (first,) = node.run_time_dims(op.astype(drawn, i64))
        at = turn if isinstance(turn, Dim) else node.run_time_dims(op.reshape(turn.expr(node.bb), [1]))[0]
        seed = first + at
    return {"seed": seed, "stream": stream} if stream else {"seed": seed}


def _shape(node: Node) -> list[Dim | int]:
    """The shape that an attribute says, or that of the operand."""
    given = node.integers("shape")
    return list(node.shape() if given is None else given)


def _dtype(node: Node) -> Attribute:
    dtype = node.element_type("dtype") or node.dtype()
    if not is_float(dtype):
        raise Refusal(f"random numbers are floating-point, not {dtype}")
    return dtype
